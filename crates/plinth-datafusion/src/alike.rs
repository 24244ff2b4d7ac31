//! Floats that are equal with the same bits: zero with and without a sign is one value, and so is each NaN, as in GROUP BY and `=`.
//!
//! Accumulators of the engine that take each value once, `count(DISTINCT x)` and its kin, tell them apart by bits.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{ArrayRef, BooleanArray, Float32Array, Float64Array};
use arrow_schema::DataType;
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::function::AccumulatorArgs;
use datafusion_expr::{Accumulator, EmitTo, GroupsAccumulator};

/// Values of which those that are equal have the same bits; floats within others are left as they are.
pub(crate) fn alike(values: &ArrayRef) -> ArrayRef {
    match values.data_type() {
        // Of zeros with two signs the sum is the one without.
        DataType::Float64 => {
            let of = |value: f64| if value.is_nan() { f64::NAN } else { value + 0.0 };
            Arc::new(values.as_primitive::<Float64Type>().unary::<_, Float64Type>(of)) as Arc<Float64Array>
        }
        DataType::Float32 => {
            let of = |value: f32| if value.is_nan() { f32::NAN } else { value + 0.0 };
            Arc::new(values.as_primitive::<Float32Type>().unary::<_, Float32Type>(of)) as Arc<Float32Array>
        }
        _ => Arc::clone(values),
    }
}

fn all_alike(values: &[ArrayRef]) -> Vec<ArrayRef> {
    values.iter().map(alike).collect()
}

/// Whether an aggregate takes each of its values once, and has floats among its arguments.
pub(crate) fn is_once(args: &AccumulatorArgs<'_>) -> bool {
    args.is_distinct && args.expr_fields.iter().any(|field| field.data_type().is_floating())
}

/// An accumulator that is given such values.
#[derive(Debug)]
pub(crate) struct Alike(pub(crate) Box<dyn Accumulator>);

#[warn(clippy::missing_trait_methods)]
impl Accumulator for Alike {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.update_batch(&all_alike(values))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.0.evaluate()
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.0.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.0.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.retract_batch(&all_alike(values))
    }

    fn supports_retract_batch(&self) -> bool {
        self.0.supports_retract_batch()
    }
}

/// The same of groups.
pub(crate) struct AlikeGroups(pub(crate) Box<dyn GroupsAccumulator>);

#[warn(clippy::missing_trait_methods)]
impl GroupsAccumulator for AlikeGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.0.update_batch(&all_alike(values), group_indices, opt_filter, total_num_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        self.0.evaluate(emit_to)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.0.state(emit_to)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        self.0.merge_batch(states, group_indices, total_num_groups)
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.0.convert_to_state(&all_alike(values), opt_filter)
    }

    fn size(&self) -> usize {
        self.0.size()
    }
}
