//! Runs and packed integers, sound and damaged.

use plinth_core::random::Random;

use super::*;

fn integers(bytes: &[u8], width: u8, rows: usize) -> Result<Vec<u32>> {
    Hybrid::new(Bytes::copy_from_slice(bytes), width)?.take(rows)
}

#[test]
fn runs_and_packed_integers_come_back_in_parts_of_any_size() {
    // Three times five, then 0..8 in three bits (the example of the format's specification).
    let bytes = [3 << 1, 5, 3, 0b1000_1000, 0b1100_0110, 0b1111_1010];
    let expected: Vec<u32> = [5, 5, 5].into_iter().chain(0..8).collect();
    assert_eq!(integers(&bytes, 3, 11).unwrap(), expected);
    for cut in 0..bytes.len() {
        assert!(integers(&bytes[..cut], 3, 11).is_err());
    }
    assert!(integers(&bytes, 3, 12).is_err());
    assert!(integers(&bytes, 33, 1).is_err());
    assert_eq!(integers(&[8 << 1], 0, 8).unwrap(), vec![0; 8]);
    for step in 1..11 {
        let mut hybrid = Hybrid::new(Bytes::copy_from_slice(&bytes), 3).unwrap();
        let mut found = Vec::new();
        while found.len() < 11 {
            found.extend(hybrid.take(step.min(11 - found.len())).unwrap());
        }
        assert_eq!(found, expected);
        let mut hybrid = Hybrid::new(Bytes::copy_from_slice(&bytes), 3).unwrap();
        hybrid.skip(step).unwrap();
        assert_eq!(hybrid.take(11 - step).unwrap(), expected[step..]);
    }
}

#[test]
fn integers_of_every_width_come_from_wherever_they_start() {
    let bytes: Vec<u8> = (0..700u32).map(|i| u8::try_from(i * i * 31 % 251).unwrap()).collect();
    for width in 1..=32 {
        let all = bytes.len() * 8 / usize::from(width);
        let expected: Vec<u32> = (0..all)
            .map(|i| {
                let bits = i * usize::from(width)..(i + 1) * usize::from(width);
                bits.rev().fold(0, |word, bit| word << 1 | u32::from(bytes[bit / 8] >> (bit % 8) & 1))
            })
            .collect();
        for from in 0..20.min(all) {
            for end in (from..all).step_by(13).chain([all]) {
                let mut found = Vec::new();
                unpack(&bytes, width, from..end, &mut found);
                assert_eq!(found, expected[from..end], "width {width}, {from}..{end}");
            }
        }
    }
}

#[test]
fn levels_say_what_is_present() {
    let present = |bytes: &[u8], largest| {
        let mut levels = Hybrid::of_levels(Bytes::copy_from_slice(bytes), largest).unwrap();
        let mut found: Vec<bool> = levels.present(5, largest).unwrap().iter().collect();
        found.extend(levels.present(1, largest).unwrap().iter());
        found
    };
    assert_eq!(present(&[2 << 1, 1, 3, 0b0000_0101], 1), [true, true, true, false, true, false]);
    assert_eq!(present(&[4 << 1, 2, 2 << 1, 1], 2), [true, true, true, true, false, false]);
}

#[test]
fn any_bytes_are_an_error_or_integers() {
    let mut random = Random(1);
    for _ in 0..2000 {
        let mut bytes = vec![0; random.index(40)];
        random.fill(&mut bytes);
        let width = u8::try_from(random.below(34)).unwrap();
        if let Ok(found) = integers(&bytes, width, 100) {
            assert_eq!(found.len(), 100);
        }
        let mut levels = Hybrid::of_levels(bytes.into(), 3).unwrap();
        if let Ok(found) = levels.present(100, 3) {
            assert_eq!(found.len(), 100);
        }
    }
}
