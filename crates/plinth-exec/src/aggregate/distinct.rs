//! `count(DISTINCT x)`: the pairs of a group and a value that were met.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, ListArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, FieldRef};
use plinth_io::MemoryBudget;

use super::{Aggregate, Frozen, Input, Merged, States, StatesRead, argument, counting};
use crate::error::{ExecError, Result};
use crate::key::{Bounds, Keys, Meaning};
use crate::numbers::Numbers;
use crate::rows::Rows;

/// Counts the distinct values of a group. All of it lies beside the groups' rows.
#[derive(Debug)]
pub struct CountDistinct {
    meaning: Meaning,
    range: Bounds,
    /// Of a list of values, as the engine passes it on.
    item: FieldRef,
    budget: Arc<MemoryBudget>,
    keys: Keys,
    pairs: Rows,
    scratch: Vec<u32>,
    /// Of each group, once it was asked for.
    counts: Vec<i64>,
    /// The values, once they are passed on.
    passing_on: Option<Sorted>,
}

/// The values of each group.
#[derive(Debug)]
struct Sorted {
    keys: Keys,
    pairs: Rows,
    /// Pairs, those of a group together.
    order: Vec<u32>,
    /// Of each group its first pair in that order, then that of the next.
    starts: Vec<u32>,
}

impl CountDistinct {
    /// Of values with a meaning, whose numbers are expected within a range, and which the engine passes on as lists of items.
    pub fn new(meaning: Meaning, range: Bounds, item: FieldRef, budget: &Arc<MemoryBudget>) -> Self {
        // A group is never null; a value that is, is never kept.
        let group = Meaning::Numbers(Numbers::Unsigned(4), DataType::UInt32);
        let keys = Keys::new(vec![group, meaning.clone()]).expecting(&[Some((0, i64::from(u32::MAX))), range]);
        let pairs = keys.rows(0, budget);
        Self {
            meaning,
            range,
            item,
            budget: Arc::clone(budget),
            keys,
            pairs,
            scratch: Vec::new(),
            counts: Vec::new(),
            passing_on: None,
        }
    }

    /// Adds the pairs of groups and of values, one column a number of these.
    fn add(&mut self, groups: Vec<i64>, values: Vec<Vec<i64>>) -> Result<()> {
        self.counts.clear();
        let count = groups.len();
        let mut numbers = vec![groups, Vec::new()];
        numbers.extend(values);
        numbers.push(Vec::new());
        self.keys.groups_of(numbers, count, &mut self.pairs, &mut self.scratch)
    }

    /// The group of a pair.
    fn group_of(&self, pair: u32) -> usize {
        usize::try_from(self.keys.layout.unpack(self.pairs.key(pair), 0)).unwrap_or(usize::MAX)
    }

    /// Takes the pairs and puts those of a group together.
    fn sorted(&mut self, groups: usize) -> Result<Sorted> {
        let pairs = u32::try_from(self.pairs.len()).unwrap_or(u32::MAX);
        let mut starts = vec![0_u32; groups + 1];
        for pair in 0..pairs {
            let next = starts.get_mut(self.group_of(pair) + 1);
            *next.ok_or_else(|| ExecError::internal("a value of no group"))? += 1;
        }
        for group in 0..groups {
            starts[group + 1] += starts[group];
        }
        let (mut order, mut next) = (vec![0; pairs as usize], starts.clone());
        for pair in 0..pairs {
            let at = &mut next[self.group_of(pair)];
            order[*at as usize] = pair;
            *at += 1;
        }
        let keys = Keys::new(self.keys.meanings().to_vec());
        let rows = keys.rows(0, &self.budget);
        let (keys, pairs) = (std::mem::replace(&mut self.keys, keys), std::mem::replace(&mut self.pairs, rows));
        Ok(Sorted { keys, pairs, order, starts })
    }
}

impl Sorted {
    fn of(&self, group: u32) -> &[u32] {
        let at = group as usize;
        match (self.starts.get(at), self.starts.get(at + 1)) {
            (Some(&start), Some(&end)) => self.order.get(start as usize..end as usize).unwrap_or(&[]),
            _ => &[],
        }
    }
}

impl Aggregate for CountDistinct {
    fn words(&self) -> usize {
        0
    }

    fn is_set(&self) -> bool {
        true
    }

    fn kept(&self) -> usize {
        self.pairs.len()
    }

    fn update(&mut self, _: &mut States<'_>, input: &Input<'_>) -> Result<()> {
        let argument = argument(input)?;
        let mut values = vec![Vec::new(); self.meaning.width()];
        self.meaning.read(argument, &mut values)?;
        let Some(counting) = counting(argument, input.filter) else {
            return self.add(input.groups.iter().map(|&group| i64::from(group)).collect(), values);
        };
        let rows: Vec<usize> = counting.set_indices().collect();
        let some = |all: &Vec<i64>| rows.iter().map(|&row| all[row]).collect();
        self.add(rows.iter().map(|&row| i64::from(input.groups[row])).collect(), values.iter().map(some).collect())
    }

    fn freeze(&mut self, groups: usize) -> Result<Frozen> {
        Ok(Box::new(self.sorted(groups)?))
    }

    fn merge(&mut self, _: &mut States<'_>, from: &Merged<'_>) -> Result<()> {
        let sorted: &Sorted =
            from.frozen.downcast_ref().ok_or_else(|| ExecError::internal("values of another aggregate"))?;
        // A part at a time, for a group may have any number of values.
        const STEP: usize = 8192;
        let groups = from.sources.iter().copied().zip(from.targets.iter().copied());
        let all: Vec<(i64, u32)> = groups
            .flat_map(|(source, target)| sorted.of(source).iter().map(move |&pair| (i64::from(target), pair)))
            .collect();
        for some in all.chunks(STEP) {
            let pairs: Vec<u32> = some.iter().map(|(_, pair)| *pair).collect();
            let numbers = sorted.keys.numbers_of(&sorted.pairs, &pairs);
            let values = numbers.into_iter().skip(2).take(self.meaning.width()).collect();
            self.add(some.iter().map(|(group, _)| *group).collect(), values)?;
        }
        Ok(())
    }

    fn values(&mut self, _: &StatesRead<'_>, groups: &[u32]) -> Result<ArrayRef> {
        if self.counts.is_empty() {
            for pair in 0..u32::try_from(self.pairs.len()).unwrap_or(u32::MAX) {
                let group = self.group_of(pair);
                self.counts.resize(self.counts.len().max(group + 1), 0);
                self.counts[group] += 1;
            }
        }
        let count = |&group: &u32| self.counts.get(group as usize).copied().unwrap_or(0);
        Ok(Arc::new(Int64Array::from_iter_values(groups.iter().map(count))))
    }

    fn partial(&mut self, _: &StatesRead<'_>, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        if self.passing_on.is_none() {
            let groups = (0..u32::try_from(self.pairs.len()).unwrap_or(u32::MAX)).map(|pair| self.group_of(pair) + 1);
            self.passing_on = Some(self.sorted(groups.max().unwrap_or(0))?);
        }
        let Some(sorted) = &self.passing_on else { return Err(ExecError::internal("values are not in order")) };
        let pairs: Vec<u32> = groups.iter().flat_map(|&group| sorted.of(group)).copied().collect();
        let lengths = OffsetBuffer::from_lengths(groups.iter().map(|&group| sorted.of(group).len()));
        let mut values = sorted.keys.values(&sorted.pairs, &pairs)?;
        let values = values.pop().ok_or_else(|| ExecError::internal("distinct values have no column"))?;
        Ok(vec![Arc::new(ListArray::try_new(Arc::clone(&self.item), lengths, values, None)?)])
    }

    fn fresh(&self) -> Result<Box<dyn Aggregate>> {
        Ok(Box::new(Self::new(self.meaning.clone(), self.range, Arc::clone(&self.item), &self.budget)))
    }
}
