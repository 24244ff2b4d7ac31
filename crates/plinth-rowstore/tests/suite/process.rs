//! Several processes: killed ones, second writers, readers.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use super::*;
use plinth_rowstore::TableError;

/// The process that is killed: it writes until it is, and says what was acknowledged.
#[test]
#[ignore = "is run by the test below"]
fn writes_until_it_is_killed() {
    let Ok(path) = std::env::var("PLINTH_KILLED_TABLE") else { return };
    let options = TableOptions { background: true, merge_rows: 40, ..small() };
    let table = Table::open(path, options).unwrap();
    // The last row may not have got further than the first of its two commits.
    let first = scan(&table).unwrap().keys().last().map_or(0, |last| *last);
    for id in first.. {
        table.upsert(&one(id, id)).unwrap();
        // A row turns its sign as the one three before it goes.
        if id % 3 == 0 {
            let mut transaction = table.begin();
            transaction.delete(&keys([id - 3])).unwrap();
            transaction.upsert(&one(id, -id)).unwrap();
            transaction.commit().unwrap();
        }
        println!("done {id}");
    }
}

#[test]
fn a_killed_process_leaves_all_that_it_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    drop(Table::create(&path, &schema(), &["id"], small()).unwrap());
    let mut random = Random(1);
    for _ in 0..12 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "process::writes_until_it_is_killed", "--nocapture"])
            .env("PLINTH_KILLED_TABLE", &path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (mut done, wanted) = (None, 5 + random.below(100));
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut count = 0;
        for line in lines.by_ref() {
            let Ok(line) = line else { break };
            if let Some(id) = line.strip_prefix("done ") {
                done = Some(id.parse::<i64>().unwrap());
                count += 1;
            }
            if count == wanted {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        let done = done.unwrap();
        let table = Table::open(&path, small()).unwrap();
        let found = scan(&table).unwrap();
        for id in 0..=done {
            let there = id % 3 != 0 || id == done - done % 3;
            let next = id % 3 == 0 && found.contains_key(&(id + 3)) && found[&(id + 3)].0 < Some(0);
            assert_eq!(found.contains_key(&id), there && !next, "{id} of {done}");
            if id % 3 == 0 && id > 0 && there && !next {
                assert_eq!(found[&id].0, Some(-id));
            }
        }
        assert!(i64::try_from(found.len()).unwrap() <= done + 3);
    }
}

#[test]
fn one_writes_and_many_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    assert!(Table::open(&path, small()).unwrap_err().to_string().contains("is no writable table"));
    let table = Table::create(&path, &schema(), &["id"], small()).unwrap();
    assert!(Table::create(&path, &schema(), &["id"], small()).is_err());
    let second = Table::open(&path, small()).unwrap_err();
    assert!(matches!(second, TableError::InUse { .. }), "{second}");
    assert!(second.to_string().contains("is open for writing in another process"));
    for i in 0..60 {
        table.insert(&one(i, i)).unwrap();
        if i % 13 == 0 {
            table.merge().unwrap();
        }
        let reader = Table::open_read_only(&path, small()).unwrap();
        assert_eq!(scan(&reader).unwrap(), scan(&table).unwrap());
        assert!(matches!(reader.insert(&one(100, 1)), Err(TableError::ReadOnly)));
    }
    let reader = Table::open_read_only(&path, small()).unwrap();
    let before = scan(&reader).unwrap();
    table.vacuum().unwrap();
    assert_eq!(scan(&reader).unwrap(), before, "files that were removed are still open");
    drop(table);
    Table::open(&path, small()).unwrap();
}
