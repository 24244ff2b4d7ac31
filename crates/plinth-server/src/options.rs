//! How a server is set up.

use std::path::PathBuf;
use std::time::Duration;

use plinth_io::IoOptions;

use crate::log::Log;
use crate::tls::Tls;
use crate::users::Users;

/// What a server has, and whom it lets in.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The folder whose tables it serves.
    pub db: PathBuf,
    /// Who may come in.
    pub users: Users,
    /// A certificate and its key; without, connections are in plain text.
    pub tls: Option<Tls>,
    /// Whether plain text may be spoken beyond this machine.
    pub plaintext_anywhere: bool,
    /// A folder below which users may read files, and those that write may write them. None by default.
    pub root: Option<PathBuf>,
    /// Where clients of PostgreSQL's protocol are listened for: an address and a port of its own.
    pub postgres: Option<String>,
    /// Bytes that all sessions use together at most.
    pub memory: u64,
    /// Threads of all statements together.
    pub threads: usize,
    /// How blocks are read.
    pub io: IoOptions,
    /// Bytes that the process holds, where its allocator counts them.
    pub allocated: Option<fn() -> u64>,
    /// Whether each query is profiled, for the page.
    pub profile: bool,
    /// What may be asked for.
    pub limits: Limits,
    /// Where events are written to.
    pub log: Log,
}

impl ServerOptions {
    /// The tables of a folder for users, with all else by default.
    pub fn new(db: PathBuf, users: Users) -> Self {
        Self {
            db,
            users,
            tls: None,
            plaintext_anywhere: false,
            root: None,
            postgres: None,
            memory: plinth_io::default_memory(),
            threads: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            io: IoOptions::default(),
            allocated: None,
            profile: false,
            limits: Limits::default(),
            log: Log::default(),
        }
    }
}

/// What clients may ask for. Whatever is beyond is refused with a sentence, but for statements, which wait for their turn.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Statements that run at once.
    pub statements: usize,
    /// Statements that wait for their turn.
    pub waiting: usize,
    /// Statements of one session at once, those that wait among them.
    pub statements_of_session: usize,
    /// Sessions, each transaction's own among them.
    pub sessions: usize,
    /// Connections.
    pub connections: usize,
    /// Bytes that the operators of one session use at most; a quarter of the memory if not said.
    pub session_memory: Option<u64>,
    /// How long a statement may take, from its arrival to its last row.
    pub statement_time: Duration,
    /// How long a client may leave rows that are ready, before their statement is given up.
    pub stalled: Duration,
    /// How long a session may have nothing to do, if it is none of a connection.
    pub idle: Duration,
    /// How long rows may wait to be fetched for the first time.
    pub ticket: Duration,
    /// How long a connection may take to come in: TLS, and the first request with a token.
    pub handshake: Duration,
    /// Wrong tokens of one address in a minute, before its new connections are refused unheard.
    pub refusals: u32,
    /// Bytes of a message.
    pub message_bytes: usize,
    /// Bytes of a statement's text.
    pub statement_bytes: usize,
    /// How long statements may go on once the server is to end.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            statements: (2 * threads).max(4),
            waiting: 1000,
            statements_of_session: 16,
            sessions: 1000,
            connections: 2000,
            session_memory: None,
            statement_time: Duration::from_secs(3600),
            stalled: Duration::from_secs(300),
            idle: Duration::from_secs(1800),
            ticket: Duration::from_secs(300),
            handshake: Duration::from_secs(10),
            refusals: 60,
            message_bytes: 64 << 20,
            statement_bytes: 1 << 20,
            grace: Duration::from_secs(30),
        }
    }
}
