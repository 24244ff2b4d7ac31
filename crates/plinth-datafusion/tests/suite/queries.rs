//! SQL over Plinth files gives what SQL over the same rows in memory gives.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringViewArray, new_null_array};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use proptest::prelude::*;

use crate::data::{Twins, batch, lines, options, schema, write};

pub(crate) const FILTERS: [&str; 68] = [
    "i = 3",
    "i <> 3",
    "i < 10",
    "i >= 190",
    "i > 1000",
    "i BETWEEN 20 AND 30",
    "i NOT BETWEEN 20 AND 30",
    "i IN (1, 2, 3)",
    "i IN (1, 2, 3, 4, 5, 6, 7, 8)",
    "i NOT IN (1, 2, 3)",
    "i IN (1, NULL)",
    "i NOT IN (1, NULL)",
    "i NOT IN (1, 2, 3, 4, 5, NULL)",
    "i IS NULL",
    "i IS NOT NULL",
    "i IS DISTINCT FROM 3",
    "i IS NOT DISTINCT FROM 3",
    "i + u > 60",
    "i = u",
    "i % 7 = 1",
    "u = 99",
    "u > 18446744073709551614",
    "f = 0",
    "f < 0",
    "f >= 0.0",
    "f > 1e299",
    "g = 0.1",
    "g > 0.1",
    "s = 'abc'",
    "s <> 'abc'",
    "s > 'b'",
    "s = ''",
    "s LIKE 'ab%'",
    "s NOT LIKE 'ab%'",
    "s LIKE '%google%'",
    "s NOT LIKE '%google%'",
    "s LIKE '%e%o%'",
    "s NOT LIKE '%example%1'",
    "s LIKE 'http%com%2'",
    "s LIKE '%%a%%'",
    r"s NOT LIKE '%\%%b%'",
    "s LIKE 'a_c'",
    r"s LIKE 'a\_c'",
    "s ILIKE 'ZEB%'",
    "starts_with(s, 'http')",
    "s ~ '^a.?c$'",
    "s ~ '(1|2)$'",
    "upper(s) = 'ZEBRA'",
    "length(s) > 10",
    "s IN ('a', 'b', 'größe', 'none')",
    "s NOT IN ('a', NULL)",
    "b",
    "NOT b",
    "b IS NOT TRUE",
    "d = 1.25",
    "d > 2.005",
    "day >= DATE '2022-10-01'",
    "date_part('month', day) = 3",
    "t < TIMESTAMP '2023-11-20T00:00:00'",
    "tz > TIMESTAMP '2023-11-14T22:20:00Z'",
    "bin = 'abc'",
    "st['a'] = 3",
    "st['a'] IS NULL",
    "st IS NULL",
    "st['n']['x'] LIKE 'http%'",
    "st['n']['y'] > 0 AND st['a'] < 10",
    "array_has(l, 2)",
    "l IS NULL",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_filter_keeps_the_rows_it_should() {
    let t = Twins::new(&[20_000, 1_500], 8_192, 4);
    for filter in FILTERS {
        t.keep_the_same(filter).await;
        t.keep_the_same(&format!("NOT ({filter})")).await;
        t.agree(&format!("SELECT id, i, s, st['a'] FROM t WHERE id % 50 = 7 AND ({filter})")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_filter_is_taken_by_the_scan() {
    let t = Twins::new(&[3_000], 1_024, 2);
    for filter in FILTERS {
        let plan = t.plan(&format!("SELECT id FROM t WHERE {filter}")).await;
        assert!(!plan.contains("FilterExec"), "{filter}\n{plan}");
    }
    // What gives another answer each time stays above the scan.
    let plan = t.plan("SELECT id FROM t WHERE random() < 0.5 AND i = 3").await;
    assert!(plan.contains("FilterExec: random()") && plan.contains("predicate=i@1 = 3"), "{plan}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whole_rows_and_projections_come_back() {
    let t = Twins::new(&[2_000, 300], 1_024, 3);
    for sql in [
        "SELECT * FROM t",
        "SELECT * FROM t WHERE i < 20 OR s = 'z'",
        "SELECT s, id, s AS again, i + 1, upper(s), 7 AS seven FROM t",
        "SELECT st FROM t WHERE st['a'] > 20",
        "SELECT st['a'], id FROM t",
        "SELECT st['n']['x'], st['n']['y'] FROM t WHERE st['n']['x'] IS NOT NULL",
        "SELECT st, st['a'] + 1, st['n'] FROM t WHERE id % 3 = 0",
        "SELECT l, l[1], array_length(l) FROM t",
        "SELECT 1 FROM t WHERE i = 5",
        "SELECT count(*) FROM t WHERE s = 'a'",
        "SELECT id FROM t WHERE false",
        "SELECT d, day, t, tz, bin, u, g FROM t WHERE id < 900",
    ] {
        t.agree(sql).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rest_of_sql_works_on_top() {
    let t = Twins::new(&[5_000, 700], 1_024, 3);
    for sql in [
        "SELECT s, count(*), sum(i), min(d), max(tz) FROM t GROUP BY s",
        "SELECT st['n']['x'], avg(st['a']) FROM t GROUP BY 1",
        "SELECT count(DISTINCT s), count(DISTINCT i) FROM t WHERE b",
        "SELECT a.id, b.id FROM t a JOIN t b ON a.i = b.u WHERE a.s = 'abc' AND b.id < 500",
        "SELECT id FROM t WHERE i IN (SELECT u FROM t WHERE s = 'z' AND id < 50)",
        "SELECT id FROM t WHERE i NOT IN (SELECT u FROM t WHERE u IS NOT NULL AND id < 30)",
        "SELECT id FROM t WHERE i NOT IN (SELECT u FROM t WHERE id < 30)",
        "SELECT id FROM t x WHERE EXISTS (SELECT 1 FROM t y WHERE y.i = x.u AND y.s = 'größe')",
        "SELECT id FROM t WHERE i > (SELECT avg(i) FROM t WHERE s LIKE 'http%')",
        "SELECT id, row_number() OVER (PARTITION BY s ORDER BY id) FROM t WHERE i < 30",
        "SELECT s FROM t WHERE i < 5 UNION SELECT st['n']['x'] FROM t WHERE i > 90",
        "WITH x AS (SELECT id, i FROM t WHERE b) SELECT count(*), sum(i) FROM x WHERE i > 3",
        "SELECT a.id FROM t a LEFT JOIN t b ON a.id = b.id + 1 AND b.s = 'a' WHERE b.id IS NULL",
        "SELECT t.id, v.w FROM t JOIN (VALUES ('a', 1), ('abc', 2)) AS v(k, w) ON t.s = v.k",
    ] {
        t.agree(sql).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn order_and_limit_with_dynamic_filters() {
    let t = Twins::new(&[20_000, 1_500, 40], 8_192, 4);
    for sql in [
        "SELECT id FROM t ORDER BY id LIMIT 10",
        "SELECT id FROM t ORDER BY id DESC LIMIT 10",
        "SELECT id, i FROM t ORDER BY i DESC NULLS LAST, id LIMIT 25",
        "SELECT id, i FROM t ORDER BY i ASC NULLS FIRST, id LIMIT 25",
        "SELECT id, s FROM t ORDER BY s DESC NULLS LAST, id LIMIT 25 OFFSET 5",
        "SELECT id, s FROM t WHERE b AND s LIKE 'a%' ORDER BY s, id DESC LIMIT 12",
        "SELECT id, f FROM t WHERE f <> 0 ORDER BY f DESC NULLS FIRST, id LIMIT 25",
        "SELECT id, st['a'] AS a FROM t ORDER BY a DESC NULLS LAST, id LIMIT 9",
        "SELECT id, upper(s) AS up FROM t ORDER BY up, id LIMIT 9",
        "SELECT id, tz FROM t ORDER BY tz DESC NULLS LAST, id LIMIT 3",
        "SELECT id, d FROM t ORDER BY d, id LIMIT 3",
        "SELECT max(i), min(s), max(u) FROM t WHERE id > 100",
        "SELECT a.id, b.id FROM t a JOIN t b ON a.id = b.id WHERE a.i = 17 ORDER BY a.id",
        "SELECT a.id, b.id FROM t a JOIN t b ON a.i = b.i AND a.s = b.s WHERE a.id < 20 ORDER BY 1, 2",
    ] {
        t.agree_in_order(sql).await;
    }
    let plan = t.plan("SELECT id FROM t ORDER BY id LIMIT 10").await;
    assert!(plan.contains("DynamicFilter"), "{plan}");
    let plan = t.plan("SELECT b.id FROM t a JOIN t b ON a.id = b.id WHERE a.i = 17").await;
    assert!(plan.contains("DynamicFilter"), "{plan}");
}

/// A join whose build side is too large for a list is pushed as a lookup in its hash table.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_push_hash_tables() {
    for partitions in [1, 3] {
        let t = Twins::new(&[6_000], 1_024, partitions);
        t.agree("SELECT a.id, b.s FROM t a JOIN t b ON a.id = b.id WHERE a.s > 'a' AND a.b").await;
        t.agree("SELECT count(*) FROM t a JOIN t b ON a.id = b.u AND a.i = b.i WHERE a.id > 5").await;
        t.agree("SELECT count(*) FROM t a JOIN t b ON a.st['a'] = b.i WHERE a.id < 400").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_stop_early_and_give_enough() {
    let t = Twins::new(&[5_000, 700], 1_024, 4);
    for (sql, rows) in [
        ("SELECT id FROM t LIMIT 17", 17),
        ("SELECT id FROM t LIMIT 100000", 5_700),
        ("SELECT id FROM t WHERE i < 50 LIMIT 33", 33),
        ("SELECT id FROM t WHERE i = 12 LIMIT 0", 0),
        ("SELECT id FROM t LIMIT 10 OFFSET 5695", 5),
    ] {
        let batches = t.plinth.sql(sql).await.unwrap().collect().await.unwrap();
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), rows, "{sql}");
    }
    let plan = t.plan("SELECT id FROM t WHERE i < 50 LIMIT 33").await;
    assert!(plan.contains("limit=33"), "{plan}");
    // Without a filter the rows of a partition come in order; which of several comes first is not promised.
    Twins::new(&[5_000, 700], 1_024, 1).agree_in_order("SELECT id FROM t LIMIT 1200").await;
}

/// Columns are united by name; a file that lacks one reads as null there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_may_lack_columns() {
    let dir = tempfile::tempdir().unwrap();
    let nullable = Arc::new(Schema::new(
        schema().fields().iter().map(|f| f.as_ref().clone().with_nullable(true)).collect::<Vec<_>>(),
    ));
    let kept: [&[usize]; 3] = [&[0, 1, 5, 6, 12], &[5, 0, 3, 13, 7], &[12, 8, 0]];
    let (mut files, mut memory) = (Vec::new(), Vec::new());
    for (n, kept) in kept.iter().enumerate() {
        let full = batch(3, n as u64 * 600, 600);
        let path = dir.path().join(format!("{n}.plinth"));
        write(&path, &[full.project(kept).unwrap()], options(512));
        files.push(path);
        let columns = full.columns().iter().enumerate().map(|(i, column)| match kept.contains(&i) {
            true => Arc::clone(column),
            false => new_null_array(column.data_type(), column.len()),
        });
        memory.push(RecordBatch::try_new(Arc::clone(&nullable), columns.collect()).unwrap());
    }
    // In order of first appearance.
    let order = [0usize, 1, 5, 6, 12, 3, 13, 7, 8];
    let memory: Vec<RecordBatch> = memory.iter().map(|batch| batch.project(&order).unwrap()).collect();
    let t = Twins::of(dir, files, memory[0].schema(), vec![memory], 3);
    t.agree("SELECT * FROM t").await;
    for filter in [
        "i IS NULL",
        "i = 12",
        "i <> 12 OR i IS NULL",
        "b",
        "b IS NOT TRUE",
        "s IS NULL",
        "st['a'] = 3",
        "st['a'] IS NULL",
        "st IS NOT NULL",
        "coalesce(i, -1) = -1",
        "f > 0 OR s = 'a'",
        "NOT (f > 0)",
        "day IS NULL AND d > 0",
        "array_has(l, 1)",
        "i NOT IN (1, 2)",
        "s LIKE 'a%' AND f IS NULL",
        "length(s) = f",
    ] {
        t.agree(&format!("SELECT id, s, i, st['n']['x'] FROM t WHERE {filter}")).await;
        t.agree(&format!("SELECT count(*), count(i), count(f), sum(d) FROM t WHERE {filter}")).await;
    }
    t.agree_in_order("SELECT id, i FROM t ORDER BY i DESC NULLS LAST, id LIMIT 7").await;
    t.agree("SELECT a.id FROM t a JOIN t b ON a.i = b.f").await;
    t.agree("SELECT count(*), count(i), count(f), min(i), max(day), min(d) FROM t").await;
}

/// What may be null in one file only may be null in the table.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_may_differ_in_what_may_be_null() {
    let dir = tempfile::tempdir().unwrap();
    let make = |name: &str, nullable: bool, values: Vec<Option<i64>>| {
        let field = Field::new("v", DataType::Int64, nullable);
        let texts: ArrayRef = Arc::new(StringViewArray::from_iter(values.iter().map(|v| v.map(|v| v.to_string()))));
        let values: ArrayRef = Arc::new(Int64Array::from(values));
        let item = Field::new("item", DataType::Int64, nullable);
        let offsets = datafusion::arrow::buffer::OffsetBuffer::from_lengths(vec![1; values.len()]);
        let list = datafusion::arrow::array::ListArray::new(Arc::new(item), offsets, Arc::clone(&values), None);
        let list_field = Field::new("l", datafusion::arrow::array::Array::data_type(&list).clone(), false);
        let schema = Schema::new(vec![field, Field::new("s", DataType::Utf8View, nullable), list_field]);
        let path = dir.path().join(name);
        write(
            &path,
            &[RecordBatch::try_new(Arc::new(schema), vec![values, texts, Arc::new(list)]).unwrap()],
            options(1_024),
        );
        path
    };
    let files = vec![make("a.plinth", false, vec![Some(1), Some(2)]), make("b.plinth", true, vec![Some(3), None])];
    let table = plinth_datafusion::PlinthTable::open(files).unwrap();
    let ctx = crate::data::session(2);
    ctx.register_table("t", Arc::new(table)).unwrap();
    let batches = ctx.sql("SELECT v, s, l FROM t ORDER BY v").await.unwrap().collect().await.unwrap();
    assert_eq!(lines(&batches), ["|1|1|[1]|", "|2|2|[2]|", "|3|3|[3]|", "|||[]|"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_is_raised_only_for_rows_that_survive() {
    let t = Twins::new(&[3_000], 1_024, 2);
    let run = async |sql: &str| crate::data::rows(&t.plinth, sql).await;
    let error = run("SELECT id FROM t WHERE 10 / (id - 5) > 1").await.unwrap_err().to_string();
    assert!(error.to_lowercase().contains("divide by zero"), "{error}");
    assert_eq!(run("SELECT id FROM t WHERE id <> 5 AND 10 / (id - 5) > 4").await.unwrap(), ["|6|", "|7|"]);
    let error = run("SELECT id FROM t WHERE CAST(s AS INT) = 3").await.unwrap_err().to_string();
    assert!(error.contains("Cast error"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(14))]

    /// Random conjunctions and disjunctions, whatever the shape of the files and the partitions.
    #[test]
    fn random_predicates_agree(
        picks in prop::collection::vec((0..FILTERS.len(), any::<bool>(), any::<bool>()), 1..5),
        rows in prop::collection::vec(1..12_000usize, 1..3),
        group in prop::sample::select(vec![8_192usize, 131_072]),
        partitions in 1..5usize,
    ) {
        let mut predicate = "true".to_owned();
        for (pick, or, not) in picks {
            let op = if or { "OR" } else { "AND" };
            let not = if not { "NOT " } else { "" };
            predicate = format!("({predicate} {op} {not}({}))", FILTERS[pick]);
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        runtime.block_on(async {
            let t = Twins::new(&rows, group, partitions);
            t.keep_the_same(&predicate).await;
            t.agree_in_order(&format!("SELECT id, s FROM t WHERE {predicate} ORDER BY s NULLS FIRST, id LIMIT 11")).await;
        });
    }
}
