//! Wrong results that others' scans were published to give, and ours must not.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, Float64Array, Int32Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Field, Fields, Int32Type, Schema};
use datafusion::datasource::MemTable;
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use super::data::{Pair, Whose, answer, config, rows, session, write};
use crate::data::{plan, structure};

fn table(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

fn small_pages() -> WriterProperties {
    WriterProperties::builder()
        .set_max_row_group_row_count(Some(20_000))
        .set_data_page_row_count_limit(100)
        .set_write_batch_size(50)
        .build()
}

/// Our scan over a file gives what the rows in memory give.
async fn as_in_memory(batch: &RecordBatch, properties: WriterProperties, queries: &[&str]) {
    let pair = Pair::new(std::slice::from_ref(batch), properties, config(1, 1_000)).await;
    let memory = SessionContext::new_with_config(config(1, 1_000));
    let ours = pair.ours.table("t").await.unwrap().schema().inner().clone();
    let columns = batch.columns().iter().zip(ours.fields());
    let columns = columns.map(|(c, f)| datafusion::arrow::compute::cast(c, f.data_type()).unwrap()).collect();
    let batch = RecordBatch::try_new(ours, columns).unwrap();
    memory.register_table("t", Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap())).unwrap();
    for sql in queries {
        let (ours, theirs) = (answer(&pair.ours, sql).await.unwrap(), answer(&memory, sql).await.unwrap());
        assert_eq!(ours, theirs, "{sql}");
    }
}

/// DataFusion 15912: a predicate of a partition column and a column of the files was never applied.
#[tokio::test]
async fn predicates_of_partition_columns_and_stored_ones_are_applied() {
    let dir = tempfile::tempdir().unwrap();
    for day in 0..4 {
        let folder = dir.path().join(format!("day={day}"));
        std::fs::create_dir(&folder).unwrap();
        let from = day * 100;
        let n: ArrayRef = Arc::new(Int32Array::from_iter_values((from..from + 100).map(|v| v % 7)));
        write(&folder.join("a.parquet"), &[table(vec![("n", n)])], WriterProperties::builder().build());
    }
    let mut sessions = Vec::new();
    for whose in [Whose::Ours, Whose::Theirs] {
        let ctx = session(whose, config(2, 1_000));
        let options = ParquetReadOptions::default().table_partition_cols(vec![("day".to_owned(), DataType::Int32)]);
        ctx.register_parquet("t", dir.path().to_str().unwrap(), options).await.unwrap();
        sessions.push(ctx);
    }
    for sql in [
        "SELECT day, n FROM t WHERE day = n ORDER BY day, n",
        "SELECT day, n FROM t WHERE day + n = 5 OR (day = 1 AND n > 4) ORDER BY day, n",
        "SELECT count(*) FROM t WHERE day = 2 AND n = 3",
        "SELECT day, count(*) FROM t WHERE day IN (1, 3) AND n IS NOT NULL GROUP BY day ORDER BY day",
        "SELECT n, day FROM t WHERE day < n AND day <> 0 ORDER BY n DESC, day LIMIT 3",
    ] {
        let both = [answer(&sessions[0], sql).await.unwrap(), answer(&sessions[1], sql).await.unwrap()];
        assert_eq!(both[0], both[1], "{sql}");
        assert!(both[0].num_rows() > 0, "{sql}");
    }
    assert!(plan(&sessions[0], "SELECT n FROM t WHERE day = n").await.contains("scan=plinth"));
}

/// DataFusion 16588: settings of the session decided how many rows came out.
#[tokio::test]
async fn no_setting_of_the_engine_changes_what_comes_out() {
    let pair = Pair::new(&[rows(5, 0, 9_000)], small_pages(), config(1, 1_000)).await;
    for name in ["pushdown_filters", "pruning", "enable_page_index", "bloom_filter_on_read", "reorder_filters"] {
        for value in ["true", "false"] {
            let set = format!("SET datafusion.execution.parquet.{name} = {value}");
            pair.ours.sql(&set).await.unwrap().collect().await.unwrap();
            pair.agree("SELECT id, s, map FROM t WHERE s LIKE 'http%' AND i BETWEEN 20 AND 90").await;
        }
    }
}

/// DataFusion 24109 and 25268: a conjunct that could not be evaluated in one file, because its schema differs, was dropped
/// for that file.
#[tokio::test]
async fn conjuncts_are_applied_in_files_of_any_schema() {
    let dir = tempfile::tempdir().unwrap();
    let x: [ArrayRef; 4] = [
        Arc::new(Int64Array::from_iter_values(0..50)),
        Arc::new(Int32Array::from_iter_values(25..75)),
        // Not all of these are integers: DataFusion casts, and so its source reads this one.
        Arc::new(StringArray::from_iter_values((50..100).map(|v| v.to_string()))),
        Arc::new(Float64Array::from_iter_values((0..50).map(f64::from))),
    ];
    for (i, x) in x.into_iter().enumerate() {
        let y: ArrayRef = Arc::new(Int32Array::from_iter_values((0..50).map(|v| v % 3)));
        let columns = if i == 1 { vec![("y", y), ("x", x)] } else { vec![("x", x), ("y", y)] };
        write(&dir.path().join(format!("{i}.parquet")), &[table(columns)], WriterProperties::builder().build());
    }
    let y: ArrayRef = Arc::new(Int32Array::from_iter_values(0..3));
    write(&dir.path().join("4.parquet"), &[table(vec![("y", y)])], WriterProperties::builder().build());
    let mut sessions = Vec::new();
    for whose in [Whose::Ours, Whose::Theirs] {
        let ctx = session(whose, config(1, 1_000));
        let schema = Schema::new(vec![
            Field::new("x", DataType::Int64, true),
            Field::new("y", DataType::Int64, true),
            Field::new("z", DataType::Utf8View, true),
        ]);
        let options = ParquetReadOptions::default().schema(&schema);
        ctx.register_parquet("t", dir.path().to_str().unwrap(), options).await.unwrap();
        sessions.push(ctx);
    }
    for sql in [
        "SELECT * FROM t",
        "SELECT x, y FROM t WHERE x > 40",
        "SELECT x FROM t WHERE x BETWEEN 45 AND 55 AND y = 1",
        "SELECT y FROM t WHERE x IS NULL",
        "SELECT x, z FROM t WHERE z IS NULL AND x % 10 = 3",
        "SELECT y, x FROM t WHERE z = 'a' OR x = 7 OR x = 57",
        "SELECT sum(x + y) FROM t WHERE x + y > 60",
        "SELECT count(*) FROM t WHERE CAST(x AS VARCHAR) LIKE '5%'",
    ] {
        let both = [answer(&sessions[0], sql).await.unwrap(), answer(&sessions[1], sql).await.unwrap()];
        assert_eq!(both[0], both[1], "{sql}");
        assert!(both[0].num_rows() > 0, "{sql}");
    }
}

/// DataFusion 24352: row groups were delivered again when a dynamic filter of TopK became tighter.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn top_k_gives_no_row_twice() {
    let written = WriterProperties::builder().set_max_row_group_row_count(Some(500)).build();
    for partitions in [1, 4] {
        let pair = Pair::new(&[rows(11, 0, 6_000)], written.clone(), config(partitions, 700)).await;
        for order in ["id DESC", "u, id DESC", "s DESC, id", "f, id", "st['a'], id", "i DESC, id"] {
            for limit in [3, 900] {
                pair.agree(&format!("SELECT id, s, l FROM t ORDER BY {order} LIMIT {limit}")).await;
                pair.agree(&format!("SELECT id FROM t WHERE u > 5 ORDER BY {order} LIMIT {limit} OFFSET 7")).await;
            }
        }
    }
}

/// arrow-rs 8657: lists under a predicate lost their levels. 9982: nulls of structs of one leaf were lost.
#[tokio::test]
async fn lists_and_structs_keep_their_nulls_under_a_predicate() {
    let count = 5_000;
    let ids: ArrayRef = Arc::new(Int32Array::from_iter_values(0..count));
    let lists: ArrayRef =
        Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>((0..count).map(|v| match v % 5 {
            0 => None,
            1 => Some(vec![]),
            2 => Some(vec![None]),
            _ => Some((0..v % 4).map(|i| (i != 1).then_some(v)).collect()),
        })));
    let nulls = NullBuffer::from_iter((0..count).map(|v| v % 3 != 0));
    let b: ArrayRef = Arc::new(StringArray::from_iter((0..count).map(|v| (v % 4 != 0).then(|| format!("v{}", v % 9)))));
    let one = structure(Fields::from(vec![Field::new("b", DataType::Utf8, true)]), vec![b], &nulls);
    let outer_nulls = NullBuffer::from_iter((0..count).map(|v| v % 7 != 0));
    let fields = Fields::from(vec![Field::new("one", one.data_type().clone(), true)]);
    let outer: ArrayRef = Arc::new(StructArray::new(fields, vec![Arc::clone(&one)], Some(outer_nulls)));
    let batch = table(vec![("id", ids), ("l", lists), ("one", one), ("outer", outer)]);
    let pair = Pair::new(std::slice::from_ref(&batch), small_pages(), config(1, 900)).await;
    for filter in [
        "one['b'] IS NULL",
        "one['b'] IS NOT NULL",
        "one IS NULL",
        "one['b'] = 'v3'",
        "outer IS NULL",
        "outer['one'] IS NULL",
        "id % 100 = 7",
        "l IS NULL",
        "array_has(l, 33)",
        "l IS NOT NULL AND one IS NOT NULL AND id > 4000",
    ] {
        pair.agree(&format!("SELECT * FROM t WHERE {filter}")).await;
        pair.agree(&format!("SELECT l, one['b'] FROM t WHERE {filter}")).await;
    }
}

/// A field is null where its struct is, also one that is required there.
#[tokio::test]
async fn fields_of_null_structs_are_null() {
    let all: ArrayRef = Arc::new(Int32Array::from_iter_values((0..100).map(|v| v % 5)));
    let nulls = NullBuffer::from_iter((0..100).map(|v| v % 2 == 0));
    let fields = Fields::from(vec![Field::new("x", DataType::Int32, false)]);
    let batch = table(vec![("st", Arc::new(StructArray::new(fields, vec![all], Some(nulls))) as ArrayRef)]);
    let pair = Pair::new(&[batch], WriterProperties::builder().build(), config(1, 1_000)).await;
    for (filter, count) in [("st['x'] IS NULL", 50), ("st['x'] = 2", 10), ("st['x'] IS NOT NULL", 50)] {
        let found = answer(&pair.ours, &format!("SELECT st FROM t WHERE {filter}")).await.unwrap();
        assert_eq!(found.num_rows(), count, "{filter}");
    }
}

/// arrow-rs 9301, 9509, 10288 and 10735: pages that a selection skips were asked for.
#[tokio::test]
async fn selections_of_single_rows_skip_whole_pages() {
    for index in [true, false] {
        let mut written = WriterProperties::builder()
            .set_data_page_row_count_limit(300)
            .set_write_batch_size(100)
            .set_max_row_group_row_count(Some(30_000));
        if !index {
            written = written.set_offset_index_disabled(true).set_statistics_enabled(EnabledStatistics::Chunk);
        }
        let pair = Pair::new(&[rows(21, 0, 40_000)], written.build(), config(1, 8_192)).await;
        for filter in
            ["id = 17", "id IN (5, 16383, 16384, 29999, 30000, 39999)", "id % 8191 = 0", "id > 39990 AND u < 90"]
        {
            pair.agree(&format!("SELECT id, unique, l, st, map, ls FROM t WHERE {filter}")).await;
        }
    }
}

/// ClickHouse 112580: a bloom filter ruled out rows that are null or lack the column.
#[tokio::test]
async fn bloom_filters_rule_out_no_nulls() {
    let x: ArrayRef = Arc::new(Int64Array::from_iter((0..1_000).map(|v| (v % 3 != 0).then_some(v * 1_000))));
    let s: ArrayRef = Arc::new(StringArray::from_iter((0..1_000).map(|v| (v % 5 != 0).then(|| format!("k{v}")))));
    let written =
        WriterProperties::builder().set_bloom_filter_enabled(true).set_statistics_enabled(EnabledStatistics::None);
    as_in_memory(
        &table(vec![("x", x), ("s", s)]),
        written.build(),
        &[
            "SELECT * FROM t WHERE x = 0 OR x IS NULL",
            "SELECT * FROM t WHERE x IS NOT DISTINCT FROM NULL",
            "SELECT * FROM t WHERE coalesce(x, 5) = 5",
            "SELECT * FROM t WHERE x IN (5, 7, 1000)",
            "SELECT * FROM t WHERE x = 5",
            "SELECT * FROM t WHERE NOT (x = 5)",
            "SELECT * FROM t WHERE s = 'k7' OR s = 'none'",
            "SELECT * FROM t WHERE s <> 'none' AND x > 990000",
            "SELECT * FROM t WHERE (s = 'none') IS NULL",
        ],
    )
    .await;
}

/// Statistics leave NaNs out, and may have either zero.
#[tokio::test]
async fn bounds_of_floats_rule_out_neither_nans_nor_zeros() {
    for (name, values) in [
        ("nans", vec![1.0, 2.0, f64::NAN, 3.0]),
        ("negative nans", vec![1.0, -f64::NAN, 3.0]),
        ("zeros", vec![0.0, -0.0, 0.0]),
        ("only nans", vec![f64::NAN, f64::NAN]),
        ("infinities", vec![f64::NEG_INFINITY, f64::INFINITY]),
    ] {
        let x: ArrayRef = Arc::new(Float64Array::from(values));
        let queries =
            ["x > 5", "x < -5", "x >= 3", "x = 0", "x = -0.0", "x <> 2", "NOT (x <= 3)", "x IN (0, 9)", "x > 0"];
        let queries: Vec<String> =
            queries.iter().map(|filter| format!("SELECT count(*) FROM t WHERE {filter}")).collect();
        let queries: Vec<&str> = queries.iter().map(String::as_str).collect();
        println!("{name}");
        as_in_memory(&table(vec![("x", x)]), WriterProperties::builder().build(), &queries).await;
    }
}

/// Bounds of long text are cut: the upper one is then no value that occurs.
#[tokio::test]
async fn cut_bounds_rule_out_no_long_text() {
    let text = |v: i32| format!("{}{v:04}", "ü".repeat(40));
    let s: ArrayRef = Arc::new(StringArray::from_iter_values((0..3_000).map(text)));
    let written = WriterProperties::builder()
        .set_statistics_truncate_length(Some(4))
        .set_column_index_truncate_length(Some(4))
        .set_data_page_row_count_limit(100)
        .set_write_batch_size(100)
        .build();
    let (first, last) = (text(0), text(2_999));
    let queries = [
        format!("SELECT s FROM t WHERE s = '{first}' OR s = '{last}'"),
        format!("SELECT count(*) FROM t WHERE s >= '{last}'"),
        format!("SELECT count(*) FROM t WHERE s > '{first}' AND s < '{last}'"),
        "SELECT count(*) FROM t WHERE s > 'üü'".to_owned(),
        "SELECT count(*) FROM t WHERE s LIKE 'üüü%'".to_owned(),
    ];
    let queries: Vec<&str> = queries.iter().map(String::as_str).collect();
    as_in_memory(&table(vec![("s", s)]), written, &queries).await;
}

/// An error counts if a row that passes all else fails, and nothing else makes one.
#[tokio::test]
async fn failing_expressions_fail_when_the_engine_says_so() {
    let x: ArrayRef = Arc::new(Int64Array::from_iter((0..20_000).map(|v| (v % 7 != 0).then_some(v % 10))));
    let s: ArrayRef = Arc::new(StringArray::from_iter_values((0..20_000).map(|v| format!("{}", v % 50))));
    let bad: ArrayRef = Arc::new(StringArray::from_iter_values((0..20_000).map(|v| if v == 11 { "x" } else { "1" })));
    let batch = table(vec![("x", x), ("s", s), ("bad", bad)]);
    let pair = Pair::new(&[batch], small_pages(), config(1, 8_192)).await;
    for filter in [
        "10 / x > 2",
        "CAST(s AS INT) > 40",
        "CAST(bad AS INT) = 1",
        "regexp_like(s, '(')",
        "x > 0 AND 10 / x > 2",
        "CASE WHEN x > 0 THEN 10 / x > 2 ELSE false END",
    ] {
        let sql = format!("SELECT s FROM t WHERE {filter}");
        let (ours, theirs) = (answer(&pair.ours, &sql).await, answer(&pair.theirs, &sql).await);
        match (&ours, &theirs) {
            (Ok(ours), Ok(theirs)) => assert_eq!(ours, theirs, "{sql}"),
            // The engine evaluates what it need not: there our scan may know better, and never the other way round.
            (_, Err(_)) => {}
            (Err(e), Ok(_)) => panic!("{sql}: {e}"),
        }
    }
    for filter in ["CAST(bad AS INT) = 1", "10 / x > 2", "regexp_like(s, '(')"] {
        assert!(answer(&pair.ours, &format!("SELECT s FROM t WHERE {filter}")).await.is_err(), "{filter}");
    }
}
