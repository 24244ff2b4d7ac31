//! Taking entries out, and merging nodes that have become too empty.
//!
//! Merging is worth trying, not worth insisting on: what is in the way stays, and the next removal tries again.

use std::sync::atomic::Ordering::Relaxed;

use super::{ANCHOR, Index, check_len, reference};
use crate::error::Result;
use crate::node::Key;
use crate::page::{HEADER, Page};
use crate::pool::Policy;
use crate::pool::frame::{Pin, Writing};

impl<K: Key, const U: bool, P: Policy> Index<K, U, P> {
    /// Takes an entry out. False if the key does not have that row.
    ///
    /// # Errors
    /// If the key is too long, or a page can't be read or is damaged. The entry is in then.
    pub fn remove(&self, key: K::Ref<'_>, row: u64) -> Result<bool> {
        check_len::<K>(key)?;
        let inside = self.gate.enter();
        let (removed, sparse) = self.attempt(|_| {
            let pick = |page: Page<'_>| K::child::<U>(page, key, row);
            let Some(place) = self.descend::<false>(false, 0, pick, |_, _| ())? else { return Ok(None) };
            let Some(leaf) = place.node.upgrade() else { return Ok(None) };
            let page = leaf.node.page;
            let at = K::rank::<U, false>(page, 0, key, row);
            if !K::holds(page, at, key) || page.value(at) != row {
                return Ok(Some((false, false)));
            }
            K::remove::<U>(page, at);
            leaf.dirty();
            Ok(Some((true, K::is_sparse::<U>(page))))
        })?;
        if removed {
            inside.removed();
        }
        let mut level = 0;
        // The entry is out; that nodes stay apart is no error.
        while sparse && level < ANCHOR && self.try_merge(level, (key, row)).unwrap_or(false) {
            level += 1;
        }
        Ok(removed)
    }

    /// Merges the node of a level that a key and a row are in with a neighbour. Whether the level above is now to be looked at.
    fn try_merge(&self, level: u8, to: (K::Ref<'_>, u64)) -> Result<bool> {
        let pick = |page: Page<'_>| K::child::<U>(page, to.0, to.1);
        for _ in 0..8 {
            let Some(place) = self.descend::<true>(false, level, pick, |_, _| ())? else { continue };
            let Some((parent, entry)) = place.parent else { return Ok(false) };
            let above = parent.node.page;
            if above.level() == ANCHOR {
                if let (Some(anchor), Some(root)) = (parent.upgrade(), place.node.upgrade()) {
                    self.lower(&anchor, root);
                }
                return Ok(false);
            }
            let (count, above_level) = (above.count(), above.level());
            if count < 2 {
                return Ok(parent.check());
            }
            let left = if entry + 1 < count { entry } else { entry.saturating_sub(1) };
            let other = if left == entry { left + 1 } else { left };
            let (at, word) = reference(above, other);
            if !parent.check() {
                continue;
            }
            let Some(neighbour) = self.pool.child(word) else {
                let Some(_pin) = Pin::new(&parent) else { continue };
                let above = parent.node;
                drop((parent, place.node));
                drop(self.bring(above, above_level, at, word)?);
                continue;
            };
            let (Some(parent), Some(node)) = (parent.upgrade(), place.node.upgrade()) else { continue };
            let Some(neighbour) = Writing::try_begin(neighbour) else { continue };
            if node.node.page.level() != level || !K::is_sparse::<U>(node.node.page) {
                return Ok(false);
            }
            let (lower, upper) = if left == entry { (node, neighbour) } else { (neighbour, node) };
            let (key, row) = (K::key(above, left + 1), K::row::<U>(above, left + 1));
            if !K::merge::<U>(lower.node.page, upper.node.page, K::borrow(&key), row) {
                return Ok(false);
            }
            self.hand_over(&upper, &lower);
            K::remove::<U>(above, left + 1);
            parent.node.frame.children.fetch_sub(1, Relaxed);
            lower.dirty();
            parent.dirty();
            self.discard(upper);
            return Ok(above.count() < 2 || K::is_sparse::<U>(above));
        }
        Ok(false)
    }

    /// Takes away a root that has one child.
    fn lower(&self, anchor: &Writing<'_, P::Latch>, root: Writing<'_, P::Latch>) {
        if root.node.page.level() == 0 || root.node.page.count() != 1 {
            return;
        }
        let word = root.node.page.value(0);
        anchor.node.page.set(HEADER, word);
        match self.pool.child(word) {
            Some(child) => child.frame.parent.store(anchor.node.swip.word(), Relaxed),
            None => anchor.node.frame.children.store(0, Relaxed),
        }
        self.discard(root);
    }
}
