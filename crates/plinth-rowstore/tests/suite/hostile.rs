//! A hostile writer: files of a table with other contents and right checksums. Anything may fail; nothing may panic, hang, or take
//! memory that the files did not earn.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::attack::{Sample, attacks};
use super::layout::{Forged, forged_tree, keys_name, segment_name};
use super::*;
use crate::{counting, forge};

/// Bytes that reading a forged table of some kilobytes may take at once, on the thread that reads.
const MOST: i64 = 256 << 20;

/// Numbers on which checks turn.
const EDGES: [u64; 16] = [
    0,
    1,
    2,
    63,
    255,
    8191,
    8192,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 2,
    (1 << 32) - 1,
    1 << 32,
    (1 << 62) - 1,
    1 << 62,
    1 << 63,
    u64::MAX,
];

fn below(random: &mut Random, n: usize) -> usize {
    usize::try_from(random.below(n as u64)).unwrap()
}

fn number(random: &mut Random, now: u64) -> u64 {
    match random.below(4) {
        0 => now.wrapping_add(1),
        1 => now.wrapping_sub(1),
        _ => EDGES[below(random, EDGES.len())],
    }
}

fn change(bytes: &mut Vec<u8>, random: &mut Random) {
    let mut numbers = || random.below(1 << 31) << 33 ^ random.below(1 << 31) << 10 ^ random.below(1 << 10);
    if numbers() % 4 == 0 {
        forge::resize(bytes, &mut numbers);
    }
    forge::change(bytes, &mut numbers);
}

/// Changes what a version says.
fn change_version(forged: &mut Forged, random: &mut Random) {
    let segments = forged.segments.len();
    let (segment, of) = (below(random, segments), below(random, 4));
    match random.below(14) {
        0 => forged.columns = random_bytes(forged.columns.clone(), random),
        1 => {
            let at = below(random, forged.key.len());
            forged.key[at] = number(random, forged.key[at]);
        }
        2 => forged.key.push(random.below(4)),
        3 => forged.key.clear(),
        4 => forged.numbered ^= 1 + (random.below(2) as u8),
        5..=7 => {
            let at = below(random, 5);
            forged.next[at] = number(random, forged.next[at]);
        }
        _ if segments == 0 => {}
        8 => forged.segments[segment].numbers[of] = number(random, forged.segments[segment].numbers[of]),
        9 => forged.segments[segment].deletes = (0..random.below(200)).map(|_| number(random, 0)).collect(),
        10 => {
            // As many bits as bytes can ask for.
            forged.segments[segment].numbers[1] = (1 << 32) - 2;
            forged.segments[segment].deletes = vec![8191; 100_000];
        }
        11 => {
            let twice = forged.segments[segment].clone();
            forged.segments.push(twice);
        }
        12 => forged.segments.reverse(),
        _ => {
            let Some(index) = forged.indexes.first_mut() else { return };
            match random.below(5) {
                0 => index.number = number(random, index.number),
                1 => index.name = random_bytes(index.name.clone(), random),
                2 => index.unique ^= 1,
                3 => index.columns.clear(),
                _ => index.columns.push(number(random, 1)),
            }
        }
    }
}

fn random_bytes(mut bytes: Vec<u8>, random: &mut Random) -> Vec<u8> {
    change(&mut bytes, random);
    bytes
}

/// A table with something changed, and all checksums right.
fn forge_one(sample: &Sample, disk: &SimDisk, random: &mut Random) {
    let whole = Forged::new(&sample.disk);
    let mut forged = whole.clone();
    let mut header: Option<(usize, usize, u64)> = None;
    let (mut raw, mut slot) = (false, None);
    for _ in 0..1 + random.below(2) {
        let segment = below(random, forged.segments.len());
        match random.below(10) {
            0 | 1 => change_version(&mut forged, random),
            2 => raw = true,
            3 => slot = Some((below(random, 10), EDGES[below(random, EDGES.len())])),
            4 | 5 => {
                let frames = forged.logs.iter_mut().flatten().count();
                if let Some(payload) = forged.logs.iter_mut().flatten().nth(below(random, frames)) {
                    change(payload, random);
                }
            }
            6 => {
                let frames = forged.logs.iter().flatten().count();
                header = Some((below(random, frames), below(random, 4), EDGES[below(random, EDGES.len())]));
            }
            7 if !forged.segments.is_empty() => {
                let number = forged.segments[segment].numbers[0];
                if !whole.segments.iter().any(|entry| entry.numbers[0] == number) {
                    continue;
                }
                let mut keys = bytes_of(disk, &keys_name(number));
                change(&mut keys, random);
                forged.set_keys(disk, segment, &keys);
            }
            8 if !forged.segments.is_empty() => {
                let number = forged.segments[segment].numbers[0];
                // As it was before the version said something else of it.
                let Some(entry) = whole.segments.iter().find(|entry| entry.numbers[0] == number) else { continue };
                let bytes = bytes_of(&sample.disk, &segment_name(number));
                let streams = if whole.numbered == 1 { 4 } else { 3 };
                // All rows are one group: it is as large as a vector at least.
                let rows = vec![entry.numbers[1]];
                let file = forge::Forged::new(&bytes, streams);
                let of = forge::Sample { file, rows, block_rows: 16, one_value_a_row: vec![true; streams] };
                let mut numbers = || random.below(1 << 31) << 33 ^ random.below(1 << 31) << 10 ^ random.below(1 << 10);
                forged.set_rows(disk, segment, &of.mutated(&mut numbers));
                // Else the trees are of other rows, and are built again.
                let trees = Storage::list(disk).unwrap().into_iter().filter(|name| name.starts_with("_index-"));
                trees.for_each(|name| Storage::remove(disk, &name).unwrap());
            }
            _ => {
                let trees: Vec<String> =
                    Storage::list(disk).unwrap().into_iter().filter(|name| name.starts_with("_index-")).collect();
                let Some(name) = trees.get(below(random, trees.len())) else { continue };
                let tree = forged_tree(&bytes_of(disk, name), |page| {
                    let mut bytes = page.to_vec();
                    let mut numbers =
                        || random.below(1 << 31) << 33 ^ random.below(1 << 31) << 10 ^ random.below(1 << 10);
                    forge::change(&mut bytes, &mut numbers);
                    page.copy_from_slice(&bytes);
                });
                tree.into_iter().for_each(|tree| put(disk, name, &tree));
            }
        }
    }
    forged.write_logs(disk, |frame, fields| {
        if let Some((at, field, value)) = header.filter(|header| header.0 == frame) {
            let _ = at;
            fields[field] = value;
        }
    });
    let mut version = forged.version();
    if raw {
        change(&mut version, random);
    }
    forged.write_version(disk, &version);
    if let Some((at, value)) = slot {
        forged.slot[at] = value;
    }
    forged.write_slots(disk);
}

/// Does all that can be done with a table; anything may fail.
fn exercise(disk: &SimDisk, options: &TableOptions) -> Result<()> {
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    let _ = Table::verify_in(&storage, options);
    let table = Table::open_in(&storage, options.clone())?;
    let snapshot = table.snapshot();
    let mut result = snapshot.scan()?.try_for_each(|batch| batch.map(drop));
    let _ = snapshot.scan_numbered().map(|mut scan| scan.try_for_each(|batch| batch.map(drop)));
    result = result.and(table.multi_get(&keys(-25..200)).map(drop));
    for index in snapshot.indexes() {
        result = result.and(snapshot.find_range(&index.name, ..).map(drop));
        let _ = snapshot.find(&index.name, "text 3").map(drop);
        let _ = snapshot.find(&index.name, 12).map(drop);
    }
    drop(snapshot);
    result = result.and(table.upsert(&one(3, 3)).map(drop));
    result = result.and(table.delete(&keys([5])).map(drop));
    result = result.and(table.merge()).and(table.create_index("another", &["t", "n"], false));
    result.and(table.vacuum()).and(table.close())
}

#[test]
fn a_table_taken_apart_and_put_together_is_the_same() {
    for seed in 0..8 {
        let sample = Sample::new(seed);
        let disk = sample.disk.copy(1);
        let mut forged = Forged::new(&disk);
        forged.write_logs(&disk, |_, _| {});
        let version = forged.version();
        forged.write_version(&disk, &version);
        forged.write_slots(&disk);
        for name in Storage::list(&disk).unwrap().into_iter().filter(|name| name.starts_with("_index-")) {
            let tree = bytes_of(&disk, &name);
            assert_eq!(forged_tree(&tree, |_| {}).unwrap(), tree);
        }
        let storage: Arc<dyn Storage> = Arc::new(disk);
        let table = Table::open_in(&storage, sample.options.clone()).unwrap();
        assert_eq!(scan(&table).unwrap(), *sample.now());
    }
}

#[test]
fn forged_tables_are_read_or_refused() {
    let samples: Vec<Sample> = (0..8).map(Sample::new).collect();
    let attacks = attacks(1_000);
    let (mut refused, mut done, mut most, mut wrong) = (0, 0, 0, Vec::new());
    for attack in 0..attacks {
        let mut random = Random(attack as u64 * 104_729 + 1);
        random.below(2);
        let sample = &samples[attack % samples.len()];
        let disk = sample.disk.copy(attack as u64);
        forge_one(sample, &disk, &mut random);
        let mut taken = 0;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut outcome = Ok(());
            taken = counting::peak_of(|| outcome = exercise(&disk, &sample.options));
            outcome
        }));
        most = most.max(taken);
        match outcome {
            Ok(Ok(())) => done += 1,
            Ok(Err(error)) => {
                refused += 1;
                assert!(!error.to_string().is_empty());
            }
            Err(_) => wrong.push(format!("attack {attack}: a panic")),
        }
        if taken > MOST {
            wrong.push(format!("attack {attack}: {taken} bytes"));
        }
    }
    println!("{attacks} forged tables: {refused} refused, {done} read, {most} bytes at most");
    assert!(wrong.is_empty(), "{} of {attacks}: {:?}", wrong.len(), &wrong[..wrong.len().min(20)]);
    assert!(refused > attacks / 3 && done > attacks / 20, "{refused} {done}");
}
