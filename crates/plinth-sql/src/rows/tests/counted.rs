//! Blocks that a filter leaves whole are added up from metadata: the answers are those of the engine, which reads them.

use plinth_core::random::Random;

use super::Db;

/// What is computed; sums of doubles are none of metadata.
const AGGREGATES: [&str; 20] = [
    "count(*)",
    "count(i)",
    "count(s)",
    "sum(i)",
    "avg(i)",
    "min(i)",
    "max(i)",
    "sum(m)",
    "avg(m)",
    "max(m)",
    "min(d)",
    "max(ts)",
    "sum(n)",
    "avg(n)",
    "sum(CAST(n AS BIGINT))",
    "min(id)",
    "count(d)",
    "sum(b)",
    "sum(u)",
    "min(u)",
];

/// Some blocks of rows in the order of `id`, with nulls here and there and in whole blocks.
const ROWS: &str = "SELECT CAST(value AS BIGINT) AS id, \
    CAST(CASE WHEN value % 5 > 0 THEN value % 1009 - 500 END AS INT) AS i, concat('text ', value % 13) AS s, \
    CAST(CASE WHEN value < 150000 THEN value / 100.0 END AS DECIMAL(12,2)) AS m, \
    CAST('2020-01-01' AS DATE) + CAST(value % 700 AS INT) AS d, to_timestamp_seconds(value * 61) AS ts, \
    CAST(value % 251 AS SMALLINT) AS n, 4611686018427387904 + value AS b, \
    arrow_cast(value * 3, 'UInt32') AS u FROM generate_series(1, 280000)";

/// A filter, which leaves some blocks whole more often than not.
fn filter(random: &mut Random) -> String {
    let (one, other) = (random.below(300_000), random.below(300_000));
    let (from, to) = (one.min(other), one.max(other));
    let some = ["", " AND i > -2000", " AND i > 100", " AND n <> 17", " AND m IS NULL", " AND s <> 'none'"];
    let range = match random.below(4) {
        0 => format!("id >= {from}"),
        1 => format!("id < {to}"),
        2 => format!("ts < to_timestamp_seconds({to} * 61)"),
        _ => format!("id BETWEEN {from} AND {to}"),
    };
    format!("WHERE {range}{}", some[random.index(some.len())])
}

fn number_of(plan: &str, metric: &str) -> u64 {
    let value = plan.split(&format!("{metric}=")).nth(1).unwrap_or_default();
    value.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0)
}

#[test]
fn sums_of_blocks_that_a_filter_leaves_whole_are_those_of_their_rows() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path());
    let path = |name: &str| folder.path().join(name).display().to_string();
    db.run(&format!("COPY ({ROWS}) TO '{}' STORED AS PLINTH", path("one.plinth"))).unwrap();
    std::fs::create_dir(folder.path().join("several")).unwrap();
    for (part, from) in [(0, 0), (1, 90_000), (2, 200_000)] {
        let rows = format!("SELECT * FROM ({ROWS}) WHERE id > {from} AND id <= {}", [90_000, 200_000, 300_000][part]);
        db.run(&format!("COPY ({rows}) TO '{}' STORED AS PLINTH", path(&format!("several/{part}.plinth")))).unwrap();
    }
    db.run(&format!("CREATE TABLE kept AS {ROWS}")).unwrap();
    let tables = [format!("'{}'", path("one.plinth")), format!("'{}/'", path("several")), "kept".to_owned()];
    let random = &mut Random(plinth_core::random::trials("PLINTH_COUNTED_SEED", 3));
    let mut counted = 0;
    for _ in 0..plinth_core::random::trials("PLINTH_COUNTED_ROUNDS", 25) {
        let aggregates: Vec<_> = (0..1 + random.below(4)).map(|_| AGGREGATES[random.index(AGGREGATES.len())]).collect();
        let (filter, table) = (filter(random), &tables[random.index(tables.len())]);
        let sql = format!("SELECT {} FROM {table} {filter}", aggregates.join(", "));
        db.run("SET plinth.native = false").unwrap();
        let expected = db.run(&sql);
        db.run("SET plinth.native = true").unwrap();
        assert_eq!(db.run(&sql), expected, "{sql}");
        if expected.is_ok() {
            counted += number_of(&db.rows(&format!("EXPLAIN ANALYZE {sql}")).join("\n"), "blocks_counted");
        }
    }
    assert!(counted > 20, "{counted} blocks were counted");
}

#[test]
fn what_is_counted_is_shown_and_only_what_can_be() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path());
    let file = folder.path().join("one.plinth").display().to_string();
    db.run(&format!("COPY ({ROWS}) TO '{file}' STORED AS PLINTH")).unwrap();
    for (question, counts) in [
        ("SELECT count(*), sum(i), min(d) FROM t WHERE id > 5", true),
        ("SELECT sum(i) + count(*) FROM t WHERE id > 5 AND n < 1000", true),
        // Filters that tighten do better.
        ("SELECT min(i), max(d) FROM t WHERE id > 5", false),
        ("SELECT sum(i + 1) FROM t WHERE id > 5", false),
        ("SELECT count(*), max(s) FROM t WHERE id > 5", false),
        ("SELECT sum(i) FILTER (WHERE n > 3) FROM t WHERE id > 5", false),
        ("SELECT sum(DISTINCT i) FROM t WHERE id > 5", false),
        ("SELECT n, sum(i) FROM t WHERE id > 5 GROUP BY n", false),
        ("SELECT sum(i) FROM (SELECT i FROM t WHERE id > 5 LIMIT 100000)", false),
    ] {
        let plan = db.explain(&question.replace("FROM t", &format!("FROM '{file}'")));
        assert_eq!(plan.contains("counted="), counts, "{question}: {plan}");
    }
    let sql = format!("SELECT count(*), sum(i) FROM '{file}' WHERE id > 70000");
    let plan = db.rows(&format!("EXPLAIN ANALYZE {sql}")).join("\n");
    assert!(number_of(&plan, "blocks_counted") >= 2, "{plan}");
    // A prepared statement counts anew each time.
    db.run(&format!("PREPARE counting AS {sql}")).unwrap();
    let first = db.rows("EXECUTE counting");
    assert_eq!(db.rows("EXECUTE counting"), first);
    // A sum that leaves its type is an error, wherever its values are.
    db.fails(&format!("SELECT sum(b) FROM '{file}' WHERE id > 70000"), "a sum is");
}
