//! A full device: at each write that makes a file longer there is no space, and then there is some again. The table goes on
//! without being opened again; nothing that was acknowledged is lost, and of what failed nothing is there.

use super::model::step;
use super::*;
use plinth_rowstore::TableError;

/// Histories that differ, by their seed.
const HISTORIES: u64 = 11;

/// Writes that find the device full, from the first on.
const LASTING: [u64; 3] = [1, 3, 12];

/// What one history met: whether the device was ever full.
fn history(first: u64, lasting: u64, crash: bool) -> bool {
    let (disk, storage) = disk(first);
    disk.set_faults(Faults { at_once: 100, full: Some((first, first + lasting)), ..Faults::default() });
    let filter_bytes = if first.is_multiple_of(2) { 0 } else { small().filter_bytes };
    let options = TableOptions { filter_bytes, ..small() };
    let mut failed = 0;
    let mut again = |error: TableError, doing: &str| {
        let message = error.to_string();
        assert!(message.contains("no storage space"), "write {first}, {doing}: {message}");
        assert!(!matches!(error, TableError::Stopped { .. }), "write {first}, {doing}: {message}");
        failed += 1;
        assert!(failed <= lasting, "write {first}, {doing}: {message}");
    };
    let table = loop {
        match Table::create_in(&storage, &schema(), &["id"], options.clone()) {
            Ok(table) => break table,
            Err(error) if error.to_string().contains("there is a table already") => {
                break Table::open_in(&storage, options.clone()).unwrap();
            }
            Err(error) => again(error, "create"),
        }
    };
    let (mut random, mut model) = (Random(first % HISTORIES), Model::new());
    for i in 0..30 {
        if i % 6 == 2 {
            let (name, columns) = super::indexes::INDEXES[usize::try_from(random.below(4)).unwrap()];
            while !table.snapshot().indexes().iter().any(|index| index.name == name) {
                if let Err(error) = table.create_index(name, columns, false) {
                    again(error, "create an index");
                }
            }
        }
        loop {
            let (mut after, mut same) = (model.clone(), random.clone());
            match step(&table, &mut after, &mut same) {
                Ok(()) => {
                    (model, random) = (after, same);
                    break;
                }
                Err(error) => {
                    again(error, "a step");
                    assert_eq!(scan(&table).unwrap(), model, "write {first}: nothing of it is there");
                    super::indexes::check(&table.snapshot(), &model, &mut Random(first));
                    if crash {
                        let failed = disk.copy(first);
                        failed.crash();
                        let storage: Arc<dyn Storage> = Arc::new(failed);
                        assert_eq!(scan(&Table::open_in(&storage, options.clone()).unwrap()).unwrap(), model);
                    }
                }
            }
        }
    }
    let names = storage.list().unwrap();
    let count = |kind: &str| names.iter().filter(|name| name.starts_with(kind)).count();
    let segments = Table::verify_in(&storage, &options).unwrap().segments;
    assert_eq!((count("_segment-"), count("_keys-"), count("_version-")), (segments, segments, 1), "{names:?}");
    table.close().unwrap();
    let found = Table::verify_in(&storage, &options).unwrap();
    assert!(found.problems.is_empty() && found.rows == model.len() as u64, "write {first}: {:?}", found.problems);
    let table = Table::open_in(&storage, options).unwrap();
    assert_eq!(scan(&table).unwrap(), model);
    super::indexes::check(&table.snapshot(), &model, &mut Random(first));
    failed > 0
}

#[test]
fn a_table_goes_on_once_there_is_space_again() {
    for lasting in LASTING {
        let mut missed = 0;
        let mut first = 0;
        // Until each of the histories ends before that write.
        while missed < HISTORIES {
            missed = if history(first, lasting, first % 3 == 0) { 0 } else { missed + 1 };
            first += 1;
        }
        println!("{first} writes, {lasting} at once");
        assert!(first > 60, "{first}");
    }
}

#[test]
fn a_commit_that_needs_less_than_the_log_would_take_is_taken() {
    let (disk, storage) = disk(1);
    let options = TableOptions { log_step: 1 << 20, ..small() };
    let table = Table::create_in(&storage, &schema(), &["id"], options).unwrap();
    let used: usize = storage.list().unwrap().iter().map(|name| bytes_of(&disk, name).len()).sum();
    disk.set_faults(Faults { at_once: 100, space: Some(used as u64 + 9000), ..Faults::default() });
    // What was tried in vain may have taken the space: never more than is there.
    let taken = (0..5).filter(|&i| table.insert(&one(i, i)).is_ok()).count();
    assert!(taken > 0);
    disk.set_faults(Faults { at_once: 100, ..Faults::default() });
    table.insert(&one(10, 10)).unwrap();
    assert_eq!(scan(&table).unwrap().len(), taken + 1);
}
