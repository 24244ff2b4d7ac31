//! `mode(x)` and `histogram(x)`: how often each value occurs.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, MapArray, StructArray, UInt64Array};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, FieldRef, Fields};
use datafusion_common::utils::SingleRowListArrayBuilder;
use datafusion_common::{Result, ScalarValue, internal_err, not_impl_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::format_state_name;
use datafusion_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};

/// What becomes of the counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// The value that occurs most; the least of those.
    Mode,
    /// All values with their counts.
    Histogram,
}

/// One of the two functions.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Counting {
    kind: Kind,
    signature: Signature,
}

impl Counting {
    pub(super) fn mode() -> Self {
        Self { kind: Kind::Mode, signature: Signature::any(1, Volatility::Immutable) }
    }

    pub(super) fn histogram() -> Self {
        Self { kind: Kind::Histogram, signature: Signature::any(1, Volatility::Immutable) }
    }
}

fn entries(value: &DataType) -> Fields {
    vec![Field::new("key", value.clone(), false), Field::new("value", DataType::UInt64, true)].into()
}

fn map_of(value: &DataType) -> DataType {
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries(value)), false)), false)
}

impl AggregateUDFImpl for Counting {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Mode => "mode",
            Kind::Histogram => "histogram",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let [of] = types else { return internal_err!("{}: takes one argument", self.name()) };
        Ok(match self.kind {
            Kind::Mode => of.clone(),
            Kind::Histogram => map_of(of),
        })
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let [value] = args.input_fields else { return internal_err!("{}: takes one argument", self.name()) };
        let list = |name: &str, of: DataType| {
            Arc::new(Field::new(
                format_state_name(args.name, name),
                DataType::List(Arc::new(Field::new_list_field(of, true))),
                true,
            ))
        };
        Ok(vec![list("values", value.data_type().clone()), list("counts", DataType::Int64)])
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct {
            return not_impl_err!("{}(DISTINCT ...): each value would occur once", self.name());
        }
        let [value] = args.expr_fields else { return internal_err!("{}: takes one argument", self.name()) };
        let value = value.data_type().clone();
        Ok(Box::new(Counts { kind: self.kind, value, counts: HashMap::new(), heap: 0 }))
    }
}

#[derive(Debug)]
struct Counts {
    kind: Kind,
    value: DataType,
    counts: HashMap<ScalarValue, i64>,
    /// Bytes of the values.
    heap: usize,
}

impl Counts {
    fn add(&mut self, value: ScalarValue, count: i64) {
        let size = value.size();
        match self.counts.get_mut(&value) {
            Some(known) => *known += count,
            None => {
                self.heap += size;
                self.counts.insert(value, count);
            }
        }
    }

    /// Values and counts, the least value first.
    fn sorted(&self) -> Vec<(&ScalarValue, i64)> {
        let mut sorted: Vec<_> = self.counts.iter().map(|(value, count)| (value, *count)).collect();
        sorted.sort_by(|(one, _), (other, _)| one.partial_cmp(other).unwrap_or(std::cmp::Ordering::Equal));
        sorted
    }
}

impl Accumulator for Counts {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return internal_err!("counts of one argument") };
        for row in (0..values.len()).filter(|row| values.is_valid(*row)) {
            let mut value = ScalarValue::try_from_array(values, row)?;
            // Not a part of the batch, which would be kept whole.
            value.compact();
            self.add(value, 1);
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [values, counts] = states else { return internal_err!("counts have two states") };
        let (values, counts) = (values.as_list::<i32>(), counts.as_list::<i32>());
        for (values, counts) in values.iter().zip(counts.iter()) {
            let (Some(values), Some(counts)) = (values, counts) else { continue };
            let counts = counts.as_primitive::<Int64Type>();
            for row in 0..values.len() {
                let mut value = ScalarValue::try_from_array(&values, row)?;
                value.compact();
                self.add(value, counts.value(row));
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let sorted = self.sorted();
        let counts: Int64Array = sorted.iter().map(|(_, count)| *count).collect();
        let values: Vec<ScalarValue> = sorted.into_iter().map(|(value, _)| value.clone()).collect();
        let values = ScalarValue::new_list_nullable(&values, &self.value);
        let counts = SingleRowListArrayBuilder::new(Arc::new(counts)).build_list_scalar();
        Ok(vec![ScalarValue::List(values), counts])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sorted = self.sorted();
        if self.kind == Kind::Mode {
            let most = sorted.iter().map(|(_, count)| *count).max();
            let found = sorted.iter().find(|(_, count)| Some(*count) == most);
            return found.map_or_else(|| ScalarValue::try_from(&self.value), |(value, _)| Ok((*value).clone()));
        }
        let DataType::Map(field, _) = map_of(&self.value) else { return internal_err!("a map is expected") };
        if sorted.is_empty() {
            return ScalarValue::try_from(&map_of(&self.value));
        }
        let counts: UInt64Array = sorted.iter().map(|(_, count)| count.cast_unsigned()).collect();
        let keys = ScalarValue::iter_to_array(sorted.into_iter().map(|(value, _)| value.clone()))?;
        let length = keys.len();
        let entries = StructArray::try_new(entries(&self.value), vec![keys, Arc::new(counts)], None)?;
        let map = MapArray::try_new(field, OffsetBuffer::from_lengths([length]), entries, None, false)?;
        Ok(ScalarValue::Map(Arc::new(map)))
    }

    fn size(&self) -> usize {
        let entry = size_of::<(ScalarValue, i64)>() + 1;
        size_of_val(self) + self.heap + self.counts.capacity() * entry
    }
}
