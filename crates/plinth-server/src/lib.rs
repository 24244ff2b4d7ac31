//! The tables of a folder for clients elsewhere: Arrow Flight SQL and a page that shows what runs, on one port, and PostgreSQL's protocol on
//! another.
//!
//! A [`Server`] has users, limits and the engine of reads; a client's session is a session of `plinth-sql` over the one set of tables that
//! all of them write to. A statement waits for its turn, runs, and hands its rows over as the client takes them; letting go of the
//! rows ends the statement. No one comes in without a token: the place is `entry`, before any message is decoded.
//!
//! ```no_run
//! use plinth_server::{Server, ServerOptions, Users};
//!
//! # async fn serve() -> Result<(), plinth_server::ServerError> {
//! let users = Users::read_file("tokens".as_ref())?;
//! let server = Server::bind(ServerOptions::new("tables".into(), users), "127.0.0.1:8815").await?;
//! println!("{}", server.address());
//! server.run(std::future::pending()).await;
//! # Ok(())
//! # }
//! ```

mod connection;
mod door;
mod encode;
mod engine;
mod entry;
mod failure;
mod feed;
mod flight;
mod guarded;
mod handles;
mod janitor;
mod log;
mod options;
mod pages;
mod port;
mod postgres;
mod queue;
mod random;
mod refusals;
mod server;
mod session;
mod statement;
mod taken;
mod tls;
mod users;

pub use failure::ServerError;
pub use guarded::{GuardedPort, PortOptions};
pub use log::Log;
pub use options::{Limits, ServerOptions};
pub use server::Server;
pub use tls::Tls;
pub use users::{Role, User, Users};
