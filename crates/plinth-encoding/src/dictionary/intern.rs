//! Interning: a provisional code for every distinct value, in order of first appearance.
//!
//! Rows are taken in batches of a few hundred. A batch is hashed first, then its buckets are loaded together, then
//! compared: the cache misses of a batch overlap instead of queueing, as in vectorised hash tables (MonetDB/X100;
//! Kersten et al., VLDB 2018).

use std::ops::Range;

use arrow_buffer::{Buffer, NullBuffer};

use crate::column::{Column, Values};
use crate::dictionary::entry::{Entry, INLINE, length, long_bytes};
use crate::dictionary::keys::{self, Numbers};
use crate::dictionary::slots::{BATCH, Key, Slots};
use crate::dictionary::sort::{self, Sorted};
use crate::dictionary::strings::Strings;
use crate::dictionary::wire::low_half;
use crate::error::{EncodingError, Result};
use crate::physical::Physical;

/// Assigns provisional codes to values: 0 to the first distinct value seen, 1 to the next, and so on.
#[derive(Debug)]
pub struct Interner {
    physical: Physical,
    store: Store,
}

/// The distinct values and their provisional codes.
#[derive(Debug)]
enum Store {
    /// Keys of one or two bytes.
    Direct(Numbers, Direct),
    /// Keys of at most eight bytes.
    Numbers(Numbers, Slots<u64>),
    /// All others.
    Strings(Strings),
}

/// Small numbers: `codes[key]` is the code plus one.
#[derive(Debug)]
struct Direct {
    codes: Vec<u32>,
    len: u32,
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
                Store::Direct(numbers, Direct { codes: vec![0; 1 << (8 * numbers.width())], len: 0 })
            }
            Some(numbers) => Store::Numbers(numbers, Slots::default()),
            None => Store::Strings(Strings::default()),
        };
        Ok(Self { physical, store })
    }

    /// Appends one provisional code a row to `out`. Null rows get code 0, are never looked at and never interned.
    ///
    /// # Errors
    /// If the column's values are not of the interner's type, lie outside of its buffers, or there are 2^32 - 1
    /// distinct values. `out` may then hold codes of some rows.
    pub fn intern(&mut self, column: &Column, out: &mut Vec<u32>) -> Result<()> {
        let (physical, missing) = (self.physical, &mut Vec::new());
        match &mut self.store {
            Store::Direct(numbers, direct) => resolve_numbers(physical, *numbers, column, Adding(direct), out, missing),
            Store::Numbers(numbers, slots) => resolve_numbers(physical, *numbers, column, Adding(slots), out, missing),
            Store::Strings(strings) => resolve_strings(physical, column, Adding(strings), out, missing),
        }
    }

    /// As [`Interner::intern`] but for values not seen yet, whose rows get code 0 and are returned: so that several
    /// threads can look for what one of them adds then, with [`Interner::intern_rows`].
    ///
    /// # Errors
    /// As [`Interner::intern`].
    pub fn find(&self, column: &Column, out: &mut Vec<u32>) -> Result<Vec<u32>> {
        let (physical, mut missing) = (self.physical, Vec::new());
        let rest = &mut missing;
        match &self.store {
            Store::Direct(numbers, direct) => resolve_numbers(physical, *numbers, column, Finding(direct), out, rest),
            Store::Numbers(numbers, slots) => resolve_numbers(physical, *numbers, column, Finding(slots), out, rest),
            Store::Strings(strings) => resolve_strings(physical, column, Finding(strings), out, rest),
        }?;
        Ok(missing)
    }

    /// Interns some rows of a column, none of them null, and puts their codes where they belong in those of all rows.
    ///
    /// # Errors
    /// As [`Interner::intern`], and if there are no such rows.
    pub fn intern_rows(&mut self, column: &Column, rows: &[u32], codes: &mut [u32]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let beyond = || EncodingError::invalid("a row that the column does not have");
        let values = match &column.values {
            Values::Views { views, buffers } => {
                let some = rows.iter().map(|&row| views.get(row as usize).copied());
                let views = some.collect::<Option<Vec<u128>>>().ok_or_else(beyond)?;
                Values::Views { views: views.into(), buffers: buffers.clone() }
            }
            Values::Fixed(values) => {
                let width = keys::key_width(self.physical).unwrap_or(0);
                let mut some = Vec::with_capacity(rows.len() * width);
                for &row in rows {
                    let start = (row as usize).checked_mul(width).ok_or_else(beyond)?;
                    let value = values.get(start..).and_then(|rest| rest.get(..width));
                    some.extend_from_slice(value.ok_or_else(beyond)?);
                }
                Values::Fixed(Buffer::from_vec(some))
            }
            Values::Bool(_) => return Err(EncodingError::invalid("booleans have no dictionary")),
        };
        let mut added = Vec::with_capacity(rows.len());
        self.intern(&Column { len: rows.len(), values, nulls: None }, &mut added)?;
        for (&row, code) in rows.iter().zip(added) {
            *codes.get_mut(row as usize).ok_or_else(beyond)? = code;
        }
        Ok(())
    }

    /// Distinct values so far.
    pub fn len(&self) -> usize {
        match &self.store {
            Store::Direct(_, direct) => direct.len as usize,
            Store::Numbers(_, slots) => slots.len(),
            Store::Strings(strings) => strings.slots.len(),
        }
    }

    /// Whether no value was seen yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes held: told by the distinct values and the order they came in alone.
    pub fn memory(&self) -> usize {
        match &self.store {
            Store::Direct(_, direct) => 4 * direct.codes.capacity(),
            Store::Numbers(_, slots) => slots.memory(),
            Store::Strings(strings) => strings.slots.memory() + strings.long.memory(),
        }
    }

    /// Bytes that are held at most until the table has grown once more, and while the values are sorted.
    pub fn footprint(&self) -> usize {
        let more = match &self.store {
            Store::Direct(..) => sort::numbers_room(self.len()),
            Store::Numbers(_, slots) => slots.growth().max(sort::numbers_room(slots.len())),
            Store::Strings(strings) => {
                strings.slots.growth().max(sort::strings_room(strings.slots.len(), strings.key_bytes))
            }
        };
        self.memory() + more
    }

    /// Sum of the lengths of the distinct values' keys.
    pub fn key_bytes(&self) -> usize {
        match &self.store {
            Store::Direct(numbers, _) | Store::Numbers(numbers, _) => self.len() * numbers.width(),
            Store::Strings(strings) => strings.key_bytes,
        }
    }

    /// The keys in order, and the rank of each provisional code.
    pub fn sort(self) -> Sorted {
        match self.store {
            Store::Direct(numbers, direct) => {
                let keys = (0..).zip(&direct.codes).filter_map(|(key, code)| Some((key, code.checked_sub(1)?)));
                sort::numbers(self.physical, numbers, direct.len as usize, keys)
            }
            Store::Numbers(numbers, slots) => sort::numbers(self.physical, numbers, slots.len(), slots.entries()),
            Store::Strings(strings) => sort::strings(self.physical, strings),
        }
    }
}

/// Distinct keys and their codes. `bytes` are those of the key, asked for where it is a long string.
trait Table {
    type Key: Key;
    /// Loads what is looked at for the keys of a batch, first or after that.
    fn touch(&self, tags: impl Iterator<Item = u32>, further: usize);
    /// Appends the codes plus one of most keys of a batch that are there, and zero of all others, without a branch.
    fn glance(&self, tags: &[u32], keys: &[Self::Key], out: &mut Vec<u32>);
    /// The same of one key that is looked for a little further on.
    fn glance_further(&self, tag: u32, key: Self::Key) -> u32;
    fn find<'a>(&self, tag: u32, key: Self::Key, bytes: impl Fn() -> &'a [u8]) -> Option<u32>;
    fn push<'a>(&mut self, key: Self::Key, bytes: impl Fn() -> &'a [u8]) -> Result<u32>;
}

impl Table for Direct {
    type Key = u64;

    fn touch(&self, _: impl Iterator<Item = u32>, _: usize) {}

    #[inline]
    fn glance(&self, _: &[u32], keys: &[u64], out: &mut Vec<u32>) {
        out.extend(keys.iter().map(|&key| self.codes.get(low_half(key) as usize).copied().unwrap_or(0)));
    }

    fn glance_further(&self, _: u32, _: u64) -> u32 {
        0
    }

    #[inline]
    fn find<'a>(&self, _: u32, key: u64, _: impl Fn() -> &'a [u8]) -> Option<u32> {
        self.codes.get(low_half(key) as usize)?.checked_sub(1)
    }

    fn push<'a>(&mut self, key: u64, _: impl Fn() -> &'a [u8]) -> Result<u32> {
        if let Some(code) = self.codes.get_mut(low_half(key) as usize) {
            self.len += 1;
            *code = self.len;
        }
        Ok(self.len - 1)
    }
}

impl Table for Slots<u64> {
    type Key = u64;

    #[inline]
    fn touch(&self, tags: impl Iterator<Item = u32>, further: usize) {
        Self::touch(self, tags, further);
    }

    #[inline]
    fn glance(&self, tags: &[u32], keys: &[u64], out: &mut Vec<u32>) {
        Self::glance(self, tags, keys, |one, other| one == other, out);
    }

    #[inline]
    fn glance_further(&self, tag: u32, key: u64) -> u32 {
        Self::glance_further(self, tag, key, |one, other| one == other)
    }

    #[inline]
    fn find<'a>(&self, tag: u32, key: u64, _: impl Fn() -> &'a [u8]) -> Option<u32> {
        Self::find(self, tag, |other| other == key)
    }

    fn push<'a>(&mut self, key: u64, _: impl Fn() -> &'a [u8]) -> Result<u32> {
        Self::push(self, key)
    }
}

impl Table for Strings {
    type Key = Entry;

    #[inline]
    fn touch(&self, tags: impl Iterator<Item = u32>, further: usize) {
        self.slots.touch(tags, further);
    }

    #[inline]
    fn glance(&self, tags: &[u32], keys: &[Entry], out: &mut Vec<u32>) {
        self.slots.glance(tags, keys, Entry::equals, out);
    }

    #[inline]
    fn glance_further(&self, tag: u32, key: Entry) -> u32 {
        self.slots.glance_further(tag, key, Entry::equals)
    }

    #[inline]
    fn find<'a>(&self, tag: u32, key: Entry, bytes: impl Fn() -> &'a [u8]) -> Option<u32> {
        if key.is_short() {
            return self.slots.find(tag, |other| other.equals(key));
        }
        self.slots.find(tag, |other| other.looks_like(key) && other.bytes(&self.long, &mut [0; 16]) == bytes())
    }

    fn push<'a>(&mut self, mut key: Entry, bytes: impl Fn() -> &'a [u8]) -> Result<u32> {
        if !key.is_short() {
            key.lies_at(self.long.push(bytes())?);
        }
        self.key_bytes += key.len();
        self.slots.push(key)
    }
}

/// What becomes of a key.
trait Lookup {
    type Table: Table;
    fn table(&self) -> &Self::Table;
    /// The code of a key that is not in the table.
    fn miss<'a>(&mut self, key: <Self::Table as Table>::Key, bytes: impl Fn() -> &'a [u8]) -> Result<Option<u32>>;
}

/// Keys that are not there are added.
struct Adding<'a, T>(&'a mut T);

impl<T: Table> Lookup for Adding<'_, T> {
    type Table = T;

    #[inline]
    fn table(&self) -> &T {
        self.0
    }

    fn miss<'a>(&mut self, key: T::Key, bytes: impl Fn() -> &'a [u8]) -> Result<Option<u32>> {
        self.0.push(key, bytes).map(Some)
    }
}

/// They are left to others.
struct Finding<'a, T>(&'a T);

impl<T: Table> Lookup for Finding<'_, T> {
    type Table = T;

    #[inline]
    fn table(&self) -> &T {
        self.0
    }

    fn miss<'a>(&mut self, _: T::Key, _: impl Fn() -> &'a [u8]) -> Result<Option<u32>> {
        Ok(None)
    }
}

/// The keys of a column, a batch at a time.
trait Keys<K> {
    /// Reads the keys of some rows; those of null rows are anything.
    fn read(&mut self, rows: Range<usize>, out: &mut Vec<K>) -> Result<()>;
    /// The bytes of row `i` of those read last, if it is a long string.
    fn bytes(&self, i: usize) -> &[u8];
}

/// Appends the codes of all rows to `out`, and the rows that got none to `missing`.
fn resolve<L: Lookup>(
    column: &Column,
    mut keys: impl Keys<<L::Table as Table>::Key>,
    mut lookup: L,
    out: &mut Vec<u32>,
    missing: &mut Vec<u32>,
) -> Result<()> {
    let nulls = nulls_of(column);
    let (mut batch, mut tags, mut missed) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH), [0; BATCH]);
    out.reserve(column.len);
    for first in (0..column.len).step_by(BATCH) {
        let rows = first..column.len.min(first + BATCH);
        batch.clear();
        keys.read(rows.clone(), &mut batch)?;
        tags.clear();
        tags.extend(batch.iter().map(Key::tag));
        lookup.table().touch(tags.iter().copied(), 0);
        let start = out.len();
        lookup.table().glance(&tags, &batch, out);
        let codes = &mut out[start..];
        // Which keys are looked for again is noted without a branch, because it cannot be predicted.
        let mut count = 0;
        for (i, code) in (0_usize..).zip(&mut *codes) {
            missed[count] = i;
            count += usize::from(*code == 0);
            *code = code.saturating_sub(1);
        }
        // A few are further on than was looked; many are long or new.
        if count < BATCH / 2 {
            lookup.table().touch(missed[..count].iter().map(|&i| tags[i]), 1);
            let mut left = 0;
            for at in 0..count {
                let i = missed[at];
                let code = lookup.table().glance_further(tags[i], batch[i]);
                codes[i] = code.saturating_sub(1);
                missed[left] = i;
                left += usize::from(code == 0);
            }
            count = left;
        }
        for &i in &missed[..count] {
            if nulls.is_some_and(|nulls| nulls.is_null(first + i)) {
                continue;
            }
            let (key, bytes) = (batch[i], || keys.bytes(i));
            let code = match lookup.table().find(tags[i], key, bytes) {
                None => lookup.miss(key, bytes)?,
                found => found,
            };
            match code {
                Some(code) => codes[i] = code,
                None => missing.push(low_half((first + i) as u64)),
            }
        }
        if let Some(nulls) = nulls {
            codes.iter_mut().enumerate().filter(|(i, _)| nulls.is_null(first + i)).for_each(|(_, code)| *code = 0);
        }
    }
    Ok(())
}

fn nulls_of(column: &Column) -> Option<&NullBuffer> {
    column.nulls.as_ref().filter(|nulls| nulls.null_count() > 0)
}

fn check(column: &Column) -> Result<()> {
    if nulls_of(column).is_some_and(|nulls| nulls.len() != column.len) {
        return Err(EncodingError::invalid("the null mask has another length than the column"));
    }
    if u32::try_from(column.len).is_err() {
        return Err(EncodingError::invalid("more than 2^32 - 1 rows at once"));
    }
    Ok(())
}

/// The values of a column of fixed width.
fn fixed_values(physical: Physical, column: &Column) -> Result<&[u8]> {
    let too_short = || EncodingError::invalid(format!("the values are fewer than the column's {} rows", column.len));
    match (&column.values, keys::key_width(physical)) {
        (Values::Fixed(values), Some(width)) => {
            column.len.checked_mul(width).and_then(|len| values.get(..len)).ok_or_else(too_short)
        }
        _ => Err(mismatch(physical)),
    }
}

#[cold]
fn mismatch(physical: Physical) -> EncodingError {
    EncodingError::invalid(format!("the values are not laid out as {physical:?}"))
}

struct NumberKeys<'a> {
    numbers: Numbers,
    values: &'a [u8],
}

impl Keys<u64> for NumberKeys<'_> {
    #[inline]
    fn read(&mut self, rows: Range<usize>, out: &mut Vec<u64>) -> Result<()> {
        let width = self.numbers.width();
        self.numbers.read(&self.values[rows.start * width..rows.end * width], out);
        Ok(())
    }

    fn bytes(&self, _: usize) -> &[u8] {
        &[]
    }
}

fn resolve_numbers<L: Lookup<Table: Table<Key = u64>>>(
    physical: Physical,
    numbers: Numbers,
    column: &Column,
    lookup: L,
    out: &mut Vec<u32>,
    missing: &mut Vec<u32>,
) -> Result<()> {
    check(column)?;
    resolve(column, NumberKeys { numbers, values: fixed_values(physical, column)? }, lookup, out, missing)
}

struct ViewKeys<'a> {
    views: &'a [u128],
    buffers: &'a [Buffer],
    nulls: Option<&'a NullBuffer>,
    /// Of the batch.
    first: usize,
}

impl Keys<Entry> for ViewKeys<'_> {
    #[inline]
    fn read(&mut self, rows: Range<usize>, out: &mut Vec<Entry>) -> Result<()> {
        self.first = rows.start;
        let views = &self.views[rows.clone()];
        if views.iter().all(|&view| length(view) <= INLINE) {
            out.extend(views.iter().map(|&view| Entry::of_short(view)));
            return Ok(());
        }
        for (row, &view) in rows.zip(views) {
            out.push(if self.nulls.is_some_and(|nulls| nulls.is_null(row)) {
                Entry::default()
            } else if length(view) <= INLINE {
                Entry::of_short(view)
            } else {
                Entry::of(long_bytes(view, self.buffers).ok_or_else(outside)?)
            });
        }
        Ok(())
    }

    #[inline]
    fn bytes(&self, i: usize) -> &[u8] {
        self.views.get(self.first + i).and_then(|&view| long_bytes(view, self.buffers)).unwrap_or(&[])
    }
}

/// Values of more than eight bytes, or none.
struct FixedKeys<'a> {
    physical: Physical,
    width: usize,
    values: &'a [u8],
    /// The keys of the batch, end to end.
    keys: Vec<u8>,
}

impl Keys<Entry> for FixedKeys<'_> {
    fn read(&mut self, rows: Range<usize>, out: &mut Vec<Entry>) -> Result<()> {
        self.keys.clear();
        let count = rows.len();
        keys::encode(self.physical, &self.values[rows.start * self.width..rows.end * self.width], &mut self.keys)?;
        out.extend((0..count).map(|i| Entry::of(self.bytes(i))));
        Ok(())
    }

    #[inline]
    fn bytes(&self, i: usize) -> &[u8] {
        &self.keys[i * self.width..(i + 1) * self.width]
    }
}

fn resolve_strings<L: Lookup<Table = Strings>>(
    physical: Physical,
    column: &Column,
    lookup: L,
    out: &mut Vec<u32>,
    missing: &mut Vec<u32>,
) -> Result<()> {
    check(column)?;
    match (physical, &column.values) {
        (Physical::Bytes { .. }, Values::Views { views, buffers }) => {
            let views = views.get(..column.len).ok_or_else(|| EncodingError::invalid("fewer views than rows"))?;
            resolve(column, ViewKeys { views, buffers, nulls: nulls_of(column), first: 0 }, lookup, out, missing)
        }
        (Physical::Bytes { .. }, _) => Err(mismatch(physical)),
        _ => {
            let (width, values) = (keys::key_width(physical).unwrap_or(0), fixed_values(physical, column)?);
            resolve(column, FixedKeys { physical, width, values, keys: Vec::new() }, lookup, out, missing)
        }
    }
}

#[cold]
fn outside() -> EncodingError {
    EncodingError::invalid("a view points outside of its buffers")
}
