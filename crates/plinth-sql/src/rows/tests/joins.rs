//! Random joins of tables of several kinds: own operators and the engine's give the same rows.

use plinth_core::random::Random;

use super::Db;
use super::native::{FILTERS, tables};

/// Questions of each set of tables.
const QUESTIONS: usize = 80;

/// Keys of two tables that are equal.
const KEYS: [&str; 16] = [
    "a.id = b.id",
    "a.i = b.i",
    "a.b = b.b",
    "a.d = b.d",
    "a.m = b.m",
    "a.t = b.t",
    "a.ts = b.ts",
    "a.n = b.n",
    "a.w = b.w",
    "a.id = b.i",
    "a.id % 100 = b.n",
    "a.i + 1 = b.i",
    "a.s = b.s",
    "a.u = b.u",
    "a.i IS NOT DISTINCT FROM b.i",
    "a.n IS NOT DISTINCT FROM b.n",
];

/// What pairs are held against besides.
const CONDITIONS: [&str; 6] =
    ["", "", " AND a.id < b.id", " AND (a.s > b.s OR b.i > 3)", " AND a.f < 2", " AND length(b.u) > 5"];

/// A question, given the tables.
fn question(random: &mut Random, tables: &[String]) -> String {
    let mut some = |values: &[&str]| values[random.index(values.len())].to_owned();
    let mut on = some(&KEYS);
    if some(&["", "", "more"]) == "more" {
        on = format!("{on} AND {}", some(&KEYS));
    }
    on += &some(&CONDITIONS);
    let filtered = |table: &str, filter: String| format!("(SELECT * FROM {table} {filter})");
    let (one, other) = (some(&FILTERS), some(&FILTERS));
    let small = some(&["", "WHERE id < 40", "WHERE id BETWEEN 300 AND 350 AND s = 'a'"]);
    let other = if small.is_empty() { other } else { small };
    let kind = some(&["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "EXISTS", "NOT EXISTS", "MARK", "THREE"]);
    let mut table = || tables[random.index(tables.len())].clone();
    let (a, b) = (filtered(&table(), one), filtered(&table(), other));
    let sums = |name: &str| format!("count({name}.id), sum({name}.id), min({name}.s), max({name}.u), sum({name}.m)");
    match kind.as_str() {
        "EXISTS" | "NOT EXISTS" => {
            format!("SELECT {} FROM {a} AS a WHERE {kind} (SELECT 1 FROM {b} AS b WHERE {on})", sums("a"))
        }
        "MARK" => {
            let of = format!("EXISTS (SELECT 1 FROM {b} AS b WHERE {on})");
            format!("SELECT {} FROM {a} AS a WHERE a.id % 5 = 0 OR {of}", sums("a"))
        }
        "THREE" => format!(
            "SELECT c.s, count(*), {}, {} FROM {a} AS a JOIN {b} AS b ON {on} JOIN {} AS c ON b.id = c.id GROUP BY c.s",
            sums("a"),
            sums("b"),
            table()
        ),
        kind if table().contains("one") => {
            format!("SELECT a.id, a.s, b.id, b.u FROM {a} AS a {kind} {b} AS b ON {on} WHERE coalesce(a.id, b.id) < 20")
        }
        kind => format!("SELECT {}, {}, count(*) FROM {a} AS a {kind} {b} AS b ON {on}", sums("a"), sums("b")),
    }
}

#[test]
fn own_joins_answer_as_the_engine_does() {
    let rounds = plinth_core::random::trials("PLINTH_JOIN_ROUNDS", 1);
    let first = plinth_core::random::trials("PLINTH_JOIN_SEED", 1);
    let mut native = 0;
    for seed in first..first + rounds {
        let random = &mut Random(seed);
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(folder.path());
        let tables = tables(&db, folder.path(), random);
        for _ in 0..QUESTIONS {
            let sql = question(random, &tables);
            let answer = |own: bool| {
                db.run(&format!("SET plinth.native_joins = {own}")).unwrap();
                db.sorted(&sql)
            };
            let expected = answer(false);
            assert_eq!(answer(true), expected, "seed {seed}: {sql}");
            native += usize::from(db.explain(&sql).contains("JoinExec: join_type"));
        }
    }
    assert!(native > QUESTIONS / 3, "own joins were used {native} times");
}

#[test]
fn many_rows_of_own_joins_are_those_of_the_engine() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path());
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (orders, lines) = (path("orders.plinth"), path("lines.plinth"));
    let rows =
        "SELECT value * 4 AS k, value % 1009 AS c, concat('order ', value % 977) AS s FROM generate_series(1, 70000)";
    db.run(&format!("COPY ({rows}) TO '{orders}' STORED AS PLINTH")).unwrap();
    let rows = "SELECT value AS k, value % 50 AS q, CASE WHEN value % 3 > 0 THEN concat('line ', value % 4001) END AS u \
                FROM generate_series(1, 120000)";
    db.run(&format!("COPY ({rows}) TO '{lines}' STORED AS PLINTH")).unwrap();
    for question in [
        "SELECT count(*), sum(q), min(u), max(s) FROM l JOIN o ON l.k = o.k",
        "SELECT count(*), sum(q), min(u), max(s) FROM l JOIN o ON l.k = o.k WHERE c < 20",
        "SELECT count(*), sum(q), sum(o.k) FROM l JOIN o ON l.k * 1000003 = o.k * 1000003",
        "SELECT count(*), sum(q), sum(o.k) FROM l JOIN o ON l.k = o.c AND l.q = o.c % 50",
        "SELECT count(*), sum(q), sum(c) FROM l JOIN o ON l.k % 8000 = o.c",
        "SELECT count(*), sum(q), min(u), max(s) FROM l JOIN o ON l.q = o.c WHERE o.k < 4000",
        "SELECT count(*), sum(q), count(s) FROM l LEFT JOIN o ON l.k = o.k AND c < 500",
        "SELECT count(*), sum(c), count(u) FROM o LEFT JOIN l ON l.k = o.k AND q < 5",
        "SELECT count(*), sum(c), sum(q) FROM o FULL JOIN l ON l.k = o.k AND q < 5 AND c > 700",
        "SELECT count(*), sum(c) FROM o WHERE EXISTS (SELECT 1 FROM l WHERE l.k = o.k AND u LIKE '%7%')",
        "SELECT count(*), sum(c) FROM o WHERE NOT EXISTS (SELECT 1 FROM l WHERE l.k = o.k AND l.q <> o.c)",
        "SELECT count(*), sum(q) FROM l WHERE k IN (SELECT k FROM o WHERE c = 7) OR q = 3",
        "SELECT s, count(*), sum(q) FROM l JOIN o ON l.k = o.k WHERE c < 300 GROUP BY s",
        "SELECT l.u, o.s FROM l JOIN o ON l.k = o.k AND l.q < o.c WHERE l.q = 7 ORDER BY l.k LIMIT 100",
    ] {
        let sql = question
            .replace("FROM l", &format!("FROM '{lines}' AS l"))
            .replace("FROM o", &format!("FROM '{orders}' AS o"));
        let sql = sql
            .replace("JOIN l ", &format!("JOIN '{lines}' AS l "))
            .replace("JOIN o ", &format!("JOIN '{orders}' AS o "));
        let mut expected: Option<Vec<String>> = None;
        for own in [false, true] {
            db.run(&format!("SET plinth.native_joins = {own}")).unwrap();
            let mut rows = db.rows(&sql);
            rows.sort();
            assert_eq!(&rows, expected.get_or_insert_with(|| rows.clone()), "own {own}: {question}");
        }
        assert!(db.explain(&sql).contains("JoinExec: join_type"), "{question}");
    }
}

#[test]
fn sides_that_outgrow_memory_are_merged() {
    let folder = tempfile::tempdir().unwrap();
    let (plenty, little) =
        (Db::open(folder.path()), Db::open_within(folder.path(), plinth_format::Access::default(), 24 << 20));
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (orders, lines) = (path("orders.plinth"), path("lines.plinth"));
    let text = "concat('an order of so many words, and of number ', value % 97777) AS s";
    let rows = format!("SELECT value * 2 AS k, value % 1009 AS c, {text} FROM generate_series(1, 300000)");
    plenty.run(&format!("COPY ({rows}) TO '{orders}' STORED AS PLINTH")).unwrap();
    let rows = "SELECT CASE WHEN value % 11 > 0 THEN value END AS k, value % 50 AS q, concat('line ', value % 4001) AS u \
                FROM generate_series(1, 700000)";
    plenty.run(&format!("COPY ({rows}) TO '{lines}' STORED AS PLINTH")).unwrap();
    let (mut outgrown, mut merged) = (0, 0);
    for question in [
        "SELECT count(*), sum(q), min(u), max(s) FROM lines AS l JOIN orders AS o ON l.k = o.k",
        "SELECT o.c, count(*), sum(q), max(s) FROM lines AS l JOIN orders AS o ON l.k = o.k AND l.q < o.c GROUP BY o.c",
        "SELECT count(*), sum(q), count(u), max(s) FROM orders AS o LEFT JOIN lines AS l ON l.k = o.k",
        "SELECT count(*), sum(q), count(u), max(s) FROM lines AS l LEFT JOIN orders AS o ON l.k = o.k AND c > 500",
        "SELECT count(*), sum(q), count(u), max(s) FROM lines AS l FULL JOIN orders AS o ON l.k = o.k AND c > 500",
        "SELECT count(*), max(s) FROM orders AS o WHERE EXISTS (SELECT 1 FROM lines AS l WHERE l.k = o.k AND l.q < o.c)",
        "SELECT count(*), max(s) FROM orders AS o WHERE NOT EXISTS (SELECT 1 FROM lines AS l WHERE l.k = o.k)",
        "SELECT count(*), max(s) FROM orders AS o WHERE o.c = 7 OR EXISTS (SELECT 1 FROM lines AS l WHERE l.k = o.k)",
        "SELECT s, u FROM lines AS l JOIN orders AS o ON l.k = o.k WHERE c = 9 ORDER BY u, s LIMIT 20",
        // Texts of the side that is not gathered, which are codes unless the join is merged.
        "SELECT l.u, count(*) FROM lines AS l JOIN orders AS o ON l.k = o.k GROUP BY l.u",
        "SELECT o.c, min(l.u), max(l.u), count(DISTINCT l.u) FROM lines AS l JOIN orders AS o ON l.k = o.k GROUP BY o.c",
        "SELECT l.u, count(*), count(o.c) FROM lines AS l LEFT JOIN orders AS o ON l.k = o.k AND c > 500 GROUP BY l.u",
    ] {
        // All of them in either way, of which statistics can't tell in one.
        for of in [format!("(SELECT * FROM '{orders}' WHERE c % 7 < 7)"), format!("'{orders}'")] {
            let sql = question.replace("lines AS", &format!("'{lines}' AS")).replace("orders AS", &format!("{of} AS"));
            assert_eq!(little.sorted(&sql), plenty.sorted(&sql), "{sql}");
            let plan = little.rows(&format!("EXPLAIN ANALYZE {sql}")).join("\n");
            outgrown += usize::from(plan.contains("sides_outgrown=1"));
            merged += usize::from(plan.contains("SortMergeJoin"));
            super::little::all_is_there_again(&little, &sql);
        }
    }
    assert!(outgrown > 3 && merged > 3, "{outgrown} joins had a side that outgrew memory, {merged} were planned so");
}
