//! Interning: a provisional code for every distinct value, in order of first appearance.
//!
//! Rows are taken in batches of a few hundred. A batch is hashed first, then its slots are loaded together, then
//! compared: the cache misses of a batch overlap instead of queueing, as in vectorised hash tables (MonetDB/X100;
//! Kersten et al., VLDB 2018).

use std::hash::{BuildHasher, Hasher};

use arrow_buffer::Buffer;
use foldhash::quality::FixedState;

use crate::column::{Column, Physical, Values};
use crate::dictionary::keys::{self, Numbers};
use crate::dictionary::slots::{BATCH, Keyed, Slots};
use crate::dictionary::sort::{self, Sorted};
use crate::dictionary::wire::low_half;
use crate::error::{EncodingError, Result};

/// Long views remembered within one call, so that views repeated by a dictionary array are not hashed again.
const REMEMBERED: usize = 512;
/// Longest value a view holds itself.
pub(super) const INLINE: usize = 12;

/// Assigns provisional codes to values: 0 to the first distinct value seen, 1 to the next, and so on.
#[derive(Debug)]
pub struct Interner {
    physical: Physical,
    hasher: FixedState,
    slots: Slots,
    store: Store,
    key_bytes: usize,
}

/// The distinct values, by provisional code.
#[derive(Debug)]
enum Store {
    /// Keys of one or two bytes: `codes[key]` is the code plus one.
    Direct { numbers: Numbers, codes: Vec<u32>, keys: Vec<u64> },
    /// Keys of at most eight bytes.
    Numbers { numbers: Numbers, keys: Vec<u64> },
    /// All others.
    Strings(Strings),
}

/// Byte strings as Arrow-like views: the low half of the first word is the length, the high half the first four bytes;
/// the second word is the next eight bytes of short strings and the heap offset of long ones.
#[derive(Debug, Default)]
pub(super) struct Strings {
    pub(super) entries: Vec<[u64; 2]>,
    pub(super) heap: Vec<u8>,
}

impl Strings {
    /// Sum of the lengths of the strings from an entry on.
    fn key_bytes_from(&self, first: usize) -> usize {
        self.entries[first..].iter().map(|entry| low_half(entry[0]) as usize).sum()
    }

    /// The bytes of one entry. `scratch` holds those of short ones.
    #[inline]
    pub(super) fn get<'a>(&'a self, entry: &[u64; 2], scratch: &'a mut [u8; 16]) -> &'a [u8] {
        let len = low_half(entry[0]) as usize;
        if len <= INLINE {
            scratch[..8].copy_from_slice(&entry[0].to_le_bytes());
            scratch[8..].copy_from_slice(&entry[1].to_le_bytes());
            &scratch[4..4 + len]
        } else {
            let start = usize::try_from(entry[1]).unwrap_or(usize::MAX);
            &self.heap[start..start + len]
        }
    }
}

impl Interner {
    /// An interner for values of a physical type.
    ///
    /// # Errors
    /// For booleans, which have no dictionary.
    pub fn new(physical: Physical) -> Result<Self> {
        if physical == Physical::Bool {
            return Err(EncodingError::invalid("booleans have no dictionary"));
        }
        let store = match Numbers::of(physical) {
            Some(numbers) if numbers.width() <= 2 => {
                Store::Direct { numbers, codes: vec![0; 1 << (8 * numbers.width())], keys: Vec::new() }
            }
            Some(numbers) => Store::Numbers { numbers, keys: Vec::new() },
            None => Store::Strings(Strings::default()),
        };
        let hasher = FixedState::with_seed(0x9e37_79b9_7f4a_7c15);
        Ok(Self { physical, hasher, slots: Slots::default(), store, key_bytes: 0 })
    }

    /// Appends one provisional code a row to `out`. Null rows get code 0, are never looked at and never interned.
    ///
    /// # Errors
    /// If the column's values are not of the interner's type, lie outside of its buffers, or there are 2^32 - 1
    /// distinct values. `out` may then hold codes of some rows.
    pub fn intern(&mut self, column: &Column, out: &mut Vec<u32>) -> Result<()> {
        let nulls = column.nulls.as_ref().filter(|nulls| nulls.null_count() > 0);
        if nulls.is_some_and(|nulls| nulls.len() != column.len) {
            return Err(EncodingError::invalid("the null mask has another length than the column"));
        }
        out.reserve(column.len);
        let is_null = |row: usize| nulls.is_some_and(|nulls| nulls.is_null(row));
        match (&mut self.store, &column.values) {
            (Store::Strings(strings), Values::Views { views, buffers })
                if matches!(self.physical, Physical::Bytes { .. }) =>
            {
                if views.len() < column.len {
                    return Err(too_short(column));
                }
                let mut run = StringRun { hasher: &self.hasher, slots: &mut self.slots, strings };
                self.key_bytes += run.views(&views[..column.len], buffers, nulls.is_some(), is_null, out)?;
            }
            (store, Values::Fixed(values)) if keys::key_width(self.physical).is_some() => {
                let width = keys::key_width(self.physical).unwrap_or(0);
                let bytes = column.len.checked_mul(width).and_then(|len| values.get(..len));
                let bytes = bytes.ok_or_else(|| too_short(column))?;
                let before = store.len();
                match store {
                    Store::Direct { numbers, codes, keys } => {
                        intern_direct(*numbers, codes, keys, bytes, is_null, out);
                    }
                    Store::Numbers { numbers, keys } => {
                        let mut run = NumberRun { slots: &mut self.slots, keys };
                        run.values(*numbers, bytes, nulls.is_some(), is_null, out)?;
                    }
                    Store::Strings(strings) => {
                        let mut run = StringRun { hasher: &self.hasher, slots: &mut self.slots, strings };
                        run.fixed(self.physical, width, column.len, bytes, is_null, out)?;
                    }
                }
                self.key_bytes += (self.store.len() - before) * width;
            }
            _ => {
                return Err(EncodingError::invalid(format!("the values are not laid out as {:?}", self.physical)));
            }
        }
        Ok(())
    }

    /// Distinct values so far.
    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// Whether no value was seen yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes held. Sorting needs the keys' bytes and up to 24 bytes a value on top for a while.
    pub fn memory(&self) -> usize {
        let store = match &self.store {
            Store::Direct { codes, keys, .. } => 4 * codes.capacity() + 8 * keys.capacity(),
            Store::Numbers { keys, .. } => 8 * keys.capacity(),
            Store::Strings(strings) => 16 * strings.entries.capacity() + strings.heap.capacity(),
        };
        store + self.slots.memory()
    }

    /// Sum of the lengths of the distinct values' keys.
    pub fn key_bytes(&self) -> usize {
        self.key_bytes
    }

    /// Bytes the distinct values take here, by their number and lengths alone: not by how far tables grew ahead.
    pub fn footprint(&self) -> usize {
        /// An entry of the table at its fullest.
        const SLOT: usize = 16;
        match &self.store {
            Store::Direct { keys, .. } => 8 * keys.len(),
            Store::Numbers { keys, .. } => (8 + SLOT) * keys.len(),
            Store::Strings(strings) => (16 + SLOT) * strings.entries.len() + strings.heap.len(),
        }
    }

    /// The keys in order, and the rank of each provisional code.
    pub fn sort(self) -> Sorted {
        // The table is as large as the keys and of no more use.
        drop(self.slots);
        match self.store {
            Store::Direct { numbers, keys, .. } | Store::Numbers { numbers, keys } => {
                sort::numbers(self.physical, numbers, &keys)
            }
            Store::Strings(strings) => sort::strings(self.physical, &strings, self.key_bytes),
        }
    }
}

impl Store {
    fn len(&self) -> usize {
        match self {
            Self::Direct { keys, .. } | Self::Numbers { keys, .. } => keys.len(),
            Self::Strings(strings) => strings.entries.len(),
        }
    }
}

#[cold]
fn too_short(column: &Column) -> EncodingError {
    EncodingError::invalid(format!("the values are fewer than the column's {} rows", column.len))
}

fn intern_direct(
    numbers: Numbers,
    codes: &mut [u32],
    keys: &mut Vec<u64>,
    values: &[u8],
    is_null: impl Fn(usize) -> bool,
    out: &mut Vec<u32>,
) {
    let mut read = Vec::with_capacity(BATCH);
    for (batch, values) in values.chunks(BATCH * numbers.width()).enumerate() {
        read.clear();
        numbers.read(values, &mut read);
        for (i, &number) in read.iter().enumerate() {
            if is_null(batch * BATCH + i) {
                out.push(0);
                continue;
            }
            let code = &mut codes[low_half(number) as usize];
            if *code == 0 {
                keys.push(number);
                *code = low_half(keys.len() as u64);
            }
            out.push(*code - 1);
        }
    }
}

impl Keyed<u64> for Vec<u64> {
    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn matches(&self, code: u32, probe: &u64) -> bool {
        self.get(code as usize) == Some(probe)
    }

    #[inline]
    fn touch(&self, code: u32) -> u64 {
        self.get((code as usize).saturating_sub(1)).copied().unwrap_or(0)
    }

    fn push_key(&mut self, probe: &u64) {
        self.push(*probe);
    }
}

/// Short strings are looked for by their entry alone.
impl Keyed<[u64; 2]> for Strings {
    fn count(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    fn matches(&self, code: u32, probe: &[u64; 2]) -> bool {
        self.entries.get(code as usize) == Some(probe)
    }

    #[inline]
    fn touch(&self, code: u32) -> u64 {
        self.entries.get((code as usize).saturating_sub(1)).map_or(0, |entry| entry[0])
    }

    fn push_key(&mut self, probe: &[u64; 2]) {
        self.entries.push(*probe);
    }
}

/// A byte string looked for.
struct Probe<'a> {
    entry: [u64; 2],
    /// Of long strings.
    bytes: &'a [u8],
}

impl<'a> Probe<'a> {
    /// `bytes` are at most `u32::MAX` long.
    #[inline]
    fn of(bytes: &'a [u8]) -> Self {
        let mut entry = [0; 16];
        let len = low_half(bytes.len() as u64);
        let held = if bytes.len() <= INLINE { bytes } else { &bytes[..4] };
        entry[..4].copy_from_slice(&len.to_le_bytes());
        entry[4..4 + held.len()].copy_from_slice(held);
        Self { entry: split(u128::from_le_bytes(entry)), bytes }
    }

    #[inline]
    fn tag(&self, hasher: &FixedState) -> u32 {
        if low_half(self.entry[0]) as usize <= INLINE {
            mix(self.entry[0], self.entry[1])
        } else {
            let mut hasher = hasher.build_hasher();
            hasher.write(self.bytes);
            low_half(hasher.finish() >> 32)
        }
    }
}

/// Hashes two words: folded multiplications as foldhash's, without its bookkeeping. Keys with equal hashes are only
/// slower to find, never confused.
#[inline]
fn mix(a: u64, b: u64) -> u32 {
    let fold = |x: u64, y: u64| {
        let [low, high] = split(u128::from(x) * u128::from(y));
        low ^ high
    };
    let once = fold(a ^ 0x243f_6a88_85a3_08d3, b ^ 0x1319_8a2e_0370_7344);
    low_half(fold(once ^ a.rotate_left(32), 0x9e37_79b9_7f4a_7c15) >> 32)
}

#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the two halves are what is asked for")]
pub(super) fn split(view: u128) -> [u64; 2] {
    [view as u64, (view >> 64) as u64]
}

impl Keyed<Probe<'_>> for Strings {
    fn count(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    fn matches(&self, code: u32, probe: &Probe<'_>) -> bool {
        let Some(entry) = self.entries.get(code as usize) else { return false };
        if entry[0] != probe.entry[0] {
            return false;
        }
        let len = low_half(entry[0]) as usize;
        if len <= INLINE {
            return entry[1] == probe.entry[1];
        }
        let start = usize::try_from(entry[1]).unwrap_or(usize::MAX);
        self.heap.get(start..start + len) == Some(probe.bytes)
    }

    #[inline]
    fn touch(&self, code: u32) -> u64 {
        <Self as Keyed<[u64; 2]>>::touch(self, code)
    }

    fn push_key(&mut self, probe: &Probe<'_>) {
        let mut entry = probe.entry;
        if low_half(entry[0]) as usize > INLINE {
            entry[1] = self.heap.len() as u64;
            self.heap.extend_from_slice(probe.bytes);
        }
        self.entries.push(entry);
    }
}

/// What a row of a batch resolves to: probe `i` of the batch when below [`BATCH`], else code `value - BATCH`.
type Row = u64;

const KNOWN: Row = BATCH as Row;

fn emit(rows: &[Row], codes: &[u32], out: &mut Vec<u32>) {
    out.extend(rows.iter().map(|&row| match row.checked_sub(KNOWN) {
        Some(code) => low_half(code),
        None => codes[low_half(row) as usize],
    }));
}

struct NumberRun<'a> {
    slots: &'a mut Slots,
    keys: &'a mut Vec<u64>,
}

impl NumberRun<'_> {
    fn values(
        &mut self,
        numbers: Numbers,
        values: &[u8],
        some_null: bool,
        is_null: impl Fn(usize) -> bool,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        let (mut read, mut rows) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
        let (mut probes, mut tags, mut codes) =
            (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
        for (batch, values) in values.chunks(BATCH * numbers.width()).enumerate() {
            read.clear();
            rows.clear();
            probes.clear();
            tags.clear();
            numbers.read(values, &mut read);
            if !some_null {
                tags.extend(read.iter().map(|&number| mix(number, 0)));
                self.slots.resolve(self.keys, &tags, &read, out)?;
                continue;
            }
            for (i, &number) in read.iter().enumerate() {
                if is_null(batch * BATCH + i) {
                    rows.push(KNOWN);
                    continue;
                }
                if probes.last() != Some(&number) {
                    probes.push(number);
                }
                rows.push((probes.len() - 1) as Row);
            }
            tags.extend(probes.iter().map(|&number| mix(number, 0)));
            codes.clear();
            self.slots.resolve(self.keys, &tags, &probes, &mut codes)?;
            emit(&rows, &codes, out);
        }
        Ok(())
    }
}

struct StringRun<'a> {
    hasher: &'a FixedState,
    slots: &'a mut Slots,
    strings: &'a mut Strings,
}

impl StringRun<'_> {
    /// Gives the bytes of the strings that were new.
    fn views(
        &mut self,
        views: &[u128],
        buffers: &[Buffer],
        some_null: bool,
        is_null: impl Fn(usize) -> bool,
        out: &mut Vec<u32>,
    ) -> Result<usize> {
        let mut added = 0;
        let mut rows = Vec::with_capacity(BATCH);
        let (mut probes, mut tags, mut codes) =
            (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
        let mut remembered: Vec<(u128, u32)> = Vec::new();
        let mut pending = Vec::new();
        let mut short = Vec::with_capacity(BATCH);
        for (batch, views) in views.chunks(BATCH).enumerate() {
            rows.clear();
            probes.clear();
            tags.clear();
            pending.clear();
            let before = self.strings.entries.len();
            if !some_null && views.iter().all(|&view| length(view) <= INLINE) {
                short.clear();
                short.extend(views.iter().map(|&view| short_entry(view)));
                tags.extend(short.iter().map(|entry: &[u64; 2]| mix(entry[0], entry[1])));
                self.slots.resolve(self.strings, &tags, &short, out)?;
                added += self.strings.key_bytes_from(before);
                continue;
            }
            let mut previous: Option<(u128, Row)> = None;
            for (i, &view) in views.iter().enumerate() {
                if is_null(batch * BATCH + i) {
                    rows.push(KNOWN);
                    continue;
                }
                if let Some((same, row)) = previous
                    && same == view
                {
                    rows.push(row);
                    continue;
                }
                let mut row = probes.len() as Row;
                if length(view) <= INLINE {
                    probes.push(Probe { entry: short_entry(view), bytes: &[] });
                } else {
                    if remembered.is_empty() {
                        remembered.resize(REMEMBERED, (0, 0));
                    }
                    let at = remembered_slot(view);
                    if remembered[at].0 == view {
                        row = KNOWN + Row::from(remembered[at].1);
                    } else {
                        let bytes = long_bytes(view, buffers).ok_or_else(outside)?;
                        pending.push((at, view, probes.len()));
                        probes.push(Probe::of(bytes));
                    }
                }
                previous = Some((view, row));
                rows.push(row);
            }
            tags.extend(probes.iter().map(|probe| probe.tag(self.hasher)));
            codes.clear();
            self.slots.resolve(self.strings, &tags, &probes, &mut codes)?;
            for &(at, view, probe) in &pending {
                remembered[at] = (view, codes[probe]);
            }
            added += self.strings.key_bytes_from(before);
            emit(&rows, &codes, out);
        }
        Ok(added)
    }

    fn fixed(
        &mut self,
        physical: Physical,
        width: usize,
        len: usize,
        values: &[u8],
        is_null: impl Fn(usize) -> bool,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        let (mut scratch, mut tags, mut codes, mut rows) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for first in (0..len).step_by(BATCH) {
            let count = BATCH.min(len - first);
            scratch.clear();
            tags.clear();
            rows.clear();
            keys::encode(physical, &values[first * width..(first + count) * width], &mut scratch)?;
            let mut probes: Vec<Probe<'_>> = Vec::with_capacity(count);
            for i in 0..count {
                if is_null(first + i) {
                    rows.push(KNOWN);
                    continue;
                }
                let probe = Probe::of(&scratch[i * width..(i + 1) * width]);
                tags.push(probe.tag(self.hasher));
                rows.push(probes.len() as Row);
                probes.push(probe);
            }
            codes.clear();
            self.slots.resolve(self.strings, &tags, &probes, &mut codes)?;
            emit(&rows, &codes, out);
        }
        Ok(())
    }
}

#[inline]
pub(super) fn length(view: u128) -> usize {
    low_half(split(view)[0]) as usize
}

/// The entry of a short view. Nothing promises that the bytes after its value are zero.
#[inline]
fn short_entry(view: u128) -> [u64; 2] {
    // A table is faster than shifting 128 bits by an amount known only at run time.
    const MASKS: [u128; 16] = {
        let mut masks = [u128::MAX; 16];
        let mut len = 0;
        while len < INLINE {
            masks[len] = (1 << (32 + 8 * len)) - 1;
            len += 1;
        }
        masks
    };
    split(view & MASKS[length(view) % 16])
}

#[inline]
fn remembered_slot(view: u128) -> usize {
    let [low, high] = split(view);
    low_half((low ^ high).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % REMEMBERED
}

/// The bytes a long view points at, if its buffer has them.
#[inline]
pub(super) fn long_bytes(view: u128, buffers: &[Buffer]) -> Option<&[u8]> {
    let [low, high] = split(view);
    let (len, start) = (low_half(low) as usize, low_half(high >> 32) as usize);
    buffers.get(low_half(high) as usize)?.get(start..start.checked_add(len)?)
}

#[cold]
fn outside() -> EncodingError {
    EncodingError::invalid("a view points outside of its buffers")
}
