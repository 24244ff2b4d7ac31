//! `count(*)` and `count(x)`.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};

use super::{Aggregate, Input, Merged, States, StatesRead, argument, counting, each};
use crate::error::Result;

/// Rows of a group, or those whose argument is not null.
#[derive(Clone, Debug)]
pub struct Count {
    /// Whether there is an argument.
    of_argument: bool,
}

impl Count {
    /// Counts rows.
    pub fn rows() -> Self {
        Self { of_argument: false }
    }

    /// Counts values.
    pub fn values() -> Self {
        Self { of_argument: true }
    }
}

impl Aggregate for Count {
    fn words(&self) -> usize {
        1
    }

    fn update(&mut self, states: &mut States<'_>, input: &Input<'_>) -> Result<()> {
        let counting = if self.of_argument { counting(argument(input)?, input.filter) } else { input.filter.cloned() };
        match counting {
            None if let Some(sizes) = input.sizes() => {
                for (group, size) in (0..).zip(sizes).take(input.total) {
                    states.change(group, 0, |count| count + size);
                }
            }
            None => input.groups.iter().for_each(|&group| states.change(group, 0, |count| count + 1)),
            counting => each(input.groups.len(), counting.as_ref(), |row| {
                states.change(input.groups[row], 0, |count| count + 1);
            }),
        }
        Ok(())
    }

    fn merge(&mut self, states: &mut States<'_>, from: &Merged<'_>) -> Result<()> {
        from.pairs().for_each(|(source, target)| {
            states.change(target, 0, |count| count + from.states.word(source, 0));
        });
        Ok(())
    }

    fn values(&mut self, states: &StatesRead<'_>, groups: &[u32]) -> Result<ArrayRef> {
        let counts = groups.iter().map(|&group| states.word(group, 0).cast_signed());
        Ok(Arc::new(Int64Array::from_iter_values(counts)))
    }

    fn partial(&mut self, states: &StatesRead<'_>, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.values(states, groups)?])
    }

    fn fresh(&self) -> Result<Box<dyn Aggregate>> {
        Ok(Box::new(self.clone()))
    }
}
