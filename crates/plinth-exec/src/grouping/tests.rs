use std::collections::{BTreeMap, BTreeSet};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, Float64Array, Int32Array, StringViewArray};
use arrow_schema::{DataType, Field};
use proptest::prelude::*;

use super::*;
use crate::aggregate::{Count, CountDistinct, Extreme, Mean, Reading, Sum, Which};
use crate::key::Meaning;

/// Two key columns, an argument and whether a filter leaves the row.
type Row = (Option<i32>, Option<String>, Option<i64>, bool);
type Key = (Option<i32>, Option<String>);

/// What a naive model says of a group.
#[derive(Debug, Default, PartialEq)]
struct Expected {
    rows: i64,
    filtered: i64,
    sum: Option<i64>,
    least: Option<i64>,
    greatest: Option<i64>,
    distinct: BTreeSet<i64>,
}

fn row() -> impl Strategy<Value = Row> {
    let number = prop_oneof![-4..4_i32, any::<i32>()];
    let text = prop_oneof!["[ab]{0,2}", "[a-c]{11,14}", Just("a long text that many rows have".to_owned())];
    // Such that the sum of all rows is none that is out of range.
    let argument = prop_oneof![-3..3_i64, any::<i64>().prop_map(|value| value >> 10)];
    (prop::option::of(number), prop::option::of(text), prop::option::of(argument), any::<bool>())
}

fn expected(rows: &[Row]) -> BTreeMap<Key, Expected> {
    let mut groups: BTreeMap<Key, Expected> = BTreeMap::new();
    for (number, text, argument, left) in rows {
        let group = groups.entry((*number, text.clone())).or_default();
        group.rows += 1;
        group.filtered += i64::from(*left);
        if let Some(argument) = argument {
            group.sum = Some(group.sum.unwrap_or(0) + *argument);
            group.least = Some(group.least.unwrap_or(*argument).min(*argument));
            group.greatest = Some(group.greatest.unwrap_or(*argument).max(*argument));
            group.distinct.insert(*argument);
        }
    }
    groups
}

fn chunk(rows: &[Row]) -> Chunk {
    let array = |array: ArrayRef| Vector::Array(array);
    let argument = array(Arc::new(arrow_array::Int64Array::from_iter(rows.iter().map(|row| row.2))));
    let filter = BooleanBuffer::from_iter(rows.iter().map(|row| row.3));
    let one = || vec![argument.clone()];
    Chunk {
        rows: rows.len(),
        keys: vec![
            array(Arc::new(Int32Array::from_iter(rows.iter().map(|row| row.0)))),
            array(Arc::new(StringViewArray::from_iter(rows.iter().map(|row| row.1.as_deref())))),
        ],
        arguments: vec![vec![], vec![], one(), one(), one(), one(), one(), one()],
        filters: vec![None, Some(filter), None, None, None, None, None, None],
    }
}

fn aggregates(budget: &Arc<MemoryBudget>) -> Vec<Box<dyn Aggregate>> {
    let integer = DataType::Int64;
    let item = Arc::new(Field::new("item", DataType::Int64, true));
    let distinct = Meaning::of(&integer, budget).unwrap();
    vec![
        Box::new(Count::rows()),
        Box::new(Count::rows()),
        Box::new(Sum::new(&integer, &integer, false).unwrap()),
        Box::new(Extreme::new(Which::Least, distinct.clone()).unwrap()),
        Box::new(Extreme::new(Which::Greatest, distinct.clone()).unwrap()),
        Box::new(CountDistinct::new(distinct, None, item, budget)),
        Box::new(Mean::new(&integer).unwrap()),
        Box::new(Reading::new(2, Box::new(Mean::new(&integer).unwrap()))),
    ]
}

/// Checks groups against the model, and takes them out of it.
fn compare(arrays: &[ArrayRef], expected: &mut BTreeMap<Key, Expected>) {
    let integer = |column: usize, row: usize| {
        let array = arrays[column].as_primitive::<Int64Type>();
        array.is_valid(row).then(|| array.value(row))
    };
    for row in 0..arrays[0].len() {
        let (numbers, texts) = (arrays[0].as_primitive::<Int32Type>(), arrays[1].as_string_view());
        let number = numbers.is_valid(row).then(|| numbers.value(row));
        let text = texts.is_valid(row).then(|| texts.value(row).to_owned());
        let group = expected.remove(&(number, text)).expect("a group of the model, once");
        assert_eq!(integer(2, row), Some(group.rows));
        assert_eq!(integer(3, row), Some(group.filtered));
        assert_eq!(integer(4, row), group.sum);
        assert_eq!(integer(5, row), group.least);
        assert_eq!(integer(6, row), group.greatest);
        assert_eq!(integer(7, row), i64::try_from(group.distinct.len()).ok());
        let means = arrays[8].as_primitive::<Float64Type>();
        assert_eq!(means.is_null(row), group.sum.is_none());
        assert_eq!(&arrays[8].slice(row, 1), &arrays[9].slice(row, 1));
    }
}

/// Numbers that are the same for all threads, as all of a query have them.
fn meanings(budget: &Arc<MemoryBudget>) -> Vec<Meaning> {
    [DataType::Int32, DataType::Utf8View].iter().map(|data_type| Meaning::of(data_type, budget).unwrap()).collect()
}

fn grouped(rows: &[Row], size: usize, meanings: &[Meaning], budget: &Arc<MemoryBudget>) -> Grouping {
    let mut grouping = Grouping::new(Keys::new(meanings.to_vec()), aggregates(budget), budget).unwrap();
    for rows in rows.chunks(size) {
        grouping.push(&chunk(rows)).unwrap();
    }
    grouping
}

fn merge(groupings: Vec<Grouping>) -> Merge {
    let division = Division::new(&groupings).unwrap();
    let divided = groupings.into_iter().map(|grouping| division.divide(grouping).unwrap()).collect();
    Merge::new(division, divided)
}

fn budget() -> Arc<MemoryBudget> {
    MemoryBudget::new(1 << 30)
}

#[test]
fn sums_are_in_range_or_an_error() {
    let row = |argument| (Some(1), None, Some(argument), true);
    let sum = |rows: &[Row]| {
        let budget = budget();
        let mut grouping = grouped(rows, 1, &meanings(&budget), &budget);
        let all = grouping.all();
        grouping.values(&all).map(|arrays| arrays[4].as_primitive::<Int64Type>().value(0)).map_err(|e| e.to_string())
    };
    assert_eq!(sum(&[row(i64::MAX), row(1), row(-1)]), Ok(i64::MAX));
    assert_eq!(sum(&[row(i64::MIN), row(-1), row(1)]), Ok(i64::MIN));
    let error = sum(&[row(i64::MAX), row(1)]).unwrap_err();
    assert!(error.starts_with("a sum is 9223372036854775808, out of the range of 64 bits"), "{error}");
}

proptest! {
    #[test]
    fn groups_are_those_of_the_model(rows in prop::collection::vec(row(), 1..300), size in 1..100_usize, threads in 1..4_usize) {
        let budget = budget();
        {
            let meanings = meanings(&budget);
            let share = rows.len().div_ceil(threads);
            let groupings = rows.chunks(share).map(|rows| grouped(rows, size, &meanings, &budget)).collect();
            let merge = merge(groupings);
            let mut expected = expected(&rows);
            for part in 0..merge.parts() {
                let mut merged = merge.merged(part).unwrap();
                let all = merged.all();
                compare(&merged.values(&all).unwrap(), &mut expected);
            }
            prop_assert!(expected.is_empty());
        }
        prop_assert_eq!(budget.used(), 0);
    }

    #[test]
    fn one_thread_needs_no_merge(rows in prop::collection::vec(row(), 1..200), size in 1..100_usize) {
        let budget = budget();
        let mut grouping = grouped(&rows, size, &meanings(&budget), &budget);
        let (all, mut expected) = (grouping.all(), expected(&rows));
        for some in all.chunks(7) {
            compare(&grouping.values(some).unwrap(), &mut expected);
        }
        prop_assert!(expected.is_empty());
    }

    #[test]
    fn the_first_groups_are_among_the_top(
        rows in prop::collection::vec(row(), 1..200),
        count in 0..12_usize,
        descending in any::<bool>(),
        nulls_first in any::<bool>(),
        whole in any::<bool>(),
        column in prop_oneof![Just(Column::Key(0)), (0..8_usize).prop_map(Column::Aggregate)],
    ) {
        let budget = budget();
        let mut grouping = grouped(&rows, 64, &meanings(&budget), &budget);
        let all = grouping.all();
        let by = vec![(column, Order { descending, nulls_first })];
        let top = grouping.top(&Top { by, whole, count }).unwrap();
        prop_assert!(top.len() >= count.min(all.len()));
        prop_assert!(!whole || top.len() == count.min(all.len()));
        let at = match column { Column::Key(at) => at, Column::Aggregate(at) => at + 2 };
        let values = grouping.values(&all).unwrap().swap_remove(at);
        let mut order: Vec<u32> = arrow_ord(&values, descending, nulls_first);
        order.truncate(count);
        for group in order {
            let equal = |other: u32| values.slice(group as usize, 1) == values.slice(other as usize, 1);
            prop_assert!(top.contains(&group) || top.iter().any(|&other| equal(other)));
        }
    }

    #[test]
    fn the_first_of_all_parts_are_those_of_one_thread(
        rows in prop::collection::vec(row(), 1..300),
        count in 0..12_usize,
        descending in any::<bool>(),
        nulls_first in any::<bool>(),
        column in prop_oneof![Just(Column::Key(0)), (0..8_usize).prop_map(Column::Aggregate)],
    ) {
        let budget = budget();
        {
            let meanings = meanings(&budget);
            let groupings = rows.chunks(rows.len().div_ceil(3)).map(|rows| grouped(rows, 64, &meanings, &budget)).collect();
            let merge = merge(groupings);
            let top = Top { by: vec![(column, Order { descending, nulls_first })], whole: true, count };
            let mut firsts = merge.firsts();
            for part in 0..merge.parts() {
                let mut merged = merge.merged(part).unwrap();
                let groups = merged.top(&top).unwrap();
                firsts.take(merged, &groups).unwrap();
            }
            let first = firsts.values(&top).unwrap();
            let mut alone = grouped(&rows, 64, &meanings, &budget);
            let all = alone.all();
            let at = match column { Column::Key(at) => at, Column::Aggregate(at) => at + 2 };
            let ordered = |values: &ArrayRef| {
                let mut order = arrow_ord(values, descending, nulls_first);
                order.truncate(count);
                let order = arrow_array::UInt32Array::from(order);
                arrow_select::take::take(values, &order, None).unwrap()
            };
            prop_assert_eq!(first[at].len(), count.min(all.len()));
            prop_assert_eq!(&ordered(&first[at]), &ordered(&alone.values(&all).unwrap()[at]));
            // Each is a group with what belongs to it.
            compare(&first, &mut expected(&rows));
        }
        prop_assert_eq!(budget.used(), 0);
    }

    #[test]
    fn states_that_were_passed_on_are_those_of_their_rows(rows in prop::collection::vec(row(), 1..100)) {
        let budget = budget();
        let mut grouping = grouped(&rows, 16, &meanings(&budget), &budget);
        let groups = grouping.len();
        let parts: Vec<Vec<ArrayRef>> =
            grouping.all().chunks(groups.div_ceil(2)).map(|some| grouping.partial(some).unwrap()).collect();
        let column = |at: usize| {
            let parts: Vec<&dyn Array> = parts.iter().map(|part| part[at].as_ref()).collect();
            arrow_select::concat::concat(&parts).unwrap()
        };
        let arrays: Vec<ArrayRef> = (0..parts[0].len()).map(column).collect();
        // Keys, five states of one array, the list of distinct values, two of each mean.
        prop_assert_eq!(arrays.len(), 2 + 5 + 1 + 2 + 2);
        prop_assert!(arrays.iter().all(|array| array.len() == groups));
        let lists = arrays[7].as_list::<i32>();
        let expected = expected(&rows);
        for row in 0..groups {
            let (numbers, texts) = (arrays[0].as_primitive::<Int32Type>(), arrays[1].as_string_view());
            let number = numbers.is_valid(row).then(|| numbers.value(row));
            let text = texts.is_valid(row).then(|| texts.value(row).to_owned());
            let values: BTreeSet<i64> = lists.value(row).as_primitive::<Int64Type>().values().iter().copied().collect();
            prop_assert_eq!(&values, &expected[&(number, text)].distinct);
        }
    }
}

/// The rows of an array in order.
fn arrow_ord(values: &ArrayRef, descending: bool, nulls_first: bool) -> Vec<u32> {
    let numbers = crate::numbers::Numbers::of(values.data_type()).unwrap();
    let mut read = vec![Vec::new(); numbers.width()];
    numbers.read(values.as_ref(), &mut read).unwrap();
    let mut rows: Vec<u32> = (0..u32::try_from(values.len()).unwrap()).collect();
    rows.sort_by_key(|&row| {
        let null = values.is_null(row as usize);
        let number = i128::from(read[0][row as usize]);
        let place = if null {
            0
        } else if descending {
            -number
        } else {
            number
        };
        (null != nulls_first, place)
    });
    if nulls_first {
        // Nulls, then the others: false orders before true.
        rows.sort_by_key(|&row| values.is_valid(row as usize));
    } else {
        rows.sort_by_key(|&row| values.is_null(row as usize));
    }
    rows
}

#[test]
fn zeros_are_one_group_and_so_are_nans() {
    let budget = budget();
    let meanings = vec![Meaning::of(&DataType::Float64, &budget).unwrap()];
    let mut grouping = Grouping::new(Keys::new(meanings), vec![Box::new(Count::rows())], &budget).unwrap();
    let floats = Float64Array::from(vec![0.0, -0.0, f64::NAN, -f64::NAN, 1.0]);
    let (keys, rows) = (vec![Vector::Array(Arc::new(floats))], 5);
    grouping.push(&Chunk { rows, keys, arguments: vec![vec![]], filters: vec![None] }).unwrap();
    assert_eq!(grouping.len(), 3);
}

#[test]
fn without_keys_there_is_one_group() {
    let budget = budget();
    let none = Grouping::new(Keys::new(vec![]), vec![Box::new(Count::rows())], &budget).unwrap();
    let mut some = Grouping::new(Keys::new(vec![]), vec![Box::new(Count::rows())], &budget).unwrap();
    some.push(&Chunk { rows: 5, keys: vec![], arguments: vec![vec![]], filters: vec![None] }).unwrap();
    let merge = merge(vec![none, some]);
    let mut merged = merge.merged(0).unwrap();
    assert_eq!(merged.values(&[0]).unwrap()[0].as_primitive::<Int64Type>().value(0), 5);
}

#[test]
fn many_groups_are_merged_in_parts() {
    let budget = budget();
    let integer = DataType::Int64;
    let meanings = vec![Meaning::of(&integer, &budget).unwrap()];
    let item = Arc::new(Field::new("item", DataType::Int64, true));
    for (range, expected) in [(None, 0), (Some((0, 99_999)), 100_000), (Some((i64::MIN, i64::MAX)), 100_000)] {
        // Each key has as many values as its last digit says, and one more: some of them of one thread, some of several.
        let one = |from: i64, value: i64| {
            let distinct = CountDistinct::new(meanings[0].clone(), range, Arc::clone(&item), &budget);
            let aggregates: Vec<Box<dyn Aggregate>> = vec![Box::new(Count::rows()), Box::new(distinct)];
            // Of keys that are expected within a range some lie outside of it.
            let keys = Keys::new(meanings.clone()).expecting(&[range]).expecting_groups(expected);
            let mut grouping = Grouping::new(keys, aggregates, &budget).unwrap();
            for start in (from..from + 100_000).step_by(8000) {
                let numbers = arrow_array::Int64Array::from_iter_values(start..start + 8000);
                let values = numbers.unary::<_, Int64Type>(|number| value.min(number.rem_euclid(10)));
                let keys = vec![Vector::Array(Arc::new(numbers) as _)];
                let arguments = vec![vec![], vec![Vector::Array(Arc::new(values) as _)]];
                grouping.push(&Chunk { rows: 8000, keys, arguments, filters: vec![None, None] }).unwrap();
            }
            grouping
        };
        let merge = merge((0..12).map(|thread| one(0, thread)).chain([one(-50_000, 0)]).collect());
        assert_eq!(merge.parts(), 64);
        let mut groups = BTreeMap::new();
        for part in 0..merge.parts() {
            let mut merged = merge.merged(part).unwrap();
            let all = merged.all();
            let arrays = merged.values(&all).unwrap();
            let column = |at: usize| arrays[at].as_primitive::<Int64Type>().values().to_vec();
            let each = column(0).into_iter().zip(column(1).into_iter().zip(column(2)));
            groups.extend(each);
        }
        assert_eq!(groups.len(), 154_000);
        for (key, (rows, distinct)) in groups {
            let (many, few) = ((0..104_000).contains(&key), (-50_000..54_000).contains(&key));
            assert_eq!(rows, 12 * i64::from(many) + i64::from(few), "{key}");
            assert_eq!(distinct, if many { key.rem_euclid(10) + 1 } else { 1 }, "{key}");
        }
    }
}

/// Few groups that keep many values are merged in parts, too.
#[test]
fn values_that_are_kept_count_as_groups() {
    let budget = budget();
    let meanings = vec![Meaning::of(&DataType::Int64, &budget).unwrap()];
    let item = Arc::new(Field::new("item", DataType::Int64, true));
    let one = |keys: i64, from: i64| {
        let distinct = CountDistinct::new(meanings[0].clone(), None, Arc::clone(&item), &budget);
        let mut grouping = Grouping::new(Keys::new(meanings.clone()), vec![Box::new(distinct)], &budget).unwrap();
        let values = arrow_array::Int64Array::from_iter_values(from..from + 60);
        let groups = values.unary::<_, Int64Type>(|value| value % keys);
        let (keys, arguments) =
            (vec![Vector::Array(Arc::new(groups) as _)], vec![vec![Vector::Array(Arc::new(values) as _)]]);
        grouping.push(&Chunk { rows: 60, keys, arguments, filters: vec![None] }).unwrap();
        grouping
    };
    for (keys, parts) in [(1, 1), (3, 64)] {
        let merge = merge(vec![one(keys, 0), one(keys, 30)]);
        assert_eq!(merge.parts(), parts);
        let mut counts = Vec::new();
        for part in 0..parts {
            let mut merged = merge.merged(part).unwrap();
            let all = merged.all();
            counts.extend(merged.values(&all).unwrap()[1].as_primitive::<Int64Type>().values().iter().copied());
        }
        assert_eq!(counts, vec![90 / keys; usize::try_from(keys).unwrap()]);
    }
}

#[test]
fn refused_memory_changes_nothing() {
    let budget = MemoryBudget::new(400 << 10);
    let meanings = vec![Meaning::of(&DataType::Int64, &budget).unwrap()];
    let new = || Grouping::new(Keys::new(meanings.clone()), vec![Box::new(Count::rows())], &budget).unwrap();
    let (mut grouping, mut taken, mut flushed) = (new(), 0, 0);
    for start in (0..100_000_i64).step_by(1000) {
        let numbers = arrow_array::Int64Array::from_iter_values((start..start + 1000).map(|n| n * 7919));
        let keys = vec![Vector::Array(Arc::new(numbers) as _)];
        let chunk = Chunk { rows: 1000, keys, arguments: vec![vec![]], filters: vec![None] };
        if let Err(error) = grouping.push(&chunk) {
            assert!(matches!(error, ExecError::Memory(_)), "{error}");
            let states = grouping.partial(&grouping.all()).unwrap();
            taken += states[1].as_primitive::<Int64Type>().values().iter().sum::<i64>();
            flushed += 1;
            drop(grouping);
            grouping = new();
            grouping.push(&chunk).unwrap();
        }
    }
    assert!(flushed > 1);
    taken += grouping.partial(&grouping.all()).unwrap()[1].as_primitive::<Int64Type>().values().iter().sum::<i64>();
    assert_eq!(taken, 100_000);
    drop(grouping);
    assert_eq!(budget.used(), 0);
}
