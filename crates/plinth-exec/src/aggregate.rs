//! Aggregates: what is kept of each group, and what comes of it.

mod count;
mod distinct;
mod extreme;
mod sum;

use std::any::Any;
use std::cell::OnceCell;
use std::fmt::Debug;

use arrow_array::ArrayRef;
use arrow_buffer::BooleanBuffer;

pub use count::Count;
pub use distinct::CountDistinct;
pub use extreme::{Extreme, Which};
pub use sum::{DecimalMean, Mean, Sum};

use crate::error::{ExecError, Result};
pub use crate::rows::{States, StatesRead};
use crate::vector::Vector;

/// Groups up to which what comes of some rows is made beside the states first.
const FEW: usize = 64;

/// Rows and the groups they belong to.
#[derive(Debug)]
pub struct Input<'a> {
    /// The group of each row.
    pub groups: &'a [u32],
    /// Groups there are.
    pub total: usize,
    /// The arguments.
    pub arguments: &'a [Vector],
    /// The rows that a FILTER leaves; all without one.
    pub filter: Option<&'a BooleanBuffer>,
    /// Rows of each group, for all aggregates of the same rows.
    pub sizes: &'a Sizes,
}

impl Input<'_> {
    /// Whether there are few groups with many rows.
    fn has_few_groups(&self) -> bool {
        self.total <= FEW && self.groups.len() >= 8 * self.total
    }

    /// How many rows each group has, if there are few groups with many rows.
    fn sizes(&self) -> Option<&[u64]> {
        self.has_few_groups().then(|| self.sizes.of(self.groups))
    }
}

/// Rows of each of few groups, counted when that is first asked for.
#[derive(Debug, Default)]
pub struct Sizes(OnceCell<[u64; FEW]>);

impl Sizes {
    fn of(&self, groups: &[u32]) -> &[u64] {
        self.0.get_or_init(|| {
            // Rows that follow each other mostly belong to the same group, whose number in memory would have to be written before it is read again.
            let mut counts = [[0_u32; 4]; FEW];
            for four in groups.chunks(4) {
                for (at, group) in four.iter().enumerate() {
                    counts[*group as usize % FEW][at] += 1;
                }
            }
            counts.map(|four| four.into_iter().map(u64::from).sum())
        })
    }
}

/// What is left of an aggregate when its rows have all come, beside the words of its groups: read by the threads that merge.
pub type Frozen = Box<dyn Any + Send + Sync>;

/// An aggregate over groups. Its state is words in the groups' rows, which are zero at first, or lies beside them.
pub trait Aggregate: Debug + Send {
    /// Words of a group's row.
    fn words(&self) -> usize;

    /// The aggregate of the same groups whose words it reads, by its place among these: it has none of its own then.
    fn reads(&self) -> Option<usize> {
        None
    }

    /// Whether it keeps sets: rows that were taken may be taken again, and only such an aggregate may be refused memory.
    fn is_set(&self) -> bool {
        false
    }

    /// Takes rows.
    ///
    /// # Errors
    /// If there is no memory, or a value can't be had.
    fn update(&mut self, states: &mut States<'_>, input: &Input<'_>) -> Result<()>;

    /// Ends the updates. `groups` is how many groups there are.
    ///
    /// # Errors
    /// If the state can't be had.
    fn freeze(&mut self, groups: usize) -> Result<Frozen> {
        let _ = groups;
        Ok(Box::new(()))
    }

    /// Adds groups of another aggregate of this kind.
    ///
    /// # Errors
    /// If there is no memory, or the other is of another kind.
    fn merge(&mut self, states: &mut States<'_>, from: &Merged<'_>) -> Result<()>;

    /// The results of some groups.
    ///
    /// # Errors
    /// If they can't be had.
    fn values(&mut self, states: &StatesRead<'_>, groups: &[u32]) -> Result<ArrayRef>;

    /// The states of some groups, as the engine passes them between its operators. Each group is asked for once, and nothing else then.
    ///
    /// # Errors
    /// If they can't be had.
    fn partial(&mut self, states: &StatesRead<'_>, groups: &[u32]) -> Result<Vec<ArrayRef>>;

    /// Values kept beside the rows, which take time to merge as groups do.
    fn kept(&self) -> usize {
        0
    }

    /// Bytes kept beside the rows that are not reserved yet.
    fn uncounted(&self) -> u64 {
        0
    }

    /// An aggregate of this kind without groups.
    ///
    /// # Errors
    /// If the engine can't make one.
    fn fresh(&self) -> Result<Box<dyn Aggregate>>;
}

/// An aggregate whose state is that of another one, which takes the same rows: a mean beside the sum of the same values.
#[derive(Debug)]
pub struct Reading {
    of: usize,
    aggregate: Box<dyn Aggregate>,
}

impl Reading {
    /// What an aggregate makes of the state of another, whose place among the aggregates is given.
    pub fn new(of: usize, aggregate: Box<dyn Aggregate>) -> Self {
        Self { of, aggregate }
    }
}

impl Aggregate for Reading {
    fn words(&self) -> usize {
        0
    }

    fn reads(&self) -> Option<usize> {
        Some(self.of)
    }

    fn update(&mut self, _: &mut States<'_>, _: &Input<'_>) -> Result<()> {
        Ok(())
    }

    fn merge(&mut self, _: &mut States<'_>, _: &Merged<'_>) -> Result<()> {
        Ok(())
    }

    fn values(&mut self, states: &StatesRead<'_>, groups: &[u32]) -> Result<ArrayRef> {
        self.aggregate.values(states, groups)
    }

    fn partial(&mut self, states: &StatesRead<'_>, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        self.aggregate.partial(states, groups)
    }

    fn fresh(&self) -> Result<Box<dyn Aggregate>> {
        Ok(Box::new(Self { of: self.of, aggregate: self.aggregate.fresh()? }))
    }
}

/// Groups of another thread that are added.
#[derive(Debug)]
pub struct Merged<'a> {
    /// Their states, in this order.
    pub states: StatesRead<'a>,
    /// What else is left of the aggregate.
    pub frozen: &'a (dyn Any + Send + Sync),
    /// The groups, by the numbers they had when it was left.
    pub sources: &'a [u32],
    /// The same groups, by their numbers here.
    pub targets: &'a [u32],
    /// Groups there are here.
    pub total: usize,
}

impl<'a> Merged<'a> {
    /// Each group by its place among the states and its number here.
    pub fn pairs(&self) -> impl Iterator<Item = (u32, u32)> + use<'a> {
        (0..).zip(self.targets.iter().copied())
    }
}

/// The rows of an argument that count: not null, and left by the filter. All without a selection.
fn counting(argument: &Vector, filter: Option<&BooleanBuffer>) -> Option<BooleanBuffer> {
    match (argument.nulls(), filter) {
        (None, filter) => filter.cloned(),
        (Some(nulls), None) => Some(nulls.into_inner()),
        (Some(nulls), Some(filter)) => Some(nulls.inner() & filter),
    }
}

/// Does something for each row that counts.
#[inline]
fn each(rows: usize, counting: Option<&BooleanBuffer>, then: impl FnMut(usize)) {
    match counting {
        None => (0..rows).for_each(then),
        Some(counting) => counting.set_indices().for_each(then),
    }
}

fn argument<'a>(input: &Input<'a>) -> Result<&'a Vector> {
    input.arguments.first().ok_or_else(|| ExecError::internal("an aggregate lacks its argument"))
}
