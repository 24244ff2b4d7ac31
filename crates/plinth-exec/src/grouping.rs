//! A thread's groups, and those of several threads merged.

mod top;

use std::sync::{Arc, Mutex};

use arrow_array::ArrayRef;
use arrow_buffer::BooleanBuffer;
use plinth_core::sync::lock;
use plinth_io::{MemoryBudget, Reservation};

pub use top::{Column, Firsts, Order, Top};

use crate::aggregate::{Aggregate, Frozen, Input, Merged, Sizes};
use crate::error::{ExecError, Result};
use crate::key::Keys;
use crate::layout::Layout;
use crate::rows::Rows;
use crate::vector::Vector;
use crate::words::read;

/// Groups that are moved at a time.
const STEP: usize = 1024;

/// Fewer groups than this are merged by one thread. (Of few in tests, so that most of these try both ways.)
const FEW: usize = if cfg!(test) { 16 } else { 1 << 13 };

/// Parts that many groups are merged in, as a power of two.
const PARTS: u32 = 6;

/// Who asks for memory.
const CONSUMER: &str = "states of groups";

/// Rows as a grouping takes them.
#[derive(Debug)]
pub struct Chunk {
    /// How many.
    pub rows: usize,
    /// The key columns.
    pub keys: Vec<Vector>,
    /// Of each aggregate its arguments.
    pub arguments: Vec<Vec<Vector>>,
    /// Of each aggregate the rows that its FILTER leaves.
    pub filters: Vec<Option<BooleanBuffer>>,
}

/// Groups and their aggregates.
#[derive(Debug)]
pub struct Grouping {
    keys: Keys,
    rows: Rows,
    aggregates: Vec<Box<dyn Aggregate>>,
    /// Where the words of each aggregate begin.
    offsets: Vec<usize>,
    /// Groups that there are, where others were made for rows that it could not take.
    taken: Option<usize>,
    /// What aggregates keep beside the rows and do not reserve.
    uncounted: Reservation,
    budget: Arc<MemoryBudget>,
    scratch: Vec<u32>,
}

impl Grouping {
    /// No groups yet; without key columns there is one from the start.
    ///
    /// # Errors
    /// If there is no memory for that.
    pub fn new(keys: Keys, aggregates: Vec<Box<dyn Aggregate>>, budget: &Arc<MemoryBudget>) -> Result<Self> {
        let mut words = keys.carried();
        let mut offsets = Vec::with_capacity(aggregates.len());
        for aggregate in &aggregates {
            offsets.push(words);
            words += aggregate.words();
        }
        for (at, aggregate) in aggregates.iter().enumerate() {
            if let Some(of) = aggregate.reads() {
                let none = || ExecError::internal(format!("an aggregate reads the words of a {of}th that is none"));
                offsets[at] = offsets.get(of).copied().ok_or_else(none)?;
            }
        }
        let rows = keys.rows(words, budget);
        let (uncounted, budget) = (budget.open(CONSUMER), Arc::clone(budget));
        let scratch = Vec::new();
        let mut grouping = Self { keys, rows, aggregates, offsets, taken: None, uncounted, budget, scratch };
        grouping.begin()?;
        Ok(grouping)
    }

    /// Without key columns there is a group, also of no rows.
    fn begin(&mut self) -> Result<()> {
        if self.keys.meanings().is_empty() {
            self.keys.groups(&[], 1, &mut self.rows, &mut self.scratch)?;
        }
        Ok(())
    }

    /// Groups.
    pub fn len(&self) -> usize {
        self.taken.unwrap_or(self.rows.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the groups' rows take of the budget.
    pub fn bytes(&self) -> u64 {
        self.rows.bytes() + self.uncounted.bytes()
    }

    /// Takes rows.
    ///
    /// # Errors
    /// If there is no memory for them: once its groups have been passed on ([`Grouping::partial`]), another grouping may be given them again. Also if a value can't be
    /// had or a function of the engine fails.
    pub fn push(&mut self, chunk: &Chunk) -> Result<()> {
        let held: u64 = self.aggregates.iter().map(|aggregate| aggregate.uncounted()).sum();
        self.uncounted.resize(held)?;
        let mut groups = std::mem::take(&mut self.scratch);
        let pushed = self.update(chunk, &mut groups);
        self.scratch = groups;
        pushed
    }

    fn update(&mut self, chunk: &Chunk, groups: &mut Vec<u32>) -> Result<()> {
        let before = self.rows.len();
        self.keys.groups(&chunk.keys, chunk.rows, &mut self.rows, groups)?;
        self.keys.carry(&chunk.keys, groups, before, &mut self.rows).inspect_err(|_| self.taken = Some(before))?;
        let (total, sizes) = (self.rows.len(), Sizes::default());
        // Sets first: they may need memory, and what was added to them may be added again.
        for sets in [true, false] {
            let each = self.aggregates.iter_mut().zip(&self.offsets).zip(&chunk.arguments).zip(&chunk.filters);
            for (((aggregate, &offset), arguments), filter) in each {
                if aggregate.is_set() == sets {
                    let input = Input { groups, total, arguments, filter: filter.as_ref(), sizes: &sizes };
                    aggregate.update(&mut self.rows.states().behind(offset), &input)?;
                }
            }
        }
        Ok(())
    }

    /// The keys and the states of some groups, as the engine passes them on. Each group is asked for once, and nothing else of the grouping
    /// then.
    ///
    /// # Errors
    /// If they can't be had.
    pub fn partial(&mut self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        let mut arrays = self.keys.values(&self.rows, groups)?;
        for (aggregate, &offset) in self.aggregates.iter_mut().zip(&self.offsets) {
            arrays.extend(aggregate.partial(&self.rows.states_from(offset), groups)?);
        }
        Ok(arrays)
    }

    /// All groups.
    pub fn all(&self) -> Vec<u32> {
        (0..u32::try_from(self.len()).unwrap_or(u32::MAX)).collect()
    }

    /// The keys and the results of some groups, one array a column.
    ///
    /// # Errors
    /// If values can't be had.
    pub fn values(&mut self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        let mut arrays = self.keys.values(&self.rows, groups)?;
        arrays.extend(self.aggregate_values(groups)?);
        Ok(arrays)
    }

    fn aggregate_values(&mut self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        let each = self.aggregates.iter_mut().zip(&self.offsets);
        each.map(|(aggregate, &offset)| aggregate.values(&self.rows.states_from(offset), groups)).collect()
    }

    /// What takes time to merge: groups, and values that are kept of these. One group is of one part, whatever is kept of it.
    fn merged(&self) -> usize {
        let kept = self.aggregates.iter().map(|aggregate| aggregate.kept()).sum::<usize>();
        if self.len() > 1 { self.len() + kept } else { self.len() }
    }

    /// How its keys are packed.
    pub fn layout(&self) -> &Layout {
        &self.keys.layout
    }

    /// What it takes to merge groupings beside what they hold, where so many threads merge a part each at a time: the groups of these parts, and
    /// once more those whose keys are packed otherwise than all together will be, or that have sets.
    pub fn merging(groupings: &[Self], threads: usize) -> u64 {
        let Some(layout) = common(groupings) else { return 0 };
        let moves = |grouping: &&Self| {
            *grouping.layout() != layout || grouping.aggregates.iter().any(|aggregate| aggregate.is_set())
        };
        let moved: u64 = groupings.iter().filter(moves).map(Self::bytes).sum();
        let all: u64 = groupings.iter().map(Self::bytes).sum();
        // The rows of a part may take twice what they need.
        moved + (all >> (PARTS - 1)).saturating_mul(threads as u64)
    }
}

/// What the keys of all of some groupings fit.
fn common(groupings: &[Grouping]) -> Option<Layout> {
    let first = groupings.first()?.layout().clone();
    Some(groupings.iter().fold(first, |layout, grouping| layout.of_both(grouping.layout())))
}

/// The groups of one thread, ready to be merged with those of others.
#[derive(Debug)]
pub struct Divided {
    rows: Rows,
    frozen: Vec<Frozen>,
    offsets: Vec<usize>,
    /// The groups, part by part.
    order: Vec<u32>,
    /// Where each part begins, and the last ends.
    starts: Vec<usize>,
}

impl Divided {
    /// The groups of a part.
    fn of(&self, part: usize) -> &[u32] {
        match (self.starts.get(part), self.starts.get(part + 1)) {
            (Some(&start), Some(&end)) => self.order.get(start..end).unwrap_or_default(),
            _ => &[],
        }
    }
}

/// How the groups of several threads are merged.
#[derive(Debug)]
pub struct Division {
    keys: Keys,
    parts: usize,
    /// Without groups: what a merged part begins with.
    aggregates: Mutex<Vec<Box<dyn Aggregate>>>,
    budget: Arc<MemoryBudget>,
}

impl Division {
    /// Of groupings that have the same keys and aggregates.
    ///
    /// # Errors
    /// If there are none, or an aggregate can't be made.
    pub fn new(groupings: &[Grouping]) -> Result<Self> {
        let first = groupings.first().ok_or_else(|| ExecError::internal("there is nothing to merge"))?;
        let aggregates = first.aggregates.iter().map(|aggregate| aggregate.fresh()).collect::<Result<_>>()?;
        let mut keys = first.keys.clone();
        keys.layout = common(groupings).unwrap_or(keys.layout);
        // A part has few of the groups.
        keys = keys.expecting_groups(0);
        let parts = if groupings.iter().map(Grouping::merged).sum::<usize>() <= FEW { 1 } else { 1 << PARTS };
        Ok(Self { keys, parts, aggregates: Mutex::new(aggregates), budget: Arc::clone(&first.budget) })
    }

    /// Divides a grouping into the parts.
    ///
    /// # Errors
    /// If there is no memory for that, or a state can't be had.
    pub fn divide(&self, mut grouping: Grouping) -> Result<Divided> {
        grouping.keys.widen(self.keys.layout.clone(), &mut grouping.rows)?;
        let total = grouping.rows.len();
        let aggregates = grouping.aggregates.iter_mut();
        let frozen = aggregates.map(|aggregate| aggregate.freeze(total)).collect::<Result<_>>()?;
        let (order, starts) = grouping.rows.divide(self.parts)?;
        Ok(Divided { rows: grouping.rows, frozen, offsets: grouping.offsets, order, starts })
    }
}

/// The groups of several threads, to be merged part by part: by any number of threads, each part by one.
#[derive(Debug)]
pub struct Merge {
    division: Division,
    sources: Vec<Divided>,
}

impl Merge {
    /// Of groups that were divided so.
    pub fn new(division: Division, sources: Vec<Divided>) -> Self {
        Self { division, sources }
    }

    /// Parts there are.
    pub fn parts(&self) -> usize {
        self.division.parts
    }

    /// For the first groups of the parts.
    pub fn firsts(&self) -> Firsts {
        Firsts::new(self.division.keys.clone(), &self.division.budget)
    }

    /// The groups of a part.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn merged(&self, part: usize) -> Result<Grouping> {
        let Division { keys, aggregates, budget, .. } = &self.division;
        let fresh = lock(aggregates).iter().map(|aggregate| aggregate.fresh()).collect::<Result<Vec<_>>>()?;
        let mut merged = Grouping::new(keys.clone(), fresh, budget)?;
        let mut packed: Vec<Vec<u64>> = vec![Vec::new(); keys.layout.words()];
        let (mut targets, mut gathered) = (Vec::new(), Vec::new());
        // At once, for all the groups there can be: what grows by and by is moved again and again.
        merged.rows.reserve(self.sources.iter().map(|source| source.of(part).len()).sum())?;
        for source in &self.sources {
            for groups in source.of(part).chunks(STEP) {
                source.rows.gather(groups, &mut gathered);
                let rows = source.rows.gathered(&gathered);
                for column in &mut packed {
                    column.clear();
                }
                for key in rows.keys() {
                    packed.iter_mut().zip(key).for_each(|(column, word)| column.push(read(word)));
                }
                let before = merged.rows.len();
                merged.rows.groups(&packed, groups.len(), &mut targets);
                keys.carry_over((rows.states_from(0), 0..), &targets, before, &mut merged.rows);
                let total = merged.rows.len();
                let each = merged.aggregates.iter_mut().zip(&merged.offsets).zip(&source.frozen).zip(&source.offsets);
                for (((aggregate, &offset), frozen), &from) in each {
                    let (states, frozen) = (rows.states_from(from), frozen.as_ref());
                    let from = Merged { states, frozen, sources: groups, targets: &targets, total };
                    aggregate.merge(&mut merged.rows.states().behind(offset), &from)?;
                }
            }
        }
        Ok(merged)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
