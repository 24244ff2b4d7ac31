//! Numbers for the byte strings of a column, the same for all threads of a query.
//!
//! A value is given a number when it is first met, under the lock of one of many parts that its hash chooses; a batch takes each lock
//! once. Of values that come as codes of dictionaries, the number of each code is looked up once and then read without a lock.

#![allow(clippy::cast_possible_truncation, reason = "hashes are cut into halves")]

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::hint::black_box;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, RwLock};

use arrow_array::builder::{BinaryBuilder, BinaryViewBuilder, FixedSizeBinaryBuilder, LargeBinaryBuilder};
use arrow_array::builder::{LargeStringBuilder, StringBuilder, StringViewBuilder};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use foldhash::fast::FixedState;
use plinth_core::sync::lock;
use plinth_io::{MemoryBudget, OutOfMemory, Reservation};

use crate::error::{ExecError, Result};
use crate::vector::{Coded, Vector};

/// Parts of a domain, as a power of two: so many threads can add values at a time.
const PARTS: u32 = 6;

/// Bits of the number that a value has in its part.
const BITS: u32 = 25;

/// Slots of a part at first.
const FEWEST: usize = 64;

/// Slots of a part from which on all parts do not lie in a core's cache.
const CACHED: usize = 1 << 10;

/// Values of a part that are looked for together.
const TOGETHER: usize = 64;

/// Bytes of values that lie together.
const CHUNK: usize = 64 << 10;

/// Of the memory, what the numbers of one dictionary's codes may take.
const SHARE: u64 = 8;

/// Who asks for memory.
const CONSUMER: &str = "text of groups";

/// The values of a column that were met.
#[derive(Debug)]
pub struct Domain {
    data_type: DataType,
    parts: Vec<Mutex<Part>>,
    /// By the identity of dictionaries.
    dictionaries: RwLock<HashMap<usize, Arc<Known>>>,
    hasher: FixedState,
}

/// What is known of a dictionary's codes.
#[derive(Debug)]
struct Known {
    /// Kept, so that no other gets its identity.
    dictionary: Arc<dyn Coded>,
    /// Of each code the number plus one, once it is known.
    numbers: Vec<AtomicU32>,
    memory: Reservation,
}

/// Values of some hashes.
#[derive(Debug)]
struct Part {
    /// By the upper bits of a hash: its upper half, and the value plus one.
    slots: Vec<u64>,
    values: Vec<Place>,
    chunks: Vec<Vec<u8>>,
    memory: Reservation,
}

/// Where the bytes of a value are.
#[derive(Clone, Copy, Debug)]
struct Place {
    chunk: u32,
    start: u32,
    len: u32,
}

impl Domain {
    /// Where all numbers of values lie.
    pub const RANGE: (i64, i64) = (0, (1 << (BITS + PARTS)) - 1);

    /// No values yet of a type; `None` if its values are no byte strings.
    pub fn new(data_type: &DataType, budget: &Arc<MemoryBudget>) -> Option<Self> {
        let bytes = matches!(
            data_type,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Binary | DataType::LargeBinary
        ) || matches!(data_type, DataType::BinaryView | DataType::FixedSizeBinary(_));
        let part = |_| {
            let memory = budget.open(CONSUMER);
            Mutex::new(Part { slots: Vec::new(), values: Vec::new(), chunks: Vec::new(), memory })
        };
        bytes.then(|| Self {
            data_type: data_type.clone(),
            parts: (0..1 << PARTS).map(part).collect(),
            dictionaries: RwLock::default(),
            hasher: FixedState::default(),
        })
    }

    /// The type of its values.
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Values that were met.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| lock(part).values.len()).sum()
    }

    /// Dictionaries whose codes were met.
    pub fn dictionaries(&self) -> usize {
        self.dictionaries.read().map_or(0, |all| all.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What it takes of the budget. Of a domain that another thread is adding to, what can be told without waiting.
    pub fn bytes(&self) -> u64 {
        let parts = self.parts.iter().filter_map(|part| part.try_lock().ok()).map(|part| part.memory.bytes());
        let known = self.dictionaries.try_read().map_or(0, |all| all.values().map(|known| known.memory.bytes()).sum());
        parts.sum::<u64>() + known
    }

    /// Where the numbers of about so many values lie: the parts have nearly as many each.
    pub fn range_of(values: usize) -> (i64, i64) {
        let values = values.saturating_add(values / 4).saturating_add(16 << PARTS);
        (0, i64::try_from(values).unwrap_or(i64::MAX).min(Self::RANGE.1))
    }

    /// The numbers of some values; of null rows any.
    ///
    /// # Errors
    /// If there is no memory for new values, or the values can't be had.
    pub fn numbers(&self, vector: &Vector, into: &mut Vec<i64>) -> Result<()> {
        into.clear();
        into.resize(vector.len(), 0);
        match vector {
            Vector::Array(array) => self.of_values(array.as_ref(), vector.nulls().as_ref(), into),
            Vector::Codes { ids, nulls, dictionary } => self.of_codes(ids, nulls.as_ref(), dictionary, into),
            Vector::Narrow(_) => self.of_values(vector.array()?.as_ref(), vector.nulls().as_ref(), into),
        }
    }

    fn of_codes(
        &self,
        codes: &[u32],
        nulls: Option<&NullBuffer>,
        dictionary: &Arc<dyn Coded>,
        into: &mut [i64],
    ) -> Result<()> {
        let Some(known) = self.known(dictionary)? else {
            return self.of_values(dictionary.lent(codes, nulls)?.as_ref(), nulls, into);
        };
        let mut unknown = Vec::new();
        for (row, (&code, number)) in codes.iter().zip(into.iter_mut()).enumerate() {
            if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                continue;
            }
            let found = known.numbers.get(code as usize);
            match found.ok_or_else(|| ExecError::internal("a code that no value has"))?.load(Relaxed) {
                0 => unknown.push(code),
                found => *number = i64::from(found - 1),
            }
        }
        if unknown.is_empty() {
            return Ok(());
        }
        unknown.sort_unstable();
        unknown.dedup();
        let values = dictionary.lent(&unknown, None)?;
        let mut numbers = vec![0; unknown.len()];
        self.of_values(values.as_ref(), None, &mut numbers)?;
        for (&code, number) in unknown.iter().zip(numbers) {
            let number = u32::try_from(number + 1).map_err(|_| ExecError::internal("more values than have numbers"))?;
            known.numbers[code as usize].store(number, Relaxed);
        }
        for (row, (&code, number)) in codes.iter().zip(into).enumerate() {
            if nulls.is_none_or(|nulls| nulls.is_valid(row)) {
                *number = i64::from(known.numbers[code as usize].load(Relaxed)) - 1;
            }
        }
        Ok(())
    }

    /// What is known of a dictionary; `None` if that would be much of the memory, of which values need most.
    fn known(&self, dictionary: &Arc<dyn Coded>) -> Result<Option<Arc<Known>>> {
        let identity = dictionary.identity();
        let poisoned = || ExecError::internal("a thread ended while it looked for a dictionary");
        if let Some(known) = self.dictionaries.read().map_err(|_| poisoned())?.get(&identity) {
            return Ok(Some(Arc::clone(known)));
        }
        let budget = Arc::clone(lock(&self.parts[0]).memory.budget());
        let bytes = 4 * dictionary.len() as u64;
        if bytes > budget.limit() / SHARE {
            return Ok(None);
        }
        let mut all = self.dictionaries.write().map_err(|_| poisoned())?;
        if let Some(known) = all.get(&identity) {
            return Ok(Some(Arc::clone(known)));
        }
        let memory = budget.reserve(CONSUMER, bytes)?;
        let numbers = (0..dictionary.len()).map(|_| AtomicU32::new(0)).collect();
        let known = Arc::new(Known { dictionary: Arc::clone(dictionary), numbers, memory });
        all.insert(known.dictionary.identity(), Arc::clone(&known));
        Ok(Some(known))
    }

    fn of_values(&self, array: &dyn Array, nulls: Option<&NullBuffer>, into: &mut [i64]) -> Result<()> {
        match array.data_type() {
            DataType::Utf8 => self.of_bytes(into, nulls, |row| array.as_string::<i32>().value(row).as_bytes()),
            DataType::LargeUtf8 => self.of_bytes(into, nulls, |row| array.as_string::<i64>().value(row).as_bytes()),
            DataType::Utf8View => self.of_bytes(into, nulls, |row| array.as_string_view().value(row).as_bytes()),
            DataType::Binary => self.of_bytes(into, nulls, |row| array.as_binary::<i32>().value(row)),
            DataType::LargeBinary => self.of_bytes(into, nulls, |row| array.as_binary::<i64>().value(row)),
            DataType::BinaryView => self.of_bytes(into, nulls, |row| array.as_binary_view().value(row)),
            DataType::FixedSizeBinary(_) => self.of_bytes(into, nulls, |row| array.as_fixed_size_binary().value(row)),
            other => Err(ExecError::internal(format!("values of {other} where byte strings belong"))),
        }
    }

    fn of_bytes<'a>(
        &self,
        into: &mut [i64],
        nulls: Option<&NullBuffer>,
        value: impl Fn(usize) -> &'a [u8],
    ) -> Result<()> {
        // The rows of each part together, so that each lock is taken once.
        let rows = (0..into.len()).filter(|&row| nulls.is_none_or(|nulls| nulls.is_valid(row)));
        let rows: Vec<(u64, usize)> = rows.map(|row| (self.hasher.hash_one(value(row)), row)).collect();
        let part_of = |hash: u64| (hash & ((1 << PARTS) - 1)) as usize;
        let mut starts = [0; (1 << PARTS) + 1];
        for (hash, _) in &rows {
            starts[part_of(*hash) + 1] += 1;
        }
        for part in 0..1 << PARTS {
            starts[part + 1] += starts[part];
        }
        let (mut by_part, mut next) = (vec![(0, 0); rows.len()], starts);
        for row in rows {
            let at = &mut next[part_of(row.0)];
            by_part[*at] = row;
            *at += 1;
        }
        for (at, range) in starts.windows(2).enumerate() {
            let rows = &by_part[range[0]..range[1]];
            if rows.is_empty() {
                continue;
            }
            let mut part = lock(&self.parts[at]);
            for rows in rows.chunks(TOGETHER) {
                part.touch(rows);
                for &(hash, row) in rows {
                    let number = u64::from(part.find(hash, value(row))?) << PARTS | at as u64;
                    into[row] = i64::try_from(number).unwrap_or(i64::MAX);
                }
            }
        }
        Ok(())
    }

    /// The values of some numbers; null where there is none.
    ///
    /// # Errors
    /// If a number is no value's.
    pub fn values(&self, numbers: &[Option<i64>]) -> Result<ArrayRef> {
        macro_rules! build {
            ($builder:expr, $of_bytes:expr) => {{
                let mut builder = $builder;
                for number in numbers {
                    match number {
                        None => builder.append_null(),
                        Some(number) => self.with_value(*number, |bytes| {
                            builder.append_value($of_bytes(bytes)?);
                            Ok(())
                        })?,
                    }
                }
                Arc::new(builder.finish()) as ArrayRef
            }};
        }
        Ok(match &self.data_type {
            DataType::Utf8 => build!(StringBuilder::new(), text),
            DataType::LargeUtf8 => build!(LargeStringBuilder::new(), text),
            DataType::Utf8View => build!(StringViewBuilder::new(), text),
            DataType::Binary => build!(BinaryBuilder::new(), whole),
            DataType::LargeBinary => build!(LargeBinaryBuilder::new(), whole),
            DataType::BinaryView => build!(BinaryViewBuilder::new(), whole),
            DataType::FixedSizeBinary(width) => {
                let mut builder = FixedSizeBinaryBuilder::new(*width);
                for number in numbers {
                    match number {
                        None => builder.append_null(),
                        Some(number) => self.with_value(*number, |bytes| Ok(builder.append_value(bytes)?))?,
                    }
                }
                Arc::new(builder.finish())
            }
            other => return Err(ExecError::internal(format!("numbers of {other} where byte strings belong"))),
        })
    }

    fn with_value(&self, number: i64, then: impl FnOnce(&[u8]) -> Result<()>) -> Result<()> {
        let none = || ExecError::internal(format!("there is no value of number {number}"));
        let number = usize::try_from(number).map_err(|_| none())?;
        let part = lock(&self.parts[number & ((1 << PARTS) - 1)]);
        let place = part.values.get(number >> PARTS).copied().ok_or_else(none)?;
        then(part.bytes(place))
    }
}

/// Bytes as they are.
#[allow(clippy::unnecessary_wraps, reason = "as text is made of bytes")]
fn whole(bytes: &[u8]) -> Result<&[u8]> {
    Ok(bytes)
}

/// Bytes that were text when they came.
fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| ExecError::internal("text that is not UTF-8"))
}

impl Part {
    fn bytes(&self, place: Place) -> &[u8] {
        let start = place.start as usize;
        &self.chunks[place.chunk as usize][start..start + place.len as usize]
    }

    /// Has the cache misses of looking for some hashes overlap: of their slots, of the values that these name, and of the bytes of those.
    fn touch(&self, rows: &[(u64, usize)]) {
        if self.slots.len() < CACHED {
            return;
        }
        let slot = |hash: u64| self.slots[self.address((hash >> 32) as u32)];
        black_box(rows.iter().fold(0, |all, row| all ^ slot(row.0)));
        let named = |&(hash, _): &(u64, usize)| {
            let slot = slot(hash);
            if slot >> 32 == hash >> 32 { self.values.get((slot as u32 as usize).wrapping_sub(1)) } else { None }
        };
        black_box(rows.iter().filter_map(named).fold(0, |all, place| all ^ place.start));
        let first = |place: &Place| self.bytes(*place).first().copied().unwrap_or_default();
        black_box(rows.iter().filter_map(named).fold(0, |all, place| all ^ first(place)));
    }

    /// The place of a value, which gets one if it has none.
    fn find(&mut self, hash: u64, value: &[u8]) -> Result<u32> {
        if (self.values.len() + 1) * 8 > self.slots.len() * 5 {
            self.grow()?;
        }
        let tag = (hash >> 32) as u32;
        let (mask, mut at) = (self.slots.len() - 1, self.address(tag));
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                break;
            }
            if (slot >> 32) as u32 == tag {
                let found = slot as u32 - 1;
                if self.bytes(self.values[found as usize]) == value {
                    return Ok(found);
                }
            }
            at = (at + 1) & mask;
        }
        let next = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        if next >> BITS != 0 {
            return Err(ExecError::Memory(self.memory.refusal(u64::MAX)));
        }
        let place = self.keep(value)?;
        if self.values.len() == self.values.capacity() {
            let more = self.values.len().max(FEWEST);
            self.memory.try_grow((more * size_of::<Place>()) as u64)?;
            self.values.reserve_exact(more);
        }
        self.values.push(place);
        self.slots[at] = u64::from(tag) << 32 | u64::from(next + 1);
        Ok(next)
    }

    /// Where to look for a hash first.
    fn address(&self, tag: u32) -> usize {
        ((u64::from(tag) * self.slots.len() as u64) >> 32) as usize
    }

    fn grow(&mut self) -> Result<(), OutOfMemory> {
        let wanted = (self.slots.len() * 2).max(FEWEST);
        self.memory.try_grow(8 * (wanted - self.slots.len()) as u64)?;
        let before = std::mem::replace(&mut self.slots, vec![0; wanted]);
        for slot in before.into_iter().filter(|slot| *slot != 0) {
            let mut at = self.address((slot >> 32) as u32);
            while self.slots[at] != 0 {
                at = (at + 1) & (wanted - 1);
            }
            self.slots[at] = slot;
        }
        Ok(())
    }

    /// Keeps the bytes of a value.
    fn keep(&mut self, value: &[u8]) -> Result<Place> {
        let room = self.chunks.last().map_or(0, |chunk| chunk.capacity() - chunk.len());
        if self.chunks.is_empty() || room < value.len() {
            // Small at first: a part of few values takes little.
            let wanted = value.len().max((CHUNK >> 6) << self.chunks.len().min(6));
            self.memory.try_grow(wanted as u64)?;
            self.chunks.push(Vec::with_capacity(wanted));
        }
        let large = |_| ExecError::internal("a value of more than 4 GiB");
        let chunk = u32::try_from(self.chunks.len() - 1).map_err(large)?;
        let Some(last) = self.chunks.last_mut() else { return Err(ExecError::internal("no chunk of values")) };
        let (start, len) = (u32::try_from(last.len()).map_err(large)?, u32::try_from(value.len()).map_err(large)?);
        last.extend_from_slice(value);
        Ok(Place { chunk, start, len })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
