//! The kernel for x86-64 with AVX2 (and what came with or before it).
#![allow(unsafe_code)]
#![allow(clippy::cast_possible_wrap, clippy::cast_sign_loss, reason = "bits are bits")]

use std::arch::x86_64::{
    __m256i, _mm_clmulepi64_si128, _mm_cvtsi128_si64, _mm_set_epi64x, _mm_set1_epi8, _mm256_cmpeq_epi8,
    _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8,
};

use super::brackets::{Scan, Stop};
use super::fields::{Ends, FieldScan};
use super::{BLOCK, Kernel, Level};

/// Its methods are inlined into the function below, which has the features.
struct Avx2;

/// # Safety
/// AVX2.
#[inline(always)]
unsafe fn load(block: &[u8; BLOCK]) -> [__m256i; 2] {
    // SAFETY: 64 bytes are there, unaligned loads are used; AVX2 is the caller's promise.
    unsafe { [_mm256_loadu_si256(block.as_ptr().cast()), _mm256_loadu_si256(block.as_ptr().add(32).cast())] }
}

/// # Safety
/// AVX2.
#[inline(always)]
unsafe fn bits(sets: [__m256i; 2]) -> u64 {
    // SAFETY: AVX2 is the caller's promise.
    unsafe {
        let [low, high] = sets;
        let [low, high] = [_mm256_movemask_epi8(low) as u32, _mm256_movemask_epi8(high) as u32];
        u64::from(low) | u64::from(high) << 32
    }
}

/// # Safety
/// AVX2.
#[inline(always)]
unsafe fn equal(halves: [__m256i; 2], byte: u8) -> u64 {
    // SAFETY: AVX2 is the caller's promise.
    unsafe {
        let byte = _mm256_set1_epi8(byte as i8);
        let [low, high] = halves;
        bits([_mm256_cmpeq_epi8(low, byte), _mm256_cmpeq_epi8(high, byte)])
    }
}

impl Kernel for Avx2 {
    #[inline(always)]
    fn find(block: &[u8; BLOCK], byte: u8) -> u64 {
        // SAFETY: the callers below have AVX2.
        unsafe { equal(load(block), byte) }
    }

    #[inline(always)]
    fn find_bracket(block: &[u8; BLOCK], brace: u8) -> u64 {
        // SAFETY: the callers below have AVX2.
        unsafe {
            let [low, high] = load(block);
            let bit = _mm256_set1_epi8(0x20);
            equal([_mm256_or_si256(low, bit), _mm256_or_si256(high, bit)], brace)
        }
    }

    #[inline(always)]
    fn parity(bits: u64) -> u64 {
        // SAFETY: the callers below have PCLMULQDQ.
        unsafe {
            let product = _mm_clmulepi64_si128::<0>(_mm_set_epi64x(0, bits as i64), _mm_set1_epi8(-1));
            _mm_cvtsi128_si64(product) as u64
        }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,pclmulqdq")]
fn scan_with(state: &mut Scan, bytes: &[u8], from: usize, goal: usize, last: bool) -> Stop {
    super::brackets::scan::<Avx2>(state, bytes, from, goal, last)
}

pub(super) fn scan(state: &mut Scan, bytes: &[u8], from: usize, goal: usize, last: bool) -> Stop {
    debug_assert!(Level::Avx2.available());
    // SAFETY: the level is chosen only where `available` says yes.
    unsafe { scan_with(state, bytes, from, goal, last) }
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,pclmulqdq")]
fn fields_with(
    state: &mut FieldScan,
    bytes: &[u8],
    from: usize,
    last: bool,
    each: impl FnMut(usize, Ends) -> bool,
) -> usize {
    super::fields::run::<Avx2>(state, bytes, from, last, each)
}

pub(super) fn fields(
    state: &mut FieldScan,
    bytes: &[u8],
    from: usize,
    last: bool,
    each: impl FnMut(usize, Ends) -> bool,
) -> usize {
    debug_assert!(Level::Avx2.available());
    // SAFETY: the level is chosen only where `available` says yes.
    unsafe { fields_with(state, bytes, from, last, each) }
}
