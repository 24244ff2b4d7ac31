//! The kernels in portable Rust: the twins that every other implementation must equal.

use super::{Lane, VECTOR, mask};

/// Packs a vector of values of at most 32 bits.
#[allow(clippy::cast_possible_truncation, reason = "values of at most 32 bits, and words cut at 32")]
pub(super) fn pack32(values: &[u64; VECTOR], bits: u8, out: &mut Vec<u8>) {
    let bits = usize::from(bits);
    let mut words = vec![0_u32; 32 * bits];
    for (row, values) in values.chunks_exact(32).enumerate() {
        let (word, shift) = (row * bits / 32, row * bits % 32);
        for (slot, &value) in words[word * 32..].iter_mut().zip(values) {
            *slot |= (value as u32) << shift;
        }
        if shift + bits > 32 {
            for (slot, &value) in words[(word + 1) * 32..].iter_mut().zip(values) {
                *slot |= (value >> (32 - shift)) as u32;
            }
        }
    }
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

/// Packs a vector of values of 33 to 64 bits.
pub(super) fn pack64(values: &[u64; VECTOR], bits: u8, out: &mut Vec<u8>) {
    let bits = usize::from(bits);
    let mut words = vec![0_u64; 16 * bits];
    for (row, values) in values.chunks_exact(16).enumerate() {
        let (word, shift) = (row * bits / 64, row * bits % 64);
        for (slot, &value) in words[word * 16..].iter_mut().zip(values) {
            *slot |= value << shift;
        }
        if shift + bits > 64 {
            for (slot, &value) in words[(word + 1) * 16..].iter_mut().zip(values) {
                *slot |= value >> (64 - shift);
            }
        }
    }
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

/// Packs a plain bit stream.
#[allow(clippy::cast_possible_truncation, reason = "the low byte is what is wanted")]
pub(super) fn pack_stream(values: &[u64], bits: u8, out: &mut Vec<u8>) {
    let (mut held, mut count) = (0_u128, 0_u32);
    for &value in values {
        held |= u128::from(value) << count;
        count += u32::from(bits);
        while count >= 8 {
            out.push(held as u8);
            held >>= 8;
            count -= 8;
        }
    }
    if count > 0 {
        out.push(held as u8);
    }
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

/// Calls `each` with the 32 rows of 32 values of a vector of at most 32 bits a value.
#[inline(always)]
fn rows32(bytes: &[u8], bits: u8, mut each: impl FnMut(usize, &[u32; 32])) {
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
fn rows64(bytes: &[u8], bits: u8, mut each: impl FnMut(usize, &[u64; 16])) {
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
