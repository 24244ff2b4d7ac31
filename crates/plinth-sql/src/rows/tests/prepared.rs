//! Plans of prepared statements, which are kept: each run answers what the same statement would that was planned anew.

use std::path::Path;
use std::sync::Arc;

use futures::StreamExt;
use plinth_core::random::Random;

use super::Db;
use crate::kept_plan::{Known, Plan};
use crate::{KeptPlan, Params, parse};

/// A file of rows from one number on.
fn write(db: &Db, path: &Path, from: u64) {
    // Another file takes its place: what is open stays what it was.
    let new = path.with_extension("new.plinth");
    db.rows(&format!(
        "COPY (SELECT value AS id, value % 7 AS k, concat('text ', value % 11) AS s, CAST(value % 50 AS DECIMAL(10, 2)) / 4 AS d, \
         CAST(value % 50 AS DOUBLE) / 8 AS f, make_date(2024, 1 + CAST(value % 12 AS INT), 5) AS day \
         FROM generate_series({from}, {})) TO '{}'",
        from + 999,
        new.display()
    ));
    std::fs::rename(new, path).unwrap();
}

/// Runs a statement with values, whose plan is kept.
fn run(db: &Db, sql: &str, values: &[(&str, &str)], kept: &Arc<KeptPlan>) -> Result<Vec<String>, String> {
    let params = Params::new(values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    let params = params.keeping(kept);
    let statement = parse(sql).map_err(|e| e.to_string())?.pop().ok_or("no statement")?;
    db.runtime.block_on(async {
        let mut stream = db.session.execute_with(statement, &params).await.map_err(|e| e.to_string())?;
        let mut rows = Vec::new();
        while let Some(batch) = stream.next().await {
            rows.extend(super::texts(&batch.map_err(|e| crate::error::SqlError::from(e).to_string())?));
        }
        rows.sort();
        Ok(rows)
    })
}

/// The plan that is kept, if one is: another one once the statement was planned anew.
fn plan_of(kept: &KeptPlan) -> Option<Arc<Plan>> {
    match &*kept.0.lock().unwrap() {
        Known::Plan(plan) => Some(Arc::clone(plan)),
        Known::Nothing | Known::Unfit => None,
    }
}

const STATEMENTS: [(&str, bool); 11] = [
    ("SELECT count(*), sum(id) FROM t", true),
    ("SELECT count(*), sum(id) FROM t WHERE id > $1", true),
    ("SELECT k, count(*) FROM t WHERE s <> $2 GROUP BY k ORDER BY 2 DESC, 1 LIMIT 3", true),
    ("SELECT s FROM t WHERE id = $1", true),
    ("SELECT a.id FROM t AS a JOIN t AS b ON a.id = b.id + $1 ORDER BY a.id DESC LIMIT 5", true),
    ("SELECT count(*) FROM t WHERE k IN (SELECT k FROM t WHERE id < $1 + 3)", true),
    ("WITH c AS (SELECT k, max(id) AS m FROM t GROUP BY k) SELECT sum(m) FROM c WHERE k < $1", true),
    ("SELECT upper(s), min(id) FROM t WHERE k = $1 % 7 GROUP BY 1", true),
    // Each time another result, or no file.
    ("SELECT count(*) FROM t WHERE now() > TIMESTAMP '2020-01-01' + INTERVAL '1 day' * $1", false),
    ("SELECT count(*) FROM t WHERE random() < 2", false),
    ("SELECT count(*) FROM kept WHERE id > $1", false),
];

#[test]
fn a_kept_plan_answers_as_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path());
    let path = folder.path().join("data.plinth");
    write(&db, &path, 0);
    db.rows("CREATE TABLE kept (id BIGINT PRIMARY KEY)");
    db.rows("INSERT INTO kept VALUES (1), (2), (3), (400)");
    let random = &mut Random(plinth_core::random::trials("PLINTH_SEED", 1));
    let statements: Vec<(String, bool, Arc<KeptPlan>)> = STATEMENTS
        .iter()
        .flat_map(|(sql, keeps)| {
            // By its path and by its name.
            let by_path = sql.replace(" t", &format!(" '{}'", path.display()));
            let by_name = sql.replace(" t", " data");
            [by_path, by_name].map(|sql| (sql, *keeps, Arc::default()))
        })
        .collect();
    for round in 0..60 {
        let (sql, keeps, kept) = &statements[random.index(statements.len())];
        let values = [("1", ["3", "5", "990"][random.index(3)]), ("2", ["text 3", "none"][random.index(2)])];
        let found = run(&db, sql, &values, kept);
        let expected = db.run_with(sql, &values).map(|mut rows| {
            rows.sort();
            rows
        });
        assert_eq!(found, expected, "round {round}: {sql}");
        let plan = plan_of(kept);
        assert_eq!(plan.is_some(), *keeps, "{sql}");
        // Nothing has changed: it is used again.
        assert_eq!(run(&db, sql, &values, kept), expected, "round {round}: {sql}");
        let again = plan.as_ref().zip(plan_of(kept)).is_none_or(|(one, other)| Arc::ptr_eq(one, &other));
        assert!(again, "{sql} was planned anew");
        match random.below(8) {
            0 => write(&db, &path, random.below(500)),
            1 => drop(db.rows("INSERT INTO kept SELECT max(id) + 1 FROM kept")),
            2 => drop(db.rows("SET plinth.native = false")),
            3 => drop(db.rows("SET plinth.native = true")),
            _ => {}
        }
    }
}

#[test]
fn what_a_prepared_statement_names_is_what_it_is_when_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path());
    let path = folder.path().join("data.plinth");
    write(&db, &path, 0);
    db.rows("PREPARE largest AS SELECT max(id), count(*) FROM data WHERE id >= $1");
    assert_eq!(db.rows("EXECUTE largest(10)"), ["999 990"]);
    assert_eq!(db.rows("EXECUTE largest(10)"), ["999 990"]);
    assert_eq!(db.rows("EXECUTE largest(990)"), ["999 10"]);
    write(&db, &path, 100);
    assert_eq!(db.rows("EXECUTE largest(990)"), ["1099 110"]);
    // A table of the same name that is nearer, and none.
    db.rows("CREATE TEMP TABLE data AS SELECT 7 AS id");
    assert_eq!(db.rows("EXECUTE largest(1)"), ["7 1"]);
    db.rows("DROP TABLE data");
    assert_eq!(db.rows("EXECUTE largest(990)"), ["1099 110"]);
    std::fs::remove_file(&path).unwrap();
    db.fails("EXECUTE largest(990)", "data");
    write(&db, &path, 2_000);
    assert_eq!(db.rows("EXECUTE largest(990)"), ["2999 1000"]);
    db.rows("DEALLOCATE ALL");
    db.fails("EXECUTE largest(1)", "no statement");
}

/// Queries over [`write`]'s rows, and values for each of their places.
const EXECUTED: [(&str, &[&[&str]]); 12] = [
    (
        "SELECT count(*), sum(id) FROM data WHERE id > $1 AND k <> $2",
        &[&["3", "-5", "9999999999", "1 + 1", "NULL"], &["2", "0.5"]],
    ),
    (
        "SELECT k, d * $1, f + $2, id % $3 FROM data WHERE id < 10",
        &[&["2", "1.25", "-0.05", "3.00"], &["2", "0.5"], &["3", "-7"]],
    ),
    (
        "SELECT id FROM data WHERE d = $1 ORDER BY id LIMIT $2",
        &[&["1.25", "1.250", "2", "0.1", "12345678901234567.25"], &["3", "0", "1"]],
    ),
    ("SELECT count(*) FROM data WHERE f BETWEEN $1 AND $2", &[&["0.125", "1", "-1"], &["3.5", "2"]]),
    (
        "SELECT s, count(*) FROM data WHERE s = $1 OR s LIKE $2 GROUP BY s",
        &[&["'text 3'", "'it''s'"], &["'%1%'", "'text'", "NULL"]],
    ),
    (
        "SELECT count(*) FROM data WHERE day >= $1",
        &[&["'2024-03-01'", "'2024-11-30'", "DATE '2024-07-01'", "'no day'"]],
    ),
    ("SELECT $1, k + $1 FROM data WHERE ($2) AND id = 5", &[&["7", "'8'", "2.5"], &["true", "false", "1 = 1"]]),
    ("SELECT k + $1, count(*) FROM data GROUP BY k + $1", &[&["7", "(-8)", "0.5"]]),
    ("SELECT substr(s, $1), round(f, $2) FROM data WHERE id < 3", &[&["2", "20", "'x'"], &["1", "0"]]),
    ("SELECT sum(id) FROM data WHERE id IN ($1, 5, $2)", &[&["7", "'8'"], &["9", "(SELECT 11)"]]),
    ("SELECT CASE WHEN k = $1 THEN $2 ELSE s END FROM data WHERE id < 9", &[&["3", "4"], &["'x'", "5"]]),
    (
        "SELECT a.id FROM data AS a JOIN data AS b ON a.id = b.id + $1 WHERE b.k = $2",
        &[&["1", "-2", "400"], &["3", "6"]],
    ),
];

#[test]
fn execute_answers_as_the_statement_with_its_values() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path());
    let path = folder.path().join("data.plinth");
    write(&db, &path, 0);
    for (at, (sql, _)) in EXECUTED.iter().enumerate() {
        db.rows(&format!("PREPARE p{at} AS {sql}"));
    }
    let random = &mut Random(plinth_core::random::trials("PLINTH_SEED", 1));
    // Types and rows: columns without a name are called as the statement that was prepared has them.
    let answer = |sql: &str| {
        let batches = db.batches(sql)?;
        let types = batches.first().map(|batch| {
            let schema = batch.schema();
            schema.fields().iter().map(|field| field.data_type().clone()).collect::<Vec<_>>()
        });
        let mut rows: Vec<_> = batches.iter().flat_map(super::texts).collect();
        rows.sort();
        Ok::<_, String>((types, rows))
    };
    let mut kept = 0;
    for round in 0..400 {
        let at = random.index(EXECUTED.len());
        let (sql, places) = EXECUTED[at];
        let values: Vec<&str> = places.iter().map(|values| values[random.index(values.len())]).collect();
        let written = values
            .iter()
            .enumerate()
            .fold(sql.to_owned(), |sql, (at, value)| sql.replace(&format!("${}", at + 1), &format!("({value})")));
        let execute = format!("EXECUTE p{at}({})", values.join(", "));
        let places_of = || {
            let plan = Arc::clone(&db.session.prepared()[&format!("p{at}")].plan);
            plan_of(&plan).map(|plan| Arc::clone(&plan.places))
        };
        let before = places_of();
        assert_eq!(answer(&execute).ok(), answer(&written).ok(), "round {round}: {execute} of {sql}");
        kept += usize::from(before.zip(places_of()).is_some_and(|(one, other)| Arc::ptr_eq(&one, &other)));
        if random.below(40) == 0 {
            write(&db, &path, random.below(500));
        }
    }
    assert!(kept > 150, "a plan was used again {kept} times only");
}

#[test]
fn what_a_prepared_statement_asks_of_tables_is_asked_when_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path());
    db.rows("CREATE TABLE t (id INT PRIMARY KEY, k TEXT)");
    db.rows("INSERT INTO t SELECT value, concat('k', value % 2) FROM generate_series(1, 20)");
    db.rows("CREATE MACRO twice(x) AS x * 2");
    db.rows(
        "PREPARE share AS SELECT * FROM t LIMIT 10%; PREPARE wide AS SELECT * FROM t PIVOT (count(id) FOR k IN (ANY))",
    );
    db.rows("PREPARE more AS SELECT twice(id) FROM t WHERE id = $1");
    assert_eq!(db.rows("EXECUTE share").len(), 2);
    assert_eq!(db.rows("EXECUTE more(3)"), ["6"]);
    let columns = |db: &Db| db.rows("EXECUTE wide")[0].split(' ').count();
    let before = columns(&db);
    db.rows("INSERT INTO t SELECT value, concat('n', value % 3) FROM generate_series(21, 100)");
    db.rows("CREATE OR REPLACE MACRO twice(x) AS x * 20");
    assert_eq!(db.rows("EXECUTE share").len(), 10);
    assert_eq!(db.rows("EXECUTE more(3)"), ["60"]);
    assert_eq!(columns(&db), before + 3);
}

#[test]
fn places_of_an_execute_are_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path());
    db.rows(
        "COPY (SELECT value AS a, value + 2 AS b FROM generate_series(1, 9)) TO 'places.plinth'"
            .replace("places", &folder.path().join("places").display().to_string())
            .as_str(),
    );
    db.rows("PREPARE p AS SELECT a FROM places WHERE a = $1 AND b = $2");
    for _ in 0..2 {
        assert_eq!(db.run_with("EXECUTE p(5, $1)", &[("1", "7")]).unwrap(), ["5"]);
        assert_eq!(db.run_with("EXECUTE p($1, 8)", &[("1", "6")]).unwrap(), ["6"]);
        assert_eq!(db.run_with("EXECUTE p($2, $1)", &[("1", "9"), ("2", "7")]).unwrap(), ["7"]);
        assert_eq!(db.rows("EXECUTE p(5, 7)"), ["5"]);
        assert_eq!(db.rows("EXECUTE p(5, 5)"), Vec::<String>::new());
        db.fails("EXECUTE p($2, 9)", "$2");
    }
}

#[test]
fn rows_of_functions_are_those_of_each_run() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path());
    let file = |name: &str| std::fs::write(folder.path().join(name), "a\n1\n").unwrap();
    file("one.csv");
    let kept = Arc::new(KeptPlan::default());
    let sql = format!("SELECT count(*) FROM glob('{}/*.csv')", folder.path().display());
    assert_eq!(run(&db, &sql, &[], &kept).unwrap(), ["1"]);
    file("two.csv");
    assert_eq!(run(&db, &sql, &[], &kept).unwrap(), ["2"]);
    assert!(plan_of(&kept).is_none());
}
