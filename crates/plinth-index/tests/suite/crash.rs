//! Power cuts at any moment: what comes back is a checkpoint, whole.

use std::collections::BTreeSet;

use plinth_index::{Index, Options};

use crate::disk::Disk;
use crate::random::{Random, operations};
use crate::shapes::{Shape, entries, pool};

fn run<K: Shape>(seed: u64) {
    let mut random = Random::new(seed);
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
    for seed in 0..operations(16) {
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
