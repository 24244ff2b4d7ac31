//! Scans: a leaf at a time is copied and checked, and then handed out.

use std::vec::IntoIter;

use super::Index;
use crate::error::Result;
use crate::node::Key;
use crate::page::Page;
use crate::pool::{Policy, Standard};

/// A place between entries: before or after where an entry is, or would be.
#[derive(Clone, Debug)]
pub struct Cut<K: Key> {
    key: K::Owned,
    row: u64,
    after: bool,
}

impl<K: Key> Cut<K> {
    /// Before all entries of a key.
    pub(crate) fn before(key: K::Ref<'_>) -> Option<Self> {
        Some(Self { key: K::own(key), row: 0, after: false })
    }

    /// After all entries of a key.
    pub(crate) fn after(key: K::Ref<'_>) -> Option<Self> {
        Some(Self { key: K::own(key), row: u64::MAX, after: true })
    }

    /// The first entry behind it.
    fn rank<const U: bool>(&self, page: Page<'_>, from: usize) -> usize {
        let key = K::borrow(&self.key);
        if self.after {
            K::rank::<U, true>(page, from, key, self.row)
        } else {
            K::rank::<U, false>(page, from, key, self.row)
        }
    }
}

/// Entries in order, or in reverse. What is inserted or removed meanwhile may be among them or not; everything else is, once.
#[derive(Debug)]
pub struct Range<'i, K: Key, const U: bool, P: Policy = Standard> {
    index: &'i Index<K, U, P>,
    from: Option<Cut<K>>,
    to: Option<Cut<K>>,
    back: bool,
    done: bool,
    leaf: IntoIter<(K::Owned, u64)>,
}

impl<'i, K: Key, const U: bool, P: Policy> Range<'i, K, U, P> {
    pub(crate) fn new(index: &'i Index<K, U, P>, from: Option<Cut<K>>, to: Option<Cut<K>>, back: bool) -> Self {
        Self { index, from, to, back, done: false, leaf: Vec::new().into_iter() }
    }

    /// Copies the next leaf.
    fn fill(&mut self) -> Result<()> {
        let (back, from, to) = (self.back, &self.from, &self.to);
        let pick = |page: Page<'_>| match (back, from, to) {
            (false, Some(from), _) => K::child::<U>(page, K::borrow(&from.key), from.row),
            (false, None, _) => 0,
            (true, _, Some(to)) if to.after => K::child::<U>(page, K::borrow(&to.key), to.row),
            (true, _, Some(to)) => K::child_below::<U>(page, K::borrow(&to.key), to.row),
            (true, _, None) => page.count().saturating_sub(1),
        };
        let (entries, edge) = self.index.attempt(|shared| {
            // The key that divides this leaf from the next one that is wanted.
            let mut edge = None;
            let trail = |page: Page<'_>, entry: usize| {
                let at = if back { entry } else { entry + 1 };
                if at > 0 && at < page.count() {
                    edge = Some((K::key(page, at), K::row::<U>(page, at)));
                }
            };
            let Some(place) = self.index.descend::<false>(shared, 0, pick, trail)? else { return Ok(None) };
            let page = place.node.node.page;
            let first = from.as_ref().map_or(0, |cut| cut.rank::<U>(page, 0));
            let count = page.count().min(page.len());
            let last = to.as_ref().map_or(count, |cut| cut.rank::<U>(page, 0)).min(count);
            let entries: Vec<_> = (first..last).map(|at| (K::key(page, at), page.value(at))).collect();
            let ends = if back { first > 0 } else { last < count };
            Ok(place.node.check().then_some((entries, if ends { None } else { edge })))
        })?;
        self.done = edge.is_none();
        if let Some((key, row)) = edge {
            let cut = Some(Cut { key, row, after: false });
            if back { self.to = cut } else { self.from = cut }
        }
        self.leaf = entries.into_iter();
        Ok(())
    }

    /// Whether nothing can lie between the cuts any more.
    fn is_empty(&self) -> bool {
        let (Some(from), Some(to)) = (&self.from, &self.to) else { return false };
        let order = K::compare::<U>((K::borrow(&from.key), from.row), (K::borrow(&to.key), to.row));
        order.then(from.after.cmp(&to.after)).is_ge()
    }
}

impl<K: Key, const U: bool, P: Policy> Iterator for Range<'_, K, U, P> {
    type Item = Result<(K::Owned, u64)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let next = if self.back { self.leaf.next_back() } else { self.leaf.next() };
            if let Some(entry) = next {
                return Some(Ok(entry));
            }
            if self.done || self.is_empty() {
                return None;
            }
            if let Err(e) = self.fill() {
                self.done = true;
                return Some(Err(e));
            }
        }
    }
}
