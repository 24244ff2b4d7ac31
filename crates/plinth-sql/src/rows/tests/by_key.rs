//! Rows that are found by their keys without a plan, beside the same statements with one.

use super::*;
use crate::Params;
use crate::statements::Planned;
use datafusion::common::ScalarValue;

/// Statements that are answered without a plan.
const FOUND: &[&str] = &[
    "SELECT * FROM t WHERE id = 2",
    "SELECT * FROM t WHERE (id) = 2",
    "SELECT * FROM t WHERE (id = (2))",
    "SELECT * FROM t WHERE id = 2::BIGINT",
    "SELECT * FROM t WHERE id = CAST(2 AS SMALLINT)",
    "SELECT * FROM pairs WHERE a = 1 AND b = 'y'::VARCHAR",
    "SELECT name, id FROM t AS u WHERE id = 1",
    "SELECT T.NAME AS who, t.n FROM T WHERE ID = 3",
    "SELECT * FROM t WHERE id = 99",
    "SELECT * FROM pairs WHERE b = 'y' AND a = 1",
    "FROM t WHERE id = 2",
    "SELECT c FROM pairs AS p WHERE a = 1 AND b = 'it''s'",
    "SELECT p.c FROM public.pairs AS p WHERE a = 1 AND b = ''",
    "SELECT b, c FROM pairs WHERE a = 1",
    "SELECT * FROM pairs WHERE a = 7",
    "SELECT a FROM seconds WHERE b = 'few'",
    "SELECT * FROM seconds WHERE c = 3 AND b = 'some'",
    "SELECT * FROM seconds WHERE b = 'none' AND c = 3",
];

/// Statements that have to be planned.
const PLANNED: &[&str] = &[
    "SELECT * FROM t WHERE id = 2 AND n = 1",
    "SELECT * FROM t WHERE id = 2 OR id = 3",
    "SELECT * FROM t WHERE 2 = id",
    "SELECT * FROM t WHERE id = 2.0",
    "SELECT * FROM t WHERE id = 2::DOUBLE",
    "SELECT * FROM t WHERE id = 300::TINYINT",
    "SELECT * FROM t WHERE id = '2'::INT",
    "SELECT * FROM t WHERE id = 2.0::INT",
    "SELECT * FROM t WHERE id = TRY_CAST(2 AS INT)",
    "SELECT * FROM pairs WHERE a = 1 AND b = 'yes'::VARCHAR(1)",
    "SELECT * FROM t WHERE id = '2'",
    "SELECT * FROM t WHERE id = NULL",
    "SELECT * FROM t WHERE id = 99999999999999999999",
    "SELECT * FROM t WHERE id = 2 AND id = 3",
    "SELECT * FROM t WHERE id = 2 LIMIT 0",
    "SELECT * FROM t WHERE id = 2 OFFSET 1",
    "SELECT DISTINCT * FROM t WHERE id = 2",
    "SELECT id + 1 FROM t WHERE id = 2",
    "SELECT id, id FROM t WHERE id = 2",
    "SELECT count(*) FROM t WHERE id = 2",
    "SELECT id FROM t WHERE id = 2 GROUP BY id HAVING false",
    "SELECT id FROM t WHERE id = 2 QUALIFY row_number() OVER () > 1",
    "SELECT * FROM t TABLESAMPLE (0 ROWS) WHERE id = 2",
    "SELECT * FROM t AS u(a, b, c) WHERE a = 2",
    "SELECT * FROM t, pairs WHERE id = 2",
    "SELECT * FROM t WHERE id = 2 ORDER BY n",
    "SELECT * FROM t WHERE id = 2 UNION ALL SELECT * FROM t WHERE id = 3",
    "WITH t AS (SELECT 2 AS id) SELECT * FROM t WHERE id = 2",
    "SELECT * FROM seen WHERE id = 2",
    "SELECT * FROM pairs WHERE b = 'x'",
    "SELECT * FROM seconds WHERE b = 'many'",
    "SELECT * FROM seconds WHERE b = 'many' AND c = 1",
    "SELECT * FROM seconds WHERE c = 3",
    "SELECT * FROM seconds WHERE d = 1.5",
    "SELECT * FROM seconds WHERE b = NULL",
    "SELECT * RENAME (n AS m) FROM t WHERE id = 2",
    "SELECT COLUMNS('n') FROM t WHERE id = 2",
    "SELECT n AS \"N\", * EXCLUDE (n) FROM t WHERE id = 3",
];

fn tables() -> (tempfile::TempDir, Db) {
    let (dir, db) = people();
    db.rows("CREATE TABLE pairs (a INT, b TEXT, c DOUBLE, PRIMARY KEY (a, b))");
    db.rows("INSERT INTO pairs VALUES (1, 'x', 0.5), (1, 'y', NULL), (1, '', 3), (1, 'it''s', 4), (2, 'y', 5)");
    db.rows("CREATE INDEX by_a ON pairs (a)");
    db.rows("CREATE VIEW seen AS SELECT * FROM t WHERE id <> 2");
    // Of a table without a key; some of its rows have no value.
    db.rows("CREATE TABLE seconds (a INT, b TEXT, c INT, d DOUBLE)");
    db.rows("CREATE INDEX by_b ON seconds (b)");
    db.rows("CREATE INDEX by_b_c ON seconds (b, c)");
    db.rows("INSERT INTO seconds SELECT value, 'many', value % 3, 1.5 FROM generate_series(1, 300)");
    db.rows("INSERT INTO seconds SELECT value, 'some', value % 9, -0.0 FROM generate_series(1, 90)");
    db.rows("INSERT INTO seconds VALUES (1, 'few', NULL, 0.0), (2, NULL, 3, NULL), (3, 'few', 3, 1.5)");
    (dir, db)
}

/// The columns and rows of a statement.
fn answer(db: &Db, sql: &str, by_key: bool) -> Result<(Vec<String>, Vec<String>), String> {
    let statement = parse(sql).unwrap().pop().unwrap();
    let work = async {
        let planned = db.session.planned_by(statement, &Params::default(), by_key).await?;
        let mut stream = planned.rows()?;
        let fields =
            stream.schema().fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect();
        let mut rows = Vec::new();
        while let Some(batch) = stream.next().await {
            rows.extend(texts(&batch?));
        }
        rows.sort();
        Ok::<_, crate::SqlError>((fields, rows))
    };
    db.runtime.block_on(work).map_err(|error| error.to_string())
}

/// Whether a statement that has just come is answered at once, and what it answers then.
fn at_once(db: &Db, sql: &str) -> Option<Vec<String>> {
    let statement = parse(sql).unwrap().pop().unwrap();
    db.runtime.block_on(async {
        let mut stream = db.session.row_at_once(&statement, &Params::default()).await?;
        let mut rows = Vec::new();
        while let Some(batch) = stream.next().await {
            rows.extend(texts(&batch.unwrap()));
        }
        rows.sort();
        Some(rows)
    })
}

fn is_found(db: &Db, sql: &str, params: &Params) -> bool {
    let statement = parse(sql).unwrap().pop().unwrap();
    db.runtime.block_on(db.session.row_by_key(&statement, params)).unwrap().is_some()
}

#[test]
fn statements_that_ask_for_a_key_answer_as_planned_ones() {
    let (dir, db) = tables();
    let check = |db: &Db| {
        for sql in FOUND.iter().chain(PLANNED) {
            assert_eq!(answer(db, sql, true), answer(db, sql, false), "{sql}");
            let expected = FOUND.contains(sql);
            assert_eq!(is_found(db, sql, &Params::default()), expected, "{sql}");
            // Whatever its table is, it is open by now.
            let rows = expected.then(|| answer(db, sql, false).unwrap().1);
            assert_eq!(at_once(db, sql), rows, "{sql}");
        }
    };
    assert_eq!(at_once(&Db::open(dir.path()), "SELECT n FROM t WHERE id = 2"), None, "a table that is not open");
    check(&db);
    db.rows("VACUUM t; VACUUM pairs; VACUUM seconds");
    check(&db);
    db.rows("UPDATE t SET n = 12 WHERE id = 2; DELETE FROM t WHERE id = 3; DELETE FROM pairs WHERE b = 'y'");
    db.rows("DELETE FROM seconds WHERE a = 3; UPDATE seconds SET c = 3 WHERE a = 4; INSERT INTO seconds VALUES (9, 'few', 9, 9)");
    check(&db);
    // Of another session, which reads what this one wrote.
    check(&Db::open(dir.path()));
    // Within a transaction its own rows are seen.
    db.rows("BEGIN; UPDATE t SET n = 13 WHERE id = 2; INSERT INTO t VALUES (99, 'z', 0)");
    assert_eq!(db.rows("SELECT n FROM t WHERE id = 2"), ["13"]);
    assert_eq!(db.rows("SELECT name FROM t WHERE id = 99"), ["z"]);
    assert_eq!(at_once(&db, "SELECT n FROM t WHERE id = 2"), None, "rows of a transaction are planned");
    db.rows("ROLLBACK");
    assert_eq!(db.rows("SELECT n FROM t WHERE id = 2"), ["12"]);
    db.rows("PREPARE by_id(BIGINT) AS SELECT n FROM t WHERE id = $1");
    assert_eq!(at_once(&db, "EXECUTE by_id(2)").unwrap(), ["12"]);
    assert_eq!(at_once(&db, "EXECUTE by_id(1 + 1)"), None);
    check(&db);
}

#[test]
fn values_of_parameters_are_keys_if_they_say_the_same() {
    let (_dir, db) = tables();
    let of = |value: ScalarValue| Params::of_values([("1".to_owned(), value)]);
    for (value, found) in [
        (ScalarValue::Int64(Some(2)), true),
        (ScalarValue::Int8(Some(2)), true),
        (ScalarValue::UInt64(Some(2)), true),
        (ScalarValue::UInt64(Some(u64::MAX)), false),
        (ScalarValue::Float64(Some(2.5)), false),
        (ScalarValue::Utf8(Some("2".to_owned())), false),
        (ScalarValue::Int64(None), false),
    ] {
        let params = of(value);
        let sql = "SELECT name FROM t WHERE id = $1";
        assert_eq!(is_found(&db, sql, &params), found, "{params:?}");
        let statement = || parse(sql).unwrap().pop().unwrap();
        let rows = |by_key| {
            db.runtime.block_on(async {
                let mut stream = db.session.planned_by(statement(), &params, by_key).await?.rows()?;
                let mut rows = Vec::new();
                while let Some(batch) = stream.next().await {
                    rows.extend(texts(&batch?));
                }
                Ok::<_, crate::SqlError>(rows)
            })
        };
        assert_eq!(rows(true).map_err(|e| e.to_string()), rows(false).map_err(|e| e.to_string()), "{params:?}");
    }
    db.rows("PREPARE p AS SELECT name FROM t WHERE id = $1");
    assert_eq!(db.rows("EXECUTE p(3)"), ["c"]);
    assert_eq!(db.rows("EXECUTE p(4)"), Vec::<String>::new());
    db.rows("PREPARE q(BIGINT) AS SELECT name FROM t WHERE id = $1");
    assert_eq!(db.rows("EXECUTE q(3)"), ["c"]);
    for (sql, found) in
        [("EXECUTE p(3)", true), ("EXECUTE q(3)", true), ("EXECUTE q(-3)", true), ("EXECUTE q(3.5)", false)]
    {
        let statement = parse(sql).unwrap().pop().unwrap();
        let planned = db.runtime.block_on(db.session.planned_by(statement, &Params::default(), true));
        assert_eq!(matches!(planned, Ok(Planned::Found(_))), found, "{sql}");
    }
    assert_eq!(db.run_with("SELECT c FROM pairs WHERE b = $b AND a = $a", &[("a", "2"), ("b", "y")]).unwrap(), ["5.0"]);
    db.fails("EXPLAIN SELECT * FROM t WHERE id = $1", "no value for $1");
    assert!(db.explain("SELECT * FROM t WHERE id = 2").contains("FilterExec: id@0 = 2"));
}
