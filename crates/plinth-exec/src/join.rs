//! The rows of one side of a join by their keys, where those of the other side find them.
//!
//! Keys are packed into words by the ranges of the side that is gathered, as keys of groups are ([`crate::key`]): a key of the other side that
//! lies outside of these has no partner, and is never hashed. Packed keys are dealt to parts by the first bits of their addresses or hashes
//! (a radix partition), and each thread makes parts of its own: nothing is shared while they are made. What is found of a key is its row where no
//! key occurs twice, else the place where its rows lie side by side.

#![allow(clippy::cast_possible_truncation, reason = "rows are counted in 32 bits, which is checked where they come")]

mod part;

use std::sync::Arc;

use arrow_buffer::NullBuffer;
use plinth_io::{MemoryBudget, OutOfMemory, Reservation};

use self::part::{Deal, Later, Part};
use crate::error::{ExecError, Result};
use crate::key::{Bounds, Keys, Meaning};
use crate::numbers::Numbers;
use crate::rows::address_bits;
use crate::vector::Vector;
use crate::words::read;

/// Who asks for memory for the side that is gathered.
pub const CONSUMER: &str = "hash join (build side)";

/// What stands for no row.
pub const NO_ROW: u32 = u32::MAX;

/// Rows of a part at least, on average, as a power of two.
const FEWEST_BITS: u32 = 15;

/// Addresses take half of what they do for groups: so much more than its rows a table may have of them, and take about what slots would.
const SPARSE: usize = 2;

/// Parts at most, as a power of two.
const MOST_PARTS: u32 = 8;

/// How the keys of a table's rows are packed and dealt.
#[derive(Clone, Debug)]
pub struct Builder {
    keys: Keys,
    nulls_match: bool,
    rows: usize,
    /// Bits that tell the part.
    part_bits: u32,
    budget: Arc<MemoryBudget>,
}

/// Rows whose keys are packed.
#[derive(Debug)]
pub struct Packed {
    deals: Vec<Deal>,
    /// Of each number of a key its range, if some lay outside of what keys have room for: nothing is packed then.
    beyond: Vec<Bounds>,
    _memory: Reservation,
}

/// The keys of a part, and its rows whose keys came before.
#[derive(Debug)]
pub struct Made {
    part: Part,
    others: Later,
    /// Different keys.
    keys: usize,
}

impl Builder {
    /// A table of so many rows, made by so many threads. A key column's numbers are expected in `ranges`, as far as they are known; a null equals
    /// no key, or other nulls.
    ///
    /// # Errors
    /// If there are more rows than 31 bits count.
    pub fn new(
        meanings: Vec<Meaning>,
        ranges: &[Bounds],
        nulls_match: bool,
        rows: usize,
        threads: usize,
        budget: &Arc<MemoryBudget>,
    ) -> Result<Self> {
        if rows >= LAST as usize {
            return Err(ExecError::Memory(budget.open(CONSUMER).refusal(u64::MAX)));
        }
        let part_bits = threads.next_power_of_two().ilog2().min((rows >> FEWEST_BITS).checked_ilog2().unwrap_or(0));
        let keys = Keys::new(meanings).expecting(ranges);
        Ok(Self { keys, nulls_match, rows, part_bits: part_bits.min(MOST_PARTS), budget: Arc::clone(budget) })
    }

    /// Parts that the table is made in.
    pub fn parts(&self) -> usize {
        1 << self.part_bits
    }

    /// Packs and deals the keys of some rows, which are numbered from one on.
    ///
    /// # Errors
    /// If there is no memory for them, or values can't be had.
    pub fn pack(&self, columns: &[Vector], rows: usize, from: u32) -> Result<Packed> {
        let mut keys = self.keys.clone();
        let mut memory = self.budget.open(CONSUMER);
        if let Err(beyond) = keys.pack(columns, rows, self.nulls_match)? {
            return Ok(Packed { deals: Vec::new(), beyond, _memory: memory });
        }
        let (words, packed) = (keys.layout.words(), keys.packed());
        // An eighth more than what a part has if all are alike.
        memory.try_grow((rows * (8 * words + 4) * 9 / 8) as u64)?;
        let nulls = if self.nulls_match { None } else { nulls(columns) };
        let addressed = self.addresses();
        let room = (rows >> self.part_bits) + (rows >> (self.part_bits + 3));
        let deal = |_| Deal { words: Vec::with_capacity(room * words), rows: Vec::with_capacity(room) };
        let mut deals: Vec<Deal> = (0..self.parts()).map(deal).collect();
        if let ([one], [deal], None) = (packed, deals.as_mut_slice(), &nulls) {
            deal.words.extend_from_slice(&one[..rows]);
            deal.rows.extend(from..from + rows as u32);
            return Ok(Packed { deals, beyond: Vec::new(), _memory: memory });
        }
        let part_of = |key: u64, hash: &dyn Fn() -> u64| match addressed {
            Some(bits) => key.unbounded_shr(bits - self.part_bits.min(bits)) as usize,
            None => part::part_of(hash(), self.part_bits),
        };
        if let ([one], None) = (packed, &nulls) {
            for (&key, row) in one[..rows].iter().zip(from..) {
                let deal = deals.get_mut(part_of(key, &|| part::hash([key]))).ok_or_else(no_part)?;
                deal.words.push(key);
                deal.rows.push(row);
            }
            return Ok(Packed { deals, beyond: Vec::new(), _memory: memory });
        }
        for row in (0..rows).filter(|row| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*row))) {
            let key = packed.iter().take(words).map(|column| column[row]);
            let part = part_of(packed[0][row], &|| part::hash(key.clone()));
            let deal = deals.get_mut(part).ok_or_else(no_part)?;
            deal.words.extend(key);
            deal.rows.push(from + row as u32);
        }
        Ok(Packed { deals, beyond: Vec::new(), _memory: memory })
    }

    /// Makes room for all rows of which some could not be packed; whether there are any, so that all are to be packed anew.
    pub fn widen(&mut self, packed: &[Packed]) -> bool {
        let mut any = false;
        for packed in packed.iter().filter(|packed| packed.deals.is_empty()) {
            self.keys.include(&packed.beyond);
            any = true;
        }
        any
    }

    /// Bits of addresses, if keys are addresses.
    fn addresses(&self) -> Option<u32> {
        address_bits(&self.keys.layout, SPARSE * self.rows)
    }

    /// Makes one of the parts, of all rows there are.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn part(&self, at: usize, packed: &[Packed]) -> Result<Made> {
        let deals: Vec<&Deal> = packed.iter().filter_map(|packed| packed.deals.get(at)).collect();
        let (part, others) = match self.addresses() {
            Some(bits) => {
                let addresses = 1 << (bits - self.part_bits.min(bits));
                Part::by_address(&deals, (at * addresses) as u64, addresses, &self.budget)?
            }
            None => Part::by_hash(&deals, self.keys.layout.words(), self.part_bits, &self.budget)?,
        };
        let rows: usize = deals.iter().map(|deal| deal.rows.len()).sum();
        Ok(Made { part, keys: rows - others.all.len(), others })
    }

    /// The table that all parts are, in their order.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn finish(self, made: Vec<Made>) -> Result<Table, OutOfMemory> {
        let mut memory = self.budget.open(CONSUMER);
        let distinct = made.iter().map(|made| made.keys).sum();
        let (mut parts, later): (Vec<_>, Vec<_>) = made.into_iter().map(|made| (made.part, made.others)).unzip();
        let several = if later.iter().all(|later| later.all.is_empty()) {
            None
        } else {
            // Half of it for the moment.
            memory.try_grow(8 * self.rows as u64)?;
            let several = Several::of(self.rows, &mut parts, &later);
            memory.shrink(4 * self.rows as u64);
            Some(several)
        };
        let Self { keys, nulls_match, rows, part_bits, .. } = self;
        let addressed = matches!(parts.first(), Some(Part::Addresses { .. }));
        Ok(Table { keys, parts, part_bits, addressed, several, distinct, count: rows, nulls_match, _memory: memory })
    }
}

/// The error of a key that belongs to no part, of which there is none.
fn no_part() -> ExecError {
    ExecError::internal("a key that belongs to no part of its table")
}

/// Where a key is null.
fn nulls(keys: &[Vector]) -> Option<NullBuffer> {
    keys.iter().fold(None, |all, key| NullBuffer::union(all.as_ref(), key.nulls().as_ref()))
}

/// Rows key by key, in their order there. What is found of a key is the place of its first row.
#[derive(Debug)]
struct Several(Vec<u32>);

/// Set in the last row of a key.
const LAST: u32 = 1 << 31;

impl Several {
    /// Of so many rows, given the keys of parts by their first rows, and the rows whose keys came before.
    fn of(rows: usize, parts: &mut [Part], later: &[Later]) -> Self {
        // Of each row how many come behind it that have its key; then the place of the first of a key; then where the next goes.
        let mut next = vec![0_u32; rows];
        for other in later.iter().flat_map(|later| &later.all) {
            next[other.first as usize] += 1;
            next[other.row as usize] = NO_ROW;
        }
        let (mut all, mut end) = (vec![0; rows], 0);
        for (row, next) in next.iter_mut().enumerate().filter(|(_, next)| **next != NO_ROW) {
            let (place, others) = (end, *next);
            end += 1 + others;
            (all[place as usize], *next) = (row as u32, place);
        }
        parts.iter_mut().for_each(|part| part.replace(|first| next[first as usize]));
        for other in later.iter().flat_map(|later| &later.all) {
            let at = &mut next[other.first as usize];
            *at += 1;
            all[*at as usize] = other.row;
        }
        next.iter().filter(|last| **last != NO_ROW).for_each(|last| all[*last as usize] |= LAST);
        Self(all)
    }
}

/// The rows of one side by their keys.
#[derive(Debug)]
pub struct Table {
    keys: Keys,
    parts: Vec<Part>,
    part_bits: u32,
    addressed: bool,
    /// If a key has several rows.
    several: Option<Several>,
    distinct: usize,
    count: usize,
    nulls_match: bool,
    _memory: Reservation,
}

/// How far the pairs of some rows have come out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    row: usize,
    partner: usize,
}

impl Table {
    /// Rows, also those whose keys match none.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Different keys.
    pub fn keys(&self) -> usize {
        self.distinct
    }

    /// What a thread needs to look keys up.
    pub fn probe(&self) -> Probe {
        Probe { keys: self.keys.clone() }
    }

    /// The rows of a key, in their order, given what was found of it.
    pub fn rows(&self, place: u32) -> impl Iterator<Item = u32> + '_ {
        let mut next = Some(place);
        std::iter::from_fn(move || {
            let place = next?;
            let Some(Several(rows)) = &self.several else {
                next = None;
                return Some(place);
            };
            let row = *rows.get(place as usize)?;
            next = (row & LAST == 0).then(|| place + 1);
            Some(row & !LAST)
        })
    }

    /// The next pairs of some rows, of whose keys the places are given, and the table's rows, at most so many; true once there are no more.
    pub fn pairs(
        &self,
        places: &[u32],
        cursor: &mut Cursor,
        most: usize,
        probed: &mut Vec<u32>,
        found: &mut Vec<u32>,
    ) -> bool {
        let mut pairs = 0;
        let ended = match &self.several {
            None => {
                let until = places.len().min(cursor.row.saturating_add(most));
                probed.resize(until - cursor.row, 0);
                found.resize(until - cursor.row, 0);
                // Written always, and kept or not: a branch would often be foreseen wrongly.
                for (row, &place) in (cursor.row..until).zip(&places[cursor.row..until]) {
                    (probed[pairs], found[pairs]) = (row as u32, place);
                    pairs += usize::from(place != NO_ROW);
                }
                cursor.row = until;
                until == places.len()
            }
            Some(Several(rows)) => {
                probed.resize(most, 0);
                found.resize(most, 0);
                loop {
                    let Some(&place) = places.get(cursor.row) else { break true };
                    let key = rows.get((place as usize).saturating_add(cursor.partner)..).unwrap_or_default();
                    let len = key.iter().position(|row| row & LAST != 0).map_or(0, |last| last + 1);
                    let some = len.min(most - pairs);
                    let into = pairs..pairs + some;
                    found[into.clone()].iter_mut().zip(key).for_each(|(found, row)| *found = row & !LAST);
                    probed[into].fill(cursor.row as u32);
                    pairs += some;
                    if some < len {
                        cursor.partner += some;
                        break false;
                    }
                    *cursor = Cursor { row: cursor.row + 1, partner: 0 };
                }
            }
        };
        probed.truncate(pairs);
        found.truncate(pairs);
        ended
    }

    /// The keys of a column as numbers, some perhaps more than once; none if its values are no integers, or a null equals others.
    pub fn integers(&self, column: usize) -> Option<Vec<i64>> {
        let field = self.keys.meanings().get(..column)?.iter().map(|meaning| meaning.width() + 1).sum();
        let Meaning::Numbers(Numbers::Signed(_) | Numbers::Unsigned(_), _) = self.keys.meanings().get(column)? else {
            return None;
        };
        if self.nulls_match {
            return None;
        }
        let mut numbers = Vec::with_capacity(self.distinct);
        self.parts.iter().for_each(|part| part.each(|key| numbers.push(self.keys.layout.unpack(key, field))));
        Some(numbers)
    }
}

/// Looks keys up in a table.
#[derive(Debug)]
pub struct Probe {
    keys: Keys,
}

impl Probe {
    /// Of each row the place of its key in a table; [`NO_ROW`] of rows that match none.
    ///
    /// # Errors
    /// If values can't be had.
    pub fn places(&mut self, table: &Table, columns: &[Vector], rows: usize, into: &mut Vec<u32>) -> Result<()> {
        into.clear();
        into.reserve(rows);
        self.keys.read_for(columns, rows, table.nulls_match)?;
        if let Some((numbers, base)) = self.keys.sole_number().filter(|_| table.addressed) {
            // What lies outside of the range has no address.
            let addresses = numbers[..rows].iter().map(|number| number.wrapping_sub(base).cast_unsigned());
            part::by_address(&table.parts, addresses, into);
        } else {
            let (packed, outside) = self.keys.pack_within(rows);
            match packed {
                [one, ..] if table.addressed => part::by_address(&table.parts, one[..rows].iter().copied(), into),
                [one] => hashed(table, rows, |row| [one[row]], into),
                [one, two] => hashed(table, rows, |row| [one[row], two[row]], into),
                packed => {
                    let hash_of = |row: usize| part::hash(packed.iter().map(|word| word[row]));
                    let is_key = |row: usize, key: &[_]| key.iter().zip(packed).all(|(of, word)| read(of) == word[row]);
                    part::by_hash(&table.parts, table.part_bits, rows, hash_of, is_key, into);
                }
            }
            into.iter_mut().zip(outside).filter(|(_, outside)| **outside).for_each(|(first, _)| *first = NO_ROW);
        }
        if let Some(nulls) = nulls(columns).filter(|_| !table.nulls_match) {
            into.iter_mut().zip(&nulls).filter(|(_, valid)| !valid).for_each(|(first, _)| *first = NO_ROW);
        }
        Ok(())
    }
}

/// Looks for keys whose words are known to be so many when this is compiled.
fn hashed<const N: usize>(table: &Table, rows: usize, key: impl Fn(usize) -> [u64; N], into: &mut Vec<u32>) {
    let is_key = |row: usize, of: &[_]| of.iter().zip(key(row)).all(|(of, word)| read(of) == word);
    part::by_hash(&table.parts, table.part_bits, rows, |row| part::hash(key(row)), is_key, into);
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
