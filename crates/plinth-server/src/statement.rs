//! A statement on its way: how far it is, and what stops it.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use futures::{Stream, StreamExt};
use plinth_core::sync::lock;
use plinth_sql::SqlError;
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tonic::Status;

use crate::engine::Engine;
use crate::failure::status;
use crate::users::User;

/// Letters of a statement that are kept to be shown.
const SHOWN: usize = 2000;

/// Rows as they are asked for.
pub(crate) type Rows = Pin<Box<dyn Stream<Item = Result<RecordBatch, Status>> + Send>>;

/// Why a statement was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Cancelled,
    Time(Duration),
    Stalled(Duration),
    Ended,
    Closing,
}

impl Why {
    pub(crate) fn status(self) -> Status {
        match self {
            Self::Cancelled => Status::cancelled("the statement was cancelled"),
            Self::Time(most) => Status::deadline_exceeded(format!(
                "the statement took longer than {} s, which is the limit here",
                most.as_secs_f64()
            )),
            Self::Stalled(most) => Status::deadline_exceeded(format!(
                "the rows were not fetched for {} s, and the statement was given up",
                most.as_secs_f64()
            )),
            Self::Ended => Status::cancelled("the session has ended"),
            Self::Closing => Status::unavailable("the server ends"),
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cancelled => "cancelled",
            Self::Time(_) => "out of time",
            Self::Stalled(_) => "not fetched",
            Self::Ended => "session ended",
            Self::Closing => "server ends",
        })
    }
}

/// Where a statement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// In the queue.
    Waits,
    /// Planned, or run if it is no query.
    Runs,
    /// Its rows are asked for.
    Makes,
    /// Rows are there that were not taken yet: since then.
    Sent(Instant),
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Waits => "waits for its turn",
            Self::Runs | Self::Makes => "runs",
            Self::Sent(_) => "waits for its reader",
        })
    }
}

/// A statement that waits or runs.
pub(crate) struct Statement {
    pub(crate) number: u64,
    pub(crate) user: Arc<User>,
    pub(crate) engine: Arc<Engine>,
    /// Its text, to be shown.
    pub(crate) text: String,
    /// The word that begins it, if that is one of SQL's.
    pub(crate) kind: &'static str,
    pub(crate) begun: Instant,
    most: Duration,
    phase: Mutex<Phase>,
    pub(crate) rows: AtomicU64,
    stop: watch::Sender<Option<Why>>,
    /// What parts of the plan listen to.
    flag: Mutex<Option<Arc<AtomicBool>>>,
}

impl fmt::Debug for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Statement").field("number", &self.number).field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// The first word of a statement, if it is one of these: what a log may say of it.
fn kind_of(text: &str) -> &'static str {
    const KINDS: [&str; 26] = [
        "SELECT", "WITH", "VALUES", "FROM", "TABLE", "EXPLAIN", "DESCRIBE", "SHOW", "SET", "USE", "INSERT", "UPDATE",
        "DELETE", "MERGE", "TRUNCATE", "CREATE", "DROP", "ALTER", "COPY", "BEGIN", "COMMIT", "ROLLBACK", "PREPARE",
        "EXECUTE", "VACUUM", "ATTACH",
    ];
    let word: String = text.trim_start().chars().take_while(char::is_ascii_alphabetic).collect();
    KINDS.into_iter().find(|kind| kind.eq_ignore_ascii_case(&word)).unwrap_or("statement")
}

impl Statement {
    pub(crate) fn new(number: u64, user: Arc<User>, engine: Arc<Engine>, text: &str, most: Duration) -> Self {
        Self {
            number,
            user,
            engine,
            text: text.chars().take(SHOWN).collect(),
            kind: kind_of(text),
            begun: Instant::now(),
            most,
            phase: Mutex::new(Phase::Waits),
            rows: AtomicU64::new(0),
            stop: watch::Sender::new(None),
            flag: Mutex::default(),
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        *lock(&self.phase)
    }

    pub(crate) fn enter(&self, phase: Phase) {
        *lock(&self.phase) = phase;
    }

    pub(crate) fn listen(&self, flag: Arc<AtomicBool>) {
        *lock(&self.flag) = Some(flag);
        if self.stopped().is_some() {
            self.flag();
        }
    }

    /// Stops it, unless it was stopped already.
    pub(crate) fn stop(&self, why: Why) {
        self.stop.send_if_modified(|known| {
            let first = known.is_none();
            known.get_or_insert(why);
            first
        });
        self.flag();
    }

    fn flag(&self) {
        if let Some(flag) = lock(&self.flag).as_ref() {
            flag.store(true, Ordering::Relaxed);
        }
    }

    /// Why it was stopped, if it was.
    pub(crate) fn stopped(&self) -> Option<Why> {
        *self.stop.borrow()
    }

    /// Some work of it, unless it is stopped or out of time before.
    ///
    /// # Errors
    /// Those of the work, or why it was stopped.
    pub(crate) async fn unless_stopped<T>(&self, work: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
        let mut stop = self.stop.subscribe();
        let stopped = async {
            // It ends with the statement alone.
            let why = stop.wait_for(Option::is_some).await.ok().and_then(|why| *why);
            why.unwrap_or(Why::Ended)
        };
        let deadline = tokio::time::Instant::from_std(self.begun + self.most);
        tokio::select! {
            biased;
            why = stopped => {
                self.flag();
                Err(why.status())
            }
            result = work => result,
            () = tokio::time::sleep_until(deadline) => {
                self.stop(Why::Time(self.most));
                Err(Why::Time(self.most).status())
            }
        }
    }

    /// As [`Statement::unless_stopped`], of work whose errors are those of SQL.
    pub(crate) async fn run<T>(&self, work: impl Future<Output = Result<T, SqlError>>) -> Result<T, Status> {
        self.unless_stopped(async { work.await.map_err(|e| status(&e)) }).await
    }

    /// Makes the rows in a task of its own, a batch or two before they are taken, until it is stopped or no one takes them any more. What makes
    /// them and the turn are gone then, whether a client comes for the rest or not.
    pub(crate) fn feeds(
        self: &Arc<Self>,
        rows: Rows,
        turn: OwnedSemaphorePermit,
    ) -> mpsc::Receiver<Result<RecordBatch, Status>> {
        let (sender, receiver) = mpsc::channel(1);
        let statement = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(status) = statement.pump(rows, turn, &sender).await {
                // Who has let go of the rows does not ask how they ended.
                let _ = sender.send(Err(status)).await;
            }
        });
        receiver
    }

    async fn pump(
        &self,
        mut rows: Rows,
        _turn: OwnedSemaphorePermit,
        sender: &mpsc::Sender<Result<RecordBatch, Status>>,
    ) -> Result<(), Status> {
        loop {
            self.enter(Phase::Makes);
            let next = self.unless_stopped(async {
                tokio::select! {
                    next = rows.next() => next.transpose(),
                    () = sender.closed() => Ok(None),
                }
            });
            let Some(batch) = next.await? else { return Ok(()) };
            self.rows.fetch_add(u64::try_from(batch.num_rows()).unwrap_or(u64::MAX), Ordering::Relaxed);
            self.enter(Phase::Sent(Instant::now()));
            let Some(room) = self.unless_stopped(async { Ok(sender.reserve().await.ok()) }).await? else {
                return Ok(());
            };
            room.send(Ok(batch));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_a_word_of_sql_or_nothing() {
        for (text, kind) in [
            ("  select 1", "SELECT"),
            ("INSERT INTO t VALUES ('secret')", "INSERT"),
            ("'secret'", "statement"),
            ("secret", "statement"),
            ("", "statement"),
        ] {
            assert_eq!(kind_of(text), kind);
        }
    }
}
