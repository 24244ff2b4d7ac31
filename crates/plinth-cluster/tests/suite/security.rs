//! Who may come in, and what is read for whom.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plinth_cluster::{Cluster, ClusterOptions, Credentials, Reach, VERSION, WorkerOptions};
use plinth_server::{GuardedPort, Limits, Log, PortOptions, Tls, Users};
use plinth_sql::{Connection, SessionOptions};

use crate::data::name_tables;
use crate::harness::{Running, TOKEN, cluster, options, rows, with, workers};

const QUERY: &str = "SELECT count(*), sum(l_quantity) FROM lineitem";

#[test]
fn no_one_comes_in_without_a_token() {
    let workers = workers(1, crate::data::folder());
    for token in ["another-token-0123456789", ""] {
        let spread = Arc::new(cluster(&workers, token));
        let mut stranger = Connection::open(&SessionOptions { spread: Some(spread), ..options() }).unwrap();
        name_tables(&stranger);
        let error = rows(&mut stranger, QUERY).unwrap_err();
        assert!(error.contains("token") && error.contains(&workers[0].address), "{error}");
    }
    let log = workers[0].lines.lock().unwrap().join("\n");
    assert!(log.contains("why=token") && !log.contains("another-token"), "{log}");
}

#[test]
fn no_file_is_read_that_was_not_granted() {
    let elsewhere = tempfile::tempdir().unwrap();
    for change in [None, Some(elsewhere.path())] {
        let worker = Running::with(|options| match change {
            Some(root) => WorkerOptions { reach: Reach::new(Some(root), &[]).unwrap(), ..options },
            None => options,
        });
        let workers = [worker];
        let mut all = with(&workers);
        name_tables(&all);
        let error = rows(&mut all, QUERY).unwrap_err();
        assert!(error.contains("this worker reads no such file") && error.contains("--root"), "{error}");
    }
}

/// A file of the tests of the server: a certificate for `localhost` and its key.
fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../plinth-server/tests/data").join(name)
}

#[test]
fn all_speak_tls_to_each_other() {
    let worker = || {
        Running::with(|options| WorkerOptions {
            reach: Reach::new(Some(crate::data::folder()), &[]).unwrap(),
            tls: Some(Tls::read_files(&data("cert.pem"), &data("key.pem")).unwrap()),
            tls_ca: Some(data("cert.pem")),
            ..options
        })
    };
    let workers = [worker(), worker()];
    let addresses =
        || workers.iter().map(|worker| worker.address.replace("127.0.0.1", "localhost")).collect::<Vec<_>>();
    let session = |tls_ca: Option<PathBuf>, scheme: &str| {
        let credentials = Credentials { token: Some(TOKEN.to_owned()), tls_ca, ..Credentials::default() };
        let addresses = addresses().into_iter().map(|address| format!("{scheme}{address}")).collect();
        let options_of = ClusterOptions { credentials, spread_bytes: 1, ..ClusterOptions::new(addresses) };
        Cluster::new(options_of).map(|cluster| {
            let connection =
                Connection::open(&SessionOptions { spread: Some(Arc::new(cluster)), ..options() }).unwrap();
            name_tables(&connection);
            connection
        })
    };
    let query = "SELECT l_shipmode, count(*), sum(l_quantity) FROM lineitem GROUP BY l_shipmode ORDER BY 1";
    let mut alone = crate::harness::alone();
    name_tables(&alone);
    let mut all = session(Some(data("cert.pem")), "").unwrap();
    assert_eq!(rows(&mut all, query), rows(&mut alone, query));
    // Who trusts no one, and who speaks plain text, hears nothing.
    assert!(session(None, "https://").unwrap_err().to_string().contains("--tls-ca"));
    assert!(rows(&mut session(None, "http://").unwrap(), query).is_err());
}

#[test]
fn a_worker_of_another_version_is_told_from_others() {
    let runtime = plinth_sql::start_runtime(1).unwrap();
    let port = PortOptions {
        users: Users::owner(TOKEN).unwrap(),
        tls: None,
        plaintext_anywhere: false,
        limits: Limits::default(),
        streams: 100,
        log: Log::to(|_| {}),
    };
    let port = runtime.block_on(GuardedPort::bind(port, "127.0.0.1:0")).unwrap();
    let address = port.address().to_string();
    let other = datafusion_distributed::Worker::default().with_version("plinth 99, messages 7").into_worker_server();
    runtime.spawn(port.run(other, Duration::from_secs(1), std::future::pending()));
    let credentials = Credentials { token: Some(TOKEN.to_owned()), ..Credentials::default() };
    let cluster = Cluster::new(ClusterOptions { credentials, ..ClusterOptions::new(vec![address.clone()]) }).unwrap();
    let mut all = Connection::open(&SessionOptions { spread: Some(Arc::new(cluster)), ..options() }).unwrap();
    name_tables(&all);
    let error = rows(&mut all, QUERY).unwrap_err();
    assert!(error.contains(&address) && error.contains("plinth 99, messages 7") && error.contains(VERSION), "{error}");
    runtime.shutdown_background();
}
