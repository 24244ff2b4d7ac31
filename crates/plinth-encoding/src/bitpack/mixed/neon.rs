//! The kernels for 64-bit ARM, all of which have NEON.
//!
//! As in the twin for AVX2, sixteen groups at a time stay in registers while their digits are multiplied out, each fraction in
//! two halves of 32 bits.
#![allow(unsafe_code)]

use std::arch::aarch64::{
    uint32x4_t, vaddq_u32, vdupq_n_s32, vdupq_n_u32, vget_low_u32, vld1q_u32, vld1q_u64, vmull_high_u32, vmull_u32,
    vreinterpretq_u32_u64, vshlq_u32, vsraq_n_u64, vst1q_u32, vuzp1q_u32, vuzp2q_u32,
};

use super::super::neon;
use super::{Mixed, VECTOR, WORDS};

/// The fractions of four groups.
#[derive(Clone, Copy)]
struct Fractions {
    lower: uint32x4_t,
    upper: uint32x4_t,
}

impl Fractions {
    /// Those of the four groups from `first`.
    #[inline]
    #[target_feature(enable = "neon")]
    fn load(mixed: &Mixed<'_>, first: usize) -> Self {
        let words = [0, 1, 2, 3].map(|i| mixed.fraction(first + i));
        // SAFETY: two times two words are read from an array of four.
        let (left, right) = unsafe { (vld1q_u64(words.as_ptr()), vld1q_u64(words.as_ptr().add(2))) };
        let (left, right) = (vreinterpretq_u32_u64(left), vreinterpretq_u32_u64(right));
        Self { lower: vuzp1q_u32(left, right), upper: vuzp2q_u32(left, right) }
    }

    /// Takes a digit off each: the product of the lower half carries into that of the upper one, whose own upper half it is.
    #[inline]
    #[target_feature(enable = "neon")]
    fn digits(&mut self, radix: uint32x4_t) -> uint32x4_t {
        let lower = vmull_u32(vget_low_u32(self.lower), vget_low_u32(radix));
        let next_lower = vmull_high_u32(self.lower, radix);
        let upper = vmull_u32(vget_low_u32(self.upper), vget_low_u32(radix));
        let next_upper = vmull_high_u32(self.upper, radix);
        let upper = vreinterpretq_u32_u64(vsraq_n_u64::<32>(upper, lower));
        let next_upper = vreinterpretq_u32_u64(vsraq_n_u64::<32>(next_upper, next_lower));
        self.lower = vuzp1q_u32(vreinterpretq_u32_u64(lower), vreinterpretq_u32_u64(next_lower));
        self.upper = vuzp1q_u32(upper, next_upper);
        vuzp2q_u32(upper, next_upper)
    }
}

/// Calls `each` with every four values' place and their high parts, shifted to theirs.
#[inline]
#[target_feature(enable = "neon")]
fn highs(mixed: &Mixed<'_>, mut each: impl FnMut(usize, uint32x4_t)) {
    let groups = mixed.radix.groups(VECTOR);
    let radix = vdupq_n_u32(mixed.radix.radix);
    let shift = vdupq_n_s32(i32::from(mixed.radix.low_bits));
    // Sixteen groups at a time (there are 32 or more), for a product is long in coming.
    for first in (0..groups).step_by(16) {
        let mut fractions = [0, 4, 8, 12].map(|i| Fractions::load(mixed, first + i));
        for at in (first..VECTOR).step_by(groups) {
            for (fours, at) in fractions.iter_mut().zip((at..).step_by(4)) {
                each(at, vshlq_u32(fours.digits(radix), shift));
            }
        }
    }
}

/// Adds each value's high part to its low one.
pub(super) fn add_highs(mixed: &Mixed<'_>, values: &mut [u32; VECTOR]) {
    // SAFETY: 64-bit ARM has NEON.
    unsafe { add_highs_128(mixed, values) }
}

#[target_feature(enable = "neon")]
fn add_highs_128(mixed: &Mixed<'_>, values: &mut [u32; VECTOR]) {
    let values = values.as_mut_ptr();
    highs(mixed, |at, high| {
        // SAFETY: groups are a multiple of 16 and divide a vector, so `at` is a multiple of four below 1,024.
        unsafe { vst1q_u32(values.add(at), vaddq_u32(vld1q_u32(values.add(at)), high)) }
    });
}

/// Compares a full vector, whose low parts less the lower bound are in `values`.
pub(super) fn compare(mixed: &Mixed<'_>, values: &mut [u32; VECTOR], span: u32) -> [u64; WORDS] {
    add_highs(mixed, values);
    neon::gather(values.map(|value| u8::from(value <= span).wrapping_neg()))
}
