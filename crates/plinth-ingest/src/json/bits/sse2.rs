//! The kernel for any x86-64: SSE2 is part of it.
#![allow(unsafe_code)]
#![allow(clippy::cast_possible_wrap, clippy::cast_sign_loss, reason = "bits are bits")]

use std::arch::x86_64::{
    __m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8,
};

use super::{BLOCK, Brackets, Bytes, Carry, Kernel, Scan, Stop};

struct Sse2;

#[inline(always)]
fn vector(byte: u8) -> __m128i {
    // SAFETY: x86-64 has SSE2.
    unsafe { _mm_set1_epi8(byte as i8) }
}

/// A bit for each byte of a block of which `of` makes ones.
#[inline(always)]
fn gather(block: &[u8; BLOCK], of: impl Fn(__m128i) -> __m128i) -> u64 {
    let (parts, _) = block.as_chunks::<16>();
    parts.iter().enumerate().fold(0, |bits, (at, part)| {
        // SAFETY: x86-64 has SSE2; sixteen bytes are there, and the load is an unaligned one.
        let mask = unsafe { _mm_movemask_epi8(of(_mm_loadu_si128(part.as_ptr().cast()))) };
        bits | u64::from(mask as u32) << (16 * at)
    })
}

#[inline(always)]
fn equal(bytes: __m128i, byte: u8) -> __m128i {
    // SAFETY: x86-64 has SSE2.
    unsafe { _mm_cmpeq_epi8(bytes, vector(byte)) }
}

#[inline(always)]
fn either(a: __m128i, b: __m128i) -> __m128i {
    // SAFETY: x86-64 has SSE2.
    unsafe { _mm_or_si128(a, b) }
}

/// Bytes that are no more than another.
#[inline(always)]
fn at_most(bytes: __m128i, most: u8) -> __m128i {
    // SAFETY: x86-64 has SSE2.
    unsafe { _mm_cmpeq_epi8(_mm_min_epu8(bytes, vector(most)), bytes) }
}

/// Square brackets as braces.
#[inline(always)]
fn folded(bytes: __m128i) -> __m128i {
    either(bytes, vector(0x20))
}

#[inline(always)]
fn any(sets: [__m128i; 4]) -> __m128i {
    let [a, b, c, d] = sets;
    either(either(a, b), either(c, d))
}

impl Kernel for Sse2 {
    #[inline(always)]
    fn bytes(block: &[u8; BLOCK]) -> Bytes {
        let operators = |v| any([equal(folded(v), b'{'), equal(folded(v), b'}'), equal(v, b','), equal(v, b':')]);
        let spaces = |v| any([equal(v, b' '), equal(v, b'\n'), equal(v, b'\t'), equal(v, b'\r')]);
        Bytes {
            quotes: gather(block, |v| equal(v, b'"')),
            backslashes: gather(block, |v| equal(v, b'\\')),
            operators: gather(block, operators),
            spaces: gather(block, spaces),
            controls: gather(block, |v| at_most(v, 0x1f)),
            line_feeds: gather(block, |v| equal(v, b'\n')),
        }
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

pub(super) fn tokens(window: &[u8], lines: bool, carry: &mut Carry, starts: &mut [u32], count: &mut usize) -> bool {
    super::tokens::<Sse2>(window, lines, carry, starts, count)
}

pub(super) fn scan(state: &mut Scan, bytes: &[u8], from: usize, goal: usize, last: bool) -> Stop {
    super::scan::<Sse2>(state, bytes, from, goal, last)
}
