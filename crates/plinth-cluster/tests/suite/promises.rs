//! What becomes of queries whose workers are lost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plinth_sql::{Params, Session, SessionOptions, parse};

use crate::data::name_tables;
use crate::harness::{Running, TOKEN, cluster, options, rows, with, workers};

/// So slow that it is stopped while it runs.
const SLOW: &str =
    "SELECT count(*) FROM lineitem a JOIN lineitem b ON a.l_orderkey + b.l_orderkey < 0 AND a.l_comment < b.l_comment";

/// Longer than is promised, for machines that have much else to do.
const PATIENCE: Duration = Duration::from_secs(60);

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn parts(workers: &[Running]) -> usize {
    workers.iter().map(|worker| (worker.running)()).sum()
}

#[test]
fn who_lets_go_of_a_query_or_is_gone_leaves_nothing_running() {
    let workers = workers(3, crate::data::folder());
    for is_gone in [false, true] {
        let runtime = plinth_sql::start_runtime(2).unwrap();
        let options = SessionOptions { spread: Some(Arc::new(cluster(&workers, TOKEN))), ..options() };
        let session = Arc::new(Session::new(&options).unwrap());
        session.name_path("lineitem", &crate::data::folder().join("lineitem.plinth")).unwrap();
        let statement = parse(SLOW).unwrap().remove(0);
        let profiler = plinth_profile::Profiler::off();
        let rows = runtime.block_on(session.start(statement, &Params::default(), &profiler)).unwrap();
        until("the query begins", || parts(&workers) > 0);
        if is_gone {
            // As a process that ends: its connections break.
            runtime.shutdown_background();
        } else {
            drop(rows);
            until("nothing runs", || parts(&workers) == 0);
            runtime.shutdown_background();
        }
        until("nothing runs", || parts(&workers) == 0);
    }
}

#[test]
fn a_worker_that_is_gone_is_named() {
    let mut workers = workers(3, crate::data::folder());
    let mut all = with(&workers);
    name_tables(&all);
    let query = "SELECT l_shipmode, count(*) FROM lineitem GROUP BY l_shipmode ORDER BY 1";
    assert_eq!(rows(&mut all, query).unwrap().len(), 7);
    workers[1].kill();
    let error = rows(&mut all, query).unwrap_err();
    assert!(error.contains(&format!("worker {}", workers[1].address)), "{error}");
}
