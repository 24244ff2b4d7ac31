//! The kernel for any x86-64: SSE2 is part of it.
#![allow(unsafe_code)]
#![allow(clippy::cast_possible_wrap, clippy::cast_sign_loss, reason = "bits are bits")]

use std::arch::x86_64::{__m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8};

use super::{BLOCK, Kernel};

pub(super) struct Sse2;

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

/// Square brackets as braces.
#[inline(always)]
fn folded(bytes: __m128i) -> __m128i {
    either(bytes, vector(0x20))
}

impl Kernel for Sse2 {
    #[inline(always)]
    fn find(block: &[u8; BLOCK], byte: u8) -> u64 {
        gather(block, |v| equal(v, byte))
    }

    #[inline(always)]
    fn find_bracket(block: &[u8; BLOCK], brace: u8) -> u64 {
        gather(block, |v| equal(folded(v), brace))
    }
}
