//! Turns: so many statements run at once, the others wait in the order in which they came.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

/// The turns of a server.
#[derive(Debug)]
pub(crate) struct Queue {
    turns: Arc<Semaphore>,
    waiting: AtomicUsize,
    most: usize,
}

/// One of those who wait.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Queue {
    /// For so many at once, and so many that wait.
    pub(crate) fn new(at_once: usize, waiting: usize) -> Self {
        let turns = Arc::new(Semaphore::new(at_once.clamp(1, Semaphore::MAX_PERMITS)));
        Self { turns, waiting: AtomicUsize::new(0), most: waiting }
    }

    /// Waits for a turn, which lasts as long as what this returns.
    ///
    /// # Errors
    /// If too many wait already.
    pub(crate) async fn turn(&self) -> Result<OwnedSemaphorePermit, Status> {
        if let Ok(turn) = Arc::clone(&self.turns).try_acquire_owned() {
            return Ok(turn);
        }
        let waiting = Waiting(&self.waiting);
        if waiting.0.fetch_add(1, Ordering::Relaxed) >= self.most {
            return Err(Status::resource_exhausted(format!(
                "{} statements wait for their turn already, and no more may: try again later",
                self.most
            )));
        }
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        turn.map_err(|_| Status::unavailable("the server ends"))
    }

    /// Statements that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}
