//! The kinds of keys that the other tests go through, and pools that are too small.

use std::fmt::Debug;
use std::sync::Arc;

use plinth_index::{Bytes, Index, Key, Pool};
use plinth_io::MemoryBudget;

use plinth_core::random::Random;

/// Pages of 4,096 bytes, roughly.
pub fn pool(pages: u64) -> Arc<Pool> {
    Pool::new(&MemoryBudget::new(1 << 40), pages * 4200).unwrap()
}

/// A key of some kind for each small number; their order is the keys'.
pub trait Shape: Key {
    type Model: Ord + Clone + Debug + Send;
    fn make(n: u64) -> Self::Model;
    fn lend(key: &Self::Model) -> Self::Ref<'_>;
    fn owned(key: Self::Owned) -> Self::Model;
}

macro_rules! number {
    ($type:ty, $make:expr) => {
        impl Shape for $type {
            type Model = $type;
            fn make(n: u64) -> $type {
                ($make)(n)
            }
            fn lend(key: &$type) -> $type {
                *key
            }
            fn owned(key: $type) -> $type {
                key
            }
        }
    };
}

// Negative and positive, dense and spread out.
number!(i32, |n: u64| i32::try_from(n).unwrap() - 5_000);
number!(i64, |n: u64| (i64::try_from(n).unwrap() - 5_000) * 0x1234_5678_9abc);
number!(u64, |n: u64| n * 0x0001_2345_6789);
number!(u128, |n: u64| u128::from(n / 7) << 90 | u128::from(n));

impl Shape for Bytes {
    type Model = Vec<u8>;

    /// Prefixes in common of any length, empty keys, zeros at the end, and now and then a long one.
    fn make(n: u64) -> Vec<u8> {
        let mut random = Random(n);
        let len = match n % 97 {
            0 => 0,
            1 => 3000 + random.below(8000),
            _ => random.below(24),
        };
        let mut key = match n % 4 {
            0 => Vec::new(),
            1 => b"http://example.com/".to_vec(),
            2 => b"http://example.com/a/rather/long/path/that/many/have".to_vec(),
            _ => vec![0xff; 4],
        };
        key.extend(n.to_string().bytes());
        key.extend((0..len).map(|_| if random.chance(30) { 0 } else { u8::try_from(random.below(256)).unwrap() }));
        key
    }

    fn lend(key: &Vec<u8>) -> &[u8] {
        key
    }
    fn owned(key: Vec<u8>) -> Vec<u8> {
        key
    }
}

/// All entries of an index.
pub fn entries<K: Shape, const U: bool>(index: &Index<K, U>) -> Vec<(K::Model, u64)> {
    index.range(..).map(|e| e.map(|(key, row)| (K::owned(key), row)).unwrap()).collect()
}
