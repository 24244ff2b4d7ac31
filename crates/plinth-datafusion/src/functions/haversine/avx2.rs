//! Four lanes on x86-64 with AVX2.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m256d, _CMP_GT_OQ, _mm256_add_pd, _mm256_andnot_pd, _mm256_blendv_pd, _mm256_castpd_si256, _mm256_castsi256_pd,
    _mm256_cmp_pd, _mm256_loadu_pd, _mm256_movemask_pd, _mm256_mul_pd, _mm256_or_pd, _mm256_set1_pd, _mm256_slli_epi64,
    _mm256_sqrt_pd, _mm256_storeu_pd, _mm256_sub_pd,
};
use std::ops::{Add, Mul, Sub};

use plinth_core::simd::Level;

use super::kernel::angles;
use super::vector::Vector;
use super::{BLOCK, Coordinate, blocks, one_by_one};

/// See [`super::distances`]. Only where there is AVX2.
pub(super) fn distances(inputs: &[Coordinate<'_>; 5], out: &mut [f64]) {
    debug_assert!(Level::Avx2.available());
    // SAFETY: the caller has asked whether there is AVX2.
    unsafe { with_avx2(inputs, out) }
}

#[target_feature(enable = "avx2")]
fn with_avx2(inputs: &[Coordinate<'_>; 5], out: &mut [f64]) {
    blocks(inputs, out, |[lat1, lon1, lat2, lon2, radius]| {
        match angles([Four::load(lat1), Four::load(lon1), Four::load(lat2), Four::load(lon2)]) {
            Some(angles) => (angles * Four::load(radius)).lanes(),
            None => one_by_one([lat1, lon1, lat2, lon2, radius]),
        }
    });
}

/// Four floats. Made and used in the function above alone, into which all methods are inlined.
#[derive(Clone, Copy)]
struct Four(__m256d);

impl Four {
    #[inline(always)]
    fn load(lanes: &[f64; BLOCK]) -> Self {
        // SAFETY: four floats are there, unaligned loads are used; AVX2, see the type.
        unsafe { Self(_mm256_loadu_pd(lanes.as_ptr())) }
    }

    #[inline(always)]
    fn lanes(self) -> [f64; BLOCK] {
        let mut lanes = [0.0; BLOCK];
        // SAFETY: there is room for four floats, unaligned stores are used; AVX2, see the type.
        unsafe { _mm256_storeu_pd(lanes.as_mut_ptr(), self.0) };
        lanes
    }
}

impl Add for Four {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        // SAFETY: AVX2, see the type.
        unsafe { Self(_mm256_add_pd(self.0, other.0)) }
    }
}

impl Sub for Four {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        // SAFETY: AVX2, see the type.
        unsafe { Self(_mm256_sub_pd(self.0, other.0)) }
    }
}

impl Mul for Four {
    type Output = Self;

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        // SAFETY: AVX2, see the type.
        unsafe { Self(_mm256_mul_pd(self.0, other.0)) }
    }
}

impl Vector for Four {
    /// In the sign bits; the other bits mean nothing.
    type Mask = __m256d;

    #[inline(always)]
    fn splat(value: f64) -> Self {
        // SAFETY: AVX2, see the type.
        unsafe { Self(_mm256_set1_pd(value)) }
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        // SAFETY: AVX2, see the type.
        unsafe { Self(_mm256_sqrt_pd(self.0)) }
    }

    #[inline(always)]
    fn abs(self) -> Self {
        // SAFETY: AVX2, see the type.
        unsafe { Self(_mm256_andnot_pd(_mm256_set1_pd(-0.0), self.0)) }
    }

    #[inline(always)]
    fn exceeds(self, other: Self) -> __m256d {
        // SAFETY: AVX2, see the type.
        unsafe { _mm256_cmp_pd::<_CMP_GT_OQ>(self.0, other.0) }
    }

    #[inline(always)]
    fn is_odd(self) -> __m256d {
        // SAFETY: AVX2, see the type.
        unsafe { _mm256_castsi256_pd(_mm256_slli_epi64::<63>(_mm256_castpd_si256(self.0))) }
    }

    #[inline(always)]
    fn or(a: __m256d, b: __m256d) -> __m256d {
        // SAFETY: AVX2, see the type.
        unsafe { _mm256_or_pd(a, b) }
    }

    #[inline(always)]
    fn any(mask: __m256d) -> bool {
        // SAFETY: AVX2, see the type.
        unsafe { _mm256_movemask_pd(mask) != 0 }
    }

    #[inline(always)]
    fn choose(mask: __m256d, set: Self, unset: Self) -> Self {
        // SAFETY: AVX2, see the type.
        unsafe { Self(_mm256_blendv_pd(unset.0, set.0, mask)) }
    }
}
