//! The scan itself: zone maps, conjuncts, selection, the other columns under it.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use arrow_array::ArrayRef;
use arrow_buffer::BooleanBuffer;
use plinth_encoding::expr::{Expr, Path};

use super::predicate::{Bound, Rows, bind, conjuncts};
use super::source::{ColumnId, ColumnSource, ScanColumn};
use super::{Chunk, DynamicFilter, ScanMetrics};
use crate::error::{FormatError, Result};

/// Blocks whose filter columns, and then whose other columns, are read in one batch.
const WINDOW: usize = 32;

/// The same while a dynamic filter may rule out the next blocks any moment.
const DYNAMIC_WINDOW: usize = 4;

/// What to do.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) columns: Vec<Path>,
    /// All must be true.
    pub(super) predicate: Vec<Expr>,
    pub(super) dynamic: Vec<Arc<dyn DynamicFilter>>,
    pub(super) row_groups: Range<usize>,
    pub(super) limit: Option<u64>,
}

/// A running scan over any source.
#[derive(Debug)]
pub(super) struct Executor<S: ColumnSource> {
    source: S,
    output: Vec<ColumnId>,
    /// Cheapest first.
    conjuncts: Vec<Bound<S::Leaf>>,
    dynamic: Vec<Dynamic<S::Leaf>>,
    groups: Range<usize>,
    /// Blocks of the current row group that zone maps left, with their rows.
    live: VecDeque<(usize, usize)>,
    /// Blocks with rows that passed, fetched and ready to be decoded.
    passed: VecDeque<(usize, BooleanBuffer)>,
    remaining: u64,
    /// Blocks of the next window: a scan with a limit starts small, for it may need no more.
    window: usize,
    metrics: Arc<ScanMetrics>,
}

/// A dynamic filter as last seen.
#[derive(Debug)]
struct Dynamic<L> {
    filter: Arc<dyn DynamicFilter>,
    version: u64,
    bound: Vec<Bound<L>>,
}

impl<S: ColumnSource> Executor<S> {
    pub(super) fn new(mut source: S, plan: Plan, metrics: Arc<ScanMetrics>) -> Result<Self> {
        let output = plan.columns.iter().map(|path| source.resolve(path)).collect::<Result<_>>()?;
        let mut conjuncts =
            plan.predicate.iter().map(|expr| bind(expr, &mut source)).collect::<Result<Vec<Bound<S::Leaf>>>>()?;
        conjuncts.sort_by_key(Bound::cost);
        Ok(Self {
            source,
            output,
            conjuncts,
            dynamic: plan.dynamic.into_iter().map(|filter| Dynamic { filter, version: 0, bound: Vec::new() }).collect(),
            groups: plan.row_groups,
            live: VecDeque::new(),
            passed: VecDeque::new(),
            remaining: plan.limit.unwrap_or(u64::MAX),
            window: if plan.limit.is_some() { 1 } else { WINDOW },
            metrics,
        })
    }

    /// Decoded columns as values.
    pub(super) fn values(&self, columns: Vec<ScanColumn>) -> Result<Vec<ArrayRef>> {
        self.output.iter().zip(columns).map(|(&id, column)| self.source.values(id, column)).collect()
    }

    /// The rows of the next block with rows that pass.
    pub(super) fn next_chunk(&mut self) -> Result<Option<Chunk>> {
        while self.remaining > 0 {
            if let Some((block, selection)) = self.passed.pop_front() {
                let chunk = self.decode(block, selection)?;
                self.source.release(block);
                return Ok(Some(chunk));
            }
            if !self.live.is_empty() {
                self.filter_window()?;
            } else if !self.next_group()? {
                break;
            }
        }
        Ok(None)
    }

    /// Moves to the next row group and drops the blocks that zone maps rule out. False if there is none.
    fn next_group(&mut self) -> Result<bool> {
        let Some(group) = self.groups.next() else { return Ok(false) };
        self.refresh()?;
        let rows = self.source.block_rows(group)?;
        self.metrics.row_groups_total.fetch_add(1, Relaxed);
        self.metrics.blocks_total.fetch_add(rows.len() as u64, Relaxed);
        for (block, rows) in rows.into_iter().enumerate() {
            if self.may_pass(group, block)? {
                self.live.push_back((block, rows));
            } else {
                self.metrics.blocks_pruned.fetch_add(1, Relaxed);
            }
        }
        if self.live.is_empty() {
            self.metrics.row_groups_pruned.fetch_add(1, Relaxed);
        }
        Ok(true)
    }

    fn group(&self) -> usize {
        self.groups.start.saturating_sub(1)
    }

    fn predicates(&self) -> impl Iterator<Item = &Bound<S::Leaf>> {
        self.conjuncts.iter().chain(self.dynamic.iter().flat_map(|dynamic| &dynamic.bound))
    }

    fn may_pass(&self, group: usize, block: usize) -> Result<bool> {
        for predicate in self.predicates() {
            if !predicate.possible(&self.source, group, block)?.is_true {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes newer versions of the dynamic filters; says whether there were any.
    fn refresh(&mut self) -> Result<bool> {
        let mut changed = false;
        for dynamic in &mut self.dynamic {
            if let Some((version, expr)) = dynamic.filter.newer_than(dynamic.version) {
                let mut parts = Vec::new();
                conjuncts(&expr, &mut parts);
                dynamic.bound = parts.iter().map(|part| bind(part, &mut self.source)).collect::<Result<_>>()?;
                dynamic.bound.sort_by_key(Bound::cost);
                dynamic.version = version;
                changed = true;
            }
        }
        Ok(changed)
    }

    /// Filters the next few blocks and fetches the other columns of those with rows that pass.
    fn filter_window(&mut self) -> Result<()> {
        let group = self.group();
        if self.refresh()? {
            let before = self.live.len();
            let blocks = std::mem::take(&mut self.live);
            for (block, rows) in blocks {
                if self.may_pass(group, block)? {
                    self.live.push_back((block, rows));
                }
            }
            self.metrics.blocks_pruned.fetch_add((before - self.live.len()) as u64, Relaxed);
        }
        let window = if self.dynamic.is_empty() { self.window } else { self.window.min(DYNAMIC_WINDOW) };
        self.window = (self.window * 2).min(WINDOW);
        let blocks: Vec<(usize, usize)> = self.live.drain(..window.min(self.live.len())).collect();

        // A predicate that zone maps prove true everywhere in a block needs no column of it.
        let mut undecided = Vec::with_capacity(blocks.len());
        let mut wanted = Vec::new();
        let predicates: Vec<&Bound<S::Leaf>> =
            self.conjuncts.iter().chain(self.dynamic.iter().flat_map(|d| &d.bound)).collect();
        for &(block, _) in &blocks {
            let mut open = Vec::new();
            for (i, predicate) in predicates.iter().enumerate() {
                if !predicate.possible(&self.source, group, block)?.always_true() {
                    open.push(i);
                    let mut columns = Vec::new();
                    predicate.columns(&mut columns);
                    wanted.extend(columns.into_iter().map(|column| (column, block)));
                }
            }
            undecided.push(open);
        }
        self.source.fetch(group, &wanted)?;

        let mut passed = Vec::new();
        for ((block, rows), open) in blocks.into_iter().zip(undecided) {
            self.metrics.rows_in.fetch_add(rows as u64, Relaxed);
            let open: Vec<&Bound<S::Leaf>> = open.into_iter().filter_map(|i| predicates.get(i).copied()).collect();
            let selection = select(&mut self.source, &open, block, rows)?;
            if selection.count_set_bits() > 0 {
                passed.push((block, selection));
            } else {
                self.source.release(block);
            }
        }
        let wanted: Vec<_> =
            passed.iter().flat_map(|&(block, _)| self.output.iter().map(move |&column| (column, block))).collect();
        self.source.fetch(group, &wanted)?;
        self.passed.extend(passed);
        Ok(())
    }

    /// Decodes the output columns of a block's selected rows.
    fn decode(&mut self, block: usize, mut selection: BooleanBuffer) -> Result<Chunk> {
        let mut rows = selection.count_set_bits();
        if rows as u64 > self.remaining {
            // The limit falls into this block: the rows behind it are unselected.
            rows = usize::try_from(self.remaining).unwrap_or(usize::MAX);
            let end = selection.set_indices().nth(rows).unwrap_or(selection.len());
            let len = selection.len();
            selection = BooleanBuffer::from_iter((0..len).map(|row| row < end && selection.value(row)));
        }
        self.remaining -= rows as u64;
        self.metrics.rows_out.fetch_add(rows as u64, Relaxed);
        let selection = Some(&selection).filter(|selection| rows < selection.len());
        let source = &mut self.source;
        let columns =
            self.output.iter().map(|&column| source.decode(column, block, selection)).collect::<Result<_>>()?;
        Ok(Chunk { rows, columns })
    }
}

/// The rows of a block that pass all predicates. One that fails on a row is tried again when the others have had their
/// say: its error counts only for rows that pass them all.
fn select<S: ColumnSource>(
    source: &mut S,
    predicates: &[&Bound<S::Leaf>],
    block: usize,
    rows: usize,
) -> Result<BooleanBuffer> {
    let mut selection = BooleanBuffer::new_set(rows);
    let mut failed = Vec::new();
    for predicate in predicates {
        match predicate.evaluate(source, &Rows { block, selection: &selection }) {
            Ok(mask) => selection = &selection & &mask.is_true,
            Err(FormatError::Function(_)) => failed.push(predicate),
            Err(other) => return Err(other),
        }
        if selection.count_set_bits() == 0 {
            return Ok(selection);
        }
    }
    for predicate in failed {
        let mask = predicate.evaluate(source, &Rows { block, selection: &selection })?;
        selection = &selection & &mask.is_true;
        if selection.count_set_bits() == 0 {
            break;
        }
    }
    Ok(selection)
}
