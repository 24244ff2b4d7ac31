//! Keys that are byte strings: what all have in common is stored once, the rest in a heap that grows from the page's end
//! towards the slots, which hold the first four bytes of each.
//! (Graefe, "Modern B-Tree Techniques", 2011; Leis et al., LeanStore.)
//!
//! Bytes lie in words such that words compare as numbers the way the bytes do: the first byte is the highest, and what is
//! missing from the last word is zero.

use std::cmp::Ordering;

use plinth_core::prefetch::prefetch;

use super::memory::{move_down, move_up};
use super::search::partition;
use super::{Bytes, Nodes, Room, check_layout, check_order, layout};
use crate::bits::{bits, field, high, index};
use crate::page::{CLASSES, HEADER, Page, UNIT_WORDS, words_of};

/// Words of a slot and the value beside it.
const SLOT: usize = 2;

/// An entry's slot: the first four bytes of its key behind the prefix, how many bytes these are in all, and where in the
/// page they lie.
#[derive(Clone, Copy)]
struct Slot {
    head: u32,
    len: usize,
    at: usize,
}

impl Slot {
    #[inline]
    fn of(page: Page<'_>, entry: usize) -> Self {
        let word = page.get(HEADER + entry * SLOT);
        Self { head: high(word), len: field(word, 16, 16), at: field(word, 0, 16) }
    }

    fn word(self) -> u64 {
        u64::from(self.head) << 32 | (self.len as u64 & 0xffff) << 16 | self.at as u64 & 0xffff
    }
}

/// Eight bytes from a place on as a number, zeros where there are none.
#[inline]
fn word_of(key: &[u8], from: usize) -> u64 {
    let rest = key.get(from..).unwrap_or_default();
    if let Some(eight) = rest.first_chunk::<8>() {
        return u64::from_be_bytes(*eight);
    }
    let mut eight = [0; 8];
    if let Some(to) = eight.get_mut(..rest.len()) {
        to.copy_from_slice(rest);
    }
    u64::from_be_bytes(eight)
}

#[inline]
fn head_of(key: &[u8]) -> u32 {
    high(word_of(key, 0))
}

fn shared(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// The prefix: where it lies and how long it is.
#[inline]
fn prefix(page: Page<'_>) -> (usize, usize) {
    let word = page.get(3);
    (field(word, 0, 16), field(word, 16, 16))
}

/// Entries there are, however torn the count is.
#[inline]
fn slots(page: Page<'_>) -> usize {
    page.count().min((page.len() - HEADER) / SLOT)
}

/// Words before a key in the heap: its row, if inner nodes have rows.
#[inline]
fn row_words<const U: bool>(page: Page<'_>) -> usize {
    usize::from(!U && page.level() > 0)
}

/// How bytes of a page compare with a key's from a place on.
#[inline]
fn compare_bytes(page: Page<'_>, at: usize, len: usize, key: &[u8], from: usize) -> Ordering {
    let rest = key.len().saturating_sub(from);
    for word in 0..len.max(rest).div_ceil(8) {
        let ours = if word * 8 < len { page.get(at + word) } else { 0 };
        let theirs = word_of(key, from + word * 8);
        if ours != theirs {
            return ours.cmp(&theirs);
        }
    }
    len.cmp(&rest)
}

/// How an entry's key compares with one that has the page's prefix, which ends at `from`.
#[inline]
fn compare_entry<const U: bool>(page: Page<'_>, entry: usize, key: &[u8], from: usize, head: u32) -> Ordering {
    let slot = Slot::of(page, entry);
    if slot.head != head {
        return slot.head.cmp(&head);
    }
    if slot.len <= 4 && key.len() - from <= 4 {
        return slot.len.cmp(&(key.len() - from));
    }
    compare_bytes(page, slot.at + row_words::<U>(page), slot.len, key, from)
}

/// Whether a key has the page's prefix, or on which side of all that have it is.
#[inline]
fn compare_prefix(page: Page<'_>, key: &[u8]) -> Ordering {
    let (at, len) = prefix(page);
    if len == 0 {
        return Ordering::Equal;
    }
    compare_bytes(page, at, len, key.get(..len).unwrap_or(key), 0).reverse()
}

fn read_bytes(page: Page<'_>, at: usize, len: usize, to: &mut Vec<u8>) {
    let start = to.len();
    for word in 0..len.div_ceil(8) {
        to.extend_from_slice(&page.get(at + word).to_be_bytes());
    }
    to.truncate(start + len);
}

fn write_bytes(page: Page<'_>, at: usize, key: &[u8], from: usize) {
    for word in 0..key.len().saturating_sub(from).div_ceil(8) {
        page.set(at + word, word_of(key, from + word * 8));
    }
}

/// An entry outside of a page.
struct Entry {
    key: Vec<u8>,
    row: u64,
    value: u64,
}

/// The entries of a page. The first of an inner node has no key.
fn entries<const U: bool>(page: Page<'_>) -> Vec<Entry> {
    let inner = page.level() > 0;
    let entry = |at| {
        let key = if inner && at == 0 { Vec::new() } else { Bytes::key(page, at) };
        Entry { key, row: <Bytes as Nodes>::row::<U>(page, at), value: page.value(at) }
    };
    (0..slots(page)).map(entry).collect()
}

/// What the keys of entries in order have in common.
fn common(entries: &[Entry], inner: bool) -> usize {
    let keyed = entries.get(usize::from(inner)..).unwrap_or_default();
    match (keyed.first(), keyed.last()) {
        (Some(first), Some(last)) if keyed.len() > 1 => shared(&first.key, &last.key),
        _ => 0,
    }
}

/// The prefix to write entries with, that they have in common, and the words that a page takes then. A longer one may take
/// more room, as keys begin at whole words: one byte of it is a word, and may save none. So the one that entries had before
/// stays where that is less, and entries that fitted a page fit it again.
fn layout_of<const U: bool>(page: Page<'_>, entries: &[Entry], before: usize) -> (usize, usize) {
    let all = common(entries, page.level() > 0);
    let with = |prefix: usize| (prefix, total::<U>(page, entries, prefix));
    let (whole, known) = (with(all), with(before.min(all)));
    if known.1 < whole.1 { known } else { whole }
}

/// Words that an entry of a key takes, its slot included.
fn entry_words(key: usize, rows: usize) -> usize {
    SLOT + rows + key.div_ceil(8)
}

/// Words that entries take with a prefix of a length.
fn total<const U: bool>(page: Page<'_>, entries: &[Entry], prefix: usize) -> usize {
    let rows = row_words::<U>(page);
    let keys = entries.iter().map(|e| entry_words(e.key.len().saturating_sub(prefix), rows));
    HEADER + prefix.div_ceil(8) + keys.sum::<usize>()
}

/// Writes a page anew, with a prefix with which the entries fit.
fn write<const U: bool>(page: Page<'_>, level: u8, entries: &[Entry], prefix: usize) {
    Bytes::start::<U>(page, level);
    let rows = row_words::<U>(page);
    let mut heap = page.len() - prefix.div_ceil(8);
    if let Some(last) = entries.last() {
        write_bytes(page, heap, last.key.get(..prefix).unwrap_or_default(), 0);
    }
    page.set(3, heap as u64 & 0xffff | (prefix as u64 & 0xffff) << 16);
    for (i, entry) in entries.iter().enumerate() {
        let suffix = entry.key.get(prefix..).unwrap_or_default();
        heap -= rows + suffix.len().div_ceil(8);
        if rows > 0 {
            page.set(heap, entry.row);
        }
        write_bytes(page, heap + rows, suffix, 0);
        page.set(HEADER + i * SLOT, Slot { head: head_of(suffix), len: suffix.len(), at: heap }.word());
        page.set(HEADER + i * SLOT + 1, entry.value);
    }
    page.set(2, heap as u64);
    page.set_count(entries.len());
}

/// Where the heap begins, and words of it that belong to no entry.
fn heap(page: Page<'_>) -> (usize, usize) {
    let word = page.get(2);
    (field(word, 0, 32), index(word >> 32))
}

fn set_heap(page: Page<'_>, start: usize, free: usize) {
    page.set(2, bits(start as u64, 0, 32) | (free as u64) << 32);
}

impl Nodes for Bytes {
    type Ref<'a> = &'a [u8];
    type Owned = Vec<u8>;
    const KIND: u8 = 5;

    fn borrow(owned: &Vec<u8>) -> &[u8] {
        owned
    }
    fn own(key: &[u8]) -> Vec<u8> {
        key.to_vec()
    }
    fn order(a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }
    fn len(key: &[u8]) -> usize {
        key.len()
    }

    fn start<const U: bool>(page: Page<'_>, level: u8) {
        page.start(level, layout::<Bytes, U>(), HEADER + 1, SLOT);
        page.set(2, page.len() as u64);
    }

    fn prefetch(page: Page<'_>) {
        for at in [0, UNIT_WORDS / 16, UNIT_WORDS / 8, UNIT_WORDS / 4] {
            if let Some(word) = page.words().get(at) {
                prefetch(word);
            }
        }
    }

    #[inline]
    fn rank<const U: bool, const EQUAL: bool>(page: Page<'_>, from: usize, key: &[u8], row: u64) -> usize {
        let count = slots(page);
        match compare_prefix(page, key) {
            Ordering::Less => return from,
            Ordering::Greater => return count.max(from),
            Ordering::Equal => {}
        }
        let start = prefix(page).1.min(key.len());
        let head = head_of(key.get(start..).unwrap_or_default());
        partition(from, count, |at| {
            let keys = compare_entry::<U>(page, at, key, start, head);
            let order = if U { keys } else { keys.then_with(|| <Self as Nodes>::row::<U>(page, at).cmp(&row)) };
            if EQUAL { order != Ordering::Greater } else { order == Ordering::Less }
        })
    }

    fn holds(page: Page<'_>, entry: usize, key: &[u8]) -> bool {
        if entry >= slots(page) || compare_prefix(page, key) != Ordering::Equal {
            return false;
        }
        let start = prefix(page).1.min(key.len());
        let head = head_of(key.get(start..).unwrap_or_default());
        // Of leaves only: they have no rows before keys.
        compare_entry::<true>(page, entry, key, start, head) == Ordering::Equal
    }

    fn key(page: Page<'_>, entry: usize) -> Vec<u8> {
        let ((prefix_at, prefix), slot) = (prefix(page), Slot::of(page, entry));
        let mut key = Vec::with_capacity(prefix + slot.len + 8);
        read_bytes(page, prefix_at, prefix, &mut key);
        // Whether rows lie before keys is in the layout: the lowest bit says that the index is unique.
        let rows = usize::from(page.layout() & 1 == 0 && page.level() > 0);
        read_bytes(page, slot.at + rows, slot.len, &mut key);
        key
    }

    fn row<const U: bool>(page: Page<'_>, entry: usize) -> u64 {
        match (U, page.level()) {
            (true, _) => 0,
            (false, 0) => page.value(entry),
            (false, _) => page.get(Slot::of(page, entry).at),
        }
    }

    fn room<const U: bool>(page: Page<'_>, key: &[u8]) -> Room {
        // Four entries of a page's longest key fit whatever they have in common, so a page that is full has two to part.
        let four = |words: usize| HEADER + 4 * (entry_words(key.len(), 1) + 1) <= words;
        if !four(page.len()) {
            return Room::Grow((0..CLASSES).find(|&class| four(words_of(class))).unwrap_or(CLASSES - 1));
        }
        let fits = if compare_prefix(page, key) == Ordering::Equal && key.len() >= prefix(page).1 {
            let (start, free) = heap(page);
            let words = entry_words(key.len() - prefix(page).1, row_words::<U>(page));
            HEADER + slots(page) * SLOT + words <= start + free
        } else {
            let entries = entries::<U>(page);
            let first = entries.get(usize::from(page.level() > 0));
            let prefix = first.map_or(0, |e| shared(&e.key, key).min(prefix(page).1));
            total::<U>(page, &entries, prefix) + entry_words(key.len() - prefix, row_words::<U>(page)) <= page.len()
        };
        if fits { Room::Fits } else { Room::Split }
    }

    fn insert<const U: bool>(page: Page<'_>, at: usize, key: &[u8], row: u64, value: u64) -> bool {
        let (count, rows, prefix) = (slots(page), row_words::<U>(page), prefix(page).1);
        let (start, free) = heap(page);
        let words = rows + key.len().saturating_sub(prefix).div_ceil(8);
        let apart = page.level() > 0 && at == 0;
        let fits = HEADER + (count + 1) * SLOT + words <= start;
        if !apart && fits && key.len() >= prefix && compare_prefix(page, key) == Ordering::Equal {
            let suffix = key.get(prefix..).unwrap_or_default();
            let heap = start - words;
            if rows > 0 {
                page.set(heap, row);
            }
            write_bytes(page, heap + rows, suffix, 0);
            move_up(page, HEADER + at * SLOT, HEADER + count * SLOT, SLOT);
            page.set(HEADER + at * SLOT, Slot { head: head_of(suffix), len: suffix.len(), at: heap }.word());
            page.set(HEADER + at * SLOT + 1, value);
            set_heap(page, heap, free);
            page.set_count(count + 1);
            return true;
        }
        let mut entries = entries::<U>(page);
        let key = if apart { Vec::new() } else { key.to_vec() };
        entries.insert(at.min(entries.len()), Entry { key, row, value });
        let (prefix, words) = layout_of::<U>(page, &entries, prefix);
        let fits = words <= page.len();
        if fits {
            write::<U>(page, page.level(), &entries, prefix);
        }
        fits
    }

    fn remove<const U: bool>(page: Page<'_>, at: usize) {
        let count = slots(page);
        if at >= count {
            return;
        }
        let (start, free) = heap(page);
        let words = row_words::<U>(page) + Slot::of(page, at).len.div_ceil(8);
        move_down(page, HEADER + (at + 1) * SLOT, HEADER + count * SLOT, SLOT);
        set_heap(page, start, free + words);
        page.set_count(count - 1);
    }

    fn middle<const U: bool>(page: Page<'_>) -> usize {
        let count = slots(page);
        let words = |at| entry_words(Slot::of(page, at).len, 0);
        let half = (0..count).map(words).sum::<usize>() / 2;
        let mut sum = 0;
        let at = (0..count).position(|at| {
            sum += words(at);
            sum > half
        });
        at.unwrap_or(1).clamp(1, count.saturating_sub(1).max(1))
    }

    fn between<const U: bool>(page: Page<'_>, below: usize, key: &[u8], row: u64) -> (Vec<u8>, u64) {
        let below = Self::key(page, below);
        let shared = shared(&below, key);
        match key.get(..=shared) {
            Some(first) => (first.to_vec(), 0),
            // The same key, told apart by rows.
            None => (key.to_vec(), if U { 0 } else { row }),
        }
    }

    fn divide<const U: bool>(page: Page<'_>, at: usize, upper: Page<'_>) -> bool {
        let (mut lower, before) = (entries::<U>(page), prefix(page).1);
        let inner = page.level() > 0;
        let mut moved = lower.split_off(at.min(lower.len()));
        if inner && let Some(first) = moved.first_mut() {
            first.key.clear();
        }
        let (above, below) = (layout_of::<U>(page, &moved, before), layout_of::<U>(page, &lower, before));
        let fit = above.1 <= upper.len() && below.1 <= page.len();
        if fit {
            write::<U>(upper, page.level(), &moved, above.0);
            write::<U>(page, page.level(), &lower, below.0);
        }
        fit
    }

    fn merge<const U: bool>(page: Page<'_>, upper: Page<'_>, key: &[u8], row: u64) -> bool {
        let inner = page.level() > 0;
        let mut all = entries::<U>(page);
        let mut above = entries::<U>(upper);
        if inner && let Some(first) = above.first_mut() {
            (first.key, first.row) = (key.to_vec(), row);
        }
        all.append(&mut above);
        let (prefix, words) = layout_of::<U>(page, &all, prefix(page).1);
        let longest = all.iter().map(|e| e.key.len()).max().unwrap_or(0);
        let room = HEADER + 4 * (entry_words(longest, 1) + 1) <= page.len();
        if !room || words * 4 > page.len() * 3 {
            return false;
        }
        write::<U>(page, page.level(), &all, prefix);
        true
    }

    fn is_sparse<const U: bool>(page: Page<'_>) -> bool {
        let (start, free) = heap(page);
        let used = page.len().saturating_sub(start + free) + slots(page) * SLOT;
        used * 4 < page.len()
    }

    fn sound<const U: bool>(page: Page<'_>) -> Result<(), String> {
        check_layout::<Bytes, U>(page, (HEADER + 1, SLOT))?;
        let ((start, free), (prefix_at, prefix_len)) = (heap(page), prefix(page));
        let slots_end = HEADER + page.count() * SLOT;
        if slots_end > start || start > page.len() || free > page.len() - start {
            return Err("its slots and its heap overlap".to_owned());
        }
        // Of no prefix, the place may be the page's end, which in the largest page has no number.
        if prefix_len > 0 && (prefix_at < start || prefix_at + prefix_len.div_ceil(8) > page.len()) {
            return Err("its prefix lies outside of its heap".to_owned());
        }
        let mut words = prefix_len.div_ceil(8) + free;
        for entry in 0..page.count() {
            let slot = Slot::of(page, entry);
            let key = row_words::<U>(page) + slot.len.div_ceil(8);
            if key > 0 && (slot.at < start || slot.at + key > page.len()) {
                return Err(format!("the key of entry {entry} lies outside of its heap"));
            }
            words += key;
        }
        if words != page.len() - start {
            return Err(format!("its heap has {} words, and its keys take {words}", page.len() - start));
        }
        Ok(())
    }

    fn check<const U: bool>(page: Page<'_>) -> Result<(), String> {
        Self::sound::<U>(page)?;
        for entry in 0..page.count() {
            let slot = Slot::of(page, entry);
            if slot.head != high(if slot.len == 0 { 0 } else { page.get(slot.at + row_words::<U>(page)) }) {
                return Err(format!("the slot of entry {entry} has another key's first bytes"));
            }
        }
        check_order::<Bytes, U>(page)
    }
}
