//! Indexes.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringViewArray};

use super::{ALL, Db, people};

/// A table of many rows in files and some in memory.
fn events() -> (tempfile::TempDir, Db) {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path());
    db.rows("CREATE TABLE e (id BIGINT PRIMARY KEY, who BIGINT, what TEXT)");
    db.rows("INSERT INTO e SELECT value, value * 7 % 20000, 'kind ' || (value % 3000) FROM range(0, 100000)");
    db.rows("VACUUM e");
    db.rows("INSERT INTO e SELECT value, value % 100, 'new' FROM range(100000, 100200)");
    db.rows("DELETE FROM e WHERE id % 10 = 3");
    (dir, db)
}

/// The rows that indexes found, as EXPLAIN ANALYZE says; 0 if none was asked.
fn found(db: &Db, sql: &str) -> u64 {
    let text = db.rows(&format!("EXPLAIN ANALYZE {sql}")).join(" ");
    let counts = text.split("rows_from_indexes=").skip(1);
    counts.map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse::<u64>().unwrap()).sum()
}

#[test]
fn few_rows_are_found_by_an_index_and_the_same_as_without() {
    let (dir, db) = events();
    let queries = [
        ("SELECT count(*), sum(id) FROM e WHERE who = 777", 5),
        ("SELECT count(*), sum(id) FROM e WHERE who IN (1, 2, 3, 50000)", 15),
        ("SELECT count(*), sum(id) FROM e WHERE who BETWEEN 100 AND 104", 25),
        ("SELECT count(*), sum(id) FROM e WHERE who > 19990", 45),
        ("SELECT count(*), sum(id) FROM e WHERE what = 'kind 77' AND id > 50", 34),
        ("SELECT count(*), sum(id) FROM e WHERE who = 5 AND what = 'new'", 5),
        ("SELECT count(*), sum(e.id) FROM e JOIN (VALUES (11), (12)) AS few (k) ON e.who = few.k", 10),
        ("SELECT count(*), sum(id) FROM e WHERE who IN (SELECT DISTINCT who FROM e WHERE id < 4)", 15),
    ];
    let plain: Vec<Vec<String>> = queries.iter().map(|(sql, _)| db.rows(sql)).collect();
    assert!(queries.iter().all(|(sql, _)| found(&db, sql) == 0));
    db.rows("CREATE INDEX by_who ON e (who); CREATE INDEX ON e (what)");
    for ((sql, most), plain) in queries.iter().zip(&plain) {
        assert_eq!(db.rows(sql), *plain, "{sql}");
        let rows = found(&db, sql);
        assert!(rows > 0 && rows <= *most, "{sql}: {rows}");
    }
    // Many rows are read in order.
    assert_eq!(found(&db, "SELECT count(*) FROM e WHERE who < 10000"), 0);
    // Another process reads by them, too.
    let other = Db::open(dir.path());
    assert_eq!(other.rows(queries[0].0), plain[0]);
    assert!(found(&other, queries[0].0) > 0);
    db.rows("UPDATE e SET who = 777 WHERE id = 100001; DROP INDEX e_what_idx; VACUUM e");
    assert_eq!(db.rows("SELECT count(*) FROM e WHERE who = 777"), ["6"]);
    assert!(found(&db, queries[0].0) > 0 && found(&db, queries[4].0) == 0);
}

#[test]
fn unique_values_stay_unique() {
    let (_dir, db) = people();
    db.rows("CREATE UNIQUE INDEX one_n ON t (n)");
    db.fails(
        "INSERT INTO t VALUES (4, 'd', 30)",
        "a row with \"n\" = 30 is there already, and the index \"one_n\" is unique",
    );
    db.fails("UPDATE t SET n = 1", "is there already");
    assert_eq!(db.rows("INSERT INTO t VALUES (4, 'd', NULL), (5, 'e', 50)"), ["2"]);
    // Values change places at once.
    assert_eq!(db.rows("UPDATE t SET n = 40 - n WHERE n IN (10, 30)"), ["2"]);
    db.rows("BEGIN; DELETE FROM t WHERE n = 50; INSERT INTO t VALUES (6, 'f', 50); COMMIT");
    db.fails("BEGIN; INSERT INTO t VALUES (7, 'g', 50)", "is there already");
    db.rows("COMMIT");
    db.rows("CREATE TABLE u (a INT PRIMARY KEY, b TEXT UNIQUE, c INT, UNIQUE (c, b))");
    db.rows("INSERT INTO u VALUES (1, 'x', 1)");
    db.fails("INSERT INTO u VALUES (2, 'x', 2)", "the index \"u_b_key\" is unique");
    db.fails(
        "CREATE UNIQUE INDEX one_name ON t (name); CREATE UNIQUE INDEX two ON t (n); INSERT INTO t VALUES (8, 'a', 8)",
        "one_name",
    );
}

#[test]
fn a_statement_of_a_transaction_fails_by_itself_when_its_values_are_there() {
    let (dir, db) = people();
    db.rows("CREATE UNIQUE INDEX one_n ON t (n); CREATE UNIQUE INDEX one_name ON t (name)");
    let taken = "a row with \"n\" = 10 is there already, and the index \"one_n\" is unique";
    db.rows("BEGIN; INSERT INTO t VALUES (4, 'd', 40)");
    // Rows that were committed, rows of the transaction, rows of the same statement.
    db.fails("INSERT INTO t VALUES (5, 'e', 10)", taken);
    db.fails("INSERT INTO t VALUES (5, 'e', 40)", "\"n\" = 40");
    db.fails("INSERT INTO t VALUES (5, 'e', 50), (6, 'f', 50)", "\"n\" = 50");
    db.fails("INSERT INTO t VALUES (5, 'd', 50)", "one_name");
    db.fails("UPDATE t SET n = 10 WHERE id = 4", taken);
    db.fails("INSERT INTO t VALUES (4, 'd', 10) ON CONFLICT (id) DO UPDATE SET n = excluded.n", taken);
    let merge = "MERGE INTO t USING (VALUES (9, 10)) AS s(k, m) ON t.id = s.k
        WHEN NOT MATCHED THEN INSERT (id, name, n) VALUES (s.k, 'i', s.m)";
    db.fails(merge, taken);
    assert_eq!(db.rows(ALL), ["1 a 10", "2 b -", "3 c 30", "4 d 40"], "a statement that fails changes nothing");
    // What goes leaves its values to others, whether it was committed or not; within a statement they change places.
    assert_eq!(db.rows("DELETE FROM t WHERE id = 1"), ["1"]);
    assert_eq!(db.rows("INSERT INTO t VALUES (5, 'a', 10)"), ["1"]);
    db.fails("INSERT INTO t VALUES (1, 'x', 10)", taken);
    assert_eq!(db.rows("UPDATE t SET n = 50 - n WHERE id IN (4, 5)"), ["2"]);
    assert_eq!(db.rows("UPDATE t SET n = 11 WHERE id = 4; INSERT INTO t VALUES (6, 'f', 10), (7, 'g', NULL)"), ["2"]);
    db.rows("COMMIT");
    assert_eq!(db.rows(ALL), ["2 b -", "3 c 30", "4 d 11", "5 a 40", "6 f 10", "7 g -"]);
    // What another committed meanwhile, the commit finds.
    let table = db.session.stores.writer(&dir.path().join("t").canonicalize().unwrap()).unwrap();
    db.rows("BEGIN; INSERT INTO t VALUES (8, 'h', 80)");
    let schema = table.snapshot().get(2_i64).unwrap().unwrap().schema();
    let row = [Arc::new(Int64Array::from(vec![9])) as ArrayRef, Arc::new(StringViewArray::from(vec!["i"]))];
    let row = row.into_iter().chain([Arc::new(Int32Array::from(vec![80])) as ArrayRef]).collect();
    table.insert(&RecordBatch::try_new(schema, row).unwrap()).unwrap();
    db.fails("COMMIT", "\"n\" = 80");
    assert_eq!(db.rows("SELECT id FROM t WHERE n = 80"), ["9"]);
}

#[test]
fn bad_indexes_say_what_is_wrong() {
    let (_dir, db) = people();
    db.rows("CREATE INDEX by_n ON t (n)");
    db.fails("CREATE INDEX by_n ON t (name)", "there is an index \"by_n\" already");
    db.rows("CREATE INDEX IF NOT EXISTS by_n ON t (name)");
    db.fails("CREATE INDEX ON nowhere (n)", "is no writable table");
    db.fails("CREATE INDEX x ON t (nobody)", "nobody");
    db.fails("CREATE INDEX x ON t (n + 1)", "n + 1: is no column");
    db.fails("CREATE INDEX x ON t (n DESC)", "an order or operators of a column is not supported");
    db.fails("CREATE INDEX x ON t (n) WHERE n > 1", "WHERE is not supported");
    db.fails("CREATE INDEX x ON t USING hash (n)", "BTREE is not supported");
    db.fails("DROP INDEX x", "there is no such index");
    db.rows("DROP INDEX IF EXISTS x");
    db.fails("BEGIN; CREATE INDEX x ON t (n)", "CREATE INDEX can't be part of a transaction");
    db.rows("ROLLBACK; CREATE TABLE u (a INT); CREATE INDEX by_n ON u (a)");
    db.fails("DROP INDEX by_n", "several tables have one");
    db.rows("DROP INDEX by_n ON u; DROP INDEX by_n");
    db.fails("CREATE TABLE v (a DOUBLE); CREATE INDEX ON v (a)", "a key can't be of type");
}

#[test]
fn rows_are_clustered() {
    let (_dir, db) = people();
    db.rows("CREATE TABLE c (a INT, b TEXT) CLUSTER BY b, a");
    db.fails("INSERT INTO c VALUES (1, NULL)", "can't be NULL");
    db.rows("INSERT INTO c VALUES (1, 'x'), (2, 'a'), (1, 'x'), (0, 'x'); VACUUM c");
    assert_eq!(db.rows("SELECT a, b FROM c"), ["2 a", "0 x", "1 x", "1 x"]);
    assert_eq!(db.rows("UPDATE c SET b = 'b' WHERE a = 0"), ["1"]);
    assert_eq!(db.rows("DELETE FROM c WHERE a = 1"), ["2"]);
    assert_eq!(db.rows("SELECT a, b FROM c ORDER BY b"), ["2 a", "0 b"]);
    db.fails("CREATE TABLE d (a INT) CLUSTER BY a + 1", "is no column");
    db.fails("CREATE TABLE d (a INT PRIMARY KEY) CLUSTER BY a", "in the order of that key");
    db.fails("CREATE TABLE d (a INT) CLUSTER BY z", "z");
    assert_eq!(db.rows("CREATE TABLE d CLUSTER BY a AS SELECT 3 AS a UNION ALL SELECT 2"), ["2"]);
}
