//! Sessions: what one client has.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use plinth_core::sync::lock;
use tokio::sync::OwnedSemaphorePermit;

use crate::engine::Engine;
use crate::statement::{Statement, Why};
use crate::users::User;

/// A client's session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) number: u64,
    pub(crate) user: Arc<User>,
    /// What runs statements that are part of no transaction.
    pub(crate) engine: Arc<Engine>,
    pub(crate) begun: Instant,
    used: Mutex<Instant>,
    statements: Mutex<BTreeMap<u64, Arc<Statement>>>,
    /// Statements so far.
    count: AtomicU64,
    /// What its client holds by names.
    held: AtomicUsize,
    ended: AtomicBool,
    /// Whether it lasts as long as a connection.
    pub(crate) is_of_connection: bool,
    _place: OwnedSemaphorePermit,
}

impl Session {
    pub(crate) fn new(
        number: u64,
        user: Arc<User>,
        engine: Arc<Engine>,
        is_of_connection: bool,
        place: OwnedSemaphorePermit,
    ) -> Self {
        let now = Instant::now();
        Self {
            number,
            user,
            engine,
            begun: now,
            used: Mutex::new(now),
            statements: Mutex::default(),
            count: AtomicU64::new(0),
            held: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
            is_of_connection,
            _place: place,
        }
    }

    /// Says that the client was heard of.
    pub(crate) fn touch(&self) {
        *lock(&self.used) = Instant::now();
    }

    /// How long it has had nothing to do.
    pub(crate) fn idle(&self) -> Duration {
        if lock(&self.statements).is_empty() { lock(&self.used).elapsed() } else { Duration::ZERO }
    }

    /// Adds a statement, unless there are so many already or the session has ended.
    pub(crate) fn add(&self, statement: &Arc<Statement>, most: usize) -> bool {
        let mut statements = lock(&self.statements);
        if statements.len() >= most || self.has_ended() {
            return false;
        }
        statements.insert(statement.number, Arc::clone(statement));
        self.count.fetch_add(1, Ordering::Relaxed);
        true
    }

    pub(crate) fn remove(&self, statement: &Statement) {
        lock(&self.statements).remove(&statement.number);
        self.touch();
    }

    /// Those that wait or run.
    pub(crate) fn statements(&self) -> Vec<Arc<Statement>> {
        lock(&self.statements).values().map(Arc::clone).collect()
    }

    /// Statements so far.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Counts one more or one less that its client holds.
    pub(crate) fn hold(&self, more: bool) {
        if more {
            self.held.fetch_add(1, Ordering::Relaxed)
        } else {
            self.held.fetch_sub(1, Ordering::Relaxed)
        };
    }

    pub(crate) fn holds(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Ends it and stops what runs: whether it had not ended before.
    pub(crate) fn end(&self, why: Why) -> bool {
        let first = !self.ended.swap(true, Ordering::Relaxed);
        for statement in self.statements() {
            statement.stop(why);
        }
        first
    }
}
