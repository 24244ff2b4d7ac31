//! Damaged files give errors that name the page, or what was in them.

use plinth_index::{Bytes, Index, IndexError, Options};

use crate::disk::Disk;
use crate::shapes::{Shape, entries, pool};
use plinth_core::random::{Random, trials};

fn sample<K: Shape>(disk: &Disk) -> Vec<(K::Model, u64)> {
    let index: Index<K> = Index::create(&pool(1000), disk.clone(), Options::default()).unwrap();
    for n in 0..1_000 {
        index.insert(K::lend(&K::make(n)), n).unwrap();
    }
    index.checkpoint(1).unwrap();
    entries(&index)
}

fn flips<K: Shape>(seed: u64) {
    let disk = Disk::new(0);
    let expected = sample::<K>(&disk);
    let whole = disk.bytes();
    let mut random = Random(seed);
    for _ in 0..trials("PLINTH_INDEX_OPS", 150) {
        let mut bytes = whole.clone();
        let at = usize::try_from(random.below(bytes.len() as u64)).unwrap();
        bytes[at] ^= 1 << random.below(8);
        let damaged = Disk::new(0);
        damaged.set_bytes(bytes);
        let pool = pool(1000);
        let opened = Index::<K>::open(&pool, damaged).and_then(|index| {
            let found: Result<Vec<_>, _> = index.range(..).collect();
            let found: Vec<_> = found?.into_iter().map(|(key, row)| (K::owned(key), row)).collect();
            // The other slot has the checkpoint before: the empty index.
            assert!(found == expected || (at < 8192 && found.is_empty()), "byte {at}");
            index.verify()
        });
        match opened {
            Ok(_) => {}
            Err(IndexError::Corrupt { page, .. }) => {
                assert!(page <= at as u64 / 4096 && at as u64 / 4096 < page + 128, "page {page} for byte {at}");
            }
            Err(e) => panic!("{e}"),
        }
    }
}

#[test]
fn flipped_bits() {
    flips::<i32>(1);
    flips::<u128>(2);
    flips::<Bytes>(3);
}

#[test]
fn pages_in_others_places() {
    let disk = Disk::new(0);
    sample::<i64>(&disk);
    let whole = disk.bytes();
    let mut bytes = whole.clone();
    // Any two pages behind the slots.
    bytes[3 * 4096..4 * 4096].copy_from_slice(&whole[2 * 4096..3 * 4096]);
    disk.set_bytes(bytes);
    let pool = pool(1000);
    let read = Index::<i64>::open(&pool, disk).and_then(|index| index.range(..).collect::<Result<Vec<_>, _>>());
    assert!(matches!(read, Err(IndexError::Corrupt { page: 3, .. })), "{read:?}");
}

#[test]
fn pages_that_were_not_written() {
    let disk = Disk::new(0);
    let pool = pool(1000);
    let index: Index<i64> = Index::create(&pool, disk.clone(), Options::default()).unwrap();
    index.insert(1, 1).unwrap();
    index.checkpoint(1).unwrap();
    let before = disk.bytes();
    for round in 2..5 {
        index.insert(round, 1).unwrap();
        index.checkpoint(2).unwrap();
    }
    drop(index);
    // The newest slot, over pages of an older state: their checksums are right, but not those the slot's root has.
    let mut bytes = disk.bytes();
    let from = 2 * 4096;
    let len = before.len().min(bytes.len()) - from;
    bytes[from..from + len].copy_from_slice(&before[from..from + len]);
    disk.set_bytes(bytes);
    let read = Index::<i64>::open(&pool, disk).and_then(|index| index.get(1));
    assert!(matches!(read, Ok(Some(1)) | Err(IndexError::Corrupt { .. })), "{read:?}");
}

#[test]
fn cut_short() {
    let disk = Disk::new(0);
    sample::<Bytes>(&disk);
    let whole = disk.bytes();
    for len in (0..whole.len()).step_by(1500) {
        disk.set_bytes(whole[..len].to_vec());
        let pool = pool(1000);
        let read = Index::<Bytes>::open(&pool, disk.clone()).and_then(|index| index.verify());
        assert!(read.is_err(), "{len}");
    }
}

#[test]
fn other_files() {
    let disk = Disk::new(0);
    sample::<i64>(&disk);
    let pool = pool(1000);
    assert!(matches!(Index::<i32>::open(&pool, disk.clone()), Err(IndexError::Unsuitable { .. })));
    assert!(matches!(Index::<i64, false>::open(&pool, disk.clone()), Err(IndexError::Unsuitable { .. })));
    assert!(matches!(Index::<i64>::create(&pool, disk, Options::default()), Err(IndexError::Unsuitable { .. })));
    let empty = Index::<i64>::open(&pool, Disk::new(0)).unwrap_err().to_string();
    assert!(empty.contains("neither of its two slots"), "{empty}");
    let odd = Index::<i64>::create(&pool, Disk::new(0), Options { page_bytes: 5000 }).unwrap_err().to_string();
    assert!(odd.contains("no size of a page"), "{odd}");
    let index: Index<Bytes> = Index::create(&pool, Disk::new(0), Options::default()).unwrap();
    let long = index.insert(&vec![0; plinth_index::MAX_KEY + 1], 0).unwrap_err().to_string();
    assert_eq!(long, "a key of 16385 bytes cannot be indexed: the longest has 16384");
    for key in [vec![0; plinth_index::MAX_KEY], vec![0; plinth_index::MAX_KEY - 1], vec![1; plinth_index::MAX_KEY]] {
        index.insert(&key, 5).unwrap();
        assert_eq!(index.get(&key).unwrap(), Some(5));
    }
}
