//! Conjuncts that postings answer before any block is read: which rows pass them is known from the start.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};

use super::ScanMetrics;
use super::filter::Conjunct;
use super::source::{BlockId, ColumnCodes, ColumnId, ColumnSource, Located};
use crate::error::Result;

/// The rows of a column's postings that pass all conjuncts on this column.
#[derive(Debug)]
pub(super) struct Indexed<L> {
    column: ColumnId,
    answered: Vec<Arc<Conjunct<L>>>,
    located: Located,
    /// Rows before this one belong to blocks before.
    at: usize,
}

/// What to do about conjuncts on columns with postings.
#[derive(Debug)]
pub(super) enum Choice<L> {
    /// There are none.
    NoPostings,
    /// Testing all rows costs less.
    Scan,
    /// Read the lists of some codes of a column.
    Postings {
        column: ColumnId,
        codes: ColumnCodes,
        /// The conjuncts that these answer.
        answered: Vec<Arc<Conjunct<L>>>,
        /// How many rows the lists name.
        rows: u64,
    },
}

/// Of the columns for which reading postings pays the one with the fewest rows.
pub(super) fn choose<S: ColumnSource>(
    source: &S,
    conjuncts: &[Arc<Conjunct<S::LeafState>>],
    groups: Range<usize>,
) -> Result<Choice<S::LeafState>> {
    let mut columns: Vec<(ColumnId, ColumnCodes, Vec<_>)> = Vec::new();
    for conjunct in conjuncts {
        let Some((column, codes)) = conjunct.bound.codes(source)? else { continue };
        match columns.iter_mut().find(|(known, ..)| *known == column) {
            Some((_, both, answered)) => {
                *both = codes.and(both);
                answered.push(Arc::clone(conjunct));
            }
            None => columns.push((column, codes, vec![Arc::clone(conjunct)])),
        }
    }
    let mut best = if columns.is_empty() { Choice::NoPostings } else { Choice::Scan };
    for (column, codes, answered) in columns {
        if let Some(rows) = source.estimate_rows(column, &codes, groups.clone())?
            && !matches!(best, Choice::Postings { rows: fewest, .. } if fewest <= rows)
        {
            best = Choice::Postings { column, codes, answered, rows };
        }
    }
    Ok(best)
}

impl<L> Indexed<L> {
    /// Reads the lists, if that pays.
    pub(super) fn find<S: ColumnSource<LeafState = L>>(
        source: &S,
        conjuncts: &[Arc<Conjunct<L>>],
        groups: Range<usize>,
        metrics: &ScanMetrics,
    ) -> Result<Option<Self>> {
        let choice = choose(source, conjuncts, groups.clone())?;
        let Choice::Postings { column, codes, answered, .. } = choice else { return Ok(None) };
        let Some(located) = source.locate(column, &codes, groups)? else { return Ok(None) };
        metrics.postings_conjuncts.fetch_add(answered.len() as u64, Relaxed);
        metrics.postings_rows.fetch_add(located.rows.len() as u64, Relaxed);
        metrics.postings_bytes.fetch_add(located.bytes, Relaxed);
        Ok(Some(Self { column, answered, located, at: 0 }))
    }

    /// The conjuncts that it answers.
    pub(super) fn answered(&self) -> impl Iterator<Item = &Arc<Conjunct<L>>> {
        self.answered.iter()
    }

    /// Whether a conjunct needs no other answer, in blocks that [`Indexed::select`] knows.
    pub(super) fn answers(&self, conjunct: &Arc<Conjunct<L>>) -> bool {
        self.answered.iter().any(|answered| Arc::ptr_eq(answered, conjunct))
    }

    /// Whether the lists know the rows from one on, so many of a row group, and none of them passes.
    pub(super) fn rules_out<S: ColumnSource<LeafState = L>>(
        &self,
        source: &S,
        first: BlockId,
        rows: u64,
    ) -> Result<bool> {
        if !source.is_coded(self.column, first.group)? {
            return Ok(false);
        }
        let first = source.first_row(first)?;
        let waiting = self.located.rows.get(self.at..).unwrap_or_default();
        let next = waiting.get(waiting.partition_point(|&row| row < first));
        Ok(next.is_none_or(|&next| next >= first + rows))
    }

    /// The rows of a block that pass; `None` if the lists do not know it. Blocks are asked for in order.
    pub(super) fn select<S: ColumnSource<LeafState = L>>(
        &mut self,
        source: &S,
        at: BlockId,
        rows: usize,
    ) -> Result<Option<BooleanBuffer>> {
        if !source.is_coded(self.column, at.group)? {
            return Ok(None);
        }
        let first = source.first_row(at)?;
        let waiting = self.located.rows.get(self.at..).unwrap_or_default();
        let before = waiting.partition_point(|&row| row < first);
        let here = waiting[before..].partition_point(|&row| row < first + rows as u64);
        let mut bits = BooleanBufferBuilder::new(rows);
        bits.append_n(rows, false);
        for row in &waiting[before..before + here] {
            bits.set_bit(usize::try_from(row - first).unwrap_or(usize::MAX), true);
        }
        self.at += before + here;
        Ok(Some(bits.finish()))
    }
}
