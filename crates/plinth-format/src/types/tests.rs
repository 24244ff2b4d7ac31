//! Types come back from a footer, or are refused by name.

use super::*;

#[test]
fn a_schema_survives_the_file_and_every_cut_of_it_is_an_error() {
    let schema = Schema::new(vec![
        Field::new("a", DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::LargeUtf8)), false),
        Field::new("t", DataType::Timestamp(TimeUnit::Nanosecond, Some("Europe/Paris".into())), true),
        Field::new("d", DataType::Decimal256(76, -3), true),
        Field::new_struct(
            "s",
            vec![
                Field::new_list("l", Field::new("item", DataType::Float16, true), true),
                Field::new("f", DataType::FixedSizeBinary(3), false),
            ],
            true,
        ),
        Field::new_map(
            "m",
            "entries",
            Field::new("k", DataType::Utf8, false),
            Field::new("v", DataType::Int8, true),
            false,
            true,
        ),
    ]);
    let tree = Tree::from_arrow(&schema).unwrap();
    assert_eq!(tree.streams(), 11);
    let mut out = WireWriter::default();
    tree.write(&mut out);
    let bytes = out.finish();
    let mut wire = WireReader::new(&bytes);
    let read = Tree::read(&mut wire).unwrap();
    wire.finish().unwrap();
    assert_eq!(read.arrow_schema(), tree.arrow_schema());
    assert_eq!(read.streams(), 11);
    assert_eq!(read.arrow_schema().field(0).data_type(), &DataType::Utf8View);
    for cut in 0..bytes.len() {
        assert!(Tree::read(&mut WireReader::new(&bytes[..cut])).is_err());
    }
}

#[test]
fn what_can_not_be_stored_is_named() {
    let union = DataType::Union(arrow_schema::UnionFields::empty(), arrow_schema::UnionMode::Sparse);
    let schema = Schema::new(vec![Field::new_list("xs", Field::new("item", union, true), true)]);
    let error = Tree::from_arrow(&schema).unwrap_err().to_string();
    assert!(error.contains("\"xs[]\"") && error.contains("Union"), "{error}");
    let odd = Schema::new(vec![Field::new("d", DataType::Decimal128(5, 6), true)]);
    assert!(Tree::from_arrow(&odd).unwrap_err().to_string().contains("5 digits"));
    let twice = Schema::new(vec![Field::new("a", DataType::Int8, true), Field::new("a", DataType::Int8, true)]);
    assert!(Tree::from_arrow(&twice).unwrap_err().to_string().contains("twice"));
}
