//! JSON and CSV files as tables.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_schema::{DataType, Field, Schema};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt;
use plinth_datafusion::ForeignTable;
use plinth_ingest::{FileFormat, SourceOptions, Unknown};

fn write(name: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    (dir, path)
}

fn ask(path: &Path, options: SourceOptions, sql: &str) -> Result<Vec<RecordBatch>, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime
        .block_on(async {
            let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
            context.register_table("t", Arc::new(ForeignTable::open(vec![path.to_path_buf()], options)?))?;
            context.sql(sql).await?.collect().await
        })
        .map_err(|e| e.strip_backtrace())
}

fn json(root: Option<&str>) -> SourceOptions {
    let mut options = SourceOptions { format: Some(FileFormat::Ndjson), ..SourceOptions::default() };
    options.json.root = root.map(str::to_owned);
    options
}

/// The integers of the first row.
fn first(batches: &[RecordBatch]) -> Vec<i64> {
    let batch = batches.iter().find(|batch| batch.num_rows() > 0).unwrap();
    batch.columns().iter().map(|column| column.as_primitive::<Int64Type>().value(0)).collect()
}

#[test]
fn columns_that_are_not_asked_for_are_not_decoded_but_still_have_to_be_sound() {
    let (_dir, path) = write("x.json", r#"{"rows":[{"a":1,"b":[1,2],"c":"x"},{"a":2,"b":[3],"c":"y"}],"more":0}"#);
    let of = |sql: &str| ask(&path, json(Some("rows")), sql);
    assert_eq!(first(&of("SELECT sum(a), count(*) FROM t").unwrap()), [3, 2]);
    assert_eq!(first(&of("SELECT count(*) FROM t").unwrap()), [2]);
    assert_eq!(first(&of("SELECT a, count(*) FROM t WHERE c = 'y' GROUP BY a").unwrap()), [2, 1]);
    let all = of("SELECT * FROM t").unwrap();
    assert_eq!(all.iter().map(RecordBatch::num_rows).sum::<usize>(), 2);
    assert_eq!(all[0].schema().fields().iter().map(|f| f.name().as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);

    let (_dir, path) = write("x.json", "{\"a\":1,\"b\":2}\n{\"a\":2,\"b\":[1,}\n");
    let mut options = json(None);
    options.schema = Some(Arc::new(Schema::new(vec![
        Field::new("a", DataType::Int64, true),
        Field::new("b", DataType::Utf8View, true),
    ])));
    let error = ask(&path, options, "SELECT sum(a) FROM t").unwrap_err();
    assert!(error.contains("line 2") && error.contains("broken JSON"), "{error}");
}

#[test]
fn keys_beyond_the_columns_are_an_error_where_all_columns_are_asked_for() {
    let rows: String = (0..100).map(|a| format!("{{\"a\":{a},\"b\":1}}\n")).collect();
    let (_dir, path) = write("x.ndjson", &format!("{rows}{{\"a\":100,\"later\":5,\"b\":2}}\n"));
    let with = |unknown| {
        let mut options = json(None);
        options.sample = plinth_ingest::Sample::Rows(10);
        options.chunk_bytes = Some(64);
        options.json.unknown = unknown;
        options
    };
    let error = ask(&path, with(Unknown::Error), "SELECT * FROM t").unwrap_err();
    assert!(error.contains("\"later\"") && error.contains("sample => 'all'"), "{error}");
    assert_eq!(first(&ask(&path, with(Unknown::Error), "SELECT count(*), sum(a) FROM t").unwrap()), [101, 5050]);
    assert_eq!(first(&ask(&path, with(Unknown::Report), "SELECT sum(b), sum(a) FROM t").unwrap()), [102, 5050]);
    let sql = "SELECT max(a) FROM t WHERE _extra = '{\"later\":5}'";
    assert_eq!(first(&ask(&path, with(Unknown::Extra), sql).unwrap()), [100]);
}

#[test]
fn csv_by_columns_and_without_any() {
    let (_dir, path) = write("x.csv", "a;b;c\n1;x;1.5\n2;NA;2.5\n\n3;;\n");
    let of = |sql: &str| {
        let mut options = SourceOptions { format: Some(FileFormat::Csv), ..SourceOptions::default() };
        options.csv.delimiter = Some(b';');
        options.csv.nulls = vec![String::new(), "NA".to_owned()];
        ask(&path, options, sql).unwrap()
    };
    assert_eq!(first(&of("SELECT count(*), count(b), count(c), sum(a) FROM t")), [3, 1, 2, 6]);
    assert_eq!(first(&of("SELECT count(*) FROM t")), [3]);
    assert_eq!(first(&of("SELECT a FROM t WHERE c > 2")), [2]);
}

#[test]
fn a_scan_that_is_dropped_or_limited_reads_no_further() {
    // The last record is broken: who reads to the end learns of it.
    let rows: String = (0..200_000).map(|a| format!("{{\"a\":{a}}}\n")).collect();
    let (_dir, path) = write("x.ndjson", &format!("{rows}{{\"a\":"));
    let small = || SourceOptions { chunk_bytes: Some(1 << 10), ahead_bytes: 1 << 10, ..json(None) };
    assert!(ask(&path, small(), "SELECT sum(a) FROM t").is_err());
    let few = ask(&path, small(), "SELECT a FROM t LIMIT 5").unwrap();
    assert_eq!(few.iter().map(RecordBatch::num_rows).sum::<usize>(), 5);
    assert_eq!(first(&ask(&path, small(), "SELECT a FROM t LIMIT 1 OFFSET 3").unwrap()), [3]);

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let context = SessionContext::new();
        let table = ForeignTable::open(vec![path.clone()], small()).unwrap();
        context.register_table("t", Arc::new(table)).unwrap();
        let mut stream = context.sql("SELECT a FROM t").await.unwrap().execute_stream().await.unwrap();
        assert!(stream.next().await.unwrap().is_ok());
    });
    // Waits for threads that still run; a reader that went on would fail the test by its time at most.
    drop(runtime);
}

#[test]
fn what_cannot_be_a_table_is_said() {
    let open = |path: &str, options| ForeignTable::open(vec![path.into()], options).unwrap_err().strip_backtrace();
    assert!(open("-", json(None)).contains("standard input"));
    assert!(open("/no/such/file.json", json(None)).contains("no such file"));
    let (_dir, path) = write("x.json", "{\"a\":1}\n[");
    assert!(open(path.to_str().unwrap(), json(Some("$.["))).contains("no path to rows"));
}
