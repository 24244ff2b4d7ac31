//! Random operations against a plain model.

use super::*;
use plinth_table::store::TableError;

/// One change of the table, and of its model.
pub(crate) fn step(table: &Table, model: &mut Model, random: &mut Random) -> Result<()> {
    let some = |random: &mut Random, most: u64| -> Model {
        let len = 1 + random.below(most);
        (0..len)
            .map(|_| {
                let n = i64::try_from(random.below(1_000_000)).unwrap();
                let long = usize::try_from(random.below(40)).unwrap();
                (random.key(), ((n % 5 > 0).then_some(n), format!("{n} {}", "x".repeat(long))))
            })
            .collect()
    };
    match random.below(12) {
        0..=2 => {
            let new = some(random, 8);
            let clash = new.keys().any(|key| model.contains_key(key));
            match table.insert(&batch(&new)) {
                Ok(done) => {
                    assert!(!clash);
                    assert_eq!((done.inserted, done.deleted), (new.len() as u64, 0));
                    model.extend(new);
                }
                Err(TableError::Duplicate { .. }) => assert!(clash),
                Err(other) => return Err(other),
            }
        }
        3..=5 => {
            let new = some(random, 8);
            let replaced = new.keys().filter(|key| model.contains_key(key)).count() as u64;
            let done = table.upsert(&batch(&new))?;
            assert_eq!((done.inserted, done.deleted), (new.len() as u64, replaced));
            model.extend(new);
        }
        6..=7 => {
            let gone: Vec<i64> = some(random, 6).into_keys().collect();
            let done = table.delete(&keys(gone.iter().copied()))?;
            let there = gone.iter().filter(|key| model.remove(key).is_some()).count() as u64;
            assert_eq!(done.deleted, there);
        }
        8..=9 => {
            let mut transaction = table.begin();
            let mut after = model.clone();
            for _ in 0..random.below(4) {
                if random.below(2) == 0 {
                    let new = some(random, 4);
                    transaction.upsert(&batch(&new))?;
                    after.extend(new);
                } else {
                    let key = random.key();
                    let there = after.remove(&key).is_some();
                    assert_eq!(transaction.delete(&keys([key]))?, u64::from(there));
                }
                let key = random.key();
                let found = transaction.get(key)?.map(|row| rows([Ok(row)]).unwrap());
                assert_eq!(found.and_then(|mut row| row.remove(&key)), after.get(&key).cloned());
            }
            assert_eq!(rows(transaction.scan()?)?, after);
            if random.below(3) > 0 {
                transaction.commit()?;
                *model = after;
            } else {
                transaction.rollback();
            }
        }
        10 => {
            let new: Model = some(random, 30).into_iter().filter(|(key, _)| !model.contains_key(key)).collect();
            if !new.is_empty() {
                table.import([Ok(batch(new.iter().rev()))])?;
                model.extend(new);
            }
        }
        _ => {
            if random.below(4) == 0 {
                table.vacuum()?
            } else {
                table.merge()?
            }
        }
    }
    Ok(())
}

fn check(table: &Table, model: &Model) {
    assert_eq!(scan(table).unwrap(), *model);
    let all = keys(-25..45);
    let many = table.get_many(&all).unwrap();
    let found = rows([Ok(many.rows.clone())]).unwrap();
    assert_eq!(found, *model);
    for (key, found) in (-25..45).zip(&many.found) {
        let row = table.get(key).unwrap();
        assert_eq!(found.is_some(), model.contains_key(&key));
        assert_eq!(row.is_some(), found.is_some());
        if let (Some(row), Some(at)) = (row, found) {
            assert_eq!(row, many.rows.slice(*at, 1));
        }
    }
}

#[test]
fn random_operations_do_what_a_map_does() {
    for seed in 0..60 {
        let (_, storage) = disk(seed);
        let mut random = Random(seed);
        let mut model = Model::new();
        let mut table = Table::create_in(&storage, &schema(), &["id"], small()).unwrap();
        let mut held = Vec::new();
        for i in 0..60 {
            step(&table, &mut model, &mut random).unwrap();
            if i % 7 == 0 {
                check(&table, &model);
            }
            if random.below(10) == 0 {
                held.push((table.snapshot(), model.clone()));
            }
            if random.below(15) == 0 {
                for (snapshot, then) in held.drain(..) {
                    assert_eq!(rows(snapshot.scan().unwrap()).unwrap(), then, "a snapshot stays as it is");
                    assert_eq!(rows([Ok(snapshot.get_many(&keys(-25..45)).unwrap().rows)]).unwrap(), then);
                }
                if random.below(2) == 0 {
                    table.close().unwrap();
                } else {
                    // As a killed process leaves it.
                    std::mem::forget(table);
                }
                table = Table::open_in(&storage, small()).unwrap();
                check(&table, &model);
            }
        }
        check(&table, &model);
        table.vacuum().unwrap();
        check(&table, &model);
    }
}

#[test]
fn files_that_nobody_needs_go() {
    let (_, storage) = disk(1);
    let table = Table::create_in(&storage, &schema(), &["id"], small()).unwrap();
    for i in 0..200 {
        table.upsert(&one(i % 50, i)).unwrap();
        if i % 20 == 0 {
            table.merge().unwrap();
        }
    }
    table.vacuum().unwrap();
    let names = storage.list().unwrap();
    let kind = |kind: &str| names.iter().filter(|name| name.starts_with(kind)).count();
    assert_eq!((kind("_segment-"), kind("_keys-"), kind("_version-"), kind("_log-")), (1, 1, 1, 1), "{names:?}");
    let snapshot = table.snapshot();
    table.upsert(&one(7, 1000)).unwrap();
    table.vacuum().unwrap();
    let segments = || storage.list().unwrap().iter().filter(|name| name.starts_with("_segment-")).count();
    assert_eq!(segments(), 2);
    assert_eq!(rows(snapshot.scan().unwrap()).unwrap()[&7].0, Some(157));
    drop(snapshot);
    assert_eq!(segments(), 1, "with its last reader");
    table.delete(&keys(0..50)).unwrap();
    table.merge().unwrap();
    assert_eq!((segments(), scan(&table).unwrap().len()), (0, 0));
}

#[test]
fn tables_without_a_key_number_their_rows() {
    let (_, storage) = disk(1);
    let table = Table::create_in(&storage, &schema(), &[], small()).unwrap();
    assert!(table.key().is_empty());
    for i in 0..30 {
        table.insert(&one(i % 3, i)).unwrap();
        if i % 11 == 0 {
            table.merge().unwrap();
        }
    }
    let numbered = |table: &Table| {
        let mut rows = Vec::new();
        for batch in table.snapshot().scan_numbered().unwrap() {
            let batch = batch.unwrap();
            let ns = batch.column(1).as_primitive::<Int64Type>();
            let numbers = batch.column(3).as_primitive::<arrow_array::types::UInt64Type>();
            rows.extend(numbers.values().iter().copied().zip(ns.values().iter().copied()));
        }
        rows.sort_unstable();
        rows
    };
    let before = numbered(&table);
    assert_eq!(before.len(), 30);
    let gone: Vec<Key> = before.iter().filter(|row| row.1 % 2 == 0).map(|row| Key::from(row.0)).collect();
    assert_eq!(table.delete(&gone).unwrap().deleted, 15);
    drop(table);
    let table = Table::open_in(&storage, small()).unwrap();
    assert!(numbered(&table).iter().all(|row| row.1 % 2 == 1));
    assert_eq!(table.schema().fields().len(), 3);
    table.insert(&one(9, 99)).unwrap();
    let last = *numbered(&table).last().unwrap();
    assert!(last.0 >= 30 && last.1 == 99, "numbers are given once: {last:?}");
}

#[test]
fn keys_of_several_columns_and_of_text() {
    let (_, storage) = disk(1);
    let table = Table::create_in(&storage, &schema(), &["t", "id"], small()).unwrap();
    assert_eq!(table.key(), ["t", "id"]);
    for i in 0..40_i64 {
        table.insert(&batch([(&i, &(Some(i), format!("text {}", i % 4)))])).unwrap();
    }
    table.merge().unwrap();
    let row = table.get(("text 3", 7)).unwrap().unwrap();
    assert_eq!(rows([Ok(row)]).unwrap(), Model::from([(7, (Some(7), "text 3".into()))]));
    assert!(table.get(("text 2", 7)).unwrap().is_none());
    let again = table.insert(&batch([(&7, &(None, "text 3".into()))])).unwrap_err();
    assert_eq!(again.to_string(), "a row with the key (\"text 3\", 7) is there already; upsert replaces it");
    assert!(table.get(7).is_err());
}
