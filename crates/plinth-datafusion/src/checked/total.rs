//! `sum(x)` of integers, exactly: an error if the result leaves its type, whatever the sums on the way do.
//!
//! The state is the engine's own of decimals of 38 digits, which no number of integers leaves.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Decimal128Array, Int64Array, UInt64Array};
use arrow_schema::{DataType, Field, FieldRef};
use datafusion_common::{Result, ScalarValue, exec_datafusion_err, internal_err};
use datafusion_expr::expr::AggregateFunction;
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::udf_eq::UdfEq;
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, EmitTo, Expr, GroupsAccumulator, Operator,
    ReversedUDAF, SetMonotonicity, Signature, StatisticsArgs,
};

const WIDE: DataType = DataType::Decimal128(38, 0);

/// The engine's `sum`, with exact sums of integers.
pub fn checked_sum(inner: &AggregateUDF) -> AggregateUDF {
    Total { inner: Arc::clone(inner.inner()).into() }.into()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Total {
    inner: UdfEq<Arc<dyn AggregateUDFImpl>>,
}

/// The result's field, if it is one of integers.
fn of_integers(field: &FieldRef) -> Option<FieldRef> {
    matches!(field.data_type(), DataType::Int64 | DataType::UInt64)
        .then(|| Arc::new(Field::new(field.name(), WIDE, true)))
}

impl AggregateUDFImpl for Total {
    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if let (DataType::Decimal128(..), false) = (args.return_field.data_type(), args.is_distinct) {
            return Ok(Box::new(OfDecimals { sum: None, result: args.return_field.data_type().clone() }));
        }
        let Some(return_field) = of_integers(&args.return_field) else { return self.inner.accumulator(args) };
        let result = args.return_field.data_type().clone();
        let inner = self.inner.accumulator(AccumulatorArgs { return_field, ..args })?;
        Ok(Box::new(One { inner, result }))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let Some(return_field) = of_integers(&args.return_field) else {
            return self.inner.create_sliding_accumulator(args);
        };
        let result = args.return_field.data_type().clone();
        if args.is_distinct {
            return Ok(Box::new(Distinct { counts: HashMap::new(), sum: 0, result }));
        }
        let inner = self.inner.create_sliding_accumulator(AccumulatorArgs { return_field, ..args })?;
        Ok(Box::new(One { inner, result }))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        let Some(return_field) = of_integers(&args.return_field) else {
            return self.inner.create_groups_accumulator(args);
        };
        let result = args.return_field.data_type().clone();
        let inner = self.inner.create_groups_accumulator(AccumulatorArgs { return_field, ..args })?;
        Ok(Box::new(Groups { inner, result }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        match of_integers(&args.return_field) {
            Some(return_field) => self.inner.state_fields(StateFieldsArgs { return_field, ..args }),
            None => self.inner.state_fields(args),
        }
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arg_types)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.inner.order_sensitivity()
    }

    fn simplify_expr_op_literal(
        &self,
        function: &AggregateFunction,
        arg: &Expr,
        operator: Operator,
        literal: &Expr,
        arg_is_left: bool,
    ) -> Result<Option<Expr>> {
        self.inner.simplify_expr_op_literal(function, arg, operator, literal, arg_is_left)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn value_from_stats(&self, statistics: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        // The engine adds up statistics as it adds up values.
        if statistics.return_type.is_integer() { None } else { self.inner.value_from_stats(statistics) }
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.inner.set_monotonicity(data_type)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}

/// Integers of 64 bits as decimals.
fn widened(values: &ArrayRef) -> Result<ArrayRef> {
    let (numbers, nulls): (Vec<i128>, _) = match values.data_type() {
        DataType::Int64 => {
            let values = values.as_primitive::<Int64Type>();
            (values.values().iter().map(|&value| value.into()).collect(), values.nulls().cloned())
        }
        DataType::UInt64 => {
            let values = values.as_primitive::<UInt64Type>();
            (values.values().iter().map(|&value| value.into()).collect(), values.nulls().cloned())
        }
        other => return internal_err!("a sum of integers was given {other}"),
    };
    Ok(Arc::new(Decimal128Array::new(numbers.into(), nulls).with_data_type(WIDE)))
}

fn all_widened(values: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
    values.iter().map(widened).collect()
}

/// Sums as integers of their type.
fn narrowed(sums: &ArrayRef, result: &DataType) -> Result<ArrayRef> {
    let Some(sums) = sums.as_primitive_opt::<Decimal128Type>() else {
        return internal_err!("a sum of integers is {}", sums.data_type());
    };
    Ok(match result {
        DataType::Int64 => {
            let narrow = |sum: i128| i64::try_from(sum).map_err(|_| out_of_range(sum));
            Arc::new(Int64Array::from_iter(each(sums, narrow)?))
        }
        _ => {
            let narrow = |sum: i128| u64::try_from(sum).map_err(|_| out_of_range(sum));
            Arc::new(UInt64Array::from_iter(each(sums, narrow)?))
        }
    })
}

fn each<T>(sums: &Decimal128Array, narrow: impl Fn(i128) -> Result<T>) -> Result<Vec<Option<T>>> {
    sums.iter().map(|sum| sum.map(&narrow).transpose()).collect()
}

fn out_of_range(sum: i128) -> datafusion_common::DataFusionError {
    exec_datafusion_err!("a sum is {sum}, out of the range of 64 bits: sum(CAST(x AS DECIMAL(38, 0))) holds it")
}

#[derive(Debug)]
struct One {
    inner: Box<dyn Accumulator>,
    result: DataType,
}

impl Accumulator for One {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.update_batch(&all_widened(values)?)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = self.inner.evaluate()?.to_array()?;
        ScalarValue::try_from_array(&narrowed(&sum, &self.result)?, 0)
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.retract_batch(&all_widened(values)?)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

/// The sum of decimals, an error from the moment on that it leaves 128 bits, where the engine's wraps around.
#[derive(Debug)]
struct OfDecimals {
    sum: Option<i128>,
    result: DataType,
}

impl Accumulator for OfDecimals {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return internal_err!("a sum of {} columns", values.len()) };
        let Some(values) = values.as_primitive_opt::<Decimal128Type>() else {
            return internal_err!("a sum of decimals was given {}", values.data_type());
        };
        if values.null_count() == values.len() {
            return Ok(());
        }
        let sum = self.sum.unwrap_or(0);
        let all = match values.null_count() {
            0 => values.values().iter().try_fold(sum, |sum, value| sum.checked_add(*value)),
            _ => values.iter().flatten().try_fold(sum, i128::checked_add),
        };
        self.sum = Some(all.ok_or_else(|| exec_datafusion_err!("a sum of decimals has more than 38 digits"))?);
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = Decimal128Array::from_iter([self.sum]).with_data_type(self.result.clone());
        ScalarValue::try_from_array(&sum, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}

/// The sum of the different integers of a frame that slides.
#[derive(Debug)]
struct Distinct {
    /// How often each is in the frame.
    counts: HashMap<i128, usize>,
    sum: i128,
    result: DataType,
}

impl Distinct {
    fn each(values: &[ArrayRef], mut visit: impl FnMut(i128) -> Result<()>) -> Result<()> {
        for values in values {
            widened(values)?.as_primitive::<Decimal128Type>().iter().flatten().try_for_each(&mut visit)?;
        }
        Ok(())
    }
}

impl Accumulator for Distinct {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        Self::each(values, |value| {
            let count = self.counts.entry(value).or_default();
            if *count == 0 {
                self.sum += value;
            }
            *count += 1;
            Ok(())
        })
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        Self::each(values, |value| {
            let Some(count) = self.counts.get_mut(&value) else {
                return internal_err!("{value} left a frame that it was not in");
            };
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&value);
                self.sum -= value;
            }
            Ok(())
        })
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = (!self.counts.is_empty()).then_some(self.sum);
        let sum = Decimal128Array::from_iter([sum]).with_data_type(WIDE);
        ScalarValue::try_from_array(&narrowed(&(Arc::new(sum) as ArrayRef), &self.result)?, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.counts.capacity() * size_of::<(i128, usize)>()
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

struct Groups {
    inner: Box<dyn GroupsAccumulator>,
    result: DataType,
}

impl GroupsAccumulator for Groups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.inner.update_batch(&all_widened(values)?, groups, filter, total)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        narrowed(&self.inner.evaluate(emit_to)?, &self.result)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.inner.state(emit_to)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.inner.merge_batch(states, groups, total)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.inner.convert_to_state(&all_widened(values)?, filter)
    }

    fn size(&self) -> usize {
        self.inner.size()
    }
}
