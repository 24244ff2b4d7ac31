use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use plinth_encoding::expr::{Path, Scalar};
use plinth_format::{Exactness, File, Writer, WriterOptions};

use crate::data::{Random, small, wide_batch, words, write};

fn table(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let fields: Vec<_> = columns.iter().map(|(n, a)| Field::new(*n, a.data_type().clone(), true)).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns.into_iter().map(|(_, a)| a).collect()).unwrap()
}

#[test]
fn statistics_are_exact() {
    let long = "z".repeat(100);
    let text: Vec<Option<&str>> = (0..9_000).map(|i| [Some("b"), None, Some(long.as_str()), Some("")][i % 4]).collect();
    let numbers: Int64Array = (0..9_000).map(|i| (i % 7 != 0).then_some(i - 4_500)).collect();
    let floats = Float64Array::from_iter_values((0..9_000).map(f64::from));
    let batch = table(vec![
        ("text", Arc::new(StringArray::from(text))),
        ("numbers", Arc::new(numbers)),
        ("floats", Arc::new(floats)),
        ("nothing", Arc::new(Int64Array::from(vec![None; 9_000]))),
    ]);
    let dir = tempfile::tempdir().unwrap();
    let file = write(&dir.path().join("t.plinth"), &batch, small());
    let stats = |name: &str| file.statistics(&Path::column(name)).unwrap();
    let exact = |value: Scalar| Some((value, Exactness::Exact));
    let text = stats("text");
    assert_eq!((text.null_count, text.distinct_count), (2250, Some((3, Exactness::Exact))));
    assert_eq!((text.min, text.max), (exact("".into()), exact(long.as_str().into())));
    let numbers = stats("numbers");
    assert_eq!(
        (numbers.null_count, numbers.min, numbers.max),
        (1286, exact(Scalar::Int(-4499)), exact(Scalar::Int(4499)))
    );
    assert_eq!(numbers.distinct_count, Some((9_000 - 1_286, Exactness::Exact)));
    assert_eq!(stats("floats").max, exact(Scalar::Float(8_999.0)));
    let nothing = stats("nothing");
    assert_eq!((nothing.null_count, nothing.min, nothing.max), (9_000, None, None));
    assert!(file.statistics(&Path::column("none")).unwrap_err().to_string().contains("text, numbers"));
}

#[test]
fn row_groups_know_where_their_values_end() {
    let rows = 20_000_i64;
    let number = |row: i64| (row < 9_000 && row % 3 > 0).then_some((row * 7919) % 20_011);
    let numbers: Vec<Option<i64>> = (0..rows).map(number).collect();
    let few = |row: i64| number(row).map(|number| format!("one of few {}", number % 50));
    let own = |row: i64| number(row).map(|number| format!("its own {number} {row}"));
    let text = |of: &dyn Fn(i64) -> Option<String>| (0..rows).map(of).collect::<Vec<_>>();
    let batch = table(vec![
        ("numbers", Arc::new(Int64Array::from(numbers.clone()))),
        ("few", Arc::new(StringArray::from(text(&few)))),
        ("own", Arc::new(StringArray::from(text(&own)))),
    ]);
    let dir = tempfile::tempdir().unwrap();
    let file = write(&dir.path().join("t.plinth"), &batch, small());
    assert!(file.row_groups().len() > 3);
    for (group, found) in file.row_groups().iter().enumerate() {
        let here = found.first_row as i64..(found.first_row + found.rows) as i64;
        let bound = |name: &str, largest: bool| {
            let bound = file.row_group_bound(&Path::column(name), group, largest).unwrap().unwrap();
            assert_eq!(bound.has_nulls, here.clone().any(|row| number(row).is_none()));
            bound.value
        };
        let (least, most) = (here.clone().filter_map(number).min(), here.clone().filter_map(number).max());
        assert_eq!(bound("numbers", false), least.map(|number| Scalar::Int(number.into())));
        assert_eq!(bound("numbers", true), most.map(|number| Scalar::Int(number.into())));
        let texts = |of: &dyn Fn(i64) -> Option<String>| {
            let texts = || here.clone().filter_map(of);
            (texts().min().map(|text| text.as_str().into()), texts().max().map(|text| text.as_str().into()))
        };
        assert_eq!((bound("few", false), bound("few", true)), texts(&few));
        assert_eq!((bound("own", false), bound("own", true)), texts(&own));
    }
    assert!(file.row_group_bound(&Path::column("numbers"), file.row_groups().len(), false).is_err());
    assert!(file.row_group_bound(&Path::column("none"), 0, false).is_err());
}

#[test]
fn two_columns_of_two_thousand_cost_two_columns_of_metadata() {
    let columns = 2_000;
    let mut random = Random(4);
    let fields: Vec<_> = (0..columns).map(|i| Field::new(format!("column_{i}"), DataType::Int64, true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wide.plinth");
    let options = WriterOptions { row_group_rows: 1024, block_rows: 16, ..WriterOptions::default() };
    let mut writer = Writer::create(&path, &schema, options).unwrap();
    let arrays: Vec<ArrayRef> = (0..columns)
        .map(|_| Arc::new(Int64Array::from_iter_values((0..4096).map(|_| random.below(50) as i64))) as ArrayRef)
        .collect();
    writer.write(&RecordBatch::try_new(schema, arrays).unwrap()).unwrap();
    writer.finish().unwrap();
    let file = File::open(&path).unwrap();
    let rows: usize =
        file.scan().select(["column_7", "column_1999"]).build().unwrap().map(|b| b.unwrap().num_rows()).sum();
    assert_eq!(rows, 4096);
    let (read, all) = (file.metadata_bytes_read(), file.metadata_bytes());
    assert!(read * 50 < all, "{read} of {all} bytes of metadata read");
}

#[test]
fn row_groups_belong_to_exactly_one_of_any_ranges_that_tile_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(&dir.path().join("t.plinth"), &wide_batch(1, 30_000, 0), small());
    let len = file.byte_len();
    for parts in [1, 2, 3, 7, 8, 9, 100, 1000] {
        let mut next = 0;
        for part in 0..parts {
            let range = file.row_groups_in(part * len / parts..(part + 1) * len / parts);
            assert_eq!(range.start, next);
            next = range.end;
        }
        assert_eq!(next, file.row_groups().len(), "{parts} parts");
    }
    assert_eq!(file.row_groups_in(0..len).len(), 8);
    let balanced: Vec<_> = (0..4).map(|i| file.row_groups_in(i * len / 4..(i + 1) * len / 4).len()).collect();
    assert_eq!(balanced, [2, 2, 2, 2]);
}

#[test]
fn a_full_dictionary_is_closed_and_the_next_begins() {
    let mut random = Random(9);
    let few = words(&mut random, 20_000, 50, 1);
    // Of ever more values, which can't be told from their neighbours.
    let name = |n: u64| format!("value {}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let growing: Vec<String> = (0..20_000_u64).map(|i| name(random.below(100 + i / 8))).collect();
    let batch = table(vec![
        ("few", Arc::new(StringArray::from(few))),
        ("growing", Arc::new(StringArray::from(growing.clone()))),
    ]);
    let dir = tempfile::tempdir().unwrap();
    for (name, options) in [
        ("values", WriterOptions { dictionary_values: 1_000, ..small() }),
        ("bytes", WriterOptions { dictionary_bytes: 20_000, ..small() }),
        ("total", WriterOptions { dictionary_total_bytes: 30_000, ..small() }),
    ] {
        let file = write(&dir.path().join(name), &batch, options);
        let report = file.report().unwrap();
        for (column, full) in report.columns.iter().zip([false, true]) {
            assert!(column.note.is_none(), "{name}: {:?}", column.note);
            assert!(column.encodings.iter().all(|e| e.name.starts_with("dictionary/")), "{:?}", column.encodings);
            assert_eq!(column.dictionaries > 1, full, "{name}: {} dictionaries", column.dictionaries);
        }
        let (distinct, exactness) = file.statistics(&Path::column("growing")).unwrap().distinct_count.unwrap();
        let known = growing.iter().collect::<std::collections::BTreeSet<_>>().len() as u64;
        assert!(
            exactness == Exactness::Bound && distinct.abs_diff(known) * 16 < known,
            "{name}: {distinct} of {known}"
        );
        crate::data::assert_same(
            &crate::data::read_all(file.scan().build().unwrap()),
            &crate::data::expected(&batch, &file),
        );
        let filter = plinth_encoding::expr::col("growing").gt_eq("value 66");
        let rows: usize = file.scan().filter(filter).build().unwrap().map(|b| b.unwrap().num_rows()).sum();
        assert_eq!(rows, growing.iter().filter(|value| value.as_str() >= "value 66").count());
        file.verify(2, &|_| {}).unwrap();
    }
}

#[test]
fn values_that_stop_repeating_get_no_further_dictionary() {
    let mut random = Random(3);
    // Few values for two row groups, then random ones.
    let mut noise = || (0..6).map(|_| char::from(b'a' + u8::try_from(random.below(26)).unwrap())).collect::<String>();
    let text: Vec<String> = (0..20_000).map(|i| if i < 4_000 { format!("value {}", i % 7) } else { noise() }).collect();
    let batch = table(vec![("c", Arc::new(StringArray::from(text)))]);
    let dir = tempfile::tempdir().unwrap();
    let options = WriterOptions { dictionary_values: 5_000, row_group_rows: 2_000, ..small() };
    let file = write(&dir.path().join("t"), &batch, options);
    let column = &file.report().unwrap().columns[0];
    assert!(
        column.note.as_ref().unwrap().starts_with("no dictionary after row group 5: the last has"),
        "{:?}",
        column.note
    );
    assert_eq!(column.dictionaries, 1);
    let rows = crate::data::read_all(file.scan().build().unwrap());
    crate::data::assert_same(&rows, &crate::data::expected(&batch, &file));
    file.verify(2, &|_| {}).unwrap();
}
