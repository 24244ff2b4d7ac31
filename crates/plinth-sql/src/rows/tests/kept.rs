//! Views and schemas that a folder keeps, and what lasts as long as a session.

use super::deep::on_its_stack;
use super::{Db, people};

#[test]
fn views_and_schemas_are_there_in_the_next_session() {
    let (dir, db) = people();
    db.rows("CREATE VIEW few AS SELECT id, name FROM t WHERE id < 3");
    db.rows("CREATE VIEW fewer (k, \"My N\") AS SELECT id, upper(name) FROM few ORDER BY id LIMIT 1");
    db.rows("CREATE SCHEMA s; CREATE TABLE s.u (a INT PRIMARY KEY, b TEXT); INSERT INTO s.u VALUES (1, 'x')");
    db.rows("CREATE TABLE s.w AS SELECT 7 AS c; CREATE VIEW s.v AS SELECT a + c AS d FROM s.u, s.w");
    drop(db);
    let db = Db::open(dir.path());
    assert_eq!(db.rows("SELECT * FROM few ORDER BY id"), ["1 a", "2 b"]);
    assert_eq!(db.rows("SELECT k, \"My N\" FROM fewer"), ["1 A"]);
    assert_eq!(db.rows("SELECT * FROM s.u JOIN s.v ON a = d - 7"), ["1 x 8"]);
    assert_eq!(db.rows("SELECT * FROM datafusion.s.v"), ["8"]);
    // What becomes of the tables is seen.
    db.rows("UPDATE t SET name = 'z' WHERE id = 1; UPDATE s.u SET a = 3; DELETE FROM s.u WHERE a = 4");
    assert_eq!(db.rows("SELECT name FROM few WHERE id = 1"), ["z"]);
    assert_eq!(db.rows("SELECT d FROM s.v"), ["10"]);
    db.rows("DROP VIEW few; DROP TABLE s.u");
    let db = Db::open(dir.path());
    db.fails("SELECT * FROM few", "no table \"few\"");
    db.fails("SELECT * FROM fewer", "the view fewer can't be read");
    db.fails("SELECT * FROM s.v", "the view s.v can't be read");
    db.fails("SELECT * FROM s.u", "s.u");
}

#[test]
fn sessions_see_what_others_define() {
    let (dir, db) = people();
    let other = Db::open(dir.path());
    db.rows("CREATE VIEW v AS SELECT count(*) AS n FROM t");
    assert_eq!(other.rows("SELECT n FROM v"), ["3"]);
    other.rows("CREATE OR REPLACE VIEW v AS SELECT max(id) AS n FROM t; CREATE SCHEMA s");
    assert_eq!(db.rows("SELECT n + 1 FROM v"), ["4"]);
    db.rows("CREATE VIEW s.v AS SELECT 5 AS n");
    assert_eq!(other.rows("SELECT n FROM s.v"), ["5"]);
    other.rows("DROP SCHEMA s CASCADE");
    db.fails("SELECT n FROM s.v", "s.v");
    db.fails("CREATE VIEW s.v AS SELECT 1", "s");
}

#[test]
fn names_are_taken_once_and_dropped_by_what_they_are() {
    let (dir, db) = people();
    db.rows("CREATE VIEW v AS SELECT 1 AS a");
    db.fails("CREATE VIEW v AS SELECT 2 AS a", "CREATE OR REPLACE VIEW");
    db.fails("CREATE VIEW t AS SELECT 2 AS a", "there is a table of this name");
    db.fails("CREATE OR REPLACE VIEW t AS SELECT 2 AS a", "there is a table of this name");
    db.fails("CREATE TABLE v (a INT)", "there is a view of this name");
    db.fails("CREATE OR REPLACE TABLE v AS SELECT 1 AS a", "there is a view of this name");
    db.rows("CREATE VIEW IF NOT EXISTS v AS SELECT 2 AS a");
    assert_eq!(db.rows("SELECT a FROM V"), ["1"]);
    db.fails("DROP TABLE v", "DROP VIEW");
    db.fails("DROP TABLE IF EXISTS v", "DROP VIEW");
    db.fails("DROP VIEW t", "DROP TABLE");
    db.fails("DROP VIEW IF EXISTS t", "DROP TABLE");
    db.fails("DROP VIEW nope", "no such view");
    db.rows("DROP VIEW IF EXISTS nope; CREATE VIEW w AS SELECT 1 AS a; DROP VIEW v, w");
    assert_eq!(db.rows("SELECT count(*) FROM information_schema.tables WHERE table_name IN ('v', 'w')"), ["0"]);

    db.rows("CREATE SCHEMA s; CREATE SCHEMA IF NOT EXISTS s");
    db.fails("CREATE SCHEMA s", "already exists");
    db.fails("CREATE SCHEMA t", "there is a table of this name");
    db.fails("CREATE TABLE s (a INT)", "there is a schema of this name");
    db.fails("CREATE SCHEMA \"a/b\"", "can't be that of a folder");
    db.fails("CREATE SCHEMA public", "taken");
    db.rows("CREATE TABLE s.a AS SELECT 1 AS x; CREATE VIEW s.b AS SELECT 2 AS x");
    db.fails("DROP SCHEMA s", "CASCADE");
    db.fails("DROP SCHEMA s CASCADE", "delete it yourself");
    assert_eq!(db.rows("SELECT * FROM s.a, s.b"), ["1 2"]);
    std::fs::remove_file(dir.path().join("s/a.plinth")).unwrap();
    db.rows("CREATE TABLE s.c (x INT); DROP SCHEMA s CASCADE; DROP SCHEMA IF EXISTS s");
    db.fails("DROP SCHEMA s", "no such schema");
    assert!(!dir.path().join("s").exists());
    db.rows("CREATE SCHEMA s");
    db.fails("SELECT * FROM s.b", "s.b");
    db.fails("BEGIN; CREATE VIEW q AS SELECT 1", "COMMIT first");
    db.fails("CREATE SCHEMA q", "COMMIT first");
    db.fails("DROP VIEW q", "COMMIT first");
}

#[test]
fn a_view_means_what_it_meant_when_it_was_made() {
    let (dir, db) = people();
    db.rows("CREATE SCHEMA s; CREATE TABLE s.t (id BIGINT); INSERT INTO s.t VALUES (99)");
    db.rows("CREATE VIEW v AS SELECT max(id) AS n FROM t");
    db.rows("SET datafusion.catalog.default_schema = 's'; CREATE VIEW public.w AS SELECT max(id) AS n FROM t");
    assert_eq!(db.rows("SELECT v.n, w.n FROM public.v, public.w"), ["3 99"]);
    db.rows("SET datafusion.catalog.default_schema = 'public'");
    assert_eq!(db.rows("SELECT v.n, w.n FROM v, w"), ["3 99"]);
    // A table of the session does not get into a view that is kept.
    db.rows("CREATE TEMP TABLE t AS SELECT 1000 AS id");
    assert_eq!(db.rows("SELECT max(t.id), max(v.n) FROM t, v"), ["1000 3"]);
    db.rows("CREATE TEMP TABLE own AS SELECT 1 AS id");
    db.fails("CREATE VIEW x AS SELECT * FROM own", "CREATE TEMP VIEW");
    db.rows("CREATE TEMP VIEW x AS SELECT * FROM own");
    assert_eq!(db.rows("SELECT * FROM x"), ["1"]);
    // Files by their paths from the root.
    let file = dir.path().join("f.csv");
    std::fs::write(&file, "a\n5\n").unwrap();
    db.rows(&format!("CREATE VIEW y AS SELECT a FROM '{0}' UNION ALL SELECT a FROM read_csv('{0}')", file.display()));
    assert_eq!(Db::open(dir.path()).rows("SELECT * FROM y"), ["5", "5"]);
    db.rows("DROP TABLE t; DROP VIEW x");
    assert_eq!(db.rows("SELECT max(id) FROM t"), ["3"]);
}

#[test]
fn views_that_read_themselves_are_refused() {
    on_its_stack(|| {
        let (_dir, db) = people();
        db.fails("CREATE VIEW v AS SELECT * FROM v", "v");
        db.rows("CREATE VIEW a AS SELECT 1 AS x; CREATE VIEW b AS SELECT x + 1 AS x FROM a");
        db.fails("CREATE OR REPLACE VIEW a AS SELECT x FROM b", "can't read itself: a reads b reads a");
        assert_eq!(db.rows("SELECT x FROM b"), ["2"]);
        db.rows("CREATE VIEW v0 AS SELECT 1 AS x");
        let chain = (1..100).map(|i| db.run(&format!("CREATE VIEW v{i} AS SELECT x + 1 AS x FROM v{}", i - 1)));
        let made = chain.take_while(|made| made.is_ok()).count();
        assert_eq!(db.rows(&format!("SELECT x FROM v{made}")), [(made + 1).to_string()]);
        db.fails(&format!("CREATE VIEW v{} AS SELECT x FROM v{made}", made + 1), "read one another in a row");
    });
}

#[test]
fn views_keep_the_digits_and_the_habits_of_their_text() {
    let (dir, db) = people();
    db.rows(
        "CREATE VIEW v AS FROM t SELECT id, n * 0.1 AS d, year(DATE '2024-05-06') AS y, '\t\n\\' AS s ORDER BY ALL",
    );
    let direct = db.rows("FROM t SELECT id, n * 0.1 AS d, year(DATE '2024-05-06') AS y, '\t\n\\' AS s ORDER BY ALL");
    assert_eq!(Db::open(dir.path()).rows("SELECT * FROM v ORDER BY id"), direct);
    assert_eq!(db.rows("SELECT x + 0.1 FROM (SELECT 9007199254740993 + 0.1 AS x)"), {
        db.rows("CREATE VIEW exact AS SELECT 9007199254740993 + 0.1 AS x");
        Db::open(dir.path()).rows("SELECT x + 0.1 FROM exact")
    });
    db.fails("CREATE VIEW p AS SELECT $1 AS x", "takes no parameters");
    db.fails("CREATE TEMP VIEW p AS SELECT id FROM t WHERE id = $id", "takes no parameters");
    db.rows("CREATE VIEW twice AS SELECT id, id FROM t");
    assert_eq!(db.rows("SELECT id_1 - id FROM twice LIMIT 1"), ["0"]);
}

#[test]
fn what_is_temporary_goes_with_its_session() {
    let (dir, db) = people();
    assert_eq!(db.rows("CREATE TEMP TABLE n AS SELECT id FROM t"), ["3"]);
    db.fails("CREATE TEMP TABLE n AS SELECT 1 AS id", "OR REPLACE");
    db.rows("CREATE TEMP TABLE IF NOT EXISTS n (id INT)");
    db.rows("CREATE OR REPLACE TEMP TABLE n (id INT NOT NULL); INSERT INTO n VALUES (7)");
    db.rows("CREATE TEMPORARY VIEW m AS SELECT id + 1 AS k FROM n");
    assert_eq!(db.rows("SELECT * FROM m"), ["8"]);
    db.fails("CREATE TEMP TABLE k (id INT PRIMARY KEY)", "PRIMARY KEY");
    db.fails("CREATE TEMP TABLE k (id INT DEFAULT 5)", "DEFAULT");
    let other = Db::open(dir.path());
    other.fails("SELECT * FROM n", "no table \"n\"");
    other.fails("SELECT * FROM m", "no table \"m\"");
    db.rows("DROP TABLE n");
    db.fails("SELECT * FROM n", "no table \"n\"");
}

#[test]
fn a_key_in_memory_is_refused() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let db = Db { runtime, session: crate::Session::new(&crate::SessionOptions::default()).unwrap() };
    db.fails("CREATE TABLE t (id INT PRIMARY KEY)", "--db DIR");
    db.fails("CREATE TABLE t (id INT, UNIQUE (id))", "--db DIR");
    db.rows(
        "CREATE TABLE t (id INT NOT NULL); INSERT INTO t VALUES (1), (1); CREATE VIEW v AS SELECT count(*) AS n FROM t",
    );
    assert_eq!(db.rows("SELECT n FROM v"), ["2"]);
    db.rows("CREATE SCHEMA s; CREATE TABLE s.u AS SELECT 1 AS a; CREATE OR REPLACE VIEW v AS SELECT a AS n FROM s.u");
    assert_eq!(db.rows("SELECT n FROM v"), ["1"]);
    db.fails("CREATE TABLE t (id INT)", "exists");
    db.rows("DROP VIEW v; DROP TABLE t");
}

#[test]
fn statements_that_made_something_make_it_again() {
    let (dir, db) = people();
    db.rows("CREATE INDEX by_name ON t (name, n); CREATE VIEW v AS SELECT id AS \"Id\" FROM t");
    db.rows("CREATE TABLE o (\"at\" TIMESTAMP(3) NOT NULL, \"A b\" DECIMAL(12, 2), c TEXT[], \"order\" BYTEA) CLUSTER BY (at)");
    let other = tempfile::tempdir().unwrap();
    let copy = Db::open(other.path());
    for name in ["t", "o", "v"] {
        let made = &db.rows(&format!("SHOW CREATE TABLE {name}"))[0];
        let sql = made.strip_prefix(&format!("datafusion public {name} ")).unwrap();
        copy.rows(sql);
        assert_eq!(copy.rows(&format!("SHOW CREATE TABLE {name}"))[0], *made);
        assert_eq!(copy.rows(&format!("DESCRIBE {name}")), db.rows(&format!("DESCRIBE {name}")), "{made}");
    }
    db.rows("CREATE TABLE f AS SELECT 1 AS a");
    db.fails("SHOW CREATE TABLE f", "made of files");
    db.rows("DROP TABLE t");
    assert!(Db::open(dir.path()).rows("SHOW CREATE TABLE v")[0].contains("AS \"Id\" FROM t"));
}

#[test]
fn a_catalog_that_can_not_be_read_is_named() {
    let (dir, db) = people();
    db.rows("CREATE VIEW v AS SELECT 1 AS a");
    let path = dir.path().join("_catalog");
    let good = std::fs::read(&path).unwrap();
    std::fs::write(&path, "plinth-catalog\t9\n").unwrap();
    db.fails("SELECT * FROM v", "_catalog: a catalog of version 9");
    db.fails("SELECT * FROM t", "_catalog");
    db.fails("CREATE VIEW w AS SELECT 1 AS a", "_catalog");
    let options = crate::SessionOptions { db: Some(dir.path().to_path_buf()), ..crate::SessionOptions::default() };
    let error = crate::Session::new(&options).unwrap_err().to_string();
    assert!(error.contains("_catalog"), "{error}");
    std::fs::write(&path, &good).unwrap();
    assert_eq!(db.rows("SELECT * FROM v"), ["1"]);
}

#[test]
fn a_view_of_a_session_reads_what_is_there() {
    let files = tempfile::tempdir().unwrap();
    let file = |name: &str, rows: &str| std::fs::write(files.path().join(name), rows).unwrap();
    let (dir, kept) = people();
    let other = tempfile::tempdir().unwrap();
    for db in [kept, Db::open(other.path())] {
        file("a.csv", "x\n1\n");
        let of = format!("SELECT count(*) AS n, max(x) AS x FROM read_csv('{}/*.csv')", files.path().display());
        db.rows(&format!("CREATE TEMP VIEW v AS {of}"));
        db.rows("CREATE TEMP VIEW w (m) AS SELECT n + 1 FROM v");
        assert_eq!(db.rows("SELECT n, m FROM v, w"), ["1 2"]);
        file("b.csv", "x\n5\n6\n");
        assert_eq!(db.rows("SELECT n, x, m FROM v, w"), ["3 6 4"]);
        std::fs::remove_file(files.path().join("b.csv")).unwrap();
        // Views of views, and tables of the session.
        db.rows("CREATE TEMP TABLE own AS SELECT 7 AS x; CREATE TEMP VIEW u AS SELECT x FROM own");
        db.rows("CREATE OR REPLACE TEMP TABLE own AS SELECT 8 AS x");
        assert_eq!(db.rows("SELECT x FROM u"), ["8"]);
        db.rows("DROP TABLE own");
        db.fails("SELECT x FROM u", "the view u can't be read");
        db.rows("DROP VIEW u");
        db.fails("CREATE OR REPLACE TEMP VIEW v AS SELECT * FROM w", "a view can't read itself");
        assert_eq!(db.rows("SELECT m FROM w"), ["2"]);
        db.rows("DROP VIEW v");
        db.fails("SELECT * FROM w", "the view w can't be read");
        db.rows("DROP VIEW w");
    }
    drop(dir);
}
