//! ObjectStores that refuse, break off, stall, or exchange objects.

use std::ops::Range;
use std::time::{Duration, Instant};

use plinth_io::{Objects, Priority, Request};
use plinth_objects::Limits;
use plinth_objects::server::{Fault, Server};

use crate::{bytes, open, session};

const ALL: Range<u64> = 0..4_000_000;

fn limits() -> Limits {
    Limits { deadline: Duration::from_secs(8), stall: Duration::from_millis(300), tries: 3, ..Limits::default() }
}

#[test]
#[allow(clippy::single_range_in_vec_init, reason = "a read is a list of ranges")]
fn passing_faults_do_not_reach_the_reader() {
    let server = Server::start().unwrap();
    let object = bytes(1, 5_000_000);
    server.put("b/x", &object);
    let stores = session(&server, limits(), None);
    let file = open(&stores, "s3://b/x");
    for faults in [
        vec![Fault::Busy, Fault::Busy],
        vec![Fault::Reset],
        vec![Fault::Cut(100_000)],
        vec![Fault::Cut(0)],
        vec![Fault::Cut(1_000_000), Fault::Cut(1), Fault::Busy, Fault::Cut(2_000_000)],
        vec![Fault::Stall],
        vec![Fault::Slow(500_000, Duration::from_millis(50))],
        vec![Fault::Late(Duration::from_millis(500))],
    ] {
        let what = format!("{faults:?}");
        faults.into_iter().for_each(|fault| server.fail("GET", fault));
        let read = file.read(&[ALL]).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert!(read[0].as_slice() == &object[..4_000_000], "{what}");
        server.heal();
    }
}

#[test]
#[allow(clippy::single_range_in_vec_init, reason = "a read is a list of ranges")]
fn lasting_faults_are_errors_that_name_the_object_in_time() {
    let server = Server::start().unwrap();
    server.put("b/x", &bytes(1, 5_000_000));
    let stores = session(&server, limits(), None);
    let file = open(&stores, "s3://b/x");
    for (fault, expected) in [
        (Fault::Busy, "503"),
        (Fault::Reset, ""),
        (Fault::Cut(0), ""),
        (Fault::Stall, "did not answer"),
        (Fault::Late(Duration::from_secs(30)), "did not answer"),
        (Fault::Forbidden, "credentials"),
        (Fault::Slow(1, Duration::from_millis(250)), "did not answer"),
    ] {
        (0..100).for_each(|_| server.fail("GET", fault));
        let began = Instant::now();
        let error = file.read(&[ALL]).map(drop).unwrap_err().to_string();
        assert!(
            error.starts_with("s3://b/x: cannot read 4000000 bytes at 0: ") && error.contains(expected),
            "{fault:?}: {error}"
        );
        assert!(began.elapsed() < Duration::from_secs(20), "{fault:?} took {:?}", began.elapsed());
        server.heal();
    }
    assert!(file.read(&[ALL]).is_ok());
}

#[test]
#[allow(clippy::single_range_in_vec_init, reason = "a read is a list of ranges")]
fn an_object_that_is_replaced_or_goes_is_noticed() {
    let server = Server::start().unwrap();
    server.put("b/x", &bytes(1, 5_000_000));
    let stores = session(&server, limits(), None);
    let file = open(&stores, "s3://b/x");
    file.read(&[ALL]).unwrap();
    server.put("b/x", &bytes(2, 5_000_000));
    let error = file.read(&[ALL]).map(drop).unwrap_err().to_string();
    assert!(error.contains("s3://b/x") && error.contains("replaced"), "{error}");
    server.remove("b/x");
    let error = file.read(&[ALL]).map(drop).unwrap_err();
    assert!(error.is_not_found(), "{error}");

    // In the middle of a body: the rest is asked for, of the same version.
    server.put("b/y", &bytes(3, 5_000_000));
    let file = open(&stores, "s3://b/y");
    server.fail("GET", Fault::Cut(1_000_000));
    server.latency(Duration::from_millis(200));
    server.asked();
    let request = Request { ranges: &[ALL], priority: Priority::Now, query_bytes: 0 };
    let reading = file.start(&request).unwrap().unwrap();
    while server.asked().iter().all(|asked| asked.method != "GET") {
        std::thread::sleep(Duration::from_millis(1));
    }
    server.put("b/y", &bytes(4, 5_000_000));
    let error = reading.wait().map(drop).unwrap_err().to_string();
    assert!(error.contains("replaced"), "{error}");
}

#[test]
#[allow(clippy::single_range_in_vec_init, reason = "a read is a list of ranges")]
fn a_late_request_is_sent_once_more() {
    let server = Server::start().unwrap();
    let object = bytes(1, 1_000_000);
    server.put("b/x", &object);
    let stores = session(&server, Limits::default(), None);
    let file = open(&stores, "s3://b/x");
    // As blocks are read, each by a request of its own.
    let block = |range: Range<u64>| {
        let request = Request { ranges: &[range], priority: Priority::Now, query_bytes: 0 };
        file.start(&request).unwrap().unwrap().wait().unwrap().remove(0)
    };
    (0..50).for_each(|i| drop(block(i * 1000..i * 1000 + 100)));
    let before = stores.traffic().hedged;
    server.fail("GET", Fault::Late(Duration::from_secs(5)));
    assert_eq!(block(500..600).as_slice(), &object[500..600]);
    assert!(stores.traffic().hedged > before);
}

#[test]
#[allow(clippy::single_range_in_vec_init, reason = "a read is a list of ranges")]
fn what_is_not_waited_for_any_more_is_not_fetched() {
    let server = Server::start().unwrap();
    server.put("b/x", &bytes(1, 50_000_000));
    let stores = session(&server, Limits { in_flight: 1, ..Limits::default() }, None);
    let file = open(&stores, "s3://b/x");
    server.asked();
    server.latency(Duration::from_millis(300));
    let ranges: Vec<Range<u64>> = (0..20).map(|i| i * 2_500_000..i * 2_500_000 + 100).collect();
    let request = Request { ranges: &ranges, priority: Priority::Now, query_bytes: 0 };
    drop(file.start(&request).unwrap());
    std::thread::sleep(Duration::from_millis(1500));
    let asked = server.asked().len();
    assert!(asked <= 2, "{asked}");
}

#[test]
fn a_store_that_is_not_there_is_an_error_soon() {
    let server = Server::start().unwrap();
    let stores = session(&server, limits(), None);
    drop(server);
    std::thread::sleep(Duration::from_millis(50));
    let began = Instant::now();
    let error = stores.find("s3://b/x").map(drop).unwrap_err().to_string();
    assert!(error.starts_with("s3://b/x: cannot open"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}
