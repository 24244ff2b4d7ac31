use arrow_array::types::UInt64Type;
use plinth_io::MemoryBudget;
use proptest::prelude::*;

use super::*;
use crate::grouping::{Chunk, Grouping};
use crate::key::{Keys, Meaning};

const SUM: DataType = DataType::Decimal128(38, 2);

/// Values of so many bits at most, and now and then none.
fn values(bits: u32) -> impl Strategy<Value = Vec<Option<i128>>> {
    let value = any::<i128>().prop_map(move |value| value >> (127 - bits));
    prop::collection::vec(prop::option::weighted(0.95, prop_oneof![value, Just(0), Just(-1)]), 1..600)
}

/// Groups that take turns, with an aggregate of their values.
fn grouped(array: ArrayRef, groups: usize, aggregate: Box<dyn Aggregate>) -> Grouping {
    let budget = MemoryBudget::new(1 << 24);
    let rows = array.len();
    let keys = Int64Array::from_iter_values((0..rows).map(|row| i64::try_from(row % groups).unwrap()));
    let meanings = vec![Meaning::of(&DataType::Int64, &budget).unwrap()];
    let mut grouping = Grouping::new(Keys::new(meanings), vec![aggregate], &budget).unwrap();
    let (keys, arguments) = (vec![Vector::Array(Arc::new(keys))], vec![vec![Vector::Array(array)]]);
    grouping.push(&Chunk { rows, keys, arguments, filters: vec![None] }).unwrap();
    grouping
}

/// The sums of values whose groups take turns, by the operator.
fn sums(array: ArrayRef, groups: usize, sum: Sum) -> Vec<ArrayRef> {
    let mut grouping = grouped(array, groups, Box::new(sum));
    let all = grouping.all();
    grouping.values(&all).unwrap()
}

fn expected(values: &[Option<i128>], groups: usize, group: usize) -> Option<i128> {
    let some: Vec<i128> = values.iter().skip(group).step_by(groups).copied().flatten().collect();
    (!some.is_empty()).then(|| some.iter().sum::<i128>())
}

proptest! {
    /// Few groups are added up beside their states, in 64 bits where that is enough; many are not.
    #[test]
    fn decimals_of_any_width_are_added_exactly(
        (bits, values) in (1..100_u32).prop_flat_map(|bits| (Just(bits), values(bits))),
        groups in prop_oneof![1..5_usize, 60..70_usize],
    ) {
        let array = Decimal128Array::from_iter(values.iter().copied()).with_precision_and_scale(38, 2).unwrap();
        let found = sums(Arc::new(array), groups, Sum::new(&SUM, &SUM, false).unwrap());
        for group in 0..groups.min(values.len()) {
            let sum = found[1].as_primitive::<Decimal128Type>();
            let sum = sum.is_valid(group).then(|| sum.value(group));
            prop_assert_eq!(sum, expected(&values, groups, group), "{} bits, group {}", bits, group);
        }
    }

    #[test]
    fn integers_of_any_width_are_added_exactly(
        values in (1..54_u32).prop_flat_map(values),
        groups in prop_oneof![1..5_usize, 60..70_usize],
    ) {
        let integers = values.iter().map(|value| value.map(|value| i64::try_from(value).unwrap()));
        let found = sums(Arc::new(Int64Array::from_iter(integers)), groups, Sum::new(&DataType::Int64, &DataType::Int64, false).unwrap());
        for group in 0..groups.min(values.len()) {
            let sum = found[1].as_primitive::<arrow_array::types::Int64Type>();
            let sum = sum.is_valid(group).then(|| i128::from(sum.value(group)));
            prop_assert_eq!(sum, expected(&values, groups, group));
        }
    }
}

/// Sums that leave 64 bits on the way, of numbers with and without a sign.
#[test]
fn sums_at_the_bounds_of_64_bits_are_exact() {
    let decimals = |values: Vec<i128>| {
        let array = Decimal128Array::from(values).with_precision_and_scale(38, 2).unwrap();
        sums(Arc::new(array), 1, Sum::new(&SUM, &SUM, false).unwrap())[1].as_primitive::<Decimal128Type>().value(0)
    };
    for value in [i64::MAX, i64::MIN, 1 << 62, -(1 << 62), 1 << 58] {
        assert_eq!(decimals(vec![value.into(); 100]), 100 * i128::from(value));
    }
    let unsigned = DataType::UInt64;
    let values = vec![u64::MAX / 9; 9];
    let found = sums(Arc::new(UInt64Array::from(values)), 1, Sum::new(&unsigned, &unsigned, false).unwrap());
    assert_eq!(found[1].as_primitive::<UInt64Type>().value(0), u64::MAX / 9 * 9);
}

/// Sums of decimals that leave 128 bits are an error; none wraps around.
#[test]
fn sums_beyond_128_bits_are_an_error() {
    let large = 9 * 10_i128.pow(37);
    for groups in [1, 4, 70] {
        for values in [vec![large; 8 * groups], vec![-large; 8 * groups]] {
            let array = Decimal128Array::from(values).with_precision_and_scale(38, 2).unwrap();
            let array: ArrayRef = Arc::new(array);
            let mut sum = grouped(Arc::clone(&array), groups, Box::new(Sum::new(&SUM, &SUM, false).unwrap()));
            let all = sum.all();
            assert!(sum.values(&all).is_err() && sum.partial(&all).is_err(), "{groups} groups");
            let mut mean = grouped(array, groups, Box::new(DecimalMean::new(&SUM, &SUM, &SUM).unwrap()));
            assert!(mean.values(&all).is_err() && mean.partial(&all).is_err(), "{groups} groups");
        }
    }
}

/// What leaves 128 bits on its way is an error, or comes out right where it is added up in another order.
#[test]
fn sums_that_come_back_within_128_bits_are_right_or_an_error() {
    let large = 9 * 10_i128.pow(37);
    for groups in [1, 4, 70] {
        let values = [vec![large; 4 * groups], vec![-large; 4 * groups], vec![7; groups]].concat();
        let array = Decimal128Array::from(values).with_precision_and_scale(38, 2).unwrap();
        let mut sum = grouped(Arc::new(array), groups, Box::new(Sum::new(&SUM, &SUM, false).unwrap()));
        let all = sum.all();
        if let Ok(found) = sum.values(&all) {
            let found = found[1].as_primitive::<Decimal128Type>();
            assert!(found.values().iter().all(|sum| *sum == 7), "{groups} groups: {found:?}");
        }
    }
}

/// A group without values has no count in its state: by that the engine, which merges states, knows groups that have some.
#[test]
fn states_of_means_have_no_count_where_there_is_no_value() {
    let values = [Some(4), None, Some(2), None];
    let decimals = Decimal128Array::from_iter(values.map(|value| value.map(i128::from)));
    let decimals: ArrayRef = Arc::new(decimals.with_precision_and_scale(38, 2).unwrap());
    let integers: ArrayRef = Arc::new(Int64Array::from_iter(values.map(|value| value.map(i64::from))));
    let doubles: ArrayRef = Arc::new(Float64Array::from_iter(values.map(|value| value.map(f64::from))));
    for array in [decimals, integers, doubles] {
        let of = array.data_type().clone();
        let mean: Box<dyn Aggregate> = match &of {
            DataType::Decimal128(..) => Box::new(DecimalMean::new(&of, &of, &of).unwrap()),
            _ => Box::new(Mean::new(&of).unwrap()),
        };
        let mut grouping = grouped(array, 2, mean);
        let all = grouping.all();
        let [_, counts, sums] = grouping.partial(&all).unwrap().try_into().unwrap();
        assert_eq!(counts.as_primitive::<UInt64Type>().iter().collect::<Vec<_>>(), [Some(2), None], "{of}");
        assert_eq!(sums.null_count(), 1, "{of}");
    }
}

/// An infinity and another with the other sign have a sum that is no number, and has no sign: an order would have it first.
#[test]
fn sums_that_are_no_number_have_no_sign() {
    let values: ArrayRef = Arc::new(Float64Array::from(vec![f64::INFINITY, f64::NEG_INFINITY, -f64::NAN]));
    let sum = Sum::new(&DataType::Float64, &DataType::Float64, false).unwrap();
    for aggregate in [Box::new(sum) as Box<dyn Aggregate>, Box::new(Mean::new(&DataType::Float64).unwrap())] {
        let mut grouping = grouped(Arc::clone(&values), 1, aggregate);
        let all = grouping.all();
        let found = grouping.values(&all).unwrap();
        let value = found[1].as_primitive::<Float64Type>().value(0);
        assert!(value.is_nan() && value.is_sign_positive());
    }
}
