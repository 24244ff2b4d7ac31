//! Making durable what there is.

use std::sync::atomic::Ordering::Relaxed;

use super::{ANCHOR, Index};
use crate::error::Result;
use crate::latch::Latch;
use crate::node::Key;
use crate::page::{HEADER, Swip};
use crate::pool::Policy;
use crate::pool::frame::{Node, Reading, Writing};

impl<K: Key, const U: bool, P: Policy> Index<K, U, P> {
    /// Makes durable what the index holds, and a position of the caller's (of a log: up to where it has been applied). Most
    /// pages are written while others go on; they wait for the rest.
    ///
    /// # Errors
    /// If the device fails. The checkpoint before is what there is then, and if it was a sync that failed, the index can't be
    /// made durable any more.
    pub fn checkpoint(&self, position: u64) -> Result<()> {
        let mut sequence = self.sequence();
        self.store.check_alive()?;
        let anchor = self.anchor()?;
        self.flush(anchor, false)?;
        let closed = self.gate.close();
        let switch = self.store.switch();
        self.flush(anchor, true)?;
        let (root, level) = loop {
            let reading = Reading::begin(anchor, false);
            let word = anchor.page.get(HEADER);
            let child = self.pool.child(word);
            let root = child.map_or(Swip(word), |child| child.frame.home());
            let level = child.map(|child| child.page.level());
            if reading.check() {
                break (root, level);
            }
        };
        let level = match level {
            Some(level) => level,
            // It has left since it was flushed.
            None => {
                let mut image = self.store.image(root.class());
                self.store.read(root, &mut image)?;
                image.level()
            }
        };
        switch.commit(&self.meta(*sequence, root, level, position))?;
        drop(closed);
        *sequence += 1;
        self.position.store(position, Relaxed);
        Ok(())
    }

    /// Writes what has changed, children first. Unless `all`, what is busy stays.
    pub(super) fn flush(&self, node: Node<'_, P::Latch>, all: bool) -> Result<()> {
        let level = node.page.level();
        let mut moved = false;
        if level > 0 {
            for child in self.children(node) {
                // It may have left since, and be anything now; then it is no harm to flush it.
                if child.page.level() < level {
                    self.flush(child, all)?;
                }
                moved |= child.frame.has_moved();
            }
        }
        if level == ANCHOR {
            return Ok(());
        }
        if moved {
            let writing = Writing::begin(node);
            // It may have left, too, and have been written then; it is no harm if it is another page of this index.
            if writing.node.frame.owner() == Some(self.owner) {
                writing.dirty();
            }
        }
        while !self.pool.clean(node, self.owner, &self.store)? && all && node.frame.owner() == Some(self.owner) {
            std::thread::yield_now();
        }
        Ok(())
    }

    /// The children of a node that are in memory.
    fn children<'p>(&'p self, node: Node<'p, P::Latch>) -> Vec<Node<'p, P::Latch>> {
        let reading = Reading::begin(node, P::Latch::IS_OPTIMISTIC);
        let entries = if node.page.level() == ANCHOR { 1 } else { node.page.count() };
        let word = |entry| if node.page.level() == ANCHOR { node.page.get(HEADER) } else { node.page.value(entry) };
        let children = (0..entries.min(node.page.len())).filter_map(|entry| self.pool.child(word(entry))).collect();
        drop(reading);
        children
    }
}
