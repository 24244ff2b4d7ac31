//! What an index does beside its rivals: `cargo run --release -p plinth-index --example keys -- [PART] [ROWS] [FOLDER] [--json]`.
//!
//! Parts: `insert`, `lookup`, `layouts`, `nodes`, `threads`, `pools`, `cold`; all of them without an argument. Every answer is
//! checked by a digest before a time is printed, and all that is compared runs in turn, in one process. `cold` makes its file in
//! the folder.
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

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use layouts::{Blocks, BranchFree, Branching, Eytzinger, Layout, VanEmdeBoas};
use measure::{Entry, Table, compare, digest, entry};
use plinth_core::random::Random;
use plinth_index::pool::translation::Swizzled;
use plinth_index::{Bytes, Index, Key, LocalPages, MemoryPages, Options, Policy, Pool};
use plinth_io::MemoryBudget;

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
    if is("nodes") {
        nodes(rows);
    }
    if is("threads") {
        threads(rows);
    }
    if is("pools") {
        working_sets();
    }
    if is("cold") {
        let folder = std::env::args().nth(3).filter(|folder| !folder.starts_with("--"));
        cold(rows, folder.map_or_else(|| std::env::current_dir().unwrap(), PathBuf::from));
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
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut keys: Vec<i32> = (0..rows + rows / 8).map(|_| random.next_u64() as i32).collect();
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
    compare(&four(&rows.to_string()), rows as u64 * 4, 3, entries);
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

/// More keys than this are looked up in fewer kinds of indexes, so that they fit memory.
const MANY: usize = 20_000_000;

/// Looks keys up, half of which are there. A key's row is its rank.
fn lookup(rows: usize) {
    let mut sorted = random_keys(rows);
    sorted.sort_unstable();
    let mut random = Random(7);
    let wanted: Vec<i32> = (0..1_000_000)
        .map(|_| if random.chance(50) { sorted[random.below(rows as u64) as usize] } else { random.next_u64() as i32 })
        .collect();
    let pool = pool::<Standard>(16 << 30);
    fn fill<K: Key>(pool: &Arc<Pool<Standard>>, keys: impl Iterator<Item = K::Owned>) -> Index<K, true, Standard> {
        let index = index(pool);
        index.append(keys.zip(0..).map(Ok::<_, plinth_index::IndexError>)).unwrap();
        index
    }
    let one = |get: &dyn Fn(i32) -> Option<u64>| wanted.iter().fold(0, |sum, key| found(sum, get(*key)));
    fn batched<K: Key>(index: &Index<K, true, Standard>, wanted: &[K::Ref<'_>]) -> u64 {
        let mut rows = Vec::new();
        wanted.chunks(1024).fold(0, |sum, some| {
            index.multi_get(some, &mut rows).unwrap();
            rows.iter().fold(sum, |sum, row| found(sum, *row))
        })
    }
    let special: Index<i32, true, Standard> = fill(&pool, sorted.iter().copied());
    let wide: Index<i64, true, Standard> = fill(&pool, sorted.iter().map(|key| i64::from(*key)));
    let map: BTreeMap<i32, u64> = sorted.iter().copied().zip(0..).collect();
    let wide_keys: Vec<i64> = wanted.iter().map(|key| i64::from(*key)).collect();
    let uuid = |key: i32| u128::from(key.cast_unsigned() ^ 1 << 31) << 96 | 0xabcd;
    let few = || sorted.iter().filter(|_| rows <= MANY);
    let uuids: Index<u128, true, Standard> = fill(&pool, few().map(|key| uuid(*key)));
    let generic: Index<Bytes, true, Standard> = fill(&pool, few().map(|key| as_bytes(*key).to_vec()));
    let uuid_keys: Vec<u128> = wanted.iter().map(|key| uuid(*key)).collect();
    let byte_keys: Vec<[u8; 4]> = wanted.iter().map(|key| as_bytes(*key)).collect();
    let byte_keys: Vec<&[u8]> = byte_keys.iter().map(|key| &key[..]).collect();
    let mut entries = vec![
        entry("i32", || one(&|key| special.get(key).unwrap())),
        entry("i32, batched", || batched(&special, &wanted)),
        entry("i64", || one(&|key| wide.get(i64::from(key)).unwrap())),
        entry("i64, batched", || batched(&wide, &wide_keys)),
        entry("BTreeMap<i32> (std)", || one(&|key| map.get(&key).copied())),
        entry("slice::binary_search (std)", || one(&|key| sorted.binary_search(&key).ok().map(|at| at as u64))),
    ];
    if rows <= MANY {
        entries.extend([
            entry("u128", || one(&|key| uuids.get(uuid(key)).unwrap())),
            entry("u128, batched", || batched(&uuids, &uuid_keys)),
            entry("byte strings", || one(&|key| generic.get(&as_bytes(key)).unwrap())),
            entry("byte strings, batched", || batched(&generic, &byte_keys)),
        ]);
    }
    compare(&format!("lookups in {rows} keys"), wanted.len() as u64, 5, entries);
}

/// Searches within nodes as large as a leaf's column of keys, of which there are as many as so many keys fill: the node is
/// any of them, so what it takes to fetch it is part of the search.
fn nodes(rows: usize) {
    const LEAF: usize = 338;
    let mut sorted = random_keys(rows);
    sorted.sort_unstable();
    let leaves = (rows / LEAF).max(1);
    let mut random = Random(11);
    let wanted: Vec<(u32, i32)> = (0..1_000_000)
        .map(|_| {
            let leaf = random.below(leaves as u64) as usize;
            (leaf as u32, sorted[(leaf * LEAF + random.below(LEAF as u64) as usize).min(rows - 1)])
        })
        .collect();
    fn one<L: Layout>(sorted: &[i32], leaf: usize, wanted: &[(u32, i32)]) -> (&'static str, f64, u64) {
        let nodes: Vec<L> = sorted.chunks(leaf).map(L::build).collect();
        // The next node depends on the answer, so searches do not overlap.
        let run = || {
            wanted.iter().fold(0, |sum, (node, key)| {
                digest(sum, nodes[*node as usize ^ usize::from(sum == 1)].rank(*key) as u64)
            })
        };
        let mut times: Vec<(u64, u64)> = (0..5).map(|_| measure::timed(run)).collect();
        times.sort_unstable();
        (L::NAME, times[2].0 as f64 / wanted.len() as f64, times[2].1)
    }
    // One after the other: all at once would not fit memory.
    let found = [
        one::<BranchFree<false>>(&sorted, LEAF, &wanted),
        one::<BranchFree<true>>(&sorted, LEAF, &wanted),
        one::<layouts::Standard>(&sorted, LEAF, &wanted),
        one::<Branching>(&sorted, LEAF, &wanted),
        one::<Eytzinger<false>>(&sorted, LEAF, &wanted),
        one::<Eytzinger<true>>(&sorted, LEAF, &wanted),
        one::<VanEmdeBoas>(&sorted, LEAF, &wanted),
        one::<Blocks>(&sorted, LEAF, &wanted),
    ];
    let title = format!("searches within nodes of {LEAF} i32, {rows} keys: processor time, median of 5");
    let mut table = Table::new(title, &["ns each", "ratio"]);
    for (name, each, digest) in found {
        assert_eq!(digest, found[0].2, "{name} answers differently");
        table.row(name, [each, each / found[0].1]);
    }
    table.print();
}

/// Searches in sorted keys that do not change.
fn search(len: usize) {
    let mut sorted = random_keys(len);
    sorted.sort_unstable();
    let mut random = Random(9);
    let wanted: Vec<i32> = (0..1_000_000).map(|_| random.next_u64() as i32).collect();
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

/// Lookups and inserts from 1 to 8 threads, by kind of latch.
fn threads(rows: usize) {
    let keys = random_keys(rows * 2);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let title = format!(
        "threads, {rows} keys in memory: million operations a second by the clock, best of 3; {processors} processors"
    );
    let mut table = Table::new(title, &["lookups", "9 to 1 insert"]);
    for threads in [1, 2, 4, 8] {
        table.row(format!("optimistic, {threads}"), run_threads::<Standard>(&keys, rows, threads));
        table.row(format!("reader-writer, {threads}"), run_threads::<WithReaderWriter>(&keys, rows, threads));
        table.row(format!("mutex, {threads}"), run_threads::<WithMutex>(&keys, rows, threads));
    }
    table.print();
}

fn run_threads<P: Policy>(keys: &[i32], rows: usize, threads: usize) -> [f64; 2] {
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
                    let mut random = Random(thread as u64 + 1);
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
    [best(0), best(10)]
}

/// Random lookups where more or less of what is looked up fits the pool, by kind of pool.
fn working_sets() {
    const POOL: u64 = 32 << 20;
    let title =
        "working sets, pool of 32 MiB over pages in memory: processor time a lookup, median of 5; reads a lookup";
    let mut table = Table::new(title, &["swizzled", "reads", "hash table", "reads", "with hints", "reads"]);
    for tenths in [1, 3, 5, 8, 10, 20, 50, 100] {
        let rows = (POOL * tenths / 10 / 13) as usize;
        let keys = random_keys(rows);
        let cells = [
            working_set::<Standard>(&keys, POOL),
            working_set::<WithTable>(&keys, POOL),
            working_set::<WithHints>(&keys, POOL),
        ];
        assert!(cells.iter().all(|cell| cell.0 == cells[0].0));
        let figures: Vec<f64> = cells.iter().flat_map(|(_, nanos, reads)| [*nanos, *reads]).collect();
        table.row(format!("{:.1} of the pool", tenths as f64 / 10.0), figures);
    }
    table.print();
}

fn working_set<P: Policy>(keys: &[i32], bytes: u64) -> (u64, f64, f64) {
    let pool = pool::<P>(bytes);
    let index: Index<i32, true, P> = index(&pool);
    let mut sorted: Vec<(i32, u64)> = keys.iter().copied().zip(0..).collect();
    sorted.sort_unstable();
    index.append(sorted.into_iter().map(Ok::<_, plinth_index::IndexError>)).unwrap();
    index.checkpoint(0).unwrap();
    let mut random = Random(3);
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

/// A pool of a tenth of the data, on the device under a folder.
fn cold(rows: usize, folder: PathBuf) {
    let path = folder.join("keys-example.plinth-index");
    let _ = std::fs::remove_file(&path);
    let rows = rows.max(100_000);
    let bytes = rows as u64 * 16 / 10;
    let pool = pool::<Standard>(bytes);
    let index: Index<i64, true, Standard> =
        Index::create(&pool, LocalPages::create(&path).unwrap(), Options::default()).unwrap();
    let key = |i: u64| (i as i64).wrapping_mul(2);
    index.append((0..rows as u64).map(|i| Ok::<_, plinth_index::IndexError>((key(i), i)))).unwrap();
    index.checkpoint(0).unwrap();
    let title = format!(
        "larger than memory: {rows} i64 in {} MB, pool {} MB, by the clock",
        index.file_bytes() / 1_000_000,
        bytes / 1_000_000
    );
    let mut table = Table::new(title, &["lookups/s", "reads/s", "reads a lookup", "of the device"]);
    let pages = index.file_bytes() / 4096;
    for threads in [1, 2] {
        let mut device = None;
        for (name, batch) in [("device by itself, 256 at once", 0), ("one by one", 1), ("batches of 256", 256)] {
            let (stop, total) = (AtomicBool::new(false), AtomicU64::new(0));
            let (start, before) = (Instant::now(), pool.counters().reads);
            std::thread::scope(|scope| {
                for thread in 0..threads {
                    let (index, stop, total, path) = (&index, &stop, &total, &path);
                    scope.spawn(move || {
                        let mut random = Random(thread + 1);
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
                                index.multi_get(&keys, &mut found).unwrap();
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
            let share = reads_rate / *device.get_or_insert(reads_rate);
            table.row(format!("{name}, {threads} thread(s)"), [rate, reads_rate, reads / lookups, share]);
        }
    }
    table.print();
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
