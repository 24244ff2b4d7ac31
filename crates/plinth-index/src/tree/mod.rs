//! The index: a B+tree whose nodes are pages of a pool.
//!
//! Leaves have no neighbours, so each page has one reference to it, its parent's. A scan goes from leaf to leaf by the keys
//! that divide them, as its parents say.
//!
//! Above the root is the *anchor*, a page with one child that never leaves memory: so the root is a child like any other.

mod batch;
mod checkpoint;
mod descend;
mod gate;
mod insert;
mod remove;
pub(crate) mod scan;
#[cfg(test)]
mod tests;
pub(crate) mod verify;

use std::marker::PhantomData;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use crate::error::{IndexError, Result};
use crate::node::{Key, Nodes, layout};
use crate::page::{CLASSES, HEADER, Page, Swip, UNIT};
use crate::pool::frame::{Node, Writing};
use crate::pool::translation::Translation;
use crate::pool::{Policy, Pool, Standard};
use crate::store::file::PageFile;
use crate::store::{Meta, Store};
use gate::Gate;
use plinth_core::sync::lock;
use scan::{Cut, Range};

/// The anchor's level.
pub(crate) const ANCHOR: u8 = 255;

/// How to make an index.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Bytes of a page: 4,096 times a power of two, at most 128 times. Pages of long byte strings are larger where they
    /// must be.
    pub page_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { page_bytes: UNIT }
    }
}

/// Keys and their rows. Unless `UNIQUE`, a key may have many rows.
///
/// What is not [checkpointed](Index::checkpoint) is lost when the index is dropped.
#[derive(Debug)]
pub struct Index<K: Key, const UNIQUE: bool = true, P: Policy = Standard> {
    pool: Arc<Pool<P>>,
    store: Arc<Store>,
    /// The index's number in the pool.
    owner: u32,
    anchor: Swip,
    gate: Gate,
    /// The class of new pages.
    class: u8,
    /// The last checkpoint.
    sequence: Mutex<u64>,
    position: AtomicU64,
    keys: PhantomData<fn() -> K>,
}

impl<K: Key, const U: bool, P: Policy> Index<K, U, P> {
    /// Makes an empty index in an empty file, and a first checkpoint at position 0.
    ///
    /// # Errors
    /// If the page size is none, the device fails or there is no memory.
    pub fn create(pool: &Arc<Pool<P>>, file: impl PageFile, options: Options) -> Result<Self> {
        let store = Store::new(Box::new(file), written::<K, U>);
        let class = (0..CLASSES).find(|&class| UNIT << class == options.page_bytes);
        let unsuitable = |what: String| IndexError::Unsuitable { file: store.name().to_owned(), what };
        let Some(class) = class else {
            return Err(unsuitable(format!("{} bytes are no size of a page", options.page_bytes)));
        };
        if !store.is_empty()? {
            return Err(unsuitable("it is not empty, so no index is created in it".to_owned()));
        }
        let index = Self::over(pool, store, u8::try_from(class).unwrap_or(0))?;
        let root = index.new_page(class, 0)?;
        index.adopt_root(&root);
        let node = root.node;
        drop(root);
        index.pool.admit(node);
        index.checkpoint(0)?;
        Ok(index)
    }

    /// Opens an index as its last checkpoint left it.
    ///
    /// # Errors
    /// If the file is no index of this kind of keys, is damaged, or the device fails.
    pub fn open(pool: &Arc<Pool<P>>, file: impl PageFile) -> Result<Self> {
        let store = Store::new(Box::new(file), written::<K, U>);
        let meta = store.newest()?;
        let expected = layout::<K, U>();
        if meta.layout != expected {
            let what = format!("its entries are of kind {}, not {expected}: another type of keys", meta.layout);
            return Err(IndexError::Unsuitable { file: store.name().to_owned(), what });
        }
        if usize::from(meta.class) >= CLASSES || meta.level >= ANCHOR - 1 || meta.root.is_frame() {
            return Err(store.corrupt(meta.sequence % 2, "it says impossible things"));
        }
        verify::find_used::<K, U>(&store, meta.root, meta.level)?;
        let index = Self::over(pool, store, meta.class)?;
        let anchor = Writing::begin(index.anchor()?);
        anchor.node.page.set(HEADER, meta.root.word());
        drop(anchor);
        index.gate.set_entries(meta.entries);
        index.position.store(meta.position, Relaxed);
        *index.sequence() = meta.sequence + 1;
        Ok(index)
    }

    fn over(pool: &Arc<Pool<P>>, store: Store, class: u8) -> Result<Self> {
        let store = Arc::new(store);
        let owner = pool.register(&store);
        let anchor = pool.allocate(0, owner).inspect_err(|_| pool.forget(owner))?;
        anchor.node.page.start(ANCHOR, layout::<K, U>(), HEADER, 1);
        anchor.node.page.set_count(1);
        let swip = anchor.node.swip;
        drop(anchor);
        Ok(Self {
            pool: Arc::clone(pool),
            store,
            owner,
            anchor: swip,
            gate: Gate::default(),
            class,
            sequence: Mutex::new(0),
            position: AtomicU64::new(0),
            keys: PhantomData,
        })
    }

    /// Entries. While others change the index, about so many.
    pub fn len(&self) -> u64 {
        self.gate.entries()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What was given to the last checkpoint.
    pub fn position(&self) -> u64 {
        self.position.load(Relaxed)
    }

    /// Bytes of the file, free places included.
    pub fn file_bytes(&self) -> u64 {
        self.store.bytes()
    }

    /// The pool its pages are in.
    pub fn pool(&self) -> &Arc<Pool<P>> {
        &self.pool
    }

    /// The row of a key; the first of them if there may be many.
    ///
    /// # Errors
    /// If a page can't be read or is damaged.
    #[inline]
    pub fn get(&self, key: K::Ref<'_>) -> Result<Option<u64>> {
        if !U {
            let first = self.rows(key)?.next().transpose()?;
            return Ok(first.map(|(_, row)| row));
        }
        self.attempt(|shared| {
            let Some(place) = self.descend::<false>(shared, 0, |page| K::child::<U>(page, key, 0), |_, _| ())? else {
                return Ok(None);
            };
            let page = place.node.node.page;
            let at = K::rank::<U, false>(page, 0, key, 0);
            let row = K::holds(page, at, key).then(|| page.value(at));
            Ok(place.node.check().then_some(row))
        })
    }

    /// The rows of a key, in order.
    ///
    /// # Errors
    /// If the key is too long.
    pub fn rows(&self, key: K::Ref<'_>) -> Result<Range<'_, K, U, P>> {
        check_len::<K>(key)?;
        Ok(Range::new(self, Cut::before(key), Cut::after(key), false))
    }

    /// The entries with keys from one to another, in order.
    pub fn range<'k>(&self, keys: impl KeyRange<'k, K>) -> Range<'_, K, U, P> {
        let (from, to) = keys.cuts();
        Range::new(self, from, to, false)
    }

    /// The same from the last to the first.
    pub fn range_back<'k>(&self, keys: impl KeyRange<'k, K>) -> Range<'_, K, U, P> {
        let (from, to) = keys.cuts();
        Range::new(self, from, to, true)
    }

    fn sequence(&self) -> std::sync::MutexGuard<'_, u64> {
        lock(&self.sequence)
    }

    pub(crate) fn anchor(&self) -> Result<Node<'_, P::Latch>> {
        self.pool.node(self.anchor).ok_or_else(|| self.store.corrupt(0, "the index has no anchor"))
    }

    /// A new, empty page, which no other thread knows yet.
    pub(crate) fn new_page(&self, class: usize, level: u8) -> Result<Writing<'_, P::Latch>> {
        let home = self.store.allocate(class)?;
        let node = self.pool.allocate(class, self.owner).inspect_err(|_| self.store.retire(home))?;
        let frame = node.node.frame;
        K::start::<U>(node.node.page, level);
        frame.home.store(home.word(), Relaxed);
        frame.word.store(self.pool.translation().enter(home, node.node.swip).word(), Relaxed);
        node.dirty();
        Ok(node)
    }

    /// Forgets a page that nothing refers to any more.
    pub(crate) fn discard(&self, node: Writing<'_, P::Latch>) {
        let (word, home) = (Swip(node.node.frame.word.load(Relaxed)), node.node.frame.home());
        self.pool.translation().leave(word);
        self.pool.free(node);
        if !P::Translation::SWIZZLES && word.number() != home.number() {
            self.store.retire(word);
        }
        self.store.retire(home);
    }

    /// Makes a page the only one.
    fn adopt_root(&self, root: &Writing<'_, P::Latch>) {
        if let Ok(anchor) = self.anchor() {
            let anchor = Writing::begin(anchor);
            root.node.frame.parent.store(self.anchor.word(), Relaxed);
            anchor.node.page.set(HEADER, root.node.frame.word.load(Relaxed));
            anchor.node.frame.children.store(1, Relaxed);
        }
    }

    pub(crate) fn meta(&self, sequence: u64, root: Swip, level: u8, position: u64) -> Meta {
        let (layout, class, entries) = (layout::<K, U>(), self.class, self.gate.entries());
        Meta { sequence, layout, root, level, class, entries, position }
    }
}

/// A range of keys, as [`Index::range`] takes it: any range of the standard library over `K::Ref`.
pub trait KeyRange<'k, K: Key> {
    /// Where it begins and ends.
    #[doc(hidden)]
    fn cuts(&self) -> (Option<Cut<K>>, Option<Cut<K>>);
}

impl<'k, K: Key, R: std::ops::RangeBounds<K::Ref<'k>>> KeyRange<'k, K> for R {
    fn cuts(&self) -> (Option<Cut<K>>, Option<Cut<K>>) {
        let from = match self.start_bound() {
            Bound::Included(&key) => Cut::before(key),
            Bound::Excluded(&key) => Cut::after(key),
            Bound::Unbounded => None,
        };
        let to = match self.end_bound() {
            Bound::Included(&key) => Cut::after(key),
            Bound::Excluded(&key) => Cut::before(key),
            Bound::Unbounded => None,
        };
        (from, to)
    }
}

impl<K: Key, const U: bool, P: Policy> Drop for Index<K, U, P> {
    fn drop(&mut self) {
        if let Ok(anchor) = self.anchor() {
            self.drop_children(anchor);
            self.pool.free(Writing::begin(anchor));
        }
        self.pool.forget(self.owner);
    }
}

impl<K: Key, const U: bool, P: Policy> Index<K, U, P> {
    /// Frees the frames below a node. Pages may leave meanwhile, but none comes in: no thread reads any more.
    fn drop_children(&self, node: Node<'_, P::Latch>) {
        for entry in 0..node.page.count() {
            let parent = Writing::begin(node);
            let Some(child) = self.pool.child(parent.node.page.value(entry)) else { continue };
            // A cleaner that was late would find another page in the frame, and does nothing then.
            drop(parent);
            if child.page.level() > 0 {
                self.drop_children(child);
            }
            let parent = Writing::begin(node);
            let Some(child) = self.pool.child(parent.node.page.value(entry)) else { continue };
            let child = Writing::begin(child);
            self.pool.translation().leave(Swip(child.node.frame.word.load(Relaxed)));
            parent.node.page.set(parent.node.page.value_at(entry), 0);
            parent.node.frame.children.fetch_sub(1, Relaxed);
            self.pool.free(child);
        }
    }
}

pub(crate) fn check_len<K: Nodes>(key: K::Ref<'_>) -> Result<()> {
    let len = K::len(key);
    if len > crate::MAX_KEY { Err(IndexError::KeyTooLong { len }) } else { Ok(()) }
}

/// What is wrong with a page that is about to be written: where all can be looked at, in tests, all of it; else what costs
/// less than its checksum.
fn written<K: Nodes, const U: bool>(page: Page<'_>) -> Result<(), String> {
    if cfg!(debug_assertions) { K::check::<U>(page) } else { K::sound::<U>(page) }
}

/// The word of an entry's child, and where it is.
pub(crate) fn reference(page: Page<'_>, entry: usize) -> (usize, u64) {
    let at = page.value_at(entry);
    (at, page.get(at))
}
