//! The shortest and the longest interval: a month has 30 days, a day 24 hours.

use std::collections::BTreeMap;

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::Decimal128Type;
use arrow_schema::DataType;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::Accumulator;

use crate::meaning::intervals::lengths;

/// The lengths of an argument, and the argument.
fn argument(values: &[ArrayRef]) -> Result<(ArrayRef, &ArrayRef)> {
    match values {
        [intervals] => Ok((lengths(intervals)?, intervals)),
        _ => internal_err!("min and max are of one value"),
    }
}

/// One of all.
#[derive(Debug)]
pub(super) struct Longest {
    greatest: bool,
    best: Option<i128>,
    value: ScalarValue,
}

impl Longest {
    pub(super) fn new(of: &DataType, greatest: bool) -> Result<Self> {
        Ok(Self { greatest, best: None, value: ScalarValue::try_from(of)? })
    }
}

impl Accumulator for Longest {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (lengths, intervals) = argument(values)?;
        for (row, length) in lengths.as_primitive::<Decimal128Type>().iter().enumerate() {
            let Some(length) = length else { continue };
            let better = |best: i128| if self.greatest { length > best } else { length < best };
            if self.best.is_none_or(better) {
                self.best = Some(length);
                self.value = ScalarValue::try_from_array(intervals, row)?;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.value.clone())
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.value.clone()])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}

/// One of those within a frame, which others leave.
#[derive(Debug)]
pub(super) struct Sliding {
    greatest: bool,
    none: ScalarValue,
    /// An interval of each length, and how many there are.
    within: BTreeMap<i128, (ScalarValue, usize)>,
}

impl Sliding {
    pub(super) fn new(of: &DataType, greatest: bool) -> Result<Self> {
        Ok(Self { greatest, none: ScalarValue::try_from(of)?, within: BTreeMap::new() })
    }
}

impl Accumulator for Sliding {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (lengths, intervals) = argument(values)?;
        for (row, length) in lengths.as_primitive::<Decimal128Type>().iter().enumerate() {
            let Some(length) = length else { continue };
            let value = ScalarValue::try_from_array(intervals, row)?;
            self.within.entry(length).or_insert((value, 0)).1 += 1;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (lengths, _) = argument(values)?;
        for length in lengths.as_primitive::<Decimal128Type>().iter().flatten() {
            match self.within.get_mut(&length) {
                Some((_, count)) if *count > 1 => *count -= 1,
                _ => drop(self.within.remove(&length)),
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let best = if self.greatest { self.within.last_key_value() } else { self.within.first_key_value() };
        Ok(best.map_or_else(|| self.none.clone(), |(_, (value, _))| value.clone()))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.within.len() * size_of::<(i128, ScalarValue, usize)>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.evaluate().map(|value| vec![value])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}
