//! Folders of files, damaged: each kind of file there is (rows, the journal of a compaction, locks), in each way, at random. The
//! answer is that of the files as they are, or an error that names one.
//!
//! What nothing but a file's name says of it can't be missed: rows go with a file that is removed, and come in the order of names.

use std::collections::BTreeMap;
use std::path::Path;

use plinth_core::random::{Random, trials};
use plinth_core::wire::checksum;
use plinth_format::Result;
use plinth_io::sim::FullFolder;
use plinth_table::{Appender, CompactOptions, TableFolder, compact};

use crate::data::{append, numbers, options};

type Files = BTreeMap<String, Vec<u8>>;

fn load(folder: &Path) -> Files {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())).collect()
}

fn store(folder: &Path, files: &Files) {
    for name in load(folder).keys() {
        std::fs::remove_file(folder.join(name)).unwrap();
    }
    files.iter().for_each(|(name, bytes)| std::fs::write(folder.join(name), bytes).unwrap());
}

/// The rows of a folder, by the files they are in.
fn read(folder: &Path) -> Result<Vec<i64>> {
    use arrow_array::cast::AsArray;
    let mut found = Vec::new();
    for file in TableFolder::new(folder).open(None)?.files() {
        for batch in file.file.scan().batches()? {
            found.extend_from_slice(batch?.column(0).as_primitive::<arrow_array::types::Int64Type>().values());
        }
    }
    Ok(found)
}

/// A journal as a compaction writes it.
fn journal(names: &[&str]) -> Vec<u8> {
    let mut text: String = ["plinth compaction 2"].iter().chain(names).map(|line| format!("{line}\n")).collect();
    text.push_str(&format!("checksum {:016x}\n", checksum(text.as_bytes())));
    text.into_bytes()
}

/// A folder of which a compaction has been killed when its new file was in place, but nothing was removed; and what its rows
/// are, file by file.
fn killed(folder: &Path) -> (Files, BTreeMap<String, Vec<i64>>) {
    let mut rows = BTreeMap::new();
    for part in 0..3 {
        append(folder, &numbers(part * 100..part * 100 + 40)).unwrap();
    }
    let before = load(folder);
    compact(folder, &CompactOptions { writer: options(), ..CompactOptions::default() }, &mut |_| {}).unwrap();
    append(folder, &numbers(1000..1030)).unwrap();
    append(folder, &numbers(2000..2030)).unwrap();
    let mut files = load(folder);
    rows.insert("000001-000003.plinth".to_owned(), (0..3).flat_map(|part| part * 100..part * 100 + 40).collect());
    rows.insert("000004.plinth".to_owned(), (1000..1030).collect());
    rows.insert("000005.plinth".to_owned(), (2000..2030).collect());
    let replaced = ["000001.plinth", "000002.plinth", "000003.plinth"];
    files.extend(before.into_iter().filter(|(name, _)| replaced.contains(&name.as_str())));
    let lines = ["000001-000003.plinth", replaced[0], replaced[1], replaced[2]];
    files.insert(".plinth-compact".to_owned(), journal(&lines));
    (files, rows)
}

#[test]
fn damage_of_any_kind_to_a_folder_gives_the_right_answer_or_an_error_that_names_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let (files, rows) = killed(dir.path());
    store(dir.path(), &files);
    let all: Vec<i64> = rows.values().flatten().copied().collect();
    assert_eq!(read(dir.path()).unwrap(), all, "the journal is as a compaction writes it");
    let names: Vec<&String> = files.keys().collect();
    let attacks = trials("PLINTH_ATTACKS", 1_500);
    let (mut right, mut errors) = (0, 0);
    for attack in 0..attacks {
        let mut random = Random(attack * 7_368_787);
        let mut below = |n: usize| random.index(n);
        let name = names[below(names.len())];
        let mut damaged = files.clone();
        let bytes = damaged.get_mut(name).unwrap();
        let (len, kind) = (bytes.len(), below(7));
        let mut expected = rows.clone();
        match kind {
            0 => {
                // Without the journal the replaced files would count again: that only names can tell.
                if name == ".plinth-compact" || name == "000001-000003.plinth" {
                    continue;
                }
                damaged.remove(name);
                expected.remove(name);
            }
            1 => bytes.truncate(below(len + 1)),
            2 => bytes.resize(len + 1 + below(5000), if below(2) == 0 { 0 } else { b'\n' }),
            _ if len == 0 => continue,
            3 | 4 => bytes[below(len)] ^= 1 << below(8),
            5 => {
                let at = below(len) / 4096 * 4096;
                let end = (at + 4096).min(len);
                bytes[at..end].fill(0);
            }
            _ => {
                let other = names[below(names.len())].clone();
                if [name, &other].iter().any(|name| !rows.contains_key(*name)) {
                    continue;
                }
                let (a, b) = (files[name].clone(), files[&other].clone());
                damaged.extend([(name.clone(), b), (other.clone(), a)]);
                let (a, b) = (rows[name].clone(), rows[&other].clone());
                expected.extend([(name.clone(), b), (other, a)]);
            }
        }
        store(dir.path(), &damaged);
        let expected: Vec<i64> = expected.into_values().flatten().collect();
        let mut check = |found: Result<Vec<i64>>, doing: &str| match found {
            Ok(found) => {
                assert_eq!(found, expected, "attack {attack}: {name} by {kind}, {doing}");
                right += 1;
            }
            Err(error) => {
                errors += 1;
                assert!(error.to_string().contains(name.as_str()), "attack {attack}: {name} by {kind}: {error}");
            }
        };
        let before = read(dir.path());
        let refused = before.is_err();
        check(before, "reading");
        // And adding rows, which finishes the compaction.
        let added = append(dir.path(), &numbers([])).and_then(|_| read(dir.path()));
        assert!(
            added.is_err() || !refused || kind < 3,
            "attack {attack}: {name} by {kind}: rows are added to what can't be read"
        );
        check(added, "adding");
    }
    println!("{attacks} attacks: {right} right, {errors} errors");
    assert!(right > attacks / 10 && errors > attacks / 10, "{right} {errors}");
}

#[test]
fn a_full_device_leaves_a_folder_as_it_was_and_then_it_goes_on() {
    let (mut failed, mut write) = (0, 0);
    let dir = tempfile::tempdir().unwrap();
    for part in 0..3 {
        append(dir.path(), &numbers(part * 100..part * 100 + 40)).unwrap();
    }
    let files = load(dir.path());
    let all = read(dir.path()).unwrap();
    loop {
        store(dir.path(), &files);
        let full = FullFolder::at(dir.path(), write);
        let more = numbers(500..540);
        let add = || {
            let mut appender = Appender::create(dir.path(), &more.schema(), options())?;
            appender.write(&more)?;
            appender.finish()
        };
        let added = add();
        let compacted =
            compact(dir.path(), &CompactOptions { writer: options(), ..CompactOptions::default() }, &mut |_| {});
        let was_full = full.was_full();
        drop(full);
        let expected: Vec<i64> =
            if added.is_ok() { all.iter().copied().chain(500..540).collect() } else { all.clone() };
        assert_eq!(read(dir.path()).unwrap(), expected, "write {write}");
        assert_eq!(was_full, added.is_err() || compacted.is_err(), "write {write}: what fails says so");
        for error in [added.err(), compacted.err()].into_iter().flatten() {
            assert!(error.to_string().contains("no storage space"), "{error}");
            failed += 1;
        }
        let left: Vec<String> = load(dir.path()).into_keys().filter(|name| name.ends_with(".plinth-tmp")).collect();
        assert!(left.is_empty(), "write {write}: {left:?}");
        // With space again all is done.
        append(dir.path(), &numbers([7])).unwrap();
        compact(dir.path(), &CompactOptions { writer: options(), all: true, ..CompactOptions::default() }, &mut |_| {})
            .unwrap();
        let expected: Vec<i64> = expected.into_iter().chain([7]).collect();
        assert_eq!(read(dir.path()).unwrap(), expected, "write {write}");
        if !was_full {
            break;
        }
        write += 1;
    }
    println!("{failed} of {write} writes failed");
    assert!(failed > 4, "{failed}");
}
