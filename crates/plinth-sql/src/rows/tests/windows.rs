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

/// What left a frame leaves nothing behind, however large it was: 1e20, an infinity, what is no number.
#[test]
fn frames_that_slide_forget_what_left_them() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path());
    let large = "CASE i WHEN 3 THEN 1e20 WHEN 40 THEN 'inf'::DOUBLE WHEN 80 THEN 'nan'::DOUBLE ELSE i % 7 + 0.5 END";
    db.rows(&format!(
        "CREATE TABLE t AS SELECT i, CASE WHEN i % 11 <> 4 THEN {large} END AS x, (i * 7919 % 13)::DOUBLE AS y \
         FROM (SELECT value AS i FROM generate_series(1, 300) s(value))"
    ));
    let of_one = ["sum", "avg", "var_pop", "var_samp", "stddev_pop", "stddev", "sum_exact", "avg_exact", "min", "max"];
    let of_two = [
        "covar_pop",
        "covar_samp",
        "corr",
        "regr_slope",
        "regr_intercept",
        "regr_r2",
        "regr_sxx",
        "regr_sxy",
        "regr_avgx",
    ];
    let of_one =
        of_one.map(|name| format!("{name}($x)")).into_iter().chain(["sum($x) FILTER (WHERE $y > 3)".to_owned()]);
    let calls: Vec<_> = of_one.chain(of_two.map(|name| format!("{name}($y, $x)"))).collect();
    for (before, after) in [(5, 0), (0, 4), (3, 3), (1, -1), (9, -4), (-2, 6), (60, 20)] {
        let bound = |n: i32| if n < 0 { format!("{} FOLLOWING", -n) } else { format!("{n} PRECEDING") };
        let frame = format!("ROWS BETWEEN {} AND {}", bound(before), bound(-after));
        // Within which no number is large.
        let is_small = "(SELECT coalesce(bool_and(u.x < 1e9), true) FROM t u WHERE u.i BETWEEN w.i - $b AND w.i + $a)"
            .replace("$b", &before.to_string())
            .replace("$a", &after.to_string());
        for call in &calls {
            let of = |prefix: &str| call.replace("$x", &format!("{prefix}x")).replace("$y", &format!("{prefix}y"));
            let windows = db.rows(&format!(
                "SELECT i, v, {is_small} FROM (SELECT i, {} OVER w AS v FROM t WINDOW w AS (ORDER BY i {frame})) w ORDER BY i",
                of("")
            ));
            let alone = db.rows(&format!(
                "SELECT a.i, {} FROM t a LEFT JOIN t b ON b.i BETWEEN a.i - {before} AND a.i + {after} \
                 GROUP BY a.i ORDER BY a.i",
                of("b.")
            ));
            assert_eq!(windows.len(), 300, "{call} {frame}");
            for (window, alone) in windows.iter().zip(&alone) {
                let (window, is_small) = window.rsplit_once(' ').unwrap();
                // Of squares and products large numbers leave nothing, and an infinity has no distance to itself.
                let is_told = ["sum", "avg", "min", "max"].iter().any(|name| call.starts_with(name));
                if is_small == "true" || is_told {
                    assert!(is_alike(window, alone), "{call} {frame}: {window}, {alone} of the same rows");
                }
            }
        }
    }
}

/// What can't take back a row has the rows of each frame anew.
#[test]
fn aggregates_without_a_way_back_slide() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path());
    db.rows(
        "CREATE TABLE t AS SELECT i, CASE WHEN i % 11 > 2 THEN i * 7919 % 13 END AS x, (i % 5)::DOUBLE * CASE WHEN i % 2 = 0 THEN -1 ELSE 1 END AS y \
         FROM (SELECT value AS i FROM generate_series(1, 200) s(value))",
    );
    let calls = [
        ("bool_and($x > 2)", ""),
        ("bool_or($x > 11)", ""),
        ("bit_and($x)", ""),
        ("bit_or($x)", ""),
        ("bit_or(DISTINCT $x)", ""),
        ("count_if($x > 4)", ""),
        ("string_agg($x::TEXT, '-'$by)", " ORDER BY b.i"),
        ("string_agg($x::TEXT, '-'$by) FILTER (WHERE $y >= 0)", " ORDER BY b.i"),
        ("list_sort(list($x$by))", " ORDER BY b.i"),
        ("histogram($x)", ""),
        ("count(DISTINCT $y)", ""),
        ("sum(DISTINCT $y)", ""),
        ("approx_quantile($y, 0.5)", ""),
        ("quantile_cont($x, [0.25, 0.5])", ""),
    ];
    for (before, after) in [(5, 0), (0, 4), (3, 3), (1, -1), (9, -4), (-2, 6), (60, 20)] {
        let bound = |n: i32| if n < 0 { format!("{} FOLLOWING", -n) } else { format!("{n} PRECEDING") };
        let frame = format!("ROWS BETWEEN {} AND {}", bound(before), bound(-after));
        for (call, by) in calls {
            let of = |prefix: &str, by: &str| {
                call.replace("$x", &format!("{prefix}x")).replace("$y", &format!("{prefix}y")).replace("$by", by)
            };
            // A call within another has the window.
            let over = match of("", "").strip_prefix("list_sort(").and_then(|inner| inner.strip_suffix(')')) {
                Some(inner) => format!("list_sort({inner} OVER w)"),
                None => format!("{} OVER w", of("", "")),
            };
            let windows = db.rows(&format!("SELECT i, {over} FROM t WINDOW w AS (ORDER BY i {frame}) ORDER BY i"));
            let filled = "CASE WHEN count(b.i) > 0 THEN $call END".replace("$call", &of("b.", by));
            let filled = if call.starts_with("count") { of("b.", by) } else { filled };
            let alone = db.rows(&format!(
                "SELECT a.i, {filled} FROM t a LEFT JOIN t b ON b.i BETWEEN a.i - {before} AND a.i + {after} \
                 GROUP BY a.i ORDER BY a.i"
            ));
            assert_eq!(windows, alone, "{call} {frame}");
        }
    }
}

/// Whether two texts are the same but for the rounding of numbers.
fn is_alike(one: &str, other: &str) -> bool {
    one.split(' ').count() == other.split(' ').count()
        && one.split(' ').zip(other.split(' ')).all(|(one, other)| match (one.parse::<f64>(), other.parse::<f64>()) {
            (Ok(one), Ok(other)) if one.is_finite() && other.is_finite() => {
                (one - other).abs() <= 1e-9 * one.abs().max(other.abs()).max(1.0)
            }
            _ => one.eq_ignore_ascii_case(other),
        })
}

/// Sums of different integers add up to what 64 bits do not hold on their way, and are refused where they end there.
#[test]
fn sums_of_different_integers_within_frames_are_exact() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path());
    let over = |frame: &str| {
        format!(
            "SELECT i, sum(DISTINCT v) OVER (ORDER BY i ROWS BETWEEN {frame}) FROM (VALUES (1, 9223372036854775807), \
             (2, 9223372036854775807), (3, -9), (4, NULL), (5, 1), (6, 1)) t(i, v) ORDER BY i"
        )
    };
    let most = i64::MAX;
    assert_eq!(
        db.rows(&over("1 PRECEDING AND CURRENT ROW")),
        [&format!("1 {most}"), &format!("2 {most}"), &format!("3 {}", most - 9), "4 -9", "5 1", "6 1"]
    );
    assert_eq!(db.rows(&over("2 PRECEDING AND 1 PRECEDING"))[0], "1 -");
    db.fails(
        "SELECT sum(DISTINCT v) OVER (ORDER BY i ROWS 1 PRECEDING) FROM (VALUES (1, 9223372036854775807), (2, 1)) t(i, v)",
        "out of the range of 64 bits",
    );
}

/// Aggregates over all rows need each of them once: rows that memory does not hold go to the drive and come back.
#[test]
fn aggregates_over_all_rows_are_not_held_to_memory() {
    let folder = tempfile::tempdir().unwrap();
    let plenty = Db::open(folder.path());
    plenty.rows(
        "CREATE TABLE t AS SELECT value AS n, value % 7 AS g, 'a text of some length ' || value AS t, CASE WHEN value % 5 > 0 THEN value / 4.0 END AS x \
         FROM generate_series(1, 600000)",
    );
    let little = Db::open_within(folder.path(), plinth_format::Access::default(), 16 << 20);
    let calls = [
        "sum(n) OVER (), avg(x) OVER (), min(t) OVER ()",
        "count(*) OVER (), max(t) OVER (), count(x) OVER ()",
        "sum(n) OVER (ORDER BY g ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING), bool_and(n > 0) OVER (), count(DISTINCT g) OVER ()",
    ];
    for calls in calls {
        let sql = format!("SELECT n, t, x, {calls} FROM t");
        let digest = format!(
            "SELECT count(*), sum(n), min(t), sum(x), min(a), max(a), min(b), max(b), min(c), max(c) FROM ({sql}) AS s(n, t, x, a, b, c)"
        );
        assert_eq!(little.rows(&digest), plenty.rows(&digest), "{calls}");
        // Rows come as they did.
        if !calls.contains("ORDER BY") {
            let first = format!("{sql} LIMIT 3");
            assert_eq!(little.rows(&first), plenty.rows(&first), "{calls}");
        }
    }
    let filtered = "SELECT count(*), min(a), max(a), max(b) FROM \
                    (SELECT sum(n) FILTER (WHERE g = 3) OVER () AS a, count(*) OVER () AS b FROM t WHERE n < 20000)";
    assert_eq!(
        little.rows(filtered),
        plenty.rows("SELECT 19999, sum(n), sum(n), 19999 FROM t WHERE g = 3 AND n < 20000")
    );
    assert_eq!(little.rows("SELECT sum(n) OVER () FROM t WHERE n < 0"), Vec::<String>::new());
}
