//! A folder of files as one table: what is appended, compacted and inserted is seen by those who open it afterwards.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringViewArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::prelude::SessionContext;
use plinth_datafusion::PlinthTable;
use plinth_format::WriterOptions;
use plinth_table::{Appender, CompactOptions, compact};

use crate::data::{options, rows, session};

fn append(folder: &Path, columns: &[(&str, ArrayRef)]) {
    let columns = columns.iter().map(|(name, column)| (*name, Arc::clone(column), true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let mut appender = Appender::create(folder, &batch.schema(), options(1_024)).unwrap();
    appender.write(&batch).unwrap();
    appender.finish().unwrap();
}

fn numbers(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn register(ctx: &SessionContext, folder: &Path) {
    let _ = ctx.deregister_table("t").unwrap();
    ctx.register_table("t", Arc::new(PlinthTable::open_folder(folder, None).unwrap())).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_is_its_folder_when_it_was_opened() {
    let dir = tempfile::tempdir().unwrap();
    append(dir.path(), &[("n", numbers(&[1, 2]))]);
    let before = PlinthTable::open_folder(dir.path(), None).unwrap();
    assert!(before.is_current().unwrap());
    append(dir.path(), &[("n", numbers(&[3]))]);
    assert!(!before.is_current().unwrap());
    let after = PlinthTable::open_folder(dir.path(), Some(&before)).unwrap();
    assert_eq!((before.num_rows(), after.num_rows()), (2, 3));

    let options =
        CompactOptions { writer: WriterOptions { threads: 1, ..WriterOptions::default() }, ..Default::default() };
    compact(dir.path(), &options, &mut |_| {}).unwrap();
    assert!(!after.is_current().unwrap());
    // A reader that has the old files open still reads them.
    let ctx = session(2);
    ctx.register_table("old", Arc::new(after)).unwrap();
    register(&ctx, dir.path());
    for table in ["old", "t"] {
        assert_eq!(rows(&ctx, &format!("SELECT n FROM {table} ORDER BY n")).await.unwrap(), ["|1|", "|2|", "|3|"]);
    }
    let empty = tempfile::tempdir().unwrap();
    let error = PlinthTable::open_folder(empty.path(), None).unwrap_err().to_string();
    assert!(error.contains("no file in this folder"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inserted_rows_make_a_further_file() {
    let dir = tempfile::tempdir().unwrap();
    let text: ArrayRef = Arc::new(StringViewArray::from(vec!["a"]));
    append(dir.path(), &[("n", numbers(&[1])), ("s", text)]);
    let ctx = session(2);
    register(&ctx, dir.path());
    let inserted = rows(&ctx, "INSERT INTO t SELECT * FROM (VALUES (2, 'b'), (3, NULL))").await.unwrap();
    assert_eq!(inserted, ["|2|"]);
    // By name, what is left out is null, and types are converted as the table wants them.
    rows(&ctx, "INSERT INTO t (s, n) VALUES ('d', 4)").await.unwrap();
    rows(&ctx, "INSERT INTO t (n) SELECT n + 100 FROM t").await.unwrap();
    rows(&ctx, "EXPLAIN INSERT INTO t (n) SELECT n FROM t").await.unwrap();
    rows(&ctx, "INSERT INTO t SELECT * FROM t WHERE n < 0").await.unwrap();
    register(&ctx, dir.path());
    let found = rows(&ctx, "SELECT n, s FROM t ORDER BY n").await.unwrap();
    assert_eq!(found, ["|1|a|", "|2|b|", "|3||", "|4|d|", "|101||"]);
    assert_eq!(rows(&ctx, "SELECT count(*) FROM t").await.unwrap(), ["|5|"]);
    let mut names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, [".plinth-lock", "000001.plinth", "000002.plinth", "000003.plinth", "000004.plinth"]);

    // A query that fails leaves nothing.
    assert!(rows(&ctx, "INSERT INTO t (n) SELECT 1 / (n - 2) FROM t").await.is_err());
    assert!(rows(&ctx, "INSERT OVERWRITE t SELECT * FROM t").await.is_err());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 5);
    let single = PlinthTable::open(vec![dir.path().join("000001.plinth")]).unwrap();
    ctx.register_table("single", Arc::new(single)).unwrap();
    let error = rows(&ctx, "INSERT INTO single SELECT * FROM t").await.unwrap_err().to_string();
    assert!(error.contains("name the folder"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn columns_that_may_not_be_null_stay_so() {
    let dir = tempfile::tempdir().unwrap();
    let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int32, false)]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(Int32Array::from(vec![1]))]).unwrap();
    let mut appender = Appender::create(dir.path(), &schema, options(1_024)).unwrap();
    appender.write(&batch).unwrap();
    appender.finish().unwrap();
    let ctx = session(1);
    register(&ctx, dir.path());
    assert!(rows(&ctx, "INSERT INTO t SELECT NULL").await.is_err());
    rows(&ctx, "INSERT INTO t SELECT 2").await.unwrap();
    let table = PlinthTable::open_folder(dir.path(), None).unwrap();
    assert_eq!(table.num_rows(), 2);
    assert_eq!(datafusion::catalog::TableProvider::schema(&table), schema);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_files_are_one_table() {
    let dir = tempfile::tempdir().unwrap();
    append(dir.path(), &[("n", numbers(&[0, 1, 2]))]);
    let first = dir.path().join("000001.plinth");
    // More than a process may usually hold open; links cost nothing and count like files.
    for i in 2..=2_500 {
        std::fs::hard_link(&first, dir.path().join(format!("{i:06}.plinth"))).unwrap();
    }
    let ctx = session(2);
    register(&ctx, dir.path());
    assert_eq!(rows(&ctx, "SELECT count(*), min(n), max(n) FROM t").await.unwrap(), ["|7500|0|2|"]);
    assert_eq!(rows(&ctx, "SELECT sum(n) FROM t WHERE n > 0").await.unwrap(), ["|7500|"]);
}
