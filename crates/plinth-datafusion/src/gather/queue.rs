//! Batches that wait until all before them have gone out.

use std::collections::VecDeque;
use std::sync::Mutex;

use arrow_array::RecordBatch;
use datafusion_common::Result;
use datafusion_execution::memory_pool::MemoryReservation;
use datafusion_physical_plan::spill::get_record_batch_memory_size;
use plinth_core::sync::lock;
use tokio::sync::Notify;

/// Batches of the foremost partition that may wait whatever the memory says.
const FOREMOST: usize = 2;
/// Partitions that may be ahead of the foremost one: those without rows ask for no memory.
const TAKEN: usize = 64;

/// The batches of partitions. Those who fill it take partitions in order, so that the foremost one is always being worked on: it never waits
/// for memory, and the others go on once they are the foremost.
pub(super) struct Queue {
    state: Mutex<State>,
    /// Bytes that may wait.
    most: usize,
    /// Whether the first partition is read alone.
    hesitant: bool,
    /// There is room, or another partition is the foremost.
    room: Notify,
    /// There is a batch of the foremost partition, or its end.
    arrived: Notify,
}

struct State {
    /// How many partitions there are, once that is known.
    partitions: Option<usize>,
    /// The partition whose batches go out.
    foremost: usize,
    /// The partition that is to be taken next.
    next: usize,
    /// Of partitions from the foremost one on that were taken.
    waiting: VecDeque<Waiting>,
    memory: MemoryReservation,
}

#[derive(Default)]
struct Waiting {
    batches: VecDeque<Held>,
    /// How many of them no memory was asked for.
    free: usize,
    ended: bool,
}

struct Held {
    batch: Result<RecordBatch>,
    /// What was asked for.
    bytes: Option<usize>,
}

impl Queue {
    pub(super) fn new(partitions: Option<usize>, memory: MemoryReservation, most: usize, hesitant: bool) -> Self {
        let state = State { partitions, foremost: 0, next: 0, waiting: VecDeque::new(), memory };
        Self { state: Mutex::new(state), most, hesitant, room: Notify::new(), arrived: Notify::new() }
    }

    /// The next partition to be worked on; `None` after the last.
    pub(super) async fn take(&self) -> Option<usize> {
        loop {
            let room = self.room.notified();
            {
                let mut state = lock(&self.state);
                if Some(state.next) == state.partitions {
                    return None;
                }
                let alone = self.hesitant && state.foremost == 0;
                if state.waiting.len() < if alone { 1 } else { TAKEN } {
                    state.waiting.push_back(Waiting::default());
                    state.next += 1;
                    return Some(state.next - 1);
                }
            }
            room.await;
        }
    }

    /// The partition that was taken last is none: there are only those before it.
    pub(super) fn none(&self) {
        let mut state = lock(&self.state);
        state.waiting.pop_back();
        state.next -= 1;
        state.partitions = Some(state.next);
        drop(state);
        self.arrived.notify_one();
        self.room.notify_waiters();
    }

    /// Adds a batch to a partition that was taken, once there is room for it.
    pub(super) async fn push(&self, partition: usize, batch: Result<RecordBatch>) {
        let bytes = batch.as_ref().map_or(0, get_record_batch_memory_size);
        loop {
            let room = self.room.notified();
            {
                let mut state = lock(&self.state);
                let place = partition - state.foremost;
                let asked =
                    state.memory.size().saturating_add(bytes) <= self.most && state.memory.try_grow(bytes).is_ok();
                let Some(waiting) = state.waiting.get_mut(place) else { return };
                if asked || (place == 0 && waiting.free < FOREMOST) {
                    waiting.free += usize::from(!asked);
                    waiting.batches.push_back(Held { batch, bytes: asked.then_some(bytes) });
                    break;
                }
            }
            room.await;
        }
        self.arrived.notify_one();
    }

    /// A partition that was taken has no more batches.
    pub(super) fn end(&self, partition: usize) {
        let mut state = lock(&self.state);
        let place = partition - state.foremost;
        if let Some(waiting) = state.waiting.get_mut(place) {
            waiting.ended = true;
        }
        drop(state);
        self.arrived.notify_one();
    }

    /// The next batch of all; `None` after the last.
    pub(super) async fn next(&self) -> Option<Result<RecordBatch>> {
        loop {
            let arrived = self.arrived.notified();
            if let Some(next) = self.poll() {
                return next;
            }
            arrived.await;
        }
    }

    /// The next batch, if it is there.
    fn poll(&self) -> Option<Option<Result<RecordBatch>>> {
        let mut state = lock(&self.state);
        loop {
            if Some(state.foremost) == state.partitions {
                return Some(None);
            }
            let foremost = state.waiting.front_mut()?;
            if let Some(Held { batch, bytes }) = foremost.batches.pop_front() {
                match bytes {
                    Some(bytes) => state.memory.shrink(bytes),
                    None => foremost.free -= 1,
                }
                self.room.notify_waiters();
                return Some(Some(batch));
            }
            if !foremost.ended {
                return None;
            }
            state.waiting.pop_front();
            state.foremost += 1;
            self.room.notify_waiters();
        }
    }
}
