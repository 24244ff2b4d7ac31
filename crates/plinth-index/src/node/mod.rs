//! Nodes: how entries lie in a page, and how they are found, by the kind of key.
//!
//! An entry is a key and a value. In a leaf the value is a row, in an inner node a reference to a child, which holds what
//! is not below the entry's key and below the next entry's. The first entry of an inner node has no key: it stands for
//! all below the second. In an index that is not unique, entries with equal keys are ordered by their rows, and inner
//! nodes hold a row beside each key.
//!
//! Everything that only reads may be called while the page changes; it then returns anything, soon.

pub(crate) mod bytes;
pub(crate) mod fixed;
mod memory;
pub(crate) mod search;

use std::cmp::Ordering;
use std::fmt::Debug;

use crate::page::Page;

/// A kind of keys. The index is compiled for each.
///
/// Implemented for `i32`, `i64`, `u64`, `u128` (a UUID as a big-endian number) and [`Bytes`]; not to be implemented
/// elsewhere.
pub trait Key: Nodes {}

/// Byte strings in the order of their bytes: text, and whatever has been brought to that form.
#[derive(Clone, Copy, Debug)]
pub struct Bytes;

impl<K: Nodes> Key for K {}

/// What becomes of an entry that is to go into a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// There is room.
    Fits,
    /// The page must be split.
    Split,
    /// The page must become one of this class.
    Grow(usize),
}

/// What the tree asks of its pages. `U` is whether the index is unique.
pub trait Nodes: Send + Sync + Sized + 'static {
    /// A key to look for.
    type Ref<'a>: Copy;
    /// A key that was found.
    type Owned: Clone + Debug + Send + Sync;
    /// The number of the kind in files.
    const KIND: u8;

    /// A found key as one to look for.
    fn borrow(owned: &Self::Owned) -> Self::Ref<'_>;
    /// A copy.
    fn own(key: Self::Ref<'_>) -> Self::Owned;
    /// The order of keys.
    fn order(a: Self::Ref<'_>, b: Self::Ref<'_>) -> Ordering;
    /// Bytes of a key.
    fn len(key: Self::Ref<'_>) -> usize;

    /// Begins an empty page.
    fn start<const U: bool>(page: Page<'_>, level: u8);
    /// Brings what a search will look at towards the core.
    fn prefetch(page: Page<'_>);
    /// The first entry from `from` on that is not below (not above, if `EQUAL`) a key and a row.
    fn rank<const U: bool, const EQUAL: bool>(page: Page<'_>, from: usize, key: Self::Ref<'_>, row: u64) -> usize;
    /// Whether an entry has a key.
    fn holds(page: Page<'_>, entry: usize, key: Self::Ref<'_>) -> bool;
    /// An entry's key.
    fn key(page: Page<'_>, entry: usize) -> Self::Owned;
    /// The row that tells an entry from others of its key; 0 in a unique index.
    fn row<const U: bool>(page: Page<'_>, entry: usize) -> u64;
    /// Whether an entry of a key fits.
    fn room<const U: bool>(page: Page<'_>, key: Self::Ref<'_>) -> Room;
    /// Puts an entry, which fits, before another. False, and nothing is changed, if it does not fit after all.
    #[must_use]
    fn insert<const U: bool>(page: Page<'_>, at: usize, key: Self::Ref<'_>, row: u64, value: u64) -> bool;
    /// Takes an entry away.
    fn remove<const U: bool>(page: Page<'_>, at: usize);
    /// The entry at which a page of at least two is best split.
    fn middle<const U: bool>(page: Page<'_>) -> usize;
    /// The shortest key, with a row, that is above an entry of a leaf and not above another key and row.
    fn between<const U: bool>(page: Page<'_>, below: usize, key: Self::Ref<'_>, row: u64) -> (Self::Owned, u64);
    /// Moves the entries from `at` on to an empty page of the same level and at least the same size. False, and nothing is
    /// changed, if they do not fit.
    #[must_use]
    fn divide<const U: bool>(page: Page<'_>, at: usize, upper: Page<'_>) -> bool;
    /// Appends all entries of the page above to this one, if they fill no more than three quarters; the first gets a key if
    /// the pages are inner nodes.
    fn merge<const U: bool>(page: Page<'_>, upper: Page<'_>, key: Self::Ref<'_>, row: u64) -> bool;
    /// Whether a page is so empty that it should be merged.
    fn is_sparse<const U: bool>(page: Page<'_>) -> bool;
    /// What is wrong with how entries lie in a page, all of which is within the page: a small share of [`Nodes::check`].
    fn sound<const U: bool>(page: Page<'_>) -> Result<(), String>;
    /// What is wrong with a page that no other thread has seen yet.
    fn check<const U: bool>(page: Page<'_>) -> Result<(), String>;

    /// The child that a key and a row are in.
    #[inline]
    fn child<const U: bool>(page: Page<'_>, key: Self::Ref<'_>, row: u64) -> usize {
        Self::rank::<U, true>(page, 1, key, row).saturating_sub(1)
    }

    /// The child that the last entry below a key and a row is in.
    fn child_below<const U: bool>(page: Page<'_>, key: Self::Ref<'_>, row: u64) -> usize {
        Self::rank::<U, false>(page, 1, key, row).saturating_sub(1)
    }

    /// Compares entries.
    fn compare<const U: bool>(a: (Self::Ref<'_>, u64), b: (Self::Ref<'_>, u64)) -> Ordering {
        let keys = Self::order(a.0, b.0);
        if U { keys } else { keys.then(a.1.cmp(&b.1)) }
    }
}

/// Checks what all kinds have in common: values where the kind has them, children in an inner node.
pub(crate) fn check_layout<K: Nodes, const U: bool>(page: Page<'_>, values: (usize, usize)) -> Result<(), String> {
    if page.layout() != layout::<K, U>() || page.values() != values {
        return Err("its entries lie in a way that this kind of index does not use".to_owned());
    }
    if page.level() > 0 && page.count() == 0 {
        return Err("an inner node has no children".to_owned());
    }
    Ok(())
}

/// Checks that entries are in order.
pub(crate) fn check_order<K: Nodes, const U: bool>(page: Page<'_>) -> Result<(), String> {
    let inner = page.level() > 0;
    let mut before: Option<(K::Owned, u64)> = None;
    for entry in usize::from(inner)..page.count() {
        let this = (K::key(page, entry), K::row::<U>(page, entry));
        let ordered = |b: &(K::Owned, u64)| {
            K::compare::<U>((K::borrow(&b.0), b.1), (K::borrow(&this.0), this.1)) == Ordering::Less
        };
        if !before.as_ref().is_none_or(ordered) {
            return Err(format!("entries {} and {entry} are not in order", entry - 1));
        }
        before = Some(this);
    }
    Ok(())
}

/// How entries of a kind lie, as a number.
pub(crate) fn layout<K: Nodes, const U: bool>() -> u8 {
    K::KIND << 1 | u8::from(U)
}
