//! RETURNING.

use super::{ALL, Db, people};

#[test]
fn changed_rows_are_answered() {
    let (_dir, db) = people();
    assert_eq!(
        db.rows("INSERT INTO t VALUES (7, 'g', 70), (8, 'h', NULL) RETURNING id + 1 AS k, name, n"),
        ["8 g 70", "9 h -"]
    );
    assert_eq!(db.rows("INSERT INTO t (id, name) SELECT 9, 'i' RETURNING *"), ["9 i -"]);
    assert_eq!(
        db.sorted("UPDATE t SET n = coalesce(n, 0) + 1 WHERE id > 7 RETURNING t.id, n").unwrap(),
        ["8 1", "9 1"]
    );
    assert_eq!(db.rows("UPDATE t AS x SET id = 100 WHERE id = 9 RETURNING x.id, (SELECT max(id) FROM t)"), ["100 9"]);
    assert_eq!(db.sorted("DELETE FROM t WHERE id >= 8 RETURNING *, upper(name)").unwrap(), ["100 i 1 I", "8 h 1 H"]);
    assert_eq!(db.rows("DELETE FROM t WHERE id = 55 RETURNING id"), Vec::<String>::new());
    let upsert = "INSERT INTO t VALUES (1, 'z', 1), (20, 'y', 2) ON CONFLICT (id) DO UPDATE SET n = t.n + excluded.n RETURNING id, name, n";
    assert_eq!(db.sorted(upsert).unwrap(), ["1 a 11", "20 y 2"]);
    assert_eq!(db.rows(ALL), ["1 a 11", "2 b -", "3 c 30", "7 g 70", "20 y 2"]);
    assert_eq!(db.run_with("UPDATE t SET n = $n WHERE id = 2 RETURNING n + $n", &[("n", "4")]).unwrap(), ["8"]);
    db.rows("PREPARE p AS DELETE FROM t WHERE id = $1 RETURNING name");
    assert_eq!(db.rows("EXECUTE p(7)"), ["g"]);
}

#[test]
fn an_answer_that_fails_changes_nothing() {
    let (_dir, db) = people();
    let before = db.rows(ALL);
    db.fails("INSERT INTO t VALUES (7, 'g', 0) RETURNING 1 / n", "ivi");
    db.fails("UPDATE t SET n = 0 RETURNING 1 / n", "ivi");
    db.fails("DELETE FROM t RETURNING nope", "nope");
    db.fails("INSERT INTO t VALUES (1, 'g', 0) RETURNING id", "the key 1 is there already");
    assert_eq!(db.rows(ALL), before);
    db.fails("INSERT INTO t VALUES (1, 'x', 1) ON CONFLICT DO NOTHING RETURNING id", "RETURNING beside DO NOTHING");
    db.fails("DELETE FROM t USING (VALUES (1)) AS s(k) WHERE id = k RETURNING id", "RETURNING beside USING");
    assert_eq!(db.rows(ALL), before);
}

#[test]
fn a_transaction_answers_what_it_may_take_back() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path());
    db.rows("CREATE TABLE t (a INT, b TEXT); INSERT INTO t VALUES (1, 'x'), (1, 'x')");
    assert_eq!(db.rows("BEGIN; DELETE FROM t RETURNING a, b"), ["1 x", "1 x"]);
    assert_eq!(db.rows("INSERT INTO t VALUES (2, 'y') RETURNING a"), ["2"]);
    assert_eq!(db.rows("UPDATE t SET a = a + 1 RETURNING *"), ["3 y"]);
    db.rows("ROLLBACK");
    assert_eq!(db.rows("SELECT * FROM t"), ["1 x", "1 x"]);
}
