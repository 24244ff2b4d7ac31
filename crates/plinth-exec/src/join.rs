//! The rows of one side of a join by their keys, where those of the other side find them.
//!
//! Keys are packed into words by the ranges of the side that is gathered, as keys of groups are ([`crate::key`]): a key of the other side that
//! lies outside of these has no partner, and is never hashed. Equal keys are a group; the rows of each group lie side by side, and where no
//! key occurs twice the group names its row.

#![allow(clippy::cast_possible_truncation, reason = "rows are counted in 32 bits, which is checked where they come")]

use std::sync::Arc;

use arrow_buffer::NullBuffer;
use plinth_io::{MemoryBudget, Reservation};

use crate::error::{ExecError, Result};
use crate::key::{Bounds, Keys, Meaning};
use crate::numbers::Numbers;
use crate::rows::{NO_GROUP, Rows};
use crate::vector::Vector;

/// Who asks for memory.
const CONSUMER: &str = "hash join (build side)";

/// What stands for no row.
pub const NO_ROW: u32 = u32::MAX;

/// A table that is being made.
#[derive(Debug)]
pub struct Builder {
    keys: Keys,
    rows: Rows,
    /// Of each row its group.
    groups: Vec<u32>,
    nulls_match: bool,
    memory: Reservation,
    scratch: Vec<u32>,
}

impl Builder {
    /// No rows yet, of so many that will come. A key column's numbers are expected in `ranges`, as far as they are known; a null equals no
    /// key, or other nulls.
    pub fn new(
        meanings: Vec<Meaning>,
        ranges: &[Bounds],
        nulls_match: bool,
        expected: usize,
        budget: &Arc<MemoryBudget>,
    ) -> Self {
        let keys = Keys::new(meanings).expecting(ranges);
        let rows = keys.rows_for(expected, budget);
        let memory = budget.open(CONSUMER);
        Self { keys, rows, groups: Vec::new(), nulls_match, memory, scratch: Vec::new() }
    }

    /// Takes rows, numbered from where the ones before end.
    ///
    /// # Errors
    /// If there is no memory for them, there are more than 32 bits count, or values can't be had.
    pub fn push(&mut self, keys: &[Vector], rows: usize) -> Result<()> {
        if self.groups.len() + rows >= NO_ROW as usize {
            return Err(ExecError::Memory(self.memory.refusal(u64::MAX)));
        }
        if self.groups.len() + rows > self.groups.capacity() {
            let more = rows.max(self.groups.len() / 2);
            // The group of each row now, and its place among those of its group in the end.
            self.memory.try_grow(8 * more as u64)?;
            self.groups.reserve_exact(more);
        }
        self.keys.groups(keys, rows, &mut self.rows, &mut self.scratch)?;
        let before = self.groups.len();
        self.groups.extend_from_slice(&self.scratch);
        if !self.nulls_match {
            without_nulls(keys, &mut self.groups[before..]);
        }
        Ok(())
    }

    /// The table of all rows that came.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn finish(mut self) -> Result<Table> {
        let groups = self.rows.len();
        self.memory.try_grow(4 * (groups + 1) as u64)?;
        let mut starts = vec![0_u32; groups + 1];
        for &group in self.groups.iter().filter(|group| **group != NO_GROUP) {
            starts[group as usize + 1] += 1;
        }
        let partners = if starts.iter().all(|count| *count < 2) {
            let mut row_of = vec![NO_ROW; groups];
            let rows = self.groups.iter().enumerate().filter(|(_, group)| **group != NO_GROUP);
            rows.for_each(|(row, &group)| row_of[group as usize] = row as u32);
            Partners::One(row_of)
        } else {
            for group in 0..groups {
                starts[group + 1] += starts[group];
            }
            let mut rows = vec![0; starts[groups] as usize];
            // The end of each group moves to its beginning: its rows are put in from the last to the first.
            for (row, &group) in self.groups.iter().enumerate().rev().filter(|(_, group)| **group != NO_GROUP) {
                let at = &mut starts[group as usize + 1];
                *at -= 1;
                rows[*at as usize] = row as u32;
            }
            starts.rotate_left(1);
            if let Some(last) = starts.last_mut() {
                *last = rows.len() as u32;
            }
            Partners::Several { starts, rows }
        };
        let Self { keys, rows, groups, nulls_match, memory, .. } = self;
        Ok(Table { keys, rows, partners, count: groups.len(), nulls_match, _memory: memory })
    }
}

/// Rows whose key has a null have no group.
fn without_nulls(keys: &[Vector], groups: &mut [u32]) {
    let nulls = keys.iter().fold(None, |all, key| NullBuffer::union(all.as_ref(), key.nulls().as_ref()));
    if let Some(nulls) = nulls {
        groups.iter_mut().zip(&nulls).filter(|(_, valid)| !valid).for_each(|(group, _)| *group = NO_GROUP);
    }
}

/// The rows of each group.
#[derive(Debug)]
enum Partners {
    /// By group: one row, or none.
    One(Vec<u32>),
    /// By group where its rows begin, then where the last ends; and the rows.
    Several { starts: Vec<u32>, rows: Vec<u32> },
}

/// The rows of one side by their keys.
#[derive(Debug)]
pub struct Table {
    keys: Keys,
    rows: Rows,
    partners: Partners,
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
    pub fn groups(&self) -> usize {
        self.rows.len()
    }

    /// What a thread needs to look keys up.
    pub fn probe(&self) -> Probe {
        Probe { keys: self.keys.clone() }
    }

    /// The rows of a group, in their order.
    #[inline]
    pub fn partners(&self, group: u32) -> &[u32] {
        match &self.partners {
            Partners::One(row_of) => match row_of.get(group as usize) {
                Some(row) if *row != NO_ROW => std::slice::from_ref(row),
                _ => &[],
            },
            Partners::Several { starts, rows } => match starts.get(group as usize..).unwrap_or_default() {
                [from, to, ..] => rows.get(*from as usize..*to as usize).unwrap_or_default(),
                _ => &[],
            },
        }
    }

    /// The next pairs of some rows' groups and the table's rows, at most so many; true once there are no more.
    pub fn pairs(
        &self,
        groups: &[u32],
        cursor: &mut Cursor,
        most: usize,
        probed: &mut Vec<u32>,
        found: &mut Vec<u32>,
    ) -> bool {
        probed.clear();
        found.clear();
        if let Partners::One(row_of) = &self.partners {
            let until = groups.len().min(cursor.row.saturating_add(most));
            for (row, group) in groups.iter().enumerate().take(until).skip(cursor.row) {
                let partner = row_of.get(*group as usize).copied().unwrap_or(NO_ROW);
                if partner != NO_ROW {
                    probed.push(row as u32);
                    found.push(partner);
                }
            }
            cursor.row = until;
            return until == groups.len();
        }
        while let Some(&group) = groups.get(cursor.row) {
            let left = self.partners(group).get(cursor.partner..).unwrap_or_default();
            let room = most - found.len();
            if left.len() > room {
                found.extend_from_slice(&left[..room]);
                probed.resize(found.len(), cursor.row as u32);
                cursor.partner += room;
                return false;
            }
            found.extend_from_slice(left);
            probed.resize(found.len(), cursor.row as u32);
            *cursor = Cursor { row: cursor.row + 1, partner: 0 };
        }
        true
    }

    /// The keys of a column as numbers, some perhaps more than once; none if its values are no integers, or a null equals others.
    pub fn integers(&self, column: usize) -> Option<Vec<i64>> {
        let before = self.keys.meanings().get(..column)?.iter().map(|meaning| meaning.width() + 1).sum();
        let Meaning::Numbers(Numbers::Signed(_) | Numbers::Unsigned(_), _) = self.keys.meanings().get(column)? else {
            return None;
        };
        // A group of a null has no rows if it equals no other.
        let groups: Vec<u32> = (0..self.rows.len() as u32).filter(|group| !self.partners(*group).is_empty()).collect();
        (!self.nulls_match).then(|| self.keys.numbers(&self.rows, &groups, before))
    }
}

/// Looks keys up in a table.
#[derive(Debug)]
pub struct Probe {
    keys: Keys,
}

impl Probe {
    /// The group of each row in its table; [`NO_GROUP`] of rows that match none.
    ///
    /// # Errors
    /// If values can't be had.
    pub fn groups(&mut self, table: &Table, keys: &[Vector], rows: usize, into: &mut Vec<u32>) -> Result<()> {
        self.keys.look_up(keys, rows, &table.rows, into)?;
        if !table.nulls_match {
            without_nulls(keys, into);
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
