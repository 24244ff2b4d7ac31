//! Random operations against a plain model.

use super::*;
use plinth_io::{IoOptions, MemoryBudget};
use plinth_rowstore::TableError;

/// A text: short ones, and of low and of high entropy up to some hundreds of bytes, as keys of trees are packed by what they have
/// in common.
fn text(n: i64, random: &mut Random) -> String {
    let long = usize::try_from(random.below(40)).unwrap();
    match random.below(8) {
        0 => format!("{}{}", "what all have in common ".repeat(long / 4), n % 90),
        1 => format!("{n:x}").repeat(long),
        2 | 3 => {
            let hex = |random: &mut Random| format!("{:x}", random.below(1 << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            (0..=long / 10 * 5).map(|_| hex(random)).collect()
        }
        _ => format!("{n} {}", "x".repeat(long)),
    }
}

/// One change of the table, and of its model.
pub(crate) fn step(table: &Table, model: &mut Model, random: &mut Random) -> Result<()> {
    let some = |random: &mut Random, most: u64| -> Model {
        let len = 1 + random.below(most);
        (0..len)
            .map(|_| {
                let n = i64::try_from(random.below(1_000_000)).unwrap();
                (random.key(), ((n % 5 > 0).then_some(n), text(n, random)))
            })
            .collect()
    };
    match random.below(15) {
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
        11 => {
            let new = some(random, 8);
            let added = table.insert_new(&batch(&new))?;
            for ((key, row), added) in new.into_iter().zip(added) {
                assert_eq!(added, !model.contains_key(&key));
                model.entry(key).or_insert(row);
            }
        }
        12 => {
            // Twice, so that a transaction's own rows are among those that are there.
            let mut after = model.clone();
            let mut transaction = table.begin();
            for _ in 0..2 {
                let new = some(random, 8);
                let there = new.keys().filter(|key| after.contains_key(key)).count();
                let merged = transaction.upsert_with(&batch(&new), |old, new| {
                    let (old, mut new) = (rows([Ok(old.clone())])?, rows([Ok(new.clone())])?);
                    assert!(old.keys().eq(new.keys()));
                    new.iter_mut().for_each(|(key, row)| row.1 = old[key].1.clone());
                    Ok(batch(&new))
                })?;
                assert_eq!(merged, there);
                for (key, row) in new {
                    let text = after.get(&key).map_or(row.1, |old| old.1.clone());
                    after.insert(key, (row.0, text));
                }
            }
            assert_eq!(rows(transaction.scan()?)?, after);
            transaction.commit()?;
            *model = after;
        }
        13 if random.below(3) == 0 => {
            assert_eq!(table.truncate()?.deleted, model.len() as u64);
            model.clear();
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
    let many = table.multi_get(&all).unwrap();
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
        // Some segments have a tree of their keys and no filter.
        let small = || TableOptions { filter_bytes: seed % 3 * 200, ..small() };
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
                    assert_eq!(rows([Ok(snapshot.multi_get(&keys(-25..45)).unwrap().rows)]).unwrap(), then);
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
fn files_that_are_not_needed_go() {
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

#[test]
fn rows_that_take_the_place_of_others_have_their_keys_once() {
    let (_, storage) = disk(1);
    let table = Table::create_in(&storage, &schema(), &["id"], small()).unwrap();
    table.insert(&one(1, 1)).unwrap();
    let mut change = table.begin();
    let twice = batch([(&2, &(None, String::new())), (&2, &(None, "x".into()))]);
    assert!(matches!(change.upsert_with(&twice, |_, new| Ok(new.clone())), Err(TableError::Duplicate { .. })));
    let other = change.upsert_with(&one(1, 2), |_, _| Ok(one(3, 3))).unwrap_err().to_string();
    assert!(other.contains("rows of other keys"), "{other}");
    assert_eq!(change.upsert_with(&one(1, 2), |old, _| Ok(old.clone())).unwrap(), 1);
    assert_eq!(change.insert_new(&twice).unwrap(), [true, false]);
    table.truncate().unwrap();
    assert!(matches!(change.commit(), Err(TableError::Conflict { .. })));
    assert!(scan(&table).unwrap().is_empty());
    assert!(!storage.list().unwrap().iter().any(|name| name.starts_with("_segment")));
}

#[test]
fn all_that_is_kept_is_counted_and_given_back() {
    let budget = MemoryBudget::new(12 << 20);
    let io = Io::new(&budget, IoOptions { arena_bytes: Some(2 << 20), ..IoOptions::default() });
    let open = OpenOptions { io, ..OpenOptions::default() };
    let (_, storage) = disk(1);
    let writer = WriterOptions { threads: 1, row_group_rows: 4096, block_rows: 1024, ..WriterOptions::default() };
    let options = TableOptions { cache_bytes: 1 << 30, open, writer, background: true, ..small() };
    let table = Table::create_in(&storage, &schema(), &["id"], options).unwrap();
    let of = |consumer: &str| {
        let usage = budget.usage().into_iter().find(|usage| &*usage.consumer == consumer);
        usage.map_or(0, |usage| usage.used)
    };
    let text = |id: i64| format!("{id} {}", "x".repeat(200));
    // Several times an eighth of the budget: rows are merged as they come.
    for lot in 0..30_i64 {
        let rows: Model = (lot * 1000..(lot + 1) * 1000).map(|id| (id, (Some(id), text(id)))).collect();
        table.insert(&batch(&rows)).unwrap();
        assert!(of("rows that wait to be merged") < 12 << 20);
    }
    assert!(of("rows that wait to be merged") > 0);
    table.merge().unwrap();
    assert_eq!(of("rows that wait to be merged"), 0);
    assert!(of("filters and keys of segments") > 0);
    for id in (0..30_000).step_by(500) {
        let row = rows([Ok(table.get(id).unwrap().unwrap())]).unwrap();
        assert_eq!(row, Model::from([(id, (Some(id), text(id)))]));
    }
    // Of the rows those are kept that there is memory for, until another needs it.
    let kept = of("rows of point reads");
    assert!(kept > 256 << 10, "{kept}");
    let other = budget.reserve("another", budget.left() + kept / 2).unwrap();
    assert!(of("rows of point reads") < kept);
    assert_eq!(table.multi_get(&keys((0..30_000).step_by(700))).unwrap().rows.num_rows(), 43);
    drop(other);
    drop(table);
    assert_eq!((of("rows of point reads"), of("filters and keys of segments")), (0, 0));
}

#[test]
fn rows_that_fill_the_last_batch_of_a_merge_are_written() {
    let (_, storage) = disk(1);
    let options = TableOptions { cache_bytes: 64 << 20, writer: WriterOptions::default(), ..small() };
    let table = Table::create_in(&storage, &schema(), &["id"], options).unwrap();
    let some = |from: i64| -> Model { (from..from + 8192).map(|id| (id, (Some(id), "x".into()))).collect() };
    table.import([Ok(batch(&some(0)))]).unwrap();
    table.insert(&batch(&some(10_000))).unwrap();
    table.merge().unwrap();
    assert_eq!(scan(&table).unwrap().len(), 2 * 8192);
}

#[test]
fn rows_without_a_key_are_in_the_order_of_cluster_columns() {
    let (_, storage) = disk(1);
    let clustered = || TableOptions { cluster: vec!["t".into(), "id".into()], ..small() };
    let with_key = Table::create_in(&storage, &schema(), &["id"], clustered()).unwrap_err().to_string();
    assert!(with_key.contains("in the order of that key"), "{with_key}");
    let table = Table::create_in(&storage, &schema(), &[], clustered()).unwrap();
    assert!(table.key().is_empty());
    let some = |from: i64| -> Model { (from..from + 50).map(|id| (id, (None, format!("{}", id % 7)))).collect() };
    table.insert(&batch(&some(0))).unwrap();
    table.import([Ok(batch(&some(100)))]).unwrap();
    table.insert(&batch(&some(0))).unwrap();
    table.close().unwrap();
    let numbered = |table: &Table| {
        let mut rows = Vec::new();
        for batch in table.snapshot().scan_numbered().unwrap() {
            let batch = batch.unwrap();
            let ids = batch.column(0).as_primitive::<Int64Type>().values().to_vec();
            let numbers = batch.column(3).as_primitive::<arrow_array::types::UInt64Type>().values().to_vec();
            let texts = batch.column(2).as_string_view();
            rows.extend(
                ids.into_iter().zip(numbers).enumerate().map(|(i, (id, n))| (texts.value(i).to_owned(), id, n)),
            );
        }
        rows
    };
    // Numbers are not given again, though the last of a segment is not its largest.
    let table = Table::open_in(&storage, small()).unwrap();
    table.insert(&batch(&some(200))).unwrap();
    let mut numbers: Vec<u64> = numbered(&table).into_iter().map(|row| row.2).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 200);
    table.vacuum().unwrap();
    let rows = numbered(&table);
    assert!(rows.len() == 200 && rows.is_sorted());
    let gone: Vec<Key> = rows
        .iter()
        .filter(|row| row.1 % 2 == 0)
        .map(|(t, id, n)| Key(vec![t.as_str().into(), (*id).into(), (*n).into()]))
        .collect();
    assert_eq!(table.delete(&gone).unwrap().deleted, 100);
    assert!(Table::verify_in(&storage, &small()).unwrap().problems.is_empty());
}
