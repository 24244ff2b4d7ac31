//! Reads under way: the caller looks, waits, or is woken.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Poll, Waker};

use arrow_buffer::Buffer;
use plinth_core::sync::{lock, wait};
use plinth_profile::{Stage, scope};

use crate::error::{IoError, Result};

/// Reads that were asked for together, and complete in any order.
///
/// Dropped before its end it is cancelled: what has not begun is not read, and what has goes nowhere.
#[derive(Debug)]
pub struct Reading {
    shared: Arc<Shared>,
    below: BackingStore,
}

/// What it takes to read the same once more, because of what keeps it below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackingStore {
    /// Nothing: it lies in the caller's memory.
    Memory,
    /// A copy, from the page cache, as long as it is there.
    PageCache,
    /// The device or the network.
    Nothing,
}

/// One read's answer, to be given once. Dropped without one, it says that the reader has gone.
#[derive(Debug)]
pub struct Reply {
    shared: Arc<Shared>,
    index: usize,
    answered: bool,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    done: Condvar,
}

#[derive(Debug)]
struct State {
    buffers: Vec<Buffer>,
    missing: usize,
    /// The first that happened.
    error: Option<IoError>,
    waker: Option<Waker>,
    cancelled: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Reading {
    /// So many reads, each of which is answered through its reply.
    pub fn new(reads: usize) -> (Self, impl Iterator<Item = Reply>) {
        let state = State {
            buffers: vec![Buffer::default(); reads],
            missing: reads,
            error: None,
            waker: None,
            cancelled: false,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), done: Condvar::new() });
        let replies = Arc::clone(&shared);
        (
            Self { shared, below: BackingStore::Memory },
            (0..reads).map(move |index| Reply { shared: Arc::clone(&replies), index, answered: false }),
        )
    }

    /// Reads that are done already.
    pub fn ready(buffers: Vec<Buffer>) -> Self {
        let state = State { buffers, missing: 0, error: None, waker: None, cancelled: false };
        Self {
            shared: Arc::new(Shared { state: Mutex::new(state), done: Condvar::new() }),
            below: BackingStore::Memory,
        }
    }

    /// Says what it takes to read the same again, which is what keeping it above would spare.
    #[must_use]
    pub fn from(mut self, below: BackingStore) -> Self {
        self.below = below;
        self
    }

    /// What it takes to read the same again.
    pub fn below(&self) -> BackingStore {
        self.below
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.shared.lock().buffers.is_empty()
    }

    /// Whether all are done or one has failed.
    pub fn is_done(&self) -> bool {
        self.shared.lock().is_done()
    }

    /// Whether all are done or one has failed; if not, `waker` is told when that changes.
    pub fn poll(&self, waker: &Waker) -> Poll<()> {
        let mut state = self.shared.lock();
        if state.is_done() {
            return Poll::Ready(());
        }
        state.waker = Some(waker.clone());
        Poll::Pending
    }

    /// Waits until all are done or one has failed.
    pub fn until_done(&self) {
        let mut state = self.shared.lock();
        if state.is_done() {
            return;
        }
        let _wait = scope(Stage::Wait);
        while !state.is_done() {
            state = wait(&self.shared.done, state);
        }
    }

    /// As [`Reading::wait`], of a reading that others wait for, too.
    ///
    /// # Errors
    /// As [`Reading::wait`].
    pub fn wait_shared(&self) -> Result<Vec<Buffer>> {
        self.until_done();
        let state = self.shared.lock();
        state.error.clone().map_or_else(|| Ok(state.buffers.clone()), Err)
    }

    /// Waits for the buffers, in the order they were asked for.
    ///
    /// # Errors
    /// What the first read that failed says.
    pub fn wait(self) -> Result<Vec<Buffer>> {
        self.until_done();
        let mut state = self.shared.lock();
        match state.error.take() {
            Some(error) => Err(error),
            None => Ok(std::mem::take(&mut state.buffers)),
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.cancelled = true;
        let unwanted = (std::mem::take(&mut state.buffers), state.waker.take());
        drop(state);
        // What these free is others', and not to be freed under the lock.
        drop(unwanted);
    }
}

impl State {
    fn is_done(&self) -> bool {
        self.missing == 0 || self.error.is_some()
    }
}

impl Reply {
    /// Whether the answer is not waited for any more.
    pub fn is_cancelled(&self) -> bool {
        let state = self.shared.lock();
        state.cancelled || state.error.is_some()
    }

    /// Answers.
    pub fn send(mut self, answer: Result<Buffer>) {
        self.answer(answer);
    }

    fn answer(&mut self, answer: Result<Buffer>) {
        self.answered = true;
        let waker = {
            let mut state = self.shared.lock();
            match answer {
                Ok(buffer) => {
                    state.missing -= 1;
                    // There is none if the reading was cancelled.
                    if let Some(slot) = state.buffers.get_mut(self.index) {
                        *slot = buffer;
                    }
                }
                Err(error) => state.error = state.error.take().or(Some(error)),
            }
            if !state.is_done() {
                return;
            }
            state.waker.take()
        };
        self.shared.done.notify_all();
        if let Some(waker) = waker {
            // A thread of the engine does not end for what it wakes.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| waker.wake()));
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if !self.answered {
            self.answer(Err(IoError::Abandoned));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    fn buffer(byte: u8) -> Buffer {
        Buffer::from_vec(vec![byte])
    }

    #[test]
    fn answers_in_any_order_come_in_the_order_asked_for() {
        let (reading, replies) = Reading::new(3);
        let replies: Vec<Reply> = replies.collect();
        let answering = std::thread::spawn(move || {
            for reply in replies.into_iter().rev() {
                let byte = u8::try_from(reply.index).unwrap();
                reply.send(Ok(buffer(byte)));
            }
        });
        let bytes: Vec<u8> = reading.wait().unwrap().iter().map(|buffer| buffer[0]).collect();
        assert_eq!(bytes, [0, 1, 2]);
        answering.join().unwrap();
        assert!(Reading::new(0).0.is_done());
        assert_eq!(Reading::ready(vec![buffer(9)]).wait().unwrap()[0][0], 9);
    }

    #[test]
    fn an_error_or_a_reader_that_went_away_ends_the_wait() {
        let (reading, mut replies) = Reading::new(2);
        let (one, two) = (replies.next().unwrap(), replies.next().unwrap());
        one.send(Err(IoError::Exists { path: "x".into() }));
        assert!(reading.is_done() && two.is_cancelled());
        assert!(matches!(reading.wait(), Err(IoError::Exists { .. })));
        two.send(Ok(buffer(1)));

        let (reading, replies) = Reading::new(2);
        drop(replies.collect::<Vec<_>>());
        assert!(matches!(reading.wait(), Err(IoError::Abandoned)));

        let (reading, mut replies) = Reading::new(1);
        let reply = replies.next().unwrap();
        assert!(!reply.is_cancelled());
        drop(reading);
        assert!(reply.is_cancelled());
    }

    #[test]
    fn the_waker_is_woken_once_all_are_done() {
        struct Count(AtomicUsize);
        impl Wake for Count {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&count));
        let (reading, mut replies) = Reading::new(2);
        assert!(reading.poll(&waker).is_pending());
        replies.next().unwrap().send(Ok(buffer(1)));
        assert!(reading.poll(&waker).is_pending());
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
        replies.next().unwrap().send(Ok(buffer(2)));
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert!(reading.poll(&waker).is_ready());
    }

    #[test]
    fn what_is_not_wanted_any_more_is_not_kept() {
        let slab = crate::slab::Slab::new(1, false).unwrap();
        let lent = || Ok(slab.take(1).unwrap().into_buffer(0, 1).unwrap());
        let (reading, mut replies) = Reading::new(3);
        replies.next().unwrap().send(lent());
        assert!(slab.used() > 0);
        drop(reading);
        assert_eq!(slab.used(), 0, "while others are under way");
        replies.next().unwrap().send(lent());
        assert_eq!(slab.used(), 0);
        drop(replies);
    }

    #[test]
    fn a_waker_that_panics_ends_no_other_thread() {
        struct Panics;
        impl Wake for Panics {
            fn wake(self: Arc<Self>) {
                panic!("on purpose");
            }
        }
        let (reading, mut replies) = Reading::new(1);
        assert!(reading.poll(&Waker::from(Arc::new(Panics))).is_pending());
        let reply = replies.next().unwrap();
        std::thread::spawn(move || reply.send(Ok(buffer(1)))).join().unwrap();
        assert_eq!(reading.wait().unwrap()[0][0], 1);
    }
}
