//! Random operations on an index and on a `BTreeSet`.

use std::collections::BTreeSet;
use std::ops::Bound;

use plinth_index::{Bytes, Index, Options};

use crate::disk::Disk;
use crate::shapes::{Shape, entries, pool};
use plinth_core::random::{Random, trials};

/// Runs operations with keys below `keys`, in a pool of `pages` and on a disk that fails for some percent of what it is asked.
fn run<K: Shape, const U: bool>(seed: u64, ops: u64, keys: u64, pages: u64, faults: u64) {
    let mut random = Random(seed);
    let disk = Disk::new(seed);
    let pool = pool(pages);
    let mut index: Index<K, U> = Index::create(&pool, disk.clone(), Options::default()).unwrap();
    let mut model: BTreeSet<(K::Model, u64)> = BTreeSet::new();
    let mut durable = vec![(model.clone(), 0)];
    disk.set_faults(faults);
    for op in 0..ops {
        let key = K::make(random.below(keys));
        let rows = if U { 1 } else { 5 };
        let row = random.below(rows);
        // The index grows, then shrinks, then grows.
        let grows = (op * 5 / ops).is_multiple_of(2);
        let of = |model: &BTreeSet<(K::Model, u64)>| {
            let rows = model.range((key.clone(), 0)..=(key.clone(), u64::MAX));
            rows.map(|(_, row)| *row).collect::<Vec<u64>>()
        };
        match random.below(100) {
            0..70 if random.chance(if grows { 80 } else { 20 }) => {
                if let Ok(there) = index.insert(K::lend(&key), row) {
                    let found =
                        if U { of(&model).first().copied() } else { of(&model).iter().find(|r| **r == row).copied() };
                    assert_eq!(there, found, "insert {key:?} {row}");
                    if there.is_none() {
                        model.insert((key.clone(), row));
                    }
                }
            }
            0..70 => {
                if let Ok(removed) = index.remove(K::lend(&key), row) {
                    assert_eq!(removed, model.remove(&(key.clone(), row)), "remove {key:?} {row}");
                }
            }
            70..80 => {
                if let Ok(found) = index.get(K::lend(&key)) {
                    assert_eq!(found, of(&model).first().copied(), "get {key:?}");
                }
                if let Ok(found) =
                    index.rows(K::lend(&key)).unwrap().map(|e| e.map(|e| e.1)).collect::<Result<Vec<_>, _>>()
                {
                    assert_eq!(found, of(&model), "rows {key:?}");
                }
            }
            80..85 => {
                let some: Vec<K::Model> = (0..random.below(300)).map(|_| K::make(random.below(keys))).collect();
                let some_ref: Vec<K::Ref<'_>> = some.iter().map(K::lend).collect();
                let mut found = Vec::new();
                if index.multi_get(&some_ref, &mut found).is_ok() {
                    let first =
                        |key: &K::Model| model.range((key.clone(), 0)..=(key.clone(), u64::MAX)).next().map(|e| e.1);
                    assert_eq!(found, some.iter().map(first).collect::<Vec<_>>());
                }
            }
            85..97 => {
                let other = K::make(random.below(keys));
                let bound = |kind, key: &K::Model| match kind {
                    0 => Bound::Included(key.clone()),
                    1 => Bound::Excluded(key.clone()),
                    _ => Bound::Unbounded,
                };
                let (from, to) = (bound(random.below(3), &key), bound(random.below(3), &other));
                let inside = |(key, _): &&(K::Model, u64)| {
                    let above = match &from {
                        Bound::Included(from) => key >= from,
                        Bound::Excluded(from) => key > from,
                        Bound::Unbounded => true,
                    };
                    above
                        && match &to {
                            Bound::Included(to) => key <= to,
                            Bound::Excluded(to) => key < to,
                            Bound::Unbounded => true,
                        }
                };
                let limit = usize::try_from(random.below(600)).unwrap();
                let lend = |bound: &Bound<K::Model>| -> Bound<K::Model> { bound.clone() };
                let (low, high) = (lend(&from), lend(&to));
                let (low, high) = (low.as_ref().map(K::lend), high.as_ref().map(K::lend));
                let owned = |e: Result<(K::Owned, u64), _>| e.map(|(key, row)| (K::owned(key), row));
                let forward: Result<Vec<_>, plinth_index::IndexError> =
                    index.range((low, high)).map(owned).take(limit).collect();
                if let Ok(forward) = forward {
                    let expected: Vec<_> = model.iter().filter(inside).take(limit).cloned().collect();
                    assert_eq!(forward, expected, "range {from:?} {to:?}");
                }
                let back: Result<Vec<_>, plinth_index::IndexError> =
                    index.range_back((low, high)).map(owned).take(limit).collect();
                if let Ok(back) = back {
                    let expected: Vec<_> = model.iter().rev().filter(inside).take(limit).cloned().collect();
                    assert_eq!(back, expected, "range back {from:?} {to:?}");
                }
            }
            97..99 => {
                if random.chance(10) {
                    match index.checkpoint(op) {
                        Ok(()) => durable = vec![(model.clone(), op)],
                        // If it failed in its last step, it may be there all the same.
                        Err(_) => durable.push((model.clone(), op)),
                    }
                }
            }
            _ => {
                if random.chance(5) {
                    drop(index);
                    disk.set_faults(0);
                    index = Index::open(&pool, disk.clone()).unwrap();
                    let found = durable.iter().find(|(_, position)| *position == index.position()).unwrap();
                    assert_eq!(index.verify().unwrap().entries, found.0.len() as u64);
                    model.clone_from(&found.0);
                    durable = vec![(model.clone(), index.position())];
                    disk.set_faults(faults);
                }
            }
        }
        assert_eq!(index.len(), model.len() as u64);
    }
    disk.set_faults(0);
    assert_eq!(entries(&index), model.into_iter().collect::<Vec<_>>());
    if index.checkpoint(ops).is_ok() {
        index.verify().unwrap();
    }
    let counters = pool.counters();
    drop(index);
    let left = pool.counters().bytes;
    assert_eq!(left, 0, "{counters:?}");
}

fn all(seed: u64, ops: u64, keys: u64, pages: u64, faults: u64) {
    run::<i32, true>(seed, ops, keys, pages, faults);
    run::<i32, false>(seed, ops, keys, pages, faults);
    run::<i64, true>(seed, ops, keys, pages, faults);
    run::<i64, false>(seed, ops, keys, pages, faults);
    run::<u64, true>(seed, ops, keys, pages, faults);
    run::<u64, false>(seed, ops, keys, pages, faults);
    run::<u128, true>(seed, ops, keys, pages, faults);
    run::<u128, false>(seed, ops, keys, pages, faults);
    run::<Bytes, true>(seed, ops, keys, pages, faults);
    run::<Bytes, false>(seed, ops, keys, pages, faults);
}

#[test]
fn in_memory() {
    all(1, trials("PLINTH_INDEX_OPS", 3_000), 2_000, 10_000, 0);
}

#[test]
fn larger_than_memory() {
    all(2, trials("PLINTH_INDEX_OPS", 2_500), 8_000, 12, 0);
}

#[test]
fn with_failing_storage() {
    all(3, trials("PLINTH_INDEX_OPS", 1_500), 8_000, 12, 3);
}

#[test]
fn few_keys() {
    for seed in 0..4 {
        all(100 + seed, trials("PLINTH_INDEX_OPS", 400), 40, 8, 0);
    }
}

#[test]
fn built_in_order() {
    fn build<K: Shape>() {
        let pool = pool(20);
        let index: Index<K> = Index::create(&pool, Disk::new(5), Options::default()).unwrap();
        let keys: BTreeSet<K::Model> = (0..9_000).map(K::make).collect();
        let all = || (0..).zip(&keys).map(|(row, key)| Ok::<_, plinth_index::IndexError>((K::own(K::lend(key)), row)));
        index.append(all()).unwrap();
        assert_eq!(entries(&index), keys.iter().cloned().zip(0..).collect::<Vec<_>>());
        index.checkpoint(9).unwrap();
        let verified = index.verify().unwrap();
        assert_eq!(verified.entries, keys.len() as u64);
        // All are there already.
        assert!(index.append(all().take(1)).is_err());
        assert_eq!(index.len(), keys.len() as u64);
    }
    build::<i32>();
    build::<u64>();
    build::<u128>();
    build::<Bytes>();
}
