//! `mode(x)` and `histogram(x)`: how often each value occurs.
//!
//! Values of all groups are kept once, as bytes that order as they do; what a group has is the number of a value and a count.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Int64Array, ListArray, MapArray, StructArray, UInt64Array, new_empty_array,
};
use arrow_buffer::{ArrowNativeType, NullBuffer, OffsetBuffer};
use arrow_cast::cast;
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{DataType, Field, FieldRef, Fields};
use datafusion_common::{Result, ScalarValue, internal_err, not_impl_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::format_state_name;
use datafusion_expr::{Accumulator, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility};

use crate::alike::alike;

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

fn item(of: &DataType) -> FieldRef {
    Arc::new(Field::new_list_field(of.clone(), true))
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
            Arc::new(Field::new(format_state_name(args.name, name), DataType::List(item(&of)), true))
        };
        Ok(vec![list("values", value.data_type().clone()), list("counts", DataType::Int64)])
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Alone(self.counts(&args)?)))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(self.counts(&args)?))
    }
}

impl Counting {
    fn counts(&self, args: &AccumulatorArgs<'_>) -> Result<Counts> {
        if args.is_distinct {
            return not_impl_err!("{}(DISTINCT ...): each value would occur once", self.name());
        }
        let [value] = args.expr_fields else { return internal_err!("{}: takes one argument", self.name()) };
        Counts::new(self.kind, value.data_type())
    }
}

/// The counts of groups.
#[derive(Debug)]
struct Counts {
    kind: Kind,
    value: DataType,
    converter: RowConverter,
    /// Each value that occurs, once.
    values: Rows,
    numbers: HashMap<Box<[u8]>, u32>,
    /// Bytes of the names in `numbers`.
    heap: usize,
    /// How often a group has a value, by the numbers of both.
    counts: HashMap<(u32, u32), i64>,
    groups: usize,
}

/// Counts of some groups: those of one group lie together, the least value first.
struct Sorted {
    lengths: Vec<usize>,
    /// Numbers of values, and their counts.
    counts: Vec<(u32, i64)>,
}

impl Counts {
    fn new(kind: Kind, value: &DataType) -> Result<Self> {
        let converter = RowConverter::new(vec![SortField::new(value.clone())])?;
        let (numbers, counts) = (HashMap::new(), HashMap::new());
        let values = converter.empty_rows(0, 0);
        Ok(Self { kind, value: value.clone(), converter, values, numbers, heap: 0, counts, groups: 0 })
    }

    /// Counts values: row, group and how often.
    fn add(&mut self, values: &ArrayRef, found: impl Iterator<Item = (usize, usize, i64)>) -> Result<()> {
        let rows = self.converter.convert_columns(&[alike(values)])?;
        for (row, group, count) in found.filter(|(row, ..)| values.is_valid(*row)) {
            let value = rows.row(row);
            let number = match self.numbers.get(value.as_ref()) {
                Some(number) => *number,
                None => {
                    let number = narrow(self.numbers.len())?;
                    self.values.push(value);
                    self.heap += value.as_ref().len();
                    self.numbers.insert(value.as_ref().into(), number);
                    number
                }
            };
            *self.counts.entry((narrow(group)?, number)).or_default() += count;
        }
        Ok(())
    }

    /// The counts of the groups that leave.
    fn take(&mut self, emit: EmitTo) -> Result<Sorted> {
        let leaving = match emit {
            EmitTo::All => self.groups,
            EmitTo::First(groups) => groups,
        };
        let first = narrow(leaving)?;
        let all = std::mem::take(&mut self.counts);
        let mut taken = Vec::with_capacity(if leaving == self.groups { all.len() } else { 0 });
        for ((group, number), count) in all {
            match group.checked_sub(first) {
                Some(group) => drop(self.counts.insert((group, number), count)),
                None => taken.push((group, number, count)),
            }
        }
        self.groups -= leaving;
        Ok(self.sorted(leaving, taken))
    }

    fn sorted(&self, groups: usize, mut taken: Vec<(u32, u32, i64)>) -> Sorted {
        let value = |number: u32| self.values.row(number as usize);
        taken.sort_unstable_by(|(group, one, _), (other, another, _)| {
            group.cmp(other).then_with(|| value(*one).cmp(&value(*another)))
        });
        let mut lengths = vec![0; groups];
        for (group, ..) in &taken {
            if let Some(length) = lengths.get_mut(*group as usize) {
                *length += 1;
            }
        }
        Sorted { lengths, counts: taken.into_iter().map(|(_, number, count)| (number, count)).collect() }
    }

    /// Lets values go that no group has any more.
    fn forget(&mut self) {
        if self.counts.is_empty() {
            self.values = self.converter.empty_rows(0, 0);
            (self.numbers, self.heap) = (HashMap::new(), 0);
        }
    }

    /// Values by their numbers.
    fn values_of(&self, numbers: impl Iterator<Item = u32>) -> Result<ArrayRef> {
        let values = self.converter.convert_rows(numbers.map(|number| self.values.row(number as usize)))?;
        match values.into_iter().next() {
            // Those of a dictionary come without one.
            Some(values) if *values.data_type() != self.value => Ok(cast(&values, &self.value)?),
            Some(values) => Ok(values),
            None => Ok(new_empty_array(&self.value)),
        }
    }

    fn answers(&self, sorted: Sorted) -> Result<ArrayRef> {
        match self.kind {
            Kind::Mode => self.modes(sorted),
            Kind::Histogram => self.maps(sorted),
        }
    }

    /// The value that each group has most often; NULL if it has none.
    fn modes(&self, sorted: Sorted) -> Result<ArrayRef> {
        let mut counts = sorted.counts.into_iter();
        let modes = sorted.lengths.into_iter().map(|length| {
            let of_group = counts.by_ref().take(length);
            of_group.reduce(|most, other| if other.1 > most.1 { other } else { most }).map(|(number, _)| number)
        });
        let modes: Vec<Option<u32>> = modes.collect();
        let values = self.values_of(modes.iter().flatten().copied())?;
        let mut next = 0..;
        let places: UInt64Array = modes.iter().map(|mode| mode.and_then(|_| next.next())).collect();
        Ok(arrow_select::take::take(&values, &places, None)?)
    }

    /// A map of each group, from its values to their counts; NULL if it has none.
    fn maps(&self, sorted: Sorted) -> Result<ArrayRef> {
        let DataType::Map(field, _) = map_of(&self.value) else { return internal_err!("a map is expected") };
        let keys = self.values_of(sorted.counts.iter().map(|(number, _)| *number))?;
        let counts: UInt64Array = sorted.counts.iter().map(|(_, count)| count.cast_unsigned()).collect();
        let entries = StructArray::try_new(entries(&self.value), vec![keys, Arc::new(counts)], None)?;
        let some: NullBuffer = sorted.lengths.iter().map(|length| *length > 0).collect();
        let offsets = OffsetBuffer::from_lengths(sorted.lengths);
        Ok(Arc::new(MapArray::try_new(field, offsets, entries, Some(some), false)?))
    }

    fn states(&self, sorted: Sorted) -> Result<Vec<ArrayRef>> {
        let values = self.values_of(sorted.counts.iter().map(|(number, _)| *number))?;
        let counts: Int64Array = sorted.counts.iter().map(|(_, count)| *count).collect();
        let offsets = OffsetBuffer::from_lengths(sorted.lengths);
        let values = ListArray::try_new(item(&self.value), offsets.clone(), values, None)?;
        let counts = ListArray::try_new(item(&DataType::Int64), offsets, Arc::new(counts), None)?;
        Ok(vec![Arc::new(values), Arc::new(counts)])
    }
}

/// A number of a group or a value, of which there are fewer than 2^32: each takes more than a byte of memory.
fn narrow(number: usize) -> Result<u32> {
    u32::try_from(number).or_else(|_| internal_err!("more than 2^32 groups or values"))
}

fn is_counted(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

impl GroupsAccumulator for Counts {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.groups = total_num_groups;
        let [values] = values else { return internal_err!("counts of one argument") };
        let rows = group_indices.iter().enumerate().map(|(row, group)| (row, *group, 1));
        self.add(values, rows.filter(|(row, ..)| is_counted(opt_filter, *row)))
    }

    fn merge_batch(&mut self, states: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        self.groups = total_num_groups;
        let [values, counts] = states else { return internal_err!("counts have two states") };
        let (values, counts) = (values.as_list::<i32>(), counts.as_list::<i32>());
        let lists = values.offsets().iter().zip(values.offsets().iter().skip(1));
        let places = group_indices.iter().enumerate().zip(lists).filter(|((list, _), _)| values.is_valid(*list));
        let starts = counts.offsets();
        let numbers = counts.values().as_primitive::<Int64Type>();
        let mut found = Vec::new();
        for ((list, group), (start, end)) in places {
            let from = starts.get(list).map_or(0, |start| start.as_usize());
            for (row, at) in (start.as_usize()..end.as_usize()).zip(from..) {
                found.push((row, *group, numbers.value(at)));
            }
        }
        self.add(values.values(), found.into_iter())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let sorted = self.take(emit_to)?;
        let answers = self.answers(sorted);
        self.forget();
        answers
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let sorted = self.take(emit_to)?;
        let states = self.states(sorted);
        self.forget();
        states
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let [values] = values else { return internal_err!("counts of one argument") };
        let is_counted = |row| values.is_valid(row) && is_counted(opt_filter, row);
        let counted: Vec<u64> = (0..values.len()).filter(|row| is_counted(*row)).map(|row| row as u64).collect();
        let offsets = OffsetBuffer::from_lengths((0..values.len()).map(|row| usize::from(is_counted(row))));
        let counts = Int64Array::from(vec![1; counted.len()]);
        let values = arrow_select::take::take(values, &UInt64Array::from(counted), None)?;
        let values = ListArray::try_new(item(&self.value), offsets.clone(), values, None)?;
        let counts = ListArray::try_new(item(&DataType::Int64), offsets, Arc::new(counts), None)?;
        Ok(vec![Arc::new(values), Arc::new(counts)])
    }

    fn size(&self) -> usize {
        let name = size_of::<(Box<[u8]>, u32)>() + 1;
        let count = size_of::<((u32, u32), i64)>() + 1;
        size_of_val(self)
            + self.values.size()
            + self.heap
            + self.numbers.capacity() * name
            + self.counts.capacity() * count
    }
}

/// The counts of all rows as of one group. They stay as they are asked for: of a window they go on.
#[derive(Debug)]
struct Alone(Counts);

impl Alone {
    fn sorted(&self) -> Sorted {
        let counts = self.0.counts.iter().map(|((group, number), count)| (*group, *number, *count));
        self.0.sorted(1, counts.collect())
    }
}

impl Accumulator for Alone {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let rows = values.first().map_or(0, |values| values.len());
        GroupsAccumulator::update_batch(&mut self.0, values, &vec![0; rows], None, 1)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let rows = states.first().map_or(0, |states| states.len());
        GroupsAccumulator::merge_batch(&mut self.0, states, &vec![0; rows], 1)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.0.states(self.sorted())?.iter().map(|state| ScalarValue::try_from_array(state, 0)).collect()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        ScalarValue::try_from_array(&self.0.answers(self.sorted())?, 0)
    }

    fn size(&self) -> usize {
        GroupsAccumulator::size(&self.0)
    }
}
