//! The kernels in portable Rust: the twins that every other implementation must equal.

use super::{Mixed, VECTOR, WORDS};

/// Groups that a vector may have.
const MOST_GROUPS: usize = VECTOR / 2;

/// Adds each value's high part to its low one. Fractions are in two halves of 32 bits, so that a compiler finds multiplications
/// that SIMD has: the product of the lower carries into that of the upper, whose own upper half is the digit.
#[allow(clippy::cast_possible_truncation, reason = "halves of words")]
pub(super) fn add_highs(mixed: &Mixed<'_>, values: &mut [u32]) {
    let (radix, shift) = (u64::from(mixed.radix.radix), mixed.radix.low_bits);
    let groups = mixed.radix.groups(values.len()).clamp(1, MOST_GROUPS);
    let (mut lower, mut upper) = ([0_u32; MOST_GROUPS], [0_u32; MOST_GROUPS]);
    for (group, (lower, upper)) in lower.iter_mut().zip(&mut upper).take(groups).enumerate() {
        let fraction = mixed.fraction(group);
        (*lower, *upper) = (fraction as u32, (fraction >> 32) as u32);
    }
    for row in values.chunks_mut(groups) {
        for ((value, lower), upper) in row.iter_mut().zip(&mut lower).zip(&mut upper) {
            let low = u64::from(*lower) * radix;
            let high = u64::from(*upper) * radix + (low >> 32);
            (*lower, *upper) = (low as u32, high as u32);
            *value = value.wrapping_add(((high >> 32) as u32) << shift);
        }
    }
}

/// Compares a full vector, whose low parts less the lower bound are in `values`.
pub(super) fn compare(mixed: &Mixed<'_>, values: &mut [u32; VECTOR], span: u32) -> [u64; WORDS] {
    add_highs(mixed, values);
    let mut out = [0; WORDS];
    for (word, values) in out.iter_mut().zip(values.chunks_exact(64)) {
        *word = values.iter().enumerate().fold(0, |word, (i, &value)| word | u64::from(value <= span) << i);
    }
    out
}
