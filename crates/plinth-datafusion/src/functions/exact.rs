//! `sum_exact(x)` and `avg_exact(x)`: sums and means of floats that depend neither on the order of the rows nor on how they are
//! shared among threads.

mod sum;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow_array::builder::BinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BinaryArray, BooleanArray, Float64Array, UInt64Array};
use arrow_schema::{DataType, Field, FieldRef};
use datafusion_common::{Result, ScalarValue, internal_datafusion_err, internal_err, not_impl_err, plan_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::format_state_name;
use datafusion_expr::{Accumulator, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility};

use sum::ExactSum;

/// What becomes of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Sum,
    Average,
}

/// One of the two functions as the engine sees it.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ExactAggregate {
    kind: Kind,
    signature: Signature,
}

impl ExactAggregate {
    pub(super) fn sum() -> Self {
        Self { kind: Kind::Sum, signature: Signature::user_defined(Volatility::Immutable) }
    }

    pub(super) fn average() -> Self {
        Self { kind: Kind::Average, signature: Signature::user_defined(Volatility::Immutable) }
    }

    fn refuse_distinct(&self, distinct: bool) -> Result<()> {
        if distinct {
            not_impl_err!("{}(DISTINCT ...): leave out DISTINCT, or select it below", self.name())
        } else {
            Ok(())
        }
    }
}

impl AggregateUDFImpl for ExactAggregate {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Sum => "sum_exact",
            Kind::Average => "avg_exact",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        use DataType::{Float16, Float32, Float64, Int8, Int16, Int32, Null, UInt8, UInt16, UInt32};
        match types {
            [Float64 | Float32 | Float16 | Int8 | Int16 | Int32 | UInt8 | UInt16 | UInt32 | Null] => Ok(vec![Float64]),
            [other] if other.is_numeric() => {
                let name = self.name();
                plan_err!(
                    "{name} takes floats, and a double does not hold every {other}; sum is exact for it, or cast it to DOUBLE"
                )
            }
            [other] => plan_err!("{} takes floats, not {other}", self.name()),
            _ => plan_err!("{} takes one argument; it was given {}", self.name(), types.len()),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let field = |name: &str, data_type| Arc::new(Field::new(format_state_name(args.name, name), data_type, false));
        Ok(vec![field("sum", DataType::Binary), field("count", DataType::UInt64)])
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.refuse_distinct(args.is_distinct)?;
        Ok(Box::new(One { kind: self.kind, sum: ExactSum::default(), count: 0 }))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        !args.is_distinct
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        self.refuse_distinct(args.is_distinct)?;
        Ok(Box::new(Groups { kind: self.kind, sums: Vec::new(), counts: Vec::new(), heap: 0 }))
    }
}

impl Kind {
    /// The result of a group, null where it is of no values.
    fn of(self, sum: &ExactSum, count: u64) -> Option<f64> {
        match self {
            _ if count == 0 => None,
            Self::Sum => Some(sum.sum()),
            Self::Average => Some(sum.mean(count)),
        }
    }
}

/// The values of an argument.
fn floats(values: &[ArrayRef]) -> Result<&Float64Array> {
    let floats = values.first().and_then(|values| values.as_primitive_opt::<Float64Type>());
    floats.ok_or_else(|| internal_datafusion_err!("an exact sum was given no floats"))
}

/// Sums and counts on their way.
fn states(values: &[ArrayRef]) -> Result<(&BinaryArray, &UInt64Array)> {
    let states = match values {
        [sums, counts] => sums.as_binary_opt::<i32>().zip(counts.as_primitive_opt::<UInt64Type>()),
        _ => None,
    };
    states.ok_or_else(|| internal_datafusion_err!("an exact sum was given no sums"))
}

fn unite(sum: &mut ExactSum, count: &mut u64, states: (&BinaryArray, &UInt64Array), row: usize) -> Result<()> {
    if !sum.unite_bytes(states.0.value(row)) {
        return internal_err!("an exact sum was given what is none");
    }
    *count += states.1.value(row);
    Ok(())
}

/// All values in one sum.
#[derive(Debug)]
struct One {
    kind: Kind,
    sum: ExactSum,
    count: u64,
}

impl Accumulator for One {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = floats(values)?;
        match values.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => values.values().iter().for_each(|value| self.sum.add(*value)),
            Some(_) => values.iter().flatten().for_each(|value| self.sum.add(value)),
        }
        self.count += (values.len() - values.null_count()) as u64;
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(self.kind.of(&self.sum, self.count)))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.sum.heap_size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Binary(Some(self.sum.to_bytes())), ScalarValue::UInt64(Some(self.count))])
    }

    fn merge_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let states = states(values)?;
        (0..states.0.len()).try_for_each(|row| unite(&mut self.sum, &mut self.count, states, row))
    }
}

/// A sum for each group.
#[derive(Debug)]
struct Groups {
    kind: Kind,
    sums: Vec<ExactSum>,
    counts: Vec<u64>,
    /// Bytes of the sums beyond their own.
    heap: usize,
}

impl Groups {
    fn resize(&mut self, groups: usize) {
        self.sums.resize_with(groups, ExactSum::default);
        self.counts.resize(groups, 0);
    }

    fn take(&mut self, emit_to: EmitTo) -> (Vec<ExactSum>, Vec<u64>) {
        let (sums, counts) = (emit_to.take_needed(&mut self.sums), emit_to.take_needed(&mut self.counts));
        self.heap = self.sums.iter().map(ExactSum::heap_size).sum();
        (sums, counts)
    }
}

/// Sums and counts as they travel.
fn to_states<'a>(sums: impl Iterator<Item = &'a ExactSum>, counts: Vec<u64>) -> Vec<ArrayRef> {
    let mut bytes = BinaryBuilder::with_capacity(counts.len(), 26 * counts.len());
    sums.for_each(|sum| bytes.append_value(sum.to_bytes()));
    vec![Arc::new(bytes.finish()), Arc::new(UInt64Array::from(counts))]
}

impl GroupsAccumulator for Groups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.resize(total_num_groups);
        let values = floats(values)?;
        for (row, (value, group)) in values.values().iter().zip(group_indices).enumerate() {
            if values.is_null(row) || opt_filter.is_some_and(|filter| filter.is_null(row) || !filter.value(row)) {
                continue;
            }
            if let (Some(sum), Some(count)) = (self.sums.get_mut(*group), self.counts.get_mut(*group)) {
                let before = sum.heap_size();
                sum.add(*value);
                self.heap += sum.heap_size().saturating_sub(before);
                *count += 1;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let (sums, counts) = self.take(emit_to);
        let results = sums.iter().zip(counts).map(|(sum, count)| self.kind.of(sum, count));
        Ok(Arc::new(results.collect::<Float64Array>()))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let (sums, counts) = self.take(emit_to);
        Ok(to_states(sums.iter(), counts))
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        self.resize(total_num_groups);
        let states = states(values)?;
        for (row, group) in group_indices.iter().enumerate() {
            if let (Some(sum), Some(count)) = (self.sums.get_mut(*group), self.counts.get_mut(*group)) {
                let before = sum.heap_size();
                unite(sum, count, states, row)?;
                self.heap += sum.heap_size().saturating_sub(before);
            }
        }
        Ok(())
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let values = floats(values)?;
        let mut sums = vec![ExactSum::default(); values.len()];
        let mut counts = vec![0; values.len()];
        for (row, (sum, count)) in sums.iter_mut().zip(&mut counts).enumerate() {
            let counts = opt_filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
            if counts && values.is_valid(row) {
                sum.add(values.value(row));
                *count = 1;
            }
        }
        Ok(to_states(sums.iter(), counts))
    }

    fn size(&self) -> usize {
        size_of::<Self>()
            + self.sums.capacity() * size_of::<ExactSum>()
            + self.counts.capacity() * size_of::<u64>()
            + self.heap
    }
}
