//! Statements as users of other databases write them: each with its answer, or with why it is refused.

use crate::common::{Dir, plinth};

/// The rows of a statement without their heading.
fn rows(dir: &Dir, sql: &str) -> String {
    let out = plinth(dir, &["sql", "--format", "csv", "-c", sql]).ok().stdout;
    out.split_once('\n').map(|(_, rows)| rows.trim_end().replace('\n', " | ")).unwrap_or_default()
}

/// A folder with the tables that the statements read.
fn tables() -> Dir {
    let dir = Dir::new();
    let sql = "COPY (SELECT value AS id, value % 3 AS g, CAST(value * 1.5 AS decimal(10, 1)) AS v, 'n' || value AS name \
               FROM range(10)) TO 't.parquet'; COPY (SELECT * FROM 't.parquet') TO 't.csv'";
    plinth(&dir, &["sql", "-c", sql]).ok();
    dir
}

/// Runs the statements of a text, each in a process of its own, and compares their answers: rows as CSV, the beginning of them, or
/// that of why a statement is refused.
fn answers(dir: &Dir, text: &str) -> usize {
    let blocks = text.split("\n\n").map(str::trim);
    let (mut wrong, mut count) = (Vec::new(), 0);
    for block in blocks.filter(|block| !block.is_empty() && !block.starts_with('#')) {
        let (sql, expected) = block.split_once('\n').unwrap_or((block, ""));
        let run = plinth(dir, &["sql", "--format", "csv", "-c", sql]);
        let answer = match run.code {
            Some(0) => run.stdout,
            _ => format!("refused: {}", run.stderr.trim_start_matches("plinth: ")),
        };
        let same = match expected.strip_prefix("begins: ") {
            Some(beginning) => answer.starts_with(beginning),
            None if expected.starts_with("refused: ") => answer.starts_with(expected),
            None => answer.trim_end() == expected,
        };
        if !same {
            wrong.push(format!("{sql}\n{answer}"));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    count
}

#[test]
fn habits_have_their_answers() {
    answers(&tables(), include_str!("../habits.txt"));
}

/// The statements of DuckDB's users that were tried first.
#[test]
fn probes_have_their_answers() {
    let dir = Dir::new();
    std::fs::write(dir.path("semi.csv"), "a;b\n1;2\n3;4\n").unwrap();
    for folder in ["part/y=2024/m=1", "part/y=2025/m=2"] {
        std::fs::create_dir_all(dir.path(folder)).unwrap();
    }
    plinth(&dir, &["sql", "-c", include_str!("../probes.sql")]).ok();
    let text = include_str!("../probes.txt");
    assert_eq!(answers(&dir, text), 204);
    // What DuckDB refuses, too, is right where it is refused.
    let refused = text.lines().filter(|line| line.starts_with("refused: ")).count();
    assert!(204 - refused >= 180, "{refused} are refused");
}

#[test]
fn samples_are_samples() {
    let dir = tables();
    let count = |sample: &str| -> u64 {
        rows(&dir, &format!("SELECT count(*) FROM range(100000) AS t {sample}")).parse().unwrap()
    };
    assert_eq!(rows(&dir, "SELECT count(*), max(id) < 10 FROM 't.parquet' TABLESAMPLE (3 ROWS)"), "3,true");
    assert_eq!(rows(&dir, "SELECT count(*) FROM 't.parquet' TABLESAMPLE (0 PERCENT)"), "0");
    assert_eq!(rows(&dir, "SELECT count(*) FROM 't.parquet' a TABLESAMPLE BERNOULLI (100)"), "10");
    assert_eq!(rows(&dir, "SELECT count(t.id) FROM (SELECT id FROM 't.parquet') AS t TABLESAMPLE (4 ROWS)"), "4");
    let half = count("TABLESAMPLE BERNOULLI (50)");
    assert!((45_000..55_000).contains(&half), "{half}");
    for other in
        ["SAMPLE 0.1", "TABLESAMPLE (10)", "TABLESAMPLE BERNOULLI (10) REPEATABLE (1)", "TABLESAMPLE SYSTEM (101)"]
    {
        let run = plinth(&dir, &["sql", "-c", &format!("SELECT * FROM 't.parquet' {other}")]);
        assert_eq!(run.code, Some(1), "{other}: {}", run.stdout);
    }
}

#[test]
fn copies_of_tables_that_come_first_have_their_rows() {
    let dir = tables();
    plinth(&dir, &["sql", "-c", "COPY (FROM 't.parquet') TO 'u.plinth'"]).ok();
    assert_eq!(rows(&dir, "SELECT count(*), sum(id) FROM 'u.plinth'"), "10,45");
}

#[test]
fn transactions_that_nothing_ends_are_told() {
    let dir = Dir::new();
    std::fs::create_dir(dir.path("db")).unwrap();
    plinth(&dir, &["sql", "--db", "db", "-c", "CREATE TABLE a (id INT PRIMARY KEY)"]).ok();
    let begun = ["sql", "--db", "db", "-c", "BEGIN; INSERT INTO a VALUES (1)"];
    plinth(&dir, &begun).fails(1, "plinth: the transaction was begun and not ended: nothing of it is kept");
    let count = ["sql", "--db", "db", "-c", "SELECT count(*) AS n FROM a"];
    assert_eq!(plinth(&dir, &count).ok().stdout, "n\n0\n");
    plinth(&dir, &["sql", "--db", "db", "-c", "BEGIN; INSERT INTO a VALUES (1); COMMIT"]).ok();
    assert_eq!(plinth(&dir, &count).ok().stdout, "n\n1\n");
}

#[test]
fn names_of_outputs_hold_what_they_say() {
    let dir = Dir::new();
    for name in ["x.csv.gz", "x.plinth", "x.JSON.ZST"] {
        plinth(&dir, &["sql", "-c", "SELECT 1", "-o", name]).fails(1, &format!("plinth: {name}: "));
    }
    assert!(dir.entries().is_empty());
}
