//! Group commit without a thread of its own: a thread that finds none at work commits what all wait for, its own among it; while the
//! log is synced, the next group gathers. A single writer waits for nothing but the device.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard};

use plinth_core::sync::{lock, wait};

use crate::commit::WriteSet;
use crate::engine::Committed;
use crate::error::{Result, TableError};

/// Commits that wait.
#[derive(Debug, Default)]
pub(crate) struct Committer {
    queue: Mutex<Queue>,
    done: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<(u64, WriteSet)>,
    /// Whether a thread is at work.
    busy: bool,
    results: HashMap<u64, Result<Committed>>,
    next: u64,
}

impl Committer {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }

    /// Has a commit done by `work`, which is given the commits of a group and answers for each, in order.
    pub(crate) fn commit(
        &self,
        set: WriteSet,
        work: impl FnOnce(&[WriteSet]) -> Vec<Result<Committed>>,
    ) -> Result<Committed> {
        let mut queue = self.queue();
        let ticket = queue.next;
        queue.next += 1;
        queue.waiting.push((ticket, set));
        loop {
            if let Some(result) = queue.results.remove(&ticket) {
                return result;
            }
            if !queue.busy {
                break;
            }
            queue = wait(&self.done, queue);
        }
        queue.busy = true;
        let (tickets, sets): (Vec<u64>, Vec<WriteSet>) = std::mem::take(&mut queue.waiting).into_iter().unzip();
        drop(queue);
        // Whatever becomes of the work, the others must not wait for ever.
        let mut ending = Ending { committer: self, tickets, results: Vec::new() };
        ending.results = work(&sets);
        drop(ending);
        self.queue().results.remove(&ticket).unwrap_or_else(lost)
    }
}

fn lost() -> Result<Committed> {
    Err(TableError::invalid("the thread that committed has died; open the table again"))
}

/// Hands out the results of a group.
struct Ending<'a> {
    committer: &'a Committer,
    tickets: Vec<u64>,
    results: Vec<Result<Committed>>,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let mut queue = self.committer.queue();
        let results = std::mem::take(&mut self.results).into_iter().chain(std::iter::repeat_with(lost));
        queue.results.extend(self.tickets.drain(..).zip(results));
        queue.busy = false;
        drop(queue);
        self.committer.done.notify_all();
    }
}
