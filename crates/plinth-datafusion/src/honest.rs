//! Accumulators whose size says what their state takes on its way out.
//!
//! A GROUP BY that spills, or hands its groups on, has each accumulator give its state as values of their own. One that
//! holds a few numbers says so little of itself that a million fit into the memory for a hundred thousand: a list in an
//! array in a value takes a thousand bytes. Functions that keep the state of all groups together give arrays, and are left as they are.
//!
//! A window has a result for each row, and keeps those of a batch: `array_agg(x) OVER (ORDER BY y)` makes a list for each that has all before
//! it. What such results take together is held against the budget as they come.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray};
use arrow_schema::{DataType, FieldRef};
use datafusion_common::{DataFusionError, Result, ScalarValue};
use datafusion_expr::expr::{AggregateFunction, AggregateFunctionParams, WindowFunctionParams};
use datafusion_expr::function::{AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs};
use datafusion_expr::udf_eq::UdfEq;
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, Expr, GroupsAccumulator, Operator, ReversedUDAF,
    SetMonotonicity, Signature, StatisticsArgs,
};
use plinth_io::MemoryBudget;

use crate::alike::{self, Alike, AlikeGroups};
use crate::windows::sliding;

/// Bytes of a state's list as a value: the value, the array, its buffers and its elements' array.
const LIST: usize = 768;
/// Bytes of a state's other value.
const VALUE: usize = 64;

/// Results that a window keeps at most before it hands them on.
const RESULTS: usize = 8192;
/// Results that take less together are not asked for.
const SMALL: u64 = 1 << 20;
/// They are values first, and then an array of these.
const COPIES: u64 = 2;

/// A session's aggregate functions, each with accumulators that count what their state takes, and ask a budget for their results.
pub fn honest_aggregates<'a>(
    functions: impl IntoIterator<Item = &'a Arc<AggregateUDF>>,
    budget: &Arc<MemoryBudget>,
) -> Vec<AggregateUDF> {
    let honest = |inner: &Arc<AggregateUDF>| Honest {
        inner: Arc::clone(inner.inner()).into(),
        asked: Asked(Arc::clone(budget)),
    };
    functions.into_iter().map(|inner| honest(inner).into()).collect()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Honest {
    inner: UdfEq<Arc<dyn AggregateUDFImpl>>,
    asked: Asked,
}

/// Where memory is asked for, which tells no functions apart.
#[derive(Clone)]
struct Asked(Arc<MemoryBudget>);

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asked")
    }
}

impl PartialEq for Asked {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Asked {}

impl Hash for Asked {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

#[derive(Debug)]
struct Counted {
    inner: Box<dyn Accumulator>,
    /// What its state takes as values, beside what is in it.
    values: usize,
    asked: Asked,
    /// Results since a window has handed some on, and what they take.
    results: usize,
    bytes: u64,
}

impl Counted {
    fn new(inner: Box<dyn Accumulator>, values: usize, asked: &Asked) -> Self {
        Self { inner, values, asked: asked.clone(), results: 0, bytes: 0 }
    }

    /// Asks for a result that may be one of many.
    fn ask(&mut self, result: &ScalarValue) -> Result<()> {
        if self.results == RESULTS {
            (self.results, self.bytes) = (0, 0);
        }
        self.results += 1;
        let bytes = match result {
            ScalarValue::List(list) => list.values().to_data().get_slice_memory_size().unwrap_or(0),
            ScalarValue::Utf8(Some(text)) | ScalarValue::LargeUtf8(Some(text)) | ScalarValue::Utf8View(Some(text)) => {
                text.len()
            }
            _ => 0,
        };
        self.bytes = self.bytes.saturating_add(bytes as u64);
        if self.results == 1 || self.bytes <= SMALL {
            return Ok(());
        }
        let asked = self.asked.0.check("results for each row", self.bytes.saturating_mul(COPIES));
        asked.map_err(|error| DataFusionError::ResourcesExhausted(error.to_string()))
    }
}

/// A list of texts without the room that is left in its buffer: views are built in blocks of 16 KiB, and each group's state has one.
fn without_room(value: ScalarValue) -> ScalarValue {
    let ScalarValue::List(list) = value else { return value };
    let (field, offsets, values, nulls) = match list.value_type() {
        DataType::Utf8View | DataType::BinaryView => ListArray::clone(&list).into_parts(),
        _ => return ScalarValue::List(list),
    };
    let values: ArrayRef = match values.as_string_view_opt() {
        Some(texts) => Arc::new(texts.gc()),
        None => Arc::new(values.as_binary_view().gc()),
    };
    ListArray::try_new(field, offsets, values, nulls)
        .map_or(ScalarValue::List(list), |list| ScalarValue::List(Arc::new(list)))
}

#[warn(clippy::missing_trait_methods)]
impl Accumulator for Counted {
    fn size(&self) -> usize {
        self.inner.size() + self.values
    }

    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let result = self.inner.evaluate()?;
        self.ask(&result)?;
        Ok(result)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(self.inner.state()?.into_iter().map(without_room).collect())
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

#[warn(clippy::missing_trait_methods)] // All that is known of the function stays known.
impl AggregateUDFImpl for Honest {
    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let state = self.inner.state_fields(StateFieldsArgs {
            name: args.name,
            input_fields: args.expr_fields,
            return_field: Arc::clone(&args.return_field),
            ordering_fields: &[],
            is_distinct: args.is_distinct,
        });
        let size = |field: &FieldRef| if field.data_type().is_nested() { LIST } else { VALUE };
        // Values in order are kept together with what they are ordered by.
        let ordered = if args.order_bys.is_empty() { 0 } else { LIST };
        let values = state?.iter().map(size).sum::<usize>() + ordered;
        let is_once = alike::is_once(&args);
        let inner = self.inner.accumulator(args)?;
        let inner = if is_once { Box::new(Alike(inner)) } else { inner };
        Ok(Box::new(Counted::new(inner, values, &self.asked)))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let is_once = alike::is_once(&args);
        let inner = sliding::accumulator(&self.inner, args)?;
        let inner = if is_once { Box::new(Alike(inner)) } else { inner };
        Ok(Box::new(Counted::new(inner, 0, &self.asked)))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        let is_once = alike::is_once(&args);
        let inner = self.inner.create_groups_accumulator(args)?;
        Ok(if is_once { Box::new(AlikeGroups(inner)) } else { inner })
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn schema_name(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.inner.schema_name(params)
    }

    fn human_display(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.inner.human_display(params)
    }

    fn window_function_schema_name(&self, params: &WindowFunctionParams) -> Result<String> {
        self.inner.window_function_schema_name(params)
    }

    fn display_name(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.inner.display_name(params)
    }

    fn window_function_display_name(&self, params: &WindowFunctionParams) -> Result<String> {
        self.inner.window_function_display_name(params)
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arg_types)
    }

    fn return_field(&self, arg_fields: &[FieldRef]) -> Result<FieldRef> {
        self.inner.return_field(arg_fields)
    }

    fn is_nullable(&self) -> bool {
        self.inner.is_nullable()
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }

    fn with_beneficial_ordering(self: Arc<Self>, beneficial: bool) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        let ordered = Arc::clone(&*self.inner).with_beneficial_ordering(beneficial)?;
        Ok(ordered.map(|inner| {
            Arc::new(Self { inner: inner.into(), asked: self.asked.clone() }) as Arc<dyn AggregateUDFImpl>
        }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.inner.order_sensitivity()
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        self.inner.simplify()
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
        self.inner.reverse_expr()
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arg_types)
    }

    fn is_descending(&self) -> Option<bool> {
        self.inner.is_descending()
    }

    fn value_from_stats(&self, statistics: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        self.inner.value_from_stats(statistics)
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        self.inner.default_value(data_type)
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.inner.supports_null_handling_clause()
    }

    fn supports_within_group_clause(&self) -> bool {
        self.inner.supports_within_group_clause()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.inner.set_monotonicity(data_type)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_texts_are_no_larger_than_their_texts() {
        let text = |text: &str| ScalarValue::Utf8View(Some(text.to_owned()));
        let texts = [text("longer than the twelve bytes of a view"), text("short"), ScalarValue::Utf8View(None)];
        for (values, of) in [(&texts[..], DataType::Utf8View), (&[], DataType::Utf8View)] {
            let list = ScalarValue::List(ScalarValue::new_list_nullable(values, &of));
            let small = without_room(list.clone());
            assert_eq!(small, list);
            assert!(small.size() < 1_000, "{} of {}", small.size(), list.size());
        }
        let numbers = ScalarValue::List(ScalarValue::new_list_nullable(&[ScalarValue::from(1_i64)], &DataType::Int64));
        assert_eq!(without_room(numbers.clone()), numbers);
    }
}
