//! The kernels for 64-bit ARM, all of which have NEON.
//!
//! The compiler makes NEON of the portable code by itself, but for the way from lanes of ones or zeros to bits. So there is no
//! kernel for packing and unpacking, which would gain little, nor for members, for NEON has no gathering loads. Compares have
//! the compiler make a byte of each answer, and sixteen at a time become bits here.
#![allow(unsafe_code)]

use std::arch::aarch64::{vgetq_lane_u64, vld1q_u8, vminq_u8, vpaddq_u8, vreinterpretq_u64_u8};

use super::{VECTOR, scalar};

/// Which bit of its word each byte of a vector is.
static PLACES: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];

/// A bit for each of 64 bytes, of which each is ones or zeros.
#[inline]
#[target_feature(enable = "neon")]
fn word(hits: &[u8; 64]) -> u64 {
    // SAFETY: sixteen bytes are there, and four times sixteen.
    let (places, hits) =
        unsafe { (vld1q_u8(PLACES.as_ptr()), [0, 16, 32, 48].map(|at| vld1q_u8(hits.as_ptr().add(at)))) };
    // Neighbours are added until each byte holds eight of them. (It is the lesser and not `and`, of which the compiler knows that
    // no bits meet: it then makes three instructions of each addition.)
    let [a, b, c, d] = hits.map(|hits| vminq_u8(hits, places));
    let sum = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
    vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(sum, sum)))
}

/// A bit for each byte, of which each is ones or zeros.
#[inline]
pub(super) fn gather(hits: [u8; VECTOR]) -> [u64; VECTOR / 64] {
    let mut out = [0; VECTOR / 64];
    for (slot, hits) in out.iter_mut().zip(hits.as_chunks::<64>().0) {
        // SAFETY: 64-bit ARM has NEON.
        *slot = unsafe { word(hits) };
    }
    out
}

/// Compares a full vector.
#[allow(clippy::cast_possible_truncation, reason = "values of at most 32 bits")]
pub(super) fn compare(bytes: &[u8], bits: u8, lo: u64, span: u64) -> [u64; VECTOR / 64] {
    let mut hits = [0_u8; VECTOR];
    if bits <= 32 {
        let (lo, span) = (lo as u32, span as u32);
        scalar::rows32(bytes, bits, |row, values| {
            for (hit, value) in hits[row * 32..row * 32 + 32].iter_mut().zip(values) {
                *hit = u8::from(value.wrapping_sub(lo) <= span).wrapping_neg();
            }
        });
    } else {
        scalar::rows64(bytes, bits, |row, values| {
            for (hit, value) in hits[row * 16..row * 16 + 16].iter_mut().zip(values) {
                *hit = u8::from(value.wrapping_sub(lo) <= span).wrapping_neg();
            }
        });
    }
    gather(hits)
}

/// Compares unpacked values.
pub(super) fn in_range<S: Copy, T: Copy + PartialOrd>(values: &[S], load: impl Fn(S) -> T, lo: T, hi: T) -> Vec<u64> {
    let (chunks, rest) = values.as_chunks::<64>();
    let mut out = Vec::with_capacity(chunks.len() + 1);
    out.extend(chunks.iter().map(|chunk| {
        let hits = chunk.map(|value| {
            let value = load(value);
            u8::from((lo <= value) & (value <= hi)).wrapping_neg()
        });
        // SAFETY: 64-bit ARM has NEON.
        unsafe { word(&hits) }
    }));
    out.extend(scalar::in_range(rest, &load, lo, hi));
    out
}
