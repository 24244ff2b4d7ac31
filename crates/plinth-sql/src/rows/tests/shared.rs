//! Queries that occur more than once in a statement, computed once: the rows are those of the same from a table.

use plinth_core::random::Random;

use super::Db;

/// Questions of each memory.
const QUESTIONS: usize = 60;

const PARTS: [&str; 6] = [
    "SELECT k, sum(v) AS s, count(*) AS c FROM t GROUP BY k",
    "SELECT DISTINCT k, v AS s, v + 1 AS c FROM t WHERE v < 40",
    "SELECT k, v AS s, row_number() OVER (PARTITION BY k ORDER BY id) AS c FROM t",
    "SELECT k, max(v) AS s, min(id) AS c FROM t GROUP BY k HAVING count(*) > 5 ORDER BY c LIMIT 20",
    "SELECT t.k, count(DISTINCT t.v) AS s, sum(o.v) AS c FROM t JOIN t AS o ON o.id = t.k GROUP BY t.k",
    "SELECT p AS k, sum(s) AS s, count(*) AS c FROM (SELECT k, k % 7 AS p, sum(v) AS s FROM t GROUP BY k) GROUP BY p",
];

const QUESTIONS_OF: [&str; 9] = [
    "SELECT a.k, a.s, b.c FROM w AS a JOIN w AS b ON a.k = b.k",
    "SELECT k, s FROM w WHERE s = (SELECT max(s) FROM w)",
    "SELECT count(*), sum(a.s) FROM w AS a LEFT JOIN w AS b ON a.k = b.c",
    "SELECT k, s, c FROM w UNION ALL SELECT k, s, c FROM w",
    "SELECT k, s, c FROM w WHERE k IN (SELECT c FROM w) AND s > (SELECT avg(s) FROM w)",
    "SELECT a.k, (SELECT count(*) FROM w AS b WHERE b.s > a.s) FROM w AS a",
    "SELECT * FROM (SELECT k, s, c FROM w LIMIT 0) UNION ALL SELECT k, s, c FROM w",
    "SELECT a.k FROM w AS a, w AS b, w AS c WHERE a.k = b.k AND b.k = c.k AND c.s > 3",
    "SELECT count(*) FROM w WHERE NOT EXISTS (SELECT 1 FROM w AS b WHERE b.k = w.k + 1)",
];

fn filled(folder: &std::path::Path, memory: u64) -> Db {
    let db = Db::open_within(folder, plinth_format::Access::default(), memory);
    let rows = "SELECT value AS id, value * 7919 % 6007 AS k, value * 31 % 97 AS v FROM generate_series(1, 20000)";
    db.rows(&format!("CREATE TEMP TABLE t AS {rows}"));
    db
}

#[test]
fn parts_that_occur_twice_are_those_of_a_table() {
    let first = plinth_core::random::trials("PLINTH_SEED", 1);
    let (plenty, little) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (plenty, little) = (filled(plenty.path(), 8 << 30), filled(little.path(), 32 << 20));
    let random = &mut Random(first);
    let mut shared = 0;
    for _ in 0..QUESTIONS {
        let (part, question) = (PARTS[random.index(PARTS.len())], QUESTIONS_OF[random.index(QUESTIONS_OF.len())]);
        let once = format!("WITH w AS ({part}) {question}");
        shared += usize::from(plenty.explain(&once).contains("SharedExec"));
        plenty.rows(&format!("CREATE OR REPLACE TEMP TABLE w AS {part}"));
        let expected = plenty.sorted(question).unwrap();
        plenty.rows("DROP TABLE w");
        for db in [&plenty, &little] {
            assert_eq!(db.sorted(&once).unwrap(), expected, "{once}");
        }
    }
    assert!(shared > QUESTIONS / 4, "{shared} questions shared a part");
}

#[test]
fn what_looks_the_same_and_is_not_is_computed_apart() {
    let folder = tempfile::tempdir().unwrap();
    let db = filled(folder.path(), 8 << 30);
    let both = "SELECT (SELECT count(*) FROM range(3)), (SELECT count(*) FROM range(5))";
    assert_eq!(db.rows(both), ["3 5"]);
    let file = |name: &str, lines: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, lines).unwrap();
        path.display().to_string()
    };
    let (one, two) = (file("one.csv", "a\n1\n"), file("two.csv", "a\n1\n2\n"));
    let read = format!("SELECT (SELECT count(*) FROM read_csv('{one}')), (SELECT count(*) FROM read_csv('{two}'))");
    assert_eq!(db.rows(&read), ["1 2"]);
    let joined = format!("SELECT count(*) FROM read_csv('{one}') AS x JOIN read_csv('{two}') AS y USING (a)");
    assert_eq!(db.rows(&joined), ["1"]);
    let drawn =
        "SELECT count(DISTINCT x) FROM (SELECT max(random()) AS x FROM t UNION ALL SELECT max(random()) AS x FROM t)";
    assert_eq!(db.rows(drawn), ["2"]);
    let united = "SELECT count(*) AS n FROM range(4) UNION ALL SELECT count(*) AS n FROM range(6) ORDER BY n";
    assert_eq!(db.rows(united), ["4", "6"]);
    let distinct = "(SELECT count(*) FROM (SELECT DISTINCT value % 2 FROM range(5)))";
    let steps = format!(
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + {distinct} + {distinct} FROM r WHERE n < 12) SELECT n FROM r ORDER BY n"
    );
    assert_eq!(db.rows(&steps), ["1", "5", "9", "13"]);
}

#[test]
fn a_shared_part_that_fails_fails_the_statement() {
    let folder = tempfile::tempdir().unwrap();
    let db = filled(folder.path(), 8 << 30);
    let once = "WITH w AS (SELECT k, max(9223372036854775807 - v + id) AS s FROM t GROUP BY k) \
                SELECT count(*) FROM w WHERE s > (SELECT avg(s) FROM w)";
    assert!(db.explain(once).contains("SharedExec"));
    db.fails(once, "out of range");
}

#[test]
fn the_rows_of_a_part_go_with_its_last_reader() {
    let folder = tempfile::tempdir().unwrap();
    let db = filled(folder.path(), 8 << 30);
    let held = || db.session.context().runtime_env().memory_pool.reserved();
    let once = "WITH w AS (SELECT k, sum(v) AS s FROM t GROUP BY k) SELECT count(*) FROM w AS a JOIN w AS b USING (k)";
    assert_eq!(db.rows(once), ["6007"]);
    let before = held();
    for limited in
        ["SELECT count(*) FROM w AS a JOIN w AS b USING (k)", "SELECT * FROM w UNION ALL SELECT * FROM w LIMIT 1"]
    {
        db.rows(&format!("WITH w AS (SELECT k, sum(v) AS s FROM t GROUP BY k) {limited}"));
        assert_eq!(held(), before, "{limited}");
    }
}

#[test]
fn a_prepared_statement_computes_its_part_anew() {
    let folder = tempfile::tempdir().unwrap();
    let db = filled(folder.path(), 8 << 30);
    db.rows(
        "PREPARE p AS WITH w AS (SELECT k, sum(v) AS s FROM t WHERE id <= $1 GROUP BY k) \
             SELECT count(*), sum(a.s) FROM w AS a JOIN w AS b ON a.k = b.k",
    );
    assert_eq!(db.rows("EXECUTE p(1)"), ["1 31"]);
    assert_eq!(db.rows("EXECUTE p(2)"), ["2 93"]);
    db.rows("INSERT INTO t VALUES (0, 1000000, 7)");
    assert_eq!(db.rows("EXECUTE p(2)"), ["3 100"]);
}

#[test]
fn a_join_over_a_shared_part_spills() {
    let folder = tempfile::tempdir().unwrap();
    let (plenty, db) =
        (Db::open(folder.path()), Db::open_within(folder.path(), plinth_format::Access::default(), 16 << 20));
    let file = folder.path().join("many.plinth").display().to_string();
    plenty.rows(&format!("COPY (SELECT value AS k, value % 7 AS v FROM range(300000)) TO '{file}' STORED AS PLINTH"));
    let part = format!("SELECT k, sum(v) AS s FROM '{file}' GROUP BY k");
    let of = |condition: &str| {
        format!("WITH w AS ({part}) SELECT count(*), sum(a.s + b.s) FROM w AS a JOIN w AS b ON {condition}")
    };
    // More than a side of a join may have of the memory.
    let plan = db.rows(&format!("EXPLAIN ANALYZE {}", of("a.k = b.k + 1"))).join("\n");
    assert!(plan.contains("SharedExec") && plan.contains("sides_outgrown=1"), "{plan}");
    assert_eq!(db.rows(&of("a.k = b.k + 1"))[0].split(' ').next(), Some("299999"));
}
