//! What SQL means: tests/sql/meaning.sql, whose answers are PostgreSQL's.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::common::{Dir, Run, command, plinth};

struct Case {
    name: String,
    statements: String,
    answer: Vec<String>,
}

fn cases() -> Vec<Case> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/sql/meaning.sql");
    let text = fs::read_to_string(file).unwrap();
    let parts = text.split("\n-- name: ").skip(1);
    let case = |part: &str| {
        let (name, rest) = part.split_once('\n').unwrap();
        let (statements, answer) = rest.split_once("\n-->\n").unwrap();
        Case {
            name: name.to_owned(),
            statements: statements.to_owned(),
            answer: answer.trim_end_matches('\n').lines().map(str::to_owned).collect(),
        }
    };
    parts.map(case).collect()
}

/// The lines of an answer, in an order of their own if they have none.
fn lines(text: &str, ordered: bool) -> Vec<String> {
    let mut lines: Vec<_> = text.trim_end_matches('\n').lines().map(str::to_owned).collect();
    if !ordered {
        lines.sort();
    }
    lines
}

/// Runs statements on the tables of a folder, for a minute at most: some of them went on for ever.
fn run(dir: &Dir, statements: &str) -> Option<Run> {
    let mut command = command(dir, &["sql", "--db", ".", "--format", "csv", "-c", statements]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    for _ in 0..1200 {
        if child.try_wait().unwrap().is_some() {
            return Some(child.wait_with_output().unwrap().into());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}

#[test]
fn answers_are_those_of_sql() {
    let dir = Dir::new();
    let mut wrong = Vec::new();
    for Case { name, statements, answer } in cases() {
        let Some(run) = run(&dir, &statements) else {
            wrong.push(format!("{name}: did not end"));
            continue;
        };
        if let Some(error) = answer.first().and_then(|line| line.strip_prefix("error: ")) {
            if run.code != Some(1) || !run.stderr.contains(error) || run.stderr.trim_end().lines().count() != 1 {
                wrong.push(format!("{name}: {:?} {}{}", run.code, run.stdout, run.stderr));
            }
            continue;
        }
        let ordered = name.ends_with(" ordered");
        if run.code != Some(0) || lines(&run.stdout, ordered) != lines(&answer.join("\n"), ordered) {
            wrong.push(format!("{name}: {:?} {}{}", run.code, run.stdout, run.stderr));
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn distinct_on_takes_parameters() {
    let dir = Dir::new();
    let sql =
        "SELECT DISTINCT ON (a) a, b + $n::int AS b FROM (VALUES (1, 2), (1, 1), (2, 3)) AS v(a, b) ORDER BY a, b";
    let run = plinth(&dir, &["sql", "--format", "csv", "--param", "n=10", "-c", sql]).ok();
    assert_eq!(run.stdout, "a,b\n1,11\n2,13\n");
}

/// Random predicates over the columns of `t`, of which each may be NULL.
struct Predicates(u64);

impl Predicates {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn pick<'a>(&mut self, options: &[&'a str]) -> &'a str {
        options[self.below(options.len())]
    }

    fn not(&mut self) -> &'static str {
        self.pick(&["", "NOT "])
    }

    fn value(&mut self) -> &'static str {
        self.pick(&["a", "b", "a", "b", "a + 1", "nullif(b, 1)", "1", "CAST(NULL AS INT)"])
    }

    /// Of the table that is asked, by the names of its columns, and of another, which may depend on the row.
    fn subquery(&mut self) -> String {
        let from = self.pick(&[
            "t",
            "u",
            "u WHERE false",
            "u WHERE v IS NOT NULL",
            "t WHERE b IS NOT NULL",
            "u WHERE u.k = t.b",
            "u WHERE u.k < 3 AND u.k = t.a",
        ]);
        let column = if from.starts_with('u') { self.pick(&["v", "k"]) } else { self.pick(&["a", "b"]) };
        format!("(SELECT {column} FROM {from})")
    }

    fn predicate(&mut self, depth: usize) -> String {
        let (value, not) = (self.value(), self.not());
        if depth == 0 || self.below(4) == 0 {
            return match self.below(6) {
                0 => format!("{value} {} {}", self.pick(&["=", "<>", "<", ">="]), self.value()),
                1 => format!("{value} {not}IN ({}, {}, {})", self.value(), self.value(), self.value()),
                2 => format!("{value} {not}BETWEEN {} AND {}", self.value(), self.value()),
                3 => {
                    let (op, quantifier) = (self.pick(&["=", "<>", "<", ">="]), self.pick(&["ANY", "ALL"]));
                    format!("{value} {op} {quantifier} {}", self.subquery())
                }
                _ => format!("{value} {not}IN {}", self.subquery()),
            };
        }
        let (one, other) = (self.predicate(depth - 1), self.predicate(depth - 1));
        match self.below(6) {
            0 => format!("({one} AND {other})"),
            1 => format!("({one} OR {other})"),
            2 => format!("NOT ({one})"),
            3 => format!("({one}) IS {not}{}", self.pick(&["NULL", "TRUE", "FALSE"])),
            4 => format!("({value} IS {not}DISTINCT FROM {} AND {other})", self.value()),
            _ => format!("CASE WHEN {one} THEN {other} ELSE {value} > 0 END"),
        }
    }
}

/// Each row is where a predicate holds, or where its opposite does, or where it is NULL; and it is the same one wherever the
/// predicate stands. `PLINTH_PREDICATES` says how many are tried.
#[test]
fn predicates_partition_tables() {
    let count = std::env::var("PLINTH_PREDICATES").ok().and_then(|text| text.parse().ok()).unwrap_or(12_u64);
    let dir = Dir::new();
    let tables = "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT, b INT); \
        INSERT INTO t SELECT i, nullif(i % 4, 3), nullif(i * 7 % 5, 4) FROM generate_series(1, 20) AS g(i); \
        CREATE TABLE u (id BIGINT PRIMARY KEY, v INT, k INT); \
        INSERT INTO u SELECT i, nullif(i % 5, 2), nullif(i % 3, 0) FROM generate_series(1, 7) AS g(i);";
    run(&dir, tables).unwrap().ok();
    for seed in 0..count {
        let p = Predicates(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)).predicate(3);
        let statements = format!(
            "SELECT count(*) AS n FROM t WHERE {p}; SELECT count(*) AS n FROM t WHERE NOT ({p}); \
             SELECT count(*) AS n FROM t WHERE ({p}) IS NULL; \
             SELECT coalesce(sum(CASE WHEN {p} THEN 1 WHEN NOT ({p}) THEN 100 ELSE 10000 END), 0) AS n FROM t; \
             BEGIN; DELETE FROM t WHERE {p}; SELECT count(*) AS n FROM t; ROLLBACK"
        );
        let answer = run(&dir, &statements).unwrap_or_else(|| panic!("seed {seed}: did not end: {p}"));
        // What is refused is said to be.
        if answer.code == Some(1) && answer.stderr.contains("not supported") {
            continue;
        }
        assert_eq!(answer.code, Some(0), "seed {seed}: {} of {p}", answer.stderr);
        let answer = answer.stdout;
        let numbers: Vec<u64> = answer.lines().filter_map(|line| line.parse().ok()).collect();
        let [holds, fails, unknown, selected, left] = numbers[..] else { panic!("seed {seed}: {answer} of {p}") };
        let found = (holds + fails + unknown, selected, left);
        assert_eq!(found, (20, holds + 100 * fails + 10_000 * unknown, 20 - holds), "seed {seed}: {p}");
    }
}
