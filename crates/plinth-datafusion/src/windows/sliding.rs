//! Aggregates over frames that slide, of which nothing is taken back that leaves a frame.
//!
//! The engine subtracts it: after 1e20 has passed, a sum of ones is 0, and after an infinity it is no number for ever. What can't be subtracted,
//! as from `bool_and`, it refuses. Here the rows of a frame are two stacks, the queue that serves any aggregate whose states can be merged
//! (Tangwongsan, Hirzel and Schneider, "Low-latency sliding-window aggregation in worst-case constant time"): of its older part there is the
//! state of each row and all behind it, so that one is dropped for a row that leaves; of its newer part there are the rows and one state. When the older part is empty, the newer one
//! becomes it. A row is taken up twice at most. Where states grow with their rows, the rows are kept ([`rows`]).

mod rows;
mod sums;

use std::fmt;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, FieldRef, Schema};
use datafusion_common::{DataFusionError, Result, ScalarValue, internal_datafusion_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::{Accumulator, AggregateUDFImpl};
use datafusion_physical_expr::PhysicalExpr;
use rows::Rows;

/// What adds up, whatever the order of its values; `regr_...` do, too.
const SUMS: [&str; 11] = [
    "sum",
    "avg",
    "var",
    "var_pop",
    "stddev",
    "stddev_pop",
    "covar_samp",
    "covar_pop",
    "corr",
    "sum_exact",
    "avg_exact",
];

/// What has one bit, or one number, for any rows.
const BITS: [&str; 5] = ["bit_and", "bit_or", "bit_xor", "bool_and", "bool_or"];

/// The accumulator of a frame that slides: the function's own where that takes back what it was given without a loss.
pub(crate) fn accumulator(
    function: &Arc<dyn AggregateUDFImpl>,
    args: AccumulatorArgs<'_>,
) -> Result<Box<dyn Accumulator>> {
    if !is_merged(function.as_ref(), &args)? {
        let is_in_order = !args.order_bys.is_empty();
        return match function.create_sliding_accumulator(args.clone()) {
            Ok(own) if own.supports_retract_batch() || is_in_order => Ok(own),
            Err(error) if is_in_order || !matches!(error, DataFusionError::NotImplemented(_)) => Err(error),
            _ => Ok(Box::new(Rows::new(Made::new(function, &args)))),
        };
    }
    // The stacks hold numbers then, without a state of the engine's for each row.
    let is_of_doubles = args.expr_fields.first().is_some_and(|field| field.data_type() == &DataType::Float64);
    if is_of_doubles && args.return_type() == &DataType::Float64 && matches!(function.name(), "sum" | "avg") {
        return Ok(Box::new(sums::Sums::new(function.name() == "avg")));
    }
    let made = Made::new(function, &args);
    let state = made.accumulator()?;
    Ok(Box::new(Frame { made, older: Vec::new(), left: 0, newer: Vec::new(), rows: 0, state }))
}

/// Whether a function adds up with rounding, forgets which of its values are NULL or takes back nothing, and its states can be merged in any
/// order.
fn is_merged(function: &dyn AggregateUDFImpl, args: &AccumulatorArgs<'_>) -> Result<bool> {
    if BITS.contains(&function.name()) {
        return Ok(!args.is_distinct);
    }
    let is_sum = SUMS.contains(&function.name()) || function.name().starts_with("regr_");
    if !is_sum || !args.return_type().is_floating() || args.is_distinct || !args.order_bys.is_empty() {
        return Ok(false);
    }
    let states = function.state_fields(StateFieldsArgs {
        name: args.name,
        input_fields: args.expr_fields,
        return_field: Arc::clone(&args.return_field),
        ordering_fields: &[],
        is_distinct: false,
    })?;
    // A list is all values that were given.
    Ok(states.iter().all(|state| !state.data_type().is_nested()))
}

/// What an accumulator is made of.
struct Made {
    function: Arc<dyn AggregateUDFImpl>,
    return_field: FieldRef,
    schema: Schema,
    ignore_nulls: bool,
    is_distinct: bool,
    name: String,
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    expr_fields: Vec<FieldRef>,
}

impl Made {
    fn new(function: &Arc<dyn AggregateUDFImpl>, args: &AccumulatorArgs<'_>) -> Self {
        Self {
            function: Arc::clone(function),
            return_field: Arc::clone(&args.return_field),
            schema: args.schema.clone(),
            ignore_nulls: args.ignore_nulls,
            is_distinct: args.is_distinct,
            name: args.name.to_owned(),
            exprs: args.exprs.to_vec(),
            expr_fields: args.expr_fields.to_vec(),
        }
    }

    fn accumulator(&self) -> Result<Box<dyn Accumulator>> {
        self.function.accumulator(AccumulatorArgs {
            return_field: Arc::clone(&self.return_field),
            schema: &self.schema,
            ignore_nulls: self.ignore_nulls,
            order_bys: &[],
            is_reversed: false,
            name: &self.name,
            is_distinct: self.is_distinct,
            exprs: &self.exprs,
            expr_fields: &self.expr_fields,
        })
    }
}

struct Frame {
    made: Made,
    /// Columns of states of the older part: the first row's is of the part's last row, the last row's of all of it.
    older: Vec<ArrayRef>,
    /// How many rows of the older part are in the frame yet.
    left: usize,
    /// The arguments' columns of the newer part, as they came.
    newer: Vec<Vec<ArrayRef>>,
    rows: usize,
    /// Of the newer part.
    state: Box<dyn Accumulator>,
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} and {} rows", self.made.name, self.left, self.rows)
    }
}

fn rows_of(columns: &[ArrayRef]) -> Result<usize> {
    columns.first().map(|column| column.len()).ok_or_else(|| internal_datafusion_err!("an aggregate without arguments"))
}

impl Frame {
    fn forget_newer(&mut self) -> Result<()> {
        (self.rows, self.state) = (0, self.made.accumulator()?);
        self.newer.clear();
        Ok(())
    }

    /// Makes the newer part the older one, which is empty.
    fn turn_over(&mut self) -> Result<()> {
        let (mut state, mut states) = (self.made.accumulator()?, Vec::<Vec<ScalarValue>>::new());
        for columns in self.newer.iter().rev() {
            for row in (0..rows_of(columns)?).rev() {
                let row: Vec<_> = columns.iter().map(|column| column.slice(row, 1)).collect();
                state.update_batch(&row)?;
                let values = state.state()?;
                states.resize_with(values.len(), Vec::new);
                for (states, value) in states.iter_mut().zip(values) {
                    states.push(value);
                }
            }
        }
        self.older = states.into_iter().map(ScalarValue::iter_to_array).collect::<Result<_>>()?;
        self.left = self.rows;
        self.forget_newer()
    }
}

impl Accumulator for Frame {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let rows = rows_of(values)?;
        if rows > 0 {
            self.state.update_batch(values)?;
            self.rows += rows;
            self.newer.push(values.to_vec());
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let rows = rows_of(values)?;
        if rows <= self.left {
            self.left -= rows;
            return Ok(());
        }
        let rows = rows - self.left;
        self.left = 0;
        if rows < self.rows {
            self.turn_over()?;
            self.left -= rows;
            return Ok(());
        }
        self.forget_newer()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let Some(of_all) = self.left.checked_sub(1) else { return self.state.evaluate() };
        let mut whole = self.made.accumulator()?;
        let older: Vec<_> = self.older.iter().map(|states| states.slice(of_all, 1)).collect();
        whole.merge_batch(&older)?;
        if self.rows > 0 {
            let newer = self.state.state()?.iter().map(ScalarValue::to_array).collect::<Result<Vec<_>>>()?;
            whole.merge_batch(&newer)?;
        }
        whole.evaluate()
    }

    fn size(&self) -> usize {
        let older: usize = self.older.iter().map(|states| states.get_array_memory_size()).sum();
        // The newer rows lie within the operator's own.
        size_of_val(self) + self.state.size() + older + self.newer.capacity() * size_of::<Vec<ArrayRef>>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Err(internal_datafusion_err!("a frame that slides was asked for a state"))
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        Err(internal_datafusion_err!("a frame that slides was given states"))
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }
}
