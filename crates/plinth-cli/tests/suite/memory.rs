//! What a query holds at its peak stays within 1.2 times its limit and 64 MB, whatever it asks for: it answers, or is refused by a
//! sentence that says who needed how much. `bench --suite memory` asks the same of every function over large input.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

use crate::common::{self, Dir, Run, plinth};

const LIMIT: &str = "64MB";
const BOUND: u64 = 64_000_000 * 12 / 10 + 64_000_000;

/// Runs the program to its end; the most bytes that were its own.
fn weighed(dir: &Dir, args: &[&str]) -> (Run, u64) {
    let mut child = common::command(dir, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let kilobytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim_start_matches(':').trim().strip_suffix(" kB")?.parse::<u64>().ok()
        };
        // The highest resident set there was, less the pages of the program's file.
        if let (Some(most), Some(file)) = (kilobytes("VmHWM"), kilobytes("RssFile")) {
            peak = peak.max(most.saturating_sub(file) * 1024);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    (child.wait_with_output().unwrap().into(), peak)
}

/// Asks within the limit: whether there was an answer rather than a refusal, and the answer.
#[track_caller]
fn asked(dir: &Dir, sql: &str) -> Option<String> {
    let (run, peak) = weighed(dir, &["sql", "--memory", LIMIT, "--threads", "2", "--format", "csv", "-c", sql]);
    assert!(peak > 0 && peak <= BOUND, "{sql}: {peak} bytes: {}", run.stderr);
    if run.code == Some(0) {
        return Some(run.stdout.lines().last().unwrap_or_default().to_owned());
    }
    run.fails(1, "plinth: out of memory: ");
    let said = run.stderr.contains(" needs ") && run.stderr.contains("of the memory limit of 64.0 MB are left");
    assert!(said && run.stderr.contains("raise --memory"), "{sql}: {}", run.stderr);
    None
}

#[test]
fn values_that_are_far_too_large_are_refused() {
    let dir = Dir::new();
    for sql in [
        "SELECT length(repeat('x', 2000000000))",
        "SELECT length(lpad('x', 2000000000, 'y'))",
        "SELECT length(rpad('x', 2000000000, 'ü'))",
        "SELECT cardinality(range(0, 1000000000))",
        "SELECT cardinality(generate_series(1, 1000000000, 2))",
        "SELECT cardinality(generate_series(DATE '0001-01-01', DATE '9999-01-01', INTERVAL '1 second'))",
        "SELECT count(*) FROM (SELECT unnest(range(0, 1000000000)))",
        "SELECT cardinality(array_repeat('x', 1000000000))",
        "SELECT cardinality(array_resize([1], 1000000000, 7))",
        "SELECT length(replace(repeat('x', 30000), 'x', repeat('y', 30000)))",
        "SELECT length(regexp_replace(repeat('x', 30000), 'x', repeat('y', 30000), 'g'))",
        "SELECT sum(length(repeat('x', value))) FROM range(1000000000, 1000000009)",
        "SELECT string_agg(repeat('x', 10000), ',') FROM range(0, 100000)",
        "SELECT cardinality(array_agg(repeat('x', 10000))) FROM range(0, 100000)",
    ] {
        assert_eq!(asked(&dir, sql), None, "{sql}");
    }
}

#[test]
fn large_values_of_many_rows_are_made_a_few_at_a_time() {
    let dir = Dir::new();
    plinth(&dir, &["sql", "-c", "COPY (SELECT value AS n, 'row ' || value AS t FROM range(0, 20000)) TO 'n.plinth'"])
        .ok();
    for (sql, answer) in [
        ("SELECT sum(length(repeat('x', 100000))), sum(value) FROM range(0, 5000)", "500000000,12497500"),
        ("SELECT sum(length(lpad(t, 5000))), count(*) FROM 'n.plinth' WHERE n < 5000", "25000000,5000"),
        ("SELECT sum(length(repeat(t, CAST(n AS INT)))) FROM 'n.plinth' WHERE n < 5000", "99475505"),
        (
            "SELECT sum(u), count(*) FROM (SELECT unnest(range(0, 20000)) AS u FROM 'n.plinth' WHERE n < 300)",
            "59997000000,6000000",
        ),
        ("SELECT sum(length(replace(t, 'o', repeat('y', 20000)))) FROM 'n.plinth' WHERE n < 5000", "100033890"),
        ("SELECT sum(cardinality(array_repeat(t, 3000))) FROM 'n.plinth' WHERE n < 3000", "9000000"),
    ] {
        assert_eq!(asked(&dir, sql).as_deref(), Some(answer), "{sql}");
    }
}

/// Each aggregate of more than a few bytes a group, with what it is called with; all others have a number or two.
const AGGREGATES: [(&str, &str); 14] = [
    ("approx_distinct", "approx_distinct(t)"),
    ("array_agg", "array_agg(t)"),
    ("count", "count(DISTINCT t)"),
    ("first_value", "first_value(t ORDER BY n)"),
    ("histogram", "histogram(n)"),
    ("last_value", "last_value(t ORDER BY n)"),
    ("max", "max(t)"),
    ("median", "median(n)"),
    ("mode", "mode(t)"),
    ("nth_value", "nth_value(t, 1 ORDER BY n)"),
    ("percentile_cont", "percentile_cont(0.5) WITHIN GROUP (ORDER BY n)"),
    ("string_agg", "string_agg(t, ',')"),
    ("sum", "sum(DISTINCT n)"),
    ("sum_exact", "sum_exact(CAST(n AS DOUBLE))"),
];
/// Those that have a number or two a group, and digests: of as many groups, these take minutes in a debug build.
const SMALL: [&str; 37] = [
    "approx_median",
    "approx_percentile_cont",
    "approx_percentile_cont_with_weight",
    "any_value",
    "avg",
    "avg_exact",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "corr",
    "covar",
    "covar_pop",
    "covar_samp",
    "grouping",
    "mean",
    "min",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "var",
    "var_pop",
    "var_population",
    "var_samp",
    "var_sample",
    "quantile_cont",
    "approx_percentile",
];

#[test]
fn every_aggregate_that_gathers_is_known_here() {
    let dir = Dir::new();
    let sql = "SELECT DISTINCT routine_name FROM information_schema.routines WHERE function_type = 'AGGREGATE'";
    let listed = plinth(&dir, &["sql", "--format", "csv", "-c", sql]).ok().stdout;
    let known: BTreeSet<&str> = AGGREGATES.iter().map(|(name, _)| *name).chain(SMALL).collect();
    let unknown: Vec<&str> = listed.lines().skip(1).filter(|name| !known.contains(name)).collect();
    assert!(unknown.is_empty() && listed.lines().count() > 20, "how much do these gather? {unknown:?}");
}

#[test]
fn aggregates_of_many_groups_stay_within_the_limit() {
    let dir = Dir::new();
    let rows =
        "SELECT value AS n, 'a text of the row ' || (value % 50000) AS t, value % 100000 AS g FROM range(0, 200000)";
    plinth(&dir, &["sql", "-c", &format!("COPY ({rows}) TO 'n.plinth'")]).ok();
    for (_, call) in AGGREGATES {
        let sql = format!("SELECT count(v) FROM (SELECT {call} AS v FROM 'n.plinth' GROUP BY g)");
        if let Some(answer) = asked(&dir, &sql) {
            assert_eq!(answer, "100000", "{call}");
        }
    }
    let both =
        "SELECT count(m), sum(d) FROM (SELECT median(n) AS m, count(DISTINCT n) AS d FROM 'n.plinth' GROUP BY g)";
    assert_eq!(asked(&dir, both).as_deref(), Some("100000,200000"));
    let texts = "SELECT count(*), sum(c) FROM (SELECT t, g, count(*) AS c FROM 'n.plinth' GROUP BY t, g)";
    assert_eq!(asked(&dir, texts).as_deref(), Some("100000,200000"));
}

#[test]
fn sorts_and_windows_by_key_never_fail_for_memory() {
    let dir = Dir::new();
    let text = "substr(to_hex((value + 1) * 2654435761 * 97 % 1000000000039) || 'abcdefabcdef', 1, 16)";
    let rows = format!(
        "SELECT value AS n, {text} AS t, repeat({text}, 8) AS u, 'word ' || (value % 300) AS w FROM range(0, 400000)"
    );
    plinth(&dir, &["sql", "-c", &format!("COPY ({rows}) TO 'n.plinth'")]).ok();
    for (sql, answer) in [
        (
            "SELECT count(*), sum(r) FROM (SELECT row_number() OVER (ORDER BY u, t) AS r FROM 'n.plinth')",
            "400000,80000200000",
        ),
        (
            "SELECT count(*), max(r) FROM (SELECT row_number() OVER (PARTITION BY w ORDER BY u) AS r, t, u FROM 'n.plinth')",
            "400000,1334",
        ),
        (
            "SELECT count(*), max(r) FROM (SELECT lag(n) OVER (PARTITION BY w ORDER BY t) AS r, t, u FROM 'n.plinth')",
            "400000,399999",
        ),
    ] {
        assert_eq!(asked(&dir, sql).as_deref(), Some(answer), "{sql}");
    }
    let sorted = "COPY (SELECT * FROM 'n.plinth' ORDER BY w, u, t) TO 'sorted.parquet'";
    assert!(asked(&dir, sorted).is_some());
    let sums = "SELECT count(*), sum(n), count(DISTINCT t), sum(length(u)) FROM 'sorted.parquet'";
    let run = plinth(&dir, &["sql", "--format", "csv", "-c", sums]).ok();
    assert_eq!(run.stdout.lines().last(), Some("400000,79999800000,400000,51200000"));
}

#[test]
fn windows_by_partition_say_what_groups_do_wherever_batches_end() {
    let dir = Dir::new();
    // Partitions of one row and of many, of no value, and of texts that come in another order than their rows.
    let key = "CASE WHEN value % 7 = 0 THEN NULL WHEN value < 60000 THEN 'large' ELSE 'k' || (value % 9973) END";
    plinth(&dir, &["sql", "-c", &format!("COPY (SELECT value AS n, {key} AS w FROM range(0, 150000)) TO 'n.plinth'")])
        .ok();
    let windows = "SELECT n, w, sum(n) OVER (PARTITION BY w) AS s, count(*) OVER (PARTITION BY w) AS c, \
        max(n) OVER (PARTITION BY w) AS m FROM 'n.plinth'";
    let groups = "SELECT w, sum(n) AS s, count(*) AS c, max(n) AS m FROM 'n.plinth' GROUP BY w";
    let same = "(a.w IS NOT DISTINCT FROM b.w) AND a.s = b.s AND a.c = b.c AND a.m = b.m";
    let sql =
        format!("SELECT count(*), count(DISTINCT n), sum(n) FROM ({windows}) AS a JOIN ({groups}) AS b ON {same}");
    for threads in ["1", "2", "5"] {
        let run = plinth(&dir, &["sql", "--memory", "256MB", "--threads", threads, "--format", "csv", "-c", &sql]).ok();
        assert_eq!(run.stdout.lines().last(), Some("150000,150000,11249925000"), "{threads} threads");
    }
    let empty = format!("SELECT count(*) FROM ({windows} WHERE n < 0)");
    let run = plinth(&dir, &["sql", "--format", "csv", "-c", &empty]).ok();
    assert_eq!(run.stdout.lines().last(), Some("0"));
}
