//! The scan itself: zone maps, conjuncts, selection, the other columns under it.
//!
//! Blocks travel in windows through two stages: their filter columns are read and evaluated, then the other columns of those
//! with rows that pass are read and decoded. While the storage keeps the scan waiting, several windows are under way at
//! once, the reads of later ones behind those of earlier ones; what is there at once is decoded at once, while it is still
//! in a core's cache.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use arrow_array::ArrayRef;
use arrow_buffer::BooleanBuffer;
use plinth_encoding::expr::{Expr, Path};
use plinth_io::{Need, Reading};

use super::predicate::{Bound, Rows, bind, conjuncts};
use super::source::{BlockId, ColumnId, ColumnSource, ScanColumn};
use super::{Chunk, DynamicFilter, ScanMetrics};
use crate::error::{FormatError, Result};

/// Most blocks of a window.
const WINDOW: usize = 32;

/// The same while a dynamic filter may rule out the next blocks any moment.
const DYNAMIC_WINDOW: usize = 4;

/// Bytes a window reads at a time, unless a single block needs more.
const WINDOW_BYTES: u64 = 2 << 20;

/// The same of each column while the storage keeps the scan waiting, so that requests are long, and of all columns.
const COLUMN_BYTES: u64 = 512 << 10;
const WAITING_BYTES: u64 = 16 << 20;

/// Windows that are under way while the storage keeps the scan waiting.
const AHEAD: usize = 4;

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
    conjuncts: Vec<Arc<Bound<S::Leaf>>>,
    dynamic: Vec<Dynamic<S::Leaf>>,
    groups: Range<usize>,
    /// Blocks of the current row group that zone maps left, with their rows.
    live: VecDeque<(BlockId, usize)>,
    /// Windows whose filter columns are under way.
    filtering: VecDeque<Filtering<S>>,
    /// Windows of blocks with rows that passed.
    passed: VecDeque<Passed<S::Fetch>>,
    remaining: u64,
    /// Blocks of the next window: a scan with a limit starts small, for it may need no more.
    window: usize,
    /// Whether the last read was not there at once.
    waits: bool,
    /// What went wrong before anybody asked.
    failed: Option<FormatError>,
    metrics: Arc<ScanMetrics>,
}

/// A dynamic filter as last seen.
#[derive(Debug)]
struct Dynamic<L> {
    filter: Arc<dyn DynamicFilter>,
    version: u64,
    bound: Vec<Arc<Bound<L>>>,
}

/// Blocks to be filtered.
#[derive(Debug)]
struct Filtering<S: ColumnSource> {
    blocks: Vec<Undecided<S::Leaf>>,
    fetch: S::Fetch,
}

/// A block of which zone maps left some predicates open.
#[derive(Debug)]
struct Undecided<L> {
    at: BlockId,
    rows: usize,
    open: Vec<Arc<Bound<L>>>,
}

/// Blocks to be decoded, with the rows that passed.
#[derive(Debug)]
struct Passed<F> {
    blocks: VecDeque<(BlockId, BooleanBuffer)>,
    columns: Columns<F>,
}

/// The other columns of some blocks.
#[derive(Debug)]
enum Columns<F> {
    Wanted,
    UnderWay(F),
    Here,
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

impl<S: ColumnSource> Executor<S> {
    pub(super) fn new(mut source: S, plan: Plan, metrics: Arc<ScanMetrics>) -> Result<Self> {
        let output = plan.columns.iter().map(|path| source.resolve(path)).collect::<Result<_>>()?;
        let conjuncts = bind_all(&plan.predicate, &mut source)?;
        Ok(Self {
            source,
            output,
            conjuncts,
            dynamic: plan.dynamic.into_iter().map(|filter| Dynamic { filter, version: 0, bound: Vec::new() }).collect(),
            groups: plan.row_groups,
            live: VecDeque::new(),
            filtering: VecDeque::new(),
            passed: VecDeque::new(),
            remaining: plan.limit.unwrap_or(u64::MAX),
            window: if plan.limit.is_some() { 1 } else { WINDOW },
            waits: false,
            failed: None,
            metrics,
        })
    }

    /// Starts the first reads, so that they are under way when the first rows are asked for.
    pub(super) fn begin(&mut self) {
        let begun = self.next_group().and_then(|more| if more { self.start_reads() } else { Ok(()) });
        self.failed = begun.err();
    }

    /// Decoded columns as values.
    pub(super) fn values(&self, columns: Vec<ScanColumn>) -> Result<Vec<ArrayRef>> {
        self.output.iter().zip(columns).map(|(&id, column)| self.source.values(id, column)).collect()
    }

    /// The rows of the next block with rows that pass, unless they have to be waited for. After an error there are none.
    pub(super) fn step(&mut self) -> Result<Step> {
        let step = self.advance();
        if matches!(step, Ok(Step::End) | Err(_)) {
            self.end();
        }
        step
    }

    /// Lets go of what was read ahead, and of what is under way.
    pub(super) fn end(&mut self) {
        self.remaining = 0;
        self.filtering.clear();
        for (at, _) in self.passed.drain(..).flat_map(|passed| passed.blocks) {
            self.source.release(at);
        }
    }

    fn advance(&mut self) -> Result<Step> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        while self.remaining > 0 {
            self.start_reads()?;
            if let Some(front) = self.passed.front_mut() {
                if let Columns::UnderWay(fetch) = &front.columns
                    && fetch.as_ref().is_done()
                    && let Columns::UnderWay(fetch) = std::mem::replace(&mut front.columns, Columns::Here)
                {
                    self.source.finish(fetch)?;
                }
                if matches!(front.columns, Columns::Here) {
                    if let Some((at, selection)) = front.blocks.pop_front() {
                        let chunk = self.decode(at, selection)?;
                        self.source.release(at);
                        return Ok(Step::Chunk(chunk));
                    }
                    self.passed.pop_front();
                    continue;
                }
            }
            if self.waits_for().is_some() {
                return Ok(Step::Waiting);
            }
            if self.live.is_empty() && !self.next_group()? {
                return Ok(Step::End);
            }
        }
        Ok(Step::End)
    }

    /// What [`Step::Waiting`] waits for.
    pub(super) fn waits_for(&self) -> Option<&Reading> {
        match self.passed.front().map(|front| &front.columns) {
            Some(Columns::UnderWay(fetch)) => Some(fetch.as_ref()),
            _ => self.filtering.front().map(|next| next.fetch.as_ref()),
        }
    }

    /// Waits until [`Executor::step`] gets further.
    pub(super) fn wait(&self) {
        if let Some(reading) = self.waits_for() {
            reading.until_done();
        }
    }

    /// Moves to the next row group and drops the blocks that zone maps rule out. False if there is none.
    fn next_group(&mut self) -> Result<bool> {
        let Some(group) = self.groups.next() else { return Ok(false) };
        self.refresh()?;
        let rows = self.source.block_rows(group)?;
        self.metrics.row_groups_total.fetch_add(1, Relaxed);
        self.metrics.blocks_total.fetch_add(rows.len() as u64, Relaxed);
        for (block, rows) in rows.into_iter().enumerate() {
            let at = BlockId { group, block };
            if self.may_pass(at)? {
                self.live.push_back((at, rows));
            } else {
                self.metrics.blocks_pruned.fetch_add(1, Relaxed);
            }
        }
        if self.live.is_empty() {
            self.metrics.row_groups_pruned.fetch_add(1, Relaxed);
        }
        Ok(true)
    }

    fn predicates(&self) -> impl Iterator<Item = &Arc<Bound<S::Leaf>>> {
        self.conjuncts.iter().chain(self.dynamic.iter().flat_map(|dynamic| &dynamic.bound))
    }

    fn may_pass(&self, at: BlockId) -> Result<bool> {
        for predicate in self.predicates() {
            if !predicate.possible(&self.source, at)?.is_true {
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
                dynamic.bound = bind_all(&parts, &mut self.source)?;
                dynamic.version = version;
                changed = true;
            }
        }
        Ok(changed)
    }

    /// Starts what has to be read next, and more while the storage keeps the scan waiting: then windows that are read are
    /// filtered early, too, for what they let through is to be read next.
    fn start_reads(&mut self) -> Result<()> {
        loop {
            let depth = if self.waits { AHEAD.min(self.window) } else { 1 };
            if !self.start_passed(depth)? {
                return Ok(());
            }
            let is_read = self.filtering.front().is_some_and(|next| next.fetch.as_ref().is_done());
            if is_read && self.passed.len() < depth {
                self.filter()?;
            } else if self.filtering.len() + self.passed.len() >= depth {
                return Ok(());
            } else if self.live.is_empty() {
                // Later row groups only while waiting: what is there at once is best decoded at once.
                if !self.waits || !self.next_group()? {
                    return Ok(());
                }
            } else if !self.start_window()? {
                return Ok(());
            }
        }
    }

    /// Starts to read the other columns of the first windows. False if there is no memory to do so ahead.
    fn start_passed(&mut self, windows: usize) -> Result<bool> {
        let mut i = 0;
        while i < self.passed.len().min(windows) {
            if matches!(self.passed[i].columns, Columns::Wanted) {
                let wanted: Vec<_> = self.passed[i].blocks.iter().flat_map(|&(at, _)| self.columns_of(at)).collect();
                let fetch = match self.source.start(&wanted, Need::Ahead)? {
                    Some(fetch) => fetch,
                    None if i > 0 => return Ok(false),
                    None => {
                        // The first rows have to be read now: as few as can be.
                        let rest = self.passed[0].blocks.split_off(1);
                        if !rest.is_empty() {
                            self.passed.insert(1, Passed { blocks: rest, columns: Columns::Wanted });
                        }
                        self.need(&wanted[..self.output.len()])?
                    }
                };
                self.waits = !fetch.as_ref().is_done();
                self.passed[i].columns = Columns::UnderWay(fetch);
            }
            i += 1;
        }
        Ok(true)
    }

    /// Starts a read that the scan can't go on without.
    fn need(&self, wanted: &[(ColumnId, BlockId)]) -> Result<S::Fetch> {
        let fetch = self.source.start(wanted, Need::Now)?;
        fetch.ok_or_else(|| FormatError::InvalidArgument("a read that is needed was not begun".into()))
    }

    /// Bytes of a window that reads so many columns.
    fn window_bytes(&self, columns: usize) -> u64 {
        if self.waits { (columns as u64 * COLUMN_BYTES).clamp(WINDOW_BYTES, WAITING_BYTES) } else { WINDOW_BYTES }
    }

    fn columns_of(&self, at: BlockId) -> impl Iterator<Item = (ColumnId, BlockId)> {
        self.output.iter().map(move |&column| (column, at))
    }

    /// Takes the next blocks and starts to read what their predicates need. False if there is no memory to do so ahead.
    fn start_window(&mut self) -> Result<bool> {
        if self.refresh()? {
            let before = self.live.len();
            let blocks = std::mem::take(&mut self.live);
            for (at, rows) in blocks {
                if self.may_pass(at)? {
                    self.live.push_back((at, rows));
                }
            }
            self.metrics.blocks_pruned.fetch_add((before - self.live.len()) as u64, Relaxed);
        }
        let most = if self.dynamic.is_empty() { self.window } else { self.window.min(DYNAMIC_WINDOW) };
        let (mut blocks, mut wanted, mut bytes, mut first) = (Vec::new(), Vec::new(), 0, 0);
        for &(at, rows) in self.live.iter().take(most) {
            if bytes >= self.window_bytes(wanted.len().div_ceil(blocks.len().max(1))) {
                break;
            }
            // A predicate that zone maps prove true everywhere in a block needs no column of it.
            let mut open = Vec::new();
            for predicate in self.predicates() {
                if !predicate.possible(&self.source, at)?.always_true() {
                    open.push(Arc::clone(predicate));
                    let mut columns = Vec::new();
                    predicate.columns(&mut columns);
                    for column in columns {
                        bytes += self.source.size(column, at)?;
                        wanted.push((column, at));
                    }
                }
            }
            blocks.push(Undecided { at, rows, open });
            first = if blocks.len() == 1 { wanted.len() } else { first };
        }
        let fetch = match self.source.start(&wanted, Need::Ahead)? {
            Some(fetch) => fetch,
            None if !self.filtering.is_empty() || !self.passed.is_empty() => return Ok(false),
            None => {
                blocks.truncate(1);
                self.need(&wanted[..first])?
            }
        };
        if !wanted.is_empty() {
            self.waits = !fetch.as_ref().is_done();
        }
        self.live.drain(..blocks.len());
        self.window = (self.window * 2).min(WINDOW);
        self.filtering.push_back(Filtering { blocks, fetch });
        Ok(true)
    }

    /// Filters the first window whose filter columns are there.
    fn filter(&mut self) -> Result<()> {
        let Some(Filtering { blocks, fetch }) = self.filtering.pop_front() else { return Ok(()) };
        self.source.finish(fetch)?;
        let newer = self.refresh()?;
        let (mut window, mut bytes) = (VecDeque::new(), 0);
        for Undecided { at, rows, open } in blocks {
            if newer && !self.may_pass(at)? {
                self.metrics.blocks_pruned.fetch_add(1, Relaxed);
                self.source.release(at);
                continue;
            }
            self.metrics.rows_in.fetch_add(rows as u64, Relaxed);
            let selection = select(&mut self.source, &open, at, rows)?;
            if selection.count_set_bits() == 0 {
                self.source.release(at);
                continue;
            }
            window.push_back((at, selection));
            for &column in &self.output {
                bytes += self.source.size(column, at)?;
            }
            if bytes >= self.window_bytes(self.output.len()) {
                self.passed.push_back(Passed { blocks: std::mem::take(&mut window), columns: Columns::Wanted });
                bytes = 0;
            }
        }
        if !window.is_empty() {
            self.passed.push_back(Passed { blocks: window, columns: Columns::Wanted });
        }
        Ok(())
    }

    /// Decodes the output columns of a block's selected rows.
    fn decode(&mut self, at: BlockId, mut selection: BooleanBuffer) -> Result<Chunk> {
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
        Ok(Chunk { rows, columns })
    }
}

/// Binds predicates, cheapest first.
fn bind_all<S: ColumnSource>(parts: &[Expr], source: &mut S) -> Result<Vec<Arc<Bound<S::Leaf>>>> {
    let mut bound = parts.iter().map(|part| bind(part, source).map(Arc::new)).collect::<Result<Vec<_>>>()?;
    bound.sort_by_key(|bound| bound.cost());
    Ok(bound)
}

/// The rows of a block that pass all predicates. One that fails on a row is tried again when the others have had their
/// say: its error counts only for rows that pass them all.
fn select<S: ColumnSource>(
    source: &mut S,
    predicates: &[Arc<Bound<S::Leaf>>],
    at: BlockId,
    rows: usize,
) -> Result<BooleanBuffer> {
    let mut selection = BooleanBuffer::new_set(rows);
    let mut failed = Vec::new();
    for predicate in predicates {
        match predicate.evaluate(source, &Rows { at, selection: &selection }) {
            Ok(mask) => selection = &selection & &mask.is_true,
            Err(FormatError::Function(_)) => failed.push(predicate),
            Err(other) => return Err(other),
        }
        if selection.count_set_bits() == 0 {
            return Ok(selection);
        }
    }
    for predicate in failed {
        let mask = predicate.evaluate(source, &Rows { at, selection: &selection })?;
        selection = &selection & &mask.is_true;
        if selection.count_set_bits() == 0 {
            break;
        }
    }
    Ok(selection)
}
