//! Sorting by exact types beside a comparator that is called, the standard library and radix sorts:
//! `cargo run --release -p plinth-core --example sort -- [ROWS] [THREADS] [--json]`.
//!
//! All rivals of a line run in turn, several times; what they return is compared before a time is printed. Without THREADS
//! times are of the processor, else of the clock.
#![allow(clippy::unwrap_used, clippy::cast_precision_loss, missing_docs)]

use std::cmp::Ordering;
use std::fmt::Debug;
use std::hint::black_box;

use plinth_core::key::head;
use plinth_core::sort::{Sortable, order_bytes, sort};
use rayon::prelude::*;
use rdst::{RadixKey, RadixSort};
use rustix::time::{ClockId, clock_gettime};
use voracious_radix_sort::{RadixSort as _, Radixable};

const ROUNDS: usize = 5;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// Nanoseconds: of this thread's processor time if nothing else works for it, else of the clock.
fn now(threads: usize) -> u64 {
    let clock = if threads == 1 { ClockId::ThreadCPUTime } else { ClockId::Monotonic };
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap()
}

type Rival<'a, T> = (&'static str, Box<dyn Fn(&mut Vec<T>) + 'a>);

/// A comparator that the sort calls for each pair, as it would that of a column whose type it does not know.
fn called<T: Ord>() -> fn(&T, &T) -> Ordering {
    #[inline(never)]
    fn compare<T: Ord>(a: &T, b: &T) -> Ordering {
        a.cmp(b)
    }
    black_box(compare::<T>)
}

fn compare<T: Clone + PartialEq + Debug>(title: &str, threads: usize, input: &[T], rivals: Vec<Rival<'_, T>>) {
    let mut times = vec![Vec::new(); rivals.len()];
    let mut expected: Option<Vec<T>> = None;
    for _ in 0..ROUNDS {
        for ((name, run), times) in rivals.iter().zip(&mut times) {
            let mut values = input.to_vec();
            let start = now(threads);
            run(&mut values);
            times.push(now(threads) - start);
            assert!(*expected.get_or_insert_with(|| values.clone()) == values, "{title}: {name} sorts differently");
        }
    }
    let title = format!("{title}: {} values, {threads} thread(s), median of {ROUNDS}", input.len());
    let json = std::env::args().any(|argument| argument == "--json");
    let mut first = None;
    let mut lines = Vec::new();
    for ((name, _), times) in rivals.iter().zip(&mut times) {
        times.sort_unstable();
        let each = times[ROUNDS / 2] as f64 / input.len() as f64;
        let ratio = each / *first.get_or_insert(each);
        lines.push(if json {
            format!("[{name:?},[{each},{ratio}]]")
        } else {
            format!("  {name:<40} {each:>8.1} ns each {ratio:>6.2}")
        });
    }
    if json {
        println!(r#"{{"title":{title:?},"columns":["ns each","ratio"],"rows":[{}]}}"#, lines.join(","));
    } else {
        println!("\n{title}\n{}", lines.join("\n"));
    }
}

/// The rivals that any type has.
fn plain<'a, T: Sortable + Debug>(threads: usize) -> Vec<Rival<'a, T>> {
    let mut rivals: Vec<Rival<'a, T>> = vec![("plinth", Box::new(|v| sort(v)))];
    if threads == 1 {
        rivals.push(("comparator called (sort_unstable_by)", Box::new(|v| v.sort_unstable_by(called::<T>()))));
        rivals.push(("sort_unstable (std)", Box::new(|v| v.sort_unstable())));
        rivals.push(("sort (std, stable)", Box::new(|v| v.sort())));
    } else {
        rivals.push(("comparator called (rayon)", Box::new(|v| v.par_sort_unstable_by(called::<T>()))));
        rivals.push(("par_sort_unstable (rayon)", Box::new(|v| v.par_sort_unstable())));
    }
    rivals
}

fn with_rdst<'a, T: Sortable + Debug + RadixKey>(threads: usize) -> Vec<Rival<'a, T>> {
    let mut rivals = plain::<T>(threads);
    rivals.push((
        "rdst",
        Box::new(move |v| match threads {
            1 => v.radix_sort_builder().with_single_threaded_tuner().with_parallel(false).sort(),
            _ => v.radix_sort_unstable(),
        }),
    ));
    rivals
}

fn with_all<'a, T, K>(threads: usize) -> Vec<Rival<'a, T>>
where
    T: Sortable + Debug + RadixKey + Radixable<K>,
    K: voracious_radix_sort::RadixKey,
{
    let mut rivals = with_rdst::<T>(threads);
    if threads == 1 {
        rivals.push(("voracious_radix_sort", Box::new(|v| v.voracious_sort())));
    }
    rivals
}

/// A (key, row) pair, for the radix sorts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pair(i64, u32);

impl RadixKey for Pair {
    const LEVELS: usize = 12;
    fn get_level(&self, level: usize) -> u8 {
        if level < 4 { RadixKey::get_level(&self.1, level) } else { RadixKey::get_level(&self.0, level - 4) }
    }
}

impl Sortable for Pair {
    fn rank(self) -> u64 {
        self.0.rank()
    }
}

fn main() {
    let number =
        |at: usize, otherwise: usize| std::env::args().nth(at).and_then(|n| n.parse().ok()).unwrap_or(otherwise);
    let (rows, threads) = (number(1, 10_000_000), number(2, 1));
    // All runs on threads of the pool, so that with one of them its processor time is everybody's.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| measure(rows, threads));
}

fn measure(rows: usize, threads: usize) {
    let mut random = Random(0x1234_5678_9abc_def1);
    let random: Vec<u64> = (0..rows).map(|_| random.next()).collect();
    let i64s: Vec<i64> = random.iter().map(|v| v.cast_signed()).collect();
    let i32s: Vec<i32> = random.iter().map(|v| i32::try_from(v.cast_signed() >> 32).unwrap()).collect();
    compare("i32, random", threads, &i32s, with_all(threads));
    compare("i64, random", threads, &i64s, with_all(threads));
    let skewed: Vec<i64> = i64s.iter().map(|v| v >> (v.trailing_zeros() * 6).min(63)).collect();
    compare("i64, skewed", threads, &skewed, with_all(threads));
    let few: Vec<i64> = i64s.iter().map(|v| v % 1000).collect();
    compare("i64, 1,999 distinct", threads, &few, with_all(threads));
    let mut runs = i64s.clone();
    runs.chunks_mut(rows.div_ceil(20)).for_each(<[i64]>::sort_unstable);
    compare("i64, 20 sorted runs", threads, &runs, with_all(threads));
    runs.sort_unstable();
    compare("i64, sorted", threads, &runs, with_all(threads));
    runs.reverse();
    compare("i64, backwards", threads, &runs, with_all(threads));
    drop((runs, skewed, few, i32s));
    let uuids: Vec<u128> = random.iter().map(|v| u128::from(*v) << 64 | u128::from(v.rotate_left(17))).collect();
    compare("UUID, random", threads, &uuids, with_all(threads));
    drop(uuids);
    let pairs: Vec<Pair> = i64s.iter().zip(0..).map(|(key, row)| Pair(*key, row)).collect();
    compare("(i64, row), random", threads, &pairs, with_rdst(threads));
    drop(pairs);
    strings(threads, &random);
}

/// Strings in one buffer, sorted by their places.
fn strings(threads: usize, random: &[u64]) {
    let prefix = "https://www.example.com/";
    let mut bytes = Vec::new();
    let mut ends = vec![0];
    for value in random {
        use std::io::Write;
        let kind = ["item/", "user/", ""][usize::try_from(value % 3).unwrap()];
        write!(bytes, "{prefix}{kind}{}", value >> 34).unwrap();
        ends.push(bytes.len());
    }
    let key = |at: u32| -> &[u8] { &bytes[ends[at as usize]..ends[at as usize + 1]] };
    let places: Vec<u32> = (0..).take(random.len()).collect();
    let by_bytes = |a: &u32, b: &u32| key(*a).cmp(key(*b)).then(a.cmp(b));
    let callback: &(dyn Fn(&u32, &u32) -> Ordering + Sync) = black_box(&by_bytes);
    let len = u32::try_from(random.len()).unwrap();
    let rivals: Vec<Rival<'_, u32>> = vec![
        ("plinth", Box::new(|v| *v = order_bytes(len, key))),
        ("comparator called", Box::new(|v| v.par_sort_unstable_by(callback))),
        ("comparator compiled in", Box::new(|v| v.par_sort_unstable_by(by_bytes))),
        (
            "8-byte heads, rayon",
            Box::new(|v| {
                let mut heads: Vec<(u64, u32)> = v.iter().map(|at| (head(key(*at), prefix.len()), *at)).collect();
                heads.par_sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| by_bytes(&a.1, &b.1)));
                *v = heads.into_iter().map(|(_, at)| at).collect();
            }),
        ),
    ];
    compare("strings (24 bytes in common)", threads, &places, rivals);
}
