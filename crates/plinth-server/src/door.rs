//! What all connections lead to: users, sessions, statements and their turns.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::Bytes;
use plinth_core::sync::lock;
use plinth_profile::{Profile, Profiler};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

use crate::engine::{Engine, Host};
use crate::failure::{ServerError, internal};
use crate::handles::Handles;
use crate::log::Log;
use crate::options::{Limits, ServerOptions};
use crate::queue::Queue;
use crate::random::{self, Digest, digest};
use crate::refusals::Refusals;
use crate::session::Session;
use crate::statement::{Phase, Statement, Why};
use crate::users::{User, Users};

/// Profiles that are kept to be shown.
const PROFILES: usize = 20;

/// The state of a server.
pub(crate) struct Door {
    pub(crate) host: Arc<Host>,
    pub(crate) users: Users,
    pub(crate) limits: Limits,
    pub(crate) log: Log,
    pub(crate) handles: Handles,
    pub(crate) queue: Queue,
    pub(crate) refusals: Refusals,
    pub(crate) begun: Instant,
    /// What keys of forms are made of.
    secret: [u8; 32],
    profiles_all: bool,
    threads: usize,
    sessions: Mutex<BTreeMap<u64, Arc<Session>>>,
    /// Sessions that are named by a token of their own.
    by_token: Mutex<HashMap<Digest, Arc<Session>>>,
    numbers: AtomicU64,
    statements: AtomicU64,
    /// For sessions and transactions.
    places: Arc<Semaphore>,
    closing: AtomicBool,
    profiles: Mutex<VecDeque<Arc<Profiled>>>,
}

/// The profile of a statement that is over.
pub(crate) struct Profiled {
    pub(crate) number: u64,
    pub(crate) user: Arc<User>,
    pub(crate) profile: Profile,
}

/// A statement while it waits or runs. Dropping it tells how it ended.
pub(crate) struct Running {
    pub(crate) door: Arc<Door>,
    pub(crate) statement: Arc<Statement>,
    session: Arc<Session>,
    profiler: Profiler,
    /// The ticket of its rows.
    ticket: Option<Bytes>,
    outcome: Option<&'static str>,
}

impl Running {
    /// Says how it ended.
    pub(crate) fn ended<T>(&mut self, result: &Result<T, Status>) {
        self.outcome = Some(match result {
            Ok(_) => "done",
            Err(status) => word(status.code()),
        });
    }

    /// Says that it was planned, and is to run once its rows are fetched.
    pub(crate) fn planned(&mut self) {
        self.outcome = Some("planned");
    }

    /// Says by which ticket its rows are fetched.
    pub(crate) fn fetched_by(&mut self, ticket: Bytes) {
        self.door.handles.fetched(&ticket, &self.session, &self.statement);
        self.ticket = Some(ticket);
    }

    pub(crate) fn profiled_by(&mut self, profiler: Profiler) {
        self.profiler = profiler;
    }
}

/// A status in a word.
fn word(code: tonic::Code) -> &'static str {
    match code {
        tonic::Code::Cancelled => "cancelled",
        tonic::Code::DeadlineExceeded => "out-of-time",
        tonic::Code::ResourceExhausted => "refused",
        tonic::Code::PermissionDenied => "denied",
        tonic::Code::Unavailable => "closing",
        tonic::Code::Internal => "internal",
        _ => "failed",
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let (door, statement) = (&self.door, &self.statement);
        if self.outcome.is_none() {
            // The client let go of it.
            statement.stop(Why::Cancelled);
        }
        if self.profiler.is_recording()
            && let Some(profile) = statement.engine.session.profiled(&self.profiler)
        {
            let user = Arc::clone(&statement.user);
            let mut profiles = lock(&door.profiles);
            profiles.truncate(PROFILES - 1);
            profiles.push_front(Arc::new(Profiled { number: statement.number, user, profile }));
        }
        if let Some(ticket) = &self.ticket {
            door.handles.forget(ticket);
        }
        self.session.remove(statement);
        statement.engine.count(false);
        door.log.event(format_args!(
            "statement={} session={} user={} kind={} state={} rows={} ms={}",
            statement.number,
            self.session.number,
            statement.user.name(),
            statement.kind,
            self.outcome.unwrap_or("abandoned"),
            statement.rows.load(Ordering::Relaxed),
            statement.begun.elapsed().as_millis(),
        ));
    }
}

impl Door {
    pub(crate) fn open(options: ServerOptions) -> Result<Self, ServerError> {
        Ok(Self {
            host: Arc::new(Host::open(&options)?),
            places: Arc::new(Semaphore::new(options.limits.sessions.clamp(1, Semaphore::MAX_PERMITS))),
            queue: Queue::new(options.limits.statements, options.limits.waiting),
            refusals: Refusals::default(),
            threads: options.threads,
            profiles_all: options.profile,
            users: options.users,
            limits: options.limits,
            log: options.log,
            handles: Handles::default(),
            begun: Instant::now(),
            secret: random::bytes()?,
            sessions: Mutex::default(),
            by_token: Mutex::default(),
            numbers: AtomicU64::new(0),
            statements: AtomicU64::new(0),
            closing: AtomicBool::new(false),
            profiles: Mutex::default(),
        })
    }

    /// The key that forms of a user's pages have, without which they do nothing: a page of another place does not know it.
    pub(crate) fn form_key(&self, user: &User) -> String {
        let mut of = self.secret.to_vec();
        of.extend_from_slice(user.name().as_bytes());
        random::hex(&digest(&of))
    }

    fn refuse_if_closing(&self) -> Result<(), Status> {
        if self.is_closing() { Err(Why::Closing.status()) } else { Ok(()) }
    }

    /// Opens a session for a user.
    pub(crate) async fn session(
        &self,
        user: &Arc<User>,
        is_of_connection: bool,
        from: SocketAddr,
    ) -> Result<Arc<Session>, Status> {
        self.refuse_if_closing()?;
        let place = self.place()?;
        let number = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let engine = self.host.engine(format!("session {number} ({})", user.name()), user.role()).await?;
        let session = Arc::new(Session::new(number, Arc::clone(user), engine, is_of_connection, place));
        lock(&self.sessions).insert(number, Arc::clone(&session));
        self.log.event(format_args!(
            "session={number} user={} role={} from={from} state=open",
            user.name(),
            user.role()
        ));
        Ok(session)
    }

    /// A place for a session or a transaction, which it has as long as what this returns.
    fn place(&self) -> Result<OwnedSemaphorePermit, Status> {
        Arc::clone(&self.places).try_acquire_owned().map_err(|_| {
            Status::resource_exhausted(format!(
                "there are {} sessions and transactions, which is the limit here: try again later",
                self.limits.sessions
            ))
        })
    }

    /// Gives a session a token of its own.
    pub(crate) fn name(&self, session: &Arc<Session>) -> Result<String, Status> {
        let token = random::text().map_err(internal)?;
        lock(&self.by_token).insert(digest(token.as_bytes()), Arc::clone(session));
        Ok(token)
    }

    /// The session that a token names.
    pub(crate) fn of_token(&self, token: &str) -> Option<Arc<Session>> {
        // A table of hashes: how long it takes tells nothing of the tokens.
        let session = lock(&self.by_token).get(&digest(token.as_bytes())).map(Arc::clone);
        session.filter(|session| !session.has_ended())
    }

    /// Ends a session, and all that is its.
    pub(crate) fn end(&self, session: &Arc<Session>, why: Why) {
        if !session.end(why) {
            return;
        }
        lock(&self.sessions).remove(&session.number);
        lock(&self.by_token).retain(|_, other| other.number != session.number);
        self.handles.sweep(self.limits.ticket);
        self.log.event(format_args!(
            "session={} user={} state=closed statements={}",
            session.number,
            session.user.name(),
            session.count()
        ));
    }

    pub(crate) fn sessions(&self) -> Vec<Arc<Session>> {
        lock(&self.sessions).values().map(Arc::clone).collect()
    }

    /// A session of SQL for a transaction, and its place.
    pub(crate) async fn transaction(&self, session: &Session) -> Result<(Arc<Engine>, OwnedSemaphorePermit), Status> {
        self.refuse_if_closing()?;
        let place = self.place()?;
        let name = format!("session {} ({}), transaction", session.number, session.user.name());
        Ok((self.host.engine(name, session.user.role()).await?, place))
    }

    /// Waits for the turn of a statement.
    ///
    /// # Errors
    /// If the session has too many, or too many wait; if it is stopped before its turn comes.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        session: &Arc<Session>,
        engine: &Arc<Engine>,
        text: &str,
    ) -> Result<(Running, OwnedSemaphorePermit), Status> {
        self.refuse_if_closing()?;
        let number = self.statements.fetch_add(1, Ordering::Relaxed) + 1;
        let (user, by) = (Arc::clone(&session.user), Arc::clone(engine));
        let statement = Arc::new(Statement::new(number, user, by, text, self.limits.statement_time));
        let most = self.limits.statements_of_session;
        if !session.add(&statement, most) {
            return Err(match session.has_ended() {
                true => Why::Ended.status(),
                false => Status::resource_exhausted(format!(
                    "the session has {most} statements that wait or run, which is the limit here: wait for one, or cancel it"
                )),
            });
        }
        engine.count(true);
        let mut running = Running {
            door: Arc::clone(self),
            statement,
            session: Arc::clone(session),
            profiler: Profiler::off(),
            ticket: None,
            outcome: None,
        };
        let turn = running.statement.unless_stopped(self.queue.turn()).await;
        if turn.is_err() {
            running.ended(&turn);
        }
        let turn = turn?;
        running.statement.enter(Phase::Runs);
        Ok((running, turn))
    }

    /// What records a statement, if that is wanted.
    pub(crate) fn profiler(&self, engine: &Engine, statement: &plinth_sql::Statement, text: &str) -> Profiler {
        let asked = engine.session.profiler(statement);
        if asked.is_recording() || !self.profiles_all {
            return asked;
        }
        let options = plinth_profile::ProfilerOptions {
            title: text.to_owned(),
            threads: self.threads,
            ..plinth_profile::ProfilerOptions::default()
        };
        Profiler::start(options)
    }

    /// The last profiles of statements that are a user's business, the latest first.
    pub(crate) fn profiles(&self, user: &User) -> Vec<Arc<Profiled>> {
        lock(&self.profiles).iter().filter(|profiled| user.may_manage(&profiled.user)).map(Arc::clone).collect()
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// No statement and no session comes in from now on.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }

    /// Statements that wait or run.
    pub(crate) fn running(&self) -> usize {
        self.sessions().iter().map(|session| session.statements().len()).sum()
    }
}
