//! Arguments of `plinth serve`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use plinth_server::Limits;

use super::entry::EntryArgs;
use super::io::IoArgs;
use super::limits::LimitArgs;
use super::values::check_folder;
use crate::units::parse_bytes;

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Address and port to listen at; port 0 is one that is free
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8815")]
    pub(crate) listen: String,
    /// Address and port for clients of PostgreSQL's protocol, such as psql [default: none]
    #[arg(long, value_name = "ADDR")]
    pub(crate) postgres: Option<String>,
    /// Folder whose tables are served
    #[arg(long, value_name = "DIR", value_parser = PathBufValueParser::new().try_map(check_folder))]
    pub(crate) db: PathBuf,
    #[command(flatten)]
    pub(crate) entry: EntryArgs,
    /// Folder below which users may name files in SQL; relative paths begin there [default: no file can be named]
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Statements that run at once; others wait [default: two for each thread, at least 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    statements: Option<u32>,
    /// Sessions, and transactions that are open, at most
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    sessions: u32,
    /// Seconds that a statement may take, from its arrival to its last row
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, value_parser = clap::value_parser!(u32).range(1..))]
    statement_seconds: u32,
    /// Seconds after which a session without anything to do is closed
    #[arg(long, value_name = "SECONDS", default_value_t = 1800, value_parser = clap::value_parser!(u32).range(1..))]
    idle_seconds: u32,
    /// Seconds that statements may go on once the server is to end
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    grace_seconds: u32,
    /// Memory that one session may use [default: a quarter of --memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    session_memory: Option<u64>,
    /// Profile every query, for the page
    #[arg(long)]
    pub(crate) profile: bool,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) io: IoArgs,
}

impl ServeArgs {
    /// What clients may ask for.
    pub(crate) fn limits_of_clients(&self) -> Limits {
        let seconds = |seconds: u32| Duration::from_secs(seconds.into());
        let many = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
        let statements = self.statements.map_or_else(|| (2 * self.limits.threads()).max(4), many);
        Limits {
            statements,
            sessions: many(self.sessions),
            statement_time: seconds(self.statement_seconds),
            idle: seconds(self.idle_seconds),
            grace: seconds(self.grace_seconds),
            session_memory: self.session_memory,
            ..Limits::default()
        }
    }
}
