//! What a profiler and the threads that work for it share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use plinth_core::sync::lock;

use crate::anchor::{Anchor, Stage};
use crate::block::Block;
use crate::clock::{Clock, Faults};

/// Profilers that are running. While there are none, a scope costs one look at this.
pub(crate) static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// What is known of numbered anchors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    pub(crate) labels: HashMap<Anchor, String>,
    /// What each is part of.
    pub(crate) parts: HashMap<Anchor, Option<Anchor>>,
    pub(crate) known: HashMap<(Stage, String), Anchor>,
    numbers: u32,
}

impl Names {
    pub(crate) fn number(&mut self, stage: Stage, label: &str) -> Anchor {
        let anchor = stage.nth(self.numbers);
        self.numbers = self.numbers.saturating_add(1);
        self.labels.insert(anchor, label.to_owned());
        anchor
    }
}

/// What all threads that work for a profiler share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) title: String,
    pub(crate) threads: usize,
    pub(crate) detailed: bool,
    pub(crate) spans: usize,
    pub(crate) clock: Clock,
    pub(crate) started_at: SystemTime,
    pub(crate) started: u64,
    pub(crate) cpu: Option<u64>,
    pub(crate) faults: Faults,
    pub(crate) claimed: u64,
    /// Ticks that tasks were suspended for storage.
    pub(crate) paused: AtomicU64,
    pub(crate) blocks: Mutex<Vec<Arc<Block>>>,
    pub(crate) names: Mutex<Names>,
    /// Bytes of memory by what holds them: now, and at most.
    pub(crate) held: Mutex<HashMap<Anchor, (u64, u64)>>,
    pub(crate) over: AtomicBool,
}

impl Shared {
    /// A block for a thread that has none.
    pub(crate) fn add_block(&self) -> Arc<Block> {
        let mut blocks = lock(&self.blocks);
        let name = std::thread::current().name().map_or_else(|| format!("thread {}", blocks.len()), str::to_owned);
        let block = Arc::new(Block::new(name, self.spans));
        blocks.push(block.clone());
        block
    }

    pub(crate) fn names(&self) -> Names {
        self.lock_names().clone()
    }

    pub(crate) fn lock_names(&self) -> MutexGuard<'_, Names> {
        lock(&self.names)
    }

    pub(crate) fn end(&self) {
        if !self.over.swap(true, Relaxed) {
            RUNNING.fetch_sub(1, Relaxed);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.end();
    }
}
