//! The kernels in portable Rust: the twins that every other implementation must equal.

use arrow_buffer::BooleanBuffer;

use super::{Lane, VECTOR, mask};

/// Packs a vector of values, of which `load` makes numbers of at most 32 bits, into exactly its bytes; inlined into the AVX2
/// twin.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "values of at most 32 bits")]
pub(super) fn pack32<T: Copy>(values: &[T; VECTOR], load: impl Fn(T) -> u64, bits: u8, out: &mut [u8]) {
    let width = u32::from(bits);
    let mut slots = out.as_chunks_mut::<128>().0.iter_mut();
    let (mut words, mut filled) = ([0_u32; 32], 0);
    for values in values.as_chunks::<32>().0 {
        let values = values.map(|value| load(value) as u32);
        for (word, &value) in words.iter_mut().zip(&values) {
            *word |= value << filled;
        }
        filled += width;
        if filled >= 32 {
            if let Some(slot) = slots.next() {
                for (slot, word) in slot.as_chunks_mut::<4>().0.iter_mut().zip(words) {
                    *slot = word.to_le_bytes();
                }
            }
            filled -= 32;
            words = if filled > 0 { values.map(|value| value >> (width - filled)) } else { [0; 32] };
        }
    }
}

/// Packs a vector of values of 33 to 64 bits into exactly its bytes.
pub(super) fn pack64<T: Copy>(values: &[T; VECTOR], load: impl Fn(T) -> u64, bits: u8, out: &mut [u8]) {
    let width = u32::from(bits);
    let mut slots = out.as_chunks_mut::<128>().0.iter_mut();
    let (mut words, mut filled) = ([0_u64; 16], 0);
    for values in values.as_chunks::<16>().0 {
        let values = values.map(&load);
        for (word, &value) in words.iter_mut().zip(&values) {
            *word |= value << filled;
        }
        filled += width;
        if filled >= 64 {
            if let Some(slot) = slots.next() {
                for (slot, word) in slot.as_chunks_mut::<8>().0.iter_mut().zip(words) {
                    *slot = word.to_le_bytes();
                }
            }
            filled -= 64;
            words = if filled > 0 { values.map(|value| value >> (width - filled)) } else { [0; 16] };
        }
    }
}

/// Packs a plain bit stream.
#[allow(clippy::cast_possible_truncation, reason = "the low word is what is wanted")]
pub(super) fn pack_stream(values: impl Iterator<Item = u64>, bits: u8, out: &mut Vec<u8>) {
    let (mut held, mut count) = (0_u128, 0_u32);
    for value in values {
        held |= u128::from(value) << count;
        count += u32::from(bits);
        if count >= 64 {
            out.extend_from_slice(&(held as u64).to_le_bytes());
            held >>= 64;
            count -= 64;
        }
    }
    out.extend_from_slice(&held.to_le_bytes()[..(count as usize).div_ceil(8)]);
}

/// Unpacks a plain bit stream.
#[allow(clippy::cast_possible_truncation, reason = "masked to 64 bits")]
pub(super) fn unpack_stream<T: Lane>(bytes: &[u8], bits: u8, base: T, out: &mut [T]) {
    let width = usize::from(bits);
    let mask = mask(bits);
    for (i, slot) in out.iter_mut().enumerate() {
        let (byte, shift) = (i * width / 8, i * width % 8);
        let rest = bytes.get(byte..).unwrap_or_default();
        let word = match rest.first_chunk::<16>() {
            Some(chunk) => u128::from_le_bytes(*chunk),
            None => rest.iter().rev().fold(0, |word, &byte| word << 8 | u128::from(byte)),
        };
        *slot = T::truncate((word >> shift) as u64 & mask).plus(base);
    }
}

/// Unpacks a full vector and adds `base`.
pub(super) fn unpack<T: Lane>(bytes: &[u8], bits: u8, base: T, out: &mut [T; VECTOR]) {
    if bits <= 32 {
        rows32(bytes, bits, |row, values| {
            for (slot, &value) in out[row * 32..row * 32 + 32].iter_mut().zip(values) {
                *slot = T::truncate32(value).plus(base);
            }
        });
    } else {
        unpack64(bytes, bits, base, out);
    }
}

/// Compares a full vector.
#[allow(clippy::cast_possible_truncation, reason = "values of at most 32 bits")]
pub(super) fn compare(bytes: &[u8], bits: u8, lo: u64, span: u64) -> [u64; VECTOR / 64] {
    let mut out = [0; VECTOR / 64];
    if bits <= 32 {
        let (lo, span) = (lo as u32, span as u32);
        rows32(bytes, bits, |row, values| {
            let mut hits = 0_u64;
            for (i, value) in values.iter().enumerate() {
                hits |= u64::from(value.wrapping_sub(lo) <= span) << i;
            }
            out[row / 2] |= hits << (row % 2 * 32);
        });
    } else {
        compare64(bytes, bits, lo, span, &mut out);
    }
    out
}

/// Value `at` of a full vector of at most 32 bits a value; zero past the end.
pub(super) fn get32(bytes: &[u8], bits: u8, at: usize) -> u32 {
    let width = usize::from(bits);
    let (bit, lane) = (at / 32 * width, at % 32);
    let word = |row: usize| {
        let bytes = bytes.get((row * 32 + lane) * 4..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| u64::from(u32::from_le_bytes(*bytes)))
    };
    // Where the value ends in its first word, what follows is masked off.
    let words = word(bit / 32) | word(bit / 32 + 1) << 32;
    #[allow(clippy::cast_possible_truncation, reason = "of at most 32 bits")]
    let value = (words >> (bit % 32) & mask(bits)) as u32;
    value
}

/// Calls `each` with the 32 rows of 32 values of a vector of at most 32 bits a value.
#[inline(always)]
pub(super) fn rows32(bytes: &[u8], bits: u8, mut each: impl FnMut(usize, &[u32; 32])) {
    let width = u32::from(bits);
    let mask = u32::MAX >> (32 - width.clamp(1, 32));
    let mut words = bytes.as_chunks::<128>().0.iter();
    let mut word = words.next().map_or([0; 32], load32);
    let mut shift = 0;
    for row in 0..32 {
        let mut values = word.map(|word| word >> shift & mask);
        shift += width;
        if shift >= 32 {
            shift -= 32;
            word = words.next().map_or([0; 32], load32);
            if shift > 0 {
                let left = width - shift;
                for (value, &word) in values.iter_mut().zip(&word) {
                    *value |= word << left & mask;
                }
            }
        }
        each(row, &values);
    }
}

#[inline(always)]
fn load32(bytes: &[u8; 128]) -> [u32; 32] {
    let mut words = [0; 32];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    words
}

/// Calls `each` with the 64 rows of 16 values of a vector of 33 to 64 bits a value.
#[inline(always)]
pub(super) fn rows64(bytes: &[u8], bits: u8, mut each: impl FnMut(usize, &[u64; 16])) {
    let width = u32::from(bits);
    let mask = mask(bits);
    let mut words = bytes.as_chunks::<128>().0.iter();
    let mut word = words.next().map_or([0; 16], load64);
    let mut shift = 0;
    for row in 0..64 {
        let mut values = word.map(|word| word >> shift & mask);
        shift += width;
        if shift >= 64 {
            shift -= 64;
            word = words.next().map_or([0; 16], load64);
            if shift > 0 {
                let left = width - shift;
                for (value, &word) in values.iter_mut().zip(&word) {
                    *value |= word << left & mask;
                }
            }
        }
        each(row, &values);
    }
}

#[inline(always)]
fn load64(bytes: &[u8; 128]) -> [u64; 16] {
    let mut words = [0; 16];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

/// Unpacks a vector of 33 to 64 bits a value; inlined into the AVX2 twin, which compiles it for wider registers.
#[inline(always)]
pub(super) fn unpack64<T: Lane>(bytes: &[u8], bits: u8, base: T, out: &mut [T; VECTOR]) {
    rows64(bytes, bits, |row, values| {
        for (slot, &value) in out[row * 16..row * 16 + 16].iter_mut().zip(values) {
            *slot = T::truncate(value).plus(base);
        }
    });
}

/// Compares a vector of 33 to 64 bits a value; inlined into the AVX2 twin.
#[inline(always)]
pub(super) fn compare64(bytes: &[u8], bits: u8, lo: u64, span: u64, out: &mut [u64; VECTOR / 64]) {
    rows64(bytes, bits, |row, values| {
        let mut hits = 0_u64;
        for (i, value) in values.iter().enumerate() {
            hits |= u64::from(value.wrapping_sub(lo) <= span) << i;
        }
        out[row / 4] |= hits << (row % 4 * 16);
    });
}

/// Compares unpacked values.
#[inline(always)]
pub(super) fn in_range<S: Copy, T: Copy + PartialOrd>(values: &[S], load: &impl Fn(S) -> T, lo: T, hi: T) -> Vec<u64> {
    let test = |value: S| {
        let value = load(value);
        // Not short-circuited, so that it stays free of branches.
        (lo <= value) & (value <= hi)
    };
    let word = |values: &[S]| values.iter().enumerate().fold(0, |word, (i, &value)| word | u64::from(test(value)) << i);
    values.chunks(64).map(word).collect()
}

/// Looks codes up in a set.
pub(super) fn members(codes: &[u32], set: &BooleanBuffer, out: &mut [u64]) {
    let (bytes, offset, len) = (set.values(), set.offset(), set.len());
    let found = |code: u32| {
        let (inside, at) = ((code as usize) < len, offset + code as usize);
        inside && bytes.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1)
    };
    for (word, codes) in out.iter_mut().zip(codes.chunks(64)) {
        *word = codes.iter().enumerate().fold(0, |word, (i, &code)| word | u64::from(found(code)) << i);
    }
}
