//! Blocks on their way through a scan.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use arrow_buffer::BooleanBuffer;
use plinth_encoding::expr::Expr;
use plinth_io::{MemoryBudget, Reservation};
use plinth_profile::Anchor;

use super::DynamicFilter;
use super::adaptive::AdaptiveStats;
use super::filter::{Conjunct, FilterTask};
use super::predicate::bind;
use super::source::{BlockId, ColumnSource};
use crate::error::Result;

/// A block that is to be filtered.
#[derive(Debug)]
pub(super) struct PrunedBlock {
    pub(super) at: BlockId,
    pub(super) rows: usize,
    /// The rows that may come out, as far as postings and the caller say; all if there is none.
    pub(super) selection: Option<BooleanBuffer>,
    /// Whether postings have answered their conjuncts.
    pub(super) answered: bool,
}

/// Blocks to be filtered.
#[derive(Debug)]
pub(super) struct Filtering<S: ColumnSource> {
    pub(super) blocks: VecDeque<FilterTask<S::LeafState>>,
    /// None once it has been taken.
    pub(super) fetch: Option<S::Fetch>,
}

impl<S: ColumnSource> Filtering<S> {
    pub(super) fn is_read(&self) -> bool {
        self.fetch.as_ref().is_none_or(|fetch| fetch.as_ref().is_done())
    }
}

/// Blocks to be decoded.
#[derive(Debug)]
pub(super) struct ReadyWindow<F> {
    pub(super) blocks: VecDeque<FilteredBlock>,
    pub(super) columns: Columns<F>,
}

/// The rows of a block that passed.
#[derive(Debug)]
pub(super) struct FilteredBlock {
    pub(super) at: BlockId,
    pub(super) selection: BooleanBuffer,
    /// Bytes of what is kept of it, as far as they are counted: not for a block that is decoded next.
    pub(super) kept: u64,
    /// Whether it was decoded before it was filtered, if it was, and how long that took.
    pub(super) dense: Option<bool>,
    pub(super) took: Duration,
}

/// The other columns of some blocks.
#[derive(Debug)]
pub(super) enum Columns<F> {
    Wanted,
    UnderWay(F),
    Here,
    /// There are none but those of the filters.
    NoOther,
}

/// A dynamic filter as last seen.
#[derive(Debug)]
pub(super) struct Dynamic<L> {
    filter: Arc<dyn DynamicFilter>,
    version: u64,
    /// Its number among all conjuncts.
    slot: usize,
    anchor: Anchor,
    pub(super) bound: Option<Arc<Conjunct<L>>>,
}

impl<L> Dynamic<L> {
    pub(super) fn new(filter: Arc<dyn DynamicFilter>, slot: usize, anchor: Anchor) -> Self {
        Self { filter, version: 0, slot, anchor, bound: None }
    }

    /// Takes a newer version, if there is one; says so.
    pub(super) fn refresh<S: ColumnSource<LeafState = L>>(&mut self, source: &mut S) -> Result<bool> {
        let Some((version, expr)): Option<(u64, Expr)> = self.filter.newer_than(self.version) else { return Ok(false) };
        let bound = bind(&expr, source)?;
        self.bound = Some(Arc::new(Conjunct { slot: self.slot, bound, anchor: self.anchor }));
        self.version = version;
        Ok(true)
    }
}

/// What may be kept of blocks that were filtered ahead of their turn.
#[derive(Debug)]
pub(super) struct LookAhead {
    limit: u64,
    held: Reservation,
}

impl LookAhead {
    pub(super) fn new(limit: u64, budget: &Arc<MemoryBudget>) -> Self {
        Self { limit, held: budget.open("look-ahead of scans") }
    }

    /// Takes the most that filtering a block may leave, if there is so much.
    pub(super) fn reserve(&mut self, most: u64) -> bool {
        self.held.bytes().saturating_add(most) <= self.limit && self.held.try_grow(most).is_ok()
    }

    /// Keeps so many of the bytes that were reserved; returns them.
    pub(super) fn keep(&mut self, reserved: u64, bytes: u64, stats: &AdaptiveStats) -> u64 {
        if bytes > reserved {
            self.held.charge(bytes - reserved);
        } else {
            self.held.shrink(reserved - bytes);
        }
        stats.retains(self.held.bytes());
        bytes
    }

    /// A block is not kept any more.
    pub(super) fn release(&mut self, kept: u64) {
        self.held.shrink(kept);
    }
}
