//! Tables to query, and the same rows in memory to compare with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array,
    Int32Array, Int64Array, ListArray, RecordBatch, StringViewArray, StructArray, TimestampMicrosecondArray,
    UInt64Array, make_array,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Field, Fields, Int64Type, Schema, SchemaRef, TimeUnit};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::common::Result;
use datafusion::datasource::MemTable;
use datafusion::physical_plan::displayable;
use datafusion::prelude::{SessionConfig, SessionContext};
pub(crate) use plinth_core::random::Random;
use plinth_datafusion::PlinthTable;
use plinth_format::{Writer, WriterOptions};

/// A value, or none in one of eight cases where there may be nulls.
fn maybe<T>(random: &mut Random, nulls: bool, value: impl FnOnce(&mut Random) -> T) -> Option<T> {
    let value = value(random);
    (!nulls || random.below(8) != 0).then_some(value)
}

pub(crate) const WORDS: [&str; 14] = [
    "",
    "a",
    "ab",
    "abc",
    "abd",
    "b",
    "a_c",
    "a%c",
    "größe",
    "http://example.com/very/long/path/1",
    "http://example.com/very/long/path/2",
    "https://example.org/google",
    "Zebra",
    "z",
];

pub(crate) fn inner_fields() -> Fields {
    Fields::from(vec![Field::new("x", DataType::Utf8View, true), Field::new("y", DataType::Float64, true)])
}

pub(crate) fn struct_fields() -> Fields {
    Fields::from(vec![Field::new("a", DataType::Int64, true), Field::new("n", DataType::Struct(inner_fields()), true)])
}

pub(crate) fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("i", DataType::Int32, true),
        Field::new("u", DataType::UInt64, true),
        Field::new("f", DataType::Float64, true),
        Field::new("g", DataType::Float32, true),
        Field::new("s", DataType::Utf8View, true),
        Field::new("b", DataType::Boolean, true),
        Field::new("d", DataType::Decimal128(10, 2), true),
        Field::new("day", DataType::Date32, true),
        Field::new("t", DataType::Timestamp(TimeUnit::Microsecond, None), true),
        Field::new("tz", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true),
        Field::new("bin", DataType::BinaryView, true),
        Field::new("st", DataType::Struct(struct_fields()), true),
        Field::new("l", DataType::List(Arc::new(Field::new("item", DataType::Int64, true))), true),
    ]))
}

/// Rows `from..from + rows`: `id` counts, `i` clusters (so zone maps prune), the rest repeats with nulls.
pub(crate) fn batch(seed: u64, from: u64, rows: usize) -> RecordBatch {
    let r = &mut Random(seed ^ (from << 20));
    let ids: Vec<i64> = (from..).take(rows).map(|i| i64::try_from(i).unwrap()).collect();
    let word = |r: &mut Random| WORDS[usize::try_from(r.below(14)).unwrap()];
    let small = |r: &mut Random, n: u64| i64::try_from(r.below(n)).unwrap();
    macro_rules! column {
        ($array:ident, $make:expr) => {
            Arc::new($array::from_iter((0..rows).map(|_| maybe(r, true, $make)))) as ArrayRef
        };
    }
    let i = Arc::new(Int32Array::from_iter(
        ids.iter().map(|&id| maybe(r, true, |r| i32::try_from(id / 50 + small(r, 10) - 5).unwrap())),
    )) as ArrayRef;
    let u = column!(UInt64Array, |r| r.below(100));
    let f =
        column!(Float64Array, |r| [0.0, -0.0, 1.5, -2.25, 1e300, f64::INFINITY][usize::try_from(r.below(6)).unwrap()]);
    let g = column!(Float32Array, |r| [0.5f32, -1.0, 3.25, 0.1][usize::try_from(r.below(4)).unwrap()]);
    let s = column!(StringViewArray, word);
    let b = column!(BooleanArray, |r| r.below(2) == 0);
    let d = Decimal128Array::from_iter((0..rows).map(|_| maybe(r, true, |r| i128::from(small(r, 500)) - 250)));
    let d = Arc::new(d.with_precision_and_scale(10, 2).unwrap()) as ArrayRef;
    let day = column!(Date32Array, |r| 19_000 + i32::try_from(r.below(400)).unwrap());
    let t = column!(TimestampMicrosecondArray, |r| 1_700_000_000_000_000 + small(r, 1_000_000) * 1_000_000);
    let tz: TimestampMicrosecondArray =
        (0..rows).map(|_| maybe(r, true, |r| 1_700_000_000_000_000 + small(r, 1_000) * 1_000_000)).collect();
    let tz = Arc::new(tz.with_timezone("UTC")) as ArrayRef;
    let bin = column!(BinaryViewArray, |r| word(r).as_bytes());
    let nulls = |r: &mut Random| NullBuffer::from_iter((0..rows).map(|_| r.below(10) != 0));
    let x = column!(StringViewArray, word);
    let y = column!(Float64Array, |r| [0.25, -7.5, 12.0][usize::try_from(r.below(3)).unwrap()]);
    let a = column!(Int64Array, |r| small(r, 30));
    let (outer, inner) = (nulls(r), nulls(r));
    let inner = NullBuffer::union(Some(&outer), Some(&inner)).unwrap_or(inner);
    let n = structure(inner_fields(), vec![x, y], &inner);
    let st = structure(struct_fields(), vec![a, n], &outer);
    let lists = (0..rows).map(|_| {
        maybe(r, true, |r| {
            let len = usize::try_from(r.below(4)).unwrap();
            (0..len).map(|_| maybe(r, true, |r| small(r, 5))).collect::<Vec<_>>()
        })
    });
    let lists: Vec<_> = lists.collect();
    let l: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists));
    let ids: ArrayRef = Arc::new(Int64Array::from(ids));
    RecordBatch::try_new(schema(), vec![ids, i, u, f, g, s, b, d, day, t, tz, bin, st, l]).unwrap()
}

/// A struct whose fields are null where it is. The engine's `get_field` shows what a null struct hides; a Plinth file
/// does not keep it.
pub(crate) fn structure(fields: Fields, columns: Vec<ArrayRef>, nulls: &NullBuffer) -> ArrayRef {
    let hide = |column: ArrayRef| {
        if column.data_type().is_null() {
            return column;
        }
        let nulls = NullBuffer::union(column.nulls(), Some(nulls));
        make_array(column.to_data().into_builder().nulls(nulls).build().unwrap())
    };
    Arc::new(StructArray::new(fields, columns.into_iter().map(hide).collect(), Some(nulls.clone())))
}

pub(crate) fn options(row_group_rows: usize) -> WriterOptions {
    WriterOptions { row_group_rows, threads: 1, replace: true, ..WriterOptions::default() }
}

pub(crate) fn write(path: &Path, batches: &[RecordBatch], options: WriterOptions) {
    let mut writer = Writer::create(path, &batches[0].schema(), options).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.finish().unwrap();
}

pub(crate) fn session(partitions: usize) -> SessionContext {
    SessionContext::new_with_config(SessionConfig::new().with_target_partitions(partitions).with_batch_size(1_000))
}

/// A table `t` of Plinth files, and its twin in memory.
pub(crate) struct Twins {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) files: Vec<PathBuf>,
    pub(crate) plinth: SessionContext,
    pub(crate) memory: SessionContext,
}

impl Twins {
    /// Files of these many rows each, in row groups of `row_group_rows`.
    pub(crate) fn new(rows: &[usize], row_group_rows: usize, partitions: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut from = 0;
        let (mut files, mut batches) = (Vec::new(), Vec::new());
        for (i, &rows) in rows.iter().enumerate() {
            let path = dir.path().join(format!("{i}.plinth"));
            let batch = batch(7, from, rows);
            write(&path, std::slice::from_ref(&batch), options(row_group_rows));
            from += u64::try_from(rows).unwrap();
            files.push(path);
            batches.push(batch);
        }
        Self::of(dir, files, schema(), vec![batches], partitions)
    }

    pub(crate) fn of(
        dir: tempfile::TempDir,
        files: Vec<PathBuf>,
        schema: SchemaRef,
        memory: Vec<Vec<RecordBatch>>,
        partitions: usize,
    ) -> Self {
        let plinth = session(partitions);
        plinth.register_table("t", Arc::new(PlinthTable::open(files.clone()).unwrap())).unwrap();
        let twin = session(partitions);
        twin.register_table("t", Arc::new(MemTable::try_new(schema, memory).unwrap())).unwrap();
        Self { dir, files, plinth, memory: twin }
    }

    /// Both give the same rows, in any order.
    pub(crate) async fn agree(&self, sql: &str) {
        let ours = sorted(&rows(&self.plinth, sql).await.unwrap_or_else(|e| panic!("{sql}: {e}")));
        let theirs = sorted(&rows(&self.memory, sql).await.unwrap_or_else(|e| panic!("{sql}: {e}")));
        assert!(
            ours == theirs,
            "{sql}\nplinth ({}):\n{}\nmemory ({}):\n{}",
            ours.len(),
            head(&ours),
            theirs.len(),
            head(&theirs)
        );
    }

    /// Both give the same rows in the same order.
    pub(crate) async fn agree_in_order(&self, sql: &str) {
        let ours = rows(&self.plinth, sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
        let theirs = rows(&self.memory, sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
        assert!(ours == theirs, "{sql}\nplinth:\n{}\nmemory:\n{}", head(&ours), head(&theirs));
    }

    /// Both keep the same rows, by their `id`.
    pub(crate) async fn keep_the_same(&self, filter: &str) {
        let sql = format!("SELECT id FROM t WHERE {filter}");
        let ids = async |ctx: &SessionContext| {
            let batches = ctx.sql(&sql).await.unwrap().collect().await.unwrap_or_else(|e| panic!("{sql}: {e}"));
            let ids = batches.iter().flat_map(|b| b.column(0).as_primitive::<Int64Type>().values().to_vec());
            let mut ids: Vec<i64> = ids.collect();
            ids.sort_unstable();
            ids
        };
        let (ours, theirs) = (ids(&self.plinth).await, ids(&self.memory).await);
        let differ = ours.iter().zip(&theirs).position(|(a, b)| a != b);
        assert!(
            ours == theirs,
            "{sql}: {} rows, not {}; the first that differs is {differ:?}",
            ours.len(),
            theirs.len()
        );
    }

    pub(crate) async fn plan(&self, sql: &str) -> String {
        plan(&self.plinth, sql).await
    }
}

pub(crate) async fn plan(ctx: &SessionContext, sql: &str) -> String {
    let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    displayable(plan.as_ref()).indent(true).to_string()
}

/// The rows of a query as text, in the order they came.
pub(crate) async fn rows(ctx: &SessionContext, sql: &str) -> Result<Vec<String>> {
    let batches = ctx.sql(sql).await?.collect().await?;
    Ok(lines(&batches))
}

pub(crate) fn lines(batches: &[RecordBatch]) -> Vec<String> {
    let text = pretty_format_batches(batches).unwrap().to_string();
    let lines: Vec<&str> = text.lines().collect();
    // Without the frame, whose width depends on the values.
    let cells = |line: &str| line.split('|').map(str::trim).collect::<Vec<_>>().join("|");
    lines.iter().skip(3).filter(|line| !line.starts_with('+')).map(|line| cells(line)).collect()
}

fn sorted(rows: &[String]) -> Vec<String> {
    let mut rows = rows.to_vec();
    rows.sort();
    rows
}

fn head(rows: &[String]) -> String {
    rows.iter().take(12).cloned().collect::<Vec<_>>().join("\n")
}
