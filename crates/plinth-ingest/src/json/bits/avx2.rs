//! The kernel for x86-64 with AVX2 (and what came with or before it).
#![allow(unsafe_code)]
#![allow(clippy::cast_possible_wrap, clippy::cast_sign_loss, reason = "bits are bits")]

use std::arch::x86_64::{
    __m256i, _mm_clmulepi64_si128, _mm_cvtsi128_si64, _mm_set_epi64x, _mm_set1_epi8, _mm256_cmpeq_epi8,
    _mm256_loadu_si256, _mm256_min_epu8, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8, _mm256_setr_epi8,
    _mm256_shuffle_epi8,
};

use super::{BLOCK, Brackets, Bytes, Carry, Kernel, Scan, Stop};

pub(super) fn available() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("pclmulqdq")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
}

/// Its methods are inlined into the two functions below, which have the features.
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
    fn bytes(block: &[u8; BLOCK]) -> Bytes {
        // SAFETY: both callers below have AVX2.
        unsafe {
            let halves = load(block);
            // By its low four bits each byte finds the one it has to be. Bytes above 0x7f find none, that is, zero.
            let spaces = _mm256_setr_epi8(
                32, 0, 0, 0, 0, 0, 0, 0, 0, 9, 10, 0, 0, 13, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 9, 10, 0, 0, 13, 0, 0,
            );
            // With 0x20 set, brackets are braces; comma and colon have it anyway. What becomes one of them by it and is none
            // (0x0c and 0x1a) is a control character, which makes sense nowhere.
            let operators = _mm256_setr_epi8(
                0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 58, 123, 44, 125, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 58, 123, 44, 125,
                0, 0,
            );
            let fold = _mm256_set1_epi8(0x20);
            let found = halves.map(|half| _mm256_cmpeq_epi8(half, _mm256_shuffle_epi8(spaces, half)));
            let folded = halves.map(|half| {
                let folded = _mm256_or_si256(half, fold);
                _mm256_cmpeq_epi8(folded, _mm256_shuffle_epi8(operators, half))
            });
            let most = _mm256_set1_epi8(0x1f);
            let controls = bits(halves.map(|half| _mm256_cmpeq_epi8(_mm256_min_epu8(half, most), half)));
            Bytes {
                quotes: equal(halves, b'"'),
                backslashes: equal(halves, b'\\'),
                operators: bits(folded) & !controls,
                spaces: bits(found),
                controls,
                line_feeds: equal(halves, b'\n'),
            }
        }
    }

    #[inline(always)]
    fn brackets(block: &[u8; BLOCK]) -> Brackets {
        // SAFETY: both callers below have AVX2.
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
        // SAFETY: both callers below have PCLMULQDQ.
        unsafe {
            let product = _mm_clmulepi64_si128::<0>(_mm_set_epi64x(0, bits as i64), _mm_set1_epi8(-1));
            _mm_cvtsi128_si64(product) as u64
        }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,pclmulqdq")]
fn tokens_with(window: &[u8], lines: bool, carry: &mut Carry, starts: &mut [u32], count: &mut usize) -> bool {
    if lines {
        super::tokens::<Avx2>(window, true, carry, starts, count)
    } else {
        super::tokens::<Avx2>(window, false, carry, starts, count)
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,pclmulqdq")]
fn scan_with(state: &mut Scan, bytes: &[u8], from: usize, goal: usize, last: bool) -> Stop {
    super::scan::<Avx2>(state, bytes, from, goal, last)
}

pub(super) fn tokens(window: &[u8], lines: bool, carry: &mut Carry, starts: &mut [u32], count: &mut usize) -> bool {
    debug_assert!(available());
    // SAFETY: the level is chosen only where `available` says yes.
    unsafe { tokens_with(window, lines, carry, starts, count) }
}

pub(super) fn scan(state: &mut Scan, bytes: &[u8], from: usize, goal: usize, last: bool) -> Stop {
    debug_assert!(available());
    // SAFETY: the level is chosen only where `available` says yes.
    unsafe { scan_with(state, bytes, from, goal, last) }
}
