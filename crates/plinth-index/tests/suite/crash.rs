//! Power cuts at any moment: what comes back is a checkpoint, whole.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use plinth_index::{Bytes, Index, Options};

use crate::disk::Disk;
use crate::shapes::{Shape, entries, pool};
use plinth_core::random::{Random, trials};

fn run<K: Shape>(seed: u64) {
    let mut random = Random(seed);
    let pool = pool(10);
    let disk = Disk::new(seed);
    let index: Index<K, false> = Index::create(&pool, disk.clone(), Options::default()).unwrap();
    disk.cut_power_at(disk.operations() + random.below(600));
    let mut model: BTreeSet<(K::Model, u64)> = BTreeSet::new();
    let mut states = vec![(0, model.clone())];
    for op in 1.. {
        let entry = (K::make(random.below(8_000)), random.below(3));
        let done = match random.below(100) {
            0..60 => index.insert(K::lend(&entry.0), entry.1).map(|_| {
                model.insert(entry);
            }),
            60..99 => index.remove(K::lend(&entry.0), entry.1).map(|_| {
                model.remove(&entry);
            }),
            _ => {
                states.push((op, model.clone()));
                index.checkpoint(op)
            }
        };
        if done.is_err() || op > 20_000 {
            break;
        }
        if states.len() > 2 {
            states.remove(0);
        }
    }
    drop(index);
    // Cut again while it is opened: opening writes nothing, so that is no different.
    let disk = disk.after_power_cut(seed);
    let index: Index<K, false> = Index::open(&pool, disk.clone()).unwrap();
    let expected = states.iter().find(|(position, _)| *position == index.position()).unwrap();
    index.verify().unwrap();
    assert_eq!(entries(&index), expected.1.iter().cloned().collect::<Vec<_>>());
    // And it can be gone on with.
    let mut model = expected.1.clone();
    for _ in 0..500 {
        let entry = (K::make(random.below(8_000)), random.below(3));
        index.insert(K::lend(&entry.0), entry.1).unwrap();
        model.insert(entry);
    }
    index.checkpoint(7).unwrap();
    drop(index);
    let index: Index<K, false> = Index::open(&pool, disk).unwrap();
    index.verify().unwrap();
    assert_eq!(entries(&index), model.into_iter().collect::<Vec<_>>());
}

#[test]
fn a_power_cut_leaves_a_checkpoint() {
    for seed in 0..trials("PLINTH_INDEX_OPS", 16) {
        run::<i32>(seed);
        run::<plinth_index::Bytes>(seed);
    }
}

#[test]
fn after_a_failed_sync_nothing_more_is_durable() {
    let pool = pool(100);
    let disk = Disk::new(1);
    let index: Index<i64> = Index::create(&pool, disk.clone(), Options::default()).unwrap();
    index.insert(1, 1).unwrap();
    index.checkpoint(1).unwrap();
    index.insert(2, 2).unwrap();
    disk.set_sync_fails(true);
    index.checkpoint(2).unwrap_err();
    disk.set_sync_fails(false);
    let error = index.checkpoint(3).unwrap_err().to_string();
    assert!(error.contains("an earlier sync failed"), "{error}");
    drop(index);
    let index: Index<i64> = Index::open(&pool, disk).unwrap();
    assert_eq!((index.position(), index.get(1).unwrap(), index.get(2).unwrap()), (1, Some(1), None));
}

/// Keys of which few fit a page, so that there are many inner nodes.
fn long(n: u64) -> Vec<u8> {
    let scattered = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..16).flat_map(|bit| [u8::try_from(scattered >> (63 - bit) & 1).unwrap(); 50]).chain(n.to_be_bytes()).collect()
}

/// Readers make pages leave, and their frames become other pages', at any moment of a checkpoint.
#[test]
fn readers_bring_pages_in_during_a_checkpoint() {
    let (disk, keys) = (Disk::new(1), 1_500);
    let index: Index<Bytes> = Index::create(&pool(10), disk.clone(), Options::default()).unwrap();
    let mut random = Random(1);
    let mut model: BTreeSet<(Vec<u8>, u64)> = (0..keys / 2).map(|n| (long(n * 2), n * 2)).collect();
    for (key, row) in &model {
        index.insert(key, *row).unwrap();
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (done, index) = (&done, &index);
            scope.spawn(move || {
                let mut random = Random(thread + 10);
                while !done.load(Relaxed) {
                    let n = random.below(keys);
                    assert!(index.get(&long(n)).unwrap().is_none_or(|row| row == n));
                }
            });
        }
        let mut some = |model: &mut BTreeSet<(Vec<u8>, u64)>| {
            for _ in 0..20 {
                let n = random.below(keys);
                if model.insert((long(n), n)) {
                    index.insert(&long(n), n).unwrap();
                } else {
                    model.remove(&(long(n), n));
                    index.remove(&long(n), n).unwrap();
                }
            }
        };
        for round in 1..=trials("PLINTH_INDEX_OPS", 20) {
            some(&mut model);
            index.checkpoint(round).unwrap();
            let durable = model.clone();
            // What is free now is written to.
            some(&mut model);
            let left = disk.after_power_cut(round);
            let left: Index<Bytes> = Index::open(&pool(1000), left).unwrap();
            assert_eq!(left.position(), round);
            left.verify().unwrap();
            assert_eq!(entries(&left), durable.into_iter().collect::<Vec<_>>());
        }
        done.store(true, Relaxed);
    });
}
