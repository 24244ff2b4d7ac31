//! What URLs name.

use plinth_io::Objects;
use plinth_objects::server::{Fault, Server};
use plinth_objects::{Kind, Limits, ObjectStores, ObjectStoresOptions, Secret};

use crate::session;

fn names(stores: &ObjectStores, url: &str) -> Vec<String> {
    stores.find(url).unwrap().into_iter().map(|object| object.url.replace("s3://b/", "")).collect()
}

#[test]
fn one_a_prefix_or_a_pattern() {
    let server = Server::start().unwrap();
    for name in [
        "b/a.csv",
        "b/d/1.csv",
        "b/d/2.csv",
        "b/d/10.plinth",
        "b/d/_tmp.csv",
        "b/d/.x.csv",
        "b/d/e/3.csv",
        "b/d/e/",
        "c/a.csv",
        "b/with space & <more>/ü.csv",
    ] {
        server.put(name, if name.ends_with('/') { b"" } else { name.as_bytes() });
    }
    let stores = session(&server, Limits::default(), None);
    assert_eq!(names(&stores, "s3://b/a.csv"), ["a.csv"]);
    assert_eq!(names(&stores, "s3://b/with space & <more>/ü.csv"), ["with space & <more>/ü.csv"]);
    assert_eq!(names(&stores, "s3://b/with*/*.csv"), ["with space & <more>/ü.csv"]);
    assert_eq!(names(&stores, "s3://b/d/*.csv"), ["d/1.csv", "d/2.csv", "d/_tmp.csv"]);
    assert_eq!(names(&stores, "s3://b/d/**/[0-9].csv"), ["d/1.csv", "d/2.csv", "d/e/3.csv"]);
    assert_eq!(names(&stores, "s3://b/*/[12].csv"), ["d/1.csv", "d/2.csv"]);
    assert_eq!(names(&stores, "s3://b/d/"), ["d/1.csv", "d/10.plinth", "d/2.csv", "d/e/3.csv"]);
    assert_eq!(names(&stores, "s3://b/none/"), [""; 0]);
    assert_eq!(names(&stores, "s3://b/*.none"), [""; 0]);

    let error = stores.find("s3://b/none.csv").unwrap_err();
    assert!(error.is_not_found() && error.to_string().contains("s3://b/none.csv"), "{error}");
    for url in ["s3://b/[", "https://127.0.0.1:1/x/*.csv"] {
        let error = stores.find(url).unwrap_err().to_string();
        assert!(error.starts_with(url), "{error}");
    }
}

#[test]
fn many_names_come_in_pages() {
    let server = Server::start().unwrap();
    for i in 0..2_345 {
        server.put(&format!("b/many/{i:05}.plinth"), b"x");
    }
    let stores = session(&server, Limits::default(), None);
    let found = stores.find("s3://b/many/*.plinth").unwrap();
    assert_eq!(found.len(), 2_345);
    assert!(found.is_sorted_by(|a, b| a.url < b.url));
    assert_eq!(server.asked().len(), 3);
    assert_eq!(stores.traffic().requests, 3);
}

#[test]
fn keys_are_asked_with_and_never_shown() {
    let server = Server::start().unwrap();
    server.put("b/x", b"x");
    server.require("right-key");
    let stores = session(&server, Limits::default(), None);
    let error = stores.find("s3://b/x").unwrap_err().to_string();
    assert!(error.contains("credentials") && !error.contains("hush"), "{error}");
    // Another secret holds from the next statement on.
    let mut secret = Secret::new("of bucket", Kind::S3);
    let endpoint = server.endpoint();
    for (setting, value) in
        [("key_id", "right-key"), ("secret", "hush"), ("region", "eu-test-1"), ("endpoint", endpoint.as_str())]
    {
        secret.set(setting, value).unwrap();
    }
    secret.scope("s3://b").unwrap();
    assert!(stores.secrets().add(secret, false));
    assert_eq!(stores.find("s3://b/x").unwrap().len(), 1);
    assert!(!format!("{stores:?}").contains("hush"));

    server.fail("HEAD", Fault::Forbidden);
    let error = stores.find("s3://b/x").unwrap_err().to_string();
    assert!(error.contains("s3://b/x") && error.contains("credentials"), "{error}");
}

#[test]
fn a_secret_without_its_half_is_refused() {
    let stores = ObjectStores::new(ObjectStoresOptions::default());
    let mut secret = Secret::new("half", Kind::S3);
    secret.set("key_id", "a").unwrap();
    stores.secrets().add(secret, false);
    let error = stores.find("s3://b/x").unwrap_err().to_string();
    assert!(error.contains("SECRET"), "{error}");
}
