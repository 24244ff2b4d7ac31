//! Byte strings of all lengths and kinds: what is written is whole, whatever the keys have in common.

use std::collections::{BTreeMap, BTreeSet};

use plinth_index::{Bytes, Index, IndexError, Options};

use crate::disk::Disk;
use crate::shapes::{entries, pool};
use plinth_core::random::{Random, trials};

type Entry = (Vec<u8>, u64);

/// Checks a checkpoint as it lies on storage, and what it holds.
fn check<const U: bool>(index: Index<Bytes, U>, disk: &Disk, expected: &BTreeSet<Entry>, of: &str) {
    index.checkpoint(7).unwrap_or_else(|e| panic!("{of}: {e}"));
    let verified = index.verify().unwrap_or_else(|e| panic!("{of}: {e}"));
    assert_eq!(verified.entries, expected.len() as u64, "{of}");
    let pool = index.pool().clone();
    drop(index);
    let index: Index<Bytes, U> = Index::open(&pool, disk.clone()).unwrap_or_else(|e| panic!("{of}: {e}"));
    assert!(entries(&index).iter().eq(expected), "{of}");
    for (key, row) in expected.iter().step_by(17) {
        let rows: Vec<u64> = index.rows(key).unwrap().map(|entry| entry.unwrap().1).collect();
        assert!(rows.contains(row), "{of}: {key:?}");
    }
}

/// Builds an index at once, of entries that ascend.
fn append<const U: bool>(all: &BTreeSet<Entry>, of: &str) {
    let disk = Disk::new(1);
    let index: Index<Bytes, U> = Index::create(&pool(1000), disk.clone(), Options::default()).unwrap();
    index.append(all.iter().cloned().map(Ok::<_, IndexError>)).unwrap_or_else(|e| panic!("{of}: {e}"));
    check(index, &disk, all, of);
}

#[test]
fn a_full_leaf_stays_whole_when_its_keys_have_more_in_common() {
    for (len, most) in [(16, 5_000_u64), (12, 5_000), (16, 3_000), (20, 20_000)] {
        let key = |i: u64| {
            let text = format!("{:x}abcdefabcdef", (i + 1) * 2_654_435_761 * 97 % 1_000_000_000_039);
            text.into_bytes().into_iter().take(len).collect::<Vec<u8>>()
        };
        let all: BTreeSet<Entry> = (0..most).map(|i| (key(i), i)).collect();
        append::<false>(&all, &format!("{most} keys of {len}"));
    }
}

/// How keys are made.
struct Maker {
    random: Random,
    /// Lengths.
    least: u64,
    most: u64,
    /// Values of a byte, from zero on or from anywhere.
    values: u64,
    first: u8,
    /// What keys begin with.
    prefixes: Vec<Vec<u8>>,
}

impl Maker {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let lens = [(0, 300), (0, 20), (1, 9), (8, 8), (12, 12), (16, 16), (17, 17), (24, 24), (100, 300), (255, 300)];
        let (least, most) = lens[usize::try_from(random.below(10)).unwrap()];
        let values = [1, 2, 4, 16, 256][usize::try_from(random.below(5)).unwrap()];
        let first = if values == 256 { 0 } else { u8::try_from(random.below(256 - values + 1)).unwrap() };
        let prefix = |random: &mut Random| {
            let most = [1, 9, 40, 250][usize::try_from(random.below(4)).unwrap()];
            let len = random.below(most);
            (0..len).map(|_| u8::try_from(random.below(256)).unwrap()).collect()
        };
        let prefixes = (0..=random.below(4)).map(|_| prefix(&mut random)).collect();
        Self { random, least, most, values, first, prefixes }
    }

    fn key(&mut self) -> Vec<u8> {
        let len = self.least + self.random.below(self.most - self.least + 1);
        let prefix = self.random.below(self.prefixes.len() as u64);
        let mut key = self.prefixes[usize::try_from(prefix).unwrap()].clone();
        key.extend((0..len).map(|_| self.first + u8::try_from(self.random.below(self.values)).unwrap()));
        key.truncate(300);
        key
    }
}

/// Keys that come in any order, some of which go again.
fn change<const U: bool>(seed: u64, entries: u64) {
    let (mut maker, mut random) = (Maker::new(seed), Random(seed ^ 0x55));
    let disk = Disk::new(seed);
    let pages = if random.chance(50) { 12 } else { 1000 };
    let mut index: Index<Bytes, U> = Index::create(&pool(pages), disk.clone(), Options::default()).unwrap();
    let mut model: BTreeSet<Entry> = BTreeSet::new();
    let (mut known, of) = (Vec::new(), format!("seed {seed}"));
    for i in 0..entries {
        if !known.is_empty() && random.chance(25) {
            // An update takes an entry away and puts another in.
            let at = usize::try_from(random.below(known.len() as u64)).unwrap();
            let (key, row): Entry = known.swap_remove(at);
            assert_eq!(index.remove(&key, row).unwrap(), model.remove(&(key, row)), "{of}");
        }
        let entry = (maker.key(), if U { 1 } else { i });
        let there = index.insert(&entry.0, entry.1).unwrap_or_else(|e| panic!("{of}: {e}"));
        assert_eq!(there.is_none(), model.insert(entry.clone()), "{of}");
        if there.is_none() {
            known.push(entry);
        }
        if random.below(entries) < 3 {
            index.checkpoint(i).unwrap_or_else(|e| panic!("{of}: {e}"));
            if random.chance(50) {
                let pool = index.pool().clone();
                drop(index);
                index = Index::open(&pool, disk.clone()).unwrap_or_else(|e| panic!("{of}: {e}"));
            }
        }
    }
    if random.chance(30) {
        // Nearly all go.
        for (key, row) in known.drain(known.len() / 20..) {
            assert!(index.remove(&key, row).unwrap(), "{of}");
            model.remove(&(key, row));
        }
    }
    check(index, &disk, &model, &of);
}

#[test]
fn many_indexes_take_few_addresses() {
    let budget = plinth_io::MemoryBudget::new(8 << 30);
    let pool = plinth_index::Pool::new(&budget, 256 << 20).unwrap();
    assert_eq!(pool.counters().addresses, 0);
    let mut maker = Maker::new(1);
    let mut indexes: Vec<Index<Bytes, false>> = Vec::new();
    for i in 0..200 {
        let index: Index<Bytes, false> = Index::create(&pool, Disk::new(i), Options::default()).unwrap();
        (0..100).for_each(|row| assert_eq!(index.insert(&maker.key(), row).unwrap(), None));
        indexes.push(index);
    }
    let counters = pool.counters();
    // A region is as large as all before it: at most twice what was ever in use, of each size of pages.
    assert!(counters.addresses < counters.bytes * 2 + (9 << 20), "{counters:?}");
    assert!(indexes.iter().all(|index| index.range(..).count() == 100));
    let (few, two) = (pool.counters().addresses, indexes.split_off(2));
    drop(two);
    for index in &indexes {
        (0..20_000).for_each(|row| assert_eq!(index.insert(&maker.key(), 1_000 + row).unwrap(), None));
        assert_eq!(index.range(..).count(), 20_100);
    }
    println!("200 indexes: {few} bytes of addresses; at the end {:?}", pool.counters());
}

#[test]
fn keys_of_any_length_and_entropy() {
    let cases = trials("PLINTH_INDEX_OPS", 6_000) / 100;
    for seed in 0..cases {
        let mut maker = Maker::new(seed);
        let entries = 200 + maker.random.below(1_500);
        let all: BTreeSet<Entry> = (0..entries).map(|row| (maker.key(), row)).collect();
        append::<false>(&all, &format!("seed {seed}"));
        let rows: BTreeMap<Vec<u8>, u64> = all.into_iter().collect();
        append::<true>(&rows.into_iter().collect(), &format!("seed {seed}, unique"));
        change::<false>(seed, entries);
        change::<true>(seed, entries / 2);
    }
    println!("{cases} kinds of keys, each in four histories");
}
