//! Files that become objects.

use plinth_io::Objects;
use plinth_objects::server::{Fault, Server};
use plinth_objects::{Limits, ObjectStores};

use crate::{bytes, session};

fn put(stores: &ObjectStores, object: &[u8], url: &str, replace: bool) -> plinth_io::Result<()> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), object).unwrap();
    stores.upload(file.path(), url, replace)
}

#[test]
fn small_and_large_files_arrive_as_they_are_and_replace_nothing_unasked() {
    let server = Server::start().unwrap();
    let stores = session(&server, Limits::default(), None);
    for (name, len) in [("empty", 0), ("small", 1_000), ("edge", 16 << 20), ("large", (40 << 20) + 7)] {
        let (object, url) = (bytes(len as u64, len), format!("s3://b/{name}"));
        put(&stores, &object, &url, false).unwrap();
        assert!(server.get(&format!("b/{name}")).unwrap() == object, "{name}");
        let error = put(&stores, b"other", &url, false).unwrap_err().to_string();
        assert!(error.contains(&url) && error.contains("already exists"), "{error}");
        if len > 16 << 20 {
            let error = put(&stores, &object, &url, false).unwrap_err().to_string();
            assert!(error.contains("already exists"), "{error}");
        }
        put(&stores, b"other", &url, true).unwrap();
        assert_eq!(server.get(&format!("b/{name}")).unwrap(), b"other");
    }
    assert_eq!(server.uploads(), 0);
    assert!(put(&stores, b"x", "s3://b/folder/", false).is_err());
    assert!(put(&stores, b"x", "s3://b/*.x", false).is_err());
}

#[test]
fn of_two_writers_of_a_new_name_one_is_told() {
    let server = Server::start().unwrap();
    for round in 0..50 {
        let url = format!("s3://b/{round}");
        let write = |by: u8| {
            let stores = session(&server, Limits::default(), None);
            put(&stores, &[by; 100], &url, false).is_ok()
        };
        let (one, other) = std::thread::scope(|scope| {
            let one = scope.spawn(|| write(1));
            let other = write(2);
            (one.join().unwrap(), other)
        });
        assert!(one != other, "{round}");
        let stands = server.get(&format!("b/{round}")).unwrap();
        assert_eq!(stands, [if one { 1 } else { 2 }; 100]);
    }
}

#[test]
fn what_is_refused_for_the_moment_is_sent_again_and_what_fails_is_taken_back() {
    let server = Server::start().unwrap();
    let stores = session(&server, Limits { tries: 3, ..Limits::default() }, None);
    let object = bytes(1, 40 << 20);
    for fault in [Fault::Busy, Fault::Reset] {
        server.fail("PUT", fault);
        put(&stores, &object, "s3://b/x", true).unwrap();
        assert!(server.get("b/x").unwrap() == object);
        server.remove("b/x");
    }
    (0..100).for_each(|_| server.fail("PUT", Fault::Forbidden));
    for object in [&object[..], b"small"] {
        let error = put(&stores, object, "s3://b/x", true).unwrap_err().to_string();
        assert!(error.starts_with("s3://b/x: cannot write") && error.contains("credentials"), "{error}");
    }
    assert!(server.get("b/x").is_none());
    assert_eq!(server.uploads(), 0);
}
