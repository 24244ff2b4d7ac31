//! Small enough to run where every access is checked (`cargo xtask miri`); `tests/suite` has the large ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use plinth_io::MemoryBudget;

use crate::{Bytes, Index, MemoryPages, Options, Pool};

fn pool(pages: u64) -> Arc<Pool> {
    Pool::new(&MemoryBudget::new(1 << 30), pages * 4200).unwrap()
}

fn operations() -> u64 {
    std::env::var("PLINTH_INDEX_OPS").ok().and_then(|n| n.parse().ok()).unwrap_or(4000)
}

#[test]
fn threads_share_few_pages() {
    let index: Index<i64> = Index::create(&pool(6), MemoryPages::new("few"), Options::default()).unwrap();
    let most = operations();
    std::thread::scope(|scope| {
        for thread in 0..2_u64 {
            let index = &index;
            scope.spawn(move || {
                for i in 0..most {
                    let n = (i * 7919 + thread) % most * 2 + thread;
                    let key = i64::try_from(n).unwrap();
                    index.insert(key, n).unwrap();
                    assert_eq!(index.get(key).unwrap(), Some(n));
                    if i % 3 == 0 {
                        assert!(index.remove(key, n).unwrap());
                    }
                    if i % 50 == 0 {
                        index.checkpoint(i).unwrap();
                    }
                }
            });
        }
    });
    let found: Vec<(i64, u64)> = index.range(..).collect::<Result<_, _>>().unwrap();
    assert!(found.iter().all(|(key, row)| u64::try_from(*key).unwrap() == *row));
    assert_eq!(found.len() as u64, index.len());
}

#[test]
fn strings_of_all_lengths() {
    let index: Index<Bytes> = Index::create(&pool(40), MemoryPages::new("strings"), Options::default()).unwrap();
    let mut model = BTreeMap::new();
    for i in 0..operations().min(500) {
        let len = usize::try_from(i * i * 31 % 2500).unwrap();
        let key: Vec<u8> = format!("{:03}", i % 200).into_bytes().into_iter().chain(vec![b'x'; len]).collect();
        assert_eq!(index.insert(&key, i).unwrap(), model.get(&key).copied());
        model.entry(key).or_insert(i);
    }
    let found: Vec<(Vec<u8>, u64)> = index.range_back(..).collect::<Result<_, _>>().unwrap();
    assert_eq!(found, model.into_iter().rev().collect::<Vec<_>>());
    index.checkpoint(1).unwrap();
    index.verify().unwrap();
}
