//! Reads that were begun before anybody asked.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::poll_fn;
use plinth_core::sync::lock;
use plinth_io::{IoError, Reading, Reply};
use tokio::time::timeout;

/// How often it is looked whether the answer is still waited for.
const LOOK: Duration = Duration::from_millis(20);

/// Reads under way or done, each of one range, by where it begins and ends.
#[derive(Default)]
pub(crate) struct Promised(Mutex<HashMap<(u64, u64), Arc<Reading>>>);

/// Gives up the reads of one call that were not taken.
pub(crate) struct Given {
    of: Arc<Promised>,
    reads: Vec<((u64, u64), Arc<Reading>)>,
}

impl Drop for Given {
    fn drop(&mut self) {
        let mut promised = lock(&self.of.0);
        for (key, read) in &self.reads {
            if promised.get(key).is_some_and(|known| Arc::ptr_eq(known, read)) {
                promised.remove(key);
            }
        }
    }
}

impl Promised {
    pub(crate) fn has(&self, range: &Range<u64>) -> bool {
        lock(&self.0).contains_key(&key(range))
    }

    /// A read that others may ask for, too.
    pub(crate) fn get(&self, range: &Range<u64>) -> Option<Arc<Reading>> {
        lock(&self.0).get(&key(range)).cloned()
    }

    /// A read that is asked for once.
    pub(crate) fn take(&self, range: &Range<u64>) -> Option<Arc<Reading>> {
        lock(&self.0).remove(&key(range))
    }

    /// Keeps reads until what this returns is dropped, but for those that are promised already; and what is to be read for them.
    pub(crate) fn keep<P>(self: &Arc<Self>, reads: Vec<(Range<u64>, Reading, P)>) -> (Given, Vec<P>) {
        let mut promised = lock(&self.0);
        let (mut own, mut parts) = (Vec::new(), Vec::new());
        for (range, read, part) in reads {
            if let Entry::Vacant(vacant) = promised.entry(key(&range)) {
                let read = vacant.insert(Arc::new(read));
                own.push((key(&range), Arc::clone(read)));
                parts.push(part);
            }
        }
        (Given { of: Arc::clone(self), reads: own }, parts)
    }
}

fn key(range: &Range<u64>) -> (u64, u64) {
    (range.start, range.end)
}

/// Answers with what a read brings, when it does.
pub(crate) async fn forward(read: Arc<Reading>, reply: Reply) {
    while !reply.is_cancelled() {
        if timeout(LOOK, poll_fn(|context| read.poll(context.waker()))).await.is_ok() {
            answer(&read, reply);
            return;
        }
    }
}

/// Answers with what a read has brought.
pub(crate) fn answer(read: &Reading, reply: Reply) {
    reply.send(read.wait_shared().and_then(|mut buffers| buffers.pop().ok_or(IoError::Abandoned)));
}
