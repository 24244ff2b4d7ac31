#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, clippy::cast_sign_loss)]

use super::*;
use crate::bitpack::tests::{kernels, noise};

fn packed(radix: Radix, values: &[u64]) -> (Vec<u8>, Vec<u8>) {
    let (mut lows, mut fractions) = (vec![], vec![]);
    radix.pack(values, 0, &mut lows, &mut fractions);
    assert_eq!(lows.len(), packed_len(values.len(), radix.low_bits));
    assert_eq!(fractions.len(), radix.fractions_len(values.len()));
    (lows, fractions)
}

fn round_trip<T: Lane>(radix: Radix, values: &[u64], base: T) {
    let (lows, fractions) = packed(radix, values);
    let mixed = Mixed::new(radix, values.len(), &lows, &fractions).unwrap();
    let expected: Vec<T> = values.iter().map(|&value| T::truncate(value).plus(base)).collect();
    for kernel in kernels() {
        let mut out = vec![T::default(); values.len()];
        mixed.unpack(kernel, base, &mut out);
        assert_eq!(out, expected, "{kernel:?} {radix:?} {} values", values.len());
    }
    for (at, &value) in values.iter().enumerate() {
        assert_eq!(u64::from(mixed.high(at, values.len())), value >> radix.low_bits, "{radix:?}, value {at}");
    }
}

/// Some of every number of digits, with the largest radix for it among them.
fn radices() -> Vec<Radix> {
    let mut found = vec![];
    for digits in DIGITS {
        let (mut fits, mut beyond) = (2_u32, 1 << 30);
        while beyond - fits > 1 {
            let middle = fits.midpoint(beyond);
            if Radix::new(0, middle, digits).is_some() { fits = middle } else { beyond = middle }
        }
        assert!(Radix::new(0, fits + 1, digits).is_none());
        for radix in [2, 3, 5, 137, fits - 1, fits] {
            found.extend([0, 1, 7, 9, 20].into_iter().filter_map(|low_bits| Radix::new(low_bits, radix, digits)));
        }
    }
    assert!(found.len() > 60);
    found
}

#[test]
fn every_number_of_few_small_digits_comes_back() {
    // Each number of R^g below 2^14 or so, as the only group of a tail: all there is to go wrong in rounding.
    for digits in DIGITS {
        for radix in 2..=128_u32 {
            let Some(radix) = Radix::new(0, radix, digits) else { continue };
            let Some(limit) = radix.radix.checked_pow(digits.into()).filter(|&limit| limit <= 1 << 16) else {
                continue;
            };
            for number in 0..limit {
                let mut values = vec![0; digits.into()];
                values.iter_mut().rev().fold(number, |left, digit| {
                    *digit = u64::from(left % radix.radix);
                    left / radix.radix
                });
                let (lows, fractions) = packed(radix, &values);
                let mut out = vec![0_u32; values.len()];
                Mixed::new(radix, values.len(), &lows, &fractions).unwrap().unpack(Level::Scalar, 0, &mut out);
                assert!(out.iter().zip(&values).all(|(&out, &value)| u64::from(out) == value), "{number} of {radix:?}");
            }
        }
    }
}

#[test]
fn every_radix_and_lane_unpacks_what_was_packed() {
    for (seed, radix) in radices().into_iter().enumerate() {
        let mut next = noise(seed as u64);
        for count in [VECTOR, 1, 2, 7, 31, 33, 64, 1000, 1023] {
            let most = radix.most();
            let noise: Vec<u64> = (0..count).map(|_| next() % (most + 1)).collect();
            // The numbers next to the ends of what a group may hold.
            let ends: Vec<u64> = (0..count).map(|_| [0, most, most, most - 1][next() as usize % 4]).collect();
            for values in [noise, ends, vec![0; count], vec![most; count]] {
                round_trip::<u32>(radix, &values, 0xFFFF_0001);
            }
            let values: Vec<u64> = (0..count).map(|_| next() % (most + 1)).collect();
            round_trip::<u64>(radix, &values, 0xFFFF_FFFF_0000_0001);
            round_trip::<u16>(radix, &values, 0xFF01);
            round_trip::<u8>(radix, &values, 7);
        }
    }
}

#[test]
fn compares_as_the_unpacked_values_do() {
    for (seed, radix) in radices().into_iter().enumerate() {
        let mut next = noise(100 + seed as u64);
        let most = radix.most();
        let step = 1 << radix.low_bits;
        let mut values: Vec<u64> = (0..VECTOR).map(|_| next() % (most + 1)).collect();
        values[5] = step - 1;
        values[6] = step;
        values[1000] = most;
        let (lows, fractions) = packed(radix, &values);
        let mixed = Mixed::new(radix, VECTOR, &lows, &fractions).unwrap();
        let near = |value: u64, by: u64| (value.saturating_sub(by), (value + by).min(most));
        let ranges = [(0, most), (0, 0), (most, most), near(values[3], 0), near(values[9], 3), near(values[9], step)]
            .into_iter()
            .chain([near(step, 2), near(step, 0), (step - 1, step), (most / 4, most / 2)]);
        for (lo, hi) in ranges {
            for kernel in kernels() {
                let hits = mixed.compare(kernel, lo as u32, (hi - lo) as u32);
                for (i, &value) in values.iter().enumerate() {
                    let hit = hits[i / 64] >> (i % 64) & 1 == 1;
                    assert_eq!(hit, lo <= value && value <= hi, "{kernel:?} {radix:?} {lo}..={hi}, value {i}");
                }
            }
        }
        // One value everywhere: its low part says nothing.
        let (lows, fractions) = packed(radix, &[values[0]; VECTOR]);
        let mixed = Mixed::new(radix, VECTOR, &lows, &fractions).unwrap();
        for kernel in kernels() {
            assert_eq!(mixed.compare(kernel, values[0] as u32, 0), [u64::MAX; WORDS]);
            assert_eq!(mixed.compare(kernel, (values[0] ^ step) as u32, 0), [0; WORDS]);
        }
    }
}

#[test]
fn the_best_is_within_a_hundredth_of_what_the_values_hold() {
    assert_eq!(Radix::best(69_699).map(|radix| radix.packed_len(VECTOR) * 8), Some(VECTOR * 129 / 8));
    let mut next = noise(9);
    for _ in 0..300 {
        let most = (1 << (13 + next() % 12)) + next() as u32 % (1 << 13);
        let radix = Radix::best(most).unwrap();
        assert!(radix.most() >= most.into() && radix.low_bits >= FEWEST_LOW_BITS, "{most}: {radix:?}");
        let plain = f64::from(bits_for(most.into()));
        let bits = radix.bits();
        assert_eq!(radix.packed_len(VECTOR), (bits * 128.0) as usize);
        let needed = f64::from(most).log2();
        assert!(bits.min(plain) < needed * 1.01, "{most}: {bits} bits of {radix:?} where {needed} were enough");
    }
    for most in [0, 1, 63] {
        assert!(Radix::best(most).is_none());
    }
    for most in [64, 65, 1 << 31, u32::MAX] {
        assert!(Radix::best(most).is_some_and(|radix| radix.most() >= most.into()), "{most}");
    }
}

#[test]
fn what_no_writer_writes_is_refused_and_any_fraction_gives_digits() {
    for (low_bits, radix, digits) in
        [(0, 0, 2), (0, 1, 2), (0, 3, 0), (0, 3, 3), (0, 3, 64), (32, 2, 2), (31, 3, 2), (0, 1 << 29, 2), (255, 2, 2)]
    {
        assert!(Radix::new(low_bits, radix, digits).is_none(), "{low_bits} {radix} {digits}");
    }
    for radix in radices() {
        let (lows, fractions) = (vec![0xFF; packed_len(VECTOR, 20)], vec![0xFF; radix.fractions_len(VECTOR)]);
        assert!(Mixed::new(radix, VECTOR, &lows, &fractions[1..]).is_none());
        assert!(Mixed::new(radix, VECTOR + 1, &lows, &fractions).is_none());
        let mixed = Mixed::new(radix, VECTOR, &lows, &fractions).unwrap();
        for kernel in kernels() {
            let mut out = [0_u64; VECTOR];
            mixed.unpack(kernel, 0, &mut out);
            assert!(out.iter().all(|&value| value <= radix.most()), "{radix:?}");
        }
    }
}

#[test]
fn the_layout_is_as_written() {
    // Two groups of two digits of radix 3: the numbers 2 * 3 + 1 and 0 * 3 + 2, of 9, in sixteenths rounded up: 13 and 4.
    let radix = Radix::new(1, 3, 2).unwrap();
    let (lows, fractions) = packed(radix, &[5, 0, 2, 4]);
    assert_eq!(lows, [0b0001]);
    assert_eq!(fractions, [4 << 4 | 13]);
}
