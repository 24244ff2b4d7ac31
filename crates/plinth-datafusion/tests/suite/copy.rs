//! Writing through the engine.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::common::DataFusionError;
use datafusion::datasource::listing_table_factory::ListingTableFactory;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::SessionContext;
use futures::{StreamExt, stream};
use plinth_datafusion::{PlinthFormatFactory, PlinthTable, write_streams};

use crate::data::{Twins, batch, options, rows, schema, session};

pub(crate) fn register_format(ctx: &SessionContext) {
    let state = ctx.state_ref();
    let mut state = state.write();
    state.register_file_format(Arc::new(PlinthFormatFactory::new()), true).unwrap();
    state.table_factories_mut().insert("PLINTH".to_owned(), Arc::new(ListingTableFactory::new()));
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copy_writes_what_a_query_gives() {
    let t = Twins::new(&[3_000], 1_024, 3);
    register_format(&t.plinth);
    let out = tempfile::tempdir().unwrap();
    for name in ["plain.plinth", "with space.plinth", "größe.plinth", "a[1].plinth"] {
        let path = out.path().join(name);
        let copy = format!("COPY (SELECT id, s, st, l, i + 1 AS n FROM t WHERE b ORDER BY id) TO '{}'", path.display());
        let counted = rows(&t.plinth, &copy).await.unwrap_or_else(|e| panic!("{copy}: {e}"));
        let ctx = session(2);
        ctx.register_table("t", Arc::new(PlinthTable::open(vec![path]).unwrap())).unwrap();
        assert_eq!(rows(&ctx, "SELECT count(*) FROM t").await.unwrap(), counted);
        let back = rows(&ctx, "SELECT * FROM t ORDER BY id").await.unwrap();
        let asked = "SELECT id, s, st, l, i + 1 AS n FROM t WHERE b ORDER BY id";
        assert_eq!(back, rows(&t.memory, asked).await.unwrap(), "{name}");
    }
    assert_eq!(names(out.path()).len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copy_to_a_folder_adds_files_and_insert_appends() {
    let t = Twins::new(&[100], 1_024, 2);
    register_format(&t.plinth);
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().join("folder");
    let copy = format!("COPY t TO '{}/' STORED AS PLINTH", folder.display());
    rows(&t.plinth, &format!("EXPLAIN {copy}")).await.unwrap();
    assert!(!folder.exists());
    rows(&t.plinth, &copy).await.unwrap();
    rows(&t.plinth, &copy).await.unwrap();
    let files = |folder: &Path| names(folder).into_iter().filter(|name| !name.starts_with('.')).collect::<Vec<_>>();
    assert_eq!(files(&folder), ["000001.plinth", "000002.plinth"]);
    let create = format!("CREATE EXTERNAL TABLE e STORED AS PLINTH LOCATION '{}/'", folder.display());
    rows(&t.plinth, &create).await.unwrap();
    rows(&t.plinth, "INSERT INTO e SELECT * FROM t WHERE id < 10").await.unwrap();
    assert_eq!(files(&folder).len(), 3);
    let files = files(&folder).into_iter().map(|name| folder.join(name)).collect();
    assert_eq!(PlinthTable::open(files).unwrap().num_rows(), 210);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copy_refuses_what_it_cannot_do_and_leaves_nothing() {
    let t = Twins::new(&[3_000], 1_024, 2);
    register_format(&t.plinth);
    let out = tempfile::tempdir().unwrap();
    let path = out.path().join("x.plinth");
    let to = path.display();
    let fails = async |sql: &str, expected: &str| {
        let error = rows(&t.plinth, sql).await.expect_err(sql).to_string();
        assert!(error.to_lowercase().contains(expected), "{sql}: {error}");
    };
    fails(&format!("COPY (SELECT 1 / (id - 2500) FROM t) TO '{to}'"), "divide by zero").await;
    fails(&format!("COPY t TO '{to}' PARTITIONED BY (s)"), "partitioned by").await;
    fails(&format!("COPY t TO '{to}' OPTIONS ('format.level' '3')"), "level").await;
    fails("COPY t TO 's3://bucket/x.plinth'", "s3").await;
    fails(&format!("COPY t TO '{}/no/such/x.plinth'", out.path().display()), "no/such").await;
    assert!(names(out.path()).is_empty(), "{:?}", names(out.path()));

    rows(&t.plinth, &format!("COPY t TO '{to}'")).await.unwrap();
    let before = std::fs::read(&path).unwrap();
    fails(&format!("COPY (SELECT id FROM t) TO '{to}'"), "already exists").await;
    assert_eq!(std::fs::read(&path).unwrap(), before);
    rows(&t.plinth, &format!("COPY (SELECT id FROM t) TO '{to}' OPTIONS ('format.replace' 'true')")).await.unwrap();
    assert_ne!(std::fs::read(&path).unwrap(), before);
    assert_eq!(names(out.path()), ["x.plinth"]);
}

fn of(batches: Vec<Result<RecordBatch, DataFusionError>>) -> SendableRecordBatchStream {
    Box::pin(RecordBatchStreamAdapter::new(schema(), stream::iter(batches)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_is_written_whole_or_not_at_all() {
    let out = tempfile::tempdir().unwrap();
    let path = out.path().join("x.plinth");
    let good = || (0..20).map(|i| Ok(batch(1, i * 500, 500))).collect::<Vec<_>>();

    let mut broken = good();
    broken.push(Err(DataFusionError::Execution("the source broke".to_owned())));
    let error = write_streams(vec![of(broken)], schema(), &path, options(1_024)).await.unwrap_err();
    assert!(error.to_string().contains("the source broke"), "{error}");
    assert!(names(out.path()).is_empty());

    // Dropped before its end.
    let endless = stream::iter(good()).chain(stream::pending());
    let endless = Box::pin(RecordBatchStreamAdapter::new(schema(), endless));
    let abandoned = tokio::time::timeout(
        std::time::Duration::from_millis(300),
        write_streams(vec![endless], schema(), &path, options(1_024)),
    );
    assert!(abandoned.await.is_err());
    // The writer's thread notices as soon as it looks for more.
    for _ in 0..500 {
        if names(out.path()).is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(names(out.path()).is_empty(), "{:?}", names(out.path()));

    let summary = write_streams(vec![of(good())], schema(), &path, options(1_024)).await.unwrap();
    assert_eq!(summary.rows, 10_000);
    assert_eq!(PlinthTable::open(vec![path.clone()]).unwrap().num_rows(), 10_000);

    let mut no_replace = options(1_024);
    no_replace.replace = false;
    let error = write_streams(vec![of(good())], schema(), &path, no_replace).await.unwrap_err();
    assert!(error.to_string().contains("already exists"), "{error}");

    let empty = out.path().join("empty.plinth");
    assert_eq!(write_streams(vec![of(Vec::new())], schema(), &empty, options(1_024)).await.unwrap().rows, 0);
    let ctx = session(2);
    ctx.register_table("t", Arc::new(PlinthTable::open(vec![empty]).unwrap())).unwrap();
    assert_eq!(rows(&ctx, "SELECT count(*), max(i) FROM t").await.unwrap(), ["|0||"]);
    assert!(rows(&ctx, "SELECT id FROM t WHERE i > 3").await.unwrap().is_empty());
}

/// The values of `id` as they lie in a file.
fn ids(path: &std::path::Path) -> Vec<i64> {
    let scan = plinth_format::File::open(path).unwrap().scan().select(["id"]).build().unwrap();
    let batches: Vec<RecordBatch> = scan.map(Result::unwrap).collect();
    batches.iter().flat_map(|b| b.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn partitions_run_side_by_side_and_lie_one_after_the_other() {
    let out = tempfile::tempdir().unwrap();
    let path = out.path().join("x.plinth");
    // The first partition comes last.
    let partition = |of: std::ops::Range<u64>| {
        let late = of.start == 0;
        let batches = stream::iter(of.step_by(500).map(|from| Ok(batch(1, from, 500))));
        let wait =
            async move { tokio::time::sleep(std::time::Duration::from_millis(if late { 200 } else { 0 })).await };
        let batches = stream::once(wait).filter_map(|()| async { None }).chain(batches);
        Box::pin(RecordBatchStreamAdapter::new(schema(), batches)) as SendableRecordBatchStream
    };
    let partitions = vec![partition(0..3_000), partition(3_000..3_500), partition(3_500..9_000)];
    let summary = write_streams(partitions, schema(), &path, options(1_024)).await.unwrap();
    assert_eq!(summary.rows, 9_000);
    assert_eq!(ids(&path), (0..9_000).collect::<Vec<_>>());
    // Each partition fills row groups of its own.
    let groups: Vec<u64> = plinth_format::File::open(&path).unwrap().row_groups().iter().map(|g| g.rows).collect();
    assert_eq!(groups, [3_000, 500, 5_500]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_without_order_by_keeps_the_order_of_its_table() {
    let t = Twins::new(&[3_000, 2_000, 4_000], 512, 4);
    register_format(&t.plinth);
    // Which would deal batches out to partitions.
    rows(&t.plinth, "SET datafusion.optimizer.enable_round_robin_repartition = false").await.unwrap();
    let out = tempfile::tempdir().unwrap();
    let path = out.path().join("x.plinth");
    rows(&t.plinth, &format!("COPY (SELECT * FROM t WHERE id % 7 <> 3) TO '{}'", path.display())).await.unwrap();
    let copied = ids(&path);
    let expected: Vec<i64> = (0..9_000).filter(|id| id % 7 != 3).collect();
    assert_eq!(copied, expected);
    // Sorted rows stay in order, with default settings too.
    rows(&t.plinth, "SET datafusion.optimizer.enable_round_robin_repartition = true").await.unwrap();
    let ordered = out.path().join("y.plinth");
    rows(&t.plinth, &format!("COPY (SELECT * FROM t ORDER BY id DESC) TO '{}'", ordered.display())).await.unwrap();
    assert_eq!(ids(&ordered), (0..9_000).rev().collect::<Vec<_>>());
}
