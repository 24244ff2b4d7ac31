//! Sums and means of doubles over frames that slide: the two stacks of [`super`], of numbers alone.

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef};
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::Accumulator;

/// Values added up, and how many there are.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    sum: f64,
    count: u64,
}

impl Sum {
    fn plus(self, value: Option<f64>) -> Self {
        match value {
            Some(value) => Self { sum: self.sum + value, count: self.count + 1 },
            None => self,
        }
    }
}

#[derive(Debug)]
pub(super) struct Sums {
    is_mean: bool,
    /// Of each row of the older part the sum of it and all behind, the last row's first.
    older: Vec<Sum>,
    newer: Vec<Option<f64>>,
    /// Of the newer part.
    sum: Sum,
}

impl Sums {
    pub(super) fn new(is_mean: bool) -> Self {
        Self { is_mean, older: Vec::new(), newer: Vec::new(), sum: Sum::default() }
    }
}

impl Accumulator for Sums {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(values) = values.first().and_then(|values| values.as_primitive_opt::<Float64Type>()) else {
            return internal_err!("a sum of doubles was given something else");
        };
        self.newer.reserve(values.len());
        for value in values {
            self.newer.push(value);
            self.sum = self.sum.plus(value);
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let rows = values.first().map_or(0, |values| values.len());
        let from_older = rows.min(self.older.len());
        self.older.truncate(self.older.len() - from_older);
        let more = rows - from_older;
        if more == 0 {
            return Ok(());
        }
        if more > self.newer.len() {
            return internal_err!("{rows} rows left a frame that had fewer");
        }
        let mut sum = Sum::default();
        self.older.extend(self.newer.drain(..).skip(more).rev().map(|value| {
            sum = sum.plus(value);
            sum
        }));
        self.sum = Sum::default();
        Ok(())
    }

    #[allow(clippy::cast_precision_loss, reason = "a mean is a double")]
    fn evaluate(&mut self) -> Result<ScalarValue> {
        let older = self.older.last().copied().unwrap_or_default();
        let (sum, count) = (older.sum + self.sum.sum, older.count + self.sum.count);
        let value = if self.is_mean { sum / count as f64 } else { sum };
        Ok(ScalarValue::Float64((count > 0).then_some(value)))
    }

    fn size(&self) -> usize {
        let (older, newer) = (self.older.capacity(), self.newer.capacity());
        size_of_val(self) + older * size_of::<Sum>() + newer * size_of::<Option<f64>>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        internal_err!("a frame that slides was asked for a state")
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        internal_err!("a frame that slides was given states")
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }
}
