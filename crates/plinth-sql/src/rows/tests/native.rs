//! Random questions over tables of several kinds: own operators and the engine's give the same rows.

use plinth_core::random::Random;

use super::Db;

/// Rows of the tables.
const ROWS: usize = 700;

/// Questions of each set of tables.
const QUESTIONS: usize = 60;

/// What rows are grouped by.
const KEYS: [&str; 22] = [
    "s",
    "u",
    "i",
    "b",
    "f",
    "d",
    "m",
    "t",
    "ts",
    "n",
    "bin",
    "i % 7",
    "upper(s)",
    "length(u)",
    "substr(u, 1, 3)",
    "date_trunc('month', ts)",
    "CASE WHEN i > 3 THEN s END",
    "1",
    "w",
    "regexp_replace(u, '[0-9a]+', '<>')",
    "coalesce(s, 'none')",
    "u LIKE '%1%2%'",
];

/// What is computed of groups.
const AGGREGATES: [&str; 44] = [
    "count(*)",
    "count(i)",
    "count(u)",
    "sum(i)",
    "sum(b)",
    "sum(f)",
    "sum(m)",
    "avg(i)",
    "avg(n)",
    "avg(f)",
    "avg(m)",
    "min(i)",
    "max(i)",
    "min(b)",
    "max(d)",
    "min(ts)",
    "max(t)",
    "min(m)",
    "max(m)",
    "min(s)",
    "max(u)",
    "min(f)",
    "count(DISTINCT i)",
    "count(DISTINCT s)",
    "count(DISTINCT u)",
    "count(DISTINCT f)",
    "count(DISTINCT m)",
    "sum(DISTINCT i)",
    "count(*) FILTER (WHERE i > 2)",
    "sum(b) FILTER (WHERE t)",
    "count(DISTINCT s) FILTER (WHERE i < 5)",
    "median(i)",
    "bool_or(t)",
    "max(n)",
    "sum(i + 3)",
    "sum(n - 7)",
    "avg(2 + n)",
    "sum(length(u))",
    "max(upper(s))",
    "sum(m * (1 - m))",
    "sum(m * 2 + w)",
    "avg(m * m - 1.005)",
    "sum(m * CAST(n AS DECIMAL(10,4)))",
    "max(CAST(m AS DECIMAL(20,4)) - m)",
];

/// What rows are left by.
pub(super) const FILTERS: [&str; 9] = [
    "",
    "WHERE i > 2",
    "WHERE s = 'b'",
    "WHERE u LIKE '%a%'",
    "WHERE false",
    "WHERE t AND b < 1000",
    "WHERE i IS NULL",
    "WHERE id % 3 = 0",
    "WHERE upper(s) = 'A' OR length(u) > 10",
];

/// A row as SQL.
fn row(random: &mut Random, id: usize) -> String {
    let mut some = |values: &[&str]| values[random.index(values.len())].to_owned();
    let s = some(&["'a'", "'b'", "'c'", "''", "NULL", "'a longer text, of which there are few'"]);
    let i = some(&["0", "1", "2", "3", "4", "5", "9", "-7", "NULL"]);
    let b = some(&["0", "1", "999", "-9223372036854775808", "9223372036854775807", "1234567890123", "NULL", "5", "6"]);
    // Not both zeros: the engine counts them as two distinct values.
    let f = some(&["0.0", "1.5", "'NaN'::DOUBLE", "'inf'::DOUBLE", "-2.5", "NULL", "1024.0"]);
    let d = some(&["DATE '2024-02-29'", "DATE '1969-12-31'", "DATE '0001-01-01'", "NULL"]);
    let m = some(&["1.25", "-0.01", "99999999.99", "0", "NULL"]);
    let t = some(&["true", "false", "NULL"]);
    let ts = some(&["TIMESTAMP '2024-05-06 07:08:09'", "TIMESTAMP '1970-01-01 00:00:00'", "NULL"]);
    let n = some(&["0", "255", "17", "NULL"]);
    let bin = some(&["X'00'", "X'FF00'", "X''", "NULL"]);
    let w = some(&["12345678901234567890123456789", "-1", "0", "98765432109876543210", "NULL"]);
    let u = match random.below(4) {
        0 => "NULL".to_owned(),
        1 => format!("'a common beginning and then {}'", id / 3),
        _ => format!("'{:x}'", id.wrapping_mul(2_654_435_761) % 5000),
    };
    format!("({id}, {s}, {u}, {i}, {b}, {f}, {d}, {m}, {t}, {ts}, {n}, {bin}, {w})")
}

pub(super) const COLUMNS: &str = "id BIGINT, s TEXT, u TEXT, i INT, b BIGINT, f DOUBLE, d DATE, m DECIMAL(10,2), t BOOLEAN, \
                       ts TIMESTAMP, n SMALLINT, bin BYTEA, w DECIMAL(38,0)";

/// Tables of the same rows: one file, several files, rows of which some were deleted, Parquet. Their names as FROM takes them.
pub(super) fn tables(db: &Db, folder: &std::path::Path, random: &mut Random) -> Vec<String> {
    let run = |sql: &str| db.run(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    run(&format!("CREATE TABLE kept ({COLUMNS})"));
    let rows: Vec<String> = (0..ROWS).map(|id| row(random, id)).collect();
    run(&format!("INSERT INTO kept VALUES {}", rows.join(", ")));
    let path = |name: &str| folder.join(name).display().to_string();
    run(&format!("COPY (SELECT * FROM kept) TO '{}' STORED AS PLINTH", path("one.plinth")));
    run(&format!("COPY (SELECT * FROM kept) TO '{}' STORED AS PARQUET", path("one.parquet")));
    std::fs::create_dir(folder.join("several")).unwrap();
    for part in 0..3 {
        let to = path(&format!("several/{part}.plinth"));
        run(&format!("COPY (SELECT * FROM kept WHERE id % 3 = {part}) TO '{to}' STORED AS PLINTH"));
    }
    // Some rows in a segment, some deleted, some in memory.
    run("VACUUM kept");
    run(&format!(
        "INSERT INTO kept VALUES {}",
        rows.iter().map(|row| row.replacen('(', "(1000000 + ", 1)).collect::<Vec<_>>().join(", ")
    ));
    run("DELETE FROM kept WHERE id < 1000000");
    run("UPDATE kept SET id = id - 1000000");
    vec![
        "kept".to_owned(),
        format!("'{}'", path("one.plinth")),
        format!("'{}/'", path("several")),
        format!("'{}'", path("one.parquet")),
    ]
}

/// A question, and whether its rows come in an order.
pub(super) fn question(random: &mut Random) -> (String, String) {
    let mut some = |values: &[&str], most: u64| {
        let count = random.below(most + 1);
        (0..count).map(|_| values[random.index(values.len())].to_owned()).collect::<Vec<_>>()
    };
    let (mut keys, aggregates) = (some(&KEYS, 3), some(&AGGREGATES, 4));
    keys.dedup();
    let filter = FILTERS[random.index(FILTERS.len())];
    let names: Vec<String> = (0..keys.len()).map(|at| format!("k{at}")).collect();
    let mut columns: Vec<String> = keys.iter().zip(&names).map(|(key, name)| format!("{key} AS {name}")).collect();
    columns.extend(aggregates.iter().enumerate().map(|(at, aggregate)| format!("{aggregate} AS a{at}")));
    if columns.is_empty() {
        columns.push("count(*) AS a0".to_owned());
    }
    let mut end = String::new();
    if !keys.is_empty() {
        end += &format!(
            " GROUP BY {}",
            keys.iter()
                .map(|key| if key == "1" { "2 - 1".to_owned() } else { key.clone() })
                .collect::<Vec<_>>()
                .join(", ")
        );
    }
    if random.below(4) == 0 && !keys.is_empty() {
        end += " HAVING count(*) > 2";
    }
    if random.below(2) == 0 && !keys.is_empty() {
        let mut order = names.clone();
        if !aggregates.is_empty() {
            order.insert(0, ["a0", "a0 DESC", "a0 DESC NULLS LAST", "a0 NULLS FIRST"][random.index(4)].to_owned());
        }
        end += &format!(" ORDER BY {} LIMIT {}", order.join(", "), random.below(12));
    }
    (format!("SELECT {} FROM ", columns.join(", ")), format!(" {filter}{end}"))
}

#[test]
#[allow(clippy::cast_possible_truncation, reason = "small numbers")]
fn own_operators_answer_as_the_engine_does() {
    let rounds = plinth_core::random::trials("PLINTH_NATIVE_ROUNDS", 2);
    let first = plinth_core::random::trials("PLINTH_NATIVE_SEED", 1);
    let mut native = 0;
    for seed in first..first + rounds {
        let random = &mut Random(seed);
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(folder.path());
        let tables = tables(&db, folder.path(), random);
        for _ in 0..QUESTIONS {
            let (before, after) = question(random);
            let mut expected: Option<Result<Vec<String>, String>> = None;
            for table in &tables {
                let sql = format!("{before}{table}{after}");
                let plan = db.run(&format!("EXPLAIN {sql}")).unwrap_or_default().join("\n");
                native += usize::from(plan.contains("GroupExec"));
                for setting in ["false", "true"] {
                    db.run(&format!("SET plinth.native = {setting}")).unwrap();
                    // Which of several sums leaves its type first is not for a query to say.
                    let digit = |c: char| c.is_ascii_digit() || c == '-';
                    let rows = db.sorted(&sql).map_err(|error| error.replace(digit, ""));
                    // Whether the sum of a group that a limit leaves out is computed is not, either.
                    let sum = |rows: &Result<_, String>| rows.as_ref().is_err_and(|error| error.contains("a sum is"));
                    match &expected {
                        None => expected = Some(rows),
                        Some(expected) if after.contains(" LIMIT ") && sum(expected) != sum(&rows) => {}
                        Some(expected) => {
                            assert_eq!(&rows, expected, "seed {seed}, native {setting}: {sql}");
                        }
                    }
                }
            }
        }
    }
    assert!(native > 0, "own operators were never used");
}

#[test]
fn many_groups_of_own_operators_are_those_of_the_engine() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path());
    let path = |name: &str| folder.path().join(name).display().to_string();
    let rows = "SELECT value % 20011 AS k, concat('a text ', value % 15013) AS s, value % 7 AS i, value % 977 AS v, \
                concat(value % 12007, ' of others') AS u FROM generate_series(1, 60000)";
    let (plinth, parquet) = (path("many.plinth"), path("many.parquet"));
    db.run(&format!("COPY ({rows}) TO '{plinth}' STORED AS PLINTH")).unwrap();
    db.run(&format!("COPY ({rows}) TO '{parquet}' STORED AS PARQUET")).unwrap();
    for question in [
        "SELECT k, count(*), count(DISTINCT v), sum(i), avg(v), min(v), max(u), median(v) FROM t GROUP BY k",
        "SELECT s, count(DISTINCT k), count(DISTINCT u), min(u) FROM t GROUP BY s",
        "SELECT s, i, count(*) AS n, count(DISTINCT u) AS d FROM t GROUP BY s, i ORDER BY n DESC, s, i LIMIT 50",
        "SELECT k, s, count(*) AS n FROM t GROUP BY k, s ORDER BY n, k DESC, s LIMIT 20",
        "SELECT count(DISTINCT s), count(DISTINCT k), count(DISTINCT v) FROM t",
        "SELECT DISTINCT u FROM t",
        "SELECT upper(u), min(s), max(u), sum(length(s)) FROM t GROUP BY upper(u)",
        "SELECT regexp_replace(s, '[0-9]$', 'x') AS r, count(DISTINCT length(u)), count(*) FILTER (WHERE s LIKE '%1%2%') FROM t GROUP BY r",
        "SELECT sum(v + 3), avg(v), sum(i - 2), count(*), count(v), count(DISTINCT s) FROM t",
        "SELECT count(DISTINCT s) FROM t",
        "SELECT min(upper(s)), sum(v + 3) FROM t",
    ] {
        let mut expected: Option<Vec<String>> = None;
        for file in [&plinth, &parquet] {
            for native in [false, true] {
                db.run(&format!("SET plinth.native = {native}")).unwrap();
                let mut rows = db.run(&question.replace("FROM t", &format!("FROM '{file}'"))).unwrap();
                rows.sort();
                assert_eq!(&rows, expected.get_or_insert_with(|| rows.clone()), "native {native}: {question}");
            }
        }
    }
    // The names of the first of all parts leave, not of the first of each: those of a far file are read for it.
    for file in [&plinth, &parquet] {
        let top = format!("SELECT s, count(*) AS n FROM '{file}' GROUP BY s ORDER BY n DESC LIMIT 10");
        let plan = db.run(&format!("EXPLAIN ANALYZE {top}")).unwrap().join("\n");
        let groups = plan.lines().find(|line| line.contains("GroupExec")).unwrap_or_default();
        assert!(groups.contains("output_rows=10,"), "{plan}");
    }
}

#[test]
fn metadata_answers_for_whole_files_only() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path());
    let file = folder.path().join("rows.plinth").display().to_string();
    let rows = "SELECT CAST(CASE WHEN value % 5 > 0 THEN value END AS INT) AS i, concat('text ', value % 13) AS s, \
                arrow_cast(1.0 * value, 'Float64') AS f, 9223372036854775807 - value AS b FROM generate_series(1, 1000)";
    db.run(&format!("COPY ({rows}) TO '{file}' STORED AS PLINTH")).unwrap();
    for (question, answered) in [
        ("SELECT sum(i), avg(i), count(*), count(i), sum(i + 5), sum(i - 2) FROM t", true),
        ("SELECT sum(i), sum(i + 1), sum(i + 2) FROM t", true),
        ("SELECT sum(n) FROM (SELECT i + 1 AS n FROM t)", true),
        ("SELECT sum(n) FROM (SELECT i * 2 AS n FROM t)", false),
        ("SELECT count(DISTINCT s) FROM t", true),
        ("SELECT avg(b) FROM t", true),
        ("SELECT sum(i) FROM t WHERE i > 3", false),
        ("SELECT sum(i) FILTER (WHERE i > 3), sum(i) FROM t", false),
        ("SELECT sum(f), sum(i) FROM t", false),
        // In their order, all of them differ.
        ("SELECT count(DISTINCT i) FROM t", true),
        ("SELECT count(DISTINCT b % 7) FROM t", false),
        ("SELECT sum(i) FROM (SELECT i FROM t LIMIT 10)", false),
        ("SELECT s, sum(i) FROM t GROUP BY s ORDER BY s", false),
        // A row would leave its type.
        ("SELECT avg(b + 2000) FROM t", false),
    ] {
        let question = question.replace("FROM t", &format!("FROM '{file}'"));
        let plan = db.run(&format!("EXPLAIN {question}")).unwrap().join("\n");
        assert_eq!(!plan.contains("file_groups"), answered, "{question}: {plan}");
        db.run("SET plinth.native = false").unwrap();
        let expected = db.run(&question);
        db.run("SET plinth.native = true").unwrap();
        // The engine's mean adds doubles; ours is of the exact sum.
        if !question.contains("(b)") {
            assert_eq!(db.run(&question), expected, "{question}");
        }
    }
    assert_eq!(db.run(&format!("SELECT avg(b) FROM '{file}'")).unwrap(), ["9.223372036854776e18"]);
}

#[test]
fn groups_that_give_way_are_those_of_the_engine() {
    let folder = tempfile::tempdir().unwrap();
    let (plenty, little) = (Db::open(folder.path()), Db::open_within(folder.path(), Default::default(), 24 << 20));
    plenty.run("SET plinth.native = false").unwrap();
    let rows = "(SELECT concat('text ', value % 40009) AS s, value % 30011 AS k, value % 97 AS v, concat('other ', value % 89) AS u \
                FROM generate_series(1, 120000))";
    for groups in [
        "SELECT s, count(*) AS c, count(DISTINCT v) AS d, max(u) AS m FROM t GROUP BY s",
        "SELECT k, count(*) AS c, count(DISTINCT u) AS d, min(u) AS m FROM t GROUP BY k",
        "SELECT s, k, count(*) AS c, sum(v) AS d, max(u) AS m FROM t GROUP BY s, k",
    ] {
        let groups = groups.replace("FROM t", &format!("FROM {rows} AS t"));
        let question = format!("SELECT count(*), sum(c), sum(d), min(m), max(m) FROM ({groups})");
        assert_eq!(little.run(&question), plenty.run(&question), "{question}");
    }
}

/// Numbers of text are kept from query to query, also while the files that it is of are replaced.
#[test]
fn text_of_files_that_are_replaced_is_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let (plenty, little) = (Db::open(folder.path()), Db::open_within(folder.path(), Default::default(), 24 << 20));
    let path = |name: String| folder.path().join(name).display().to_string();
    std::fs::create_dir(folder.path().join("t")).unwrap();
    for version in 0..4 {
        for part in 0..3 {
            let (to, new) = (path(format!("t/{part}.plinth")), path(format!("{part}.new.plinth")));
            let rows = format!(
                "SELECT concat('a text of some length, ', (value * 31 + {version} * 1000) % 5003) AS s, value % 7 AS v \
                 FROM generate_series({part}, 20000, 3)"
            );
            plenty.rows(&format!("COPY ({rows}) TO '{new}'"));
            std::fs::rename(new, to).unwrap();
        }
        for question in [
            "SELECT s, count(*), sum(v) FROM t GROUP BY s",
            "SELECT v, count(DISTINCT s) FROM t GROUP BY v",
            "SELECT s, v, count(*) AS n FROM t WHERE s LIKE '%1%' GROUP BY s, v ORDER BY n DESC, s, v LIMIT 30",
        ] {
            let question = question.replace("FROM t", &format!("FROM '{}/'", path("t".to_owned())));
            plenty.rows("SET plinth.native = false");
            let expected = plenty.sorted(&question);
            plenty.rows("SET plinth.native = true");
            for db in [&plenty, &plenty, &little, &little] {
                assert_eq!(db.sorted(&question), expected, "version {version}: {question}");
            }
        }
    }
}

#[test]
fn rows_that_one_aggregate_needs_are_there_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path());
    let path = folder.path().join("t");
    let rows = "SELECT value AS a, value AS b, value % 7 AS c, CASE WHEN value > 90000 THEN 5 END AS late, \
                CASE WHEN value % 3 > 0 THEN named_struct('x', value % 2) END AS s FROM generate_series(1, 100000)";
    for (format, extension) in [("PLINTH", "plinth"), ("PARQUET", "parquet")] {
        let path = path.with_extension(extension).display().to_string();
        db.rows(&format!("COPY ({rows}) TO '{path}' STORED AS {format}"));
        for native in [true, false] {
            db.run(&format!("SET plinth.native = {native}")).unwrap();
            for (sql, expected) in [
                ("SELECT min(a), max(b + 1) FROM t WHERE c >= 0", "1 100001"),
                ("SELECT min(a), min(late) FROM t WHERE a > 0", "1 5"),
                ("SELECT max(a), min(b - 1), count(*) FROM t WHERE c <> 9", "100000 0 100000"),
                // A LIMIT gives the first rows, whatever comes of them.
                ("SELECT max(b) FROM (SELECT b FROM t LIMIT 50000)", "50000"),
                ("SELECT b FROM (SELECT b FROM t LIMIT 50000) ORDER BY b DESC LIMIT 1", "50000"),
                (
                    "SELECT count(*) FROM (SELECT b FROM t LIMIT 50000) AS x JOIN (SELECT 60000 AS k) AS y ON x.b = y.k",
                    "0",
                ),
                ("SELECT count(*) FROM t WHERE a < 1000 AND (s = named_struct('x', 1) OR s IS NULL)", "666"),
            ] {
                let sql = sql.replace("FROM t", &format!("FROM '{path}'"));
                assert_eq!(db.rows(&sql), [expected], "{native}: {sql}");
            }
        }
    }
    let path = folder.path().join("nan.parquet").display().to_string();
    db.rows(&format!(
        "COPY (SELECT * FROM (VALUES (1.0), ('NaN'::DOUBLE), (3.0)) AS v(f)) TO '{path}' STORED AS PARQUET"
    ));
    assert_eq!(db.rows(&format!("SELECT max(f), min(f) FROM '{path}'")), ["NaN 1.0"]);
}
