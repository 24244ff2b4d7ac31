//! Words to indices and parts of words. Pages and files are addressed by 64-bit numbers, and so is memory wherever this
//! crate is built.
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

const _: () = assert!(usize::BITS == 64, "indexes need 64-bit addresses");

/// A number as an index.
pub(crate) const fn index(word: u64) -> usize {
    word as usize
}

/// `width` bits of a word from bit `from` on.
pub(crate) const fn bits(word: u64, from: u32, width: u32) -> u64 {
    (word >> from) & ((1 << width) - 1)
}

/// `width` bits as an index.
pub(crate) const fn field(word: u64, from: u32, width: u32) -> usize {
    index(bits(word, from, width))
}

/// The lower half.
pub(crate) const fn low(word: u64) -> u32 {
    word as u32
}

/// The upper half.
pub(crate) const fn high(word: u64) -> u32 {
    (word >> 32) as u32
}

/// A byte of a word.
pub(crate) const fn byte(word: u64, from: u32) -> u8 {
    (word >> from) as u8
}

/// Two's complement of half a word, and back.
pub(crate) const fn signed32(half: u32) -> i32 {
    half as i32
}

pub(crate) const fn unsigned32(value: i32) -> u32 {
    value as u32
}

/// Two's complement of a word, and back.
pub(crate) const fn signed64(word: u64) -> i64 {
    word as i64
}

pub(crate) const fn unsigned64(value: i64) -> u64 {
    value as u64
}

/// The lower word.
pub(crate) const fn low64(value: u128) -> u64 {
    value as u64
}
