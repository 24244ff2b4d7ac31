//! Many lookups at once: while one waits for memory, others go on; and what is not in memory is read at the same time.

use plinth_core::prefetch::prefetch;

use super::{ANCHOR, Index, reference};
use crate::error::Result;
use crate::latch::Latch;
use crate::node::Key;
use crate::page::Swip;
use crate::pool::Policy;
use crate::pool::frame::{Node, Pin, Reading};

/// Lookups that go down the tree side by side. Enough that memory is always busy, few enough that what they have fetched
/// is still in the core's cache when its turn comes.
const GROUP: usize = 32;

/// Lookups whose pages are read from storage at the same time.
const WINDOW: usize = 256;

/// How often lookups are tried side by side before they are done one by one.
const ROUNDS: usize = 4;

/// A page that a lookup needs and that is not in memory.
struct Missing<'p, L: Latch> {
    parent: Node<'p, L>,
    level: u8,
    at: usize,
    word: u64,
    _pin: Pin<'p, L>,
}

/// A lookup that goes from a node to a child.
type Step<'p, L> = (usize, Reading<'p, L>, Node<'p, L>);

impl<K: Key, const U: bool, P: Policy> Index<K, U, P> {
    /// Looks up many keys: as [`Index::get`] of each, in less time. `rows` gets the answers, as many as there are keys.
    ///
    /// # Errors
    /// As [`Index::get`].
    pub fn multi_get(&self, keys: &[K::Ref<'_>], rows: &mut Vec<Option<u64>>) -> Result<()> {
        rows.clear();
        rows.resize(keys.len(), None);
        let mut pending = Vec::with_capacity(WINDOW);
        for first in (0..keys.len()).step_by(WINDOW) {
            pending.extend(first..keys.len().min(first + WINDOW));
            // Latches that readers hold are held one at a time.
            let rounds = if U && P::Latch::IS_OPTIMISTIC { ROUNDS } else { 0 };
            for _ in 0..rounds {
                let mut missing = Vec::new();
                let mut later = Vec::new();
                for group in pending.chunks(GROUP) {
                    self.look_up(group, keys, rows, &mut later, &mut missing)?;
                }
                pending = later;
                self.bring_many(missing)?;
                if pending.is_empty() {
                    break;
                }
            }
            for i in pending.drain(..) {
                if let (Some(&key), Some(row)) = (keys.get(i), rows.get_mut(i)) {
                    *row = self.get(key)?;
                }
            }
        }
        Ok(())
    }

    /// Takes a group of lookups from the root to the leaves, level by level.
    fn look_up<'p>(
        &'p self,
        group: &[usize],
        keys: &[K::Ref<'_>],
        rows: &mut [Option<u64>],
        later: &mut Vec<usize>,
        missing: &mut Vec<Missing<'p, P::Latch>>,
    ) -> Result<()> {
        let mut under_way: Vec<(usize, Reading<'p, P::Latch>)> = Vec::with_capacity(GROUP);
        let mut next: Vec<Step<'p, P::Latch>> = Vec::with_capacity(GROUP);
        let anchor = self.anchor()?;
        under_way.extend(group.iter().map(|&i| (i, Reading::begin(anchor, false))));
        while !under_way.is_empty() {
            for (i, reading) in under_way.drain(..) {
                let Some(&key) = keys.get(i) else { continue };
                let page = reading.node.page;
                let level = page.level();
                if level == 0 {
                    let at = K::rank::<U, false>(page, 0, key, 0);
                    let row = K::holds(page, at, key).then(|| page.value(at));
                    match rows.get_mut(i) {
                        Some(to) if reading.check() => *to = row,
                        _ => later.push(i),
                    }
                    continue;
                }
                let entry = if level == ANCHOR { 0 } else { K::child::<U>(page, key, 0) };
                let (at, word) = reference(page, entry);
                match self.pool.child(word) {
                    Some(child) => {
                        prefetch(child.frame);
                        K::prefetch(child.page);
                        next.push((i, reading, child));
                    }
                    None => {
                        later.push(i);
                        if let Some(pin) = Pin::new(&reading) {
                            missing.push(Missing { parent: reading.node, level, at, word, _pin: pin });
                        }
                    }
                }
            }
            for (i, parent, child) in next.drain(..) {
                let reading = Reading::begin(child, false);
                if parent.check() {
                    child.frame.touch();
                    under_way.push((i, reading));
                } else {
                    later.push(i);
                }
            }
        }
        Ok(())
    }

    /// Reads pages at the same time. One that can't be had is no error yet: the read that needs it will say.
    fn bring_many(&self, mut missing: Vec<Missing<'_, P::Latch>>) -> Result<()> {
        missing.sort_unstable_by_key(|m| m.word);
        missing.dedup_by_key(|m| m.word);
        let homes: Vec<Swip> = missing.iter().map(|m| Swip(m.word)).collect();
        if homes.is_empty() {
            return Ok(());
        }
        let Ok(images) = self.store.read_many(&homes) else { return Ok(()) };
        for (m, image) in missing.into_iter().zip(images) {
            if self.store.is_sound(Swip(m.word), &image) {
                drop(self.install(m.parent, m.level, m.at, m.word, &image, true)?);
            }
            self.store.recycle(image);
        }
        Ok(())
    }
}
