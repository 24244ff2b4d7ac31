//! An index's file: two slots that say where the root is, and pages.
//!
//! A checkpoint writes every page that changed to a place that the checkpoint before does not use, syncs, and then writes the
//! slot that is not the newest, and syncs. So after a crash at any moment one slot names a whole tree: what the index was at
//! the last checkpoint that succeeded.

pub(crate) mod file;
mod space;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::error::{IndexError, Result};
use crate::page::{Image, Page, Swip, UNIT};
use file::{PageFile, PageRead};
use plinth_core::sync::lock;
use space::Space;

/// `PLINTHIX` as a little-endian word.
const MAGIC: u64 = u64::from_le_bytes(*b"PLINTHIX");
/// Of the layout of files.
const VERSION: u64 = 0;
/// Slots at the start of a file, one unit each.
const SLOTS: u64 = 2;

/// What a checkpoint says of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    /// How many checkpoints there were before.
    pub(crate) sequence: u64,
    /// How entries lie: the kind of key, and whether the index is unique.
    pub(crate) layout: u8,
    /// The root.
    pub(crate) root: Swip,
    /// The root's level.
    pub(crate) level: u8,
    /// The class of new pages.
    pub(crate) class: u8,
    /// Entries.
    pub(crate) entries: u64,
    /// The caller's.
    pub(crate) position: u64,
}

impl Meta {
    fn image(&self) -> Image {
        let mut image = Image::new(0);
        let kind = u64::from(self.layout) | u64::from(self.level) << 8 | u64::from(self.class) << 16;
        let words = [MAGIC, VERSION, self.sequence, kind, self.root.word(), self.entries, self.position];
        for (at, word) in (1..).zip(words) {
            image.set_word(at, word);
        }
        let checksum = image.checksum(self.sequence % SLOTS);
        image.set_word(0, checksum);
        image
    }

    fn parse(image: &Image, slot: u64) -> Option<Self> {
        if image.word(0) != image.checksum(slot) || image.word(1) != MAGIC || image.word(2) != VERSION {
            return None;
        }
        let kind = image.word(4).to_le_bytes();
        let (sequence, root) = (image.word(3), Swip::from_word(image.word(5)));
        let meta = Self {
            sequence,
            layout: kind[0],
            root,
            level: kind[1],
            class: kind[2],
            entries: image.word(6),
            position: image.word(7),
        };
        (sequence % SLOTS == slot).then_some(meta)
    }
}

/// A file with its free space.
#[derive(Debug)]
pub(crate) struct Store {
    file: Box<dyn PageFile>,
    space: Mutex<Space>,
    /// Images of the smallest class to use again.
    images: Mutex<Vec<Image>>,
    /// A sync has failed.
    failed: AtomicBool,
    /// What is wrong with a page that is about to be written.
    check: PageCheck,
}

/// Looks at a page as its kind of index has them.
pub(crate) type PageCheck = fn(Page<'_>) -> Result<(), String>;

/// A checkpoint that writes its last pages. Dropped before it is the newest, it is none.
#[derive(Debug)]
pub(crate) struct Switch<'s>(&'s Store);

/// Images kept for the next read or write.
const KEPT: usize = 64;

impl Store {
    pub(crate) fn new(file: Box<dyn PageFile>, check: PageCheck) -> Self {
        let space = Space::around(std::iter::empty(), SLOTS);
        Self { file, space: Mutex::new(space), images: Mutex::default(), failed: AtomicBool::new(false), check }
    }

    pub(crate) fn name(&self) -> &str {
        self.file.name()
    }

    /// Whether the file has nothing in it.
    pub(crate) fn is_empty(&self) -> Result<bool> {
        Ok(self.file.is_empty()?)
    }

    /// Bytes of the file that are, or were, in use.
    pub(crate) fn bytes(&self) -> u64 {
        lock(&self.space).end() * UNIT as u64
    }

    /// Units that may be given.
    #[cfg(test)]
    pub(crate) fn free_units(&self) -> u64 {
        lock(&self.space).free_units()
    }

    pub(crate) fn corrupt(&self, page: u64, what: impl Into<String>) -> IndexError {
        IndexError::Corrupt { file: self.name().to_owned(), page, what: what.into() }
    }

    /// A page that must not be written.
    pub(crate) fn internal(&self, page: u64, what: impl Into<String>) -> IndexError {
        IndexError::Internal { file: self.name().to_owned(), page, what: what.into() }
    }

    /// What is wrong with a page that is about to be written.
    pub(crate) fn check(&self, page: Page<'_>) -> Result<(), String> {
        (self.check)(page)
    }

    /// Says that only `used` is in use, in any order.
    ///
    /// # Errors
    /// If two pages share a place, or one lies where slots are or behind the end of the file.
    pub(crate) fn set_used(&self, mut used: Vec<(u64, usize)>) -> Result<()> {
        used.sort_unstable();
        let mut end = SLOTS;
        for &(number, class) in &used {
            if number < end {
                return Err(self.corrupt(number, "two nodes refer to it, or to a page that overlaps it"));
            }
            end = number + (1 << class);
        }
        if self.file.len()? < end * UNIT as u64 {
            return Err(self.corrupt(end - 1, "the file ends before it"));
        }
        *lock(&self.space) = Space::around(used.into_iter(), SLOTS);
        Ok(())
    }

    /// An image with anything in it.
    pub(crate) fn image(&self, class: usize) -> Image {
        let kept = if class == 0 { lock(&self.images).pop() } else { None };
        kept.unwrap_or_else(|| Image::new(class))
    }

    /// Takes an image that is not needed any more.
    pub(crate) fn recycle(&self, image: Image) {
        let mut images = lock(&self.images);
        if image.class() == 0 && images.len() < KEPT {
            images.push(image);
        }
    }

    /// A place for a new page.
    pub(crate) fn allocate(&self, class: usize) -> Result<Swip> {
        let number = lock(&self.space).allocate(class);
        let full = || IndexError::Unsuitable {
            file: self.name().to_owned(),
            what: "it has as many pages as an index can have".to_owned(),
        };
        number.map(|number| Swip::home(class, number, 0)).ok_or_else(full)
    }

    /// Where a page may be written that was at `before`: there, if the last checkpoint does not know it.
    pub(crate) fn place(&self, before: Swip, class: usize) -> Result<Swip> {
        if lock(&self.space).is_fresh(before.number()) { Ok(before) } else { self.allocate(class) }
    }

    /// Nothing will refer to a place any more.
    pub(crate) fn retire(&self, home: Swip) {
        lock(&self.space).retire(home.class(), home.number());
    }

    /// Reads a page; false if it is not the one that is meant.
    pub(crate) fn read(&self, home: Swip, image: &mut Image) -> Result<bool> {
        self.file.read(home.number() * UNIT as u64, image)?;
        Ok(self.is_sound(home, image))
    }

    /// Reads many at the same time.
    pub(crate) fn read_many(&self, homes: &[Swip]) -> Result<Vec<Image>> {
        let read = |home: &Swip| PageRead { offset: home.number() * UNIT as u64, image: self.image(home.class()) };
        let mut reads: Vec<PageRead> = homes.iter().map(read).collect();
        self.file.read_many(&mut reads)?;
        Ok(reads.into_iter().map(|read| read.image).collect())
    }

    /// Whether an image is the page that is meant.
    pub(crate) fn is_sound(&self, home: Swip, image: &Image) -> bool {
        let checksum = image.checksum(home.number());
        image.word(0) == checksum && home.matches(checksum)
    }

    pub(crate) fn write(&self, number: u64, image: &Image) -> Result<()> {
        Ok(self.file.write(number * UNIT as u64, image)?)
    }

    pub(crate) fn check_alive(&self) -> Result<()> {
        if self.failed.load(Relaxed) { Err(IndexError::Failed { file: self.name().to_owned() }) } else { Ok(()) }
    }

    /// From now on, a checkpoint may refer to any page there is.
    pub(crate) fn switch(&self) -> Switch<'_> {
        lock(&self.space).switch();
        Switch(self)
    }

    fn sync(&self) -> Result<()> {
        // What of the file is durable is unknown after a failure, and a sync that succeeds later would not tell.
        self.file.sync().inspect_err(|_| {
            self.failed.store(true, Relaxed);
            lock(&self.space).freeze();
        })?;
        Ok(())
    }

    /// The newest slot that is whole.
    pub(crate) fn newest(&self) -> Result<Meta> {
        let mut image = Image::new(0);
        let mut newest: Option<Meta> = None;
        let len = self.file.len()?;
        for slot in 0..SLOTS {
            if (slot + 1) * UNIT as u64 > len {
                continue;
            }
            self.file.read(slot * UNIT as u64, &mut image)?;
            let meta = Meta::parse(&image, slot);
            if meta.is_some_and(|m| newest.is_none_or(|n| n.sequence < m.sequence)) {
                newest = meta;
            }
        }
        let what = "neither of its two slots says where an index is; remove the file and open its table for writing, which \
                    builds it again";
        let none = || IndexError::Unsuitable { file: self.name().to_owned(), what: what.to_owned() };
        newest.ok_or_else(none)
    }
}

impl Switch<'_> {
    /// Makes all that was written durable, then the slot that says so.
    pub(crate) fn commit(self, meta: &Meta) -> Result<()> {
        let store = self.0;
        store.check_alive()?;
        store.sync()?;
        if let Err(e) = store.file.write(meta.sequence % SLOTS * UNIT as u64, &meta.image()) {
            // It may be there all the same, so its pages stay what they are.
            lock(&store.space).freeze();
            return Err(e.into());
        }
        store.sync()?;
        lock(&store.space).checkpointed();
        Ok(())
    }
}

impl Drop for Switch<'_> {
    fn drop(&mut self) {
        lock(&self.0.space).switched();
    }
}
