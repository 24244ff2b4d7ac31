//! What clients hold by random names: rows to be fetched, prepared statements, transactions. Each belongs to the session that made it, and
//! is given to its user alone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use plinth_core::sync::lock;
use plinth_profile::Profiler;
use plinth_sql::{KeptPlan, Statement as Parsed};
use tokio::sync::OwnedSemaphorePermit;
use tonic::Status;

use crate::engine::{Begun, Engine};
use crate::failure::internal;
use crate::feed::Each;
use crate::random;
use crate::session::Session;
use crate::statement::Statement;
use crate::users::User;

/// What a client holds.
pub(crate) enum Held {
    /// Rows that wait to be fetched.
    Ticket(Box<Waiting>),
    /// Rows that are being fetched.
    Fetched(std::sync::Weak<Statement>),
    Prepared(Arc<Prepared>),
    Transaction {
        engine: Arc<Engine>,
        _place: OwnedSemaphorePermit,
    },
}

/// Rows that wait to be fetched.
pub(crate) struct Waiting {
    pub(crate) engine: Arc<Engine>,
    pub(crate) begun: Begun,
    /// The columns as they are sent.
    pub(crate) schema: SchemaRef,
    pub(crate) text: String,
    /// The query once more for each of these values.
    pub(crate) each: Option<Each>,
    /// What records it.
    pub(crate) profiler: Profiler,
}

/// A statement that is run several times, with values.
pub(crate) struct Prepared {
    pub(crate) statement: Parsed,
    pub(crate) places: usize,
    pub(crate) text: String,
    /// What it is part of.
    pub(crate) engine: Arc<Engine>,
    pub(crate) bound: Mutex<Vec<RecordBatch>>,
    /// From one run to the next.
    pub(crate) plan: Arc<KeptPlan>,
}

struct Entry {
    session: Arc<Session>,
    made: Instant,
    held: Held,
}

impl Entry {
    fn new(session: &Arc<Session>, held: Held) -> Self {
        session.hold(true);
        Self { session: Arc::clone(session), made: Instant::now(), held }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.session.hold(false);
    }
}

/// Most of them that a session has.
const MOST: usize = 1000;

/// All of a server.
#[derive(Default)]
pub(crate) struct Handles(Mutex<HashMap<Bytes, Entry>>);

fn unknown(what: &str) -> Status {
    Status::not_found(format!("there is no such {what}: it is another user's, was ended, has expired, or never was"))
}

impl Handles {
    /// Keeps something: the name it has from now on.
    pub(crate) fn keep(&self, session: &Arc<Session>, held: Held) -> Result<Bytes, Status> {
        if session.holds() >= MOST {
            return Err(Status::resource_exhausted(format!(
                "the session holds {MOST} tickets, prepared statements and transactions: fetch, close or end some"
            )));
        }
        let name = Bytes::copy_from_slice(&random::bytes().map_err(internal)?);
        lock(&self.0).insert(name.clone(), Entry::new(session, held));
        Ok(name)
    }

    fn with<T>(
        &self,
        name: &[u8],
        user: &User,
        what: &str,
        get: impl FnOnce(&mut Entry) -> Option<T>,
    ) -> Result<T, Status> {
        let mut all = lock(&self.0);
        let entry = all.get_mut(name).filter(|entry| entry.session.user.name() == user.name());
        entry.and_then(get).ok_or_else(|| unknown(what))
    }

    /// Rows that wait, which are given once, and the session that they are of.
    pub(crate) fn take_ticket(&self, name: &[u8], user: &User) -> Result<(Waiting, Arc<Session>), Status> {
        self.with(name, user, "ticket", |entry| {
            let taken = std::mem::replace(&mut entry.held, Held::Fetched(std::sync::Weak::new()));
            match taken {
                Held::Ticket(waiting) => Some((*waiting, Arc::clone(&entry.session))),
                other => {
                    entry.held = other;
                    None
                }
            }
        })
        .inspect(|_| self.forget(name))
    }

    /// Says which statement the rows of a ticket are of that was taken, until it is forgotten.
    pub(crate) fn fetched(&self, name: &Bytes, session: &Arc<Session>, statement: &Arc<Statement>) {
        let entry = Entry::new(session, Held::Fetched(Arc::downgrade(statement)));
        lock(&self.0).insert(name.clone(), entry);
    }

    /// Gives up the rows of a ticket: the statement that makes them, if it runs.
    pub(crate) fn cancel_ticket(&self, name: &[u8], user: &User) -> Result<Option<Arc<Statement>>, Status> {
        let found = self.with(name, user, "ticket", |entry| match &entry.held {
            Held::Ticket(_) => Some(None),
            Held::Fetched(statement) => Some(statement.upgrade()),
            Held::Prepared(_) | Held::Transaction { .. } => None,
        })?;
        if found.is_none() {
            self.forget(name);
        }
        Ok(found)
    }

    pub(crate) fn prepared(&self, name: &[u8], user: &User) -> Result<(Arc<Prepared>, Arc<Session>), Status> {
        self.with(name, user, "prepared statement", |entry| match &entry.held {
            Held::Prepared(prepared) => Some((Arc::clone(prepared), Arc::clone(&entry.session))),
            _ => None,
        })
    }

    pub(crate) fn transaction(&self, name: &[u8], user: &User) -> Result<(Arc<Engine>, Arc<Session>), Status> {
        self.with(name, user, "transaction", |entry| match &entry.held {
            Held::Transaction { engine, .. } => Some((Arc::clone(engine), Arc::clone(&entry.session))),
            _ => None,
        })
    }

    /// Forgets something.
    pub(crate) fn forget(&self, name: &[u8]) {
        let gone = lock(&self.0).remove(name);
        drop(gone);
    }

    /// Transactions that are open.
    pub(crate) fn transactions(&self, session: &Session) -> usize {
        let all = lock(&self.0);
        let open =
            |entry: &&Entry| entry.session.number == session.number && matches!(entry.held, Held::Transaction { .. });
        all.values().filter(open).count()
    }

    /// Forgets what sessions hold that have ended, and rows that waited too long.
    pub(crate) fn sweep(&self, ticket: Duration) {
        let expired = |entry: &Entry| match &entry.held {
            Held::Ticket(_) => entry.made.elapsed() > ticket,
            Held::Fetched(_) | Held::Prepared(_) | Held::Transaction { .. } => false,
        };
        let mut all = lock(&self.0);
        let names = all.iter().filter(|(_, entry)| entry.session.has_ended() || expired(entry));
        let names: Vec<Bytes> = names.map(|(name, _)| name.clone()).collect();
        // What they hold is dropped without the lock.
        let gone: Vec<Option<Entry>> = names.iter().map(|name| all.remove(name)).collect();
        drop(all);
        drop(gone);
    }
}
