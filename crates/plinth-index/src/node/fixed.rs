//! Keys of a fixed size: a column of keys and a column of values, and in inner nodes of an index that is not unique a
//! column of rows between them.
//!
//! Keys are words or fractions of words, so a search runs over machine integers with the comparison compiled in.

use std::cmp::Ordering;
use std::fmt::Debug;

use plinth_core::prefetch::prefetch;

use super::memory::{copy, move_down, move_up};
use super::search::partition;
use super::{Nodes, Room, check_layout, check_order, layout};
use crate::bits::{high, low, low64, signed32, signed64, unsigned32, unsigned64};
use crate::page::{HEADER, Page};

/// How keys lie in words.
pub trait Packed: Copy + Ord + Debug + Send + Sync + 'static {
    /// Bits of one.
    const BITS: usize;
    /// The number of the kind in files.
    const NUMBER: u8;

    /// A key.
    fn load(page: Page<'_>, entry: usize) -> Self;
    /// Puts a key.
    fn store(self, page: Page<'_>, entry: usize);
    /// Makes room for a key before `at`.
    fn open(page: Page<'_>, at: usize, count: usize);
    /// Closes up where the key `at` was.
    fn close(page: Page<'_>, at: usize, count: usize);
}

/// Keys of 64 bits, as a number and back.
macro_rules! whole_words {
    ($key:ty, $number:literal, $from:expr, $to:expr) => {
        impl Packed for $key {
            const BITS: usize = 64;
            const NUMBER: u8 = $number;

            #[inline]
            fn load(page: Page<'_>, entry: usize) -> Self {
                $from(page.get(HEADER + entry))
            }
            #[inline]
            fn store(self, page: Page<'_>, entry: usize) {
                page.set(HEADER + entry, $to(self));
            }
            #[inline]
            fn open(page: Page<'_>, at: usize, count: usize) {
                move_up(page, HEADER + at, HEADER + count, 1);
            }
            #[inline]
            fn close(page: Page<'_>, at: usize, count: usize) {
                move_down(page, HEADER + at + 1, HEADER + count, 1);
            }
        }
    };
}

whole_words!(i64, 2, signed64, unsigned64);
whole_words!(u64, 3, std::convert::identity, std::convert::identity);

impl Packed for i32 {
    const BITS: usize = 32;
    const NUMBER: u8 = 1;

    #[inline]
    fn load(page: Page<'_>, entry: usize) -> Self {
        signed32(low(page.get(HEADER + entry / 2) >> (entry % 2 * 32)))
    }
    #[inline]
    fn store(self, page: Page<'_>, entry: usize) {
        let (at, half) = (HEADER + entry / 2, u64::from(unsigned32(self)));
        let word = page.get(at);
        page.set(
            at,
            if entry.is_multiple_of(2) { word & !0xffff_ffff | half } else { u64::from(low(word)) | half << 32 },
        );
    }
    #[inline]
    fn open(page: Page<'_>, at: usize, count: usize) {
        let first = HEADER + at / 2;
        let mut above = page.get(HEADER + count / 2);
        for word in (first + 1..=HEADER + count / 2).rev() {
            let here = page.get(word - 1);
            page.set(word, above << 32 | u64::from(high(here)));
            above = here;
        }
        if at.is_multiple_of(2) {
            page.set(first, page.get(first) << 32);
        }
    }
    #[inline]
    fn close(page: Page<'_>, at: usize, count: usize) {
        let first = HEADER + at / 2;
        let mut here = page.get(first);
        for word in first..=HEADER + count.saturating_sub(1) / 2 {
            let above = page.get(word + 1);
            let lower = if word == first && at % 2 == 1 { low(here) } else { high(here) };
            page.set(word, above << 32 | u64::from(lower));
            here = above;
        }
    }
}

impl Packed for u128 {
    const BITS: usize = 128;
    const NUMBER: u8 = 4;

    #[inline]
    fn load(page: Page<'_>, entry: usize) -> Self {
        let at = HEADER + entry * 2;
        u128::from(page.get(at)) | u128::from(page.get(at + 1)) << 64
    }
    #[inline]
    fn store(self, page: Page<'_>, entry: usize) {
        let at = HEADER + entry * 2;
        page.set(at, low64(self));
        page.set(at + 1, low64(self >> 64));
    }
    #[inline]
    fn open(page: Page<'_>, at: usize, count: usize) {
        move_up(page, HEADER + at * 2, HEADER + count * 2, 2);
    }
    #[inline]
    fn close(page: Page<'_>, at: usize, count: usize) {
        move_down(page, HEADER + (at + 1) * 2, HEADER + count * 2, 2);
    }
}

/// Where the columns of a page are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    /// Entries there is room for.
    capacity: usize,
    /// Words of the column of rows, if there is one.
    rows: Option<usize>,
    values: usize,
}

impl Shape {
    #[inline]
    fn of<T: Packed, const U: bool>(words: usize, level: u8) -> Self {
        let rows = !U && level > 0;
        let entry = T::BITS + 64 + if rows { 64 } else { 0 };
        let capacity = (words.saturating_sub(HEADER) * 64 / entry).min(usize::from(u16::MAX));
        let after_keys = HEADER + (capacity * T::BITS).div_ceil(64);
        let values = after_keys + if rows { capacity } else { 0 };
        Self { capacity, rows: rows.then_some(after_keys), values }
    }

    fn page<T: Packed, const U: bool>(page: Page<'_>) -> Self {
        Self::of::<T, U>(page.len(), page.level())
    }
}

/// Keys there are, however torn the count is.
#[inline]
fn keys<T: Packed>(page: Page<'_>) -> usize {
    page.count().min(page.len() * 64 / T::BITS)
}

impl<T: Packed> Nodes for T {
    type Ref<'a> = T;
    type Owned = T;
    const KIND: u8 = T::NUMBER;

    #[inline]
    fn borrow(owned: &T) -> T {
        *owned
    }
    #[inline]
    fn own(key: T) -> T {
        key
    }
    #[inline]
    fn order(a: T, b: T) -> Ordering {
        a.cmp(&b)
    }
    #[inline]
    fn len(_: T) -> usize {
        T::BITS / 8
    }

    fn start<const U: bool>(page: Page<'_>, level: u8) {
        let shape = Shape::of::<T, U>(page.len(), level);
        page.start(level, layout::<T, U>(), shape.values, 1);
    }

    #[inline]
    fn prefetch(page: Page<'_>) {
        // The first steps of a search for a page two thirds full; the header has the count.
        let full = page.len() * T::BITS / (T::BITS + 64);
        for at in [0, HEADER + full / 6, HEADER + full / 3, HEADER + full / 2] {
            if let Some(word) = page.words().get(at) {
                prefetch(word);
            }
        }
    }

    #[inline]
    fn rank<const U: bool, const EQUAL: bool>(page: Page<'_>, from: usize, key: T, row: u64) -> usize {
        let count = keys::<T>(page);
        if U {
            return partition(from, count, |at| if EQUAL { T::load(page, at) <= key } else { T::load(page, at) < key });
        }
        let first = partition(from, count, |at| T::load(page, at) < key);
        if first == count || T::load(page, first) != key {
            return first;
        }
        let last = partition(first, count, |at| T::load(page, at) <= key);
        partition(first, last, |at| {
            let other = Self::row::<U>(page, at);
            if EQUAL { other <= row } else { other < row }
        })
    }

    #[inline]
    fn holds(page: Page<'_>, entry: usize, key: T) -> bool {
        entry < keys::<T>(page) && T::load(page, entry) == key
    }
    #[inline]
    fn key(page: Page<'_>, entry: usize) -> T {
        T::load(page, entry)
    }
    #[inline]
    fn row<const U: bool>(page: Page<'_>, entry: usize) -> u64 {
        match (U, page.level()) {
            (true, _) => 0,
            (false, 0) => page.value(entry),
            (false, _) => Shape::page::<T, U>(page).rows.map_or(0, |rows| page.get(rows + entry)),
        }
    }
    #[inline]
    fn room<const U: bool>(page: Page<'_>, _: T) -> Room {
        if page.count() < Shape::page::<T, U>(page).capacity { Room::Fits } else { Room::Split }
    }

    fn insert<const U: bool>(page: Page<'_>, at: usize, key: T, row: u64, value: u64) -> bool {
        let (count, shape) = (keys::<T>(page), Shape::page::<T, U>(page));
        if count >= shape.capacity {
            return false;
        }
        T::open(page, at, count);
        key.store(page, at);
        if let Some(rows) = shape.rows {
            move_up(page, rows + at, rows + count, 1);
            page.set(rows + at, row);
        }
        move_up(page, shape.values + at, shape.values + count, 1);
        page.set(shape.values + at, value);
        page.set_count(count + 1);
        true
    }

    fn remove<const U: bool>(page: Page<'_>, at: usize) {
        let (count, shape) = (keys::<T>(page), Shape::page::<T, U>(page));
        if at >= count {
            return;
        }
        T::close(page, at, count);
        if let Some(rows) = shape.rows {
            move_down(page, rows + at + 1, rows + count, 1);
        }
        move_down(page, shape.values + at + 1, shape.values + count, 1);
        page.set_count(count - 1);
    }

    fn middle<const U: bool>(page: Page<'_>) -> usize {
        page.count() / 2
    }

    fn between<const U: bool>(_: Page<'_>, _: usize, key: T, row: u64) -> (T, u64) {
        (key, if U { 0 } else { row })
    }

    fn divide<const U: bool>(page: Page<'_>, at: usize, upper: Page<'_>) -> bool {
        let count = keys::<T>(page);
        let fit = count.saturating_sub(at) <= Shape::page::<T, U>(upper).capacity;
        if fit {
            append::<T, U>(page, at..count, upper);
            page.set_count(at.min(count));
        }
        fit
    }

    fn merge<const U: bool>(page: Page<'_>, upper: Page<'_>, key: T, row: u64) -> bool {
        let (count, more) = (keys::<T>(page), keys::<T>(upper));
        let shape = Shape::page::<T, U>(page);
        if (count + more) * 4 > shape.capacity * 3 {
            return false;
        }
        append::<T, U>(upper, 0..more, page);
        if page.level() > 0 {
            key.store(page, count);
            if let Some(rows) = shape.rows {
                page.set(rows + count, row);
            }
        }
        true
    }

    fn is_sparse<const U: bool>(page: Page<'_>) -> bool {
        page.count() * 4 < Shape::page::<T, U>(page).capacity
    }

    fn sound<const U: bool>(page: Page<'_>) -> Result<(), String> {
        let shape = Shape::page::<T, U>(page);
        if page.count() > shape.capacity {
            return Err(format!("it has {} entries, but room for {}", page.count(), shape.capacity));
        }
        check_layout::<T, U>(page, (shape.values, 1))
    }

    fn check<const U: bool>(page: Page<'_>) -> Result<(), String> {
        Self::sound::<U>(page)?;
        check_order::<T, U>(page)
    }
}

/// Copies entries behind those of another page.
fn append<T: Packed, const U: bool>(from: Page<'_>, entries: std::ops::Range<usize>, to: Page<'_>) {
    let (shape, to_shape) = (Shape::page::<T, U>(from), Shape::page::<T, U>(to));
    let (count, more) = (keys::<T>(to), entries.len());
    for (i, entry) in entries.clone().enumerate() {
        T::load(from, entry).store(to, count + i);
    }
    if let (Some(rows), Some(to_rows)) = (shape.rows, to_shape.rows) {
        copy(from, rows + entries.start, to, to_rows + count, more);
    }
    copy(from, shape.values + entries.start, to, to_shape.values + count, more);
    to.set_count(count + more);
}
