//! Sorts agree with the standard library, whatever is sorted, in pools of one thread and of several.

use std::fmt::Debug;

use plinth_core::sort::{Sortable, order_bytes, sort};
use proptest::prelude::*;

/// Values of some pattern: random, few, in runs, sorted, backwards, skewed, nearly sorted.
fn pattern(kind: u8, seed: u64, len: usize) -> Vec<u64> {
    let mut state = seed | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    };
    let mut values: Vec<u64> = (0..len).map(|_| next()).collect();
    match kind {
        0 => {}
        1 => values.iter_mut().for_each(|v| *v %= 5),
        2 => values.chunks_mut(1000).for_each(<[u64]>::sort_unstable),
        3 => values.sort_unstable(),
        4 => values.sort_unstable_by(|a, b| b.cmp(a)),
        5 => values.iter_mut().for_each(|v| *v >>= v.trailing_zeros() * 3 % 64),
        6 => {
            values.sort_unstable();
            for _ in 0..10 {
                let (a, b) = (next() as usize % len.max(1), next() as usize % len.max(1));
                if len > 0 {
                    values.swap(a, b);
                }
            }
        }
        _ => values.iter_mut().enumerate().for_each(|(i, v)| *v = if i % 50 == 0 { *v } else { 7 }),
    }
    values
}

fn agrees<T: Sortable + Debug>(values: &[T]) {
    let mut expected = values.to_vec();
    expected.sort_unstable();
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut sorted = values.to_vec();
        pool.install(|| sort(&mut sorted));
        assert!(sorted == expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_type_and_pattern(kind in 0..8_u8, seed: u64, len in prop_oneof![0..100_usize, 8_000..40_000_usize]) {
        let values = pattern(kind, seed, len);
        agrees(&values);
        agrees(&values.iter().map(|v| v.cast_signed()).collect::<Vec<_>>());
        agrees(&values.iter().map(|v| (v >> 32) as i32).collect::<Vec<_>>());
        agrees(&values.iter().map(|v| *v as u32).collect::<Vec<_>>());
        agrees(&values.iter().map(|v| u128::from(*v) << 60 | u128::from(v >> 3)).collect::<Vec<_>>());
        agrees(&values.iter().map(|v| (u128::from(*v) << 64).cast_signed()).collect::<Vec<_>>());
        agrees(&values.iter().zip(0_u32..).map(|(v, row)| (v.cast_signed(), row)).collect::<Vec<_>>());
    }

    #[test]
    fn byte_strings(kind in 0..8_u8, seed: u64, len in 0..20_000_usize, shift in 0..60_u32, prefix in 0..12_usize) {
        let prefix = "http://www.example.com/".get(..prefix).unwrap();
        let strings: Vec<Vec<u8>> = pattern(kind, seed, len)
            .into_iter()
            .map(|v| match v % 3 {
                0 => format!("{prefix}{}", v >> shift).into_bytes(),
                1 => [prefix.as_bytes(), &[0; 9][..(v % 10) as usize]].concat(),
                _ => format!("{prefix}longer/than/eight/{}", v >> shift).into_bytes(),
            })
            .collect();
        let mut expected: Vec<u32> = (0..).take(strings.len()).collect();
        expected.sort_by_key(|&at| &strings[at as usize]);
        prop_assert_eq!(order_bytes(u32::try_from(strings.len()).unwrap(), |at| &strings[at as usize]), expected);
    }
}
