//! The first and the last of lists and structs, in the order that ORDER BY has: NULL within one is larger than any value.

use std::collections::VecDeque;

use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::Accumulator;

use crate::meaning::list_order::comparator;

/// One of all, or of those within a frame, which others leave.
#[derive(Debug)]
pub(super) struct Furthest {
    greatest: bool,
    none: ScalarValue,
    /// Those within the frame; without one the best that came.
    within: VecDeque<ScalarValue>,
    slides: bool,
}

impl Furthest {
    pub(super) fn new(of: &DataType, greatest: bool, slides: bool) -> Result<Self> {
        Ok(Self { greatest, none: ScalarValue::try_from(of)?, within: VecDeque::new(), slides })
    }

    /// The best of some values, none if all are NULL.
    fn best(&self, values: &ArrayRef) -> Result<Option<ScalarValue>> {
        let compare = comparator(if self.greatest { "max" } else { "min" }, values)?;
        let better = |best: usize, row: usize| {
            let order = compare(row, best);
            if (self.greatest && order.is_gt()) || (!self.greatest && order.is_lt()) { row } else { best }
        };
        let best = (0..values.len()).filter(|row| values.is_valid(*row)).reduce(better);
        best.map(|row| ScalarValue::try_from_array(values, row)).transpose()
    }
}

impl Accumulator for Furthest {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return internal_err!("min and max are of one value") };
        if self.slides {
            for row in 0..values.len() {
                self.within.push_back(ScalarValue::try_from_array(values, row)?);
            }
            return Ok(());
        }
        self.within.extend(self.best(values)?);
        if self.within.len() > 1 {
            let both = ScalarValue::iter_to_array(self.within.drain(..))?;
            self.within.extend(self.best(&both)?);
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return internal_err!("min and max are of one value") };
        self.within.drain(..values.len().min(self.within.len()));
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        self.slides
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.within.is_empty() {
            return Ok(self.none.clone());
        }
        let all = ScalarValue::iter_to_array(self.within.iter().cloned())?;
        Ok(self.best(&all)?.unwrap_or_else(|| self.none.clone()))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.within.iter().map(ScalarValue::size).sum::<usize>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.evaluate().map(|value| vec![value])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}
