//! Pages: what every one begins with, references to others, and their images on storage.
//!
//! In memory a page is words that may change while they are read ([`Page`]); on storage it is an [`Image`] with a checksum.
//! FORMAT.md, "An index", has the bytes.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::bits::{bits, byte, field};

/// Bytes of the smallest page, which page numbers count and all pages start at multiples of.
pub(crate) const UNIT: usize = 4096;
/// The same in words.
pub(crate) const UNIT_WORDS: usize = UNIT / 8;
/// Sizes of pages: `UNIT << class`.
pub(crate) const CLASSES: usize = 8;
/// Words of the header.
pub(crate) const HEADER: usize = 4;

/// Words of a page of a class.
pub(crate) const fn words_of(class: usize) -> usize {
    UNIT_WORDS << class
}

/// Where a page is: on storage (`home`) or in a frame (`frame`).
///
/// | bits | on storage | in a frame |
/// |---|---|---|
/// | 0..36 | its number: where it starts, in units of 4,096 bytes | 0..32: the frame of its class |
/// | 36..60 | the lower 24 bits of its checksum | |
/// | 60..63 | its class | its class |
/// | 63 | 0 | 1 |
///
/// In an image all are on storage. The checksum tells a page from what stood in its place before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Swip(pub(crate) u64);

/// Numbers a file can have.
pub(crate) const NUMBERS: u64 = 1 << 36;
const IN_FRAME: u64 = 1 << 63;

impl Swip {
    /// A page on storage.
    pub(crate) fn home(class: usize, number: u64, checksum: u64) -> Self {
        Self(((class as u64 & 7) << 60) | (bits(checksum, 0, 24) << 36) | bits(number, 0, 36))
    }

    /// A page in memory.
    pub(crate) fn frame(class: usize, index: u32) -> Self {
        Self(IN_FRAME | ((class as u64 & 7) << 60) | u64::from(index))
    }

    /// The word that inner pages hold.
    pub fn word(self) -> u64 {
        self.0
    }

    /// From such a word.
    pub fn from_word(word: u64) -> Self {
        Self(word)
    }

    /// Whether it names a frame.
    pub fn is_frame(self) -> bool {
        self.0 & IN_FRAME != 0
    }

    /// The class of its size.
    pub fn class(self) -> usize {
        field(self.0, 60, 3)
    }

    /// The frame, if it names one.
    pub(crate) fn index(self) -> usize {
        field(self.0, 0, 32)
    }

    /// The number, if it is on storage.
    pub fn number(self) -> u64 {
        bits(self.0, 0, 36)
    }

    /// Whether an image with this checksum is the one that is meant.
    pub(crate) fn matches(self, checksum: u64) -> bool {
        bits(self.0, 36, 24) == bits(checksum, 0, 24)
    }
}

/// A page in memory. What it holds may change at any time unless its latch is held: then numbers may be anything, and none
/// is used as an index unchecked. A word beyond the page reads as zero and is not written.
#[derive(Clone, Copy, Debug)]
pub struct Page<'p>(&'p [AtomicU64]);

impl<'p> Page<'p> {
    /// The page of these words.
    pub fn new(words: &'p [AtomicU64]) -> Self {
        Self(words)
    }

    pub(crate) fn words(self) -> &'p [AtomicU64] {
        self.0
    }

    pub(crate) fn len(self) -> usize {
        self.0.len()
    }

    #[inline]
    pub(crate) fn get(self, at: usize) -> u64 {
        self.0.get(at).map_or(0, |word| word.load(Relaxed))
    }

    #[inline]
    pub(crate) fn set(self, at: usize, word: u64) {
        if let Some(to) = self.0.get(at) {
            to.store(word, Relaxed);
        }
    }

    /// Begins an empty page. `layout` is how its entries lie, which only the kind of keys knows; values (rows, or references
    /// to children) are at words `values`, `values + stride` and so on.
    pub(crate) fn start(self, level: u8, layout: u8, values: usize, stride: usize) {
        let (values, stride) = (values as u64 & 0xffff, stride as u64 & 0xff);
        self.set(1, u64::from(level) << 16 | u64::from(layout) << 24 | values << 32 | stride << 48);
        self.set(2, 0);
        self.set(3, 0);
    }

    /// Entries.
    #[inline]
    pub(crate) fn count(self) -> usize {
        field(self.get(1), 0, 16)
    }

    pub(crate) fn set_count(self, count: usize) {
        self.set(1, self.get(1) & !0xffff | count as u64 & 0xffff);
    }

    /// How far from the leaves, which are at 0.
    #[inline]
    pub(crate) fn level(self) -> u8 {
        byte(self.get(1), 16)
    }

    /// How entries lie.
    pub(crate) fn layout(self) -> u8 {
        byte(self.get(1), 24)
    }

    /// Where the value of an entry is.
    #[inline]
    pub(crate) fn value_at(self, entry: usize) -> usize {
        let word = self.get(1);
        field(word, 32, 16) + entry * field(word, 48, 8)
    }

    /// Where values begin, and how far they are apart.
    pub(crate) fn values(self) -> (usize, usize) {
        let word = self.get(1);
        (field(word, 32, 16), field(word, 48, 8))
    }

    /// The row, or the reference to a child, of an entry.
    #[inline]
    pub(crate) fn value(self, entry: usize) -> u64 {
        self.get(self.value_at(entry))
    }

    /// The entry whose value is this word.
    pub(crate) fn find_value(self, word: u64) -> Option<usize> {
        let count = self.count().min(self.len());
        (0..count).find(|&entry| self.value(entry) == word)
    }

    /// Takes the words of an image.
    pub(crate) fn fill(self, image: &Image) {
        for (to, from) in self.0.iter().zip(image.words()) {
            to.store(u64::from_le(*from), Relaxed);
        }
    }
}

/// A page as it lies on storage: little-endian words in memory that direct reads and writes accept.
#[derive(Clone, Debug)]
pub struct Image(Box<[Unit]>);

/// The least that is read, aligned as direct reads ask for.
#[derive(Clone, Debug)]
#[repr(C, align(4096))]
struct Unit([u64; UNIT_WORDS]);

impl Image {
    /// Zeros: 4,096 bytes times two to the power of `class`, which is at most 7.
    pub fn new(class: usize) -> Self {
        Self(vec![Unit([0; UNIT_WORDS]); 1 << class.min(CLASSES - 1)].into_boxed_slice())
    }

    /// The class of its size.
    pub(crate) fn class(&self) -> usize {
        field(u64::from(self.0.len().trailing_zeros()), 0, 32)
    }

    pub(crate) fn words(&self) -> impl Iterator<Item = &u64> {
        self.0.iter().flat_map(|unit| &unit.0)
    }

    pub(crate) fn words_mut(&mut self) -> impl Iterator<Item = &mut u64> {
        self.0.iter_mut().flat_map(|unit| &mut unit.0)
    }

    /// A word.
    pub(crate) fn word(&self, at: usize) -> u64 {
        self.0.get(at / UNIT_WORDS).map_or(0, |unit| u64::from_le(unit.0[at % UNIT_WORDS]))
    }

    pub(crate) fn set_word(&mut self, at: usize, word: u64) {
        if let Some(unit) = self.0.get_mut(at / UNIT_WORDS) {
            unit.0[at % UNIT_WORDS] = word.to_le();
        }
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        let start = self.0.as_ptr().cast::<u8>();
        // SAFETY: the units lie one after the other and have no padding, their size being that of their words.
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts(start, size_of_val(&*self.0))
        }
    }

    /// Its bytes, to be filled.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let start = self.0.as_mut_ptr().cast::<u8>();
        // SAFETY: as `bytes`; any bytes make valid words.
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts_mut(start, size_of_val(&*self.0))
        }
    }

    /// The checksum of everything behind it, which depends on where the page is, so that a page in another's place shows.
    pub(crate) fn checksum(&self, number: u64) -> u64 {
        twox_hash::XxHash3_64::oneshot_with_seed(number, self.bytes().get(8..).unwrap_or_default())
    }

    /// The header's parts, as [`Page`] has them.
    pub(crate) fn level(&self) -> u8 {
        byte(self.word(1), 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn references_keep_their_parts(class in 0..CLASSES, number in 0..NUMBERS, checksum: u64, index: u32) {
            let home = Swip::home(class, number, checksum);
            prop_assert_eq!((home.is_frame(), home.class(), home.number()), (false, class, number));
            prop_assert!(home.matches(checksum) && !home.matches(checksum ^ 1));
            let frame = Swip::frame(class, index);
            prop_assert_eq!((frame.is_frame(), frame.class(), frame.index()), (true, class, index as usize));
        }
    }

    #[test]
    fn pages_and_images_are_alike() {
        let words: Vec<AtomicU64> = (0..words_of(1)).map(|_| AtomicU64::new(0)).collect();
        let page = Page::new(&words);
        page.start(3, 2, 100, 2);
        page.set_count(7);
        page.set(104, 42);
        assert_eq!((page.level(), page.layout(), page.count(), page.value(2)), (3, 2, 7, 42));
        assert_eq!(page.find_value(42), Some(2));
        page.set(words_of(1), 1);
        assert_eq!(page.get(words_of(1)), 0);
        let mut image = Image::new(1);
        for at in 0..words_of(1) {
            image.set_word(at, page.get(at));
        }
        assert_eq!((image.class(), image.level(), image.bytes().len()), (1, 3, 8192));
        assert_ne!(image.checksum(5), image.checksum(6));
        page.start(0, 0, 0, 0);
        page.fill(&image);
        assert_eq!((page.level(), page.value(2)), (3, 42));
    }
}
