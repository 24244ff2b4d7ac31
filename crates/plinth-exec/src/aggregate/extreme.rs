//! `min(x)` and `max(x)` of numbers.

use arrow_array::ArrayRef;
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use super::{Aggregate, Input, Merged, States, StatesRead, argument, counting, each};
use crate::error::Result;
use crate::numbers::Numbers;

/// Which value is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The least.
    Least,
    /// The greatest.
    Greatest,
}

/// The least or greatest value of a type that is a number of one word, and no float. The first word of a state is one once there was a value.
#[derive(Clone, Debug)]
pub struct Extreme {
    which: Which,
    numbers: Numbers,
    data_type: DataType,
    scratch: Vec<Vec<i64>>,
}

impl Extreme {
    /// Of values of a type; `None` if they are not ours to compare.
    pub fn new(which: Which, data_type: &DataType) -> Option<Self> {
        let numbers = Numbers::of(data_type)?;
        let taken = matches!(numbers, Numbers::Bool | Numbers::Signed(_) | Numbers::Unsigned(_));
        taken.then(|| Self { which, numbers, data_type: data_type.clone(), scratch: vec![Vec::new()] })
    }

    #[inline]
    fn take(which: Which, states: &mut States<'_>, group: u32, value: i64) {
        let before = states.word(group, 1).cast_signed();
        let better = match which {
            Which::Least => value < before,
            Which::Greatest => value > before,
        };
        if better || states.word(group, 0) == 0 {
            states.set(group, 0, 1);
            states.set(group, 1, value.cast_unsigned());
        }
    }
}

impl Aggregate for Extreme {
    fn words(&self) -> usize {
        2
    }

    fn update(&mut self, states: &mut States<'_>, input: &Input<'_>) -> Result<()> {
        let argument = argument(input)?;
        self.numbers.read(argument.array()?.as_ref(), &mut self.scratch)?;
        let values = self.scratch.first().map_or(&[][..], Vec::as_slice);
        let counting = counting(argument, input.filter);
        let which = self.which;
        each(input.groups.len(), counting.as_ref(), |row| Self::take(which, states, input.groups[row], values[row]));
        Ok(())
    }

    fn merge(&mut self, states: &mut States<'_>, from: &Merged<'_>) -> Result<()> {
        for (source, target) in from.pairs() {
            if from.states.word(source, 0) != 0 {
                Self::take(self.which, states, target, from.states.word(source, 1).cast_signed());
            }
        }
        Ok(())
    }

    fn values(&mut self, states: &StatesRead<'_>, groups: &[u32]) -> Result<ArrayRef> {
        let values = groups.iter().map(|&group| states.word(group, 1).cast_signed()).collect();
        let nulls = NullBuffer::from_iter(groups.iter().map(|&group| states.word(group, 0) != 0));
        self.numbers.write(&self.data_type, &[values], (nulls.null_count() > 0).then_some(nulls))
    }

    fn partial(&mut self, states: &StatesRead<'_>, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.values(states, groups)?])
    }

    fn fresh(&self) -> Result<Box<dyn Aggregate>> {
        Ok(Box::new(self.clone()))
    }
}
