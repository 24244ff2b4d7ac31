//! The buffer pool: pages of all indexes, of several sizes, under one budget.
//!
//! For each size there are regions of addresses, cut into frames; memory is behind a frame only while a page is in it. So pages
//! of all sizes share the budget, none moves, and nothing is fragmented (Neumann, Freitag, "Umbra", CIDR 2020). Regions are
//! reserved as pages come in, each as large as all before it together: a pool takes few addresses as long as it holds little,
//! however much it may hold.
//!
//! Pages form trees. **A page in memory has its parent in memory**, which knows how many of its children are: pages leave from
//! the leaves up. To leave, a page that storage does not have in this state is written first, without any latch; then, under
//! its own latch and its parent's, the parent's word becomes the place it was written to.
//!
//! Which page leaves is a clock's decision: a page used since the hand came by gets a second chance.
//! No thread waits for a frame: if nothing can leave at the moment, the pool takes more memory than its share, and gives it back
//! later. A thread that asks for one holds no latch of a page in a tree.

pub(crate) mod frame;
pub mod translation;

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Arc, Mutex, OnceLock, RwLock, Weak};

use plinth_core::sync::{lock, read, write};
use plinth_io::{MemoryBudget, Reclaim, Reservation};

use crate::error::Result;
use crate::latch::Latch;
use crate::page::{CLASSES, Page, Swip, UNIT, words_of};
use crate::region::Region;
use crate::store::Store;
use frame::{Frame, Node, Writing};
use translation::Translation;

/// How a pool latches its pages and finds them.
pub trait Policy: Send + Sync + Sized + 'static {
    /// What protects a page.
    type Latch: Latch;
    /// How children are found.
    type Translation: Translation;
}

/// Optimistic latches and swizzled references.
#[derive(Clone, Copy, Debug)]
pub struct Standard;

impl Policy for Standard {
    type Latch = crate::latch::Hybrid;
    type Translation = translation::Swizzled;
}

/// Memory for the pages of any number of indexes.
pub struct Pool<P: Policy = Standard> {
    classes: [Class<P::Latch>; CLASSES],
    translation: P::Translation,
    stores: RwLock<Vec<Option<Arc<Store>>>>,
    clock: Mutex<Clock>,
    memory: Mutex<Reservation>,
    /// Bytes of frames that are in use or free with memory behind them.
    held: AtomicU64,
    limit: u64,
    counters: Counters,
}

/// The frames of one size.
struct Class<L: Latch> {
    /// Each has as many as all before it ([`FIRST`]).
    chunks: [OnceLock<Chunk<L>>; CHUNKS],
    /// Frames there may be.
    most: usize,
    /// Frames that are free.
    free: Mutex<Vec<u32>>,
    /// Frames that were ever used.
    used: AtomicUsize,
}

/// Frames that were reserved together, and their pages.
struct Chunk<L: Latch> {
    frames: Region<Frame<L>>,
    pages: Region<AtomicU64>,
}

/// Pages of the smallest class in a first chunk, as a power of two; of larger ones as many bytes.
const FIRST: usize = 8;
/// Chunks of a size: of more frames than a name can tell apart.
const CHUNKS: usize = 32;

/// Frames of a class in a chunk: of the first two the same, then twice as many each time.
fn frames_of(class: usize, chunk: usize) -> usize {
    1 << (FIRST.saturating_sub(class) + chunk.saturating_sub(1))
}

/// The chunk that has a frame of a class, and which one of the chunk's it is.
#[inline]
fn place(class: usize, index: usize) -> (usize, usize) {
    let shift = FIRST.saturating_sub(class);
    let chunk = (usize::BITS - (index >> shift).leading_zeros()) as usize;
    let before = if chunk == 0 { 0 } else { 1 << (shift + chunk - 1) };
    (chunk, index - before)
}

impl<L: Latch> Class<L> {
    /// A frame's chunk, if it is reserved, and which of its frames it is.
    #[inline]
    fn find(&self, class: usize, index: usize) -> Option<(&Chunk<L>, usize)> {
        let (chunk, at) = place(class, index);
        Some((self.chunks.get(chunk)?.get()?, at))
    }

    /// Reserves the chunk of a frame, if it is not.
    fn reserve(&self, class: usize, index: usize) -> Result<()> {
        let (at, _) = place(class, index);
        if let Some(chunk) = self.chunks.get(at).filter(|chunk| chunk.get().is_none()) {
            let frames = frames_of(class, at);
            let new = Chunk { frames: Region::new(frames)?, pages: Region::new(frames * words_of(class))? };
            // If another was first, this one goes: nothing of it was seen.
            let _ = chunk.set(new);
        }
        Ok(())
    }

    /// Bytes of addresses.
    fn addresses(&self) -> u64 {
        let bytes = |chunk: &Chunk<L>| size_of_val(&*chunk.frames) + size_of_val(&*chunk.pages);
        self.chunks.iter().filter_map(OnceLock::get).map(|chunk| bytes(chunk) as u64).sum()
    }
}

#[derive(Default)]
struct Clock {
    pages: Vec<Swip>,
    hand: usize,
}

#[derive(Default)]
struct Counters {
    reads: AtomicU64,
    writes: AtomicU64,
    evictions: AtomicU64,
    over: AtomicU64,
}

/// What a pool did since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolCounters {
    /// Pages read from storage.
    pub reads: u64,
    /// Pages written to storage.
    pub writes: u64,
    /// Pages that left memory.
    pub evictions: u64,
    /// Pages that were taken in above the limit, as nothing could leave at that moment.
    pub over: u64,
    /// Bytes held now.
    pub bytes: u64,
    /// Bytes of addresses that are reserved, most of them without memory.
    pub addresses: u64,
}

/// Bytes that a page of a class takes, its frame included.
fn cost(class: usize) -> u64 {
    ((UNIT << class) + size_of::<Frame<crate::latch::Hybrid>>()) as u64
}

/// Bytes beyond the limit, for pages that come in while nothing can leave.
const SLACK: usize = 64 << 20;

impl<P: Policy> Pool<P> {
    /// A pool of at most so many bytes of a budget. Memory and addresses are taken as pages come in.
    ///
    /// # Errors
    /// None so far: what can't be had is an error of the page that needs it.
    pub fn new(budget: &Arc<MemoryBudget>, limit: u64) -> Result<Arc<Self>> {
        let bytes =
            usize::try_from(limit).unwrap_or(usize::MAX >> 8).saturating_add(SLACK).next_multiple_of(UNIT << CLASSES);
        let classes = std::array::from_fn(|class| Class {
            chunks: std::array::from_fn(|_| OnceLock::new()),
            most: bytes >> class >> UNIT.trailing_zeros(),
            free: Mutex::default(),
            used: AtomicUsize::new(0),
        });
        let pool = Arc::new(Self {
            classes,
            translation: P::Translation::new(bytes / UNIT),
            stores: RwLock::default(),
            clock: Mutex::default(),
            memory: Mutex::new(budget.open("index pages")),
            held: AtomicU64::new(0),
            limit,
            counters: Counters::default(),
        });
        let weak: Weak<Self> = Arc::downgrade(&pool);
        budget.register(weak);
        Ok(pool)
    }

    /// What it did.
    pub fn counters(&self) -> PoolCounters {
        PoolCounters {
            reads: self.counters.reads.load(Relaxed),
            writes: self.counters.writes.load(Relaxed),
            evictions: self.counters.evictions.load(Relaxed),
            over: self.counters.over.load(Relaxed),
            bytes: self.held.load(Relaxed),
            addresses: self.classes.iter().map(Class::addresses).sum(),
        }
    }

    pub(crate) fn count_read(&self) {
        self.counters.reads.fetch_add(1, Relaxed);
    }

    pub(crate) fn register(&self, store: &Arc<Store>) -> u32 {
        let mut stores = write(&self.stores);
        let at = stores.iter().position(Option::is_none).unwrap_or(stores.len());
        if at == stores.len() {
            stores.push(None);
        }
        if let Some(slot) = stores.get_mut(at) {
            *slot = Some(Arc::clone(store));
        }
        u32::try_from(at).unwrap_or(u32::MAX - 1)
    }

    pub(crate) fn forget(&self, owner: u32) {
        let mut stores = write(&self.stores);
        if let Some(slot) = stores.get_mut(owner as usize) {
            *slot = None;
        }
    }

    fn store(&self, owner: u32) -> Option<Arc<Store>> {
        read(&self.stores).get(owner as usize)?.clone()
    }

    pub(crate) fn translation(&self) -> &P::Translation {
        &self.translation
    }

    /// The frame of a name, which may come from a page that is changing: then there may be none, or any.
    #[inline]
    pub(crate) fn node(&self, swip: Swip) -> Option<Node<'_, P::Latch>> {
        let (chunk, at) = self.classes.get(swip.class())?.find(swip.class(), swip.index())?;
        let (frame, words) = (chunk.frames.get(at)?, words_of(swip.class()));
        let start = at * words;
        Some(Node { swip, frame, page: Page::new(chunk.pages.get(start..start + words)?) })
    }

    /// The child that a word names, if it is in memory.
    #[inline]
    pub(crate) fn child(&self, word: u64) -> Option<Node<'_, P::Latch>> {
        if let Some(guess) = self.translation.guess(Swip(word))
            && let Some(node) = self.node(guess)
            && node.frame.word.load(Relaxed) == word
            && node.frame.owner().is_some()
        {
            return Some(node);
        }
        self.node(self.translation.find(Swip(word))?)
    }

    /// A frame for a page of an owner: latched, and known to no other thread.
    pub(crate) fn allocate(&self, class: usize, owner: u32) -> Result<Writing<'_, P::Latch>> {
        let node = self.room(class)?;
        node.node.frame.set_owner(Some(owner));
        let frame = node.node.frame;
        for word in [&frame.home, &frame.named, &frame.word, &frame.parent] {
            word.store(0, Relaxed);
        }
        frame.children.store(0, Relaxed);
        frame.dirty.store(false, Relaxed);
        Ok(node)
    }

    /// Room within the limit if anything can leave, else beyond it.
    fn room(&self, class: usize) -> Result<Writing<'_, P::Latch>> {
        let wanted = cost(class);
        let mut refused = None;
        for _ in 0..256 {
            if self.take(wanted) {
                return self.unused(class).inspect_err(|_| self.put_back(wanted));
            }
            match self.evict() {
                // The victim's frame will do; its memory stays with it.
                Ok(Some(victim)) if victim.node.swip.class() == class && !self.is_over() => return Ok(victim),
                Ok(Some(victim)) => self.give_back(victim, &mut lock(&self.memory)),
                Ok(None) => break,
                // Another page may be clean.
                Err(e) => refused = Some(e),
            }
        }
        if let Some(e) = refused {
            return Err(e);
        }
        self.counters.over.fetch_add(1, Relaxed);
        lock(&self.memory).charge(wanted);
        self.held.fetch_add(wanted, Relaxed);
        self.unused(class).inspect_err(|_| self.put_back(wanted))
    }

    fn is_over(&self) -> bool {
        self.held.load(Relaxed) > self.limit
    }

    /// Counts bytes, if they are there.
    fn take(&self, bytes: u64) -> bool {
        if self.held.load(Relaxed) + bytes > self.limit {
            return false;
        }
        let taken = lock(&self.memory).try_grow(bytes).is_ok();
        if taken {
            self.held.fetch_add(bytes, Relaxed);
        }
        taken
    }

    /// Counts bytes no more.
    fn put_back(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Relaxed);
        lock(&self.memory).shrink(bytes);
    }

    /// A frame without memory.
    fn unused(&self, class: usize) -> Result<Writing<'_, P::Latch>> {
        let none = || crate::IndexError::NoMemory {
            bytes: (UNIT << class) as u64,
            reason: "all addresses of its pages are taken".to_owned(),
        };
        let of = self.classes.get(class).ok_or_else(none)?;
        let free = lock(&of.free).pop();
        let new = || {
            let next = |used: usize| (used < of.most).then_some(used + 1);
            of.used.fetch_update(Relaxed, Relaxed, next).ok().and_then(|used| u32::try_from(used).ok())
        };
        let index = free.or_else(new).ok_or_else(none)?;
        of.reserve(class, index as usize).inspect_err(|_| lock(&of.free).push(index))?;
        self.node(Swip::frame(class, index)).map(Writing::begin).ok_or_else(none)
    }

    /// Frees a frame that no page refers to any more.
    pub(crate) fn free(&self, node: Writing<'_, P::Latch>) {
        node.node.frame.set_owner(None);
        // Its place on storage is about to be another page's. The thread that writes it there may have to see first that it is free.
        let free = node.node;
        drop(node);
        while free.frame.cleaning.load(Acquire) {
            std::thread::yield_now();
        }
        let node = Writing::begin(free);
        self.give_back(node, &mut lock(&self.memory));
    }

    fn give_back(&self, node: Writing<'_, P::Latch>, memory: &mut Reservation) {
        let swip = node.node.swip;
        if let Some(class) = self.classes.get(swip.class())
            && let Some((chunk, at)) = class.find(swip.class(), swip.index())
        {
            let start = at * words_of(swip.class());
            chunk.pages.discard(start..start + words_of(swip.class()));
            self.held.fetch_sub(cost(swip.class()), Relaxed);
            memory.shrink(cost(swip.class()));
            drop(node);
            if let Ok(index) = u32::try_from(swip.index()) {
                lock(&class.free).push(index);
            }
        }
    }

    /// Lets the clock have a page that is in the tree now.
    pub(crate) fn admit(&self, node: Node<'_, P::Latch>) {
        node.frame.touch();
        if !node.frame.queued.swap(true, Relaxed) {
            lock(&self.clock).pages.push(node.swip);
        }
    }

    /// Makes a page leave, whose frame is then the caller's; none if none can now.
    fn evict(&self) -> Result<Option<Writing<'_, P::Latch>>> {
        for _ in 0..64 {
            let Some(swip) = self.candidate() else { return Ok(None) };
            let Some(node) = self.node(swip) else { continue };
            let left = self.leave(node);
            if !matches!(left, Ok(Some(_))) && node.frame.owner().is_some() && !node.frame.queued.swap(true, Relaxed) {
                lock(&self.clock).pages.push(swip);
            }
            if let Some(node) = left? {
                self.counters.evictions.fetch_add(1, Relaxed);
                return Ok(Some(node));
            }
        }
        Ok(None)
    }

    /// Where the hand stops. The clock forgets that page.
    fn candidate(&self) -> Option<Swip> {
        let mut clock = lock(&self.clock);
        for _ in 0..clock.pages.len() * 2 + 1 {
            if clock.hand >= clock.pages.len() {
                clock.hand = 0;
            }
            let at = clock.hand;
            let swip = *clock.pages.get(at)?;
            let node = self.node(swip)?;
            let gone = node.frame.owner().is_none();
            if !gone && (node.frame.cool() || node.frame.children.load(Relaxed) > 0) {
                clock.hand += 1;
                continue;
            }
            clock.pages.swap_remove(at);
            node.frame.queued.store(false, Relaxed);
            if !gone {
                return Some(swip);
            }
        }
        None
    }

    /// Takes a page out of its tree, if no thread is in the way.
    fn leave<'p>(&'p self, node: Node<'p, P::Latch>) -> Result<Option<Writing<'p, P::Latch>>> {
        let Some(owner) = node.frame.owner() else { return Ok(None) };
        if node.frame.dirty.load(Relaxed)
            && let Some(store) = self.store(owner)
        {
            self.clean(node, owner, &store)?;
        }
        let Some(victim) = Writing::try_begin(node) else { return Ok(None) };
        let busy = node.frame.owner() != Some(owner)
            || node.frame.children.load(Relaxed) > 0
            || node.frame.dirty.load(Relaxed)
            || node.frame.is_pinned()
            || node.frame.parent.load(Relaxed) == 0;
        let parent = self.node(Swip(node.frame.parent.load(Relaxed))).filter(|_| !busy);
        let Some(parent) = parent.and_then(Writing::try_begin) else { return Ok(None) };
        let word = node.frame.word.load(Relaxed);
        let is_parent = parent.node.frame.owner() == Some(owner) && parent.node.page.level() > 0;
        let Some(entry) = parent.node.page.find_value(word).filter(|_| is_parent) else { return Ok(None) };
        let home = node.frame.home();
        self.translation.leave(Swip(word));
        parent.node.page.set(parent.node.page.value_at(entry), home.word());
        parent.node.frame.children.fetch_sub(1, Relaxed);
        if node.frame.has_moved() {
            parent.dirty();
        }
        if !P::Translation::SWIZZLES
            && Swip(word).number() != home.number()
            && let Some(store) = self.store(owner)
        {
            store.retire(Swip(word));
        }
        node.frame.set_owner(None);
        Ok(Some(victim))
    }

    /// Writes a page, unless it changes meanwhile. No latch is held while the device is busy. Whether it is clean now.
    pub(crate) fn clean(&self, node: Node<'_, P::Latch>, owner: u32, store: &Store) -> Result<bool> {
        // One at a time: two states of a page on their way to one place might arrive in any order.
        if node.frame.cleaning.swap(true, Acquire) {
            return Ok(false);
        }
        let cleaned = if node.frame.dirty.load(Relaxed) { self.write(node, owner, store) } else { Ok(true) };
        node.frame.cleaning.store(false, Release);
        cleaned
    }

    fn write(&self, node: Node<'_, P::Latch>, owner: u32, store: &Store) -> Result<bool> {
        // Without waiting: a frame that is about to become a page is held by one who may wait for a page to leave, such as
        // this caller.
        let Some(reading) = Writing::try_begin(node).map(Writing::downgrade) else { return Ok(false) };
        // An anchor, which has no parent, is never written: the clock may know its frame from a page that was in it before. Its
        // home is no place: to retire that would give away a slot.
        if node.frame.owner() != Some(owner) || node.frame.parent.load(Relaxed) == 0 {
            return Ok(false);
        }
        let mut image = store.image(node.swip.class());
        for (at, (to, from)) in image.words_mut().zip(node.page.words()).enumerate() {
            *to = if at == 0 { 0 } else { from.load(Relaxed).to_le() };
        }
        for (at, child) in self.children(node.page) {
            image.set_word(at, child.frame.home.load(Relaxed));
        }
        let before = node.frame.home();
        let sound = store.check(node.page);
        if !reading.check() {
            return Ok(false);
        }
        // What is damaged here must not take the place of what is not.
        if let Err(what) = sound {
            store.recycle(image);
            return Err(store.internal(before.number(), what));
        }
        let mut home = store.place(before, node.swip.class())?;
        let checksum = image.checksum(home.number());
        image.set_word(0, checksum);
        home = Swip::home(home.class(), home.number(), checksum);
        self.counters.writes.fetch_add(1, Relaxed);
        let written = store.write(home.number(), &image);
        // The reader's ticket is worth a writer's only if nothing happened since.
        let Some(writing) = written.is_ok().then(|| reading.upgrade()).flatten() else {
            if home.number() != before.number() {
                store.retire(home);
            }
            store.recycle(image);
            return written.map(|()| false);
        };
        for (at, child) in self.children(node.page) {
            child.frame.named.store(image.word(at), Relaxed);
        }
        node.frame.home.store(home.word(), Relaxed);
        node.frame.dirty.store(false, Relaxed);
        drop(writing);
        store.recycle(image);
        let named = !P::Translation::SWIZZLES && Swip(node.frame.word.load(Relaxed)).number() == before.number();
        if home.number() != before.number() && !named {
            store.retire(before);
        }
        Ok(true)
    }
}

impl<P: Policy> Pool<P> {
    /// The children of a page that are in memory, and at which of its words.
    fn children(&self, page: Page<'_>) -> impl Iterator<Item = (usize, Node<'_, P::Latch>)> {
        let count = if page.level() > 0 { page.count().min(page.len()) } else { 0 };
        (0..count).filter_map(move |entry| {
            let at = page.value_at(entry);
            Some((at, self.child(page.get(at))?))
        })
    }
}

impl<P: Policy> Reclaim for Pool<P> {
    fn reclaim(&self, bytes: u64) -> u64 {
        // The caller may be this pool, growing.
        let Ok(mut memory) = self.memory.try_lock() else { return 0 };
        let mut given = 0;
        while given < bytes
            && let Ok(Some(victim)) = self.evict()
        {
            given += cost(victim.node.swip.class());
            self.give_back(victim, &mut memory);
        }
        given
    }
}

impl<P: Policy> fmt::Debug for Pool<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("limit", &self.limit).field("counters", &self.counters()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_frame_is_one_of_a_chunk() {
        for class in 0..CLASSES {
            let mut next = (0, 0);
            for index in 0..5_000 {
                assert_eq!(place(class, index), next, "frame {index} of class {class}");
                next.1 += 1;
                if next.1 == frames_of(class, next.0) {
                    next = (next.0 + 1, 0);
                }
            }
            let (chunk, at) = place(class, u32::MAX as usize);
            assert!(chunk < CHUNKS && at + 1 == frames_of(class, chunk));
        }
    }
}
