//! Windows whose results are much larger than their rows.

use super::Db;

/// A list of all values in each row would take eighty gigabytes.
#[test]
fn lists_for_each_row_of_a_partition_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path());
    let over = |call: &str, rows: usize, window: &str| {
        format!(
            "SELECT count(v), max(n) FROM (SELECT {call} OVER ({window}) AS v, n FROM \
             (SELECT value AS n, value / 100 AS g, 'text ' || value AS t FROM generate_series(1, {rows})))"
        )
    };
    for call in ["array_agg(n)", "array_agg(t)", "string_agg(t, ',')"] {
        db.fails(&over(call, 100_000, ""), "memory");
        assert_eq!(db.rows(&over(call, 500, "")), ["500 500"], "{call}");
        assert_eq!(db.rows(&over(call, 100_000, "PARTITION BY g")), ["100000 100000"], "{call}");
    }
    assert_eq!(db.rows(&over("array_agg(DISTINCT n % 3)", 100_000, "")), ["100000 100000"]);
}

/// Lists that grow from row to row are as many values as the square of the rows.
#[test]
fn lists_that_grow_from_row_to_row_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open_within(folder.path(), plinth_format::Access::default(), 64 << 20);
    let over = |call: &str, rows: usize, frame: &str| {
        format!(
            "SELECT count(v), max(n) FROM (SELECT {call} OVER (ORDER BY n {frame}) AS v, n FROM \
             (SELECT value AS n, 'text ' || value AS t FROM generate_series(1, {rows})))"
        )
    };
    for call in ["array_agg(n)", "array_agg(t)", "string_agg(t, ',')"] {
        for frame in ["", "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"] {
            db.fails(&over(call, 20_000, frame), "memory");
        }
        assert_eq!(db.rows(&over(call, 500, "")), ["500 500"], "{call}");
    }
    assert_eq!(db.rows(&over("array_agg(n)", 20_000, "ROWS BETWEEN 5 PRECEDING AND CURRENT ROW")), ["20000 20000"]);
}
