//! Putting entries in, and making room for them.

use std::cmp::Ordering;
use std::sync::atomic::Ordering::Relaxed;

use super::{ANCHOR, Index, check_len};
use crate::error::{IndexError, Result};
use crate::node::{Key, Room};
use crate::page::{HEADER, Page, Swip};
use crate::pool::Policy;
use crate::pool::frame::Writing;

/// What became of an attempt.
enum Outcome {
    /// It is in, or there is this row.
    Done(Option<u64>),
    /// The leaf is full. Whether the entry belongs behind the last of all.
    Full { last: bool },
}

/// What became of a run of a bulk build.
enum Run {
    /// So many entries fitted.
    Full(u64),
    /// After so many, an entry is not above the one before.
    Disorder(u64),
    /// That was all.
    End(u64),
}

impl<K: Key, const U: bool, P: Policy> Index<K, U, P> {
    /// Puts an entry in, unless the key has a row (in an index that is not unique: this very row), which is then returned.
    ///
    /// # Errors
    /// If the key is too long, a page can't be read or is damaged, or there is no place for new ones. The entry is not in then.
    pub fn insert(&self, key: K::Ref<'_>, row: u64) -> Result<Option<u64>> {
        check_len::<K>(key)?;
        let inside = self.gate.enter();
        loop {
            match self.attempt(|_| self.try_insert(key, row))? {
                Outcome::Done(found) => {
                    inside.added(u64::from(found.is_none()));
                    return Ok(found);
                }
                Outcome::Full { last } => self.make_room(0, (key, row), key, last)?,
            }
        }
    }

    #[inline]
    fn try_insert(&self, key: K::Ref<'_>, row: u64) -> Result<Option<Outcome>> {
        let mut rightmost = true;
        let pick = |page: Page<'_>| K::child::<U>(page, key, row);
        let trail = |page: Page<'_>, entry| rightmost &= entry + 1 == page.count();
        let Some(place) = self.descend::<false>(false, 0, pick, trail)? else { return Ok(None) };
        let Some(leaf) = place.node.upgrade() else { return Ok(None) };
        let page = leaf.node.page;
        let at = K::rank::<U, false>(page, 0, key, row);
        if K::holds(page, at, key) && (U || page.value(at) == row) {
            return Ok(Some(Outcome::Done(Some(page.value(at)))));
        }
        if K::room::<U>(page, key) == Room::Fits {
            if !K::insert::<U>(page, at, key, row, row) {
                return Err(self.overfull(&leaf));
            }
            leaf.dirty();
            return Ok(Some(Outcome::Done(None)));
        }
        Ok(Some(Outcome::Full { last: rightmost && at == page.count() }))
    }

    /// Appends entries that ascend and are above all that the index holds: the fast way to build an index. Pages are
    /// filled to the last byte. Entries that were taken stay in if a later one is an error.
    ///
    /// # Errors
    /// As [`Index::insert`], and if entries do not ascend.
    pub fn append<E: Into<IndexError>>(
        &self,
        entries: impl IntoIterator<Item = Result<(K::Owned, u64), E>>,
    ) -> Result<()> {
        let mut entries = entries.into_iter();
        let mut position = 0;
        let mut next = entries.next().transpose().map_err(Into::into)?;
        while let Some((key, row)) = &next {
            check_len::<K>(K::borrow(key))?;
            let inside = self.gate.enter();
            let (key, row) = (key.clone(), *row);
            let mut failed = None;
            let run = self.attempt(|_| {
                self.append_run(&mut next, &mut || {
                    let more = entries.next().transpose().map_err(Into::into);
                    more.and_then(|more| more.map(|e| check_len::<K>(K::borrow(&e.0)).map(|()| e)).transpose())
                        .unwrap_or_else(|e| {
                            failed = Some(e);
                            None
                        })
                })
            })?;
            let (Run::Full(taken) | Run::Disorder(taken) | Run::End(taken)) = run;
            position += taken;
            inside.added(taken);
            if matches!(run, Run::Disorder(_)) {
                return Err(IndexError::OutOfOrder { position });
            }
            if let Some(e) = failed {
                return Err(e);
            }
            if matches!(run, Run::Full(0)) {
                self.make_room(0, (K::borrow(&key), row), K::borrow(&key), true)?;
            }
        }
        Ok(())
    }

    /// Fills the last leaf.
    fn append_run(
        &self,
        next: &mut Option<(K::Owned, u64)>,
        more: &mut dyn FnMut() -> Option<(K::Owned, u64)>,
    ) -> Result<Option<Run>> {
        let last = |page: Page<'_>| page.count().saturating_sub(1);
        let Some(place) = self.descend::<false>(false, 0, last, |_, _| ())? else { return Ok(None) };
        let Some(leaf) = place.node.upgrade() else { return Ok(None) };
        let page = leaf.node.page;
        let mut taken = 0;
        while let Some((key, row)) = next {
            let key = K::borrow(key);
            if let Some(before) = page.count().checked_sub(1) {
                let (other, of) = (K::key(page, before), page.value(before));
                if K::compare::<U>((K::borrow(&other), of), (key, *row)) != Ordering::Less {
                    return Ok(Some(Run::Disorder(taken)));
                }
            }
            if K::room::<U>(page, key) != Room::Fits {
                return Ok(Some(Run::Full(taken)));
            }
            if !K::insert::<U>(page, page.count(), key, *row, *row) {
                return Err(self.overfull(&leaf));
            }
            leaf.dirty();
            taken += 1;
            *next = more();
        }
        Ok(Some(Run::End(taken)))
    }

    /// Makes room for an entry of the key `fit` in the node of a level that `to` is in: splits it, or makes it larger. `last`
    /// if what comes is above all there is: then a full node stays full.
    pub(crate) fn make_room(&self, level: u8, to: (K::Ref<'_>, u64), fit: K::Ref<'_>, last: bool) -> Result<()> {
        let pick = |page: Page<'_>| K::child::<U>(page, to.0, to.1);
        loop {
            let wanted = self.attempt(|shared| {
                let Some(place) = self.descend::<false>(shared, level, pick, |_, _| ())? else { return Ok(None) };
                let (page, class) = (place.node.node.page, place.node.node.swip.class());
                let there = page.level() == level;
                let wanted = match K::room::<U>(page, fit) {
                    Room::Fits => None,
                    Room::Split => Some(class),
                    Room::Grow(class) => Some(class),
                };
                Ok(place.node.check().then_some(wanted.filter(|_| there)))
            })?;
            let Some(class) = wanted else { return Ok(()) };
            // Before any latch is taken: to get a page another may have to leave.
            let spare = self.new_page(class, level)?;
            match self.try_make_room(level, to, fit, last, &spare) {
                Ok(Made::Used) => {
                    let node = spare.node;
                    drop(spare);
                    self.pool.admit(node);
                }
                Ok(Made::Above(key, row)) => {
                    self.discard(spare);
                    self.make_room(level + 1, (K::borrow(&key), row), K::borrow(&key), last)?;
                }
                Ok(Made::Nothing) => self.discard(spare),
                Err(e) => {
                    self.discard(spare);
                    return Err(e);
                }
            }
        }
    }

    fn try_make_room(
        &self,
        level: u8,
        to: (K::Ref<'_>, u64),
        fit: K::Ref<'_>,
        last: bool,
        spare: &Writing<'_, P::Latch>,
    ) -> Result<Made<K>> {
        let pick = |page: Page<'_>| K::child::<U>(page, to.0, to.1);
        // To get the spare, what is on the way may have left; it comes back once the spare is had.
        let place = self.attempt(|_| self.descend::<true>(false, level, pick, |_, _| ()))?;
        let Some((parent, entry)) = place.parent else { return Ok(Made::Nothing) };
        let Some(parent) = parent.upgrade() else { return Ok(Made::Nothing) };
        let Some(node) = place.node.upgrade() else { return Ok(Made::Nothing) };
        let (page, class) = (node.node.page, node.node.swip.class());
        let room = K::room::<U>(page, fit);
        let wanted = if let Room::Grow(class) = room { class } else { class };
        if page.level() != level || room == Room::Fits || spare.node.swip.class() != wanted {
            return Ok(Made::Nothing);
        }
        if let Room::Grow(_) = room {
            if !K::divide::<U>(page, 0, spare.node.page) {
                return Err(self.overfull(&node));
            }
            self.hand_over(&node, spare);
            self.put_below(&parent, entry, spare);
            parent.dirty();
            self.discard(node);
            return Ok(Made::Used);
        }
        if parent.node.page.level() == ANCHOR {
            self.raise(&parent, &node, spare, to)?;
            return Ok(Made::Used);
        }
        let count = page.count();
        // Others may have put entries behind since.
        let behind = |before: usize| {
            let (key, row) = (K::key(page, before), page.value(before));
            K::compare::<U>((K::borrow(&key), row), to) == Ordering::Less
        };
        let last = last && (level > 0 || count.checked_sub(1).is_some_and(behind));
        let (key, row, at) = match (last, level) {
            (true, 0) => {
                let (key, row) = K::between::<U>(page, count.saturating_sub(1), to.0, to.1);
                (key, row, count)
            }
            (false, 0) => {
                let at = K::middle::<U>(page);
                let upper = K::key(page, at);
                let (key, row) = K::between::<U>(page, at.saturating_sub(1), K::borrow(&upper), page.value(at));
                (key, row, at)
            }
            _ => {
                let at = if last { count.saturating_sub(1) } else { K::middle::<U>(page) };
                (K::key(page, at), K::row::<U>(page, at), at)
            }
        };
        if K::room::<U>(parent.node.page, K::borrow(&key)) != Room::Fits {
            return Ok(Made::Above(key, row));
        }
        let word = spare.node.frame.word.load(Relaxed);
        if !K::insert::<U>(parent.node.page, entry + 1, K::borrow(&key), row, word) {
            return Err(self.overfull(&parent));
        }
        if !K::divide::<U>(page, at, spare.node.page) {
            K::remove::<U>(parent.node.page, entry + 1);
            return Err(self.overfull(&node));
        }
        self.hand_over(&node, spare);
        spare.node.frame.parent.store(parent.node.swip.word(), Relaxed);
        parent.node.frame.children.fetch_add(1, Relaxed);
        node.dirty();
        parent.dirty();
        Ok(Made::Used)
    }

    /// Puts an empty inner node above the root.
    fn raise(
        &self,
        anchor: &Writing<'_, P::Latch>,
        root: &Writing<'_, P::Latch>,
        spare: &Writing<'_, P::Latch>,
        to: (K::Ref<'_>, u64),
    ) -> Result<()> {
        K::start::<U>(spare.node.page, root.node.page.level() + 1);
        // The first entry of an inner node has no key: any will do.
        if !K::insert::<U>(spare.node.page, 0, to.0, 0, root.node.frame.word.load(Relaxed)) {
            return Err(self.overfull(spare));
        }
        root.node.frame.parent.store(spare.node.swip.word(), Relaxed);
        spare.node.frame.children.store(1, Relaxed);
        self.put_below(anchor, 0, spare);
        Ok(())
    }

    /// What was to fit a page does not.
    fn overfull(&self, node: &Writing<'_, P::Latch>) -> IndexError {
        self.store.internal(node.node.frame.home().number(), "its entries do not fit, though there was room for them")
    }

    /// Replaces a child.
    fn put_below(&self, parent: &Writing<'_, P::Latch>, entry: usize, child: &Writing<'_, P::Latch>) {
        let at = if parent.node.page.level() == ANCHOR { HEADER } else { parent.node.page.value_at(entry) };
        parent.node.page.set(at, child.node.frame.word.load(Relaxed));
        child.node.frame.parent.store(parent.node.swip.word(), Relaxed);
    }

    /// Tells the children in memory that moved to another node so.
    pub(crate) fn hand_over(&self, from: &Writing<'_, P::Latch>, to: &Writing<'_, P::Latch>) {
        let page = to.node.page;
        if page.level() == 0 {
            return;
        }
        let mut moved = 0;
        for entry in 0..page.count() {
            if let Some(child) = self.pool.child(page.value(entry))
                && Swip(child.frame.parent.load(Relaxed)) != to.node.swip
            {
                child.frame.parent.store(to.node.swip.word(), Relaxed);
                moved += 1;
            }
        }
        from.node.frame.children.fetch_sub(moved, Relaxed);
        to.node.frame.children.fetch_add(moved, Relaxed);
    }
}

/// What became of a spare page.
enum Made<K: Key> {
    /// It is in the tree.
    Used,
    /// First there must be room for this in the parent.
    Above(K::Owned, u64),
    /// Another writer came in between, or there is room.
    Nothing,
}
