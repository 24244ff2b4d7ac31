//! Blocks that are counted from metadata, because all their rows pass: a filter on the column that a file is ordered by has
//! two blocks at its edges, and all between them need not be read to be added up.

use std::sync::atomic::Ordering::Relaxed;

use plinth_encoding::expr::Path;

use super::executor::Executor;
use super::source::{ColumnId, ColumnSource};
use super::stages::PrunedBlock;
use crate::error::Result;

/// A column, and what is wanted of it beside how many values it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TotalOf {
    /// The column.
    pub column: Path,
    /// The sum of its integers or unscaled decimals.
    pub sum: bool,
    /// The smallest and the largest of them.
    pub bounds: bool,
}

/// What metadata tells of rows, exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// How many there are.
    pub rows: u64,
    /// Of each column that was asked for.
    pub columns: Vec<ColumnTotal>,
}

/// What metadata tells of a column's values, exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColumnTotal {
    /// How many there are, nulls left out.
    pub values: u64,
    /// Their sum; zero if it was not asked for.
    pub sum: i128,
    /// The smallest and the largest; none if there are no values, or these were not asked for.
    pub bounds: Option<(i128, i128)>,
}

impl ColumnTotal {
    /// Of two columns' values together; `None` if their sum has no number.
    pub fn and(self, other: Self) -> Option<Self> {
        let bounds = match (self.bounds, other.bounds) {
            (Some((min, max)), Some((least, greatest))) => Some((min.min(least), max.max(greatest))),
            (one, other) => one.or(other),
        };
        Some(Self { values: self.values.checked_add(other.values)?, sum: self.sum.checked_add(other.sum)?, bounds })
    }
}

impl Totals {
    /// Of the rows of both; `None` if a sum has no number, or they are of other columns.
    pub fn and(&self, other: &Self) -> Option<Self> {
        match (self.rows, other.rows) {
            (0, _) => return Some(other.clone()),
            (_, 0) => return Some(self.clone()),
            _ => {}
        }
        if self.columns.len() != other.columns.len() {
            return None;
        }
        let columns = self.columns.iter().zip(&other.columns).map(|(one, other)| one.and(*other));
        Some(Self { rows: self.rows.checked_add(other.rows)?, columns: columns.collect::<Option<_>>()? })
    }
}

/// The totals of a scan so far.
#[derive(Debug)]
pub(super) struct Totaling {
    columns: Vec<(ColumnId, TotalOf)>,
    so_far: Totals,
}

impl Totaling {
    /// Of columns of a source.
    ///
    /// # Errors
    /// If it has none of them.
    pub(super) fn new<S: ColumnSource>(wanted: Vec<TotalOf>, source: &mut S) -> Result<Self> {
        let columns = wanted.into_iter().map(|of| Ok((source.resolve(&of.column)?, of)));
        Ok(Self { columns: columns.collect::<Result<_>>()?, so_far: Totals::default() })
    }

    /// What was counted so far, which is counted no more then.
    pub(super) fn take(&mut self) -> Totals {
        std::mem::take(&mut self.so_far)
    }
}

impl<S: ColumnSource> Executor<S> {
    /// Counts a block from metadata, if all its rows pass and that tells what is wanted of them.
    pub(super) fn is_counted(&mut self, live: &PrunedBlock) -> Result<bool> {
        let Some(totaling) = &self.totaling else { return Ok(false) };
        if live.selection.is_some() || !self.dynamic.is_empty() {
            return Ok(false);
        }
        for conjunct in self.open(live) {
            if !conjunct.bound.zone_map_result(&self.source, live.at)?.always_true() {
                return Ok(false);
            }
        }
        let mut here = Totals { rows: live.rows as u64, columns: Vec::with_capacity(totaling.columns.len()) };
        for (column, of) in &totaling.columns {
            match self.source.total(*column, of, live.at)? {
                Some(total) => here.columns.push(total),
                None => return Ok(false),
            }
        }
        let Some(both) = totaling.so_far.and(&here) else { return Ok(false) };
        if let Some(totaling) = &mut self.totaling {
            totaling.so_far = both;
        }
        self.metrics.blocks_counted.fetch_add(1, Relaxed);
        Ok(true)
    }
}
