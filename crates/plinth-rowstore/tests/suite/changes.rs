//! Changes as statements make them: many at once, all or none; whole tables made of files, emptied and removed.

use super::*;
use plinth_format::Writer;
use plinth_rowstore::{MultiGet, Seen, TableError, Transaction, View};

/// The rows that a transaction sees.
fn seen(transaction: &Transaction<'_>) -> Model {
    let whole = rows(transaction.scan().unwrap()).unwrap();
    let View { snapshot, own } = transaction.view().unwrap();
    let mut parts = rows(snapshot.scan().unwrap()).unwrap();
    for (id, row) in rows(own.map(Ok)).unwrap() {
        assert!(parts.insert(id, row).is_none(), "{id} is in both parts");
    }
    assert_eq!(parts, whole);
    whole
}

#[test]
fn changes_of_a_transaction_are_made_together_or_not_at_all() {
    let mut random = Random(7);
    let (_disk, storage) = disk(1);
    let table = Arc::new(Table::create_in(&storage, &schema(), &["id"], small()).unwrap());
    let mut model = Model::new();
    for round in 0..200 {
        let mut transaction = table.begin_shared();
        let mut inner = model.clone();
        for _ in 0..random.below(5) {
            let ids: Vec<i64> = (0..=random.below(6)).map(|_| random.key()).collect();
            let new: Vec<(i64, (Option<i64>, String))> =
                ids.iter().map(|&id| (id, (Some(round), format!("{round}")))).collect();
            let given = batch(new.iter().map(|(id, row)| (id, row)));
            let keys = given.project(&[0]).unwrap();
            let before = inner.clone();
            match random.below(4) {
                0 => {
                    let added = transaction.insert_new(&given).unwrap().into_iter().map(u64::from).sum::<u64>();
                    for (id, row) in new {
                        inner.entry(id).or_insert(row);
                    }
                    assert_eq!(added, (inner.len() - before.len()) as u64);
                }
                1 => {
                    let gone = transaction.delete_batch(&keys).unwrap();
                    ids.iter().for_each(|id| drop(inner.remove(id)));
                    assert_eq!(gone, (before.len() - inner.len()) as u64);
                }
                _ => {
                    // What goes, and comes again with another value, unless a key comes twice or is there.
                    let (gone, rest) = ids.split_at(ids.len() / 2);
                    let tried: Result<(), TableError> = transaction.all_or_none(|transaction| {
                        transaction.delete_batch(&keys.slice(0, gone.len()))?;
                        transaction.insert(&given)
                    });
                    gone.iter().for_each(|id| drop(inner.remove(id)));
                    let twice = (1..ids.len()).any(|i| ids[..i].contains(&ids[i]));
                    if twice || rest.iter().any(|id| inner.contains_key(id)) {
                        assert!(matches!(tried, Err(TableError::Duplicate { .. })));
                        inner = before;
                    } else {
                        tried.unwrap();
                        inner.extend(new);
                    }
                }
            }
            assert_eq!(seen(&transaction), inner);
            let MultiGet { rows: found, found: places } = transaction.get_batch(&keys).unwrap();
            let ids_found: Vec<i64> = found.column(0).as_primitive::<Int64Type>().values().to_vec();
            for (id, place) in ids.iter().zip(places) {
                assert_eq!(place.map(|at| ids_found[at]), inner.contains_key(id).then_some(*id));
            }
        }
        if random.below(4) > 0 {
            transaction.commit().unwrap();
            model = inner;
        } else {
            transaction.rollback();
        }
        match random.below(12) {
            0 => table.merge().unwrap(),
            1 => {
                let old = table.snapshot();
                assert_eq!(table.truncate().unwrap().deleted, model.len() as u64);
                assert_eq!(rows(old.scan().unwrap()).unwrap(), model, "who reads goes on reading");
                model.clear();
            }
            _ => {}
        }
        assert_eq!(scan(&table).unwrap(), model);
    }
}

#[test]
fn a_crash_while_a_table_is_emptied_leaves_all_rows_or_none() {
    let (disk, storage) = disk(3);
    let table = Table::create_in(&storage, &schema(), &["id"], small()).unwrap();
    (0..40).for_each(|id| assert_eq!(table.insert(&one(id, id)).unwrap().inserted, 1));
    table.merge().unwrap();
    (40..50).for_each(|id| assert_eq!(table.insert(&one(id, id)).unwrap().inserted, 1));
    disk.watch();
    assert_eq!(table.truncate().unwrap().deleted, 50);
    let emptied = disk.moments();
    table.insert(&one(1, 1)).unwrap();
    for moment in 0..disk.moments() {
        for seed in 0..8 {
            let failed = disk.moment(moment, seed).unwrap();
            failed.crash();
            let failed: Arc<dyn Storage> = Arc::new(failed);
            let left = scan(&Table::open_in(&failed, small()).unwrap()).unwrap().len();
            let allowed: &[usize] = if moment < emptied { &[50, 0] } else { &[0, 1] };
            assert!(allowed.contains(&left), "moment {moment} of {emptied}, seed {seed}: {left} rows");
        }
    }
}

#[test]
fn a_folder_of_files_becomes_a_table_and_a_table_goes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    std::fs::create_dir(&path).unwrap();
    let expected: Model = (0..100).map(|id| (id, (Some(id), "x".to_owned()))).collect();
    for (name, ids) in [("a", 0..60), ("b", 60..100)] {
        let mut writer = Writer::create(path.join(format!("{name}.plinth")), &schema(), small().writer).unwrap();
        writer.write(&batch(expected.range(ids))).unwrap();
        writer.finish().unwrap();
    }
    std::fs::create_dir(path.join(".plinth-init")).unwrap();
    std::fs::write(path.join(".plinth-init/_manifest"), "what a crash left").unwrap();
    let refused = Table::init(&path, &["t"], &small(), |_| ()).unwrap_err();
    assert!(matches!(refused, TableError::Duplicate { .. }), "{refused}");
    assert!(path.join("a.plinth").exists() && !Table::is_table(&path) && !path.join(".plinth-init").exists());
    assert_eq!(Table::init(&path, &["id"], &small(), |_| ()).unwrap(), 100);
    assert!(!path.join("a.plinth").exists());
    assert!(Table::init(&path, &["id"], &small(), |_| ()).is_err());
    let table = Table::open(&path, small()).unwrap();
    assert_eq!(scan(&table).unwrap(), expected);
    table.delete(&keys([7])).unwrap();
    assert!(matches!(Table::destroy(&path), Err(TableError::InUse { .. })));
    drop(table);
    Table::destroy(&path).unwrap();
    assert!(!Table::is_table(&path) && Table::destroy(&path).is_err());
}

#[test]
fn a_table_that_was_changed_meanwhile_is_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let (place, with) = (dir.path().join("t"), dir.path().join("u"));
    let table = Table::create(&place, &schema(), &["id"], small()).unwrap();
    Table::create(&with, &schema(), &["id"], small()).unwrap().close().unwrap();
    let seen = |table: &Table| Seen {
        sequence: table.snapshot().sequence(),
        indexes: table.snapshot().indexes(),
        notes: table.notes().as_ref().clone(),
    };
    let mut old = vec![seen(&table)];
    table.insert(&one(1, 1)).unwrap();
    old.push(seen(&table));
    table.create_index("by_n", &["n"], false).unwrap();
    old.push(seen(&table));
    let notes = || [("a".to_owned(), "b".to_owned())].into_iter().collect();
    table.set_notes(&old[0].notes, notes()).unwrap();
    let refused = table.set_notes(&old[0].notes, notes()).unwrap_err();
    assert!(refused.to_string().contains("changed meanwhile"), "{refused}");
    let now = seen(&table);
    table.close().unwrap();
    for old in old {
        let refused = Table::replace(&place, &with, &old).unwrap_err();
        assert!(refused.to_string().contains("changed meanwhile"), "{refused}");
    }
    Table::replace(&place, &with, &now).unwrap();
    assert_eq!(Table::open_read_only(&place, small()).unwrap().snapshot().num_rows(), 0);
}

#[test]
fn a_snapshot_that_outlives_its_table_removes_no_file_of_another() {
    let dir = tempfile::tempdir().unwrap();
    let (place, with) = (dir.path().join("t"), dir.path().join("u"));
    let filled = |place: &std::path::Path| {
        let table = Table::create(place, &schema(), &["id"], small()).unwrap();
        for id in 0..200 {
            table.insert(&one(id, id)).unwrap();
        }
        table.merge().unwrap();
        table
    };
    let table = filled(&place);
    let held = table.snapshot();
    table.insert(&one(1_000, 1)).unwrap();
    table.vacuum().unwrap();
    let seen =
        Seen { sequence: table.snapshot().sequence(), indexes: Vec::new(), notes: table.notes().as_ref().clone() };
    table.close().unwrap();
    filled(&with).close().unwrap();
    Table::replace(&place, &with, &seen).unwrap();
    drop(held);
    let table = Table::open(&place, small()).unwrap();
    assert_eq!(rows(table.snapshot().scan().unwrap()).unwrap().len(), 200);
    drop(table);
    assert!(Table::verify(&place, 1, &small()).unwrap().problems.is_empty());
}
