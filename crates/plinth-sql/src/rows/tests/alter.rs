//! ALTER TABLE: the table has what it is told, with the rows and the rules that it had.

use datafusion::sql::sqlparser::ast::{Ident, ObjectName};

use plinth_datafusion::OpenTables;

use super::Db;

fn table() -> (tempfile::TempDir, Db) {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path());
    db.rows(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT CHECK (a > 0), \"B\" TEXT DEFAULT 'b', UNIQUE (a));
         CREATE INDEX by_b ON t (\"B\"); INSERT INTO t SELECT value, value * 2, 'n' || value FROM range(1, 1001); DELETE FROM t WHERE id > 5",
    );
    (dir, db)
}

#[test]
fn columns_are_added_dropped_renamed_and_changed() {
    let (dir, db) = table();
    db.rows("ALTER TABLE t ADD COLUMN c BIGINT; ALTER TABLE t ADD d TEXT NOT NULL DEFAULT upper('x') CHECK (d <> 'y')");
    db.rows("ALTER TABLE t ADD COLUMN IF NOT EXISTS d INT; INSERT INTO t (id, a) VALUES (6, 12)");
    assert_eq!(db.rows("SELECT * FROM t WHERE id > 4 ORDER BY id"), ["5 10 n5 - X", "6 12 b - X"]);
    db.rows("ALTER TABLE t RENAME COLUMN a TO \"A a\"; ALTER TABLE t RENAME \"B\" TO b");
    db.fails("UPDATE t SET \"A a\" = -1 WHERE id = 1", "CHECK (\"A a\" > 0) does not hold where A a is -1");
    db.fails("UPDATE t SET \"A a\" = 12 WHERE id = 1", "");
    db.rows("INSERT INTO t (id) VALUES (7); ALTER TABLE t ALTER COLUMN c TYPE DECIMAL(10, 2) USING \"A a\" / 4, ALTER id TYPE BIGINT, DROP CONSTRAINT t_d_check, DROP COLUMN d, ADD e INT DEFAULT 5") ;
    drop(db);
    let db = Db::open(dir.path());
    assert_eq!(
        db.rows("SELECT * FROM t ORDER BY id DESC"),
        [
            "7 - b - 5",
            "6 12 b 3.00 5",
            "5 10 n5 2.00 5",
            "4 8 n4 2.00 5",
            "3 6 n3 1.00 5",
            "2 4 n2 1.00 5",
            "1 2 n1 0.00 5"
        ]
    );
    assert_eq!(db.rows("SELECT id FROM t WHERE b = 'n4'"), ["4"]);
    db.fails("INSERT INTO t VALUES (7, 1, '', 0, 0)", "7");
    let made = db.rows("SHOW CREATE TABLE t").remove(0);
    assert!(
        made.contains(
            "id BIGINT NOT NULL, \"A a\" INTEGER, b VARCHAR DEFAULT 'b', c DECIMAL(10,2), e INTEGER DEFAULT 5"
        ),
        "{made}"
    );
    assert!(
        made.contains("CREATE UNIQUE INDEX t_a_key ON t (\"A a\")") && made.contains("CREATE INDEX by_b ON t (b)"),
        "{made}"
    );
    // Nothing of the work stays.
    let names = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["t"]);
}

#[test]
fn rules_change_where_they_are_kept() {
    let (dir, db) = table();
    db.rows(
        "ALTER TABLE t ALTER a SET DEFAULT 7; ALTER TABLE t ALTER \"B\" DROP DEFAULT; INSERT INTO t (id) VALUES (20)",
    );
    assert_eq!(db.rows("SELECT a, \"B\" FROM t WHERE id = 20"), ["7 -"]);
    db.fails(
        "ALTER TABLE t ADD CONSTRAINT small CHECK (a < 8)",
        "ALTER TABLE t: CHECK (a < 8) does not hold where a is ",
    );
    db.rows("ALTER TABLE t ADD CONSTRAINT small CHECK (a < 80), ADD UNIQUE (\"B\")");
    db.fails("UPDATE t SET a = 80 WHERE id = 1", "CHECK (a < 80)");
    db.fails("UPDATE t SET \"B\" = 'same'", "same");
    db.rows("ALTER TABLE t DROP CONSTRAINT small; UPDATE t SET a = 80 WHERE id = 1; ALTER TABLE t DROP CONSTRAINT \"t_B_key\"");
    db.rows("ALTER TABLE t DROP CONSTRAINT IF EXISTS small; UPDATE t SET \"B\" = 'same'");
    db.rows("ALTER TABLE t ALTER \"B\" SET NOT NULL");
    db.fails("INSERT INTO t VALUES (30, 1, NULL)", "can't be NULL");
    db.rows("ALTER TABLE t ALTER \"B\" DROP NOT NULL; INSERT INTO t VALUES (30, 1, NULL)");
    db.fails("ALTER TABLE t ALTER \"B\" SET NOT NULL", "can't be NULL");
    drop(db);
    assert_eq!(Db::open(dir.path()).rows("SELECT count(*), min(\"B\") FROM t"), ["7 same"]);
}

#[test]
fn tables_without_a_key_keep_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path());
    db.rows("CREATE TABLE n (x INT, y TEXT); CREATE TABLE c (x INT, y INT) CLUSTER BY (y)");
    db.rows("INSERT INTO n SELECT (value * 7919) % 10007, 'y' FROM range(10000); INSERT INTO c VALUES (1, 9), (2, 3), (3, 5)");
    let before = db.rows("SELECT x FROM n");
    db.rows("ALTER TABLE n DROP COLUMN y; ALTER TABLE c RENAME COLUMN y TO z");
    assert_eq!(db.rows("SELECT * FROM n"), before);
    db.rows("INSERT INTO c VALUES (4, 1); VACUUM c");
    assert_eq!(db.rows("SELECT * FROM c"), ["4 1", "2 3", "3 5", "1 9"]);
    assert!(db.rows("SHOW CREATE TABLE c")[0].contains("CLUSTER BY (z)"));
}

#[test]
fn tables_get_other_names() {
    let (dir, db) = table();
    db.rows("CREATE SCHEMA s; CREATE TABLE s.u (x INT); INSERT INTO s.u VALUES (1); ALTER TABLE s.u RENAME TO \"W\"");
    assert_eq!(db.rows("SELECT * FROM s.\"W\""), ["1"]);
    db.rows("ALTER TABLE t RENAME TO v; INSERT INTO v (id, a) VALUES (9, 9)");
    db.fails("SELECT * FROM t", "no table");
    db.rows("CREATE TABLE t (x INT)");
    for (to, why) in [
        ("t", "of this name"),
        ("s", "schema of this name"),
        ("s.x", "stays in its schema"),
        ("\"a/b\"", "that of a folder"),
        ("other.public.x", "stays in its schema"),
    ] {
        db.fails(&format!("ALTER TABLE v RENAME TO {to}"), why);
    }
    drop(db);
    assert_eq!(Db::open(dir.path()).rows("SELECT count(*) FROM v"), ["6"]);
}

#[test]
fn what_can_not_be_altered_is_said_and_left_as_it_was() {
    let (dir, db) = table();
    db.rows("CREATE VIEW w AS SELECT 1 AS x");
    std::fs::write(dir.path().join("f.csv"), "x\n1\n").unwrap();
    for (statement, why) in [
        ("ALTER TABLE t DROP COLUMN id", "in its order"),
        ("ALTER TABLE t DROP COLUMN \"B\"", "the index by_b is over it"),
        ("DROP INDEX t_a_key; ALTER TABLE t DROP COLUMN a", "DROP CONSTRAINT t_a_check first"),
        ("ALTER TABLE t DROP COLUMN nope", "no column \"nope\""),
        ("ALTER TABLE t RENAME COLUMN a TO id", "a column \"id\" already"),
        ("ALTER TABLE t ADD COLUMN a INT", "such a column already"),
        ("ALTER TABLE t ADD COLUMN z INT NOT NULL", "\"z\" can't be NULL"),
        ("ALTER TABLE t ADD COLUMN z INT DEFAULT 'x'", "DEFAULT"),
        ("ALTER TABLE t ADD COLUMN z INT UNIQUE", "UNIQUE"),
        ("ALTER TABLE t ALTER COLUMN \"B\" TYPE INT", "'b' is no INT"),
        ("ALTER TABLE t ALTER COLUMN id DROP NOT NULL", "NULL has none"),
        ("ALTER TABLE t ADD UNIQUE (\"B\", a), ADD COLUMN z INT, RENAME TO x", "stands alone"),
        ("UPDATE t SET \"B\" = 'same'; ALTER TABLE t ADD UNIQUE (\"B\")", ""),
        ("ALTER TABLE t DROP CONSTRAINT nope", "no constraint \"nope\""),
        ("ALTER TABLE w ADD COLUMN z INT", "no table that can be altered"),
        ("ALTER TABLE f ADD COLUMN z INT", "no table that can be altered"),
        ("ALTER TABLE nope ADD COLUMN z INT", "nope"),
        ("BEGIN; ALTER TABLE t ADD COLUMN z INT", "COMMIT first"),
    ] {
        db.fails(statement, why);
    }
    db.rows("ROLLBACK; ALTER TABLE IF EXISTS nope ADD COLUMN z INT");
    assert_eq!(db.rows("SELECT * FROM t WHERE id = 3"), ["3 6 same"]);
    let names = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(names, ["_catalog", "_catalog-lock", "f.csv", "t"]);
}

#[test]
fn readers_go_on_with_what_they_began_with() {
    let (dir, db) = table();
    let other = Db::open(dir.path());
    assert_eq!(other.rows("SELECT count(*), sum(a) FROM t"), ["5 30"]);
    db.rows("ALTER TABLE t RENAME COLUMN a TO z");
    assert_eq!(other.rows("SELECT sum(z) FROM t"), ["30"]);
    // The table is open for writing elsewhere.
    other.rows("INSERT INTO t VALUES (8, 1, 'x')");
    db.fails("ALTER TABLE t ADD COLUMN q INT", "open for writing");
    drop(other);
    db.rows("ALTER TABLE t ADD COLUMN q INT");
    assert_eq!(db.rows("SELECT count(*), count(q) FROM t"), ["6 0"]);
}

#[test]
fn rules_are_kept_as_they_were_written() {
    let (_dir, db) = table();
    db.rows(
        "ALTER TABLE t ADD COLUMN p DECIMAL(20, 10) DEFAULT 0.12345678901234567 + 1_000 CHECK (p BETWEEN 0.1 AND 1e6)",
    );
    let made = db.rows("SHOW CREATE TABLE t").remove(0);
    assert!(
        made.contains("DEFAULT 0.12345678901234567 + 1000") && made.contains("CHECK (p BETWEEN 0.1 AND 1e6)"),
        "{made}"
    );
    db.fails("ALTER TABLE t ADD CHECK (p > (SELECT 1))", "CHECK p > (SELECT 1): has a subquery");
}

#[test]
fn tables_in_memory_are_altered_too() {
    let (_dir, db) = table();
    db.rows("CREATE TEMP TABLE m AS SELECT id, a FROM t; ALTER TABLE m ADD COLUMN z TEXT, RENAME COLUMN a TO b");
    db.rows("ALTER TABLE m ALTER b TYPE BIGINT USING b + 1, DROP COLUMN id");
    db.rows("ALTER TABLE m RENAME TO n; INSERT INTO n VALUES (100, 'x')");
    assert_eq!(db.rows("SELECT count(*), sum(b), max(z) FROM n"), ["6 135 x"]);
    db.fails("ALTER TABLE n ALTER z SET NOT NULL", "can't be NULL");
    db.fails("ALTER TABLE n ALTER z SET DEFAULT 'x'", "--db DIR");
    db.fails("ALTER TABLE n RENAME TO t", "of this name");
    db.fails("SELECT * FROM m", "no table");
}

#[test]
fn defaults_in_memory_go_with_their_columns() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let db = Db { runtime, session: crate::Session::new(&crate::SessionOptions::default()).unwrap() };
    db.rows("CREATE TABLE m (id INT, a INT DEFAULT 5, b INT DEFAULT 6, c INT DEFAULT 7)");
    db.rows("ALTER TABLE m RENAME COLUMN a TO z, ALTER b DROP DEFAULT, DROP COLUMN c; INSERT INTO m (id) VALUES (1)");
    assert_eq!(db.rows("SELECT * FROM m"), ["1 5 -"]);
    db.fails("ALTER TABLE m ALTER b SET DEFAULT 8", "--db DIR");
    db.rows("CREATE SCHEMA s; CREATE TABLE s.m AS SELECT 1 AS x; ALTER TABLE s.m RENAME TO n");
    assert_eq!(db.rows("SELECT x FROM s.n"), ["1"]);
    db.fails("ALTER TABLE s.n RENAME TO public.k", "stays in its schema");
}

/// A statement that looked its table up before it was altered does not write by the rules that it had then.
#[test]
fn what_was_looked_up_before_an_alteration_is_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path());
    db.rows("CREATE TABLE t (id INT PRIMARY KEY, a INT); INSERT INTO t VALUES (1, 1)");
    let looked_up =
        || db.runtime.block_on(db.session.target(&ObjectName::from(vec![Ident::new("t")]))).unwrap().unwrap();
    let before = looked_up();
    db.rows("ALTER TABLE t ADD CHECK (a > 0)");
    let error = before.table.write().err().unwrap().to_string();
    assert!(error.contains("altered meanwhile"), "{error}");
    assert!(looked_up().table.write().is_ok());
    let before = looked_up();
    db.rows("ALTER TABLE t ADD COLUMN b INT");
    assert!(before.table.write().is_err());
}

/// A table that can't be altered or dropped now, for another session has it in a transaction, stays as open to all as it was.
#[test]
fn an_alteration_that_is_refused_leaves_the_table_to_the_others() {
    let (dir, tables) = (tempfile::tempdir().unwrap(), OpenTables::default());
    let [one, two, three] = std::array::from_fn(|_| Db::sharing(dir.path(), &tables));
    one.rows("CREATE TABLE t (id INT PRIMARY KEY, a INT); INSERT INTO t VALUES (1, 1)");
    two.rows("BEGIN; UPDATE t SET a = 2 WHERE id = 1");
    one.fails("ALTER TABLE t ADD CHECK (a > 0)", "another session");
    one.fails("DROP TABLE t", "another session");
    three.rows("INSERT INTO t VALUES (2, 2)");
    two.rows("COMMIT");
    one.rows("ALTER TABLE t ADD CHECK (a > 0)");
    for db in [&one, &two, &three] {
        assert_eq!(db.rows("SELECT id, a FROM t ORDER BY id"), ["1 2", "2 2"]);
        db.fails("INSERT INTO t VALUES (3, 0)", "CHECK");
    }
    three.rows("DROP TABLE t");
}

/// Columns that become UUIDs have their form and their condition, as those that were made so.
#[test]
fn columns_that_are_altered_to_uuids_hold_nothing_else() {
    const UUID: &str = "00000000-0000-0000-0000-00000000000A";
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path());
    db.rows(&format!("CREATE TABLE t (id INT PRIMARY KEY, w TEXT); INSERT INTO t VALUES (1, '{UUID}')"));
    db.rows("ALTER TABLE t ADD COLUMN v UUID; ALTER TABLE t ALTER COLUMN w TYPE UUID");
    db.fails("INSERT INTO t VALUES (2, NULL, 'garbage')", "UUID");
    db.fails("INSERT INTO t VALUES (2, 'garbage', NULL)", "UUID");
    assert_eq!(db.rows("SELECT w, v FROM t"), [format!("{} -", UUID.to_lowercase())]);
    db.rows("ALTER TABLE t ADD COLUMN x TEXT DEFAULT 'garbage'");
    db.fails("ALTER TABLE t ALTER COLUMN x TYPE UUID", "UUID");
}
