//! The kernel for x86-64 with AVX2 (and what came with or before it).
#![allow(unsafe_code)]
#![allow(clippy::cast_possible_wrap, clippy::cast_sign_loss, reason = "bits are bits")]

use std::arch::x86_64::{
    __m128i, __m256i, _mm_and_si128, _mm_cvtsi128_si64, _mm_loadu_si128, _mm_madd_epi16, _mm_maddubs_epi16,
    _mm_packus_epi32, _mm_set1_epi16, _mm_set1_epi32, _mm_set1_epi64x, _mm256_add_epi8, _mm256_cmpeq_epi8,
    _mm256_cmpgt_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_set1_epi8,
};

use super::kernel::{Kernel, LITERAL, Literal, Template};
use crate::values::digits::{exact, usual_float, value_of};

/// Its methods are inlined into the function below, which has the features.
struct Avx2;

/// Bytes around a number that are looked at, and how many of them are before it.
const WINDOW: usize = 64;
const BEFORE: usize = 16;

/// Sixteen bytes from `n` on keep the low halves of the last `n` of sixteen bytes.
static LAST: [u8; 32] = {
    let mut masks = [0; 32];
    let mut at = 16;
    while at < 32 {
        masks[at] = 0x0f;
        at += 1;
    }
    masks
};

const POWERS: [u64; 17] = {
    let mut powers = [1; 17];
    let mut at = 1;
    while at < 17 {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

impl Kernel for Avx2 {
    #[inline(always)]
    fn is_at(literal: &Literal, text: &[u8], at: usize) -> bool {
        let Some(here) = text.get(at..).and_then(|rest| rest.first_chunk::<LITERAL>()) else { return false };
        // SAFETY: 32 bytes are at both, the loads are unaligned ones; the caller below has AVX2.
        let differ = unsafe {
            let expected: __m256i = _mm256_loadu_si256(literal.bytes.as_ptr().cast());
            let found = _mm256_loadu_si256(here.as_ptr().cast());
            !(_mm256_movemask_epi8(_mm256_cmpeq_epi8(expected, found)) as u32)
        };
        u64::from(differ) & ((1_u64 << literal.len) - 1) == 0
    }

    #[inline(always)]
    fn float(text: &[u8], at: usize) -> Option<(f64, usize)> {
        match with_fraction(text, at) {
            Some(found) => Some(found),
            None => other_float(text, at),
        }
    }
}

/// Apart, so that the loop has the registers.
#[cold]
#[inline(never)]
fn other_float(text: &[u8], at: usize) -> Option<(f64, usize)> {
    usual_float(text, at)
}

/// The double at `at`, if it has one to seven digits before the point and one to sixteen behind it.
#[inline(always)]
fn with_fraction(text: &[u8], at: usize) -> Option<(f64, usize)> {
    // One check for all that follows.
    let start = at.checked_sub(BEFORE)?;
    let window = text.get(start..)?.first_chunk::<WINDOW>()?;
    let negative = window.get(BEFORE) == Some(&b'-');
    let first = BEFORE + usize::from(negative);
    // SAFETY: 32 bytes are there; the caller below has AVX2.
    let others = unsafe {
        let bytes = _mm256_loadu_si256(window.as_ptr().add(BEFORE).cast());
        // Digits become -128 to -119, all others are more.
        let shifted = _mm256_add_epi8(bytes, _mm256_set1_epi8(0x50));
        _mm256_movemask_epi8(_mm256_cmpgt_epi8(shifted, _mm256_set1_epi8(-119))) as u32
    };
    // Where the digits end does not wait for the sign: the first byte is it or a digit, and counts as neither here.
    let ends = others & !1;
    let (point, end) = (ends.trailing_zeros() as usize, (ends & ends.wrapping_sub(1)).trailing_zeros() as usize);
    let whole = point.wrapping_sub(usize::from(negative));
    let fraction = end.wrapping_sub(point + 1);
    let (point, end) = (BEFORE + point, BEFORE + end);
    let leading_zero = (whole > 1) & (window.get(first) == Some(&b'0'));
    let usual = (others & 1 == u32::from(negative))
        & (whole.wrapping_sub(1) < 7)
        & (fraction.wrapping_sub(1) < 16)
        & (whole.wrapping_add(fraction) <= 19);
    if !usual | leading_zero | (window.get(point) != Some(&b'.')) {
        return None;
    }
    // SAFETY: `whole` is 1 to 7 and `fraction` 1 to 16, so `point` is 17 to 24 and `end` 19 to 41: eight bytes end at the one
    // and sixteen at the other. `LAST` has 16 bytes from 16 on. The caller below has AVX2.
    let (before, behind) = unsafe {
        let before = window.as_ptr().add(point - 8).cast::<u64>().read_unaligned();
        let digits: __m128i = _mm_loadu_si128(window.as_ptr().add(end - 16).cast());
        let digits = _mm_and_si128(digits, _mm_loadu_si128(LAST.as_ptr().add(fraction).cast()));
        // Pairs, fours and eights.
        let pairs = _mm_maddubs_epi16(digits, _mm_set1_epi16(0x010a));
        let fours = _mm_madd_epi16(pairs, _mm_set1_epi32(0x0001_0064));
        let eights = _mm_madd_epi16(_mm_packus_epi32(fours, fours), _mm_set1_epi64x(0x0001_2710_0001_2710));
        (u64::from_le(before), _mm_cvtsi128_si64(eights) as u64)
    };
    let before = value_of(before & (u64::MAX << (64 - 8 * whole)));
    let behind = (behind & 0xffff_ffff) * 100_000_000 + (behind >> 32);
    let power = POWERS.get(fraction).copied()?;
    let value = exact(before * power + behind, -(fraction as i64), negative)?;
    Some((value, start + end))
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn take_with(
    text: &[u8],
    at: usize,
    template: &Template,
    most: usize,
    columns: &mut [&mut Vec<f64>],
) -> (usize, usize) {
    super::kernel::take::<Avx2>(text, at, template, most, columns)
}

pub(super) fn take(
    text: &[u8],
    at: usize,
    template: &Template,
    most: usize,
    columns: &mut [&mut Vec<f64>],
) -> (usize, usize) {
    // SAFETY: the level is chosen only where the machine has all of these.
    unsafe { take_with(text, at, template, most, columns) }
}
