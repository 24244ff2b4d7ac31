//! The kernels for x86-64 with AVX2.
//!
//! One function per width, so that every shift is a constant, and the 32 rows are written out by a macro; a lane group of
//! eight is finished before the next is begun, which keeps the current word in a register. Widths above 32 bits are the
//! portable code compiled for AVX2.
#![allow(unsafe_code)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "bits are bits"
)]

use std::arch::x86_64::{
    __m256i, _MM_HINT_T0, _mm_cvtsi32_si128, _mm_prefetch, _mm256_add_epi32, _mm256_and_si256, _mm256_castsi256_ps,
    _mm256_cmpeq_epi32, _mm256_i32gather_epi32, _mm256_loadu_si256, _mm256_min_epu32, _mm256_movemask_epi8,
    _mm256_movemask_ps, _mm256_or_si256, _mm256_set1_epi32, _mm256_sll_epi32, _mm256_slli_epi32, _mm256_sllv_epi32,
    _mm256_srl_epi32, _mm256_srli_epi32, _mm256_storeu_si256, _mm256_sub_epi32,
};

use arrow_buffer::BooleanBuffer;

use super::{Lane, VECTOR, scalar, vector_len};

macro_rules! rows {
    ($row:ident) => {
        $row!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31)
    };
}

/// Calls `$kernel::<W>` for the run-time width `$bits`.
macro_rules! by_width {
    ($bits:expr, $kernel:ident $args:tt) => {
        by_width!(@ $bits, $kernel $args,
            1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32)
    };
    (@ $bits:expr, $kernel:ident $args:tt, $($width:literal)*) => {
        match $bits {
            $($width => $kernel::<$width> $args,)*
            _ => {}
        }
    };
}

/// Row `R` of eight lanes: `W` bits at `R * W` of each lane. `words` points at the lanes' first words.
///
/// # Safety
/// AVX2, and `words` valid for the reads of a packed vector's lanes: 32 bytes at every multiple of 128 below `128 * W`.
#[inline(always)]
unsafe fn row<const W: usize, const R: usize>(words: *const u8, word: &mut __m256i) -> __m256i {
    let shift = R * W % 32;
    // SAFETY: AVX2 is the caller's promise; the next word is read only where the row's bits reach or pass its start and
    // it exists (`(R + 1) * W < 32 * W` unless R is the last row).
    unsafe {
        let ones = _mm256_set1_epi32((u32::MAX >> (32 - W)) as i32);
        let mut value = _mm256_srl_epi32(*word, _mm_cvtsi32_si128(shift as i32));
        if shift + W >= 32 && R < 31 {
            *word = _mm256_loadu_si256(words.add((R * W / 32 + 1) * 128).cast());
            if shift + W > 32 {
                value = _mm256_or_si256(value, _mm256_sll_epi32(*word, _mm_cvtsi32_si128((32 - shift) as i32)));
            }
        }
        if shift + W == 32 { value } else { _mm256_and_si256(value, ones) }
    }
}

/// # Safety
/// AVX2; `bytes` holds `128 * W` bytes.
#[target_feature(enable = "avx2")]
unsafe fn unpack32<const W: usize>(bytes: &[u8], base: u32, out: &mut [u32; VECTOR]) {
    debug_assert!(bytes.len() >= 128 * W);
    let add = _mm256_set1_epi32(base as i32);
    for group in 0..4 {
        // SAFETY: group * 32 + (W - 1) * 128 + 32 <= 128 * W bytes are read, and row * 32 + group * 8 + 8 <= 1024 values
        // are written.
        unsafe {
            let words = bytes.as_ptr().add(group * 32);
            let target = out.as_mut_ptr().add(group * 8);
            let mut word = _mm256_loadu_si256(words.cast());
            macro_rules! store {
                ($($r:literal)*) => {$(
                    let value = row::<W, $r>(words, &mut word);
                    _mm256_storeu_si256(target.add($r * 32).cast(), _mm256_add_epi32(value, add));
                )*};
            }
            rows!(store);
        }
    }
}

/// # Safety
/// AVX2; `bytes` holds `128 * W` bytes.
#[target_feature(enable = "avx2")]
unsafe fn compare32<const W: usize>(bytes: &[u8], lo: u32, span: u32, out: &mut [u8; VECTOR / 8]) {
    debug_assert!(bytes.len() >= 128 * W);
    let (lo, span) = (_mm256_set1_epi32(lo as i32), _mm256_set1_epi32(span as i32));
    for group in 0..4 {
        // SAFETY: reads as in `unpack32`; row * 4 + group < 128.
        unsafe {
            let words = bytes.as_ptr().add(group * 32);
            let target = out.as_mut_ptr().add(group);
            let mut word = _mm256_loadu_si256(words.cast());
            macro_rules! store {
                ($($r:literal)*) => {$(
                    let past = _mm256_sub_epi32(row::<W, $r>(words, &mut word), lo);
                    let hit = _mm256_cmpeq_epi32(_mm256_min_epu32(past, span), past);
                    *target.add($r * 4) = _mm256_movemask_ps(_mm256_castsi256_ps(hit)) as u8;
                )*};
            }
            rows!(store);
        }
    }
}

/// # Safety
/// AVX2.
#[target_feature(enable = "avx2")]
unsafe fn convert<T: Lane>(values: &[u32; VECTOR], base: T, out: &mut [T; VECTOR]) {
    for (slot, &value) in out.iter_mut().zip(values) {
        *slot = T::truncate32(value).plus(base);
    }
}

/// Packs a vector of at most 32 bits a value. The caller has found AVX2.
pub(super) fn pack<T: Copy>(values: &[T; VECTOR], load: impl Fn(T) -> u64, bits: u8, out: &mut [u8]) {
    // SAFETY: the caller found AVX2.
    unsafe { pack32(values, load, bits, out) }
}

/// # Safety
/// AVX2.
#[target_feature(enable = "avx2")]
unsafe fn pack32<T: Copy>(values: &[T; VECTOR], load: impl Fn(T) -> u64, bits: u8, out: &mut [u8]) {
    scalar::pack32(values, load, bits, out);
}

/// # Safety
/// AVX2.
#[target_feature(enable = "avx2")]
unsafe fn unpack64<T: Lane>(bytes: &[u8], bits: u8, base: T, out: &mut [T; VECTOR]) {
    scalar::unpack64(bytes, bits, base, out);
}

/// # Safety
/// AVX2.
#[target_feature(enable = "avx2")]
unsafe fn compare64(bytes: &[u8], bits: u8, lo: u64, span: u64, out: &mut [u64; VECTOR / 64]) {
    scalar::compare64(bytes, bits, lo, span, out);
}

/// Asks for the `len` bytes that follow a vector in memory, where the next one usually is. The kernels skip about in a vector,
/// which the machine's own prefetching does not follow well.
#[inline]
pub(super) fn prefetch_next(bytes: &[u8], len: usize) {
    let next = bytes.as_ptr().wrapping_add(len);
    for line in (0..len).step_by(64) {
        // SAFETY: a hint, which reads nothing, and of an address that may be any.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(next.wrapping_add(line).cast()) };
    }
}

/// Unpacks a full vector and adds `base`. The caller has found AVX2.
pub(super) fn unpack<T: Lane>(bytes: &[u8], bits: u8, base: T, out: &mut [T; VECTOR]) {
    assert!(bytes.len() >= vector_len(bits));
    prefetch_next(bytes, vector_len(bits));
    // SAFETY: the caller found AVX2, and the length was just checked.
    unsafe {
        if bits > 32 {
            unpack64(bytes, bits, base, out);
        } else if let Some(out) = (out as &mut dyn std::any::Any).downcast_mut::<[u32; VECTOR]>() {
            by_width!(bits, unpack32(bytes, base.widen() as u32, out));
        } else {
            let mut values = [0; VECTOR];
            by_width!(bits, unpack32(bytes, 0, &mut values));
            convert(&values, base, out);
        }
    }
}

/// Compares a full vector. The caller has found AVX2.
pub(super) fn compare(bytes: &[u8], bits: u8, lo: u64, span: u64) -> [u64; VECTOR / 64] {
    assert!(bytes.len() >= vector_len(bits));
    prefetch_next(bytes, vector_len(bits));
    let mut out = [0; VECTOR / 64];
    // SAFETY: as in `unpack`.
    unsafe {
        if bits > 32 {
            compare64(bytes, bits, lo, span, &mut out);
        } else {
            let mut hits = [0_u8; VECTOR / 8];
            by_width!(bits, compare32(bytes, lo as u32, span as u32, &mut hits));
            for (word, bytes) in out.iter_mut().zip(hits.as_chunks::<8>().0) {
                *word = u64::from_le_bytes(*bytes);
            }
        }
    }
    out
}

/// Compares unpacked values. The caller has found AVX2.
pub(super) fn in_range<S: Copy, T: Copy + PartialOrd>(values: &[S], load: impl Fn(S) -> T, lo: T, hi: T) -> Vec<u64> {
    // SAFETY: the caller found AVX2.
    unsafe { in_range_256(values, load, lo, hi) }
}

/// # Safety
/// AVX2.
#[target_feature(enable = "avx2")]
unsafe fn in_range_256<S: Copy, T: Copy + PartialOrd>(values: &[S], load: impl Fn(S) -> T, lo: T, hi: T) -> Vec<u64> {
    let (chunks, rest) = values.as_chunks::<64>();
    let mut out = Vec::with_capacity(chunks.len() + 1);
    for chunk in chunks {
        // Bytes of zeros or ones: a loop that the compiler turns into vector compares.
        let mut hits = [0_u8; 64];
        for (hit, &value) in hits.iter_mut().zip(chunk) {
            let value = load(value);
            *hit = u8::from((lo <= value) & (value <= hi)).wrapping_neg();
        }
        // SAFETY: two times 32 of the 64 bytes are read.
        let (low, high) = unsafe {
            let low = _mm256_movemask_epi8(_mm256_loadu_si256(hits.as_ptr().cast()));
            (low, _mm256_movemask_epi8(_mm256_loadu_si256(hits.as_ptr().add(32).cast())))
        };
        out.push(u64::from(low as u32) | u64::from(high as u32) << 32);
    }
    if !rest.is_empty() {
        out.extend(scalar::in_range(rest, &load, lo, hi));
    }
    out
}

/// Looks codes up in a set. The caller has found AVX2.
pub(super) fn members(codes: &[u32], set: &BooleanBuffer, out: &mut [u64]) {
    let bytes = set.values();
    let end = set.offset() + set.len();
    let fits =
        u32::try_from(end).is_ok() && bytes.len() >= end.div_ceil(8).max(4) && i32::try_from(bytes.len()).is_ok();
    if !fits || set.is_empty() {
        return scalar::members(codes, set, out);
    }
    let (chunks, rest) = codes.as_chunks::<64>();
    let (words, last) = out.split_at_mut(chunks.len().min(out.len()));
    // SAFETY: the caller found AVX2, and the set's length, offset and bytes are what the kernel asks for.
    unsafe { members_256(chunks, bytes, set.offset() as u32, set.len() as u32, words) }
    scalar::members(rest, set, last);
}

/// # Safety
/// AVX2; `len` is above zero, `offset + len` in 32 bits and at most `8 * bytes.len()`, which is from 4 to `i32::MAX`.
#[target_feature(enable = "avx2")]
unsafe fn members_256(chunks: &[[u32; 64]], bytes: &[u8], offset: u32, len: u32, out: &mut [u64]) {
    let last = _mm256_set1_epi32((len - 1) as i32);
    let last_byte = _mm256_set1_epi32((bytes.len() - 4) as i32);
    let offset = _mm256_set1_epi32(offset as i32);
    let top = _mm256_set1_epi32(31);
    for (word, codes) in out.iter_mut().zip(chunks) {
        *word = 0;
        for (i, codes) in codes.as_chunks::<8>().0.iter().enumerate() {
            // SAFETY: eight codes are read from an array of eight. `at` is below `offset + len`, so four bytes from
            // `byte` are the set's, and bit `at` is among them, for `byte` is `at / 8` or the fourth from the end.
            let hits = unsafe {
                let codes = _mm256_loadu_si256(codes.as_ptr().cast());
                let inside = _mm256_min_epu32(codes, last);
                let at = _mm256_add_epi32(inside, offset);
                let byte = _mm256_min_epu32(_mm256_srli_epi32::<3>(at), last_byte);
                let bit = _mm256_sub_epi32(at, _mm256_slli_epi32::<3>(byte));
                let found = _mm256_i32gather_epi32::<1>(bytes.as_ptr().cast(), byte);
                let found = _mm256_sllv_epi32(found, _mm256_sub_epi32(top, bit));
                _mm256_and_si256(found, _mm256_cmpeq_epi32(inside, codes))
            };
            *word |= u64::from(_mm256_movemask_ps(_mm256_castsi256_ps(hits)) as u8) << (8 * i);
        }
    }
}
