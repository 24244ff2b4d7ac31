//! Mixed work from several processes: those that write take turns, as the lock has it, and are killed at random; others read and
//! verify meanwhile. What each commit does follows from its number, so that what the table must hold is known of any moment.
//! At the end it is verified, and counted against what was acknowledged.
//!
//! `PLINTH_SOAK_SECONDS` says how long. An hour:
//!
//! ```text
//! PLINTH_SOAK_SECONDS=3600 cargo test --release -p plinth-rowstore --test suite soak -- --nocapture
//! ```

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::*;
use plinth_rowstore::TableError;

/// The row that says how many commits there were.
const COUNTER: i64 = -1;

/// Keys that commits write.
const KEYS: u64 = 3_000;

fn options() -> TableOptions {
    TableOptions { background: true, merge_rows: 700, filter_bytes: 6_000, ..small() }
}

/// Text of low or high entropy, short or long.
fn text(random: &mut Random) -> String {
    match random.below(4) {
        0 => format!("text {}", random.below(20)),
        1 => format!(
            "{:016x}{:016x}",
            random.below(u64::MAX).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            random.below(u64::MAX)
        ),
        2 => format!("{}{}", "a long prefix of all ".repeat(8), random.below(500)),
        _ => format!("{:x}", random.below(1 << 30)).repeat(1 + usize::try_from(random.below(30)).unwrap()),
    }
}

/// What a commit does: the rows that come, and the keys that go.
fn commit(number: i64) -> (Model, Vec<i64>) {
    let mut random = Random(u64::try_from(number).unwrap().wrapping_mul(0x2545_f491_4f6c_dd1d));
    random.below(2);
    let key = |random: &mut Random| i64::try_from(random.below(KEYS)).unwrap();
    let many = if number % 50 == 0 { 400 } else { 6 };
    let mut new: Model = (0..1 + random.below(many))
        .map(|_| {
            let n = (random.below(5) > 0).then_some(number % 1000);
            (key(&mut random), (n, text(&mut random)))
        })
        .collect();
    let gone: Vec<i64> = (0..random.below(5)).map(|_| key(&mut random)).filter(|key| !new.contains_key(key)).collect();
    new.insert(COUNTER, (Some(number), String::new()));
    (new, gone)
}

fn apply(model: &mut Model, number: i64) {
    let (new, gone) = commit(number);
    gone.iter().for_each(|key| drop(model.remove(key)));
    model.extend(new);
}

fn counter(table: &Model) -> i64 {
    table.get(&COUNTER).map_or(0, |row| row.0.unwrap())
}

/// The process that writes, until it is killed, or closes the table and opens it again.
#[test]
#[ignore = "is run by the test below"]
fn soak_writes() {
    let Ok(path) = std::env::var("PLINTH_SOAK_TABLE") else { return };
    let mut random = Random(std::process::id().into());
    loop {
        let table = match Table::open(&path, options()) {
            Ok(table) => table,
            Err(TableError::InUse { .. }) => {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            Err(error) => return println!("failed {error}"),
        };
        let row = table.get(COUNTER).unwrap().map(|row| rows([Ok(row)]).unwrap());
        let first = row.map_or(0, |row| counter(&row));
        for number in first + 1..first + 1 + i64::try_from(random.below(400)).unwrap() {
            let (new, gone) = commit(number);
            let mut transaction = table.begin();
            transaction.delete(&keys(gone)).unwrap();
            transaction.upsert(&batch(&new)).unwrap();
            if let Err(error) = transaction.commit() {
                return println!("failed {error}");
            }
            println!("done {number}");
            let done = match random.below(300) {
                0 => table.vacuum(),
                1 => table.merge(),
                2 | 3 => {
                    let (name, columns) = super::indexes::INDEXES[usize::try_from(random.below(4)).unwrap()];
                    let there = table.snapshot().indexes().iter().any(|index| index.name == name);
                    if there { table.drop_index(name) } else { table.create_index(name, columns, false) }
                }
                _ => Ok(()),
            };
            if let Err(error) = done {
                return println!("failed {error}");
            }
        }
        table.close().unwrap();
    }
}

/// The process that reads: each time the table is what its number of commits says.
#[test]
#[ignore = "is run by the test below"]
fn soak_reads() {
    let Ok(path) = std::env::var("PLINTH_SOAK_TABLE") else { return };
    let (mut random, mut model) = (Random(7), Model::new());
    loop {
        let table = match Table::open_read_only(&path, options()) {
            Ok(table) => table,
            Err(error) => return println!("failed {error}"),
        };
        let found = match scan(&table) {
            Ok(found) => found,
            Err(error) => return println!("failed {error}"),
        };
        let (before, now) = (counter(&model), counter(&found));
        if now < before {
            return println!("failed {now} commits after {before}");
        }
        (before + 1..=now).for_each(|number| apply(&mut model, number));
        if found != model {
            return println!("failed: another answer after {now} commits");
        }
        super::indexes::check(&table.snapshot(), &found, &mut random);
        println!("done {now}");
    }
}

/// What all processes told.
#[derive(Default)]
struct Told {
    /// The last commit that was acknowledged.
    acknowledged: AtomicI64,
    commits: AtomicU64,
    reads: AtomicU64,
    failures: Mutex<Vec<String>>,
}

impl Told {
    /// Starts a process and listens to it until it ends.
    fn start<'s>(
        &'s self,
        scope: &'s std::thread::Scope<'s, '_>,
        path: &std::path::Path,
        test: &'static str,
        reads: bool,
    ) -> Child {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", &format!("soak::{test}"), "--nocapture"])
            .env("PLINTH_SOAK_TABLE", path)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        scope.spawn(move || {
            for line in BufReader::new(out).lines().map_while(|line| line.ok()) {
                if let Some(number) = line.strip_prefix("done ").and_then(|number| number.parse().ok()) {
                    if reads {
                        self.reads.fetch_add(1, Ordering::Relaxed);
                    } else {
                        self.acknowledged.fetch_max(number, Ordering::Relaxed);
                        self.commits.fetch_add(1, Ordering::Relaxed);
                    }
                } else if line.starts_with("failed") {
                    self.failures.lock().unwrap().push(format!("{test}: {line}"));
                }
            }
        });
        scope.spawn(move || {
            for line in BufReader::new(err).lines().map_while(|line| line.ok()) {
                if line.contains("panicked") || line.contains("assertion") {
                    self.failures.lock().unwrap().push(format!("{test}: {line}"));
                }
            }
        });
        child
    }
}

#[test]
fn processes_that_write_read_verify_and_are_killed_lose_nothing() {
    let seconds = trials("PLINTH_SOAK_SECONDS", 6);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    drop(Table::create(&path, &schema(), &["id"], options()).unwrap());
    let (told, ends) = (Told::default(), AtomicBool::new(false));
    let (mut kills, mut random) = (0, Random(seconds));
    let verified = std::thread::scope(|scope| {
        let (told, ends, path) = (&told, &ends, &path);
        let mut writers: Vec<Child> = (0..2).map(|_| told.start(scope, path, "soak_writes", false)).collect();
        let mut readers: Vec<Child> = (0..2).map(|_| told.start(scope, path, "soak_reads", true)).collect();
        let verifier = scope.spawn(move || {
            let mut times = 0;
            while !ends.load(Ordering::Relaxed) {
                let problems = Table::verify(path, 1, &options()).unwrap().problems;
                assert!(problems.is_empty(), "{problems:?}");
                times += 1;
                std::thread::sleep(Duration::from_millis(200));
            }
            times
        });
        let end = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < end && told.failures.lock().unwrap().is_empty() {
            std::thread::sleep(Duration::from_millis(50 + random.below(1_500)));
            let (all, test, reads) = if random.below(4) > 0 {
                (&mut writers, "soak_writes", false)
            } else {
                (&mut readers, "soak_reads", true)
            };
            let child = &mut all[usize::try_from(random.below(2)).unwrap()];
            child.kill().unwrap();
            child.wait().unwrap();
            *child = told.start(scope, path, test, reads);
            kills += 1;
        }
        ends.store(true, Ordering::Relaxed);
        for child in writers.iter_mut().chain(&mut readers) {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        verifier.join().unwrap()
    });
    let failures = told.failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{failures:?}");
    let table = Table::open(&path, options()).unwrap();
    let found = scan(&table).unwrap();
    let (commits, acknowledged) = (counter(&found), told.acknowledged.into_inner());
    // Of each process that was killed one commit may be there that it did not come to tell of.
    assert!(acknowledged <= commits, "{acknowledged} were acknowledged, {commits} are there");
    let mut model = Model::new();
    (1..=commits).for_each(|number| apply(&mut model, number));
    assert!(
        found == model,
        "{} rows after {commits} commits, not the {} that there should be",
        found.len(),
        model.len()
    );
    super::indexes::check(&table.snapshot(), &found, &mut Random(1));
    table.close().unwrap();
    let whole = Table::verify(&path, 1, &options()).unwrap();
    assert!(whole.problems.is_empty() && whole.rows == model.len() as u64, "{:?}", whole.problems);
    println!(
        "{seconds} s: {commits} commits ({} told of), {kills} kills, {} reads, {verified} times verified; {} rows, {} segments, {} trees",
        told.commits.into_inner(),
        told.reads.into_inner(),
        whole.rows,
        whole.segments,
        whole.trees
    );
    assert!(commits > 20 && told_enough(commits, acknowledged), "{commits} {acknowledged}");
}

/// All but the last commit of each writer that was killed were told of.
fn told_enough(commits: i64, acknowledged: i64) -> bool {
    commits - acknowledged <= 1
}
