//! Queries over several processes.
//!
//! A [`Worker`] listens and runs parts of the plans of others; a [`Cluster`] spreads the queries of a session over workers. Plans are divided, and rows
//! moved, by `datafusion-distributed`; what is here is how scans of Plinth files travel, which worker reads what, who may come in, and
//! what a worker makes of the parts that it is sent: its own rules put native operators into them.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use plinth_cluster::{Cluster, ClusterOptions, Credentials};
//! use plinth_sql::{Connection, SessionOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let workers = vec!["127.0.0.1:8816".to_owned(), "127.0.0.1:8817".to_owned()];
//! let credentials = Credentials { token: Some("correct-horse-battery-staple".to_owned()), ..Credentials::default() };
//! let cluster = Cluster::new(ClusterOptions { credentials, ..ClusterOptions::new(workers) })?;
//! let options = SessionOptions { spread: Some(Arc::new(cluster)), ..SessionOptions::default() };
//! let mut connection = Connection::open(&options)?;
//! for batch in connection.query("SELECT count(*) FROM '/shared/hits.plinth'")? {
//!     println!("{:?}", batch?);
//! }
//! # Ok(())
//! # }
//! ```

mod bridge;
mod check;
mod cluster;
mod codec;
mod deal;
mod error;
mod fragment;
mod net;
mod reach;
mod route;
mod stages;
mod states;
mod told;
mod version;
mod whole;
mod wire;
mod worker;
mod workers;

pub use cluster::{Cluster, ClusterOptions};
pub use error::ClusterError;
pub use reach::Reach;
pub use version::VERSION;
pub use worker::{Worker, WorkerOptions};
pub use workers::Credentials;
