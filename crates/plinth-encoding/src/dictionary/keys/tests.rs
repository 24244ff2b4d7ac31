//! Keys order as values do.

use proptest::prelude::*;

use super::*;

/// Types of values of one width: those that have keys.
fn physicals() -> Vec<Physical> {
    let integers = [1, 2, 4, 8].map(|width| [false, true].map(|signed| Physical::Int { width, signed }));
    let wide = [16, 32].map(|width| Physical::Wide { width });
    let floats = [2, 4, 8].map(|width| Physical::Float { width });
    let fixed = [3, 8, 20].map(|width| Physical::Fixed { width });
    integers.into_iter().flatten().chain(wide).chain(floats).chain(fixed).collect()
}

fn scalar_order(a: &Scalar, b: &Scalar) -> std::cmp::Ordering {
    match (a, b) {
        (Scalar::Int(a), Scalar::Int(b)) => a.cmp(b),
        (Scalar::Float(a), Scalar::Float(b)) => a.total_cmp(b),
        (Scalar::Bytes(a), Scalar::Bytes(b)) => a.cmp(b),
        _ => unreachable!(),
    }
}

proptest! {
    #[test]
    fn keys_order_as_values_and_come_back(a: [u8; 32], b: [u8; 32], same in 0..32usize) {
        let mut b = b;
        b[32 - same..].copy_from_slice(&a[32 - same..]);
        for physical in physicals() {
            let width = key_width(physical).unwrap();
            let values = [&a[32 - width..], &b[32 - width..]].concat();
            let (mut keys, mut back) = (Vec::new(), Vec::new());
            encode(physical, &values, &mut keys).unwrap();
            decode(physical, &keys, &mut back).unwrap();
            prop_assert_eq!(&back, &values);
            let (x, y) = keys.split_at(width);
            if let (Some(left), Some(right)) = (to_scalar(physical, x), to_scalar(physical, y)) {
                prop_assert_eq!(x.cmp(y), scalar_order(&left, &right), "{:?}", physical);
                prop_assert_eq!(from_scalar(physical, &left).unwrap(), x);
            }
            if let Some(numbers) = Numbers::of(physical) {
                let mut read = Vec::new();
                numbers.read(&values, &mut read);
                prop_assert_eq!(&read, &[numbers.of_key(x), numbers.of_key(y)]);
                let mut back = vec![0; values.len()];
                numbers.write(&read, &mut back);
                prop_assert_eq!(&back, &values);
            }
        }
    }

    #[test]
    fn single_floats_widen_as_the_processor_does(value: f32) {
        prop_assert_eq!(widen(4, u64::from(value.to_bits())).to_bits(), f64::from(value).to_bits());
    }
}

#[test]
fn half_floats_widen_in_order() {
    assert_eq!(widen(2, 0x3c00), 1.0);
    assert_eq!(widen(2, 0x0001), 2f64.powi(-24));
    assert_eq!(widen(2, 0x03ff), 1023.0 * 2f64.powi(-24));
    assert_eq!(widen(2, 0xfbff), -65504.0);
    assert_eq!(widen(2, 0x7c00), f64::INFINITY);
    let numbers = Numbers::of(Physical::Float { width: 2 }).unwrap();
    for number in 1..=numbers.largest() {
        let at = |number| widen(2, numbers.raw(number));
        assert!(at(number - 1).total_cmp(&at(number)).is_lt(), "{number}");
    }
}

#[test]
fn wide_integers_beyond_sixteen_bytes_have_no_scalar() {
    let wide = Physical::Wide { width: 32 };
    for value in [0, 1, -1, i128::MAX, i128::MIN] {
        let key = from_scalar(wide, &Scalar::Int(value)).unwrap();
        assert_eq!(to_scalar(wide, &key), Some(Scalar::Int(value)));
    }
    let mut key = from_scalar(wide, &Scalar::Int(1)).unwrap();
    key[15] = 1;
    assert_eq!(to_scalar(wide, &key), None);
    assert_eq!(from_scalar(Physical::Int { width: 1, signed: true }, &Scalar::Int(128)), None);
    assert_eq!(from_scalar(Physical::Float { width: 4 }, &Scalar::Float(0.1)), None);
}
