//! The kernel for x86-64 with AVX2 (and what came with or before it).
#![allow(unsafe_code)]
#![allow(clippy::cast_possible_wrap, clippy::cast_sign_loss, reason = "bits are bits")]

use std::arch::x86_64::{
    __m256i, _mm_clmulepi64_si128, _mm_cvtsi128_si64, _mm_set_epi64x, _mm_set1_epi8, _mm256_cmpeq_epi8,
    _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8,
};

use super::{BLOCK, Brackets, Kernel, Scan, Stop};

pub(super) fn available() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("pclmulqdq")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

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
        let [low, high] = sets.map(|set| _mm256_movemask_epi8(set) as u32);
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
        bits(halves.map(|half| _mm256_cmpeq_epi8(half, byte)))
    }
}

impl Kernel for Avx2 {
    #[inline(always)]
    fn brackets(block: &[u8; BLOCK]) -> Brackets {
        // SAFETY: the caller below has AVX2.
        unsafe {
            let halves = load(block);
            let folded = halves.map(|half| _mm256_or_si256(half, _mm256_set1_epi8(0x20)));
            Brackets {
                quotes: equal(halves, b'"'),
                backslashes: equal(halves, b'\\'),
                opens: equal(folded, b'{'),
                closes: equal(folded, b'}'),
                commas: equal(halves, b','),
            }
        }
    }

    #[inline(always)]
    fn parity(bits: u64) -> u64 {
        // SAFETY: the caller below has PCLMULQDQ.
        unsafe {
            let product = _mm_clmulepi64_si128::<0>(_mm_set_epi64x(0, bits as i64), _mm_set1_epi8(-1));
            _mm_cvtsi128_si64(product) as u64
        }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,pclmulqdq")]
fn scan_with(state: &mut Scan, bytes: &[u8], from: usize, goal: usize, last: bool) -> Stop {
    super::scan::<Avx2>(state, bytes, from, goal, last)
}

pub(super) fn scan(state: &mut Scan, bytes: &[u8], from: usize, goal: usize, last: bool) -> Stop {
    debug_assert!(available());
    // SAFETY: the level is chosen only where `available` says yes.
    unsafe { scan_with(state, bytes, from, goal, last) }
}
