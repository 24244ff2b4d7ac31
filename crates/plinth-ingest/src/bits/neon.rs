//! The kernel for 64-bit ARM: NEON is part of it.
#![allow(unsafe_code)]

use std::arch::aarch64::{
    uint8x16_t, vandq_u8, vceqq_u8, vdupq_n_u8, vgetq_lane_u64, vld1q_u8, vorrq_u8, vpaddq_u8, vreinterpretq_u64_u8,
};

use super::brackets::{Scan, Stop};
use super::fields::{Ends, FieldScan};
use super::{BLOCK, Brackets, Kernel};

struct Neon;

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
    fn equal<const N: usize>(block: &[u8; BLOCK], bytes: [u8; N]) -> [u64; N] {
        bytes.map(|byte| gather(block, |v| equal(v, byte)))
    }

    #[inline(always)]
    fn brackets(block: &[u8; BLOCK]) -> Brackets {
        Brackets {
            quotes: gather(block, |v| equal(v, b'"')),
            backslashes: gather(block, |v| equal(v, b'\\')),
            opens: gather(block, |v| equal(folded(v), b'{')),
            closes: gather(block, |v| equal(folded(v), b'}')),
            commas: gather(block, |v| equal(v, b',')),
        }
    }
}

pub(super) fn scan(state: &mut Scan, bytes: &[u8], from: usize, goal: usize, last: bool) -> Stop {
    super::brackets::scan::<Neon>(state, bytes, from, goal, last)
}

pub(super) fn fields(
    state: &mut FieldScan,
    bytes: &[u8],
    from: usize,
    last: bool,
    each: impl FnMut(usize, Ends) -> bool,
) -> usize {
    super::fields::run::<Neon>(state, bytes, from, last, each)
}
