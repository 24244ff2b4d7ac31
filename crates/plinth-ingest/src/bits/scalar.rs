//! The portable kernel: eight bytes at a time in a word.

use super::{BLOCK, Kernel};

pub(super) struct Scalar;

const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
const ONES: u64 = 0x0101_0101_0101_0101;

/// The top bit of each byte that is zero.
#[inline(always)]
fn zeros(word: u64) -> u64 {
    !(((word & LOW) + LOW) | word | LOW)
}

/// The top bit of each byte that is `byte`.
#[inline(always)]
fn equal(word: u64, byte: u8) -> u64 {
    zeros(word ^ (ONES * u64::from(byte)))
}

/// A bit for each byte of a block whose top bit `of` sets.
#[inline(always)]
fn gather(block: &[u8; BLOCK], of: impl Fn(u64) -> u64) -> u64 {
    let (words, _) = block.as_chunks::<8>();
    words.iter().enumerate().fold(0, |bits, (at, word)| {
        // One multiplication gathers the top bits in the top byte.
        let tops = of(u64::from_le_bytes(*word)) >> 7;
        bits | tops.wrapping_mul(0x0102_0408_1020_4080) >> 56 << (8 * at)
    })
}

impl Kernel for Scalar {
    #[inline(always)]
    fn find(block: &[u8; BLOCK], byte: u8) -> u64 {
        gather(block, |word| equal(word, byte))
    }

    #[inline(always)]
    fn find_bracket(block: &[u8; BLOCK], brace: u8) -> u64 {
        gather(block, |word| equal(word | (ONES * 0x20), brace))
    }
}
