//! What every store of the suite `rows` is asked, and the answers: commands come as lines, results go as JSON, a line each.
//!
//! `load ROWS`, `get COUNT SEED`, `many COUNT LOT SEED`, `index`, `find COUNT SEED`, `commit WRITERS COMMITS ROWS`, `bare COUNT BYTES`. Every row that is read is
//! made a digest of, all of its values, whose sum must be that of the rows as they were made.

use std::fs::File;
use std::io::{BufRead, Error, Result, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

/// A row as it is made of its key.
pub struct Row {
    pub id: i64,
    pub a: i64,
    pub b: i64,
    pub c: f64,
    pub d: i32,
    pub e: i32,
    pub f: String,
    pub g: String,
}

pub fn mix(n: i64) -> i64 {
    let n = n.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
    (n ^ (n >> 31)) & 0x7fff_ffff_ffff
}

pub fn row(id: i64) -> Row {
    let small = |most: i64| i32::try_from(mix(id) % most).unwrap_or(0);
    Row {
        id,
        a: mix(id),
        b: id / 1000,
        c: f64::from(small(1_000_000)) / 100.0,
        d: small(100),
        e: small(100_000),
        f: format!("city {}", mix(id) % 5000),
        g: format!("note {}", mix(id)),
    }
}

/// All values of a row, in one number.
#[allow(clippy::too_many_arguments, reason = "a row has so many columns")]
pub fn digest(id: i64, a: i64, b: i64, c: f64, d: i32, e: i32, f: &str, g: &str) -> u64 {
    let fold = |sum: u64, value: u64| (sum ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
    let text =
        |sum: u64, text: &str| text.bytes().fold(sum, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let numbers = [id.cast_unsigned(), a.cast_unsigned(), b.cast_unsigned(), c.to_bits()];
    let sum = numbers.into_iter().fold(0, fold);
    let sum = fold(sum, u64::from(d.cast_unsigned()) << 32 | u64::from(e.cast_unsigned()));
    text(text(sum, f), g)
}

impl Row {
    pub fn digest(&self) -> u64 {
        digest(self.id, self.a, self.b, self.c, self.d, self.e, &self.f, &self.g)
    }
}

/// A store of such rows. The keys of `rows` loaded rows are the even numbers below twice that.
pub trait Store: Sync {
    /// Fills an empty store with the rows of some keys, in their order.
    fn load(&self, keys: impl Iterator<Item = i64> + Clone);
    /// Digests of the rows with some keys, one after the other.
    fn get(&self, keys: &[i64]) -> u64;
    /// The same, by whatever reads many at once.
    fn many(&self, keys: &[i64]) -> u64;
    /// Creates an index over the column `a`.
    fn index(&self);
    /// Digests of the rows with some values of `a`, one after the other, by the index.
    fn find(&self, values: &[i64]) -> u64;
    /// Commits rows, durably.
    fn commit(&self, rows: &[Row]);
    /// Commands of its own: seconds and a digest.
    fn other(&self, command: &str, rows: i64) -> Option<(f64, u64)>;
}

/// What some work takes of the clock and, where the system tells, of a processor: on a busy machine only that is the work's own.
#[derive(Clone, Copy, Default)]
pub struct Spent {
    pub wall: f64,
    pub cpu: f64,
}

impl Spent {
    pub fn add<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let cpu = || {
            let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
            told.and_then(|told| told.split_whitespace().next()?.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
        };
        let (began, before) = (Instant::now(), cpu());
        let done = work();
        self.cpu += cpu() - before;
        self.wall += began.elapsed().as_secs_f64();
        done
    }
}

/// Answers commands until there are no more.
pub fn serve(store: &impl Store, folder: &Path) -> Result<()> {
    let next = AtomicI64::new(0);
    let mut rows = 0;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |i: usize| words.get(i).and_then(|word| word.parse::<i64>().ok()).unwrap_or(0);
        let mut spent = Spent::default();
        let (mut times, mut right) = (Vec::new(), true);
        match words.first().copied().unwrap_or("") {
            "load" => {
                rows = number(1);
                next.store(rows, Ordering::Relaxed);
                spent.add(|| store.load((0..rows).map(|i| i * 2)));
            }
            "index" => spent.add(|| store.index()),
            what @ ("get" | "many" | "find") => {
                let (count, lot) = (number(1), if what == "many" { number(2) } else { number(1) });
                let seed = number(if what == "many" { 3 } else { 2 });
                for start in (0..count).step_by(usize::try_from(lot.max(1)).unwrap_or(1)) {
                    let of = start..count.min(start + lot);
                    let keys: Vec<i64> = of.map(|i| mix(seed.wrapping_mul(1 << 32) + i) % rows * 2).collect();
                    let values: Vec<i64> = keys.iter().map(|&key| row(key).a).collect();
                    let found = spent.add(|| match what {
                        "many" => store.many(&keys),
                        "find" => store.find(&values),
                        _ => store.get(&keys),
                    });
                    let expected = keys.iter().fold(0_u64, |sum, &key| sum.wrapping_add(row(key).digest()));
                    right &= found == expected;
                }
            }
            "commit" => {
                let (writers, commits, lot) = (number(1), number(2), number(3));
                let lots = |from: i64| (from..from + lot).map(|i| row(i * 2)).collect::<Vec<_>>();
                let first = next.fetch_add(writers * commits * lot, Ordering::Relaxed);
                let made: Vec<Vec<Vec<Row>>> = (0..writers)
                    .map(|writer| (0..commits).map(|i| lots(first + (writer * commits + i) * lot)).collect())
                    .collect();
                let began = Instant::now();
                let took = std::sync::Mutex::new(Vec::new());
                std::thread::scope(|scope| {
                    for lots in &made {
                        let took = &took;
                        scope.spawn(move || {
                            let one = |rows: &Vec<Row>| {
                                let began = Instant::now();
                                store.commit(rows);
                                began.elapsed().as_secs_f64()
                            };
                            let mine: Vec<f64> = lots.iter().map(one).collect();
                            took.lock().map(|mut took| took.extend(mine)).is_ok()
                        });
                    }
                });
                spent.wall = began.elapsed().as_secs_f64();
                times = took.into_inner().unwrap_or_default();
                for rows in made.iter().flatten() {
                    let keys: Vec<i64> = rows.iter().map(|row| row.id).collect();
                    right &= store.many(&keys) == rows.iter().fold(0_u64, |sum, row| sum.wrapping_add(row.digest()));
                }
            }
            "bare" => times = bare(folder, number(1), usize::try_from(number(2)).unwrap_or(4096), &mut spent)?,
            other => match store.other(other, rows) {
                Some((wall, found)) => {
                    println!("{{\"seconds\": {wall}, \"digest\": \"{found:x}\"}}");
                    continue;
                }
                None => return Err(Error::other(format!("no command {line:?}"))),
            },
        }
        times.sort_by(f64::total_cmp);
        let median = times.get(times.len() / 2).copied().unwrap_or(0.0);
        println!("{{\"seconds\": {}, \"cpu\": {}, \"median\": {median}, \"right\": {right}}}", spent.wall, spent.cpu);
        std::io::stdout().flush()?;
    }
    Ok(())
}

/// Writes and fdatasyncs one after the other, in a file that has its length.
fn bare(folder: &Path, count: i64, bytes: usize, spent: &mut Spent) -> Result<Vec<f64>> {
    let path = folder.join("bare");
    let file = File::create(&path)?;
    let (buffer, len) = (vec![7; bytes], 64 << 20);
    file.write_all_at(&vec![0; len], 0)?;
    file.sync_all()?;
    let mut times = Vec::new();
    for i in 0..usize::try_from(count).unwrap_or(0) {
        let mut one = Spent::default();
        one.add(|| {
            file.write_all_at(&buffer, (i * bytes % (len - bytes)) as u64 / 4096 * 4096).and_then(|()| file.sync_data())
        })?;
        spent.wall += one.wall;
        times.push(one.wall);
    }
    std::fs::remove_file(path)?;
    Ok(times)
}
