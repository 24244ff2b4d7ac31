//! DEFAULT and CHECK: what is not given, and what may not be.

use super::Db;

fn orders() -> (tempfile::TempDir, Db) {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path());
    db.rows(
        "CREATE TABLE o (id INT PRIMARY KEY, n INT NOT NULL DEFAULT 2 + 3 CHECK (n > 0), note TEXT DEFAULT 'it''s \\new',
             at TIMESTAMP DEFAULT now(), price DECIMAL(10, 2), CONSTRAINT cheap CHECK (price * n < 1000), CHECK (note <> 'no'))",
    );
    (dir, db)
}

#[test]
fn columns_that_are_not_given_have_their_defaults() {
    let (dir, db) = orders();
    db.rows("INSERT INTO o (id) VALUES (1), (2); INSERT INTO o (price, id) SELECT 1.5, 3");
    db.rows("INSERT INTO o VALUES (4, DEFAULT, default, NULL, 2), (5, 7, 'x', TIMESTAMP '2024-01-01', DEFAULT)");
    // In the next session, too.
    drop(db);
    let db = Db::open(dir.path());
    db.rows("INSERT INTO o (id, n) VALUES (6, 9) ON CONFLICT DO NOTHING; INSERT INTO o (id) VALUES (6) ON CONFLICT (id) DO UPDATE SET note = 'again'");
    assert_eq!(db.rows("INSERT INTO o (id) VALUES (7) RETURNING n, note"), ["5 it's \\new"]);
    assert_eq!(
        db.rows("SELECT id, n, note, at IS NULL, price FROM o ORDER BY id"),
        [
            "1 5 it's \\new false -",
            "2 5 it's \\new false -",
            "3 5 it's \\new false 1.50",
            "4 5 it's \\new true 2.00",
            "5 7 x false -",
            "6 9 again false -",
            "7 5 it's \\new false -",
        ]
    );
    db.rows("UPDATE o SET n = 8, note = 'y', price = 1; UPDATE o SET n = DEFAULT, price = DEFAULT WHERE id < 3");
    assert_eq!(
        db.rows("SELECT id, n, note, price FROM o WHERE id < 4 ORDER BY id"),
        ["1 5 y -", "2 5 y -", "3 8 y 1.00"]
    );
    db.rows(
        "MERGE INTO o USING (VALUES (1, 11), (20, 12)) AS s (k, v) ON o.id = s.k WHEN MATCHED THEN UPDATE SET note = DEFAULT
             WHEN NOT MATCHED THEN INSERT (id, price) VALUES (k, DEFAULT)",
    );
    assert_eq!(
        db.rows("SELECT id, n, note, price FROM o WHERE id IN (1, 20) ORDER BY id"),
        ["1 5 it's \\new -", "20 5 it's \\new -"]
    );
    db.fails("INSERT INTO o (id, n) VALUES (30)", "values");
    db.fails("INSERT INTO o (n) VALUES (1)", "column \"id\" can't be NULL");
    db.rows("CREATE TABLE all_given (a INT DEFAULT 1, b TEXT DEFAULT 'b'); INSERT INTO all_given DEFAULT VALUES");
    assert_eq!(db.rows("SELECT * FROM all_given"), ["1 b"]);
}

#[test]
fn rows_that_break_a_condition_are_refused() {
    let (dir, db) = orders();
    for (statement, why) in [
        ("INSERT INTO o (id, n) VALUES (1, 1), (2, 0)", "CHECK (n > 0) does not hold where n is 0"),
        (
            "INSERT INTO o (id, n, price) VALUES (1, 10, 100)",
            "CHECK (price * n < 1000) does not hold where n is 10, price is 100.00",
        ),
        ("INSERT INTO o (id, note) VALUES (1, 'no')", "does not hold where note is no"),
        ("INSERT INTO o (id, n) SELECT value, value - 5 FROM range(1, 10)", "CHECK (n > 0)"),
        ("INSERT INTO o (id, n) VALUES (1, -1) ON CONFLICT DO NOTHING", "CHECK (n > 0)"),
    ] {
        db.fails(statement, why);
    }
    assert_eq!(db.rows("SELECT count(*) FROM o"), ["0"]);
    // NULL breaks none.
    db.rows("INSERT INTO o (id, note, price) VALUES (1, NULL, NULL), (2, 'a', 3)");
    drop(db);
    let db = Db::open(dir.path());
    db.fails("UPDATE o SET n = n - 5 WHERE id = 2", "UPDATE o: CHECK (n > 0) does not hold where n is 0");
    db.fails("INSERT INTO o (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET n = -4", "CHECK (n > 0)");
    db.fails(
        "MERGE INTO o USING (SELECT 2 AS k) AS s ON o.id = s.k WHEN MATCHED THEN UPDATE SET price = 999",
        "CHECK (price * n",
    );
    db.fails("BEGIN; UPDATE o SET n = -1", "CHECK (n > 0)");
    db.rows("ROLLBACK");
    // Conditions do not stand in the way of rows that go.
    db.rows("DELETE FROM o WHERE id = 1");
    assert_eq!(db.rows("SELECT id, n FROM o"), ["2 5"]);
}

#[test]
fn what_can_not_be_a_rule_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path());
    for (column, why) in [
        ("a INT DEFAULT 'x'", "column \"a\": DEFAULT: "),
        ("a INT DEFAULT b", "b"),
        ("a INT DEFAULT (SELECT 1)", "a subquery"),
        ("a INT DEFAULT $1", "a parameter"),
        ("a INT DEFAULT 1 DEFAULT 2", "two DEFAULTs"),
        ("a INT CHECK (b > 0)", "b"),
        ("a INT CHECK (a)", "condition"),
        ("a INT CHECK (a > (SELECT 1))", "a subquery"),
        ("a INT CHECK (sum(a) > 1)", "condition of one row"),
        ("a INT, CONSTRAINT c CHECK (a > 0), CONSTRAINT c CHECK (a > 1)", "two constraints"),
    ] {
        db.fails(&format!("CREATE TABLE t ({column})"), why);
        db.fails("SELECT * FROM t", "no table");
    }
    db.fails("CREATE TEMP TABLE t (a INT CHECK (a > 0))", "CHECK");
}

#[test]
fn rules_are_shown_and_made_again() {
    let (_dir, db) = orders();
    let made = db.rows("SHOW CREATE TABLE o").remove(0);
    assert!(made.contains("n INTEGER DEFAULT 2 + 3 NOT NULL"), "{made}");
    assert!(made.contains("CONSTRAINT cheap CHECK (price * n < 1000)"), "{made}");
    let (other, copy) = (tempfile::tempdir().unwrap(), made.strip_prefix("datafusion public o ").unwrap());
    let db = Db::open(other.path());
    db.rows(copy);
    assert_eq!(db.rows("SHOW CREATE TABLE o"), std::slice::from_ref(&made));
    // A table made from the rows has its own rules.
    db.rows("CREATE TABLE p AS SELECT * FROM o; CREATE TABLE q (id INT PRIMARY KEY) AS SELECT id FROM o");
    assert!(!db.rows("SHOW CREATE TABLE q")[0].contains("DEFAULT"));
}

/// A condition whose integers leave their type is an error, as it is in a query, whenever it is looked at.
#[test]
fn integers_that_leave_their_type_pass_no_condition() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path());
    db.rows("CREATE TABLE t (id INT PRIMARY KEY, a BIGINT CHECK (a * a < 100), b BIGINT, CHECK (a + b < 100))");
    db.fails("INSERT INTO t VALUES (1, 4294967296, 0)", "out of range");
    db.fails("INSERT INTO t VALUES (1, 9, 9223372036854775807)", "out of range");
    db.rows("INSERT INTO t VALUES (1, 9, -9)");
    db.fails("UPDATE t SET a = 4294967296", "out of range");
    db.rows("CREATE TABLE u (id INT PRIMARY KEY, n BIGINT); INSERT INTO u VALUES (1, 4611686018427387904)");
    db.fails("ALTER TABLE u ADD CHECK (n * 4 <= 10)", "out of range");
}
