//! ATTACH: the tables of other folders beside those of the session's.

use super::Db;

#[test]
fn folders_are_read_and_written_beside_one_another() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let there = Db::open(other.path());
    there.rows("CREATE TABLE t (id INT PRIMARY KEY, a INT DEFAULT 5); INSERT INTO t VALUES (1, 10)");
    there.rows("CREATE SCHEMA s; CREATE TABLE s.u AS SELECT 7 AS x; CREATE VIEW v AS SELECT a + x AS y FROM t, s.u");
    drop(there);
    let db = Db::open(one.path());
    db.rows("CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1), (2)");
    db.rows(&format!("ATTACH '{}' AS o", other.path().display()));
    assert_eq!(db.rows("SELECT count(o.t.a), count(*) FROM t LEFT JOIN o.t ON t.id = o.t.id"), ["1 2"]);
    assert_eq!(
        db.rows("SELECT o.t.*, t.id FROM t JOIN o.t ON t.id < o.t.a WHERE o.t.id = t.id ORDER BY o.t.a"),
        ["1 10 1"]
    );
    db.fails("SELECT t.id FROM o.t, public.t", "t may be o.t or public.t");
    assert_eq!(db.rows("SELECT * FROM o.s.u, o.v, o.public.t"), ["7 17 1 10"]);
    db.rows("INSERT INTO o.t (id) SELECT id FROM t WHERE id = 2; UPDATE o.t SET a = 11 WHERE id = 1; CREATE TABLE o.w AS SELECT 3 AS z");
    db.rows("CREATE TABLE o.k (id INT PRIMARY KEY); CREATE VIEW o.m AS SELECT max(id) AS n FROM t; ALTER TABLE o.k ADD COLUMN c INT");
    assert_eq!(db.rows("SELECT n FROM o.m"), ["2"]);
    assert_eq!(db.rows("SELECT sum(y) FROM o.v"), ["30"]);
    // A view of the folder itself may name it; it means something as long as that is attached.
    db.rows("CREATE VIEW both AS SELECT t.id, o.t.a FROM t JOIN o.t ON t.id = o.t.id");
    assert_eq!(db.rows("SELECT a FROM both ORDER BY id"), ["11", "5"]);
    db.rows("CREATE VIEW o.a AS SELECT 1 AS x; CREATE VIEW o.b AS SELECT x FROM a");
    db.fails("CREATE OR REPLACE VIEW o.a AS SELECT x FROM b", "can't read itself: o.a reads o.b reads o.a");
    db.rows("DROP VIEW o.b, o.a; USE o");
    assert_eq!(db.rows("SELECT * FROM t ORDER BY id"), ["1 11", "2 5"]);
    assert_eq!(db.rows("SHOW TABLES"), ["k", "m", "t", "v", "w"]);
    db.rows("CREATE TABLE made (x INT); USE o.s");
    assert_eq!(db.rows("SELECT * FROM u"), ["7"]);
    assert_eq!(db.rows("SHOW TABLES"), ["u"]);
    db.rows("USE main; DROP TABLE o.k; DROP VIEW o.m; DETACH o");
    assert_eq!(db.rows("SHOW TABLES"), ["both", "t"]);
    db.fails("SELECT * FROM o.t", "o.t");
    db.fails("SELECT * FROM both", "the view both can't be read");
    drop(db);
    let there = Db::open(other.path());
    assert_eq!(there.rows("SELECT sum(a) FROM t"), ["16"]);
    assert_eq!(there.rows("SHOW TABLES"), ["made", "t", "v", "w"]);
}

#[test]
fn what_can_not_be_attached_is_said() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let db = Db::open(one.path());
    let path = other.path().display().to_string();
    std::fs::write(other.path().join("f.db"), "x").unwrap();
    db.rows(&format!(
        "CREATE SCHEMA s; ATTACH '{path}' AS o; ATTACH IF NOT EXISTS '{path}' AS o; ATTACH DATABASE '{path}/new dir'"
    ));
    db.rows("CREATE TABLE \"new dir\".t (x INT); INSERT INTO \"new dir\".t VALUES (1)");
    assert!(other.path().join("new dir/t").is_dir());
    for (statement, why) in [
        (format!("ATTACH '{path}/f.db' AS d"), "is a file"),
        ("ATTACH ':memory:' AS d".to_owned(), "CREATE TEMP TABLE"),
        (format!("ATTACH '{path}/new dir' AS o"), "another folder has the name"),
        (format!("ATTACH '{path}' AS s"), "schema of this name"),
        (format!("ATTACH '{path}' AS public"), "the name is taken"),
        (format!("ATTACH '{path}/a/b' AS d"), "can't be made"),
        (format!("ATTACH '{path}' AS p (READ_ONLY)"), "options are not supported"),
        ("ATTACH".to_owned(), "the path of a folder is missing"),
        ("DETACH nope".to_owned(), "nothing is attached"),
        ("USE nope".to_owned(), "no such schema"),
        ("CREATE SCHEMA o".to_owned(), "DETACH o"),
        ("DROP SCHEMA o CASCADE".to_owned(), "DETACH o"),
    ] {
        db.fails(&statement, why);
    }
}
