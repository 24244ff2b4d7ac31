//! The rows of one block that pass all conjuncts.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_buffer::BooleanBuffer;
use plinth_profile::{Anchor, scope};

use super::adaptive::{AdaptiveStats, Order};
use super::predicate::Bound;
use super::source::{BlockId, ColumnSource, Ran, Rows};
use crate::error::{FormatError, Result};

/// A predicate that must be true, and its number among all.
#[derive(Debug)]
pub(super) struct Conjunct<L> {
    pub(super) slot: usize,
    pub(super) bound: Bound<L>,
    /// What profiles charge it to.
    pub(super) anchor: Anchor,
}

/// The conjuncts that a block has to be asked, and the rows that are left of it.
#[derive(Debug)]
pub(super) struct FilterTask<L> {
    pub(super) at: BlockId,
    pub(super) selection: BooleanBuffer,
    pub(super) open: Vec<Arc<Conjunct<L>>>,
    /// Whether it is decoded before it is filtered.
    pub(super) dense: bool,
    /// Versions of dynamic filters that had been seen when it was asked for.
    pub(super) versions: u64,
}

/// Asks in order. A conjunct that fails on a row is asked again when the others have had their say: its error counts only for
/// rows that pass them all.
pub(super) fn filter<S: ColumnSource>(
    source: &mut S,
    block: &FilterTask<S::LeafState>,
    order: &Order,
    stats: &AdaptiveStats,
) -> Result<BooleanBuffer> {
    let FilterTask { at, selection, open, .. } = block;
    let idle = |conjunct: &Conjunct<S::LeafState>| order.idle.get(conjunct.slot).copied().unwrap_or(false);
    let mut open: Vec<&Conjunct<S::LeafState>> =
        open.iter().map(AsRef::as_ref).filter(|conjunct| !idle(conjunct)).collect();
    open.sort_by_key(|conjunct| order.rank.get(conjunct.slot).copied());
    let mut selection = selection.clone();
    let mut failed = Vec::new();
    for conjunct in open {
        match ask(source, conjunct, *at, &selection, true)? {
            Answer::Passed { passed, took, ran } => {
                let before = selection.count_set_bits();
                selection = &selection & &passed;
                stats.asked(conjunct.slot, before, selection.count_set_bits(), took, ran);
            }
            Answer::Failed(_) => failed.push(conjunct),
        }
        if !selection.has_true() {
            return Ok(selection);
        }
    }
    retry(source, failed, *at, selection)
}

/// Asks every conjunct about all rows, and has learned of it what each costs and which rows pass which together.
pub(super) fn sample<S: ColumnSource>(
    source: &mut S,
    block: &FilterTask<S::LeafState>,
    stats: &AdaptiveStats,
) -> Result<BooleanBuffer> {
    let FilterTask { at, selection: rows, open, .. } = block;
    let mut answers = Vec::with_capacity(open.len());
    let mut failed = Vec::new();
    let mut selection = rows.clone();
    for conjunct in open {
        match ask(source, conjunct, *at, rows, false)? {
            Answer::Passed { passed, took, ran } => {
                stats.asked(conjunct.slot, rows.count_set_bits(), (rows & &passed).count_set_bits(), took, ran);
                selection = &selection & &passed;
                answers.push((conjunct.slot, passed, took));
            }
            Answer::Failed(_) => failed.push(conjunct.as_ref()),
        }
    }
    stats.sampled(&answers, rows);
    retry(source, failed, *at, selection)
}

enum Answer {
    Passed { passed: BooleanBuffer, took: Duration, ran: Ran },
    Failed(FormatError),
}

fn ask<S: ColumnSource>(
    source: &mut S,
    conjunct: &Conjunct<S::LeafState>,
    at: BlockId,
    selection: &BooleanBuffer,
    narrows: bool,
) -> Result<Answer> {
    let filter = scope(conjunct.anchor);
    if filter.is_recording() {
        filter.rows(selection.count_set_bits() as u64);
    }
    let ran = Cell::default();
    let began = Instant::now();
    match conjunct.bound.evaluate(source, &Rows::new(at, selection, narrows, &ran)) {
        Ok(mask) => Ok(Answer::Passed { passed: mask.is_true, took: began.elapsed(), ran: ran.get() }),
        Err(error @ FormatError::Function(_)) => Ok(Answer::Failed(error)),
        Err(other) => Err(other),
    }
}

/// Asks those that failed about the rows that all others let pass.
fn retry<S: ColumnSource>(
    source: &mut S,
    failed: Vec<&Conjunct<S::LeafState>>,
    at: BlockId,
    mut selection: BooleanBuffer,
) -> Result<BooleanBuffer> {
    for conjunct in failed {
        if !selection.has_true() {
            break;
        }
        match ask(source, conjunct, at, &selection, true)? {
            Answer::Passed { passed, .. } => selection = &selection & &passed,
            Answer::Failed(error) => return Err(error),
        }
    }
    Ok(selection)
}
