//! Objects as they are found and read, from a server that fails on demand.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

mod faults;
mod finding;
mod reading;
mod writing;

use plinth_io::{Io, IoOptions, MemoryBudget, Object, Objects, Source};
use plinth_objects::server::Server;
use plinth_objects::{DriveOptions, Kind, Limits, ObjectStores, ObjectStoresOptions, Secret};

/// Memory of reads for one test.
fn memory() -> Io {
    Io::new(&MemoryBudget::new(256 << 20), IoOptions::default())
}

/// A session that knows a server as `s3://`.
fn session(server: &Server, limits: Limits, drive: Option<DriveOptions>) -> ObjectStores {
    let stores = ObjectStores::new(ObjectStoresOptions { limits, drive, io: Some(memory()) });
    let mut secret = Secret::new("test", Kind::S3);
    let endpoint = server.endpoint();
    for (setting, value) in
        [("key_id", "test-key"), ("secret", "hush"), ("region", "eu-test-1"), ("endpoint", endpoint.as_str())]
    {
        secret.set(setting, value).unwrap();
    }
    assert!(stores.secrets().add(secret, false));
    stores
}

fn one(stores: &ObjectStores, url: &str) -> Object {
    let mut found = stores.find(url).unwrap();
    assert_eq!(found.len(), 1);
    found.remove(0)
}

fn open(stores: &ObjectStores, url: &str) -> std::sync::Arc<dyn Source> {
    stores.open(&one(stores, url), &memory()).unwrap()
}

/// Bytes that are not alike.
fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    plinth_core::random::Random(seed).fill(&mut bytes);
    bytes
}
