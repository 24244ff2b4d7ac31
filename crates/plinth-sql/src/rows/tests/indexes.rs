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
    db.fails("CREATE INDEX x ON t (missing)", "missing");
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

#[test]
fn rows_with_a_null_behind_the_first_column_are_found_and_changed() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path());
    db.rows("CREATE TABLE uq (id INT PRIMARY KEY, a INT, b INT, UNIQUE (a, b))");
    let rows = "SELECT value, value % 500, CASE WHEN value % 2 = 0 THEN value END FROM generate_series(1, 3000)";
    db.rows(&format!("INSERT INTO uq {rows}"));
    let count = "SELECT count(*) FROM uq WHERE a = 5";
    assert_eq!(db.rows(count), ["6"]);
    db.rows("VACUUM uq");
    assert_eq!(db.rows(count), ["6"]);
    assert_eq!(found(&db, "SELECT id FROM uq WHERE a = 5"), 6);
    assert_eq!(db.rows("SELECT count(*), count(b) FROM uq WHERE a IN (5, 6)"), ["12 6"]);
    assert_eq!(db.rows("SELECT id FROM uq WHERE a = 5 AND b IS NULL AND id < 1000 ORDER BY id"), ["5", "505"]);
    assert_eq!(db.rows("UPDATE uq SET b = -id WHERE a = 5 AND id < 1000"), ["2"]);
    assert_eq!(db.rows("SELECT id FROM uq WHERE a = 5 AND b < 0 ORDER BY id"), ["5", "505"]);
    db.rows("VACUUM uq");
    assert_eq!(db.rows("DELETE FROM uq WHERE a = 7"), ["6"]);
    let merge = "MERGE INTO uq USING (VALUES (9), (777)) AS s(k) ON uq.a = s.k WHEN MATCHED THEN UPDATE SET b = uq.id
        WHEN NOT MATCHED THEN INSERT (id, a) VALUES (9000 + s.k, s.k)";
    assert_eq!(db.rows(merge), ["7"]);
    assert_eq!(db.rows("SELECT count(*), count(b) FROM uq WHERE a = 9"), ["6 6"]);
    assert_eq!(db.rows("INSERT INTO uq VALUES (10001, 11, NULL), (10002, 11, NULL)"), ["2"], "NULL is no value twice");
    db.fails("INSERT INTO uq VALUES (10003, 9, 9)", "is there already");
    db.rows("VACUUM uq");
    assert_eq!(db.rows("SELECT count(*) FROM uq WHERE a = 11"), ["8"]);
    let scans = Db::open_with(dir.path(), plinth_format::Access::Scan);
    assert_eq!(scans.rows("SELECT count(*) FROM uq WHERE a = 11"), ["8"]);
    assert_eq!(found(&scans, "SELECT id FROM uq WHERE a = 11"), 0, "no index is asked");
    assert!(found(&db, "SELECT id FROM uq WHERE a = 11") > 0);
}

#[test]
fn text_that_differs_early_is_found_by_an_index() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path());
    for len in [12, 16] {
        let text = format!("substr(to_hex((i + 1) * 2654435761 * 97 % 1000000000039) || 'abcdefabcdef', 1, {len})");
        db.rows(&format!("CREATE TABLE t{len} (id BIGINT PRIMARY KEY, t TEXT)"));
        db.rows(&format!("INSERT INTO t{len} SELECT i, {text} FROM range(0, 5000) AS r(i)"));
        db.rows(&format!("CREATE INDEX ON t{len} (t); VACUUM t{len}"));
        let all = format!("SELECT id, t FROM t{len} WHERE id % 113 = 0 ORDER BY id");
        for row in db.rows(&all) {
            let (id, text) = row.split_once(' ').unwrap();
            let of = format!("SELECT id FROM t{len} WHERE t = '{text}'");
            assert_eq!(db.rows(&of), [id], "{of}");
        }
        assert!(found(&db, &format!("SELECT id FROM t{len} WHERE t = 'none' OR t = '0'")) == 0);
        let verified = plinth_rowstore::Table::verify(dir.path().join(format!("t{len}")), 2, &Default::default());
        assert!(verified.unwrap().problems.is_empty());
    }
}
