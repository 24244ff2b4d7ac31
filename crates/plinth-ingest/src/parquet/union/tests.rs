#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;

fn schema(fields: &[(&str, DataType, bool)]) -> Schema {
    Schema::new(fields.iter().map(|(n, t, null)| Field::new(*n, t.clone(), *null)).collect::<Vec<_>>())
}

#[test]
fn columns_unite_by_name_and_widen() {
    let mut union = Union::default();
    union.add(Path::new("a"), &schema(&[("x", DataType::Int16, false), ("y", DataType::Utf8View, false)])).unwrap();
    union.add(Path::new("b"), &schema(&[("z", DataType::Null, true), ("x", DataType::UInt32, false)])).unwrap();
    let expected =
        schema(&[("x", DataType::Int64, false), ("y", DataType::Utf8View, true), ("z", DataType::Null, true)]);
    assert_eq!(union.finish(), expected);
}

#[test]
fn a_conflict_names_the_column_both_types_and_both_files() {
    let mut union = Union::default();
    union.add(Path::new("a.parquet"), &schema(&[("x", DataType::Int16, false)])).unwrap();
    union.add(Path::new("b.parquet"), &schema(&[("x", DataType::Int32, false)])).unwrap();
    let e = union.add(Path::new("c.parquet"), &schema(&[("x", DataType::Utf8View, false)])).unwrap_err().to_string();
    assert_eq!(e, "column \"x\" is Int32 in b.parquet but Utf8View in c.parquet: import them apart or convert one");
    let mut union = Union::default();
    let twice = schema(&[("x", DataType::Int16, false), ("x", DataType::Int16, false)]);
    assert!(union.add(Path::new("a"), &twice).unwrap_err().to_string().contains("occurs twice"));
}

#[test]
fn common_types_hold_both_sides_whichever_comes_first() {
    use DataType::*;
    let types = [
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Float16,
        Float32,
        Float64,
        Utf8View,
        Date32,
        Null,
        Decimal128(10, 2),
        Decimal128(12, 2),
        Decimal256(50, 2),
        Decimal128(10, 3),
        List(Arc::new(Field::new("item", Int8, false))),
        List(Arc::new(Field::new("item", Int64, true))),
    ];
    for a in &types {
        assert_eq!(common_type(a, a), Some(a.clone()));
        for b in &types {
            let common = common_type(a, b);
            assert_eq!(common, common_type(b, a), "{a} {b}");
            if let Some(common) = common {
                assert_eq!(common_type(&common, a), Some(common.clone()), "{a} {b}");
                assert!(!a.is_integer() || common.is_integer(), "{a} {b} -> {common}");
            }
        }
    }
    assert_eq!(common_type(&UInt64, &Int64), None);
    assert_eq!(common_type(&UInt32, &Int8), Some(Int64));
}
