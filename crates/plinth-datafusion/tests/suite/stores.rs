//! Files in object stores.

use std::sync::Arc;
use std::time::Duration;

use datafusion::datasource::listing_table_factory::ListingTableFactory;
use datafusion::prelude::SessionContext;
use object_store::memory::InMemory;
use object_store::path::Path as Location;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use object_store::{ObjectStore, ObjectStoreExt};
use plinth_datafusion::{FileOptions, PlinthFormatFactory};
use plinth_format::OpenOptions;
use plinth_io::{Io, IoOptions, MemoryBudget};

use crate::data::{Twins, rows, session};

/// A session in which a store is known as `mem://bucket`, and its folder `t` as the table `t`.
async fn open(store: Arc<dyn ObjectStore>, io: &Io) -> SessionContext {
    let ctx = session(3);
    let files =
        FileOptions { open: OpenOptions { io: io.clone(), ..OpenOptions::default() }, ..FileOptions::default() };
    {
        let state = ctx.state_ref();
        let mut state = state.write();
        state.register_file_format(Arc::new(PlinthFormatFactory::with_options(files)), true).unwrap();
        state.table_factories_mut().insert("PLINTH".to_owned(), Arc::new(ListingTableFactory::new()));
    }
    let url = "mem://bucket".try_into().unwrap();
    ctx.runtime_env().register_object_store(&url, store);
    ctx
}

const CREATE: &str = "CREATE EXTERNAL TABLE t STORED AS PLINTH LOCATION 'mem://bucket/t/'";

fn engine(memory: u64) -> Io {
    Io::new(&MemoryBudget::new(memory), IoOptions::default())
}

async fn uploaded(twins: &Twins) -> InMemory {
    let store = InMemory::new();
    for (i, file) in twins.files.iter().enumerate() {
        let bytes = std::fs::read(file).unwrap();
        store.put(&Location::from(format!("t/{i}.plinth")), bytes.into()).await.unwrap();
    }
    store
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_of_a_store_answers_as_local_files_do() {
    let twins = Twins::new(&[3_000, 500, 2_000], 1_024, 3);
    let slow = ThrottleConfig { wait_get_per_call: Duration::from_millis(1), ..ThrottleConfig::default() };
    let store = ThrottledStore::new(uploaded(&twins).await, slow);
    let io = engine(64 << 20);
    let ctx = open(Arc::new(store), &io).await;
    rows(&ctx, CREATE).await.unwrap();
    for sql in [
        "SELECT * FROM t ORDER BY id",
        "SELECT count(*), min(i), max(s) FROM t",
        "SELECT id, s FROM t WHERE s LIKE 'http%' AND i > 3 ORDER BY id",
        "SELECT s, count(*) FROM t GROUP BY s ORDER BY s",
        "SELECT id FROM t ORDER BY i, id LIMIT 7",
    ] {
        assert_eq!(rows(&ctx, sql).await.unwrap(), rows(&twins.plinth, sql).await.unwrap(), "{sql}");
    }
    // What was read again was kept.
    rows(&ctx, "SELECT * FROM t ORDER BY id").await.unwrap();
    rows(&ctx, "SELECT * FROM t ORDER BY id").await.unwrap();
    let counters = io.counters();
    assert!(counters.kept_hits > 0, "{counters:?}");
    assert_eq!((counters.extent_bytes, counters.held_bytes), (0, 0), "{counters:?}");
}

#[tokio::test(flavor = "current_thread")]
async fn a_runtime_of_one_thread_is_not_held_up_for_ever() {
    let twins = Twins::new(&[2_000], 1_024, 1);
    let ctx = open(Arc::new(uploaded(&twins).await), &engine(1 << 20)).await;
    rows(&ctx, CREATE).await.unwrap();
    let sql = "SELECT * FROM t ORDER BY id";
    assert_eq!(rows(&ctx, sql).await.unwrap(), rows(&twins.plinth, sql).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_there_or_cut_short_is_an_error_that_names_it() {
    let twins = Twins::new(&[60_000], 1_024, 1);
    let store = Arc::new(uploaded(&twins).await);
    let ctx = open(Arc::clone(&store) as _, &engine(64 << 20)).await;
    rows(&ctx, CREATE).await.unwrap();
    // Gone since it was listed: more than its end is read, which is kept.
    let plan = ctx.sql("SELECT sum(i) FROM t").await.unwrap();
    store.delete(&Location::from("t/0.plinth")).await.unwrap();
    let error = plan.collect().await.unwrap_err().to_string();
    assert!(error.contains("t/0.plinth"), "{error}");

    let half = std::fs::read(&twins.files[0]).unwrap();
    store.put(&Location::from("u/half.plinth"), half[..half.len() / 2].to_vec().into()).await.unwrap();
    let create = "CREATE EXTERNAL TABLE u STORED AS PLINTH LOCATION 'mem://bucket/u/'";
    let error = rows(&ctx, create).await.unwrap_err().to_string();
    assert!(error.contains("u/half.plinth"), "{error}");

    // Writing is for local files.
    let error = rows(&ctx, "COPY (SELECT 1 AS n) TO 'mem://bucket/x.plinth'").await.unwrap_err().to_string();
    assert!(error.contains("mem://"), "{error}");
}
