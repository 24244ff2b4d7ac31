//! Groups of rows that come in the order of their key: own operators, which let them leave early, and the engine's give the same rows.

use super::Db;
use super::little::all_is_there_again;

/// Rows of the table, a few of each key.
const ROWS: usize = 600_000;

/// What is asked of it, and whether all groups but those at the ends of pieces leave early.
const QUESTIONS: [(&str, bool); 9] = [
    ("SELECT k, count(*), sum(q), avg(q), min(s), max(d) FROM t GROUP BY k", true),
    ("SELECT k, sum(q) AS s FROM t GROUP BY k HAVING sum(q) > 250 ORDER BY s DESC, k LIMIT 30", true),
    ("SELECT count(*), sum(n), max(k) FROM (SELECT k, count(DISTINCT s) AS n FROM t GROUP BY k)", false),
    ("SELECT k, string_agg(s, ',' ORDER BY q, s) FROM t WHERE q < 3 GROUP BY k", false),
    ("SELECT k, count(*) FILTER (WHERE q > 50), sum(d) FROM t WHERE q % 7 <> 0 GROUP BY k", true),
    ("SELECT count(*), sum(q) FROM t WHERE k IN (SELECT k FROM t GROUP BY k HAVING sum(q) > 300)", true),
    ("SELECT k, count(*) AS c FROM t GROUP BY k ORDER BY c DESC, k LIMIT 5", false),
    ("SELECT q, count(*), sum(k) FROM t GROUP BY q", false),
    ("SELECT k, q % 2, count(*) FROM t GROUP BY k, q % 2", false),
];

/// A table whose rows are ordered by `k`, in many pieces.
fn table(db: &Db, folder: &std::path::Path) -> String {
    let path = folder.join("t.plinth").display().to_string();
    let rows = format!(
        "SELECT CAST(value / 4 * 3 + CASE WHEN value % 4 = 3 AND value % 5 < 2 THEN 1 ELSE 0 END AS BIGINT) - 1000 AS k, \
         value * 7919 % 101 AS q, concat('text ', value * 31 % 4001) AS s, CAST(value % 97 / 4.0 AS DECIMAL(10,2)) AS d \
         FROM generate_series(1, {ROWS})"
    );
    db.rows(&format!("COPY ({rows}) TO '{path}' STORED AS PLINTH OPTIONS (row_group_rows 20000)"));
    path
}

#[test]
fn groups_that_leave_early_are_those_of_the_engine() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path());
    let path = table(&db, folder.path());
    let little = Db::open_within(folder.path(), plinth_format::Access::default(), 24 << 20);
    for (question, early) in QUESTIONS {
        let sql = question.replace("FROM t", &format!("FROM '{path}'"));
        db.run("SET plinth.native = false").unwrap();
        let expected = db.sorted(&sql).unwrap();
        db.run("SET plinth.native = true").unwrap();
        assert_eq!(db.sorted(&sql).unwrap(), expected, "{question}");
        let plan = db.rows(&format!("EXPLAIN ANALYZE {sql}")).join("\n");
        let left = plan.split("groups_complete_early=").nth(1).and_then(|rest| rest.split([',', ']']).next());
        assert_eq!(left.is_some_and(|groups| groups != "0"), early, "{question}: {plan}");
        match little.sorted(&sql) {
            Err(error) => assert!(error.contains("memory") && !early, "{question}: {error}"),
            rows => assert_eq!(rows.unwrap(), expected, "{question}"),
        }
        all_is_there_again(&little, question);
    }
}

#[test]
fn groups_that_are_read_no_more_end_the_query() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path());
    let path = table(&db, folder.path());
    let sql = format!("SELECT k, c FROM (SELECT k, count(*) AS c FROM '{path}' GROUP BY k) WHERE c > 3 LIMIT 7");
    assert_eq!(db.rows(&sql).len(), 7);
    all_is_there_again(&db, &sql);
}

#[test]
fn keys_of_all_kinds_of_integers_are_grouped_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path());
    let path = folder.path().join("t.plinth").display().to_string();
    let kinds = [
        ("u", "CAST(value / 2 AS INT UNSIGNED)"),
        ("v", "CAST(value / 2 AS BIGINT UNSIGNED)"),
        ("d", "CAST(value / 200.0 AS DECIMAL(10,2))"),
        ("i", "CAST(value / 2 AS INT)"),
        ("t", "to_timestamp_seconds(value / 2)"),
    ];
    let columns: Vec<String> = kinds.iter().map(|(name, value)| format!("{value} AS {name}")).collect();
    let rows = format!("SELECT {} FROM generate_series(0, 299999)", columns.join(", "));
    db.rows(&format!("COPY ({rows}) TO '{path}' STORED AS PLINTH OPTIONS (row_group_rows 60000)"));
    for (name, _) in kinds {
        let sql = format!(
            "SELECT count(*), min({name}), max({name}), max(c) FROM (SELECT {name}, count(*) AS c FROM '{path}' GROUP BY {name})"
        );
        db.run("SET plinth.native = false").unwrap();
        let expected = db.rows(&sql);
        db.run("SET plinth.native = true").unwrap();
        assert_eq!(db.rows(&sql), expected, "{sql}");
    }
}
