//! From the anchor down: optimistic lock coupling, and bringing in pages that are not in memory.

use std::sync::atomic::Ordering::Relaxed;

use super::{ANCHOR, Index, reference};
use crate::error::Result;
use crate::node::Key;
use crate::page::{Image, Page, Swip};
use crate::pool::Policy;
use crate::pool::frame::{Node, Pin, Reading, Writing};
use crate::pool::translation::Translation;

/// Where a descent ended.
pub(crate) struct Place<'p, P: Policy> {
    /// The parent and the child's entry in it, if they were to be kept.
    pub(crate) parent: Option<(Reading<'p, P::Latch>, usize)>,
    /// The node, on the level that was asked for, unless the tree is not so high any more.
    pub(crate) node: Reading<'p, P::Latch>,
}

/// How often readers start again before they take latches shared.
const PATIENCE: u32 = 16;

impl<K: Key, const U: bool, P: Policy> Index<K, U, P> {
    /// Runs something until nothing has come in between. It is told whether to take latches shared.
    #[inline]
    pub(crate) fn attempt<T>(&self, mut run: impl FnMut(bool) -> Result<Option<T>>) -> Result<T> {
        let mut tries = 0;
        loop {
            if let Some(done) = run(tries > PATIENCE)? {
                return Ok(done);
            }
            tries += 1;
            if tries % PATIENCE == 0 {
                std::thread::yield_now();
            }
        }
    }

    /// Goes down to a level, by the children that `pick` chooses; `None` if a writer came in between. `pick` and `trail`,
    /// which hears of each step, may see pages while they change.
    #[inline]
    pub(crate) fn descend<const KEEP: bool>(
        &self,
        shared: bool,
        level: u8,
        pick: impl Fn(Page<'_>) -> usize,
        mut trail: impl FnMut(Page<'_>, usize),
    ) -> Result<Option<Place<'_, P>>> {
        let mut node = Reading::begin(self.anchor()?, shared);
        let mut parent = None;
        loop {
            let page = node.node.page;
            let at = page.level();
            if at <= level {
                return Ok(Some(Place { parent, node }));
            }
            let entry = if at == ANCHOR {
                0
            } else {
                let entry = pick(page);
                trail(page, entry);
                entry
            };
            let (word_at, word) = reference(page, entry);
            if !node.check() {
                return Ok(None);
            }
            if let Some(child) = self.pool.child(word) {
                // Its latch, its header and where a search begins, at the same time.
                K::prefetch(child.page);
                let reading = Reading::begin(child, shared);
                if !node.check() {
                    return Ok(None);
                }
                child.frame.touch();
                if KEEP {
                    parent = Some((node, entry));
                }
                node = reading;
            } else {
                let above = node.node;
                let Some(_pin) = Pin::new(&node) else { return Ok(None) };
                drop((parent.take(), node));
                // Not down from there: while it was read, its parent may have got other keys to divide it by.
                drop(self.bring(above, at, word_at, word)?);
                return Ok(None);
            }
        }
    }

    /// Reads a page into a frame and puts it below its parent, if it is its parent's still.
    pub(crate) fn bring(
        &self,
        parent: Node<'_, P::Latch>,
        level: u8,
        at: usize,
        word: u64,
    ) -> Result<Option<Reading<'_, P::Latch>>> {
        let home = Swip(word);
        let mut image = self.store.image(home.class());
        let read = self.store.read(home, &mut image);
        let sound = match read {
            Ok(sound) => sound,
            Err(e) => return if self.is_still(parent, level, at, word) { Err(e) } else { Ok(None) },
        };
        let brought = self.install(parent, level, at, word, &image, sound);
        self.store.recycle(image);
        brought
    }

    /// As [`Index::bring`], of what was read already, and is the page that is meant if `sound`.
    pub(crate) fn install(
        &self,
        parent: Node<'_, P::Latch>,
        level: u8,
        at: usize,
        word: u64,
        image: &Image,
        sound: bool,
    ) -> Result<Option<Reading<'_, P::Latch>>> {
        let home = Swip(word);
        if !sound {
            // Meanwhile it may have been read by another thread, changed, and written to the same place.
            let damaged = self.is_still(parent, level, at, word);
            return if damaged { Err(self.store.corrupt(home.number(), "its checksum is wrong")) } else { Ok(None) };
        }
        self.pool.count_read();
        let child = self.pool.allocate(home.class(), self.owner)?;
        let (page, frame) = (child.node.page, child.node.frame);
        page.fill(image);
        if let Err(what) = check::<K, U>(page, level) {
            self.pool.free(child);
            return Err(self.store.corrupt(home.number(), what));
        }
        frame.home.store(word, Relaxed);
        frame.named.store(word, Relaxed);
        frame.parent.store(parent.swip.word(), Relaxed);
        // If the parent has gone meanwhile, its frame may be held by someone who waits for this one.
        let Some(above) = Writing::begin_soon(parent) else {
            self.pool.free(child);
            return Ok(None);
        };
        if !self.refers(parent, level, at, word) || self.pool.child(word).is_some() {
            drop(above);
            self.pool.free(child);
            return Ok(None);
        }
        let entered = self.pool.translation().enter(home, child.node.swip);
        frame.word.store(entered.word(), Relaxed);
        parent.page.set(at, entered.word());
        parent.frame.children.fetch_add(1, Relaxed);
        drop(above);
        self.pool.admit(child.node);
        Ok(Some(child.downgrade()))
    }

    /// Whether a node is an inner node of this index and holds a reference. Its latch is held, or looked at again.
    fn refers(&self, node: Node<'_, P::Latch>, level: u8, at: usize, word: u64) -> bool {
        let (values, stride) = node.page.values();
        let entry = at.checked_sub(values).filter(|&offset| stride > 0 && offset % stride == 0);
        let entry = entry.map(|offset| offset / stride).filter(|&entry| entry < node.page.count());
        node.frame.owner() == Some(self.owner)
            && node.page.level() == level
            && entry.is_some()
            && node.page.get(at) == word
    }

    fn is_still(&self, parent: Node<'_, P::Latch>, level: u8, at: usize, word: u64) -> bool {
        loop {
            let reading = Reading::begin(parent, false);
            let refers = self.refers(parent, level, at, word);
            if reading.check() {
                return refers;
            }
        }
    }
}

/// Checks a page that was just read and is to be below a level.
pub(crate) fn check<K: Key, const U: bool>(page: Page<'_>, above: u8) -> Result<(), String> {
    let level = page.level();
    if level >= ANCHOR - 1 || (above != ANCHOR && level + 1 != above) {
        return Err(format!("it is {level} above the leaves, and its parent {above}"));
    }
    K::check::<U>(page)?;
    if level > 0 {
        for entry in 0..page.count() {
            let child = Swip(page.value(entry));
            if child.is_frame() || child.number() < 2 {
                return Err(format!("its child {entry} is nowhere"));
            }
        }
    }
    Ok(())
}
