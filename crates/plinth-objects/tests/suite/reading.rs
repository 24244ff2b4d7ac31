//! Objects that are read while nothing goes wrong.

use std::io::Read;
use std::ops::Range;
use std::time::Duration;

use plinth_core::random::Random;
use plinth_io::{Io, IoOptions, MemoryBudget, Objects, Priority, Request};
use plinth_objects::server::{Fault, Server};
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

#[test]
#[allow(clippy::single_range_in_vec_init, reason = "a read is a list of ranges")]
fn what_was_begun_ahead_is_not_asked_for_again_and_given_up_with_its_owner() {
    let server = Server::start().unwrap();
    let object = bytes(6, 30_000_000);
    server.put("b/x", &object);
    let stores = session(&server, Limits::default(), None);
    let file = open(&stores, "s3://b/x");
    let (one, two, three) = (0..70_000, 9_000_000..9_300_000, 20_000_000..20_000_001);
    server.asked();
    let ahead = file.prefetch(&[one.clone(), two.clone(), three.clone(), 5..5]);
    // By one who waits, by one who does not, twice, together with others.
    assert_eq!(file.read(std::slice::from_ref(&one)).unwrap()[0].as_slice(), of(&object, &one));
    assert_eq!(file.read(std::slice::from_ref(&one)).unwrap()[0].as_slice(), of(&object, &one));
    // The other two may be on their way still.
    let mut asked = server.asked().len();
    for _ in 0..1000 {
        if asked >= 3 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        asked += server.asked().len();
    }
    assert_eq!(asked, 3);
    let ranges = [two.clone(), 25_000_000..25_000_100, three.clone()];
    let request = Request { ranges: &ranges, priority: Priority::Now, query_bytes: 0 };
    let started = file.start(&request).unwrap().unwrap().wait().unwrap();
    for (range, buffer) in ranges.iter().zip(&started) {
        assert_eq!(buffer.as_slice(), of(&object, range));
    }
    assert_eq!(server.asked().len(), 1);
    drop(ahead);
    file.read(std::slice::from_ref(&one)).unwrap();
    assert_eq!(server.asked().len(), 1, "of what was given up nothing is kept");

    // What can't be read is no error before it is read.
    drop(file.prefetch(&[29_999_999..30_000_001]));
    // Memory that is not there leaves ranges out.
    let little = Io::new(&MemoryBudget::new(4 << 20), IoOptions::default());
    let small = stores.open(&crate::one(&stores, "s3://b/x"), &little).unwrap();
    let ranges: Vec<Range<u64>> = (0..30).map(|at| at * 1_000_000..(at + 1) * 1_000_000).collect();
    let ahead = small.prefetch(&ranges);
    for range in &ranges {
        assert_eq!(small.read(std::slice::from_ref(range)).unwrap()[0].as_slice(), of(&object, range));
    }
    drop(ahead);

    // An object that was replaced is noticed by the read.
    let file = open(&stores, "s3://b/x");
    server.put("b/x", &object);
    let _ahead = file.prefetch(std::slice::from_ref(&one));
    assert!(file.read(&[one]).unwrap_err().to_string().contains("replaced"));
}

#[test]
#[allow(clippy::single_range_in_vec_init, reason = "a read is a list of ranges")]
fn a_file_comes_with_its_end_when_it_is_looked_for_first() {
    let server = Server::start().unwrap();
    let object = bytes(7, 3_000_000);
    for (name, object) in [("b/x.plinth", &object[..]), ("b/small.plinth", &object[..100]), ("b/empty.plinth", b"")] {
        server.put(name, object);
        let stores = session(&server, Limits::default(), None);
        let len = object.len() as u64;
        let file = open(&stores, &format!("s3://{name}"));
        assert_eq!(file.byte_len(), len);
        if len > 0 {
            let end = len - len.min(32_768)..len;
            assert_eq!(file.read(std::slice::from_ref(&end)).unwrap()[0].as_slice(), of(object, &end));
            let asked = server.asked();
            assert_eq!(asked.len(), 1, "{asked:?}");
        }
        server.asked();
        // Its version alone is asked for the next time.
        assert_eq!(one(&stores, &format!("s3://{name}")).identity.len, len);
        let asked = server.asked();
        // Of an object without bytes there is no end.
        assert!(asked.len() == if len > 0 { 1 } else { 2 } && asked.iter().all(|asked| asked.bytes < 100), "{asked:?}");
    }
    let stores = session(&server, Limits::default(), None);
    assert!(stores.find("s3://b/none.plinth").unwrap_err().is_not_found());
}

#[test]
#[allow(clippy::single_range_in_vec_init, reason = "a read is a list of ranges")]
fn what_was_given_up_half_way_is_not_kept() {
    let server = Server::start().unwrap();
    let object = bytes(8, 3_000_000);
    server.put("b/x", &object);
    let folder = tempfile::tempdir().unwrap();
    let drive = DriveOptions { folder: folder.path().to_path_buf(), bytes: 1 << 30, at_once: true };
    let stores = session(&server, Limits::default(), Some(drive));
    let file = open(&stores, "s3://b/x");
    server.fail("GET", Fault::Slow(10_000, Duration::from_millis(5)));
    let range = 0..2_000_000;
    let ahead = file.prefetch(std::slice::from_ref(&range));
    std::thread::sleep(Duration::from_millis(60));
    drop(ahead);
    std::thread::sleep(Duration::from_millis(200));
    server.heal();
    for _ in 0..2 {
        assert!(file.read(std::slice::from_ref(&range)).unwrap()[0].as_slice() == of(&object, &range));
        std::thread::sleep(Duration::from_millis(200));
    }
}
