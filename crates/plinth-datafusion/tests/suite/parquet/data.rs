//! Parquet files of every kind, and a session of each scan.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, Date64Array, Decimal128Array, Decimal256Array, DictionaryArray, DurationMillisecondArray,
    FixedSizeBinaryArray, FixedSizeListArray, Float16Array, Int8Array, Int16Array, Int32Array, Int64Array,
    LargeStringArray, ListArray, MapBuilder, RecordBatch, StringArray, StringBuilder, StructArray,
    Time32MillisecondArray, Time64NanosecondArray, TimestampMillisecondArray, UInt8Array, UInt16Array, UInt32Array,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{DataType, Field, Fields, Int8Type, Schema, i256};
use datafusion::common::Result;
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use parquet::arrow::ArrowWriter;
use parquet::basic::{BrotliLevel, Compression, Encoding, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion};
use parquet::schema::types::ColumnPath;
use plinth_datafusion::{ParquetScans, PlinthConfig};
use plinth_format::OpenOptions;
use plinth_io::{Io, IoOptions, MemoryBudget};

use crate::data::{Random, WORDS, batch};

/// Which scan a session's Parquet tables have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    Ours,
    Theirs,
}

pub(crate) fn session(whose: Whose, config: SessionConfig) -> SessionContext {
    session_with(whose, config, OpenOptions::default())
}

pub(crate) fn session_with(whose: Whose, config: SessionConfig, options: OpenOptions) -> SessionContext {
    let mut rules = PhysicalOptimizer::default().rules;
    if whose == Whose::Ours {
        rules.insert(0, Arc::new(ParquetScans::new(options)));
    }
    let state = SessionStateBuilder::new()
        .with_config(config.with_option_extension(PlinthConfig::default()))
        .with_default_features()
        .with_physical_optimizer_rules(rules)
        .build();
    SessionContext::new_with_state(state)
}

pub(crate) fn config(partitions: usize, batch_rows: usize) -> SessionConfig {
    let mut config = SessionConfig::new().with_target_partitions(partitions).with_batch_size(batch_rows);
    config.options_mut().optimizer.repartition_file_min_size = 0;
    config
}

/// A budget of its own.
pub(crate) fn within(memory: u64) -> OpenOptions {
    OpenOptions { io: Io::new(&MemoryBudget::new(memory), IoOptions::default()), ..OpenOptions::default() }
}

/// Rows of all that `batch` has and of the types it has not. `run` says how often values repeat.
pub(crate) fn rows(seed: u64, from: u64, rows: usize) -> RecordBatch {
    let first = batch(seed, from, rows);
    let r = &mut Random(seed ^ 0xABCD ^ from);
    let mut fields: Vec<Arc<Field>> = first.schema().fields().iter().cloned().collect();
    let mut columns = first.columns().to_vec();
    let mut add = |name: &str, array: ArrayRef, nullable: bool| {
        fields.push(Arc::new(Field::new(name, array.data_type().clone(), nullable)));
        columns.push(array);
    };
    macro_rules! nullable {
        ($array:ident, $n:expr, $make:expr) => {
            Arc::new($array::from_iter((0..rows).map(|_| {
                let value = r.below($n);
                (r.below(6) != 0).then(|| $make(value))
            })))
        };
    }
    let small = |v: u64| i64::try_from(v).unwrap();
    let word = |v: u64| WORDS[usize::try_from(v).unwrap() % WORDS.len()];
    add("i8", nullable!(Int8Array, 250, |v| i8::try_from(small(v) - 125).unwrap()), true);
    add("i16", nullable!(Int16Array, 600, |v| i16::try_from(small(v) - 300).unwrap()), true);
    add("u8", nullable!(UInt8Array, 256, |v| u8::try_from(v).unwrap()), true);
    add("u16", nullable!(UInt16Array, 65_536, |v| u16::try_from(v).unwrap()), true);
    add("u32", nullable!(UInt32Array, 8, |v| u32::MAX - u32::try_from(v).unwrap() * 500_000_000), true);
    add("f16", nullable!(Float16Array, 9, |v| half(small(v) - 4)), true);
    add("d64", nullable!(Date64Array, 40, |v| small(v) * 86_400_000), true);
    add("t32", nullable!(Time32MillisecondArray, 86_400, |v| i32::try_from(v).unwrap() * 1000), true);
    add("t64", nullable!(Time64NanosecondArray, 86_400, |v| small(v) * 1_000_000_007), true);
    add("ms", nullable!(TimestampMillisecondArray, 5_000, |v| small(v) - 2_500), true);
    add("dur", nullable!(DurationMillisecondArray, 90, |v| small(v) - 45), true);
    let text: Vec<Option<String>> =
        (0..rows).map(|i| (r.below(9) != 0).then(|| format!("row {} of {}", i, word(r.below(14))))).collect();
    add("unique", Arc::new(StringArray::from(text.clone())), true);
    add("large", Arc::new(LargeStringArray::from(text)), true);
    let keys: Int8Array = (0..rows).map(|_| (r.below(5) != 0).then(|| i8::try_from(r.below(14)).unwrap())).collect();
    let words: ArrayRef = Arc::new(StringArray::from(WORDS.to_vec()));
    add("dict", Arc::new(DictionaryArray::<Int8Type>::try_new(keys, words).unwrap()), true);
    let wide: Decimal128Array =
        (0..rows).map(|_| (r.below(7) != 0).then(|| i128::from(small(r.below(2_000)) - 1_000) << 70)).collect();
    add("dec38", Arc::new(wide.with_precision_and_scale(38, 4).unwrap()), true);
    let wider: Decimal256Array =
        (0..rows).map(|_| (r.below(7) != 0).then(|| i256::from(small(r.below(50)) - 25))).collect();
    add("dec76", Arc::new(wider.with_precision_and_scale(76, 10).unwrap()), true);
    let fixed = (0..rows).map(|_| (r.below(5) != 0).then(|| r.below(40).to_be_bytes()));
    let fixed: Vec<_> = fixed.collect();
    add("fixed", Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(fixed.into_iter(), 8).unwrap()), true);
    let required: Vec<i32> = (0..rows).map(|_| i32::try_from(r.below(5)).unwrap()).collect();
    add("required", Arc::new(Int32Array::from(required.clone())), false);

    let mut map = MapBuilder::new(None, StringBuilder::new(), datafusion::arrow::array::Int64Builder::new());
    for _ in 0..rows {
        let entries = r.below(4);
        for i in 0..entries {
            map.keys().append_value(format!("{}{i}", word(r.below(14))));
            map.values().append_option((r.below(4) != 0).then(|| small(r.below(9))));
        }
        map.append(r.below(6) != 0).unwrap();
    }
    add("map", Arc::new(map.finish()), true);

    // Lists of structs with lists in them.
    let lengths: Vec<usize> = (0..rows).map(|_| usize::try_from(r.below(4)).unwrap()).collect();
    let items: usize = lengths.iter().sum();
    let inner: Vec<Option<Vec<Option<i32>>>> = (0..items)
        .map(|_| {
            (r.below(4) != 0).then(|| (0..r.below(3)).map(|v| (v != 1).then(|| i32::try_from(v).unwrap())).collect())
        })
        .collect();
    let inner: ArrayRef =
        Arc::new(ListArray::from_iter_primitive::<datafusion::arrow::datatypes::Int32Type, _, _>(inner));
    let names: ArrayRef = Arc::new(StringArray::from_iter((0..items).map(|_| Some(word(r.below(14))))));
    let parts = Fields::from(vec![
        Field::new("name", DataType::Utf8, true),
        Field::new("codes", inner.data_type().clone(), true),
    ]);
    let nulls = NullBuffer::from_iter((0..items).map(|_| r.below(5) != 0));
    let structs = StructArray::new(parts.clone(), vec![names, inner], Some(nulls));
    let valid = NullBuffer::from_iter(lengths.iter().map(|&len| len > 0 || r.below(2) == 0));
    let item = Arc::new(Field::new("item", DataType::Struct(parts), true));
    let lists = ListArray::new(item, OffsetBuffer::from_lengths(lengths), Arc::new(structs), Some(valid));
    add("ls", Arc::new(lists), true);
    let values: ArrayRef = Arc::new(Int64Array::from_iter((0..rows * 2).map(|_| Some(small(r.below(7))))));
    let pair = Arc::new(Field::new("item", DataType::Int64, true));
    let nulls = NullBuffer::from_iter((0..rows).map(|_| r.below(7) != 0));
    add("pair", Arc::new(FixedSizeListArray::new(pair, 2, values, Some(nulls))), true);
    // A struct that is required, of a field that is not, and the other way round.
    let some: ArrayRef = Arc::new(Int32Array::from_iter(required.iter().map(|&v| (v > 0).then_some(v))));
    let all: ArrayRef = Arc::new(Int32Array::from(required));
    let of = |name: &str, array: &ArrayRef, nullable| Field::new(name, array.data_type().clone(), nullable);
    let outer = StructArray::new(Fields::from(vec![of("x", &some, true)]), vec![Arc::clone(&some)], None);
    add("req_st", Arc::new(outer), false);
    let nulls = NullBuffer::from_iter((0..rows).map(|_| r.below(3) != 0));
    let outer = StructArray::new(Fields::from(vec![of("x", &all, false)]), vec![all], Some(nulls));
    add("opt_st", Arc::new(outer), true);
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

fn half(
    v: i64,
) -> <datafusion::arrow::datatypes::Float16Type as datafusion::arrow::datatypes::ArrowPrimitiveType>::Native {
    <datafusion::arrow::datatypes::Float16Type as datafusion::arrow::datatypes::ArrowPrimitiveType>::Native::from_f64(
        f64::from(i32::try_from(v).unwrap()) / 2.0,
    )
}

/// Some way to write a file.
pub(crate) fn properties(r: &mut Random) -> WriterPropertiesBuilder {
    let pick = |r: &mut Random, of: &[usize]| of[usize::try_from(r.below(of.len() as u64)).unwrap()];
    let compression = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::ZSTD(ZstdLevel::try_new(1).unwrap()),
        Compression::LZ4_RAW,
        Compression::BROTLI(BrotliLevel::try_new(1).unwrap()),
    ];
    let statistics = [EnabledStatistics::None, EnabledStatistics::Chunk, EnabledStatistics::Page];
    let mut builder = WriterProperties::builder()
        .set_writer_version(if r.below(2) == 0 { WriterVersion::PARQUET_1_0 } else { WriterVersion::PARQUET_2_0 })
        .set_compression(compression[pick(r, &[0, 1, 2, 3, 4])])
        .set_max_row_group_row_count(Some(pick(r, &[3_000, 8_192, 20_000, 1 << 20])))
        .set_data_page_row_count_limit(pick(r, &[100, 1_000, 9_000, 1 << 20]))
        .set_write_batch_size(pick(r, &[64, 1_024]))
        .set_data_page_size_limit(pick(r, &[2_000, 100_000, 1 << 20]))
        .set_dictionary_enabled(r.below(3) != 0)
        // So small that columns fall back in the middle of a chunk.
        .set_dictionary_page_size_limit(pick(r, &[200, 4_000, 1 << 20]))
        .set_statistics_enabled(statistics[pick(r, &[0, 1, 2])])
        .set_statistics_truncate_length(Some(pick(r, &[1, 3, 64])))
        .set_column_index_truncate_length(Some(pick(r, &[1, 3, 64])))
        .set_bloom_filter_enabled(r.below(3) == 0);
    if r.below(3) == 0 {
        builder = builder.set_offset_index_disabled(true).set_statistics_enabled(EnabledStatistics::Chunk);
    }
    if r.below(2) == 0 {
        for (column, encoding) in [
            ("i", Encoding::DELTA_BINARY_PACKED),
            ("id", Encoding::DELTA_BINARY_PACKED),
            ("f", Encoding::BYTE_STREAM_SPLIT),
            ("g", Encoding::BYTE_STREAM_SPLIT),
            ("s", Encoding::DELTA_BYTE_ARRAY),
            ("unique", Encoding::DELTA_LENGTH_BYTE_ARRAY),
            ("fixed", Encoding::BYTE_STREAM_SPLIT),
            ("b", Encoding::RLE),
        ] {
            let path = ColumnPath::from(column);
            builder = builder.set_column_dictionary_enabled(path.clone(), false).set_column_encoding(path, encoding);
        }
    }
    builder
}

pub(crate) fn write(path: &Path, batches: &[RecordBatch], properties: WriterProperties) {
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batches[0].schema(), Some(properties)).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.close().unwrap();
}

pub(crate) async fn register(ctx: &SessionContext, path: &Path) {
    ctx.register_parquet("t", path.to_str().unwrap(), ParquetReadOptions::default()).await.unwrap();
}

/// All rows of an answer.
pub(crate) async fn answer(ctx: &SessionContext, sql: &str) -> Result<RecordBatch> {
    let frame = ctx.sql(sql).await?;
    let schema = Arc::clone(frame.schema().inner());
    Ok(concat_batches(&schema, &frame.collect().await?)?)
}

/// The same, where no block of a column is decoded twice.
async fn answer_decoding_once(ctx: &SessionContext, sql: &str) -> Result<RecordBatch> {
    let frame = ctx.sql(sql).await?;
    let schema = Arc::clone(frame.schema().inner());
    let plan = frame.create_physical_plan().await?;
    let batches = collect(Arc::clone(&plan), ctx.task_ctx()).await?;
    assert_eq!(sum_of_scans(&plan, "blocks_decoded_again"), 0, "{sql}");
    Ok(concat_batches(&schema, &batches)?)
}

/// The sum of a metric over the scans of a plan.
pub(crate) fn sum_of_scans(plan: &Arc<dyn ExecutionPlan>, name: &str) -> usize {
    let scans = plan.is::<DataSourceExec>().then(|| plan.metrics().unwrap());
    let here = scans.and_then(|metrics| metrics.sum_by_name(name)).map_or(0, |value| value.as_usize());
    here + plan.children().into_iter().map(|child| sum_of_scans(child, name)).sum::<usize>()
}

/// Both scans over one file or folder.
pub(crate) struct Pair {
    _dir: Option<tempfile::TempDir>,
    pub(crate) ours: SessionContext,
    pub(crate) theirs: SessionContext,
}

impl Pair {
    pub(crate) async fn new(batches: &[RecordBatch], properties: WriterProperties, config: SessionConfig) -> Self {
        Self::within(batches, properties, config, OpenOptions::default()).await
    }

    pub(crate) async fn within(
        batches: &[RecordBatch],
        properties: WriterProperties,
        config: SessionConfig,
        options: OpenOptions,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        write(&path, batches, properties);
        let mut pair = Self::of(path, config, options).await;
        pair._dir = Some(dir);
        pair
    }

    pub(crate) async fn of(path: PathBuf, config: SessionConfig, options: OpenOptions) -> Self {
        let ours = session_with(Whose::Ours, config.clone(), options);
        let theirs = session(Whose::Theirs, config);
        register(&ours, &path).await;
        register(&theirs, &path).await;
        Self { _dir: None, ours, theirs }
    }

    /// Both give the same rows in the same order, or fail; ours decodes nothing twice.
    pub(crate) async fn agree(&self, sql: &str) {
        match (answer_decoding_once(&self.ours, sql).await, answer(&self.theirs, sql).await) {
            (Ok(ours), Ok(theirs)) => {
                if ours == theirs {
                    return;
                }
                assert_eq!(ours.schema(), theirs.schema(), "{sql}");
                let (ours, theirs) = (crate::data::lines(&[ours]), crate::data::lines(&[theirs]));
                let differ = ours.iter().zip(&theirs).position(|(a, b)| a != b);
                panic!(
                    "{sql}: {} rows, not {}; the first that differs is {differ:?}: {:?}, not {:?}",
                    ours.len(),
                    theirs.len(),
                    differ.map(|at| &ours[at]),
                    differ.map(|at| &theirs[at]),
                );
            }
            (Err(_), Err(_)) => {}
            (Ok(_), Err(e)) => panic!("{sql} works, but should fail: {e}"),
            (Err(e), Ok(_)) => panic!("{sql} should work, but fails: {e}"),
        }
    }
}
