//! Objects that are read while nothing goes wrong.

use std::io::Read;
use std::ops::Range;
use std::time::Duration;

use plinth_core::random::Random;
use plinth_io::{Objects, Priority, Request};
use plinth_objects::server::Server;
use plinth_objects::{DriveOptions, Limits};

use crate::{bytes, one, open, session};

fn of<'a>(object: &'a [u8], range: &Range<u64>) -> &'a [u8] {
    &object[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()]
}

#[test]
fn any_ranges_come_as_they_are_in_the_object() {
    let server = Server::start().unwrap();
    let object = bytes(1, 20_000_000);
    server.put("b/x", &object);
    let stores = session(&server, Limits { in_flight: 3, ..Limits::default() }, None);
    let file = open(&stores, "s3://b/x");
    assert!(file.is_far() && file.byte_len() == 20_000_000);
    let mut random = Random(5);
    for _ in 0..40 {
        let range = |_| {
            let start = random.below(20_000_000);
            start..start + random.below((20_000_000 - start).min(3_000_000) + 1)
        };
        let ranges: Vec<Range<u64>> = (0..6).map(range).collect();
        let read = file.read(&ranges).unwrap();
        let request = Request { ranges: &ranges, priority: Priority::Now, query_bytes: 0 };
        let started = file.start(&request).unwrap().unwrap().wait().unwrap();
        for buffers in [read, started] {
            for (range, buffer) in ranges.iter().zip(&buffers) {
                assert_eq!(buffer.as_slice(), of(&object, range));
                assert!(
                    buffer.is_empty() || buffer.as_ptr() as usize % 64 == usize::try_from(range.start % 64).unwrap()
                );
            }
        }
    }
    let past = 19_999_999..20_000_001;
    assert!(file.read(&[past]).unwrap_err().to_string().contains("beyond its end"));
}

#[test]
#[allow(clippy::single_range_in_vec_init, reason = "a read is a list of ranges")]
fn what_lies_close_is_one_request_and_the_end_is_read_once() {
    let server = Server::start().unwrap();
    let object = bytes(2, 10_000_000);
    server.put("b/x", &object);
    let stores = session(&server, Limits::default(), None);
    let file = open(&stores, "s3://b/x");
    server.asked();
    file.read(&[1000..2000, 3000..4000, 2000..2500, 50_000..60_000]).unwrap();
    let asked = server.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0].range.as_deref(), Some("bytes=1000-59999"));
    file.read(&[0..1000, 9_000_000..9_001_000]).unwrap();
    assert_eq!(server.asked().len(), 2);
    // As a file is opened: its last bytes, then what stands before them.
    file.read(&[9_990_000..10_000_000]).unwrap();
    file.read(&[9_900_000..9_950_000]).unwrap();
    file.read(&[9_999_000..10_000_000]).unwrap();
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn a_stream_is_the_object_from_its_beginning() {
    let server = Server::start().unwrap();
    let object = bytes(3, 30_000_001);
    server.put("b/x", &object);
    server.put("b/empty", b"");
    let stores = session(&server, Limits::default(), None);
    let mut whole = Vec::new();
    stores.stream(&one(&stores, "s3://b/x")).unwrap().read_to_end(&mut whole).unwrap();
    assert!(whole == object);
    whole.clear();
    stores.stream(&one(&stores, "s3://b/empty")).unwrap().read_to_end(&mut whole).unwrap();
    assert!(whole.is_empty());
    // One that is not read on does not fetch on.
    server.asked();
    let mut stream = stores.stream(&one(&stores, "s3://b/x")).unwrap();
    stream.read_exact(&mut [0; 100]).unwrap();
    drop(stream);
    std::thread::sleep(Duration::from_millis(100));
    assert!(server.asked().len() <= 6);
}

#[test]
#[allow(clippy::single_range_in_vec_init, reason = "a read is a list of ranges")]
fn what_was_asked_for_twice_comes_from_the_drive_then() {
    let server = Server::start().unwrap();
    let object = bytes(4, 3_000_000);
    server.put("b/x", &object);
    let folder = tempfile::tempdir().unwrap();
    let drive = || Some(DriveOptions { folder: folder.path().to_path_buf(), bytes: 1 << 30, at_once: false });
    let ranges = [5000..300_000, 1_000_000..1_000_100, 2_000_000..2_500_000];
    for time in 0..4 {
        // Each time as a process of its own.
        let stores = session(&server, Limits::default(), drive());
        let file = open(&stores, "s3://b/x");
        server.asked();
        for (range, buffer) in ranges.iter().zip(file.read(&ranges).unwrap()) {
            assert_eq!(buffer.as_slice(), of(&object, range));
        }
        let traffic = stores.traffic();
        assert_eq!(server.asked().is_empty(), time >= 2, "{time}: {traffic:?}");
        assert_eq!(traffic.drive_hits, if time >= 2 { 3 } else { 0 });
        // What is kept is written behind the answer.
        std::thread::sleep(Duration::from_millis(300));
    }
    // Other bytes of the same name are other bytes.
    let other = bytes(9, 3_000_000);
    server.put("b/x", &other);
    let stores = session(&server, Limits::default(), drive());
    let read = open(&stores, "s3://b/x").read(&[5000..300_000]).unwrap();
    assert_eq!(read[0].as_slice(), of(&other, &(5000..300_000)));
}

#[test]
#[allow(clippy::single_range_in_vec_init, reason = "a read is a list of ranges")]
fn a_hundred_gigabytes_cost_what_is_read_of_them() {
    let server = Server::start().unwrap();
    server.put_sparse("b/huge", [(50 << 30, bytes(1, 1000).into())].into(), 100 << 30);
    let stores = session(&server, Limits::default(), None);
    let file = open(&stores, "s3://b/huge");
    let at = 50 << 30;
    assert_eq!(file.read(&[at..at + 1000]).unwrap()[0].as_slice(), bytes(1, 1000));
    let traffic = stores.traffic();
    assert_eq!((traffic.requests, traffic.bytes), (2, 1000));
}
