//! Sorts of all rows: own ones give those of the engine's in the same order, with next to no memory, too.

use plinth_core::random::Random;

use super::Db;
use super::first::question;
use super::native::tables;

const QUESTIONS: usize = 16;

/// Little enough memory for own sorts.
const LITTLE: u64 = 512 << 20;

#[test]
fn rows_are_those_of_the_engine_in_its_order() {
    let rounds = plinth_core::random::trials("PLINTH_NATIVE_ROUNDS", 1);
    let first = plinth_core::random::trials("PLINTH_NATIVE_SEED", 1);
    for seed in first..first + rounds {
        let random = &mut Random(seed);
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open_within(folder.path(), plinth_format::Access::default(), LITTLE);
        let tables = tables(&db, folder.path(), random);
        for _ in 0..QUESTIONS {
            let question = question(random);
            for table in &tables {
                db.rows("SET plinth.native = false");
                let expected = question.all(&db, table);
                db.rows("SET plinth.native = true");
                assert_eq!(question.all(&db, table), expected, "{}", question.sql(table));
            }
        }
    }
}

/// Rows that are many times the memory, most of them keys.
#[test]
fn no_sort_is_refused_and_its_rows_are_in_order() {
    let folder = tempfile::tempdir().unwrap();
    Db::open(folder.path()).rows(
        "COPY (SELECT value * 7919 % 120011 AS n, concat('a text of its own, long enough for a buffer ', value * 104729 % 120011) AS t, \
         CASE WHEN value % 3 > 0 THEN repeat('x', value % 100) END AS u, value AS id FROM generate_series(1, 120000)) \
         TO 'rows.plinth'"
            .replace("rows.plinth", &folder.path().join("rows.plinth").display().to_string())
            .as_str(),
    );
    let small = Db::open_within(folder.path(), plinth_format::Access::default(), 10 << 20);
    let table = format!("'{}'", folder.path().join("rows.plinth").display());
    let rows = |sql: &str| small.rows(&sql.replace("$t", &table));
    let plan = rows("EXPLAIN ANALYZE SELECT * FROM $t ORDER BY t, u, n").join("\n");
    assert!(plan.contains("spill_count=") && !plan.contains("spill_count=0"), "{plan}");
    for order in ["t", "u, t", "n DESC", "u DESC NULLS LAST, n", "t, u, n, id"] {
        // Each row is not before the one above it, and all are there.
        let keys = order.split(", ").map(|key| key.split(' ').next().unwrap_or_default()).collect::<Vec<_>>();
        let first = keys[0];
        let compare = if order.starts_with("n DESC") || order.starts_with("u DESC") { ">=" } else { "<=" };
        let checked = format!(
            "SELECT count(*), sum(id), sum(id * id), sum(n), sum(length(t)), \
             count(*) FILTER (WHERE NOT before {compare} {first}) FROM \
             (SELECT *, lag({first}) OVER (ORDER BY place) AS before FROM \
             (SELECT *, row_number() OVER (ORDER BY {order}) AS place FROM $t))"
        );
        let whole = rows("SELECT count(*), sum(id), sum(id * id), sum(n), sum(length(t)), 0 FROM $t");
        assert_eq!(rows(&checked), whole, "{order}");
    }
    let first = rows("SELECT n FROM $t ORDER BY n LIMIT 50000");
    let mut numbers: Vec<i64> = (1..=120_000).map(|value| value * 7919 % 120_011).collect();
    numbers.sort_unstable();
    assert!(first == numbers.iter().take(50_000).map(ToString::to_string).collect::<Vec<_>>());
}
