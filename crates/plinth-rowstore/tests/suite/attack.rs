//! Damaged files of a table, of each kind and in each way, at random: the right answer, or an error that names the file.
//!
//! `PLINTH_ATTACKS` says how many attacks to try; they follow from their number.
//!
//! ```text
//! PLINTH_ATTACKS=100000 cargo test --release -p plinth-rowstore --test suite attack -- --nocapture
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::model::step;
use super::*;

/// Attacks to try, unless the environment says how many.
pub(crate) fn attacks(default: usize) -> usize {
    usize::try_from(trials("PLINTH_ATTACKS", default as u64)).unwrap()
}

/// A table with all kinds of files, and how it came to be.
pub(crate) struct Sample {
    /// The disk, which has kept each moment.
    pub(crate) disk: SimDisk,
    pub(crate) options: TableOptions,
    /// What the table held, one after the other.
    pub(crate) states: Vec<Model>,
    /// Whether it was closed; else its process was killed.
    pub(crate) closed: bool,
}

impl Sample {
    /// With filters or trees of keys, with a key or numbers, closed or not.
    pub(crate) fn new(seed: u64) -> Self {
        let (disk, storage) = disk(seed);
        let filter_bytes = if seed.is_multiple_of(2) { small().filter_bytes } else { 0 };
        let options = TableOptions { filter_bytes, ..small() };
        let numbered = seed % 4 == 3;
        let key: &[&str] = if numbered { &[] } else { &["id"] };
        let mut table = Table::create_in(&storage, &schema(), key, options.clone()).unwrap();
        disk.watch();
        let (mut random, mut states) = (Random(seed), vec![Model::new()]);
        let mut model: Model = (-20..150).map(|id| (id, (Some(id * 3), format!("text {}", id % 7)))).collect();
        table.import([Ok(batch(&model))]).unwrap();
        states.push(model.clone());
        table.create_index("by_t", &["t"], false).unwrap();
        table.create_index("by_n_t", &["n", "t"], false).unwrap();
        for i in 0..24_i64 {
            if numbered {
                let new: Model = (0..3).map(|j| (1000 + i * 3 + j, (Some(i), format!("row {i}")))).collect();
                table.insert(&batch(&new)).unwrap();
                model.extend(new);
            } else {
                step(&table, &mut model, &mut random).unwrap();
            }
            states.push(model.clone());
            match i {
                5 | 11 => table.merge().unwrap(),
                8 | 16 => {
                    table.close().unwrap();
                    table = Table::open_in(&storage, options.clone()).unwrap();
                }
                _ => {}
            }
        }
        let closed = !seed.is_multiple_of(3);
        if closed {
            table.close().unwrap()
        } else {
            std::mem::forget(table)
        }
        Self { disk, options, states, closed }
    }

    pub(crate) fn now(&self) -> &Model {
        self.states.last().unwrap()
    }
}

/// Reads all there is, each way there is, and then writes.
fn read(disk: &SimDisk, sample: &Sample, random: &mut Random) -> Result<Model> {
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    let table = Table::open_in(&storage, sample.options.clone())?;
    let model = scan(&table)?;
    let snapshot = table.snapshot();
    if !table.key().is_empty() {
        assert_eq!(rows([Ok(table.multi_get(&keys(-25..200))?.rows)])?, model);
        for id in [-20, 3, 149] {
            assert_eq!(table.get(id)?.is_some(), model.contains_key(&id));
        }
    }
    assert_eq!(rows([Ok(snapshot.find_range("by_t", ..)?)])?, model);
    let text = format!("text {}", random.below(8));
    let found = rows([Ok(snapshot.find("by_t", text.as_str())?)])?;
    assert!(model.iter().filter(|(_, row)| row.1 == text).eq(&found));
    let with_n = rows([Ok(snapshot.find_range("by_n_t", ..)?)])?;
    assert!(model.iter().filter(|(_, row)| row.0.is_some()).eq(&with_n));
    Ok(model)
}

/// One way to damage a file; false if this file can't be damaged so.
fn damage(disk: &SimDisk, sample: &Sample, name: &str, kind: u64, random: &mut Random) -> bool {
    let below = |random: &mut Random, n: usize| usize::try_from(random.below(n as u64)).unwrap();
    let mut bytes = bytes_of(&sample.disk, name);
    let len = bytes.len();
    match kind {
        0 => return Storage::remove(disk, name).is_ok(),
        1 => {
            // The ends of pages, and where things begin.
            let edges = [0, 1, len / 2, len.saturating_sub(1), below(random, len + 1) / 4096 * 4096];
            let to = if random.below(2) == 0 { below(random, len + 1) } else { edges[below(random, edges.len())] };
            bytes.truncate(to);
        }
        2 => {
            let more = 1 + below(random, 9000);
            let of = if random.below(2) == 0 { 0 } else { 0xa7 };
            bytes.resize(len + more, of);
        }
        _ if len == 0 => return false,
        3 | 4 => {
            // Where something stands, most of the time.
            let at = (0..20).map(|_| below(random, len)).find(|&at| bytes[at] != 0).unwrap_or(0);
            bytes[at] ^= 1 << random.below(8);
        }
        5 | 6 => {
            let size = [512, 4096][below(random, 2)];
            let at = below(random, len) / size * size;
            let end = (at + size).min(len);
            bytes[at..end].fill(if kind == 5 { 0 } else { (random.below(255) + 1) as u8 });
        }
        7 => {
            let pages = len / 4096;
            if pages < 2 {
                return false;
            }
            let (a, b) = (below(random, pages) * 4096, below(random, pages) * 4096);
            let page = bytes[a..a + 4096].to_vec();
            bytes.copy_within(b..b + 4096, a);
            bytes[b..b + 4096].copy_from_slice(&page);
        }
        8 => {
            let names = Storage::list(&sample.disk).unwrap();
            let kind = |name: &str| name.split('-').next().unwrap_or_default().to_owned();
            let same: Vec<&String> = names.iter().filter(|other| kind(other) == kind(name) && *other != name).collect();
            let Some(other) = same.get(below(random, same.len())) else { return false };
            put(disk, name, &bytes_of(&sample.disk, other));
            put(disk, other, &bytes);
            return true;
        }
        _ => {
            let then = sample.disk.moment(below(random, sample.disk.moments()), 1).unwrap();
            if !Storage::list(&then).unwrap().iter().any(|there| there == name) {
                return false;
            }
            bytes = bytes_of(&then, name);
        }
    }
    put(disk, name, &bytes);
    true
}

/// Whether a message names a file, or one that says what it should be.
fn names(message: &str, name: &str) -> bool {
    let kind = name.split('-').next().unwrap_or_default();
    match kind {
        "_manifest" => ["_manifest", "_version-", "_log-"].iter().any(|name| message.contains(name)),
        _ => message.contains(kind),
    }
}

#[test]
fn damage_of_any_kind_to_any_file_gives_the_right_answer_or_an_error_that_names_it() {
    let samples: Vec<Sample> = (0..12).map(Sample::new).collect();
    let attacks = attacks(1_500);
    let (mut right, mut errors, mut earlier) = (0, 0, 0);
    for attack in 0..attacks {
        let mut random = Random(attack as u64 * 7919);
        random.below(2);
        let sample = &samples[attack % samples.len()];
        let files = Storage::list(&sample.disk).unwrap();
        let name = &files[usize::try_from(random.below(files.len() as u64)).unwrap()];
        let kind = random.below(10);
        let damaged = sample.disk.copy(attack as u64);
        if !damage(&damaged, sample, name, kind, &mut random) {
            continue;
        }
        let at = format!("attack {attack}: {name} by {kind}");
        let verified = (attack % 3 == 0).then(|| {
            let storage: Arc<dyn Storage> = Arc::new(damaged.clone());
            Table::verify_in(&storage, &sample.options)
        });
        let found = catch_unwind(AssertUnwindSafe(|| read(&damaged, sample, &mut random)));
        let found = found.unwrap_or_else(|_| panic!("{at}"));
        match &found {
            Ok(found) if found == sample.now() => right += 1,
            Ok(found) => {
                // A killed process has told the manifest nothing of the newest file but its name.
                assert!(!sample.closed && *name == newest_log(&sample.disk), "{at}: another answer");
                assert!(sample.states.contains(found), "{at}: no answer that there ever was");
                earlier += 1;
            }
            Err(error) => {
                assert!(names(&error.to_string(), name), "{at}: {error}");
                errors += 1;
            }
        }
        match verified {
            // Without a manifest there is no table.
            Some(Err(error)) => assert!(names(&error.to_string(), name), "{at}: {error}"),
            Some(Ok(verified)) => {
                let problems = &verified.problems;
                assert!(problems.iter().all(|problem| names(&problem.to_string(), name)), "{at}: {problems:?}");
                assert!(found.is_ok() || !problems.is_empty(), "{at}: verify finds nothing, reading {found:?}");
            }
            None => {}
        }
    }
    println!("{attacks} attacks: {right} right, {errors} errors, {earlier} as it was earlier");
    assert!(right > attacks / 20 && errors > attacks / 4, "{right} {errors}");
}
