//! Bit-packing in vectors of 1,024 values.
//!
//! # Layout
//! A *vector* of 1,024 values at `bits` bits a value takes exactly `128 * bits` bytes. For `bits <= 32` it is made of 32
//! lanes of 32-bit words; for `33..=64` of 16 lanes of 64-bit words. With `L` lanes of `B`-bit words:
//!
//! - lane `l` holds the values `l, l + L, l + 2L, ...`, the `r`-th of them in the lane's bits `r * bits .. (r + 1) * bits`,
//!   lowest bits first;
//! - the lane's bits `k * B .. (k + 1) * B` are the little-endian word at index `k * L + l` of the vector.
//!
//! So one shift and mask over a row of adjacent words gives a row of `L` adjacent values: plain SIMD, values in order.
//! This is the interleaving of FastLanes (Afroozeh and Boncz, "The FastLanes Compression Layout", VLDB 2023) without
//! its transposition of the values, which serves delta decoding and which we do not need.
//!
//! The values after the last full vector, fewer than 1,024, are a plain bit stream: value `i` in bits
//! `i * bits .. (i + 1) * bits` of the bytes, lowest bits of the first byte first, padded with zeros to a whole byte.

use arrow_buffer::BooleanBuffer;
use plinth_core::simd::Level;

use crate::scratch::Kind;

#[cfg(target_arch = "x86_64")]
mod avx2;
pub mod mixed;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

/// Values in a vector.
pub const VECTOR: usize = 1024;

/// A lane element that values are unpacked into. Arithmetic wraps.
pub trait Lane: Kind + Ord + arrow_buffer::ArrowNativeType + std::fmt::Debug {
    /// The low bits.
    fn truncate(value: u64) -> Self;
    /// The low bits.
    fn truncate32(value: u32) -> Self;
    /// Zero-extended.
    fn widen(self) -> u64;
    /// Modular addition.
    fn plus(self, other: Self) -> Self;
    /// Modular subtraction.
    fn minus(self, other: Self) -> Self;
}

macro_rules! lane {
    ($($type:ty),*) => {$(
        impl Lane for $type {
            #[inline(always)]
            #[allow(clippy::cast_possible_truncation, reason = "what the name says")]
            fn truncate(value: u64) -> Self {
                value as $type
            }
            #[inline(always)]
            #[allow(clippy::cast_possible_truncation, reason = "what the name says")]
            fn truncate32(value: u32) -> Self {
                value as $type
            }
            #[inline(always)]
            fn widen(self) -> u64 {
                u64::from(self)
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
        }
    )*};
}
lane!(u8, u16, u32, u64);

/// Bytes that `count` values take at `bits` bits a value.
pub fn packed_len(count: usize, bits: u8) -> usize {
    let (vectors, rest) = (count / VECTOR, count % VECTOR);
    vectors * vector_len(bits) + (rest * usize::from(bits)).div_ceil(8)
}

/// Bytes that a full vector takes.
pub fn vector_len(bits: u8) -> usize {
    usize::from(bits) * (VECTOR / 8)
}

/// The bits needed for `value`.
#[allow(clippy::cast_possible_truncation, reason = "at most 64")]
pub fn bits_for(value: u64) -> u8 {
    (64 - value.leading_zeros()) as u8
}

/// The largest value of `bits` bits.
pub fn mask(bits: u8) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// Appends `values`, at most one vector of them, each at most `bits` bits above `base`.
pub fn pack<T: Lane>(values: &[T], base: T, bits: u8, out: &mut Vec<u8>) {
    pack_by(Level::best(), values, |value| value.minus(base).widen(), bits, out);
}

/// Appends what `load` makes of values, at most one vector of them: numbers of at most `bits` bits.
fn pack_by<T: Copy>(kernel: Level, values: &[T], load: impl Fn(T) -> u64, bits: u8, out: &mut Vec<u8>) {
    if bits == 0 {
        return;
    }
    let Ok(vector) = <&[T; VECTOR]>::try_from(values) else {
        scalar::pack_stream(values.iter().map(|&value| load(value)), bits, out);
        return;
    };
    let start = out.len();
    out.resize(start + vector_len(bits), 0);
    let out = &mut out[start..];
    match kernel {
        _ if bits > 32 => scalar::pack64(vector, load, bits, out),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 if Level::Avx2.available() => avx2::pack(vector, load, bits, out),
        _ => scalar::pack32(vector, load, bits, out),
    }
}

/// Unpacks a vector, or a tail of fewer values, and adds `base` to each. `bytes` holds at least
/// `packed_len(out.len(), bits)` bytes (callers slice it so); where it does not, `out` is left as it is.
pub fn unpack<T: Lane>(kernel: Level, bytes: &[u8], bits: u8, base: T, out: &mut [T]) {
    if bits == 0 {
        out.fill(base);
        return;
    }
    let Ok(vector) = <&mut [T; VECTOR]>::try_from(&mut *out) else {
        scalar::unpack_stream(bytes, bits, base, out);
        return;
    };
    let Some(bytes) = bytes.get(..vector_len(bits)) else { return };
    match kernel {
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 if Level::Avx2.available() => avx2::unpack(bytes, bits, base, vector),
        _ => scalar::unpack(bytes, bits, base, vector),
    }
}

/// Which values `v` of a full vector satisfy `v - lo <= span`, modulo `2^bits`'s word (32 bits for `bits <= 32`, else 64):
/// bit `i % 64` of word `i / 64` for value `i`. False everywhere if `bytes` is too short or `bits` is zero.
pub fn compare(kernel: Level, bytes: &[u8], bits: u8, lo: u64, span: u64) -> [u64; VECTOR / 64] {
    let Some(bytes) = bytes.get(..vector_len(bits)) else { return [0; VECTOR / 64] };
    match kernel {
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 if Level::Avx2.available() => avx2::compare(bytes, bits, lo, span),
        #[cfg(target_arch = "aarch64")]
        Level::Neon => neon::compare(bytes, bits, lo, span),
        _ => scalar::compare(bytes, bits, lo, span),
    }
}

/// Which of any number of unpacked values, after `load`, lie in `lo..=hi`: a bit each, in words of 64.
#[inline]
pub(crate) fn in_range<S: Copy, T: Copy + PartialOrd>(
    kernel: Level,
    values: &[S],
    load: impl Fn(S) -> T,
    lo: T,
    hi: T,
) -> Vec<u64> {
    match kernel {
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 if Level::Avx2.available() => avx2::in_range(values, load, lo, hi),
        #[cfg(target_arch = "aarch64")]
        Level::Neon => neon::in_range(values, load, lo, hi),
        _ => scalar::in_range(values, &load, lo, hi),
    }
}

/// Which codes' bits are set, a bit each in `out`, in words of 64; codes past the set's end are no members.
pub(crate) fn members(kernel: Level, codes: &[u32], set: &BooleanBuffer, out: &mut [u64]) {
    match kernel {
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 if Level::Avx2.available() => avx2::members(codes, set, out),
        _ => scalar::members(codes, set, out),
    }
}

#[cfg(test)]
mod tests;
