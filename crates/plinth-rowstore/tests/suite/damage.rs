//! Damaged files: an error that names the file, or the right answer.

use super::*;
use plinth_io::Source;
use plinth_rowstore::Verified;

/// A table with segments, deletes in them, and a log, closed; and what it holds.
fn table(seed: u64) -> (SimDisk, Model) {
    let (disk, storage) = disk(seed);
    let table = Table::create_in(&storage, &schema(), &["id"], small()).unwrap();
    let (mut random, mut model) = (Random(seed), Model::new());
    let rows: Model = (-20..40).map(|id| (id, (Some(id * 3), format!("text {id}")))).collect();
    table.import([Ok(batch(&rows))]).unwrap();
    model.extend(rows);
    table.create_index("by_t", &["t"], false).unwrap();
    table.create_index("by_n", &["n"], false).unwrap();
    table.upsert(&one(39, 1)).unwrap();
    model.insert(39, (Some(1), "row 39 of 1".into()));
    table.merge().unwrap();
    for _ in 0..12 {
        super::model::step(&table, &mut model, &mut random).unwrap();
    }
    table.upsert(&one(3, 33)).unwrap();
    model.insert(3, (Some(33), "row 3 of 33".into()));
    table.close().unwrap();
    (disk, model)
}

/// Reads all there is, each way there is.
fn read(disk: &SimDisk) -> Result<Model> {
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    let table = Table::open_in(&storage, small())?;
    let model = scan(&table)?;
    let many = table.multi_get(&keys(-25..45))?;
    assert_eq!(rows([Ok(many.rows)])?, model);
    let snapshot = table.snapshot();
    assert_eq!(rows([Ok(snapshot.find_range("by_t", ..)?)])?, model);
    let with_n = rows([Ok(snapshot.find_range("by_n", ..)?)])?;
    assert!(model.iter().filter(|(_, row)| row.0.is_some()).eq(&with_n));
    Ok(model)
}

fn verify(disk: &SimDisk) -> Result<Verified> {
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    Table::verify_in(&storage, &small())
}

#[test]
fn a_whole_table_has_no_problems() {
    for seed in 0..10 {
        let (disk, model) = table(seed);
        let found = verify(&disk).unwrap();
        assert!(found.problems.is_empty(), "{:?}", found.problems);
        assert_eq!(found.rows, model.len() as u64);
        assert!(found.bytes > 0 && found.commits > 0);
    }
    let dir = tempfile::tempdir().unwrap();
    assert!(Table::verify(dir.path(), 1, &small()).is_err());
}

#[test]
fn a_flipped_byte_is_an_error_that_names_the_file_or_changes_nothing() {
    let (disk, model) = table(5);
    assert_eq!(read(&disk.copy(0)).unwrap(), model);
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    let (mut right, mut errors, mut noticed) = (0, 0, 0);
    for name in storage.list().unwrap() {
        let source = disk.open(&name).unwrap();
        let len = source.byte_len();
        // Every byte, but of what is zeros mostly only some.
        let bytes = source.read(std::slice::from_ref(&(0..len))).unwrap()[0].to_vec();
        for (at, &byte) in bytes.iter().enumerate() {
            if byte == 0 && at % 37 != 0 && name.starts_with("_log")
                || (name == "_manifest" && at % 4096 > 64 && at % 61 != 0)
                || (name.starts_with("_index") && at % 67 != 0)
            {
                continue;
            }
            let damaged = disk.copy(at as u64);
            damaged.write(&name, at, &[byte ^ (1 << (at % 8))]).unwrap();
            if at % 13 == 0 {
                let problems = verify(&damaged).unwrap().problems;
                let named = problems.iter().all(|problem| {
                    let message = problem.to_string();
                    message.contains(&name) || name == "_manifest" && message.contains("_version-")
                });
                assert!(named, "{name} at {at}: {problems:?}");
                // What comes after the last frame is nothing, nor is what aligns a segment's blocks.
                let empty = ["_log", "_segment", "_index"].iter().any(|kind| name.starts_with(kind));
                assert!(!problems.is_empty() || empty, "{name} at {at}");
                noticed += usize::from(!problems.is_empty() && name.starts_with("_segment"));
            }
            match read(&damaged) {
                Ok(found) => {
                    assert_eq!(found, model, "{name} at {at}");
                    right += 1;
                }
                Err(error) => {
                    let message = error.to_string();
                    let file = message.contains(&name) || name == "_manifest" && message.contains("_version-");
                    assert!(file, "{name} at {at}: {message}");
                    errors += 1;
                }
            }
        }
    }
    println!("{right} right, {errors} errors, {noticed} noticed in segments");
    assert!(noticed > 60, "{noticed}");
    assert!(right > 100 && errors > 1000, "{right} {errors}");
}

#[test]
fn files_that_are_cut_short_or_gone_are_named() {
    let (disk, model) = table(6);
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    for name in storage.list().unwrap() {
        let gone = disk.copy(1);
        Storage::remove(&gone, &name).unwrap();
        match read(&gone) {
            Ok(found) => assert!(found == model && name.starts_with("_index-"), "{name}"),
            Err(error) => assert!(error.to_string().contains(&name), "{name}: {error}"),
        }
        let len = usize::try_from(disk.open(&name).unwrap().byte_len()).unwrap();
        for to in [0, 1, len / 2, len.saturating_sub(1)] {
            let cut = disk.copy(1);
            cut.set_len(&name, to).unwrap();
            match read(&cut) {
                Ok(found) => assert_eq!(found, model, "{name} of {to}"),
                Err(error) => assert!(error.to_string().contains(&name), "{name} of {to}: {error}"),
            }
        }
    }
}

#[test]
fn either_slot_is_enough() {
    let (disk, model) = table(7);
    for slot in [0, 4096] {
        let damaged = disk.copy(1);
        damaged.write("_manifest", slot, &[0xee; 4096]).unwrap();
        assert_eq!(read(&damaged).unwrap(), model);
        // The next writer puts it right.
        damaged.write("_manifest", 4096 - slot, &[0xee; 4096]).unwrap();
        assert_eq!(read(&damaged).unwrap(), model);
    }
    let damaged = disk.copy(1);
    damaged.write("_manifest", 0, &[0xee; 8192]).unwrap();
    assert!(read(&damaged).unwrap_err().to_string().contains("_manifest: both slots are damaged"));
}

#[test]
fn a_hole_in_the_log_is_told_from_its_end() {
    let (disk, storage) = disk(1);
    let table = Table::create_in(&storage, &schema(), &["id"], small()).unwrap();
    for i in 0..5 {
        table.insert(&one(i, i)).unwrap();
    }
    drop(table);
    for frame in 0..5 {
        let damaged = disk.copy(1);
        damaged.write("_log-000002", frame * 4096 + 8, &[0xee; 2000]).unwrap();
        let error = read(&damaged).unwrap_err().to_string();
        let expected = format!("_log-000002: offset {}: the frame of commit {} is damaged", frame * 4096, frame + 1);
        assert!(error.starts_with(&expected), "{error}");
    }
}
