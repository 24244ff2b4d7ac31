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

/// The sums of values whose groups take turns, by the operator.
fn sums(array: ArrayRef, groups: usize, sum: Sum) -> Vec<ArrayRef> {
    let budget = MemoryBudget::new(1 << 24);
    let rows = array.len();
    let keys = Int64Array::from_iter_values((0..rows).map(|row| i64::try_from(row % groups).unwrap()));
    let meanings = vec![Meaning::of(&DataType::Int64, &budget).unwrap()];
    let mut grouping = Grouping::new(Keys::new(meanings), vec![Box::new(sum)], &budget).unwrap();
    let (keys, arguments) = (vec![Vector::Array(Arc::new(keys))], vec![vec![Vector::Array(array)]]);
    grouping.push(&Chunk { rows, keys, arguments, filters: vec![None] }).unwrap();
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
