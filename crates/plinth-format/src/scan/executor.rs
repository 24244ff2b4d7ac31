//! The scan itself: zone maps, conjuncts, selection, the other columns under it.
//!
//! Blocks travel in windows through two stages: their filter columns are read and evaluated, then the other columns of those
//! with rows that pass are read and decoded. While the storage keeps the scan waiting, several windows are under way at
//! once, the reads of later ones behind those of earlier ones; what is there at once is decoded at once, while it is still
//! in a core's cache. What is kept of blocks that were filtered ahead of their turn is their surviving rows, as far as a
//! budget goes; without one a block is decoded before the next is filtered.

mod filtering;
mod reads;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use arrow_array::ArrayRef;
use arrow_buffer::BooleanBuffer;
use plinth_encoding::dictionary::Dictionary;
use plinth_encoding::expr::{Expr, Path};
use plinth_io::{MemoryBudget, Reading};
use plinth_profile::{Stage, scope};

use super::adaptive::{AdaptiveStats, Order, Place};
use super::codes::CodeValues;
use super::columns::FileColumns;
use super::filter::Conjunct;
use super::indexed::{Choice, Indexed, choose};
use super::predicate::bind_all;
use super::source::{BlockId, ColumnId, ColumnSource, ScanColumn};
use super::stages::{Columns, Dynamic, FilteredBlock, Filtering, LookAhead, PrunedBlock, ReadyWindow};
use super::totals::{TotalOf, Totaling, Totals};
use super::{AccessPath, Chunk, DynamicFilter, PushdownMode, ScanMetrics};
use crate::error::{FormatError, Result};

/// Most blocks of a window.
const WINDOW: usize = 32;

/// What to do.
#[derive(Debug)]
pub struct Plan {
    /// What comes out, in this order.
    pub columns: Vec<Path>,
    /// All must be true.
    pub predicate: Vec<Expr>,
    /// That change while the scan runs.
    pub dynamic: Vec<Arc<dyn DynamicFilter>>,
    /// Which row groups, as the source counts them.
    pub row_groups: Range<usize>,
    /// Most rows that come out.
    pub limit: Option<u64>,
    /// When filters are evaluated.
    pub mode: PushdownMode,
    /// What other scans of the query share.
    pub stats: Arc<AdaptiveStats>,
    /// What is wanted of blocks all of whose rows pass, which do not come out then as far as metadata tells it.
    pub totals: Option<Vec<TotalOf>>,
    /// Bytes that may be kept of blocks that were filtered ahead.
    pub look_ahead: u64,
    /// What these bytes are part of.
    pub budget: Arc<MemoryBudget>,
}

/// A running scan over any source.
#[derive(Debug)]
pub(super) struct Executor<S: ColumnSource> {
    pub(super) source: S,
    output: Vec<ColumnId>,
    conjuncts: Vec<Arc<Conjunct<S::LeafState>>>,
    pub(super) dynamic: Vec<Dynamic<S::LeafState>>,
    /// Of all dynamic filters, that were seen.
    versions: u64,
    /// What postings say of conjuncts, once they were asked.
    indexed: Option<Option<Indexed<S::LeafState>>>,
    /// The rows that count, one bit a row of the file; all if there is none.
    only: Option<BooleanBuffer>,
    /// Blocks that are counted and not read, if there may be such.
    pub(super) totaling: Option<Totaling>,
    groups: Range<usize>,
    /// Blocks of the current row group that zone maps and postings left.
    pruned: VecDeque<PrunedBlock>,
    /// Windows whose filter columns are under way.
    filtering: VecDeque<Filtering<S>>,
    /// Windows of blocks with rows that passed.
    ready: VecDeque<ReadyWindow<S::Fetch>>,
    remaining: u64,
    has_limit: bool,
    /// Blocks of the next window: a scan with a limit starts small, for it may need no more, and so does one whose first rows may tighten a
    /// dynamic filter.
    window: usize,
    /// Whether the last read was not there at once, or the first will not be.
    waits: bool,
    /// Bytes that may still be read before it is known whether they are needed.
    spare: u64,
    /// What went wrong before anybody asked.
    failed: Option<FormatError>,
    mode: PushdownMode,
    stats: Arc<AdaptiveStats>,
    /// Rows that were handed over last, and when.
    handed_over: Option<(usize, Instant)>,
    order: Order,
    look_ahead: LookAhead,
    pub(super) metrics: Arc<ScanMetrics>,
}

/// How far a scan got.
#[derive(Debug)]
pub(super) enum Step {
    /// Rows.
    Chunk(Chunk),
    /// It waits for the storage, see [`Executor::waits_for`].
    Waiting,
    /// There are no more.
    End,
}

impl Executor<FileColumns> {
    /// What the codes of an output column stand for.
    pub(super) fn code_values(&self, output: usize, dictionary: &Arc<Dictionary>) -> Option<CodeValues> {
        self.source.code_values(*self.output.get(output)?, dictionary)
    }
}

impl<S: ColumnSource> Executor<S> {
    pub(super) fn new(mut source: S, plan: Plan, metrics: Arc<ScanMetrics>) -> Result<Self> {
        let output = plan.columns.iter().map(|path| source.resolve(path)).collect::<Result<Vec<_>>>()?;
        source.set_output(&output);
        let totaling = plan.totals.map(|wanted| Totaling::new(wanted, &mut source)).transpose()?;
        let conjuncts = bind_all(&plan.predicate, &mut source)?;
        let conjunct = |(slot, bound)| Arc::new(Conjunct { slot, bound, anchor: plan.stats.anchor(slot) });
        let conjuncts = conjuncts.into_iter().map(conjunct).collect();
        let spare = source.bytes_a_wait();
        // What is far brings as much in the time of one wait as it brings at all.
        let small = spare == 0 && (plan.limit.is_some() || !plan.dynamic.is_empty());
        let window = if small { 1 } else { WINDOW };
        let dynamic = plan.dynamic.into_iter().enumerate();
        let slot = |i| plan.stats.dynamic_slot(i);
        let dynamic = dynamic.map(|(i, filter)| Dynamic::new(filter, slot(i), plan.stats.anchor(slot(i)))).collect();
        Ok(Self {
            source,
            output,
            conjuncts,
            dynamic,
            versions: 0,
            indexed: None,
            only: None,
            totaling,
            groups: plan.row_groups,
            pruned: VecDeque::new(),
            filtering: VecDeque::new(),
            ready: VecDeque::new(),
            remaining: plan.limit.unwrap_or(u64::MAX),
            has_limit: plan.limit.is_some(),
            window,
            waits: spare > 0,
            spare,
            failed: None,
            mode: plan.mode,
            stats: plan.stats,
            handed_over: None,
            order: Order::default(),
            look_ahead: LookAhead::new(plan.look_ahead, &plan.budget),
            metrics,
        })
    }

    /// Other rows than these do not count. Before the scan begins.
    pub(super) fn only(&mut self, rows: BooleanBuffer) {
        self.only = Some(rows);
    }

    /// Those of a block's rows that count; `None` if all do.
    fn counting(&self, at: BlockId, rows: usize) -> Result<Option<BooleanBuffer>> {
        let Some(only) = &self.only else { return Ok(None) };
        let first = usize::try_from(self.source.first_row(at)?).unwrap_or(usize::MAX);
        if first.checked_add(rows).is_none_or(|end| end > only.len()) {
            let what = format!("a selection of {} rows for more", only.len());
            return Err(FormatError::InvalidArgument(what));
        }
        let here = only.slice(first, rows);
        // At a byte's start, as all others are.
        let here = BooleanBuffer::new(here.sliced(), 0, rows);
        Ok((here.count_set_bits() < rows).then_some(here))
    }

    /// What was counted of blocks that did not come out, since it was last asked for.
    pub(super) fn take_totals(&mut self) -> Totals {
        self.totaling.as_mut().map_or_else(Totals::default, Totaling::take)
    }

    /// Starts the first reads, so that they are under way when the first rows are asked for.
    pub(super) fn begin(&mut self) {
        let begun = self.next_groups().and_then(|more| if more { self.start_reads() } else { Ok(()) });
        self.failed = begun.err();
    }

    /// Decoded columns as values.
    pub(super) fn values(&self, columns: Vec<ScanColumn>) -> Result<Vec<ArrayRef>> {
        self.output.iter().zip(columns).map(|(&id, column)| self.source.values(id, column)).collect()
    }

    /// The rows of the next block with rows that pass, unless they have to be waited for. After an error there are none.
    pub(super) fn step(&mut self) -> Result<Step> {
        if let Some((rows, since)) = self.handed_over.take() {
            self.stats.taken(rows, since.elapsed());
        }
        let step = self.advance();
        if let Ok(Step::Chunk(chunk)) = &step
            && self.stats.has_optional()
        {
            self.handed_over = Some((chunk.rows, Instant::now()));
        }
        if matches!(step, Ok(Step::End) | Err(_)) {
            self.end();
        }
        step
    }

    /// Lets go of what was read ahead, and of what is under way.
    pub(super) fn end(&mut self) {
        self.remaining = 0;
        self.filtering.clear();
        for block in self.ready.drain(..).flat_map(|window| window.blocks) {
            self.look_ahead.release(block.kept);
            self.source.release(block.at);
        }
    }

    fn advance(&mut self) -> Result<Step> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        while self.remaining > 0 {
            self.start_reads()?;
            if let Some(front) = self.ready.front_mut() {
                if let Columns::UnderWay(fetch) = &front.columns
                    && fetch.as_ref().is_done()
                    && let Columns::UnderWay(fetch) = std::mem::replace(&mut front.columns, Columns::Here)
                {
                    self.source.finish(fetch)?;
                }
                if matches!(front.columns, Columns::Here | Columns::NoOther) {
                    if let Some(block) = front.blocks.pop_front() {
                        return self.decode(block).map(Step::Chunk);
                    }
                    self.ready.pop_front();
                    continue;
                }
            }
            if self.waits_for().is_some() {
                return Ok(Step::Waiting);
            }
            if self.pruned.is_empty() && !self.next_groups()? {
                return Ok(Step::End);
            }
        }
        Ok(Step::End)
    }

    /// What [`Step::Waiting`] waits for.
    pub(super) fn waits_for(&self) -> Option<&Reading> {
        match self.ready.front().map(|front| &front.columns) {
            Some(Columns::UnderWay(fetch)) => Some(fetch.as_ref()),
            _ => self.filtering.front().and_then(|next| next.fetch.as_ref()).map(AsRef::as_ref),
        }
    }

    /// Waits until [`Executor::step`] gets further.
    pub(super) fn wait(&self) {
        if let Some(reading) = self.waits_for() {
            reading.until_done();
        }
    }

    /// How rows will be found that pass conjuncts on columns with postings, if there are such.
    pub(super) fn access_path(&self) -> Result<Option<AccessPath>> {
        Ok(match choose(&self.source, &self.conjuncts, self.groups.clone())? {
            Choice::NoPostings => None,
            Choice::Scan => Some(AccessPath::Scan),
            Choice::Postings { column, rows, .. } => {
                Some(AccessPath::Postings { column: self.source.name(column).to_owned(), rows })
            }
        })
    }

    /// Moves to the next row group and drops the blocks that zone maps rule out. False if there is none.
    fn next_group(&mut self) -> Result<bool> {
        let _prune = scope(Stage::Prune);
        if self.indexed.is_none() {
            let _lookup = scope(Stage::Lookup);
            let groups = self.groups.clone();
            self.indexed = Some(Indexed::find(&self.source, &self.conjuncts, groups, &self.metrics)?);
        }
        let Some(group) = self.groups.next() else { return Ok(false) };
        self.refresh()?;
        let rows = self.source.block_rows(group)?;
        self.metrics.row_groups_total.fetch_add(1, Relaxed);
        self.metrics.blocks_total.fetch_add(rows.len() as u64, Relaxed);
        if let Some(indexed) = self.indexed.iter().flatten().next() {
            let all = rows.iter().map(|&rows| rows as u64).sum();
            if indexed.rules_out(&self.source, BlockId { group, block: 0 }, all)? {
                self.metrics.blocks_pruned.fetch_add(rows.len() as u64, Relaxed);
                self.metrics.row_groups_pruned.fetch_add(1, Relaxed);
                return Ok(true);
            }
        }
        let mut any = false;
        for (block, rows) in rows.into_iter().enumerate() {
            let at = BlockId { group, block };
            let selection = match self.indexed.iter_mut().flatten().next() {
                Some(indexed) => indexed.select(&self.source, at, rows)?,
                None => None,
            };
            let answered = selection.is_some();
            let selection = match (selection, self.counting(at, rows)?) {
                (Some(passing), Some(counting)) => Some(&passing & &counting),
                (passing, counting) => passing.or(counting),
            };
            let live = PrunedBlock { at, rows, selection, answered };
            if !self.may_pass(&live)? {
                self.metrics.blocks_pruned.fetch_add(1, Relaxed);
                continue;
            }
            any = true;
            if !self.is_counted(&live)? {
                self.pruned.push_back(live);
            }
        }
        if !any {
            self.metrics.row_groups_pruned.fetch_add(1, Relaxed);
        }
        Ok(true)
    }

    /// The predicates that a block has not been asked yet.
    pub(super) fn open(&self, live: &PrunedBlock) -> impl Iterator<Item = &Arc<Conjunct<S::LeafState>>> {
        let indexed = self.indexed.iter().flatten().next().filter(|_| live.answered);
        let dynamic = self.dynamic.iter().flat_map(|dynamic| &dynamic.bound);
        let conjuncts = self.conjuncts.iter().chain(dynamic);
        conjuncts.filter(move |conjunct| indexed.is_none_or(|indexed| !indexed.answers(conjunct)))
    }

    fn may_pass(&self, live: &PrunedBlock) -> Result<bool> {
        if live.selection.as_ref().is_some_and(|selection| !selection.has_true()) {
            return Ok(false);
        }
        self.none_rules_out(self.open(live), live.at)
    }

    /// What zone maps say of a block now that dynamic filters are newer.
    fn may_still_pass(&self, at: BlockId) -> Result<bool> {
        self.none_rules_out(self.dynamic.iter().flat_map(|dynamic| &dynamic.bound), at)
    }

    fn none_rules_out<'a>(
        &self,
        conjuncts: impl Iterator<Item = &'a Arc<Conjunct<S::LeafState>>>,
        at: BlockId,
    ) -> Result<bool>
    where
        S: 'a,
    {
        for conjunct in conjuncts {
            if !conjunct.bound.zone_map_result(&self.source, at)?.may_be_true {
                self.stats.decided(conjunct.slot, Place::Nothing);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes newer versions of the dynamic filters; says whether there were any.
    fn refresh(&mut self) -> Result<bool> {
        let before = self.versions;
        for dynamic in &mut self.dynamic {
            self.versions += u64::from(dynamic.refresh(&mut self.source)?);
        }
        Ok(self.versions > before)
    }

    /// Decodes the output columns of a block's selected rows.
    fn decode(&mut self, block: FilteredBlock) -> Result<Chunk> {
        let FilteredBlock { at, mut selection, kept, dense, took } = block;
        let began = Instant::now();
        self.look_ahead.release(kept);
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
        let columns = self.output.iter().map(|&column| source.decode(column, at, selection)).collect::<Result<_>>()?;
        let chunk = Chunk { rows, columns, first_row: source.first_row(at)?, selection: selection.cloned() };
        source.release(at);
        if let Some(dense) = dense {
            let rows = chunk.selection.as_ref().map_or(rows, BooleanBuffer::len);
            self.stats.took(rows, took + began.elapsed(), dense);
        }
        Ok(chunk)
    }
}
