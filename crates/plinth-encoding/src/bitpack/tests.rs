#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

use plinth_core::random::Random;

use super::*;

/// A fixed pseudo-random sequence.
pub(super) fn noise(seed: u64) -> impl FnMut() -> u64 {
    let mut random = Random(seed);
    move || random.next_u64()
}

pub(super) fn kernels() -> Vec<Level> {
    Level::all()
}

fn round_trip<T: Lane>(values: &[u64], bits: u8, base: T) {
    let mut packed = vec![];
    pack(values, 0, bits, &mut packed);
    assert_eq!(packed.len(), packed_len(values.len(), bits));
    // What is in the way of the least number does not matter, nor does who packs.
    for kernel in kernels() {
        let (mut by_kernel, mut lifted) = (vec![], vec![]);
        pack_by(kernel, values, |value| value, bits, &mut by_kernel);
        pack(
            &values.iter().map(|value| value.wrapping_add(u64::MAX - 5)).collect::<Vec<_>>(),
            u64::MAX - 5,
            bits,
            &mut lifted,
        );
        assert!(by_kernel == packed && lifted == packed, "{kernel:?} {bits} bits");
    }
    let expected: Vec<T> = values.iter().map(|&v| T::truncate(v).plus(base)).collect();
    for kernel in kernels() {
        let mut out = vec![T::default(); values.len()];
        unpack(kernel, &packed, bits, base, &mut out);
        assert_eq!(out, expected, "{kernel:?} {bits} bits");
    }
}

#[test]
fn every_width_and_lane_unpacks_what_was_packed() {
    for bits in 0..=64 {
        let mut next = noise(u64::from(bits));
        for count in [1024, 1, 2, 7, 63, 64, 1023] {
            let mut values: Vec<u64> = (0..count).map(|_| next() & mask(bits)).collect();
            values[0] = mask(bits);
            round_trip::<u64>(&values, bits, 0xFFFF_FFFF_0000_0001);
            round_trip::<u32>(&values, bits, 0xFFFF_0001);
            round_trip::<u16>(&values, bits, 0xFF01);
            round_trip::<u8>(&values, bits, 7);
        }
    }
}

#[test]
fn every_width_compares_as_the_unpacked_values_do() {
    for bits in 1..=64_u8 {
        let mut next = noise(1000 + u64::from(bits));
        let values: Vec<u64> = (0..VECTOR).map(|_| next() & mask(bits)).collect();
        let mut packed = vec![];
        pack(&values, 0, bits, &mut packed);
        for (lo, hi) in [(0, mask(bits)), (0, 0), (values[3], values[3]), (mask(bits) / 4, mask(bits) / 2)] {
            for kernel in kernels() {
                let hits = compare(kernel, &packed, bits, lo, hi - lo);
                for (i, &value) in values.iter().enumerate() {
                    let hit = hits[i / 64] >> (i % 64) & 1 == 1;
                    assert_eq!(hit, lo <= value && value <= hi, "{kernel:?} {bits} bits, value {i}");
                }
            }
        }
    }
}

#[test]
fn the_layout_is_as_written() {
    // Value 32 is the second of lane 0: bits 3..6 of the first word.
    let mut values = vec![0_u64; VECTOR];
    values[32] = 5;
    values[1] = 1;
    let mut packed = vec![];
    pack(&values, 0, 3, &mut packed);
    assert_eq!(packed[0], 5 << 3);
    assert_eq!(packed[4], 1);
    let mut tail = vec![];
    pack(&[1_u64, 2, 3], 0, 4, &mut tail);
    assert_eq!(tail, [0x21, 0x03]);
}

#[test]
fn short_bytes_are_not_read_past() {
    for kernel in kernels() {
        let mut out = [9_u32; VECTOR];
        unpack(kernel, &[0; 10], 3, 0, &mut out);
        assert_eq!(out, [9; VECTOR]);
        assert_eq!(compare(kernel, &[0; 10], 3, 0, 7), [0; VECTOR / 64]);
    }
}

#[test]
fn unpacked_values_compare_alike_on_every_kernel() {
    let mut next = noise(5);
    for len in [0, 1, 63, 64, 65, 1000] {
        let values: Vec<i64> = (0..len).map(|_| (next() % 100).cast_signed() - 50).collect();
        let expected: Vec<u64> = values
            .chunks(64)
            .map(|chunk| chunk.iter().rev().fold(0, |word, v| word << 1 | u64::from((-7..=20).contains(v))))
            .collect();
        for kernel in kernels() {
            assert_eq!(in_range(kernel, &values, |value| value, -7, 20), expected, "{kernel:?}, {len} values");
        }
    }
}
