//! What an index does beside its rivals: `cargo run --release -p plinth-index --example keys -- [PART] [ROWS]`.
//!
//! Parts: `insert`, `lookup`, `layouts`, `threads`, `pools`, `cold`; all of them without an argument. Every answer is checked
//! by a digest before a time is printed, and all that is compared runs in turn, in one process.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    missing_docs,
    unreachable_pub
)]

mod latches;
mod layouts;
mod measure;
mod pools;
#[allow(dead_code, reason = "tests need more of it")]
#[path = "../../tests/suite/random.rs"]
mod random;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use layouts::{Blocks, BranchFree, Branching, Eytzinger, Layout, VanEmdeBoas};
use measure::{Entry, compare, digest, entry};
use plinth_index::pool::translation::Swizzled;
use plinth_index::{Bytes, Index, Key, LocalPages, MemoryPages, Options, Policy, Pool};
use plinth_io::MemoryBudget;
use random::Random;

/// A policy of some latch and some translation.
macro_rules! policy {
    ($name:ident, $latch:ty, $translation:ty) => {
        struct $name;
        impl Policy for $name {
            type Latch = $latch;
            type Translation = $translation;
        }
    };
}

policy!(Standard, plinth_index::latch::Hybrid, Swizzled);
policy!(WithMutex, latches::Mutex, Swizzled);
policy!(WithReaderWriter, latches::ReaderWriter, Swizzled);
policy!(WithTable, plinth_index::latch::Hybrid, pools::Hashed);
policy!(WithHints, plinth_index::latch::Hybrid, pools::Hinted);

fn main() {
    assert!(latches::zero_is_free());
    let part = std::env::args().nth(1).unwrap_or_else(|| "all".to_owned());
    let rows: usize = std::env::args().nth(2).and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let is = |name: &str| part == name || part == "all";
    if is("insert") {
        insert(rows);
    }
    if is("lookup") {
        lookup(rows);
    }
    if is("layouts") {
        for keys in [250, 10_000, rows] {
            search(keys);
        }
    }
    if is("threads") {
        threads(rows);
    }
    if is("pools") {
        working_sets();
    }
    if is("cold") {
        cold(rows);
    }
}

fn pool<P: Policy>(bytes: u64) -> Arc<Pool<P>> {
    Pool::new(&MemoryBudget::new(1 << 40), bytes).unwrap()
}

fn index<K: Key, const U: bool, P: Policy>(pool: &Arc<Pool<P>>) -> Index<K, U, P> {
    Index::create(pool, MemoryPages::new("memory"), Options::default()).unwrap()
}

/// Random keys that differ, in no order.
fn random_keys(rows: usize) -> Vec<i32> {
    let mut random = Random::new(0x1234_5678_9abc_def1);
    let mut keys: Vec<i32> = (0..rows + rows / 8).map(|_| random.next() as i32).collect();
    keys.sort_unstable();
    keys.dedup();
    for i in (1..keys.len()).rev() {
        keys.swap(i, random.below(i as u64 + 1) as usize);
    }
    keys.truncate(rows);
    keys
}

/// As bytes whose order is the keys'.
fn as_bytes(key: i32) -> [u8; 4] {
    (key.cast_unsigned() ^ 1 << 31).to_be_bytes()
}

/// A table's rows into four indexes: of the same keys, rotated.
fn insert(rows: usize) {
    let keys = random_keys(rows);
    let row = |i: usize, table: usize| (keys[(i + table * rows / 4) % rows], i as u64);
    let sum = |len: u64| digest(0, len);
    let four = |rounds: &str| format!("{rounds} random i32 into four indexes");
    let entries = vec![
        entry("specialised (i32)", || {
            let pool = pool::<Standard>(4 << 30);
            let all: Vec<Index<i32, true, Standard>> = (0..4).map(|_| index(&pool)).collect();
            for i in 0..rows {
                for (table, index) in all.iter().enumerate() {
                    let (key, row) = row(i, table);
                    index.insert(key, row).unwrap();
                }
            }
            sum(all.iter().map(Index::len).sum())
        }),
        entry("specialised, many rows a key (i32)", || {
            let pool = pool::<Standard>(4 << 30);
            let all: Vec<Index<i32, false, Standard>> = (0..4).map(|_| index(&pool)).collect();
            for i in 0..rows {
                for (table, index) in all.iter().enumerate() {
                    let (key, row) = row(i, table);
                    index.insert(key, row).unwrap();
                }
            }
            sum(all.iter().map(Index::len).sum())
        }),
        entry("generic (byte strings)", || {
            let pool = pool::<Standard>(4 << 30);
            let all: Vec<Index<Bytes, true, Standard>> = (0..4).map(|_| index(&pool)).collect();
            for i in 0..rows {
                for (table, index) in all.iter().enumerate() {
                    let (key, row) = row(i, table);
                    index.insert(&as_bytes(key), row).unwrap();
                }
            }
            sum(all.iter().map(Index::len).sum())
        }),
        entry("BTreeMap (std)", || {
            let mut all: Vec<BTreeMap<i32, u64>> = vec![BTreeMap::new(); 4];
            for i in 0..rows {
                for (table, index) in all.iter_mut().enumerate() {
                    let (key, row) = row(i, table);
                    index.insert(key, row);
                }
            }
            sum(all.iter().map(|map| map.len() as u64).sum())
        }),
        entry("BTreeMap, comparator called", || {
            let mut all: Vec<BTreeMap<Called, u64>> = (0..4).map(|_| BTreeMap::new()).collect();
            for i in 0..rows {
                for (table, index) in all.iter_mut().enumerate() {
                    let (key, row) = row(i, table);
                    index.insert(Called(key), row);
                }
            }
            sum(all.iter().map(|map| map.len() as u64).sum())
        }),
        entry("sorted first, then appended (i32)", || {
            let pool = pool::<Standard>(4 << 30);
            let all: Vec<Index<i32, true, Standard>> = (0..4).map(|_| index(&pool)).collect();
            for (table, index) in all.iter().enumerate() {
                let mut sorted: Vec<(i32, u64)> = (0..rows).map(|i| row(i, table)).collect();
                sorted.sort_unstable();
                index.append(sorted.into_iter().map(Ok::<_, plinth_index::IndexError>)).unwrap();
            }
            sum(all.iter().map(Index::len).sum())
        }),
    ];
    compare(&four(&rows.to_string()), rows as u64 * 4, 5, entries);
}

/// A key whose comparison is a call, as in an engine that finds it in a table of types.
struct Called(i32);

#[inline(never)]
fn compare_keys(a: &i32, b: &i32) -> std::cmp::Ordering {
    a.cmp(b)
}

impl Ord for Called {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let compare: fn(&i32, &i32) -> std::cmp::Ordering = black_box(compare_keys);
        compare(&self.0, &other.0)
    }
}
impl PartialOrd for Called {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Called {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Called {}

fn found(sum: u64, row: Option<u64>) -> u64 {
    digest(sum, row.map_or(0, |row| row + 1))
}

/// Looks keys up, half of which are there.
fn lookup(rows: usize) {
    let keys = random_keys(rows * 2);
    let (there, lookups) = (&keys[..rows], 1_000_000.min(rows * 2));
    let mut random = Random::new(7);
    let wanted: Vec<i32> = (0..lookups).map(|_| keys[random.below(keys.len() as u64) as usize]).collect();
    let mut sorted: Vec<(i32, u64)> = there.iter().copied().zip(0..).collect();
    sorted.sort_unstable();
    let pool = pool::<Standard>(16 << 30);
    fn error<T>(entry: T) -> Result<T, plinth_index::IndexError> {
        Ok(entry)
    }
    let special: Index<i32, true, Standard> = index(&pool);
    special.append(sorted.iter().map(|e| error(*e))).unwrap();
    let wide: Index<i64, true, Standard> = index(&pool);
    wide.append(sorted.iter().map(|e| error((i64::from(e.0), e.1)))).unwrap();
    let uuid = |key: i32| u128::from(key.cast_unsigned() ^ 1 << 31) << 96 | 0xabcd;
    let uuids: Index<u128, true, Standard> = index(&pool);
    uuids.append(sorted.iter().map(|e| error((uuid(e.0), e.1)))).unwrap();
    let generic: Index<Bytes, true, Standard> = index(&pool);
    generic.append(sorted.iter().map(|e| error((as_bytes(e.0).to_vec(), e.1)))).unwrap();
    let map: BTreeMap<i32, u64> = sorted.iter().copied().collect();
    let one = |get: &dyn Fn(i32) -> Option<u64>| wanted.iter().fold(0, |sum, key| found(sum, get(*key)));
    fn batched<K: Key>(index: &Index<K, true, Standard>, wanted: &[K::Ref<'_>]) -> u64 {
        let mut rows = Vec::new();
        wanted.chunks(1024).fold(0, |sum, some| {
            index.get_many(some, &mut rows).unwrap();
            rows.iter().fold(sum, |sum, row| found(sum, *row))
        })
    }
    let (wide_keys, uuid_keys): (Vec<i64>, Vec<u128>) = wanted.iter().map(|key| (i64::from(*key), uuid(*key))).unzip();
    let byte_keys: Vec<[u8; 4]> = wanted.iter().map(|key| as_bytes(*key)).collect();
    let byte_keys: Vec<&[u8]> = byte_keys.iter().map(|key| &key[..]).collect();
    let entries = vec![
        entry("i32", || one(&|key| special.get(key).unwrap())),
        entry("i32, batched", || batched(&special, &wanted)),
        entry("i64", || one(&|key| wide.get(i64::from(key)).unwrap())),
        entry("i64, batched", || batched(&wide, &wide_keys)),
        entry("u128", || one(&|key| uuids.get(uuid(key)).unwrap())),
        entry("u128, batched", || batched(&uuids, &uuid_keys)),
        entry("byte strings", || one(&|key| generic.get(&as_bytes(key)).unwrap())),
        entry("byte strings, batched", || batched(&generic, &byte_keys)),
        entry("BTreeMap<i32> (std)", || one(&|key| map.get(&key).copied())),
        entry("slice::binary_search (std)", || {
            one(&|key| sorted.binary_search_by_key(&key, |e| e.0).ok().map(|at| sorted[at].1))
        }),
    ];
    compare(&format!("lookups in {rows} keys"), lookups as u64, 5, entries);
}

/// Searches in sorted keys that do not change.
fn search(len: usize) {
    let mut sorted = random_keys(len);
    sorted.sort_unstable();
    let mut random = Random::new(9);
    let wanted: Vec<i32> = (0..1_000_000).map(|_| random.next() as i32).collect();
    fn one<'a, L: Layout + 'a>(sorted: &[i32], wanted: &'a [i32]) -> Entry<'a> {
        let layout = L::build(sorted);
        // The next key depends on the answer, so searches do not overlap: this is what one lookup takes.
        entry(L::NAME, move || {
            wanted.iter().fold(0, |sum, key| digest(sum, layout.rank(key ^ i32::from(sum == 1)) as u64))
        })
    }
    let entries = vec![
        one::<layouts::Standard>(&sorted, &wanted),
        one::<Branching>(&sorted, &wanted),
        one::<BranchFree<false>>(&sorted, &wanted),
        one::<BranchFree<true>>(&sorted, &wanted),
        one::<Eytzinger<false>>(&sorted, &wanted),
        one::<Eytzinger<true>>(&sorted, &wanted),
        one::<VanEmdeBoas>(&sorted, &wanted),
        one::<Blocks>(&sorted, &wanted),
    ];
    compare(&format!("searches in {len} sorted i32"), wanted.len() as u64, 5, entries);
}

/// Lookups and inserts from 1 to N threads, by kind of latch.
fn threads(rows: usize) {
    let keys = random_keys(rows * 2);
    let most = std::thread::available_parallelism().map_or(1, usize::from);
    println!(
        "\nthreads, {rows} keys in memory (million operations a second by the clock, best of 3; {most} processors)"
    );
    println!("  {:<28} {:>8} {:>10} {:>22}", "", "threads", "lookups", "9 lookups : 1 insert");
    for threads in [1, 2, 4, 8].into_iter().filter(|n| *n <= (most * 2).max(4)) {
        run_threads::<Standard>("optimistic", &keys, rows, threads);
        run_threads::<WithReaderWriter>("reader-writer", &keys, rows, threads);
        run_threads::<WithMutex>("mutex", &keys, rows, threads);
    }
}

fn run_threads<P: Policy>(name: &str, keys: &[i32], rows: usize, threads: usize) {
    let pool = pool::<P>(8 << 30);
    let index: Index<i32, true, P> = index(&pool);
    for (key, row) in keys[..rows].iter().zip(0..) {
        index.insert(*key, row).unwrap();
    }
    let rate = |inserts: u64| {
        let (stop, total) = (AtomicBool::new(false), AtomicU64::new(0));
        let start = Instant::now();
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (index, stop, total) = (&index, &stop, &total);
                scope.spawn(move || {
                    let mut random = Random::new(thread as u64 + 1);
                    let mut operations = 0;
                    while !stop.load(Relaxed) {
                        for _ in 0..100 {
                            let at = random.below(rows as u64);
                            if random.below(100) < inserts {
                                let key = keys[rows + at as usize];
                                if index.insert(key, at).unwrap().is_some() {
                                    index.remove(key, at).unwrap();
                                }
                            } else {
                                assert_eq!(index.get(keys[at as usize]).unwrap(), Some(at));
                            }
                        }
                        operations += 100;
                    }
                    total.fetch_add(operations, Relaxed);
                });
            }
            std::thread::sleep(Duration::from_millis(700));
            stop.store(true, Relaxed);
        });
        total.load(Relaxed) as f64 / start.elapsed().as_secs_f64() / 1e6
    };
    let best = |inserts| (0..3).map(|_| rate(inserts)).fold(0.0, f64::max);
    println!("  {name:<28} {threads:>8} {:>10.2} {:>22.2}", best(0), best(10));
}

/// Random lookups where more or less of what is looked up fits the pool, by kind of pool.
fn working_sets() {
    const POOL: u64 = 32 << 20;
    println!("\nworking sets, pool of 32 MiB over pages in memory (CPU ns a lookup; reads a lookup)");
    println!("  {:>8} {:>20} {:>20} {:>20}", "of pool", "swizzled", "hash table", "hash table, hints");
    for tenths in [1, 3, 5, 8, 10, 20, 50, 100] {
        let rows = (POOL * tenths / 10 / 13) as usize;
        let keys = random_keys(rows);
        let cells = [
            working_set::<Standard>(&keys, POOL),
            working_set::<WithTable>(&keys, POOL),
            working_set::<WithHints>(&keys, POOL),
        ];
        let (digest, cells): (Vec<u64>, Vec<String>) =
            cells.into_iter().map(|(d, ns, reads)| (d, format!("{ns:.0} ({reads:.2})"))).unzip();
        assert!(digest.iter().all(|d| *d == digest[0]));
        println!("  {:>7.1}x {:>20} {:>20} {:>20}", tenths as f64 / 10.0, cells[0], cells[1], cells[2]);
    }
}

fn working_set<P: Policy>(keys: &[i32], bytes: u64) -> (u64, f64, f64) {
    let pool = pool::<P>(bytes);
    let index: Index<i32, true, P> = index(&pool);
    let mut sorted: Vec<(i32, u64)> = keys.iter().copied().zip(0..).collect();
    sorted.sort_unstable();
    index.append(sorted.into_iter().map(Ok::<_, plinth_index::IndexError>)).unwrap();
    index.checkpoint(0).unwrap();
    let mut random = Random::new(3);
    let mut run = |lookups: u64| {
        (0..lookups).fold(0, |sum, _| {
            let at = random.below(keys.len() as u64);
            found(sum, index.get(keys[at as usize]).unwrap())
        })
    };
    run(200_000);
    let before = pool.counters().reads;
    let times: Vec<(u64, u64)> = (0..5).map(|_| measure::timed(|| run(100_000))).collect();
    let reads = (pool.counters().reads - before) as f64 / 500_000.0;
    let mut nanos: Vec<u64> = times.iter().map(|t| t.0).collect();
    nanos.sort_unstable();
    (times.iter().fold(0, |sum, t| digest(sum, t.1)), nanos[2] as f64 / 1e5, reads)
}

/// A pool of a tenth of the data, on the device under the working directory.
fn cold(rows: usize) {
    let path = std::env::current_dir().unwrap().join("keys-example.plinth-index");
    let _ = std::fs::remove_file(&path);
    let rows = rows.max(4_000_000);
    let bytes = rows as u64 * 16 / 10;
    let pool = pool::<Standard>(bytes);
    let index: Index<i64, true, Standard> =
        Index::create(&pool, LocalPages::create(&path).unwrap(), Options::default()).unwrap();
    let key = |i: u64| (i as i64).wrapping_mul(2);
    index.append((0..rows as u64).map(|i| Ok::<_, plinth_index::IndexError>((key(i), i)))).unwrap();
    index.checkpoint(0).unwrap();
    println!("\ncold: {rows} i64 in {} MB, pool {} MB", index.file_bytes() / 1_000_000, bytes / 1_000_000);
    println!("  {:<28} {:>8} {:>14} {:>14} {:>8}", "", "threads", "lookups/s", "reads/s", "reads");
    let pages = index.file_bytes() / 4096;
    for threads in [1, 2] {
        for (name, batch) in [("device: 4 KiB by itself", 0), ("one by one", 1), ("batches of 256", 256)] {
            let (stop, total) = (AtomicBool::new(false), AtomicU64::new(0));
            let (start, before) = (Instant::now(), pool.counters().reads);
            std::thread::scope(|scope| {
                for thread in 0..threads {
                    let (index, stop, total, path) = (&index, &stop, &total, &path);
                    scope.spawn(move || {
                        let mut random = Random::new(thread + 1);
                        let device = LocalPages::open(path).unwrap();
                        let mut found = Vec::new();
                        while !stop.load(Relaxed) {
                            if batch == 0 {
                                total.fetch_add(device_reads(&device, &mut random, pages), Relaxed);
                                continue;
                            }
                            let wanted: Vec<u64> = (0..batch).map(|_| random.below(rows as u64)).collect();
                            if batch == 1 {
                                assert_eq!(index.get(key(wanted[0])).unwrap(), Some(wanted[0]));
                            } else {
                                let keys: Vec<i64> = wanted.iter().map(|i| key(*i)).collect();
                                index.get_many(&keys, &mut found).unwrap();
                                assert!(found.iter().zip(&wanted).all(|(f, w)| *f == Some(*w)));
                            }
                            total.fetch_add(batch, Relaxed);
                        }
                    });
                }
                std::thread::sleep(Duration::from_millis(2500));
                stop.store(true, Relaxed);
            });
            let seconds = start.elapsed().as_secs_f64();
            let (lookups, reads) = (total.load(Relaxed) as f64, (pool.counters().reads - before) as f64);
            let reads = if batch == 0 { lookups } else { reads };
            let (rate, reads_rate) = (lookups / seconds, reads / seconds);
            println!("  {name:<28} {threads:>8} {rate:>14.0} {reads_rate:>14.0} {:>8.2}", reads / lookups);
        }
    }
    println!("  {:?}", pool.counters());
    drop(index);
    let _ = std::fs::remove_file(&path);
}

/// As many reads at once as a batch of lookups makes, with nothing else to do.
fn device_reads(device: &LocalPages, random: &mut Random, pages: u64) -> u64 {
    use plinth_index::{Image, PageFile, PageRead};
    let mut reads: Vec<PageRead> =
        (0..256).map(|_| PageRead { offset: random.below(pages) * 4096, image: Image::new(0) }).collect();
    device.read_many(&mut reads).unwrap();
    black_box(reads.len() as u64)
}
