//! Aggregates that can't take back what left a frame: they are given all of its rows again for each result.
//!
//! Their states grow with the rows, as those of `mode` and `string_agg` do: two stacks, which have a state for each row of a frame, would take
//! the square of its length.

use std::collections::VecDeque;
use std::fmt;

use arrow_array::{Array, ArrayRef};
use arrow_select::concat::concat;
use datafusion_common::{Result, ScalarValue, internal_datafusion_err, internal_err};
use datafusion_expr::Accumulator;

use super::{Made, rows_of};

pub(super) struct Rows {
    made: Made,
    /// The arguments' columns of the frame, as they came or put together.
    pieces: VecDeque<Vec<ArrayRef>>,
    /// Rows of the first piece that have left.
    left: usize,
}

impl Rows {
    pub(super) fn new(made: Made) -> Self {
        Self { made, pieces: VecDeque::new(), left: 0 }
    }

    /// Puts the pieces together, without what has left.
    fn put_together(&mut self) -> Result<()> {
        let Some(first) = self.pieces.front_mut() else { return Ok(()) };
        for column in first.iter_mut() {
            *column = column.slice(self.left, column.len() - self.left);
        }
        self.left = 0;
        if self.pieces.len() == 1 {
            return Ok(());
        }
        let columns = self.pieces.front().map_or(0, Vec::len);
        let of_column = |at: usize| {
            let parts: Option<Vec<&dyn Array>> =
                self.pieces.iter().map(|piece| piece.get(at).map(AsRef::as_ref)).collect();
            let parts = parts.ok_or_else(|| internal_datafusion_err!("an aggregate lost an argument"))?;
            Ok(concat(&parts)?)
        };
        let whole = (0..columns).map(of_column).collect::<Result<_>>()?;
        self.pieces = VecDeque::from([whole]);
        Ok(())
    }
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} pieces", self.made.name, self.pieces.len())
    }
}

impl Accumulator for Rows {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        if rows_of(values)? > 0 {
            self.pieces.push_back(values.to_vec());
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let mut rows = rows_of(values)?;
        while rows > 0 {
            let Some(first) = self.pieces.front() else { return internal_err!("rows left a frame that had none") };
            let there = rows_of(first)? - self.left;
            if rows < there {
                self.left += rows;
                return Ok(());
            }
            rows -= there;
            self.left = 0;
            self.pieces.pop_front();
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.put_together()?;
        let mut whole = self.made.accumulator()?;
        if let Some(rows) = self.pieces.front() {
            whole.update_batch(rows)?;
        }
        whole.evaluate()
    }

    fn size(&self) -> usize {
        let columns = self.pieces.iter().flatten();
        size_of_val(self) + columns.map(|column| column.to_data().get_slice_memory_size().unwrap_or(0)).sum::<usize>()
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
