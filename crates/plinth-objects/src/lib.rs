//! Objects of S3, Google Cloud Storage, Azure and web servers, as files that can be read.
//!
//! [`ObjectStores`] leads from a URL to a client of its store, with the [secrets](Secrets) and the environment of the process.
//! What is read of an object goes one way ([`ObjectFile`]): ranges that lie close to each other are one request, as far as
//! a request costs more than the bytes between them; many requests are under way; one that is late is asked once more; one
//! that breaks off goes on where it was. Each asks for the bytes of the object that was listed, so that another that took
//! its name is noticed. What was read twice stays on the local drive ([`DriveCache`]).
//!
//! The crate below is `object_store`; its futures run on threads of this crate's own, and callers wait for them as they
//! wait for a drive.

mod ahead;
mod connect;
mod connected;
mod counters;
mod drive;
mod ends;
mod error;
mod fetch;
mod file;
mod find;
mod pace;
mod probe;
mod profiles;
mod promised;
mod renewed;
mod runtime;
mod secrets;
#[cfg(any(test, feature = "server"))]
pub mod server;
mod small;
mod stores;
mod stream;
mod target;
mod upload;
mod url;

pub use connected::Connected;
pub use counters::{Counters, Traffic};
pub use drive::{DriveCache, DriveOptions};
pub use file::ObjectFile;
pub use pace::{Limits, Pace};
pub use probe::{StoreFindings, StorePlan, StoreRow};
pub use secrets::{Kind, Secret, Secrets};
pub use stores::{ObjectStores, ObjectStoresOptions};
pub use url::{ObjectUrl, Scheme};
