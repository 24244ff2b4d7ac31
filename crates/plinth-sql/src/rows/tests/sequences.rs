//! Numbers of sequences, by statements.

use super::Db;

fn ids(db: &Db) -> Vec<i64> {
    db.rows("SELECT id FROM t ORDER BY id").iter().map(|id| id.parse().unwrap()).collect()
}

#[test]
fn keys_are_numbered_without_gaps_from_one_session_to_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path());
    db.rows("CREATE SEQUENCE s; CREATE TABLE t (id BIGINT PRIMARY KEY DEFAULT nextval('s'), v INT)");
    assert_eq!(db.rows("SELECT nextval('s')"), ["1"], "a table with the default takes none");
    db.rows("INSERT INTO t (v) VALUES (10), (20), (30)");
    drop(db);
    let db = Db::open(dir.path());
    db.rows("INSERT INTO t (v) SELECT value FROM range(20000) AS r(value); INSERT INTO t VALUES (DEFAULT, 5)");
    assert_eq!(ids(&db), (2..=20005).collect::<Vec<_>>());
    assert_eq!(db.rows("SELECT currval('s'), nextval('s'), nextval('S')"), ["20005 20006 20007"]);
    assert_eq!(db.rows("SELECT count(DISTINCT nextval('s')) FROM range(3000)"), ["3000"]);
    // What a statement that fails has taken is gone, the rest of what it asked for is not.
    db.fails("INSERT INTO t (v) VALUES (1), ('x')", "");
    db.fails("INSERT INTO t VALUES (2, 1)", "");
    let next: i64 = db.rows("SELECT nextval('s')")[0].parse().unwrap();
    assert!((23008..=23010).contains(&next), "{next}");
    db.rows("ALTER TABLE t ADD COLUMN n BIGINT DEFAULT nextval('s')");
    assert_eq!(db.rows("SELECT count(DISTINCT n) - count(*) FROM t"), ["0"]);
}

#[test]
fn sessions_side_by_side_get_numbers_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path());
    db.rows("CREATE SEQUENCE s");
    let asked = |thread: usize| {
        let db = Db::open(dir.path());
        (0..5).flat_map(|_| db.rows(&format!("SELECT nextval('s') FROM range({})", 1 + thread * 300))).collect()
    };
    let mut numbers: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|thread| scope.spawn(move || -> Vec<String> { asked(thread) })).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    numbers.sort_by_key(|number| number.parse::<i64>().unwrap());
    assert_eq!(numbers, (1..=5 * (1 + 301 + 601)).map(|number| number.to_string()).collect::<Vec<_>>());
}

#[test]
fn options_say_what_comes() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path());
    let next = |name: &str, count: usize| db.rows(&format!("SELECT nextval('{name}') FROM range({count})"));
    db.rows("CREATE SEQUENCE a START WITH 5 INCREMENT BY -2 MINVALUE 0 MAXVALUE 9 CYCLE");
    assert_eq!(next("a", 5), ["5", "3", "1", "9", "7"]);
    db.rows("CREATE TEMP SEQUENCE b MAXVALUE 3 NO CYCLE START 2");
    assert_eq!(next("b", 2), ["2", "3"]);
    db.fails("SELECT nextval('b')", "no more numbers");
    db.rows("CREATE SEQUENCE IF NOT EXISTS a; CREATE SCHEMA x; CREATE SEQUENCE x.c AS SMALLINT START 32767");
    assert_eq!(next("x.c", 1), ["32767"]);
    db.fails("SELECT nextval('x.c')", "no more numbers");
    for (statement, why) in [
        ("CREATE SEQUENCE a", "there is one already"),
        ("CREATE SEQUENCE d INCREMENT 0", "INCREMENT 0"),
        ("CREATE SEQUENCE d START 10 MAXVALUE 5", "is to be between"),
        ("CREATE SEQUENCE d CACHE 5", "CACHE"),
        ("CREATE SEQUENCE d AS TEXT", "BIGINT"),
        ("CREATE SEQUENCE d START 9223372036854775808", "whole number"),
        ("CREATE SEQUENCE d OWNED BY t.a", "OWNED BY"),
        ("CREATE SEQUENCE nowhere.d", "not found"),
        ("DROP SEQUENCE d", "not found"),
        ("SELECT nextval('d')", "not found"),
        ("SELECT currval('a') FROM range(0) UNION ALL SELECT currval('nope')", "not found"),
        ("SELECT nextval(NULL)", "as a text"),
        ("SELECT nextval(v) FROM (VALUES ('a')) t(v)", "as a text"),
        ("DROP SCHEMA x", "CASCADE"),
        ("CREATE TABLE t (id BIGINT DEFAULT nextval('d'))", "not found"),
        ("BEGIN; CREATE SEQUENCE d", "transaction"),
    ] {
        db.fails(statement, why);
    }
    db.rows("ROLLBACK; DROP SCHEMA x CASCADE; DROP SEQUENCE a; DROP SEQUENCE IF EXISTS a; DROP SEQUENCE b");
    db.fails("SELECT nextval('a')", "not found");
}
