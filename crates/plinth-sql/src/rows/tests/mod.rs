//! Statements against what they should do.

use std::path::Path;

use arrow_array::RecordBatch;
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::common::ScalarValue;
use futures::StreamExt;
use plinth_datafusion::OpenTables;

use crate::runtime::STACK;
use crate::{Params, Session, SessionOptions, parse};

mod abandoned;
mod alter;
mod attach;
mod by_key;
mod counted;
mod created;
mod deep;
mod definitions;
mod determined;
mod first;
mod histories;
mod in_order;
mod indexes;
mod joins;
mod kept;
mod little;
mod native;
mod numbers;
mod order;
mod ordered;
mod places;
mod planning;
mod prepared;
mod random;
mod returning;
mod rules;
mod sequences;
mod shared;
mod sorts;
mod subqueries;
mod windows;

/// A session of a folder, and a thread to run it.
struct Db {
    runtime: tokio::runtime::Runtime,
    session: Session,
}

impl Db {
    fn open(folder: &Path) -> Self {
        Self::open_with(folder, plinth_format::Access::default())
    }

    fn open_with(folder: &Path, access: plinth_format::Access) -> Self {
        // What is allocated is counted for the process, and tests run side by side in one.
        Self::open_within(folder, access, 8 << 30)
    }

    fn open_within(folder: &Path, access: plinth_format::Access, memory: u64) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_stack_size(STACK)
            .enable_all()
            .build()
            .unwrap();
        let options =
            SessionOptions { db: Some(folder.to_path_buf()), memory, threads: 2, access, ..SessionOptions::default() };
        Self { runtime, session: Session::new(&options).unwrap() }
    }

    /// A session that writes to the tables of others, which share `tables`.
    fn sharing(folder: &Path, tables: &OpenTables) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().thread_stack_size(STACK).enable_all().build().unwrap();
        let (db, tables) = (Some(folder.to_path_buf()), tables.clone());
        let session = Session::new(&SessionOptions { db, tables, threads: 2, ..SessionOptions::default() }).unwrap();
        Self { runtime, session }
    }

    /// The rows of the last of some statements, a text each.
    fn run(&self, sql: &str) -> Result<Vec<String>, String> {
        self.run_with(sql, &[])
    }

    fn run_with(&self, sql: &str, params: &[(&str, &str)]) -> Result<Vec<String>, String> {
        Ok(self.batches_with(sql, params)?.iter().flat_map(texts).collect())
    }

    fn batches(&self, sql: &str) -> Result<Vec<RecordBatch>, String> {
        self.batches_with(sql, &[])
    }

    fn batches_with(&self, sql: &str, params: &[(&str, &str)]) -> Result<Vec<RecordBatch>, String> {
        let params = Params::new(params.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let mut rows = Vec::new();
        for statement in parse(sql).map_err(|e| e.to_string())? {
            let work = async {
                let mut stream = self.session.execute_with(statement, &params).await.map_err(|e| e.to_string())?;
                let mut batches = Vec::new();
                while let Some(batch) = stream.next().await {
                    batches.push(batch.map_err(|e| crate::error::SqlError::from(e).to_string())?);
                }
                Ok::<_, String>(batches)
            };
            rows = self.runtime.block_on(work)?;
        }
        Ok(rows)
    }

    /// The rows, in an order of their texts, or the error.
    fn sorted(&self, sql: &str) -> Result<Vec<String>, String> {
        let mut rows = self.run(sql)?;
        rows.sort();
        Ok(rows)
    }

    fn rows(&self, sql: &str) -> Vec<String> {
        self.run(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    fn fails(&self, sql: &str, with: &str) {
        match self.run(sql) {
            Ok(rows) => panic!("{sql}: {rows:?}"),
            Err(error) => assert!(error.contains(with), "{sql}: {error}"),
        }
    }

    fn explain(&self, sql: &str) -> String {
        self.rows(&format!("EXPLAIN {sql}")).join("\n")
    }
}

fn texts(batch: &RecordBatch) -> Vec<String> {
    let cell = |column: &arrow_array::ArrayRef, row| match column.is_null(row) {
        true => "-".to_owned(),
        false => array_value_to_string(column, row).unwrap(),
    };
    (0..batch.num_rows())
        .map(|row| batch.columns().iter().map(|column| cell(column, row)).collect::<Vec<_>>().join(" "))
        .collect()
}

fn people() -> (tempfile::TempDir, Db) {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path());
    db.rows("CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT NOT NULL, n INT)");
    assert_eq!(db.rows("INSERT INTO t VALUES (1, 'a', 10), (2, 'b', NULL), (3, 'c', 30)"), ["3"]);
    (dir, db)
}

const ALL: &str = "SELECT * FROM t ORDER BY id";

#[test]
fn the_four_shapes_that_lose_their_filters_touch_only_their_rows() {
    for merged in [false, true] {
        let (_dir, db) = people();
        if merged {
            db.rows("VACUUM t");
        }
        assert_eq!(db.rows("DELETE FROM t WHERE false"), ["0"]);
        assert_eq!(db.rows("UPDATE t SET n = 0 WHERE false"), ["0"]);
        assert_eq!(db.rows("UPDATE t SET n = 11 WHERE id IN (SELECT min(id) FROM t)"), ["1"]);
        assert_eq!(db.rows(ALL), ["1 a 11", "2 b -", "3 c 30"]);
        assert_eq!(db.rows("DELETE FROM t WHERE EXISTS (SELECT 1 FROM t AS u WHERE u.id = t.id + 2)"), ["1"]);
        assert_eq!(db.rows(ALL), ["2 b -", "3 c 30"]);
        assert_eq!(db.rows("DELETE FROM t WHERE id IN (SELECT n / 10 FROM t)"), ["1"]);
        assert_eq!(db.rows(ALL), ["2 b -"]);
        db.rows("INSERT INTO t SELECT id + 10, name, n FROM t");
        assert_eq!(db.rows("DELETE FROM t ORDER BY id DESC LIMIT 1"), ["1"]);
        assert_eq!(db.rows(ALL), ["2 b -"]);
        assert_eq!(db.rows("DELETE FROM t WHERE n NOT IN (1, 2)"), ["0"], "NULL is not known to be another");
        assert_eq!(db.rows("DELETE FROM t"), ["1"]);
        assert_eq!(db.rows("UPDATE t SET n = 1"), ["0"]);
        assert_eq!(db.rows("SELECT count(*), min(id) FROM t"), ["0 -"]);
    }
}

#[test]
fn conflicts_are_ignored_updated_or_errors() {
    let (_dir, db) = people();
    db.fails("INSERT INTO t VALUES (7, 'x', 1), (1, 'x', 1)", "the key 1 is there already");
    db.fails("INSERT INTO t VALUES (7, 'x', 1), (7, 'y', 1)", "the key 7");
    assert_eq!(db.rows("INSERT INTO t VALUES (7, 'x', 1), (1, 'x', 1), (7, 'y', 1) ON CONFLICT DO NOTHING"), ["1"]);
    let update = "ON CONFLICT (id) DO UPDATE SET n = coalesce(t.n, 0) + excluded.n, name = excluded.name || t.name";
    assert_eq!(db.rows(&format!("INSERT INTO t VALUES (1, 'x', 5), (2, 'x', 5), (8, 'n', 0) {update}")), ["3"]);
    assert_eq!(db.rows(ALL), ["1 xa 15", "2 xb 5", "3 c 30", "7 x 1", "8 n 0"]);
    assert_eq!(db.rows(&format!("INSERT INTO t VALUES (1, 'y', 5), (3, 'y', 5) {update} WHERE t.n > 20")), ["1"]);
    assert_eq!(db.rows("SELECT * FROM t WHERE id IN (1, 3) ORDER BY id"), ["1 xa 15", "3 yc 35"]);
    db.fails(&format!("INSERT INTO t VALUES (1, 'y', 5), (1, 'z', 5) {update}"), "more than once");
    db.fails(&format!("INSERT INTO t VALUES (99, 'y', 5), (99, 'z', 5) {update}"), "the key 99");
    db.fails("INSERT INTO t VALUES (1, 'x', 1) ON CONFLICT (name) DO NOTHING", "the primary key is (id)");
}

#[test]
fn updates_take_values_from_other_tables_and_swap_keys() {
    let (_dir, db) = people();
    let s = "(VALUES (1, 100), (3, 300), (4, 400)) AS s(k, m)";
    assert_eq!(db.rows(&format!("UPDATE t AS x SET n = s.m + x.id FROM {s} WHERE x.id = s.k")), ["2"]);
    assert_eq!(db.rows(ALL), ["1 a 101", "2 b -", "3 c 303"]);
    let twice = "(VALUES (1, 1), (1, 2)) AS s(k, m)";
    db.fails(&format!("UPDATE t SET n = s.m FROM {twice} WHERE t.id = s.k"), "changed more than once");
    assert_eq!(db.rows("UPDATE t SET id = 4 - id"), ["3"]);
    assert_eq!(db.rows(ALL), ["1 c 303", "2 b -", "3 a 101"]);
    db.fails("UPDATE t SET id = 2 WHERE id = 1", "two rows would have the key 2");
    assert_eq!(db.rows("UPDATE t SET (n, name) = (1, 'z') WHERE id = 2"), ["1"]);
    assert_eq!(db.rows("UPDATE t SET n = (SELECT max(n) FROM t AS u WHERE u.id = t.id + 1) WHERE id < 3"), ["2"]);
    assert_eq!(db.rows(ALL), ["1 c 1", "2 z 101", "3 a 101"]);
    assert_eq!(db.rows(&format!("DELETE FROM t USING {twice} WHERE t.id = s.k")), ["1"], "a row goes once");
}

#[test]
fn merge_takes_the_first_clause_that_applies() {
    let (_dir, db) = people();
    let merge = "MERGE INTO t USING (VALUES (1, 0), (2, 5), (9, 9), (10, 0)) AS s(k, m) ON t.id = s.k
        WHEN MATCHED AND s.m = 0 THEN DELETE
        WHEN MATCHED THEN UPDATE SET n = 100 / s.m
        WHEN NOT MATCHED AND s.m > 0 THEN INSERT (id, name, n) VALUES (s.k, 'new', 100 / s.m)";
    assert_eq!(db.rows(merge), ["3"]);
    assert_eq!(db.rows(ALL), ["2 b 20", "3 c 30", "9 new 11"]);
    let by_source = "MERGE INTO t AS x USING t AS s ON x.id = s.id AND s.id = 2
        WHEN MATCHED THEN UPDATE SET n = 0
        WHEN NOT MATCHED BY SOURCE AND x.id = 3 THEN DELETE
        WHEN NOT MATCHED BY SOURCE THEN UPDATE SET name = 'left'";
    assert_eq!(db.rows(by_source), ["3"]);
    assert_eq!(db.rows(ALL), ["2 b 0", "9 left 11"]);
    let twice = "MERGE INTO t USING (VALUES (2), (2)) AS s(k) ON t.id = s.k WHEN MATCHED THEN DELETE";
    db.fails(twice, "changed more than once");
    db.fails(
        "MERGE INTO t USING t AS s ON true WHEN MATCHED THEN INSERT (id) VALUES (1)",
        "not allowed in a MATCHED merge clause",
    );
}

#[test]
fn a_transaction_sees_its_own_changes_and_the_first_committer_wins() {
    let (dir, db) = people();
    db.rows("BEGIN; DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (1, 'again', 1), (4, 'd', 4)");
    assert_eq!(db.rows("SELECT count(*), sum(id) FROM t"), ["4 10"]);
    assert_eq!(db.rows("SELECT name FROM t WHERE id = 1"), ["again"]);
    assert_eq!(db.rows("UPDATE t SET n = n + 1 WHERE id IN (1, 4)"), ["2"]);
    db.fails("UPDATE t SET id = 5", "two rows would have the key 5");
    assert_eq!(db.rows("INSERT INTO t VALUES (4, 'd', 9) ON CONFLICT DO UPDATE SET n = t.n + excluded.n"), ["1"]);
    assert_eq!(db.rows(ALL), ["1 again 2", "2 b -", "3 c 30", "4 d 14"], "a statement that fails changes nothing");
    db.fails("BEGIN", "open already");
    db.fails("CREATE TABLE u (a INT)", "COMMIT first");
    db.fails("VACUUM t", "COMMIT first");
    db.rows("ROLLBACK");
    assert_eq!(db.rows(ALL), ["1 a 10", "2 b -", "3 c 30"]);
    db.fails("COMMIT", "no transaction");

    // Another session of this process, with the same table.
    let table = db.session.stores.writer(&dir.path().join("t").canonicalize().unwrap()).unwrap();
    db.rows("BEGIN; UPDATE t SET n = 1 WHERE id = 1");
    table.delete(&[1_i64.into()]).unwrap();
    db.fails("COMMIT", "changed by another transaction");
    assert_eq!(db.rows(ALL), ["2 b -", "3 c 30"]);
    // A snapshot stays as it is.
    db.rows("BEGIN");
    assert_eq!(db.rows("SELECT count(*) FROM t"), ["2"]);
    table.delete(&[2_i64.into()]).unwrap();
    assert_eq!(db.rows("SELECT count(*) FROM t"), ["2"]);
    db.rows("COMMIT");
    assert_eq!(db.rows("SELECT count(*) FROM t"), ["1"]);
    db.rows("CREATE TABLE u (a INT); BEGIN; INSERT INTO u VALUES (1)");
    db.fails("DELETE FROM t", "a transaction changes one table");
}

#[test]
fn keys_are_looked_up_and_other_filters_go_into_the_scan() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path());
    db.rows("CREATE TABLE t (a INT, b TEXT, n INT, PRIMARY KEY (a, b))");
    db.rows("INSERT INTO t SELECT value % 10, 'k' || (value / 10), value FROM range(0, 20000); VACUUM t");
    db.rows("INSERT INTO t VALUES (3, 'new', 1); DELETE FROM t WHERE a = 3 AND b = 'k5'");
    let point = "SELECT n FROM t WHERE b = 'k7' AND a = 3 AND n > 0";
    assert!(!db.explain(point).contains("file_type=plinth"), "{}", db.explain(point));
    assert_eq!(db.rows(point), ["73"]);
    assert_eq!(
        db.rows("SELECT n FROM t WHERE a IN (3, 4) AND b IN ('k5', 'new', 'k7') ORDER BY n"),
        ["1", "54", "73", "74"]
    );
    assert_eq!(db.run_with("SELECT n FROM t WHERE a = $a AND b = $b", &[("a", "3"), ("b", "new")]).unwrap(), ["1"]);
    assert_eq!(db.rows("SELECT count(*) FROM t WHERE a = 3 AND b = NULL"), ["0"]);
    let scan = "SELECT count(*) FROM t WHERE a = 3 AND n < 1000";
    assert!(db.explain(scan).contains("predicate=a@"), "{}", db.explain(scan));
    assert_eq!(db.rows(scan), ["100"]);
    // From metadata, and right nevertheless.
    let whole = "SELECT count(*), min(n), max(n) FROM t";
    assert_eq!(db.rows(whole), ["20000 0 19999"]);
    db.rows("DELETE FROM t WHERE n IN (0, 19999)");
    assert_eq!(db.rows(whole), ["19998 1 19998"]);
    db.rows("PREPARE p AS SELECT n FROM t WHERE a = $1 AND b = $2");
    assert_eq!(db.rows("EXECUTE p(3, 'new')"), ["1"]);
    db.rows("UPDATE t SET n = 2 WHERE b = 'new'");
    assert_eq!(db.rows("EXECUTE p(3, 'new')"), ["2"]);
}

#[test]
fn changes_are_prepared_and_take_parameters() {
    let (_dir, db) = people();
    db.rows("PREPARE up(INT, BIGINT) AS UPDATE t SET n = $1 WHERE id = $2");
    assert_eq!(db.rows("EXECUTE up(7, 1)"), ["1"]);
    assert_eq!(db.rows("EXECUTE up(8, 4)"), ["0"]);
    db.fails("EXECUTE up(7)", "expects 2 parameters, but 1 provided");
    db.rows("PREPARE add AS INSERT INTO t VALUES ($1, $2, NULL); EXECUTE add(4, 'd'); DEALLOCATE up");
    db.fails("EXECUTE up(7, 1)", "up");
    let params = [("id", "5"), ("1", "5"), ("2", "e"), ("n", "6")];
    assert_eq!(db.run_with("INSERT INTO t VALUES ($1, $2, 0)", &params).unwrap(), ["1"]);
    assert_eq!(db.run_with("UPDATE t SET n = $n WHERE id = $id", &params).unwrap(), ["1"]);
    assert_eq!(db.rows(ALL), ["1 a 7", "2 b -", "3 c 30", "4 d -", "5 e 6"]);
    assert_eq!(db.run_with("DELETE FROM t WHERE id = $id", &params).unwrap(), ["1"]);
    db.fails("EXPLAIN DELETE FROM t", "EXPLAIN a SELECT");
    assert_eq!(db.rows("SELECT count(*) FROM t"), ["4"]);
}

#[test]
fn values_of_programs_are_stored_as_what_their_column_holds() {
    let (_dir, db) = people();
    let run = |sql: &str, values: Vec<ScalarValue>| {
        let values = values.into_iter().enumerate().map(|(at, value)| ((at + 1).to_string(), value));
        let params = Params::of_values(values);
        let statement = parse(sql).unwrap().remove(0);
        db.runtime.block_on(async { db.session.execute_with(statement, &params).await.map(drop) })
    };
    let text = |text: &str| ScalarValue::Utf8(Some(text.to_owned()));
    let int = |n| ScalarValue::Int64(Some(n));
    run("INSERT INTO t VALUES ($1, $2, $3)", vec![int(7), text("g"), ScalarValue::Null]).unwrap();
    run("INSERT INTO t VALUES ($1, $2, $3)", vec![ScalarValue::Float64(Some(8.0)), text("h"), int(80)]).unwrap();
    let refused = run("INSERT INTO t VALUES ($1, $2, $3)", vec![int(9), text("i"), int(1 << 40)]).unwrap_err();
    assert!(refused.to_string().contains("$3 is 1099511627776, which is no"), "{refused}");
    run("UPDATE t SET name = $1, n = $2 WHERE id = $3", vec![text("G"), int(1), int(7)]).unwrap();
    run("DELETE FROM t WHERE id < $1", vec![ScalarValue::Float64(Some(6.5))]).unwrap();
    assert_eq!(db.rows(ALL), ["7 G 1", "8 h 80"]);
}

#[test]
fn bad_statements_say_what_is_wrong() {
    let (_dir, db) = people();
    db.fails("INSERT INTO t (id, n) VALUES (5, 1)", "column \"name\" can't be NULL");
    db.fails("UPDATE t SET name = NULL WHERE id = 1", "column \"name\" can't be NULL");
    db.fails("INSERT INTO t VALUES (NULL, 'x', 1)", "column \"id\" can't be NULL");
    db.fails("INSERT INTO t VALUES (5, 'x', 'many')", "many");
    db.fails("UPDATE t SET n = 'many'", "many");
    db.fails("UPDATE t SET nn = 1", "SET nn: there is no such column");
    db.fails("UPDATE t SET n = 1, n = 2", "set once");
    db.fails("INSERT INTO t VALUES (5, 'x')", "where 3 are expected");
    db.fails("DELETE FROM nowhere", "nowhere");
    db.fails("CREATE TABLE u (a DOUBLE PRIMARY KEY)", "a key can't be of type");
    db.fails("CREATE TABLE t (a INT)", "already exists");
    db.fails("VACUUM nowhere", "is no writable table");
    assert_eq!(db.rows(ALL), ["1 a 10", "2 b -", "3 c 30"]);
}

#[test]
fn tables_are_made_of_rows_and_go_with_them() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path());
    assert_eq!(
        db.rows("CREATE TABLE a (PRIMARY KEY (id)) AS SELECT value AS id, 'x' AS s FROM range(0, 1000)"),
        ["1000"]
    );
    assert_eq!(db.rows("UPDATE a SET s = 'y' WHERE id = 500"), ["1"]);
    db.fails("CREATE TABLE b (PRIMARY KEY (id)) AS SELECT 1 AS id UNION ALL SELECT 1", "the key 1");
    assert!(!dir.path().join("b").exists());
    assert_eq!(db.rows("CREATE TABLE plain AS SELECT 1 AS x"), ["1"]);
    db.fails("UPDATE plain SET x = 2", "can't be changed in place");
    assert_eq!(db.rows("CREATE TABLE IF NOT EXISTS a (z INT)"), Vec::<String>::new());
    assert_eq!(db.rows("SELECT count(*), count(DISTINCT s) FROM 'a' WHERE id < 999"), ["999 2"]);
    let path = dir.path().join("a");
    assert_eq!(db.rows(&format!("SELECT count(*) FROM '{}'", path.display())), ["1000"]);
    assert_eq!(db.rows(&format!("DELETE FROM '{}' WHERE id < 10", path.display())), ["10"]);
    // One that only reads sees what is committed; a second that writes is told.
    let other = Db::open(dir.path());
    assert_eq!(other.rows("SELECT count(*) FROM a"), ["990"]);
    other.fails("DELETE FROM a", "is open for writing in another process");
    other.rows("BEGIN");
    assert_eq!(other.rows("SELECT count(*) FROM a"), ["990"]);
    db.rows("DELETE FROM a WHERE id = 10");
    assert_eq!(other.rows("SELECT count(*) FROM a"), ["990"]);
    other.rows("COMMIT");
    assert_eq!(other.rows("SELECT count(*) FROM a"), ["989"]);
    assert_eq!(db.rows("TRUNCATE TABLE a"), ["989"]);
    assert_eq!(other.rows("SELECT count(*) FROM a"), ["0"]);
    other.fails("DROP TABLE a", "is open for writing in another process");
    db.rows("INSERT INTO a VALUES (1, 's'); DROP TABLE a");
    assert!(!path.exists());
    db.fails("SELECT * FROM a", "no table");
    db.rows("CREATE TABLE a (z INT); INSERT INTO a VALUES (1), (1)");
    assert_eq!(db.rows("SELECT * FROM a"), ["1", "1"]);
    assert_eq!(db.rows("DELETE FROM a LIMIT 1"), ["1"]);
    assert_eq!(db.rows("SELECT * FROM a"), ["1"]);
}

#[test]
fn many_rows_go_to_segments() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path());
    db.rows("CREATE TABLE t (id BIGINT PRIMARY KEY, s TEXT)");
    let rows = "INSERT INTO t SELECT value, 'some text that takes room ' || value FROM range(0, 500000)";
    assert_eq!(db.rows(rows), ["500000"]);
    assert_eq!(db.rows("SELECT count(*), max(id) FROM t"), ["500000 499999"]);
    db.fails("INSERT INTO t SELECT 999999 - value, 'x' FROM range(0, 999999)", "is there already");
    assert_eq!(db.rows("SELECT count(*) FROM t"), ["500000"]);
}

#[test]
fn the_zeros_of_floats_are_one_in_lists_and_joins() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path());
    db.rows("CREATE TABLE f (id INT, x DOUBLE); INSERT INTO f VALUES (1, 0.0), (2, -0.0), (3, 1.0), (4, NULL)");
    for merged in [false, true] {
        if merged {
            db.rows("VACUUM f");
        }
        for zero in ["0.0", "-0.0", "-(0.0)", "CAST('-0' AS DOUBLE)", "(0.0 * -1)"] {
            let join = format!("SELECT count(*) FROM f JOIN (VALUES ({zero}), (4.0)) AS few (k) ON f.x = few.k");
            assert_eq!(db.rows(&join), ["2"], "{join}");
            let list = format!("SELECT count(*) FROM f WHERE x IN ({zero}, 4.0, 5.0, 6.0, 7.0)");
            assert_eq!(db.rows(&list), ["2"], "{list}");
            let list = "SELECT count(*) FROM f WHERE x IN (0, 4, 5, 6, 7)".to_owned();
            assert_eq!(db.rows(&list), ["2"], "{list}");
            let list = format!("SELECT count(*) FROM f WHERE x IN (4.0, 5.0, 6.0) OR x = {zero}");
            assert_eq!(db.rows(&list), ["2"], "{list}");
            let list = format!("SELECT count(*) FROM f WHERE x NOT IN ({zero}, 4.0, 5.0, 6.0, 7.0)");
            assert_eq!(db.rows(&list), ["1"], "{list}");
            let within =
                format!("SELECT count(*) FROM f WHERE x IN (SELECT k FROM (VALUES ({zero}), (4.0)) AS few (k))");
            assert_eq!(db.rows(&within), ["2"], "{within}");
            for (condition, rows) in [
                ("x = 0.0", "2"),
                ("x >= 0.0", "2"),
                ("x <= 0.0", "2"),
                ("x > 0.0", "0"),
                ("x < 0.0", "0"),
                ("x <> 0.0", "0"),
                ("0.0 <= x", "2"),
                ("x IN (0.0, 4.0, 5.0, 6.0, 7.0)", "2"),
            ] {
                let both = format!("SELECT count(*) FROM f WHERE x = {zero} AND {condition}");
                assert_eq!(db.rows(&both), [rows], "{both}");
            }
            let from = format!("SELECT count(*) FROM f WHERE x > {zero} AND x >= 0.0");
            assert_eq!(db.rows(&from), ["1"], "{from}");
            let case = format!("SELECT count(CASE x WHEN {zero} THEN 1 END), count(nullif(x, {zero})) FROM f");
            assert_eq!(db.rows(&case), ["2 1"], "{case}");
        }
    }
}

/// A transaction sees a snapshot: more than REPEATABLE READ asks for, less than SERIALIZABLE.
#[test]
fn transactions_take_the_modes_that_they_hold() {
    let (_dir, db) = people();
    for mode in ["ISOLATION LEVEL READ COMMITTED", "ISOLATION LEVEL REPEATABLE READ, READ WRITE", "READ WRITE"] {
        db.rows(&format!("BEGIN {mode}; INSERT INTO t VALUES (70, 'x', 1); ROLLBACK"));
        assert_eq!(db.rows("SELECT count(*) FROM t WHERE id = 70"), ["0"]);
    }
    for mode in ["ISOLATION LEVEL SERIALIZABLE", "READ ONLY"] {
        db.fails(&format!("BEGIN {mode}"), "not supported; a transaction reads what there was");
    }
}
