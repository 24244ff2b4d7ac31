//! Writers of an index, and waiting until there are none.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard};

use plinth_core::sync::lock;

/// Counters of threads, apart so that they share no cache line.
const LANES: usize = 16;

/// Lets writers in, unless it is closed.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    closed: AtomicBool,
    /// Held while the gate is closed.
    turn: Mutex<()>,
    lanes: [Lane; LANES],
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Lane {
    inside: AtomicU64,
    /// Entries added, less those removed, modulo 2^64.
    entries: AtomicU64,
}

/// A writer.
#[derive(Debug)]
pub(crate) struct Inside<'g>(&'g Lane);

/// No thread writes.
#[derive(Debug)]
pub(crate) struct Closed<'g> {
    gate: &'g Gate,
    _turn: MutexGuard<'g, ()>,
}

impl Gate {
    fn lane(&self) -> &Lane {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        thread_local!(static MINE: usize = NEXT.fetch_add(1, Relaxed) % LANES);
        let mine = MINE.try_with(|mine| *mine).unwrap_or(0);
        self.lanes.get(mine).unwrap_or(&self.lanes[0])
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        lock(&self.turn)
    }

    /// Begins to write, once the gate is open.
    pub(crate) fn enter(&self) -> Inside<'_> {
        let lane = self.lane();
        loop {
            // A closing thread first says so and then looks at the lanes; here it is the other way round, so one of the two sees
            // the other.
            lane.inside.fetch_add(1, SeqCst);
            if !self.closed.load(SeqCst) {
                return Inside(lane);
            }
            lane.inside.fetch_sub(1, SeqCst);
            drop(self.turn());
        }
    }

    /// Waits until no thread writes, and keeps it so.
    pub(crate) fn close(&self) -> Closed<'_> {
        let turn = self.turn();
        self.closed.store(true, SeqCst);
        for lane in &self.lanes {
            while lane.inside.load(SeqCst) > 0 {
                std::thread::yield_now();
            }
        }
        Closed { gate: self, _turn: turn }
    }

    /// Entries, if no thread writes; else about so many.
    pub(crate) fn entries(&self) -> u64 {
        self.lanes.iter().fold(0, |sum, lane| sum.wrapping_add(lane.entries.load(Relaxed)))
    }

    pub(crate) fn set_entries(&self, entries: u64) {
        self.lanes[0].entries.store(entries, Relaxed);
    }
}

impl Inside<'_> {
    pub(crate) fn added(&self, entries: u64) {
        self.0.entries.fetch_add(entries, Relaxed);
    }

    pub(crate) fn removed(&self) {
        self.0.entries.fetch_sub(1, Relaxed);
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, SeqCst);
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.gate.closed.store(false, SeqCst);
    }
}
