//! Statements of any depth are answered or refused; none ends the process.

use super::Db;
use crate::runtime::STACK;

/// Work on a thread with the stack that statements have.
pub(super) fn on_its_stack(work: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work).unwrap();
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

fn table() -> (tempfile::TempDir, Db) {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path());
    db.rows("CREATE TABLE t (id INT PRIMARY KEY, a INT, s TEXT); INSERT INTO t VALUES (1, 1, 'x'), (2, 5, 'y'), (3, 9999, 'z')");
    (dir, db)
}

fn chain(links: usize, link: impl Fn(usize) -> String, with: &str) -> String {
    (0..links).map(link).collect::<Vec<_>>().join(with)
}

#[test]
fn long_chains_and_lists_are_answered() {
    on_its_stack(|| {
        let (_dir, db) = table();
        let any = chain(10_000, |i| format!("a = {i}"), " OR ");
        assert_eq!(db.rows(&format!("SELECT count(*) FROM t WHERE {any}")), ["3"]);
        let all = chain(3_000, |i| format!("a <> {}", i + 2), " AND ");
        assert_eq!(db.rows(&format!("SELECT count(*) FROM t WHERE {all}")), ["2"]);
        let union = chain(1_000, |i| format!("SELECT {i} AS x"), " UNION ALL ");
        assert_eq!(db.rows(&format!("SELECT count(*), sum(x), max(x) FROM ({union})")), ["1000 499500 999"]);
        let distinct = chain(200, |i| format!("SELECT {} AS x", i % 7), " UNION ");
        assert_eq!(db.rows(&format!("SELECT count(*), sum(x) FROM ({distinct})")), ["7 21"]);
        let list = chain(100_000, |i| i.to_string(), ", ");
        assert_eq!(db.rows(&format!("SELECT count(*) FROM t WHERE a IN ({list})")), ["3"]);
        let rows = chain(5_000, |i| format!("({}, {i}, 'x')", i + 10), ", ");
        assert_eq!(db.rows(&format!("INSERT INTO t VALUES {rows}")), ["5000"]);
        let some = chain(3_000, |i| format!("a = {i}"), " OR ");
        assert_eq!(db.rows(&format!("UPDATE t SET s = 'u' WHERE {some}")), ["3002"]);
        assert_eq!(db.rows(&format!("DELETE FROM t WHERE {some}")), ["3002"]);
        let sum = vec!["1"; 300].join(" + ");
        assert_eq!(db.rows(&format!("SELECT {sum}")), ["300"]);
    });
}

/// Statements that are as deep as they are told.
fn productions(depth: usize) -> Vec<(&'static str, String)> {
    let around = |open: &str, inner: &str, close: &str| format!("{}{inner}{}", open.repeat(depth), close.repeat(depth));
    let ctes = chain(
        depth,
        |i| if i == 0 { "c0 AS (SELECT 1 AS x)".into() } else { format!("c{i} AS (SELECT x FROM c{})", i - 1) },
        ", ",
    );
    let case = chain(depth, |i| format!("WHEN a = {i} THEN {i}"), " ");
    vec![
        ("plus", format!("SELECT {}", vec!["a"; depth].join(" + ")) + " FROM t"),
        ("concatenation", format!("SELECT {}", vec!["s"; depth].join(" || ")) + " FROM t"),
        ("or", format!("SELECT id FROM t WHERE {}", chain(depth, |i| format!("a = {i}"), " OR "))),
        ("or and and", format!("SELECT id FROM t WHERE {}", chain(depth, |i| format!("a = {i}"), " OR id = 1 AND "))),
        ("comparisons", format!("SELECT {}", vec!["1"; depth].join(" = "))),
        ("union", vec!["SELECT 1"; depth].join(" UNION ALL ")),
        ("except", vec!["SELECT 1"; depth].join(" EXCEPT ")),
        ("unions of kinds", vec!["SELECT 1"; depth].join(" UNION SELECT 1 UNION ALL ")),
        ("parentheses", format!("SELECT {}", around("(", "1", ")"))),
        ("not", format!("SELECT {}", around("NOT ", "true", ""))),
        ("minus", format!("SELECT {}", around("- ", "1", ""))),
        ("is null", format!("SELECT a {} FROM t", "IS NULL ".repeat(depth))),
        ("casts", format!("SELECT a{} FROM t", "::INT".repeat(depth))),
        ("fields", format!("SELECT s{} FROM t", "[1]".repeat(depth))),
        ("functions", format!("SELECT {}", around("abs(", "1", ")"))),
        ("case in case", format!("SELECT {}", around("CASE WHEN true THEN ", "1", " END"))),
        ("case", format!("SELECT CASE {case} END FROM t")),
        ("subqueries", around("SELECT * FROM (", "SELECT 1", ")")),
        ("scalar subqueries", format!("SELECT {}", around("(SELECT ", "1", ")"))),
        ("in subqueries", format!("SELECT 1 WHERE {}", around("1 IN (SELECT 1 WHERE ", "true", ")"))),
        (
            "joins",
            format!("SELECT count(*) FROM t AS t0 {}", chain(depth, |i| format!("JOIN t AS u{i} USING (id)"), " ")),
        ),
        ("cross joins", format!("SELECT count(*) FROM {}", chain(depth, |i| format!("(SELECT 1) AS u{i}"), ", "))),
        ("with", format!("WITH {ctes} SELECT * FROM c{}", depth - 1)),
        ("explain", around("EXPLAIN ", "SELECT 1", "")),
        ("arrays", format!("SELECT {}", around("[", "1", "]"))),
        ("array types", format!("SELECT NULL::INT{}", "[]".repeat(depth))),
        ("types", format!("CREATE TABLE deep (a {})", around("ARRAY<", "INT", ">"))),
        ("structs", format!("CREATE TABLE deep (a {})", around("STRUCT<a ", "INT", ">"))),
        ("like", format!("SELECT {}", vec!["'a'"; depth].join(" LIKE "))),
        ("between", format!("SELECT {}", vec!["1"; depth].join(" BETWEEN 0 AND "))),
        ("at time zone", format!("SELECT now(){}", " AT TIME ZONE 'UTC'".repeat(depth))),
    ]
}

const ANSWERED: [&str; 4] = ["or", "or and and", "union", "case"];

const SLOW: [&str; 4] = ["except", "unions of kinds", "with", "between"];

#[test]
fn no_depth_ends_the_process() {
    on_its_stack(|| {
        let (_dir, db) = table();
        let depths = std::env::var("PLINTH_DEPTHS").unwrap_or_else(|_| "10,20000".to_owned());
        for depth in depths.split(',').map(|depth| depth.parse::<usize>().unwrap()) {
            let all = productions(depth);
            let few = productions(depth.min(10));
            for ((name, sql), (_, short)) in all.into_iter().zip(few) {
                // Each level of these is planned for long; none of many is.
                let slow = name.ends_with("joins") || name.ends_with("subqueries") || SLOW.contains(&name);
                // These are answered, however many there are.
                let long = ANSWERED.contains(&name) && depth > 1_000;
                let sql = if (slow && depth < 1_000) || long { short } else { sql };
                let started = std::time::Instant::now();
                for sql in [
                    format!("EXPLAIN {sql}"),
                    format!("PREPARE p AS {sql}"),
                    format!("CREATE VIEW v AS {sql}"),
                    format!("INSERT INTO t (id) {sql}"),
                    format!("DELETE FROM t WHERE id IN ({sql})"),
                    sql,
                ] {
                    if let Err(error) = db.run(&sql) {
                        assert!(
                            error.len() < 3_000,
                            "{name} {depth}: {} bytes of error: {}",
                            error.len(),
                            &error[..200]
                        );
                    }
                    let _ = db.run("DEALLOCATE p");
                    let _ = db.run("DROP VIEW v");
                }
                println!("{depth} {name}: {:?}", started.elapsed());
            }
        }
    });
}

#[test]
fn what_is_too_deep_is_said() {
    on_its_stack(|| {
        let (_dir, db) = table();
        let says = [
            ("plus", "an expression is more than 1000 levels deep"),
            ("concatenation", "an expression is more than 1000 levels deep"),
            ("parentheses", "nest too deep"),
            ("joins", "a query joins 20001 tables, at most 300"),
            ("cross joins", "a query joins 20000 tables, at most 300"),
            ("with", "WITH names 20000 queries"),
            ("array types", "a type nests"),
            ("except", "UNION, EXCEPT and INTERSECT follow"),
            ("explain", "EXPLAIN"),
        ];
        let deep = productions(20_000);
        for (name, why) in says {
            let (_, sql) = deep.iter().find(|(known, _)| *known == name).unwrap();
            db.fails(sql, why);
        }
        // Views add up.
        db.rows("CREATE VIEW v0 AS SELECT 1 AS x");
        let failed = (1..400).find_map(|i| {
            let ctes = chain(60, |j| format!("c{} AS (SELECT x FROM c{j})", j + 1), ", ");
            db.run(&format!("CREATE VIEW v{i} AS WITH c0 AS (SELECT x FROM v{}), {ctes} SELECT x FROM c60", i - 1))
                .err()
        });
        let failed = failed.unwrap();
        assert!(failed.contains("steps deep"), "{failed}");
    });
}
