//! Several threads, one index: each has keys of its own, which it knows, and reads all others'.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use plinth_index::{Bytes, Index, Options};

use crate::disk::Disk;
use crate::shapes::{Shape, entries, pool};
use plinth_core::random::{Random, trials};

const THREADS: u64 = 4;

fn run<K: Shape>(seed: u64, ops: u64, keys: u64, pages: u64, faults: u64) {
    let disk = Disk::new(seed);
    let pool = pool(pages);
    let index: Index<K> = Index::create(&pool, disk.clone(), Options::default()).unwrap();
    disk.set_faults(faults);
    let done = AtomicBool::new(false);
    let models: Vec<BTreeMap<K::Model, u64>> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let index = &index;
                scope.spawn(move || {
                    let mut random = Random(seed * 31 + thread);
                    let mut model: BTreeMap<K::Model, u64> = BTreeMap::new();
                    for op in 0..ops {
                        let mine = K::make(random.below(keys / THREADS) * THREADS + thread);
                        let row = op * THREADS + thread;
                        let grows = (op * 3 / ops).is_multiple_of(2);
                        match random.below(10) {
                            0..6 if random.chance(if grows { 75 } else { 25 }) => {
                                if let Ok(there) = index.insert(K::lend(&mine), row) {
                                    assert_eq!(there, model.get(&mine).copied());
                                    model.entry(mine).or_insert(row);
                                }
                            }
                            0..6 => {
                                let row = model.get(&mine).copied().unwrap_or(row);
                                if let Ok(removed) = index.remove(K::lend(&mine), row) {
                                    assert_eq!(removed, model.remove(&mine).is_some());
                                }
                            }
                            6..8 => {
                                if let Ok(found) = index.get(K::lend(&mine)) {
                                    assert_eq!(found, model.get(&mine).copied());
                                }
                            }
                            8 => {
                                // Whichever thread's they are, a row says whose it is.
                                let any: Vec<u64> = (0..40).map(|_| random.below(keys / THREADS * THREADS)).collect();
                                let some: Vec<K::Model> = any.iter().map(|&n| K::make(n)).collect();
                                let lent: Vec<K::Ref<'_>> = some.iter().map(K::lend).collect();
                                let mut found = Vec::new();
                                if index.multi_get(&lent, &mut found).is_ok() {
                                    for ((n, key), row) in any.iter().zip(&some).zip(found) {
                                        assert!(row.is_none_or(|row| row % THREADS == n % THREADS));
                                        if n % THREADS == thread {
                                            assert_eq!(row, model.get(key).copied());
                                        }
                                    }
                                }
                            }
                            _ => {
                                let back = random.chance(50);
                                let other = K::make(random.below(keys));
                                let entries = if back {
                                    index.range_back(..K::lend(&other))
                                } else {
                                    index.range(K::lend(&other)..)
                                };
                                let entries: Result<Vec<_>, _> =
                                    entries.take(100).map(|e| e.map(|(key, row)| (K::owned(key), row))).collect();
                                let Ok(entries) = entries else { continue };
                                assert!(entries.is_sorted_by(|a, b| if back { a.0 > b.0 } else { a.0 < b.0 }));
                                // Of its own, none is missing between the first and the last, and none is too many.
                                let (Some(first), Some(last)) = (entries.first(), entries.last()) else { continue };
                                let (low, high) = if back { (last, first) } else { (first, last) };
                                let mut seen: Vec<_> =
                                    entries.iter().filter(|(_, row)| row % THREADS == thread).cloned().collect();
                                seen.sort();
                                let expected: Vec<_> = model
                                    .range(low.0.clone()..=high.0.clone())
                                    .map(|(key, row)| (key.clone(), *row))
                                    .collect();
                                assert_eq!(seen, expected);
                            }
                        }
                    }
                    model
                })
            })
            .collect();
        scope.spawn(|| {
            let mut position = 0;
            while !done.load(Relaxed) {
                let _ = index.checkpoint(position);
                position += 1;
                std::thread::sleep(std::time::Duration::from_millis(3));
            }
        });
        let models = writers.into_iter().map(|w| w.join());
        let models: Vec<_> = models.collect();
        done.store(true, Relaxed);
        models.into_iter().map(|m| m.unwrap()).collect()
    });
    disk.set_faults(0);
    let expected: BTreeMap<K::Model, u64> = models.into_iter().flatten().collect();
    assert_eq!(index.len(), expected.len() as u64);
    let expected: Vec<_> = expected.into_iter().collect();
    assert_eq!(entries(&index), expected);
    if index.checkpoint(1_000_000).is_ok() {
        assert_eq!(index.verify().unwrap().entries, expected.len() as u64);
        drop(index);
        let index: Index<K> = Index::open(&pool, disk).unwrap();
        assert_eq!(index.position(), 1_000_000);
        assert_eq!(entries(&index), expected);
    }
}

#[test]
fn in_memory() {
    run::<i32>(1, trials("PLINTH_INDEX_OPS", 3_000), 9_000, 100_000, 0);
    run::<Bytes>(1, trials("PLINTH_INDEX_OPS", 3_000), 9_000, 100_000, 0);
    run::<i64>(2, trials("PLINTH_INDEX_OPS", 3_000), 200, 100_000, 0);
}

#[test]
fn larger_than_memory() {
    run::<i64>(3, trials("PLINTH_INDEX_OPS", 3_000), 40_000, 24, 0);
    run::<Bytes>(3, trials("PLINTH_INDEX_OPS", 1_500), 9_000, 40, 0);
}

#[test]
fn with_failing_storage() {
    run::<u128>(4, trials("PLINTH_INDEX_OPS", 2_000), 40_000, 24, 2);
}
