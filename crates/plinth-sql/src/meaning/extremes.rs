//! `min` and `max` of floats, by the order that ORDER BY has: NaN is the largest.
//!
//! The engine starts the groups at the largest finite number, so that the least of nothing but infinities is finite; by groups it
//! takes NaN for smaller or larger depending on what came before; and NaN with a sign, which is what a division of zero by
//! zero gives, comes before all numbers. Here floats become integers of their order, and the engine's accumulators of integers do
//! the rest.

mod intervals;
mod nested;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, BooleanArray};
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::min_max::{Max, Min};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator, ReversedUDAF,
    SetMonotonicity, Signature, StatisticsArgs,
};

use super::nested::has_order;
use intervals::{Longest, Sliding};
use nested::Furthest;

/// `min` and `max`, to take the places of the engine's.
pub(super) fn functions() -> [AggregateUDF; 2] {
    [Extreme(Min::new()).into(), Extreme(Max::new()).into()]
}

/// One of them, around the engine's.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme<F>(F);

impl<F: AggregateUDFImpl + std::hash::Hash + Eq> Extreme<F> {
    fn greatest(&self) -> bool {
        self.0.name() == "max"
    }

    /// Runs with the arguments for integers, if they are for floats; else as they are.
    fn with<T>(args: AccumulatorArgs, run: impl FnOnce(AccumulatorArgs) -> Result<T>) -> Result<(Option<DataType>, T)> {
        let float = args.return_field.data_type().clone();
        let Some(order) = order_type(&float) else { return Ok((None, run(args)?)) };
        let field = |name: &str| -> FieldRef { Arc::new(Field::new(name, order.clone(), true)) };
        let fields = [field("value")];
        let args = AccumulatorArgs { return_field: field(args.return_field.name()), expr_fields: &fields, ..args };
        Ok((Some(float), run(args)?))
    }
}

impl<F: AggregateUDFImpl + std::hash::Hash + Eq> AggregateUDFImpl for Extreme<F> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.0.return_type(arg_types)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if matches!(args.return_field.data_type(), DataType::Interval(_)) {
            return Ok(Box::new(Longest::new(args.return_field.data_type(), self.greatest())?));
        }
        if has_order(args.return_field.data_type()) {
            return Ok(Box::new(Furthest::new(args.return_field.data_type(), self.greatest(), false)?));
        }
        let (float, inner) = Self::with(args, |args| self.0.accumulator(args))?;
        Ok(match float {
            Some(float) => Box::new(OfFloats { float, inner }),
            None => inner,
        })
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.0.state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        let of = args.return_field.data_type();
        !matches!(of, DataType::Interval(_)) && !has_order(of) && self.0.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let (float, inner) = Self::with(args, |args| self.0.create_groups_accumulator(args))?;
        Ok(match float {
            Some(float) => Box::new(GroupsOfFloats { float, inner }),
            None => inner,
        })
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if matches!(args.return_field.data_type(), DataType::Interval(_)) {
            return Ok(Box::new(Sliding::new(args.return_field.data_type(), self.greatest())?));
        }
        if has_order(args.return_field.data_type()) {
            return Ok(Box::new(Furthest::new(args.return_field.data_type(), self.greatest(), true)?));
        }
        let (float, inner) = Self::with(args, |args| self.0.create_sliding_accumulator(args))?;
        Ok(match float {
            Some(float) => Box::new(OfFloats { float, inner }),
            None => inner,
        })
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.0.order_sensitivity()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.0.coerce_types(arg_types)
    }

    fn is_descending(&self) -> Option<bool> {
        self.0.is_descending()
    }

    fn value_from_stats(&self, args: &StatisticsArgs) -> Option<ScalarValue> {
        self.0.value_from_stats(args)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.0.documentation()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.0.set_monotonicity(data_type)
    }
}

/// The integers that stand for floats.
fn order_type(float: &DataType) -> Option<DataType> {
    match float {
        DataType::Float16 => Some(DataType::Int16),
        DataType::Float32 => Some(DataType::Int32),
        DataType::Float64 => Some(DataType::Int64),
        _ => None,
    }
}

/// Floats with the integers of their bits, which order numbers without a sign as they are, and others the other way round.
macro_rules! order {
    ($array:expr, $float:ty, $integer:ty) => {
        Arc::new($array.as_primitive::<$float>().unary::<_, $integer>(|value| {
            if value.is_nan() {
                return <$float as ArrowPrimitiveType>::Native::NAN.to_bits().cast_signed();
            }
            flip(value.to_bits().cast_signed())
        })) as ArrayRef
    };
}

macro_rules! value {
    ($array:expr, $float:ty, $integer:ty) => {
        Arc::new(
            $array.as_primitive::<$integer>().unary::<_, $float>(|order| {
                <$float as ArrowPrimitiveType>::Native::from_bits(flip(order).cast_unsigned())
            }),
        ) as ArrayRef
    };
}

/// A number with a sign among its bits, in the place of its order, and back.
fn flip<T: Flip>(bits: T) -> T {
    bits.flip()
}

trait Flip {
    fn flip(self) -> Self;
}

macro_rules! flips {
    ($($integer:ty),*) => {
        $(impl Flip for $integer {
            fn flip(self) -> Self {
                if self < 0 { self ^ Self::MAX } else { self }
            }
        })*
    };
}

flips!(i16, i32, i64);

/// The order of floats as integers; other arrays as they are.
fn to_order(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float16 => order!(array, Float16Type, Int16Type),
        DataType::Float32 => order!(array, Float32Type, Int32Type),
        DataType::Float64 => order!(array, Float64Type, Int64Type),
        _ => Arc::clone(array),
    }
}

/// The floats that have a place in the order.
fn from_order(array: &ArrayRef, float: &DataType) -> ArrayRef {
    match float {
        DataType::Float16 => value!(array, Float16Type, Int16Type),
        DataType::Float32 => value!(array, Float32Type, Int32Type),
        DataType::Float64 => value!(array, Float64Type, Int64Type),
        _ => Arc::clone(array),
    }
}

fn all_to_order(arrays: &[ArrayRef]) -> Vec<ArrayRef> {
    arrays.iter().map(to_order).collect()
}

#[derive(Debug)]
struct OfFloats {
    float: DataType,
    inner: Box<dyn Accumulator>,
}

impl OfFloats {
    fn value(&self, order: &ScalarValue) -> Result<ScalarValue> {
        ScalarValue::try_from_array(&from_order(&order.to_array()?, &self.float), 0)
    }
}

impl Accumulator for OfFloats {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.update_batch(&all_to_order(values))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let order = self.inner.evaluate()?;
        self.value(&order)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.inner.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()?.iter().map(|order| self.value(order)).collect()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(&all_to_order(states))
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.retract_batch(&all_to_order(values))
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

struct GroupsOfFloats {
    float: DataType,
    inner: Box<dyn GroupsAccumulator>,
}

impl GroupsAccumulator for GroupsOfFloats {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.inner.update_batch(&all_to_order(values), group_indices, filter, total)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        Ok(from_order(&self.inner.evaluate(emit_to)?, &self.float))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(self.inner.state(emit_to)?.iter().map(|order| from_order(order, &self.float)).collect())
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total: usize) -> Result<()> {
        self.inner.merge_batch(&all_to_order(values), group_indices, total)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let order = self.inner.convert_to_state(&all_to_order(values), filter)?;
        Ok(order.iter().map(|order| from_order(order, &self.float)).collect())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.inner.size()
    }
}
