//! The kernels for x86-64 with AVX2.
//!
//! Sixteen groups at a time stay in registers while their digits are multiplied out, each fraction in two halves of 32 bits,
//! for that is what the machine multiplies. The product of the lower half carries into that of the upper one, whose own
//! upper half is the digit; what a lane holds above its lower half the next multiplication ignores.
#![allow(unsafe_code)]
#![allow(
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::cast_possible_truncation,
    reason = "bits are bits"
)]

use std::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_add_epi64, _mm256_castps_si256, _mm256_castsi256_ps, _mm256_cmpeq_epi32,
    _mm256_i64gather_epi64, _mm256_loadu_si256, _mm256_min_epu32, _mm256_movemask_ps, _mm256_mul_epu32,
    _mm256_permute2x128_si256, _mm256_set1_epi32, _mm256_set1_epi64x, _mm256_setr_epi64x, _mm256_shuffle_ps,
    _mm256_sllv_epi32, _mm256_sllv_epi64, _mm256_srli_epi64, _mm256_srlv_epi64, _mm256_storeu_si256,
};

use super::super::avx2::prefetch_next;
use super::{Mixed, VECTOR, WORDS};

/// Four fractions.
struct Fractions {
    lower: __m256i,
    upper: __m256i,
}

impl Fractions {
    /// # Safety
    /// AVX2.
    #[inline(always)]
    unsafe fn new(words: __m256i) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self { lower: words, upper: _mm256_srli_epi64::<32>(words) } }
    }

    /// Takes a digit off each: the odd words of the result.
    ///
    /// # Safety
    /// AVX2.
    #[inline(always)]
    unsafe fn digit(&mut self, radix: __m256i) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe {
            self.lower = _mm256_mul_epu32(self.lower, radix);
            let carry = _mm256_srli_epi64::<32>(self.lower);
            self.upper = _mm256_add_epi64(_mm256_mul_epu32(self.upper, radix), carry);
        }
        self.upper
    }
}

/// Eight groups.
struct Groups {
    /// The groups 0 1 4 5 and 2 3 6 7, so that a shuffle, which works in halves, puts them in order.
    outer: Fractions,
    inner: Fractions,
}

/// Where the fractions of eight groups lie, which is the same for every eight: the bytes at which the first four and the
/// last four begin, and how far into them.
struct Places {
    bytes: [__m256i; 2],
    shifts: [__m256i; 2],
    spare: __m256i,
    width: usize,
}

impl Places {
    /// # Safety
    /// AVX2.
    #[inline(always)]
    unsafe fn new(width: u8) -> Self {
        let places = |first: i64, of: &dyn Fn(i64) -> i64| {
            let [a, b, c, d] = [0, 1, 2, 3].map(|i| of((first + i) * i64::from(width)));
            // SAFETY: the caller's promise.
            unsafe { _mm256_setr_epi64x(a, b, c, d) }
        };
        Self {
            bytes: [places(0, &|bit| bit / 8), places(4, &|bit| bit / 8)],
            shifts: [places(0, &|bit| bit % 8), places(4, &|bit| bit % 8)],
            // SAFETY: the caller's promise.
            spare: unsafe { _mm256_set1_epi64x(64 - i64::from(width)) },
            width: width.into(),
        }
    }

    /// The fractions of the eight groups from `first`, a multiple of eight, at the top of words.
    ///
    /// # Safety
    /// AVX2.
    #[inline(always)]
    unsafe fn load(&self, mixed: &Mixed<'_>, first: usize) -> Groups {
        let at = first / 8 * self.width;
        // SAFETY: AVX2 is the caller's promise. Where words are gathered, each begins less than `width` bytes from `at` and
        // so ends within 8 bytes more, which there are; else eight are read from an array of eight.
        unsafe {
            let [low, high] = if mixed.fractions.len() >= at + self.width + 8 {
                let from = mixed.fractions.as_ptr().add(at).cast();
                let word = |half: usize| {
                    let word =
                        _mm256_srlv_epi64(_mm256_i64gather_epi64::<1>(from, self.bytes[half]), self.shifts[half]);
                    _mm256_sllv_epi64(word, self.spare)
                };
                [word(0), word(1)]
            } else {
                let mut words = [0_u64; 8];
                for (i, word) in words.iter_mut().enumerate() {
                    *word = mixed.fraction(first + i);
                }
                [_mm256_loadu_si256(words.as_ptr().cast()), _mm256_loadu_si256(words.as_ptr().add(4).cast())]
            };
            Groups {
                outer: Fractions::new(_mm256_permute2x128_si256::<0x20>(low, high)),
                inner: Fractions::new(_mm256_permute2x128_si256::<0x31>(low, high)),
            }
        }
    }
}

impl Groups {
    /// Takes a digit off each group.
    ///
    /// # Safety
    /// AVX2.
    #[inline(always)]
    unsafe fn digits(&mut self, radix: __m256i) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe {
            let outer = _mm256_castsi256_ps(self.outer.digit(radix));
            let inner = _mm256_castsi256_ps(self.inner.digit(radix));
            _mm256_castps_si256(_mm256_shuffle_ps::<0xDD>(outer, inner))
        }
    }
}

/// Calls `each` with every eight values' place and their high parts, shifted to theirs.
///
/// # Safety
/// AVX2.
#[inline(always)]
unsafe fn highs(mixed: &Mixed<'_>, mut each: impl FnMut(usize, __m256i)) {
    let groups = mixed.radix.groups(VECTOR);
    prefetch_next(mixed.fractions, mixed.radix.fractions_len(VECTOR));
    // SAFETY: AVX2 is the caller's promise.
    unsafe {
        let radix = _mm256_set1_epi64x(i64::from(mixed.radix.radix));
        let shift = _mm256_set1_epi32(i32::from(mixed.radix.low_bits));
        let places = Places::new(mixed.radix.fraction_bits);
        // Sixteen groups at a time (there are 32 or more), for a product is long in coming.
        for first in (0..groups).step_by(16) {
            let mut left = places.load(mixed, first);
            let mut right = places.load(mixed, first + 8);
            for at in (first..VECTOR).step_by(groups) {
                let (left, right) = (left.digits(radix), right.digits(radix));
                each(at, _mm256_sllv_epi32(left, shift));
                each(at + 8, _mm256_sllv_epi32(right, shift));
            }
        }
    }
}

/// Adds each value's high part to its low one. The caller has found AVX2.
pub(super) fn add_highs(mixed: &Mixed<'_>, values: &mut [u32; VECTOR]) {
    // SAFETY: the caller found AVX2.
    unsafe { add_highs_256(mixed, values) }
}

/// # Safety
/// AVX2.
#[target_feature(enable = "avx2")]
unsafe fn add_highs_256(mixed: &Mixed<'_>, values: &mut [u32; VECTOR]) {
    let values = values.as_mut_ptr();
    // SAFETY: groups are a multiple of eight and divide a vector, so `at` is a multiple of eight below 1,024.
    unsafe {
        highs(mixed, |at, high| {
            let place = values.add(at).cast();
            _mm256_storeu_si256(place, _mm256_add_epi32(_mm256_loadu_si256(place), high));
        });
    }
}

/// Compares a full vector, whose low parts less the lower bound are in `values`. The caller has found AVX2.
pub(super) fn compare(mixed: &Mixed<'_>, values: &[u32; VECTOR], span: u32) -> [u64; WORDS] {
    let mut hits = [0_u8; VECTOR / 8];
    // SAFETY: the caller found AVX2.
    unsafe { compare_256(mixed, values, span, &mut hits) }
    let mut out = [0; WORDS];
    for (word, bytes) in out.iter_mut().zip(hits.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    out
}

/// # Safety
/// AVX2.
#[target_feature(enable = "avx2")]
unsafe fn compare_256(mixed: &Mixed<'_>, values: &[u32; VECTOR], span: u32, hits: &mut [u8; VECTOR / 8]) {
    let (values, hits) = (values.as_ptr(), hits.as_mut_ptr());
    // SAFETY: as in `add_highs_256`.
    unsafe {
        let span = _mm256_set1_epi32(span as i32);
        highs(mixed, |at, high| {
            let past = _mm256_add_epi32(_mm256_loadu_si256(values.add(at).cast()), high);
            let hit = _mm256_cmpeq_epi32(_mm256_min_epu32(past, span), past);
            *hits.add(at / 8) = _mm256_movemask_ps(_mm256_castsi256_ps(hit)) as u8;
        });
    }
}
