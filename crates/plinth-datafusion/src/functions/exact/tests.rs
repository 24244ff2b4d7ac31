#![allow(clippy::unwrap_used, clippy::cast_precision_loss, clippy::cast_possible_truncation)]

use plinth_core::random::Random;
use proptest::prelude::*;

use super::sum::ExactSum;

/// The nearest double to a fraction whose numerator is in steps of 2^-1074, by trying: of all doubles, by bisection over their
/// order, the one whose distance is least.
mod model {
    use num_bigint::BigInt;
    use num_traits::{Signed, Zero};

    /// A double in steps of 2^-1074.
    pub(super) fn steps(value: f64) -> BigInt {
        let bits = value.abs().to_bits();
        let (exponent, fraction) = (bits >> 52, bits & ((1 << 52) - 1));
        let whole = match exponent {
            0 => BigInt::from(fraction),
            _ => BigInt::from(fraction | 1 << 52) << (exponent - 1),
        };
        if value < 0.0 { -whole } else { whole }
    }

    pub(super) fn nearest(sum: &BigInt, count: u64) -> f64 {
        let magnitude = sum.abs();
        // The largest double that is no larger. One step beyond the largest of all stands for infinity.
        let of_bits = |bits: u64| match bits {
            0x7ff0_0000_0000_0000 => BigInt::from(1) << 2_098u32,
            _ => steps(f64::from_bits(bits)),
        };
        let (mut low, mut high) = (0u64, 0x7ff0_0000_0000_0000);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if of_bits(middle) * count <= magnitude { low = middle } else { high = middle - 1 }
        }
        let mut bits = low;
        if low < 0x7ff0_0000_0000_0000 {
            let below = &magnitude - of_bits(low) * count;
            let above = of_bits(low + 1) * count - &magnitude;
            if above < below || (above == below && low % 2 == 1) {
                bits += 1;
            }
        }
        let value = f64::from_bits(bits);
        if sum.is_negative() && !sum.is_zero() { -value } else { value }
    }
}

/// Any finite double, values of like size, and values that cancel.
fn values() -> impl Strategy<Value = Vec<f64>> {
    let any = proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL | proptest::num::f64::ZERO;
    let any = any | proptest::num::f64::NEGATIVE | proptest::num::f64::POSITIVE;
    let near = -1e3..1e3f64;
    let few =
        prop_oneof![Just(f64::MAX), Just(-f64::MAX), Just(1.0), Just(-1e16), Just(f64::MIN_POSITIVE), Just(5e-324)];
    let of = |value: BoxedStrategy<f64>| prop::collection::vec(value, 0..60);
    let cancelling = prop::collection::vec(proptest::num::f64::NORMAL, 0..30).prop_map(|values| {
        let negative: Vec<f64> = values.iter().rev().map(|value| -value * (1.0 + f64::EPSILON)).collect();
        [values, negative].concat()
    });
    prop_oneof![of(any.boxed()), of(near.boxed()), of(few.boxed()), cancelling]
        .prop_map(|values| values.into_iter().filter(|value| value.is_finite()).collect())
}

fn sum_of(values: &[f64]) -> ExactSum {
    let mut sum = ExactSum::default();
    values.iter().for_each(|value| sum.add(*value));
    sum
}

proptest! {
    #[test]
    fn sums_and_means_are_rounded_once(values in values(), more in 0..u64::MAX) {
        let exact = values.iter().map(|value| model::steps(*value)).sum();
        let sum = sum_of(&values);
        prop_assert_eq!(sum.sum().to_bits(), (model::nearest(&exact, 1) + 0.0).to_bits());
        for count in [values.len() as u64, more] {
            if count > 0 {
                prop_assert_eq!(sum.mean(count), model::nearest(&exact, count), "{} values", count);
            }
        }
    }

    #[test]
    fn neither_order_nor_partitions_matter(values in values(), seed in any::<u64>(), parts in 1..8usize) {
        let expected = sum_of(&values);
        let mut shuffled = values.clone();
        let mut random = Random(seed);
        for at in (1..shuffled.len()).rev() {
            shuffled.swap(at, random.index(at + 1));
        }
        let mut united = ExactSum::default();
        for part in shuffled.chunks(shuffled.len().div_ceil(parts).max(1)) {
            prop_assert!(united.unite_bytes(&sum_of(part).to_bytes()));
        }
        prop_assert_eq!(united.sum().to_bits(), expected.sum().to_bits());
    }

    #[test]
    fn bytes_that_are_no_sum_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let mut sum = sum_of(&[1.0, 1e300]);
        if sum.unite_bytes(&bytes) {
            sum.add(1e-300);
            let _ = sum.mean(3);
        }
    }
}

#[test]
fn many_values_carry() {
    let mut sum = ExactSum::default();
    for _ in 0..100_000 {
        sum.add(f64::MAX);
    }
    assert_eq!((sum.sum(), sum.mean(100_000)), (f64::INFINITY, f64::MAX));
    for _ in 0..99_999 {
        sum.add(-f64::MAX);
    }
    assert_eq!(sum.sum(), f64::MAX);
    let mut tenth = ExactSum::default();
    for _ in 0..3_000_000 {
        tenth.add(0.1);
    }
    assert_eq!((tenth.mean(3_000_000), tenth.heap_size()), (0.1, 0));
    // Doubling, up to more values than can be added one by one.
    for _ in 0..40 {
        let bytes = tenth.to_bytes();
        assert!(tenth.unite_bytes(&bytes));
    }
    assert_eq!((tenth.mean(3_000_000 << 40), tenth.heap_size()), (0.1, 0));
}

#[test]
fn what_is_not_finite_decides() {
    let of = |values: &[f64]| sum_of(values).sum();
    let (plus, minus) = (f64::INFINITY, f64::NEG_INFINITY);
    assert_eq!((of(&[plus, 1.0]), of(&[minus, 1.0, minus])), (plus, minus));
    assert!(of(&[plus, minus]).is_nan() && of(&[f64::NAN, 1.0]).is_nan() && of(&[plus, -f64::NAN]).is_nan());
    // Zeros have no sign here.
    assert_eq!(of(&[-0.0, -0.0]).to_bits(), 0);
    assert_eq!(of(&[]).to_bits(), 0);
}
