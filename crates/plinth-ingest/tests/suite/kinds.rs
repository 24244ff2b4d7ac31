//! Types that Parquet and Arrow have in more than one way, in and out.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{FixedSizeBinaryBuilder, ListBuilder};
use arrow_array::{
    Array, ArrayRef, Date64Array, Int64Array, IntervalMonthDayNanoArray, ListArray, NullArray, RecordBatch,
    StringArray, StructArray,
};
use arrow_buffer::{IntervalMonthDayNano, OffsetBuffer};
use arrow_schema::{DataType, Field, IntervalUnit, Schema, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::SchemaDescriptor;
use plinth_ingest::SourceOptions;
use plinth_ingest::export::{SinkOptions, to_file};

use crate::{lines, read};

fn export(path: &Path, batch: &RecordBatch) -> Result<(), String> {
    let options = SinkOptions { replace: true, ..SinkOptions::default() };
    let mut sink = to_file(path, batch.schema_ref(), &options).map_err(|e| e.to_string())?;
    sink.write(batch).map_err(|e| e.to_string())?;
    sink.finish().map(drop).map_err(|e| e.to_string())
}

/// A file as the `parquet` crate writes it.
fn write(folder: &Path, batch: &RecordBatch, options: ArrowWriterOptions) -> PathBuf {
    let path = folder.join("in.parquet");
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new_with_options(file, batch.schema(), options).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    path
}

fn given(fields: Vec<Field>) -> SourceOptions {
    SourceOptions { schema: Some(Arc::new(Schema::new(fields))), ..SourceOptions::default() }
}

/// Columns of nothing, alone and within others.
fn nothing() -> RecordBatch {
    let item = Arc::new(Field::new("item", DataType::Null, true));
    let list = ListArray::new(Arc::clone(&item), OffsetBuffer::from_lengths([2]), Arc::new(NullArray::new(2)), None);
    let member =
        StructArray::new(vec![Field::new("n", DataType::Null, true)].into(), vec![Arc::new(NullArray::new(1))], None);
    RecordBatch::try_from_iter([
        ("i", Arc::new(Int64Array::from(vec![1])) as ArrayRef),
        ("n", Arc::new(NullArray::new(1))),
        ("l", Arc::new(list)),
        ("s", Arc::new(member)),
    ])
    .unwrap()
}

#[test]
fn columns_of_the_type_null_are_written_as_null() {
    let dir = tempfile::tempdir().unwrap();
    let batch = nothing();
    assert_eq!(lines(&batch), [r#"{"i":1,"n":null,"l":[null,null],"s":{"n":null}}"#]);
    for (name, text) in [("x.csv", "i,n\n1,\n"), ("x.tsv", "i\tn\n1\t\n")] {
        let path = dir.path().join(name);
        export(&path, &batch.project(&[0, 1]).unwrap()).unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), text);
    }
}

#[test]
fn columns_of_the_type_null_become_any_type_that_is_given() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), &nothing().project(&[0, 1]).unwrap(), ArrowWriterOptions::new());
    for wanted in [DataType::Int32, DataType::Utf8View, DataType::Date32] {
        let fields = vec![Field::new("i", DataType::Int64, true), Field::new("n", wanted.clone(), true)];
        let found = read(&[&path], &given(fields)).unwrap();
        assert_eq!(found.column(1).data_type(), &wanted);
        assert_eq!(found.column(1).null_count(), 1);
    }
    let fields = vec![Field::new("i", DataType::Int64, true), Field::new("n", DataType::Int32, false)];
    let e = read(&[&path], &given(fields)).unwrap_err();
    assert!(e.contains("column \"n\": holds nulls, where a value is needed"), "{e}");
}

const DAY: i64 = 86_400_000;

#[test]
fn dates_in_milliseconds_are_dates() {
    let dir = tempfile::tempdir().unwrap();
    let dates = Date64Array::from(vec![Some(0), None, Some(-719_162 * DAY), Some(19_782 * DAY)]);
    let items = ListArray::new(
        Arc::new(Field::new("item", DataType::Date64, true)),
        OffsetBuffer::from_lengths([1, 0, 2, 1]),
        Arc::new(dates.clone()),
        None,
    );
    let batch = RecordBatch::try_from_iter([("d", Arc::new(dates) as ArrayRef), ("l", Arc::new(items))]).unwrap();
    let expected = [
        r#"{"d":"1970-01-01","l":["1970-01-01"]}"#,
        r#"{"d":null,"l":[]}"#,
        r#"{"d":"0001-01-01","l":[null,"0001-01-01"]}"#,
        r#"{"d":"2024-02-29","l":["2024-02-29"]}"#,
    ];
    // The one has days in the file, the other milliseconds.
    for days in [true, false] {
        let properties = parquet::file::properties::WriterProperties::builder().set_coerce_types(days).build();
        let path = write(dir.path(), &batch, ArrowWriterOptions::new().with_properties(properties));
        let found = read(&[&path], &SourceOptions::default()).unwrap();
        assert_eq!(found.column(0).data_type(), &DataType::Date32);
        assert_eq!(lines(&found), expected);
    }
    // What is written is a date to readers that know nothing of Arrow.
    let path = dir.path().join("out.parquet");
    export(&path, &batch).unwrap();
    assert!(stored_schema(&path).contains("OPTIONAL INT32 d (DATE)"), "{}", stored_schema(&path));
    assert_eq!(lines(&read(&[&path], &SourceOptions::default()).unwrap()), expected);
    let text = dir.path().join("out.csv");
    export(&text, &batch.project(&[0]).unwrap()).unwrap();
    assert_eq!(std::fs::read_to_string(text).unwrap(), "d\n1970-01-01\n\n0001-01-01\n2024-02-29\n");
}

#[test]
fn dates_with_a_time_of_day_are_refused_unless_a_timestamp_is_given() {
    let dir = tempfile::tempdir().unwrap();
    let dates: ArrayRef = Arc::new(Date64Array::from(vec![DAY + 1]));
    let batch = RecordBatch::try_from_iter([("d", dates)]).unwrap();
    let path = write(dir.path(), &batch, ArrowWriterOptions::new());
    let e = read(&[&path], &SourceOptions::default()).unwrap_err();
    assert!(e.contains("column \"d\": holds a date64 with a time of day") && e.contains("TIMESTAMP(3)"), "{e}");
    let fields = vec![Field::new("d", DataType::Timestamp(TimeUnit::Millisecond, None), true)];
    assert_eq!(lines(&read(&[&path], &given(fields)).unwrap()), [r#"{"d":"1970-01-02T00:00:00.001"}"#]);
    let e = export(&dir.path().join("x.parquet"), &batch).unwrap_err();
    assert!(e.starts_with("column \"d\": holds a date64 with a time of day"), "{e}");
    let text = dir.path().join("x.ndjson");
    export(&text, &batch).unwrap();
    assert_eq!(std::fs::read_to_string(text).unwrap(), "{\"d\":\"1970-01-02T00:00:00.001\"}\n");
}

/// The columns as the file has them, without what Arrow adds.
fn stored_schema(path: &Path) -> String {
    use parquet::file::reader::FileReader;
    let file = parquet::file::serialized_reader::SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut text = Vec::new();
    parquet::schema::printer::print_schema(&mut text, file.metadata().file_metadata().schema());
    String::from_utf8(text).unwrap()
}

#[test]
fn uuids_are_text_in_their_usual_form() {
    let dir = tempfile::tempdir().unwrap();
    let bytes: [u8; 16] = [0x52, 0x6b, 0x0c, 0xa1, 0, 0xff, 0x4b, 0x6c, 0x80, 0x15, 1, 2, 3, 4, 5, 0xf6];
    let text = "526b0ca1-00ff-4b6c-8015-0102030405f6";
    let mut values = FixedSizeBinaryBuilder::new(16);
    values.append_value(bytes).unwrap();
    values.append_null();
    let mut items = ListBuilder::new(FixedSizeBinaryBuilder::new(16));
    items.values().append_value(bytes).unwrap();
    items.append(true);
    items.append(true);
    let (plain, items) = (values.finish(), items.finish());
    let batch = RecordBatch::try_from_iter([
        ("u", Arc::new(plain.clone()) as ArrayRef),
        ("l", Arc::new(items)),
        ("b", Arc::new(plain)),
    ])
    .unwrap();
    let message = "message m { optional fixed_len_byte_array(16) u (UUID);
        required group l (LIST) { repeated group list { optional fixed_len_byte_array(16) item (UUID); } }
        optional fixed_len_byte_array(16) b; }";
    let message = SchemaDescriptor::new(Arc::new(parse_message_type(message).unwrap()));
    let path = write(dir.path(), &batch, ArrowWriterOptions::new().with_parquet_schema(message));
    let found = read(&[&path], &SourceOptions::default()).unwrap();
    assert_eq!(found.column(0).data_type(), &DataType::Utf8View);
    assert_eq!(found.column(2).data_type(), &DataType::FixedSizeBinary(16));
    let hex = "526b0ca100ff4b6c8015010203 0405f6".replace(' ', "");
    let expected =
        [format!(r#"{{"u":"{text}","l":["{text}"],"b":"{hex}"}}"#), r#"{"u":null,"l":[],"b":null}"#.to_owned()];
    assert_eq!(lines(&found), expected);
    // As text or as bytes, where that is given.
    for (wanted, expected) in [(DataType::Utf8View, text), (DataType::FixedSizeBinary(16), hex.as_str())] {
        let options = SourceOptions { ignore_extra: true, ..given(vec![Field::new("u", wanted, true)]) };
        assert_eq!(lines(&read(&[&path], &options).unwrap())[0], format!(r#"{{"u":"{expected}"}}"#));
    }
    // A writer of Arrow's may say it of its type alone.
    let field = Field::new("u", DataType::FixedSizeBinary(16), true)
        .with_metadata([("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned())].into());
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![Arc::clone(batch.column(0))]).unwrap();
    let path = write(dir.path(), &batch, ArrowWriterOptions::new());
    assert_eq!(lines(&read(&[&path], &SourceOptions::default()).unwrap())[0], format!(r#"{{"u":"{text}"}}"#));
}

#[test]
fn intervals_are_stored_as_parquet_has_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    let values = vec![
        Some(IntervalMonthDayNano::new(14, 3, 90_061_001_000_000)),
        None,
        Some(IntervalMonthDayNano::new(0, 0, 0)),
    ];
    let values = IntervalMonthDayNanoArray::from(values);
    let member = StructArray::new(
        vec![Field::new("i", DataType::Interval(IntervalUnit::MonthDayNano), true)].into(),
        vec![Arc::new(values.clone())],
        None,
    );
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
    let batch = RecordBatch::try_from_iter([
        ("t", texts),
        ("i", Arc::new(values) as ArrayRef),
        ("s", Arc::new(member)),
        ("k", Arc::new(arrow_array::DurationSecondArray::from(vec![1, 2, 3]))),
    ])
    .unwrap();
    export(&path, &batch).unwrap();
    let stored = stored_schema(&path);
    assert!(stored.contains("OPTIONAL FIXED_LEN_BYTE_ARRAY (12) i (INTERVAL)"), "{stored}");
    let found = read(&[&path], &SourceOptions::default()).unwrap();
    assert_eq!(found.column(1).data_type(), &DataType::Interval(IntervalUnit::MonthDayNano));
    assert_eq!(found.column(3).data_type(), batch.column(3).data_type());
    assert_eq!(lines(&found), lines(&batch));
    for (value, why) in [
        (IntervalMonthDayNano::new(-1, 0, 0), "a negative interval"),
        (IntervalMonthDayNano::new(0, -1, 0), "a negative interval"),
        (IntervalMonthDayNano::new(0, 0, -1_000_000), "a negative interval"),
        (IntervalMonthDayNano::new(0, 0, 1_000), "parts of milliseconds"),
        (IntervalMonthDayNano::new(0, 0, 5_000_000_000_000_000), "more milliseconds"),
    ] {
        let column: ArrayRef = Arc::new(IntervalMonthDayNanoArray::from(vec![value]));
        let e = export(&path, &RecordBatch::try_from_iter([("far", column)]).unwrap()).unwrap_err();
        assert!(e.starts_with("column \"far\": holds ") && e.contains(why) && e.contains("export it as"), "{e}");
    }
}
