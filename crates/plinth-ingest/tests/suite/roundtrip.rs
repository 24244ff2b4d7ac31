//! What is exported and imported again is equal.

use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::*;
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::{IntervalMonthDayNano, NullBuffer, OffsetBuffer, i256};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use plinth_ingest::export::{SinkOptions, to_file, to_writer};
use plinth_ingest::{FileFormat, Sample, SourceOptions, open_with};
use proptest::prelude::*;

use crate::{drain, read};

type Cell<T> = Option<T>;

fn cells<T: Clone + std::fmt::Debug>(of: impl Strategy<Value = T>, rows: usize) -> impl Strategy<Value = Vec<Cell<T>>> {
    prop::collection::vec(prop::option::weighted(0.8, of), rows)
}

/// Text with everything that could be taken for something else.
const TEXT: &str =
    "[a-c,;\"'\t\r\n\\\\{}\\[\\]:0-9. \u{0}\u{1f}\u{7f}é\u{feff}\u{1f600}]{0,12}|null|true|NaN|\\PC{0,20}";

/// Columns of every scalar type that text can hold.
fn scalars(rows: usize) -> impl Strategy<Value = Vec<(&'static str, ArrayRef)>> {
    let seconds = -200_000_000_000i64..200_000_000_000;
    let numbers = (
        cells(any::<bool>(), rows),
        cells(any::<i8>(), rows),
        cells(any::<i64>(), rows),
        cells(any::<u64>(), rows),
        cells(prop::num::f32::ANY, rows),
        cells(prop_oneof![prop::num::f64::ANY, (-1000i32..1000).prop_map(f64::from)], rows),
        cells(any::<i128>().prop_map(|v| v % 10i128.pow(38)), rows),
        cells(
            any::<(i128, i64)>().prop_map(|(a, b)| i256::from_i128(a).wrapping_mul(i256::from_i128(i128::from(b)))),
            rows,
        ),
        cells(any::<u16>(), rows),
    );
    let times = (
        cells(-80_000_000i32..80_000_000, rows),
        cells(seconds.clone(), rows),
        cells(any::<i64>(), rows),
        cells(seconds.prop_map(|s| s * 1_000_000 + s % 1_000_000), rows),
        cells(0i64..86_400_000_000_000, rows),
        cells(0i32..86_400_000, rows),
        cells(any::<i64>(), rows),
        cells((-1000i32..1000, -1000i32..1000, -1_000_000_000_000i64..1_000_000_000_000), rows),
    );
    let bytes =
        (cells(TEXT, rows), cells(prop::collection::vec(any::<u8>(), 0..20), rows), cells(any::<[u8; 3]>(), rows));
    (numbers, times, bytes).prop_map(|(n, t, b)| {
        let half = |bits: &u16| <Float16Type as ArrowPrimitiveType>::Native::from_bits(*bits);
        let intervals = t.7.iter().map(|v| v.map(|(m, d, n)| IntervalMonthDayNano::new(m, d, n)));
        let mut fixed = FixedSizeBinaryBuilder::new(3);
        b.2.iter().for_each(|v| match v {
            Some(v) => fixed.append_value(v).unwrap(),
            None => fixed.append_null(),
        });
        vec![
            ("bool", Arc::new(BooleanArray::from(n.0)) as ArrayRef),
            ("i8", Arc::new(Int8Array::from(n.1))),
            ("i64", Arc::new(Int64Array::from(n.2))),
            ("u64", Arc::new(UInt64Array::from(n.3))),
            ("f32", Arc::new(Float32Array::from(n.4.iter().map(|v| v.map(quiet32)).collect::<Vec<_>>()))),
            ("f64", Arc::new(Float64Array::from(n.5.iter().map(|v| v.map(quiet64)).collect::<Vec<_>>()))),
            (
                "f16",
                Arc::new(
                    n.8.iter()
                        .map(|v| v.as_ref().map(half).map(|h| if h.is_nan() { half(&0x7e00) } else { h }))
                        .collect::<Float16Array>(),
                ),
            ),
            ("d128", Arc::new(Decimal128Array::from(n.6).with_precision_and_scale(38, 7).unwrap())),
            ("d256", Arc::new(Decimal256Array::from(n.7).with_precision_and_scale(76, -3).unwrap())),
            ("date", Arc::new(Date32Array::from(t.0))),
            ("ts_s", Arc::new(TimestampSecondArray::from(t.1))),
            ("ts_ns", Arc::new(TimestampNanosecondArray::from(t.2).with_timezone("Europe/Berlin"))),
            ("ts_us", Arc::new(TimestampMicrosecondArray::from(t.3).with_timezone("UTC"))),
            ("time_ns", Arc::new(Time64NanosecondArray::from(t.4))),
            ("time_ms", Arc::new(Time32MillisecondArray::from(t.5))),
            ("duration", Arc::new(DurationMicrosecondArray::from(t.6))),
            ("interval", Arc::new(intervals.collect::<IntervalMonthDayNanoArray>())),
            ("text", Arc::new(StringViewArray::from_iter(b.0))),
            ("binary", Arc::new(BinaryViewArray::from_iter(b.1))),
            ("fixed", Arc::new(fixed.finish())),
        ]
    })
}

/// There is one NaN outside.
fn quiet32(v: f32) -> f32 {
    if v.is_nan() { f32::NAN } else { v }
}

fn quiet64(v: f64) -> f64 {
    if v.is_nan() { f64::NAN } else { v }
}

/// A list of structs, a fixed list and a map.
fn nested(rows: usize) -> impl Strategy<Value = Vec<(&'static str, ArrayRef)>> {
    let lists = prop::collection::vec(prop::option::weighted(0.8, 0usize..4), rows);
    (
        lists,
        prop::collection::vec(any::<Option<i32>>(), rows * 4),
        prop::collection::vec(TEXT, rows * 4),
        cells(any::<bool>(), rows),
    )
        .prop_map(move |(lengths, numbers, texts, valid)| {
            let offsets = || OffsetBuffer::<i32>::from_lengths(lengths.iter().map(|l| l.unwrap_or(0)));
            let total: usize = lengths.iter().map(|l| l.unwrap_or(0)).sum();
            let nulls = || Some(NullBuffer::from(lengths.iter().map(Option::is_some).collect::<Vec<_>>()));
            let number: ArrayRef = Arc::new(Int32Array::from(numbers[..total].to_vec()));
            let text: ArrayRef = Arc::new(StringViewArray::from_iter_values(&texts[..total]));
            let fields = vec![Field::new("n", DataType::Int32, true), Field::new("t é\"", DataType::Utf8View, false)];
            let structs = StructArray::new(fields.into(), vec![Arc::clone(&number), Arc::clone(&text)], None);
            let item = Arc::new(Field::new("item", structs.data_type().clone(), false));
            let list = ListArray::new(item, offsets(), Arc::new(structs), nulls());
            let pair = vec![Field::new("keys", DataType::Utf8View, false), Field::new("values", DataType::Int32, true)];
            let pairs = StructArray::new(pair.into(), vec![text, number], None);
            let entries = Arc::new(Field::new("entries", pairs.data_type().clone(), false));
            let map = MapArray::new(entries, offsets(), pairs, nulls(), false);
            let values: ArrayRef = Arc::new(Int32Array::from(numbers[..rows * 2].to_vec()));
            let nulls = NullBuffer::from(valid.iter().map(Option::is_some).collect::<Vec<_>>());
            let fixed =
                FixedSizeListArray::new(Arc::new(Field::new("item", DataType::Int32, true)), 2, values, Some(nulls));
            vec![("list", Arc::new(list) as ArrayRef), ("map", Arc::new(map)), ("pair", Arc::new(fixed))]
        })
}

fn batch(columns: &[(&'static str, ArrayRef)]) -> RecordBatch {
    let fields = columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    RecordBatch::try_new(schema, columns.iter().map(|(_, array)| Arc::clone(array)).collect()).unwrap()
}

fn export(path: &Path, batch: &RecordBatch, cut: usize) -> u64 {
    let mut sink = to_file(path, batch.schema_ref(), &SinkOptions { replace: true, ..Default::default() }).unwrap();
    let cut = cut.min(batch.num_rows());
    sink.write(&batch.slice(0, cut)).unwrap();
    sink.write(&batch.slice(cut, batch.num_rows() - cut)).unwrap();
    sink.finish().unwrap()
}

fn options(schema: &SchemaRef, threads: usize, piece: usize) -> SourceOptions {
    SourceOptions {
        schema: Some(Arc::clone(schema)),
        threads,
        ahead_bytes: 50_000,
        chunk_bytes: Some(piece),
        ..SourceOptions::default()
    }
}

/// Fixed-size lists hold something even where they are null; it does not count.
fn assert_same(a: &RecordBatch, b: &RecordBatch) -> Result<(), TestCaseError> {
    prop_assert_eq!(a.num_rows(), b.num_rows());
    for ((a, b), field) in a.columns().iter().zip(b.columns()).zip(a.schema().fields()) {
        prop_assert!(a == b, "{}: {:?} {:?}", field.name(), a, b);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn scalars_through_every_format_and_compression(
        columns in (0usize..12).prop_flat_map(scalars),
        format in prop::sample::select(vec!["csv", "tsv", "ndjson", "parquet"]),
        compression in prop::sample::select(vec!["", ".gz", ".zst", ".lz4", ".bz2"]),
        threads in 1usize..4,
        piece in 1usize..400,
        cut in 0usize..12,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut columns = columns;
        if format == "parquet" {
            // Parquet has no such interval and no such scale.
            columns.retain(|(name, _)| !matches!(*name, "interval" | "d256"));
        }
        let batch = batch(&columns);
        let compression = if format == "parquet" { "" } else { compression };
        let path = dir.path().join(format!("x.{format}{compression}"));
        let bytes = export(&path, &batch, cut);
        prop_assert_eq!(bytes, std::fs::metadata(&path).unwrap().len());
        let back = read(&[&path], &options(batch.schema_ref(), threads, piece)).map_err(TestCaseError::fail)?;
        assert_same(&batch, &back)?;
    }

    #[test]
    fn nested_values_through_ndjson_and_parquet(
        columns in (0usize..8).prop_flat_map(nested),
        format in prop::sample::select(vec!["ndjson", "parquet"]),
        threads in 1usize..4,
        piece in 1usize..400,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let batch = batch(&columns);
        let path = dir.path().join(format!("x.{format}"));
        export(&path, &batch, 3);
        let back = read(&[&path], &options(batch.schema_ref(), threads, piece)).map_err(TestCaseError::fail)?;
        assert_same(&batch, &back)?;
    }

    #[test]
    fn one_column_of_text_keeps_null_apart_from_nothing(values in cells("|a|,|\"|\n| ", 6), csv in any::<bool>()) {
        let dir = tempfile::tempdir().unwrap();
        let batch = batch(&[("t", Arc::new(StringViewArray::from_iter(values)))]);
        let path = dir.path().join(if csv { "x.csv" } else { "x.ndjson" });
        export(&path, &batch, 0);
        let back = read(&[&path], &options(batch.schema_ref(), 2, 5)).map_err(TestCaseError::fail)?;
        assert_same(&batch, &back)?;
    }

    #[test]
    fn inference_takes_what_was_written_for_what_it_is(
        numbers in cells(any::<i64>(), 9), floats in cells(-1e300f64..1e300, 9), days in cells(-700_000i32..2_900_000, 9),
        instants in cells(-62_000_000_000_000_000i64..253_000_000_000_000_000, 9), flags in cells(any::<bool>(), 9),
        format in prop::sample::select(vec!["csv", "tsv", "ndjson"]), everything in any::<bool>(),
        threads in 1usize..4, piece in 1usize..200,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let instants = TimestampMicrosecondArray::from(instants).with_timezone("UTC");
        let mut columns: Vec<(&'static str, ArrayRef)> = vec![
            ("n", Arc::new(Int64Array::from(numbers))), ("f", Arc::new(Float64Array::from(floats))),
            ("d", Arc::new(Date32Array::from(days))), ("t", Arc::new(instants)), ("b", Arc::new(BooleanArray::from(flags))),
        ];
        // A column of nulls does not tell what it was.
        columns.retain(|(_, array)| array.null_count() < array.len());
        prop_assume!(!columns.is_empty());
        let batch = batch(&columns);
        let path = dir.path().join(format!("x.{format}"));
        export(&path, &batch, 4);
        let sample = if everything { Sample::Everything } else { Sample::Rows(100) };
        let options = SourceOptions { schema: None, sample, ..options(batch.schema_ref(), threads, piece) };
        let back = read(&[&path], &options).map_err(TestCaseError::fail)?;
        prop_assert_eq!(back.schema(), batch.schema());
        assert_same(&batch, &back)?;
    }
}

#[test]
fn standard_output_and_input_of_every_format() {
    let columns: Vec<(&'static str, ArrayRef)> = vec![
        ("n", Arc::new(Int64Array::from_iter_values(0..1000))),
        ("t", Arc::new(StringViewArray::from_iter_values((0..1000).map(|i| format!("row {i}"))))),
    ];
    let batch = batch(&columns);
    #[derive(Clone, Default)]
    struct Shared(Arc<std::sync::Mutex<Vec<u8>>>);
    impl std::io::Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let mut compressions: Vec<_> = plinth_ingest::Compression::ALL.into_iter().map(Some).collect();
    compressions.push(None);
    for format in FileFormat::ALL {
        for compression in &compressions {
            let out = Shared::default();
            let sink = to_writer(out.clone(), batch.schema_ref(), format, *compression, &SinkOptions::default());
            if format == FileFormat::Parquet && compression.is_some() {
                assert!(sink.is_err_and(|e| e.to_string().contains("leave")));
                continue;
            }
            let mut sink = sink.unwrap();
            sink.write(&batch).unwrap();
            let bytes = sink.finish().unwrap();
            let written = out.0.lock().unwrap().clone();
            assert_eq!(bytes, written.len() as u64);
            for schema in [None, Some(batch.schema())] {
                let options = SourceOptions {
                    format: Some(format),
                    schema,
                    spill: dir.path().to_path_buf(),
                    threads: 2,
                    ..SourceOptions::default()
                };
                let mut source = open_with(&["-"], &options, std::io::Cursor::new(written.clone())).unwrap();
                assert_eq!(drain(source.as_mut()).unwrap().columns(), batch.columns(), "{format} {compression:?}");
            }
        }
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn what_a_format_cannot_hold_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1)])]);
    let batch = batch(&[("items", Arc::new(list))]);
    let e = to_file(dir.path().join("x.csv"), batch.schema_ref(), &SinkOptions::default()).map(drop).unwrap_err();
    assert!(e.to_string().starts_with("column \"items\": csv can't hold nested values"), "{e}");
    let e = to_file(dir.path().join("x.doc"), batch.schema_ref(), &SinkOptions::default()).map(drop).unwrap_err();
    assert!(e.to_string().contains("its extension says no format"), "{e}");
    let far = TimestampSecondArray::from(vec![i64::MAX]);
    let batch = crate::roundtrip::batch(&[("far", Arc::new(far))]);
    let mut sink = to_file(dir.path().join("x.csv"), batch.schema_ref(), &SinkOptions::default()).unwrap();
    let e = sink.write(&batch).unwrap_err().to_string();
    assert!(e.starts_with("column \"far\": "), "{e}");
    drop(sink);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
