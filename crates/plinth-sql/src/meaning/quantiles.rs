//! `percentile_cont` between two values, to the last digit: the engine cuts the share of the upper one off behind six.
//!
//! It keeps the values themselves, and gives them as its state. Of these the quantile is taken here.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, ListArray};
use arrow_schema::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue, internal_err, plan_err};
use datafusion::functions_aggregate::percentile_cont::PercentileCont;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator, Signature,
};
use datafusion::physical_expr::expressions::Literal;

/// `percentile_cont`, to take the place of the engine's.
pub(super) fn function() -> AggregateUDF {
    Continuous(PercentileCont::new()).into()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Continuous(PercentileCont);

impl Continuous {
    /// The share of the values that are to be smaller.
    fn share(args: &AccumulatorArgs) -> Result<f64> {
        let Some(literal) = args.exprs.get(1).and_then(|expr| expr.downcast_ref::<Literal>()) else {
            return plan_err!("percentile_cont: takes a constant between 0 and 1");
        };
        let ScalarValue::Float64(Some(share)) = literal.value().cast_to(&DataType::Float64)? else {
            return plan_err!("percentile_cont: takes a number between 0 and 1");
        };
        let descending = args.order_bys.first().is_some_and(|by| by.options.descending);
        Ok(if descending { 1.0 - share } else { share })
    }
}

impl AggregateUDFImpl for Continuous {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn aliases(&self) -> &[String] {
        self.0.aliases()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.0.return_type(arg_types)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.0.state_fields(args)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let (share, of) = (Self::share(&args)?, args.return_field.data_type().clone());
        let is_plain = !args.is_distinct && !args.expr_fields.first().is_some_and(|field| field.data_type().is_null());
        let inner = self.0.accumulator(args)?;
        Ok(if is_plain { Box::new(One { inner, share, of }) } else { inner })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.0.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let (share, of) = (Self::share(&args)?, args.return_field.data_type().clone());
        Ok(Box::new(Groups { inner: self.0.create_groups_accumulator(args)?, share, of }))
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.0.documentation()
    }
}

/// The values of groups, as the engine's state has them.
fn lists(state: &[ArrayRef]) -> Result<&ListArray> {
    match state.first().and_then(|state| state.as_list_opt::<i32>()) {
        Some(lists) => Ok(lists),
        None => internal_err!("percentile_cont: its state is no list"),
    }
}

/// The quantile of each list, in the type of its values.
fn quantiles(lists: &ListArray, share: f64, of: &DataType) -> Result<ArrayRef> {
    let found = lists.iter().map(|values| values.as_ref().map(|values| quantile(values, share)).transpose());
    let found = found.map(|value| value.map(Option::flatten)).collect::<Result<Float64Array>>()?;
    Ok(arrow_cast::cast(&found, of)?)
}

/// The value that a share of some values is below, by a line between the two next to it; NaN is the largest.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a place in a list"
)]
fn quantile(values: &ArrayRef, share: f64) -> Result<Option<f64>> {
    let mut values: Vec<f64> = match values.data_type() {
        DataType::Float16 => values.as_primitive::<Float16Type>().iter().flatten().map(f64::from).collect(),
        DataType::Float32 => values.as_primitive::<Float32Type>().iter().flatten().map(f64::from).collect(),
        DataType::Float64 => values.as_primitive::<Float64Type>().iter().flatten().collect(),
        other => return internal_err!("percentile_cont: of {other}"),
    };
    let Some(last) = values.len().checked_sub(1) else { return Ok(None) };
    let order = |a: &f64, b: &f64| (a.is_nan(), a).partial_cmp(&(b.is_nan(), b)).unwrap_or(std::cmp::Ordering::Equal);
    let place = share * last as f64;
    let (below, part) = ((place.floor() as usize).min(last), place.fract());
    let (_, lower, above) = values.select_nth_unstable_by(below, order);
    let lower = *lower;
    Ok(Some(match above.iter().copied().min_by(order) {
        Some(upper) if part > 0.0 && upper.total_cmp(&lower).is_ne() => lower + (upper - lower) * part,
        _ => lower,
    }))
}

#[derive(Debug)]
struct One {
    inner: Box<dyn Accumulator>,
    share: f64,
    of: DataType,
}

impl Accumulator for One {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let state = self.inner.state()?;
        let state = state.iter().map(ScalarValue::to_array).collect::<Result<Vec<_>>>()?;
        let found = quantiles(lists(&state)?, self.share, &self.of)?;
        // The state took the values; a window goes on with them.
        self.inner.merge_batch(&state)?;
        ScalarValue::try_from_array(&found, 0)
    }

    fn size(&self) -> usize {
        // As much once more is held while a quantile is taken, by groups, too.
        size_of_val(self) + 2 * self.inner.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

struct Groups {
    inner: Box<dyn GroupsAccumulator>,
    share: f64,
    of: DataType,
}

impl GroupsAccumulator for Groups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        self.inner.update_batch(values, groups, filter, count)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        quantiles(lists(&self.inner.state(emit)?)?, self.share, &self.of)
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        self.inner.state(emit)
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.inner.merge_batch(values, groups, count)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.inner.convert_to_state(values, filter)
    }

    fn size(&self) -> usize {
        2 * self.inner.size()
    }
}
