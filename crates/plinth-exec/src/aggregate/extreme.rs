//! `min(x)` and `max(x)` of numbers, and of the codes of one dictionary, which are in the order of its values.

use arrow_array::ArrayRef;
use arrow_buffer::NullBuffer;

use super::{Aggregate, Input, Merged, States, StatesRead, argument, counting, each};
use crate::error::Result;
use crate::key::Meaning;
use crate::numbers::Numbers;

/// Which value is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The least.
    Least,
    /// The greatest.
    Greatest,
}

/// The least or greatest value that is a number of one word, and no float. The first word of a state is one once there was a value.
#[derive(Clone, Debug)]
pub struct Extreme {
    which: Which,
    meaning: Meaning,
    scratch: Vec<Vec<i64>>,
}

impl Extreme {
    /// Of values with a meaning; `None` if they are not ours to compare.
    pub fn new(which: Which, meaning: Meaning) -> Option<Self> {
        let taken = match &meaning {
            Meaning::Numbers(numbers, _) => {
                matches!(numbers, Numbers::Bool | Numbers::Signed(_) | Numbers::Unsigned(_))
            }
            Meaning::Codes(_) => true,
            // Numbered as they come.
            Meaning::Domain(_) => false,
        };
        taken.then(|| Self { which, meaning, scratch: vec![Vec::new()] })
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
        self.meaning.read(argument, &mut self.scratch)?;
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
        self.meaning.values(&[values], (nulls.null_count() > 0).then_some(nulls))
    }

    fn partial(&mut self, states: &StatesRead<'_>, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.values(states, groups)?])
    }

    fn fresh(&self) -> Result<Box<dyn Aggregate>> {
        Ok(Box::new(self.clone()))
    }
}
