//! Many threads at once: what transactions see of each other.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::*;
use plinth_rowstore::TableError;

fn folder(options: TableOptions) -> (tempfile::TempDir, Table) {
    let dir = tempfile::tempdir().unwrap();
    let table = Table::create(dir.path().join("t"), &schema(), &["id"], options).unwrap();
    (dir, table)
}

fn busy() -> TableOptions {
    TableOptions { background: true, merge_rows: 50, ..small() }
}

/// What a transaction read and wrote: by key the number of the write that it saw, and its own.
#[derive(Debug)]
struct Done {
    read: HashMap<i64, i64>,
    wrote: HashMap<i64, i64>,
}

#[test]
fn histories_of_transactions_are_those_of_snapshot_isolation() {
    const KEYS: i64 = 8;
    let (_dir, table) = folder(busy());
    let start: Model = (0..KEYS).map(|id| (id, (Some(0), "0".into()))).collect();
    table.insert(&batch(&start)).unwrap();
    let (next, conflicts) = (AtomicU64::new(1), AtomicU64::new(0));
    let history = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (table, next, conflicts, history) = (&table, &next, &conflicts, &history);
            scope.spawn(move || {
                let mut random = Random(thread);
                for _ in 0..150 {
                    let mut transaction = table.begin();
                    let mut done = Done { read: HashMap::new(), wrote: HashMap::new() };
                    for _ in 0..1 + random.below(4) {
                        let key = i64::try_from(random.below(8)).unwrap();
                        let row = rows([Ok(transaction.get(key).unwrap().unwrap())]).unwrap();
                        let seen = row[&key].0.unwrap();
                        match done.wrote.get(&key) {
                            Some(own) => assert_eq!(seen, *own, "its own writes are seen"),
                            None => {
                                let before = *done.read.entry(key).or_insert(seen);
                                assert_eq!(before, seen, "a key is read alike each time");
                            }
                        }
                        if random.below(2) == 0 {
                            let write = i64::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap();
                            transaction.upsert(&one(key, write)).unwrap();
                            done.wrote.insert(key, write);
                        }
                    }
                    let scanned = rows(transaction.scan().unwrap()).unwrap();
                    for (key, seen) in &done.read {
                        let expected = done.wrote.get(key).unwrap_or(seen);
                        assert_eq!(scanned[key].0, Some(*expected), "a scan sees what point reads see");
                    }
                    // Of the others, too: all of one version.
                    for (key, row) in &scanned {
                        if !done.wrote.contains_key(key) {
                            done.read.insert(*key, row.0.unwrap());
                        }
                    }
                    match transaction.commit() {
                        Ok(_) => history.lock().unwrap().push(done),
                        Err(TableError::Conflict { .. }) => drop(conflicts.fetch_add(1, Ordering::Relaxed)),
                        Err(other) => panic!("{other}"),
                    }
                }
            });
        }
    });
    let history = history.into_inner().unwrap();
    assert!(conflicts.into_inner() > 0 && history.len() > 100);
    check(&history, KEYS, &table);
}

/// Each key's writes are a chain: who writes a key read what it replaces, and no two replace the same (no update is lost). Along it,
/// every read is of one cut: if a transaction saw one write of another, it saw all, and all that came before.
fn check(history: &[Done], keys: i64, table: &Table) {
    let mut after: HashMap<(i64, i64), usize> = HashMap::new();
    for (i, done) in history.iter().enumerate() {
        for key in done.wrote.keys() {
            let before = done.read[key];
            assert!(after.insert((*key, before), i).is_none(), "two transactions replaced {before} of {key}");
        }
    }
    let writer: HashMap<(i64, i64), usize> =
        history.iter().enumerate().flat_map(|(i, done)| done.wrote.iter().map(move |(k, w)| ((*k, *w), i))).collect();
    // The place of each write in its key's chain.
    let mut place: HashMap<(i64, i64), usize> = HashMap::new();
    let last = scan(table).unwrap();
    for key in 0..keys {
        let (mut write, mut at) = (0, 0);
        loop {
            place.insert((key, write), at);
            let Some(&next) = after.get(&(key, write)) else { break };
            (write, at) = (history[next].wrote[&key], at + 1);
        }
        assert_eq!(last[&key].0, Some(write), "the table has the end of the chain");
    }
    assert_eq!(place.len(), writer.len() + usize::try_from(keys).unwrap(), "every write is in its chain");
    for done in history {
        for (key, seen) in &done.read {
            // Who saw a write of a transaction saw its others, or later ones.
            let Some(&other) = writer.get(&(*key, *seen)) else { continue };
            for (key, write) in &history[other].wrote {
                if let Some(seen) = done.read.get(key) {
                    assert!(place[&(*key, *seen)] >= place[&(*key, *write)], "half of a transaction was seen");
                }
            }
        }
    }
}

#[test]
fn readers_see_whole_commits_while_others_write_and_merge() {
    let (_dir, table) = folder(busy());
    // Every commit moves an amount between two rows; the sum stays.
    let start: Model = (0..40).map(|id| (id, (Some(100), String::new()))).collect();
    table.insert(&batch(&start)).unwrap();
    let done = AtomicBool::new(false);
    let ends = Ending(&done);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (table, done) = (&table, &done);
            scope.spawn(move || {
                let (mut random, mut last) = (Random(thread), 0);
                while !done.load(Ordering::Relaxed) {
                    let snapshot = table.snapshot();
                    assert!(snapshot.sequence() >= last, "time does not run backwards");
                    last = snapshot.sequence();
                    let all = rows(snapshot.scan().unwrap()).unwrap();
                    assert_eq!((all.len(), all.values().map(|row| row.0.unwrap()).sum::<i64>()), (40, 4000));
                    let many = snapshot.multi_get(&keys(0..40)).unwrap();
                    assert_eq!(rows([Ok(many.rows)]).unwrap(), all);
                    let key = i64::try_from(random.below(40)).unwrap();
                    assert!(table.get(key).unwrap().is_some());
                }
            });
        }
        let writers: Vec<_> = (0..3)
            .map(|thread| {
                let table = &table;
                scope.spawn(move || {
                    let mut random = Random(thread + 10);
                    let mut moved = 0;
                    while moved < 150 {
                        let mut transaction = table.begin();
                        let (a, b) = (random.below(40), random.below(40));
                        let (a, b) = (i64::try_from(a).unwrap(), i64::try_from(b).unwrap());
                        if a == b {
                            continue;
                        }
                        for (key, by) in [(a, -1), (b, 1)] {
                            let row = rows([Ok(transaction.get(key).unwrap().unwrap())]).unwrap();
                            transaction.upsert(&one(key, row[&key].0.unwrap() + by)).unwrap();
                        }
                        match transaction.commit() {
                            Ok(_) => moved += 1,
                            Err(TableError::Conflict { .. }) => {}
                            Err(other) => panic!("{other}"),
                        }
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        drop(ends);
    });
}

/// Ends the readers, whatever happens to the writers.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn imports_and_transactions_are_first_come_first_served() {
    let (_dir, table) = folder(small());
    let before = table.begin();
    let rows: Model = (0..100).map(|id| (id, (None, String::new()))).collect();
    table.import([Ok(batch(&rows))]).unwrap();
    let mut early = before;
    early.upsert(&one(7, 7)).unwrap();
    assert!(matches!(early.commit(), Err(TableError::Conflict { .. })));
    let mut late = table.begin();
    late.upsert(&one(7, 7)).unwrap();
    late.commit().unwrap();
    assert!(matches!(table.import([Ok(one(7, 8))]), Err(TableError::Duplicate { .. })));
    // While it is read, another writes one of its keys.
    let mut others = 0;
    let batches = (200..300).map(|id| {
        if id == 250 {
            table.insert(&one(299, 1)).unwrap();
            others += 1;
        }
        Ok(one(id, id))
    });
    assert!(matches!(table.import(batches), Err(TableError::Conflict { .. })));
    assert_eq!((others, scan(&table).unwrap().len()), (1, 101));
    assert!(matches!(table.import([Ok(one(400, 1)), Ok(one(400, 2))]), Err(TableError::Duplicate { .. })));
}

#[test]
fn writers_wait_for_merges_and_no_row_is_lost() {
    let options = TableOptions { merge_rows: 200, ..busy() };
    let (_dir, table) = folder(options);
    std::thread::scope(|scope| {
        for thread in 0..4_i64 {
            let table = &table;
            scope.spawn(move || {
                for i in 0..40 {
                    let first = (i * 4 + thread) * 25;
                    let rows: Model = (first..first + 25).map(|id| (id, (Some(id), String::new()))).collect();
                    table.insert(&batch(&rows)).unwrap();
                }
            });
        }
    });
    assert_eq!(scan(&table).unwrap().len(), 4000);
    assert!(table.get(3999).unwrap().is_some());
}

#[test]
fn an_index_finds_all_rows_or_is_not_there() {
    const ROWS: i64 = 30_000;
    let (_dir, table) = folder(TableOptions { background: false, merge_rows: 1 << 20, ..small() });
    let model: Model = (0..ROWS).map(|id| (id, (Some(id % 10_000), "t".into()))).collect();
    table.insert(&batch(&model)).unwrap();
    let (done, found) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut value = 0;
            while !done.load(Ordering::Relaxed) {
                value = (value + 7_919) % 10_000;
                let given: ArrayRef = Arc::new(Int64Array::from(vec![value]));
                let given = RecordBatch::try_from_iter([("n", given)]).unwrap();
                if let Some(rows) = table.snapshot().find_few(&given, 8).unwrap() {
                    assert_eq!(rows.num_rows(), 3, "{value}");
                    found.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        for _ in 0..5 {
            table.create_index("by_n", &["n"], false).unwrap();
            let before = found.load(Ordering::Relaxed);
            while found.load(Ordering::Relaxed) < before + 10 && !reader.is_finished() {
                std::thread::yield_now();
            }
            table.drop_index("by_n").unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    let twice = table.create_index("by_n_n", &["n", "n"], false).unwrap_err();
    assert!(twice.to_string().contains("twice"), "{twice}");
}
