use arrow_buffer::{Buffer, NullBuffer};
use proptest::prelude::*;

use super::*;

const U64: Physical = Physical::Int { width: 8, signed: false };

fn of(numbers: impl Iterator<Item = u64>) -> Sketch {
    let mut sketch = Sketch::default();
    let numbers: Vec<u64> = numbers.collect();
    sketch.add(U64, &Column { len: numbers.len(), values: Values::Fixed(Buffer::from_vec(numbers)), nulls: None });
    sketch
}

fn near(estimate: u64, count: u64, share: f64) -> bool {
    #[allow(clippy::cast_precision_loss, reason = "a test of what is near")]
    let (estimate, count) = (estimate as f64, count as f64);
    (estimate - count).abs() <= count * share + 1.0
}

#[test]
fn estimates_are_near_whatever_the_count() {
    for count in [0_u64, 1, 2, 10, 100, 1_000, 5_000, 20_000, 100_000, 3_000_000] {
        // Each three times, in another order.
        let sketch = of((0..count * 3).map(|i| (i % count.max(1)).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        assert!(near(sketch.estimate(), count, 0.06), "{count}: {}", sketch.estimate());
    }
}

#[test]
fn a_written_sketch_is_the_folded_one() {
    for (values, precision) in [(0, 6), (1_000, 6), (20_000, 10), (1 << 40, 12)] {
        let sketch = of(0..20_000);
        let mut bytes = vec![];
        sketch.write(values, &mut bytes);
        let (read, len) = Sketch::read(&bytes).unwrap();
        assert_eq!((read.precision, len), (precision, bytes.len()));
        assert_eq!(read, sketch.folded(precision));
        // Four times the error that is to be expected.
        let error = 4.0 * 1.04 / f64::from(1_u32 << precision).sqrt();
        assert!(near(read.estimate(), 20_000, error), "{precision}: {}", read.estimate());
        for cut in 0..bytes.len() {
            Sketch::read(&bytes[..cut]).unwrap_err();
        }
        bytes[0] = 13;
        Sketch::read(&bytes).unwrap_err();
    }
    Sketch::read(&[&[12][..], &[0xff; 3072]].concat()).unwrap_err();
}

#[test]
fn nulls_and_booleans_do_not_count_and_keys_do_as_their_values() {
    let numbers: Vec<i32> = (-500..500).collect();
    let nulls = NullBuffer::from_iter((0..1000).map(|row| row % 2 == 0));
    let mut sketch = Sketch::default();
    let physical = Physical::Int { width: 4, signed: true };
    sketch.add(physical, &Column { len: 1000, values: Values::Fixed(Buffer::from_vec(numbers)), nulls: Some(nulls) });
    assert!(near(sketch.estimate(), 500, 0.06), "{}", sketch.estimate());
    let mut by_key = Sketch::default();
    for number in (-500..500_i32).step_by(2) {
        let mut key = vec![];
        keys::encode(physical, &number.to_le_bytes(), &mut key).unwrap();
        by_key.add_key(physical, &key);
    }
    assert_eq!(by_key, sketch);
}

proptest! {
    /// Folding is the same as having had fewer registers from the start, and merging the same as having seen both.
    #[test]
    fn folding_and_merging_lose_nothing_else(hashes in proptest::collection::vec(any::<u64>(), 0..300), cut in 0_usize..300, precision in 6_u8..=12) {
        let cut = cut.min(hashes.len());
        let of = |hashes: &[u64], precision| {
            let mut sketch = Sketch::of_precision(precision);
            hashes.iter().for_each(|&hash| sketch.add_hash(hash));
            sketch
        };
        let whole = of(&hashes, 12);
        prop_assert_eq!(whole.folded(precision), of(&hashes, precision));
        let mut merged = of(&hashes[..cut], 12);
        merged.merge(&of(&hashes[cut..], precision));
        prop_assert_eq!(merged, of(&hashes, precision));
    }
}
