//! Rivals of swizzling: parents hold where pages are on storage, and a hash table knows their frames; the same with a hint
//! that is looked at first (Zinsmeister et al., "Predictive Translation", SIGMOD 2026, have the idea).

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use plinth_index::Swip;
use plinth_index::pool::translation::Translation;

/// An open-addressing table that is searched without a lock.
pub struct Hashed {
    /// Words and frames in turn.
    slots: Box<[(AtomicU64, AtomicU64)]>,
    changing: Mutex<()>,
}

const EMPTY: u64 = 0;
/// Where an entry was that others were put behind.
const GONE: u64 = 1;

fn hash(word: u64) -> usize {
    // The number and the checksum, which are random enough to spread.
    usize::try_from(word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20).unwrap_or(0)
}

impl Hashed {
    fn probe(&self, word: u64) -> impl Iterator<Item = usize> {
        let mask = self.slots.len() - 1;
        (0..=mask).map(move |i| (hash(word) + i) & mask)
    }
}

impl Translation for Hashed {
    const SWIZZLES: bool = false;

    fn new(pages: usize) -> Self {
        let slots = (pages * 2).next_power_of_two();
        let slots = (0..slots).map(|_| (AtomicU64::new(EMPTY), AtomicU64::new(0))).collect();
        Self { slots, changing: Mutex::new(()) }
    }

    #[inline]
    fn find(&self, word: Swip) -> Option<Swip> {
        for at in self.probe(word.word()) {
            match self.slots[at].0.load(Ordering::Acquire) {
                EMPTY => return None,
                found if found == word.word() => {
                    return Some(Swip::from_word(self.slots[at].1.load(Ordering::Relaxed)));
                }
                _ => {}
            }
        }
        None
    }

    fn enter(&self, home: Swip, frame: Swip) -> Swip {
        let _changing = self.changing.lock().unwrap();
        let free = |at: &usize| self.slots[*at].0.load(Ordering::Relaxed) <= GONE;
        if let Some(at) = self.probe(home.word()).find(free) {
            self.slots[at].1.store(frame.word(), Ordering::Relaxed);
            self.slots[at].0.store(home.word(), Ordering::Release);
        }
        home
    }

    fn leave(&self, word: Swip) {
        let _changing = self.changing.lock().unwrap();
        let here = |at: &usize| self.slots[*at].0.load(Ordering::Relaxed) == word.word();
        let Some(mut at) = self.probe(word.word()).find(here) else { return };
        let mask = self.slots.len() - 1;
        if self.slots[(at + 1) & mask].0.load(Ordering::Relaxed) != EMPTY {
            self.slots[at].0.store(GONE, Ordering::Relaxed);
            return;
        }
        // Nothing was put behind it: it and what is gone before it can be empty.
        self.slots[at].0.store(EMPTY, Ordering::Relaxed);
        at = at.wrapping_sub(1) & mask;
        while self.slots[at].0.load(Ordering::Relaxed) == GONE {
            self.slots[at].0.store(EMPTY, Ordering::Relaxed);
            at = at.wrapping_sub(1) & mask;
        }
    }
}

/// A table, and for each hash the frame that was found last.
pub struct Hinted {
    table: Hashed,
    hints: Box<[AtomicU64]>,
}

impl Hinted {
    fn hint(&self, word: Swip) -> &AtomicU64 {
        &self.hints[hash(word.word()) & (self.hints.len() - 1)]
    }
}

impl Translation for Hinted {
    const SWIZZLES: bool = false;

    fn new(pages: usize) -> Self {
        let hints = (0..pages.next_power_of_two()).map(|_| AtomicU64::new(0)).collect();
        Self { table: Hashed::new(pages), hints }
    }

    #[inline]
    fn guess(&self, word: Swip) -> Option<Swip> {
        Some(Swip::from_word(self.hint(word).load(Ordering::Relaxed)))
    }

    fn find(&self, word: Swip) -> Option<Swip> {
        let found = self.table.find(word)?;
        self.hint(word).store(found.word(), Ordering::Relaxed);
        Some(found)
    }

    fn enter(&self, home: Swip, frame: Swip) -> Swip {
        self.hint(home).store(frame.word(), Ordering::Relaxed);
        self.table.enter(home, frame)
    }

    fn leave(&self, word: Swip) {
        self.table.leave(word);
    }
}
