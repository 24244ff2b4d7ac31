//! Work done ahead by a few threads, its results handed over in order.
//!
//! A feed yields pieces of work, one thread at a time, so that it may read and cut a stream; the pieces are numbered as they
//! come and each produces any number of items. A thread takes the next piece and puts its items in the piece's queue; the
//! consumer empties queue after queue. The piece the consumer waits for may always put a little ahead; pieces after it only
//! while all queues together hold less than the agreed bytes, so memory is bounded and no thread waits for ever.

use std::collections::{BTreeMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

use plinth_core::sync::{lock, wait};
use plinth_profile::{Anchor, Profiler, Stage, scope};

/// Items the current task may have waiting whatever the bytes.
const CURRENT_AHEAD: usize = 2;

/// How the names of the threads start.
pub(crate) const THREAD_NAME: &str = "plinth-read";

/// What one piece gives to the consumer.
pub(crate) struct Item<T> {
    pub(crate) value: T,
    pub(crate) bytes: usize,
}

/// Does pieces of work. Called on several threads, one [`Worker`] each.
pub(crate) trait Worker<P, T, E>: Send + 'static {
    /// Produces the items of a piece; stops early when `give` answers false: no more are wanted.
    fn run(&mut self, piece: &P, give: &mut dyn FnMut(Item<T>) -> bool) -> Result<(), E>;

    /// The error that stands for a panic: in a piece, or in the feed.
    fn panicked(&self, piece: Option<&P>) -> E;

    /// The error that stands for a state of the queues that cannot be.
    fn internal(&self, what: &'static str) -> E;

    /// What profiles charge the work to.
    fn anchor(&self) -> Anchor {
        Stage::Parse.into()
    }

    /// How many bytes of a piece they say are worked on.
    fn bytes(&self, _: &P) -> u64 {
        0
    }
}

struct Queue<T, E> {
    items: VecDeque<Item<T>>,
    /// Set once the piece is done.
    done: Option<Result<(), E>>,
}

struct State<T, E> {
    /// Pieces handed out.
    next: usize,
    /// Whether the feed has no more.
    ended: bool,
    current: usize,
    queues: BTreeMap<usize, Queue<T, E>>,
    waiting_bytes: usize,
    cancelled: bool,
    /// What is wrong with the queues themselves.
    broken: Option<E>,
}

struct Shared<T, E> {
    state: Mutex<State<T, E>>,
    changed: Condvar,
    limit: usize,
    /// Pieces that may be under way or finished before the consumer reaches them.
    ahead: usize,
}

/// The consumer's end. Dropping it stops the threads.
pub(crate) struct Ahead<T, E> {
    shared: Arc<Shared<T, E>>,
    threads: Vec<JoinHandle<()>>,
}

impl<T: Send + 'static, E: Send + 'static> Ahead<T, E> {
    /// Starts one thread per worker; together they keep at most about `limit` bytes waiting. A feed ends with its first
    /// error.
    pub(crate) fn start<P, W, F>(feed: F, limit: usize, workers: Vec<W>) -> std::io::Result<Self>
    where
        W: Worker<P, T, E>,
        F: Iterator<Item = Result<P, E>> + Send + 'static,
    {
        let state = State {
            next: 0,
            ended: false,
            current: 0,
            queues: BTreeMap::new(),
            waiting_bytes: 0,
            cancelled: false,
            broken: None,
        };
        let ahead = workers.len().saturating_mul(4).max(2);
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), limit, ahead });
        let feed = Arc::new(Mutex::new(feed));
        let mut this = Self { shared: Arc::clone(&shared), threads: Vec::with_capacity(workers.len()) };
        for (at, worker) in workers.into_iter().enumerate() {
            let (shared, feed, profiler) = (Arc::clone(&shared), Arc::clone(&feed), Profiler::current());
            let thread = std::thread::Builder::new().name(format!("{THREAD_NAME}-{at}"));
            this.threads.push(thread.spawn(move || shared.work(worker, &feed, &profiler))?);
        }
        Ok(this)
    }

    /// The next item of the earliest piece that has any left; `None` after the last piece.
    pub(crate) fn next(&mut self) -> Result<Option<T>, E> {
        let mut state = self.shared.lock();
        loop {
            if let Some(e) = state.broken.take() {
                state.cancelled = true;
                self.shared.changed.notify_all();
                return Err(e);
            }
            let current = state.current;
            if state.cancelled || (state.ended && current >= state.next) {
                return Ok(None);
            }
            let (item, done) = match state.queues.get_mut(&current) {
                Some(queue) => match queue.items.pop_front() {
                    Some(item) => (Some(item), None),
                    None => (None, queue.done.take()),
                },
                None => (None, None),
            };
            if let Some(item) = item {
                state.waiting_bytes = state.waiting_bytes.saturating_sub(item.bytes);
                self.shared.changed.notify_all();
                return Ok(Some(item.value));
            }
            match done {
                Some(Ok(())) => {
                    state.queues.remove(&current);
                    state.current += 1;
                    self.shared.changed.notify_all();
                }
                Some(Err(e)) => {
                    // Nothing comes after an error.
                    state.cancelled = true;
                    self.shared.changed.notify_all();
                    return Err(e);
                }
                None => state = self.shared.wait(state),
            }
        }
    }
}

impl<T, E> Ahead<T, E> {
    /// Lets the threads go: dropping does not wait for them. For a feed that may wait for its input for ever.
    pub(crate) fn detach(&mut self) {
        self.threads.clear();
    }
}

impl<T, E> Drop for Ahead<T, E> {
    fn drop(&mut self) {
        self.shared.lock().cancelled = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            // A worker's panic was caught and handed over as an error.
            let _ = thread.join();
        }
    }
}

impl<T, E> Shared<T, E> {
    fn lock(&self) -> MutexGuard<'_, State<T, E>> {
        lock(&self.state)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State<T, E>>) -> MutexGuard<'a, State<T, E>> {
        let _join = scope(Stage::Join);
        wait(&self.changed, state)
    }

    fn work<P, F: Iterator<Item = Result<P, E>>>(
        &self,
        mut worker: impl Worker<P, T, E>,
        feed: &Mutex<F>,
        profiler: &Profiler,
    ) {
        while let Some((task, piece)) = self.take(&worker, feed, profiler) {
            let work = profiler.scope(worker.anchor());
            let result = piece.and_then(|piece| {
                work.bytes(worker.bytes(&piece));
                let run = || worker.run(&piece, &mut |item| self.give(task, item));
                std::panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err(worker.panicked(Some(&piece))))
            });
            let mut state = self.lock();
            match state.queues.get_mut(&task) {
                Some(queue) => queue.done = Some(result),
                None => state.broken = Some(worker.internal("a piece that is read ahead has no queue")),
            }
            self.changed.notify_all();
        }
    }

    /// The next piece and its number. A thread that waits for room holds the feed, so pieces are numbered in their order.
    fn take<P, F: Iterator<Item = Result<P, E>>>(
        &self,
        worker: &impl Worker<P, T, E>,
        feed: &Mutex<F>,
        profiler: &Profiler,
    ) -> Option<(usize, Result<P, E>)> {
        let waiting = profiler.scope(Stage::Join);
        let mut feed = lock(feed);
        let mut state = self.lock();
        while !state.cancelled && !state.ended && state.next >= state.current.saturating_add(self.ahead) {
            state = wait(&self.changed, state);
        }
        if state.cancelled || state.ended {
            return None;
        }
        drop(state);
        drop(waiting);
        let piece = std::panic::catch_unwind(AssertUnwindSafe(|| feed.next()))
            .unwrap_or_else(|_| Some(Err(worker.panicked(None))));
        let mut state = self.lock();
        state.ended = !matches!(piece, Some(Ok(_)));
        self.changed.notify_all();
        let task = state.next;
        let piece = piece?;
        state.next += 1;
        state.queues.insert(task, Queue { items: VecDeque::new(), done: None });
        Some((task, piece))
    }

    fn give(&self, task: usize, item: Item<T>) -> bool {
        let mut state = self.lock();
        loop {
            if state.cancelled {
                return false;
            }
            // Without a queue there is nowhere to put it, which is said when the piece is done.
            let Some(waiting) = state.queues.get(&task).map(|queue| queue.items.len()) else { return false };
            let room = state.waiting_bytes.saturating_add(item.bytes) <= self.limit;
            if room || (task == state.current && waiting < CURRENT_AHEAD) {
                state.waiting_bytes = state.waiting_bytes.saturating_add(item.bytes);
                if let Some(queue) = state.queues.get_mut(&task) {
                    queue.items.push_back(item);
                }
                self.changed.notify_all();
                return true;
            }
            state = self.wait(state);
        }
    }
}

#[cfg(test)]
mod tests;
