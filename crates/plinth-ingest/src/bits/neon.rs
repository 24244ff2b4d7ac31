//! The kernel for 64-bit ARM: NEON is part of it.
#![allow(unsafe_code)]

use std::arch::aarch64::{
    uint8x16_t, vandq_u8, vceqq_u8, vdupq_n_u8, vgetq_lane_u64, vld1q_u8, vorrq_u8, vpaddq_u8, vreinterpretq_u64_u8,
};

use super::{BLOCK, Kernel};

pub(super) struct Neon;

/// Which bit of a mask each byte of a vector is.
static PLACES: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];

#[inline(always)]
fn vector(byte: u8) -> uint8x16_t {
    // SAFETY: 64-bit ARM has NEON.
    unsafe { vdupq_n_u8(byte) }
}

/// A bit for each byte of a block of which `of` makes ones: neighbours are added until each byte holds eight of them.
#[inline(always)]
fn gather(block: &[u8; BLOCK], of: impl Fn(uint8x16_t) -> uint8x16_t) -> u64 {
    // SAFETY: 64-bit ARM has NEON; 64 bytes are there, in four parts of sixteen.
    unsafe {
        let places = vld1q_u8(PLACES.as_ptr());
        let [a, b, c, d] = [0, 16, 32, 48].map(|at| vandq_u8(of(vld1q_u8(block.as_ptr().add(at))), places));
        let sum = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
        vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(sum, sum)))
    }
}

#[inline(always)]
fn equal(bytes: uint8x16_t, byte: u8) -> uint8x16_t {
    // SAFETY: 64-bit ARM has NEON.
    unsafe { vceqq_u8(bytes, vector(byte)) }
}

/// Square brackets as braces.
#[inline(always)]
fn folded(bytes: uint8x16_t) -> uint8x16_t {
    // SAFETY: 64-bit ARM has NEON.
    unsafe { vorrq_u8(bytes, vector(0x20)) }
}

impl Kernel for Neon {
    #[inline(always)]
    fn find(block: &[u8; BLOCK], byte: u8) -> u64 {
        gather(block, |v| equal(v, byte))
    }

    #[inline(always)]
    fn find_bracket(block: &[u8; BLOCK], brace: u8) -> u64 {
        gather(block, |v| equal(folded(v), brace))
    }
}
