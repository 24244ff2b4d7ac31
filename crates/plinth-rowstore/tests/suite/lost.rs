//! Files of the log, and the manifest, that are gone or were put back as they were earlier: noticed, or without effect.

use super::model::step;
use super::*;

/// A table while it was written: the disk, which has kept each moment, and what the table held one after the other.
struct Written {
    disk: SimDisk,
    states: Vec<Model>,
}

fn written(seed: u64, closed: bool) -> Written {
    let (disk, storage) = disk(seed);
    let mut table = Table::create_in(&storage, &schema(), &["id"], small()).unwrap();
    disk.watch();
    let (mut random, mut model) = (Random(seed), Model::new());
    let mut states = vec![model.clone()];
    for _ in 0..20 {
        step(&table, &mut model, &mut random).unwrap();
        states.push(model.clone());
        if random.below(6) == 0 {
            if random.below(2) == 0 {
                table.close().unwrap()
            } else {
                std::mem::forget(table)
            }
            table = Table::open_in(&storage, small()).unwrap();
        }
    }
    table.upsert(&one(1, 1)).unwrap();
    model.insert(1, (Some(1), "row 1 of 1".into()));
    states.push(model);
    if closed {
        table.close().unwrap()
    } else {
        std::mem::forget(table)
    }
    Written { disk, states }
}

fn read(disk: &SimDisk) -> Result<Model> {
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    scan(&Table::open_in(&storage, small())?)
}

fn logs(disk: &SimDisk) -> Vec<String> {
    Storage::list(disk).unwrap().into_iter().filter(|name| name.starts_with("_log-")).collect()
}

#[test]
fn a_log_file_that_is_gone_is_an_error_that_names_it() {
    for seed in 0..40 {
        let Written { disk, states } = written(seed, seed % 2 == 0);
        assert_eq!(read(&disk.copy(0)).unwrap(), *states.last().unwrap());
        let logs = logs(&disk);
        for from in 0..logs.len() {
            for to in from + 1..=logs.len() {
                let gone = disk.copy(1);
                logs[from..to].iter().for_each(|name| Storage::remove(&gone, name).unwrap());
                let error = read(&gone).unwrap_err().to_string();
                assert!(error.starts_with(&format!("{}: is missing, but ", logs[from])), "seed {seed}: {error}");
                let storage: Arc<dyn Storage> = Arc::new(gone);
                let problems = Table::verify_in(&storage, &small()).unwrap().problems;
                assert!(problems.iter().any(|problem| problem.to_string().contains(&logs[from])), "{problems:?}");
            }
        }
    }
}

#[test]
fn commits_cut_off_a_table_that_was_closed_are_missed() {
    let mut noticed = 0;
    for seed in 0..30 {
        let Written { disk, states } = written(seed, true);
        for name in logs(&disk) {
            let len = bytes_of(&disk, &name).len();
            for to in (0..len).step_by(4096).chain([1, len / 2, len - len.min(1)]) {
                let cut = disk.copy(1);
                cut.set_len(&name, to).unwrap();
                match read(&cut) {
                    Ok(found) => assert_eq!(found, *states.last().unwrap(), "seed {seed}: {name} of {to}"),
                    Err(error) => {
                        noticed += 1;
                        assert!(error.to_string().contains("_log-"), "{error}");
                    }
                }
            }
        }
    }
    assert!(noticed > 100, "{noticed}");
}

/// Puts a file back as it was at each moment, one after the other.
fn put_back(disk: &SimDisk, name: &str, mut check: impl FnMut(&SimDisk)) {
    let mut last: Option<Vec<u8>> = None;
    for moment in 0..disk.moments() {
        let then = disk.moment(moment, 1).unwrap();
        if !Storage::list(&then).unwrap().iter().any(|there| there == name) {
            continue;
        }
        let bytes = bytes_of(&then, name);
        if last.as_ref() != Some(&bytes) {
            let back = disk.copy(1);
            put(&back, name, &bytes);
            check(&back);
            last = Some(bytes);
        }
    }
}

#[test]
fn a_log_as_it_was_earlier_is_noticed_but_for_what_only_it_knew() {
    let (mut noticed, mut earlier) = (0, 0);
    for seed in 0..30 {
        for closed in [true, false] {
            let Written { disk, states } = written(seed, closed);
            let (now, logs) = (states.last().unwrap(), logs(&disk));
            for name in &logs {
                put_back(&disk, name, |back| match read(back) {
                    Err(error) => {
                        noticed += 1;
                        assert!(error.to_string().contains("_log-"), "{error}");
                    }
                    Ok(found) if closed || Some(name) != logs.last() => assert_eq!(found, *now, "seed {seed}: {name}"),
                    // Who was killed has told the manifest nothing of the last file but its name.
                    Ok(found) => {
                        earlier += 1;
                        assert!(states.contains(&found), "seed {seed}: {name}");
                    }
                });
            }
        }
    }
    assert!(noticed > 100 && earlier > 100, "{noticed} {earlier}");
}

#[test]
fn a_manifest_as_it_was_earlier_is_noticed_or_changes_nothing() {
    let (mut noticed, mut right) = (0, 0);
    for seed in 0..30 {
        let Written { disk, states } = written(seed, seed % 2 == 0);
        let mut check = |back: &SimDisk| match read(back) {
            Err(error) => {
                noticed += 1;
                let error = error.to_string();
                assert!(
                    ["_manifest", "_version-", "_log-", "_segment-"].iter().any(|name| error.contains(name)),
                    "{error}"
                );
            }
            Ok(found) => {
                right += 1;
                assert_eq!(found, *states.last().unwrap(), "seed {seed}");
            }
        };
        put_back(&disk, "_manifest", &mut check);
        // And with the version that it named.
        for moment in 0..disk.moments() {
            let (then, back) = (disk.moment(moment, 1).unwrap(), disk.copy(1));
            for name in Storage::list(&then).unwrap() {
                if name == "_manifest" || name.starts_with("_version-") {
                    put(&back, &name, &bytes_of(&then, &name));
                }
            }
            check(&back);
        }
    }
    assert!(noticed > 100 && right > 100, "{noticed} {right}");
}

#[test]
fn opening_and_merging_write_both_slots_before_a_frame_is_written() {
    let (disk, storage) = disk(1);
    let table = Table::create_in(&storage, &schema(), &["id"], small()).unwrap();
    let known = |half: usize| {
        let slot = &bytes_of(&disk, "_manifest")[half * 4096..][..4096];
        let field = |at: usize| u64::from_le_bytes(slot[at..at + 8].try_into().unwrap());
        (field(44), field(52), field(68))
    };
    assert_eq!([known(0), known(1)], [(2, 1, 1); 2]);
    table.insert(&one(1, 1)).unwrap();
    assert_eq!([known(0), known(1)], [(2, 1, 1); 2], "a commit writes to the log alone");
    table.merge().unwrap();
    assert_eq!([known(0), known(1)], [(3, 2, 2); 2]);
    table.insert(&one(2, 1)).unwrap();
    table.insert(&one(3, 1)).unwrap();
    table.close().unwrap();
    assert_eq!([known(0), known(1)], [(3, 2, 4); 2]);
    drop(Table::open_in(&storage, small()).unwrap());
    assert_eq!([known(0), known(1)], [(4, 4, 4); 2]);
}
