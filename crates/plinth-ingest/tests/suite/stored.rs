//! Parquet of types that other writers have: every value is the same, or refused by the name of its column.

use arrow_schema::{DataType, Field, IntervalUnit, Schema, TimeUnit};
use plinth_core::random::Random;
use plinth_ingest::SourceOptions;
use std::sync::Arc;

use crate::read;
use crate::stored_rows::{Row, cells, with_chunks, with_dictionaries_at_zero, write};

#[test]
fn intervals_int96_and_repeated_fields_are_read_as_they_were_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    let mut random = Random(96);
    for round in 0..150 {
        let mut below = |end| random.index(end);
        let rows: Vec<Row> = (0..1 + below(60)).map(|_| Row::random(&mut below, true)).collect();
        let dictionary = below(2) == 0;
        write(&path, &rows, 1 + below(60), dictionary);
        if !dictionary {
            with_dictionaries_at_zero(&path);
        }
        let found = read(&[&path], &SourceOptions { threads: 2, ..SourceOptions::default() }).unwrap();
        assert_eq!(found.schema().field(1).data_type(), &DataType::Interval(IntervalUnit::MonthDayNano));
        let expected: Vec<String> = rows.iter().enumerate().map(|(id, row)| row.cells(id)).collect();
        assert_eq!(cells(&found), expected, "{round}");
    }
}

#[test]
fn chunks_that_begin_nowhere_are_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    for dictionary in [false, true] {
        write(&path, &[Row::default()], 10, dictionary);
        with_chunks(&path, |chunk| chunk.set_dictionary_page_offset(None).set_data_page_offset(-5));
        let e = read(&[&path], &SourceOptions::default()).unwrap_err();
        assert!(e.contains("row group 0") && e.contains("from byte -5 on"), "{e}");
        write(&path, &[Row::default()], 10, dictionary);
        with_chunks(&path, |chunk| chunk.set_total_compressed_size(-1));
        let e = read(&[&path], &SourceOptions::default()).unwrap_err();
        assert!(e.contains("row group 0") && e.contains("-1 bytes"), "{e}");
    }
}

#[test]
fn moments_beyond_nanoseconds_are_refused_by_name_unless_a_wider_type_is_given() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    // 9999-12-31, as many mean "never".
    let never = 253_402_214_400_000_000_i128 * 1_000;
    let row = Row { t: Some(never), ..Row::default() };
    write(&path, &[Row::default(), row], 10, true);
    let e = read(&[&path], &SourceOptions::default()).unwrap_err();
    assert!(e.contains("column \"t\"") && e.contains("INT96") && e.contains("--schema"), "{e}");
    let fields = vec![Field::new("t", DataType::Timestamp(TimeUnit::Microsecond, None), true)];
    let options =
        SourceOptions { schema: Some(Arc::new(Schema::new(fields))), ignore_extra: true, ..SourceOptions::default() };
    assert_eq!(cells(&read(&[&path], &options).unwrap()), ["-".to_owned(), never.to_string()]);
    write(&path, &[Row { t: Some(1_001), ..Row::default() }], 10, true);
    assert!(read(&[&path], &options).unwrap_err().contains("microseconds"));
    write(&path, &[Row { i: Some([1 << 31, 0, 0]), ..Row::default() }], 10, true);
    let e = read(&[&path], &SourceOptions::default()).unwrap_err();
    assert!(e.contains("column \"i\"") && e.contains("2147483648 months"), "{e}");
}

#[test]
fn an_encrypted_file_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = b"PARE".to_vec();
    bytes.extend([0; 64]);
    bytes.extend(40_u32.to_le_bytes());
    bytes.extend(b"PARE");
    let e = read(&[crate::write(dir.path(), "x.parquet", bytes)], &SourceOptions::default()).unwrap_err();
    assert!(e.ends_with("the Parquet file is encrypted, and such files can't be read; decrypt it first"), "{e}");
}
