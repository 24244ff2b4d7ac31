//! The 22 queries of TPC-H, the 43 of ClickBench and many others have the answers of one process.

use std::path::Path;

use crate::data::name_tables;
use crate::harness::{alone, explained, lines, sorted, with, workers};

/// Below which folder the queries of the benches and of other tests are.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// The 22.
fn tpch() -> Vec<(String, String)> {
    let query = |number: usize| {
        let name = format!("q{number:02}");
        let text = std::fs::read_to_string(root().join(format!("bench/tpch/{name}.sql"))).unwrap();
        // As the scale demands.
        (name, text.replace("0.0001\n", "0.01\n").trim().trim_end_matches(';').to_owned())
    };
    (1..=22).map(query).collect()
}

/// The queries of a file in which each begins with a line that names it, but for those in another engine's dialect.
fn named(file: &str) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(root().join("tests/duckdb/queries").join(file)).unwrap();
    let mut found: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("-- name: ") {
            found.push((name.to_owned(), String::new()));
        } else if let Some((_, query)) = found.last_mut() {
            query.push_str(line);
            query.push('\n');
        }
    }
    found.into_iter().filter(|(_, query)| !query.contains("--|")).collect()
}

/// Asks the same of one process and of so many workers; says how many had no part in a query, and why.
fn compare(queries: &[(String, String)], many: usize) -> Vec<String> {
    let workers = workers(many, crate::data::folder());
    let (mut one, mut all) = (alone(), with(&workers));
    name_tables(&one);
    name_tables(&all);
    let (mut wrong, mut here) = (Vec::new(), Vec::new());
    for (name, query) in queries {
        let (expected, found) = (sorted(&mut one, query), sorted(&mut all, query));
        match (&expected, &found) {
            (Ok(expected), Ok(found)) if expected == found => {}
            (Err(_), Err(_)) => {}
            _ => {
                wrong.push(format!("{name}: {query}\n  one process: {expected:.400?}\n  {many} workers: {found:.400?}"))
            }
        }
        if expected.is_ok()
            && let Some(why) = explained(&all, query, false).alone
        {
            here.push(format!("{name}: {why}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), queries.len(), wrong.join("\n"));
    here
}

#[test]
fn tpch_on_one_worker() {
    assert_eq!(compare(&tpch(), 1), Vec::<String>::new());
}

#[test]
fn tpch_on_two_workers() {
    assert_eq!(compare(&tpch(), 2), Vec::<String>::new());
}

#[test]
fn tpch_on_four_workers() {
    assert_eq!(compare(&tpch(), 4), Vec::<String>::new());
}

#[test]
fn clickbench_on_one_worker() {
    assert_eq!(compare(&named("hits.sql"), 1), Vec::<String>::new());
}

#[test]
fn clickbench_on_two_workers() {
    assert_eq!(compare(&named("hits.sql"), 2), Vec::<String>::new());
}

#[test]
fn clickbench_on_four_workers() {
    assert_eq!(compare(&named("hits.sql"), 4), Vec::<String>::new());
}

#[test]
fn other_queries_on_three_workers() {
    compare(&named("tpch.sql"), 3);
}

#[test]
fn statements_of_many_kinds_on_three_workers() {
    let queries = [
        "SELECT count(*) FROM lineitem",
        "SELECT l_orderkey + l_partkey, -l_linenumber, l_shipmode || '/' || l_shipinstruct FROM lineitem WHERE l_orderkey < 100",
        "SELECT sum(l_linenumber * 2 - 1), min(l_comment), max(l_shipdate) FROM lineitem",
        "SELECT l_shipmode, count(*) FILTER (WHERE l_quantity > 10), avg(l_discount) FROM lineitem GROUP BY l_shipmode",
        "SELECT DISTINCT l_shipmode, l_returnflag FROM lineitem",
        "SELECT l_returnflag, l_linestatus, sum(l_quantity) FROM lineitem GROUP BY ROLLUP (l_returnflag, l_linestatus)",
        "SELECT l_returnflag, l_linestatus, count(*) FROM lineitem GROUP BY GROUPING SETS ((l_returnflag), (l_linestatus), ())",
        "SELECT count(DISTINCT l_suppkey), count(DISTINCT l_partkey) FROM lineitem",
        "SELECT o_orderpriority, median(o_totalprice) FROM orders GROUP BY o_orderpriority",
        "SELECT * FROM orders ORDER BY o_totalprice DESC, o_orderkey LIMIT 7 OFFSET 3",
        "SELECT o_orderkey, row_number() OVER (PARTITION BY o_custkey ORDER BY o_orderkey) FROM orders",
        "SELECT max(r) FROM (SELECT row_number() OVER (PARTITION BY o_custkey ORDER BY o_orderkey) AS r FROM orders WHERE o_custkey = 370) AS t",
        "SELECT o_orderkey, count(*) OVER (PARTITION BY o_custkey) FROM orders WHERE o_custkey = 370",
        "SELECT o_custkey, sum(o_totalprice) OVER (ORDER BY o_orderkey ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM orders WHERE o_orderkey < 500",
        "SELECT n_name, (SELECT count(*) FROM customer WHERE c_nationkey = n_nationkey) FROM nation",
        "SELECT (SELECT max(o_totalprice) FROM orders), count(*) FROM customer",
        "SELECT c_custkey FROM customer WHERE c_acctbal > (SELECT avg(c_acctbal) FROM customer) AND c_custkey < 200",
        "SELECT c_name FROM customer WHERE NOT EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey)",
        "SELECT c_name FROM customer WHERE c_custkey NOT IN (SELECT o_custkey FROM orders)",
        "SELECT c_custkey, o_orderkey FROM customer LEFT JOIN orders ON c_custkey = o_custkey AND o_totalprice > 100000",
        "SELECT c_custkey, o_orderkey FROM customer RIGHT JOIN orders ON c_custkey = o_custkey AND c_acctbal > 0",
        "SELECT c_custkey, o_orderkey FROM customer FULL JOIN orders ON c_custkey = o_custkey AND o_totalprice > 200000",
        "SELECT count(*) FROM customer FULL JOIN orders ON c_custkey < o_custkey AND c_custkey > 1490",
        "SELECT count(*) FROM nation a, region b, supplier c WHERE a.n_nationkey > c.s_nationkey",
        "SELECT n_nationkey FROM nation UNION ALL SELECT r_regionkey FROM region",
        "SELECT n_regionkey FROM nation INTERSECT SELECT r_regionkey FROM region",
        "SELECT c_nationkey FROM customer EXCEPT SELECT s_nationkey FROM supplier",
        "WITH t AS (SELECT o_custkey k, sum(o_totalprice) s FROM orders GROUP BY 1) SELECT a.k, b.s FROM t a JOIN t b ON a.k = b.k WHERE a.k < 300",
        "SELECT count(*) FROM (SELECT * FROM lineitem LIMIT 1000) AS t",
        "SELECT l_orderkey FROM lineitem WHERE l_comment LIKE '%furious%' AND l_shipdate BETWEEN date '1995-01-01' AND date '1995-03-01'",
        "SELECT CASE WHEN l_quantity > 25 THEN 'many' ELSE NULL END AS c, count(*) FROM lineitem GROUP BY 1",
        "SELECT extract(year FROM o_orderdate) AS y, count(*) FROM orders GROUP BY y",
        "SELECT string_agg(r_name, ',' ORDER BY r_name) FROM region",
        "SELECT array_agg(n_name ORDER BY n_name) FROM nation WHERE n_regionkey = 1",
        "SELECT 1 FROM lineitem WHERE false",
        "SELECT count(*) FROM lineitem WHERE l_orderkey = -1",
        "SELECT o.o_orderkey, l.l_linenumber FROM orders o JOIN lineitem l ON o.o_orderkey = l.l_orderkey WHERE o.o_custkey = 370",
        "SELECT value, n_name FROM generate_series(0, 30) AS g(value) LEFT JOIN nation ON n_nationkey = value",
        "SELECT v.x, n_name FROM (VALUES (1, 'a'), (2, 'b')) AS v(x, y) JOIN nation ON n_nationkey = x",
        // Tables that one partition scans: what is above them is not done by each worker.
        "SELECT count(*), sum(l_linenumber), min(s), max(s) FROM lineitem CROSS JOIN (SELECT sum(ps_availqty) AS s FROM partsupp WHERE ps_supplycost > 0) AS p",
        "SELECT count(*) FROM lineitem JOIN (SELECT ps_partkey FROM partsupp LIMIT 100) AS p ON l_partkey = ps_partkey",
        "SELECT count(*) FROM lineitem JOIN (SELECT ps_partkey FROM partsupp ORDER BY ps_supplycost, ps_partkey, ps_suppkey LIMIT 10) AS p ON l_partkey = ps_partkey",
        // What fails in one process fails in several.
        "SELECT 1 / (l_linenumber - l_linenumber) FROM lineitem",
        "SELECT 9223372036854775807 + l_linenumber FROM lineitem",
        "SELECT (SELECT n_name FROM nation) FROM region",
        "SELECT l_comment::INT FROM lineitem",
    ];
    let queries: Vec<_> = queries.iter().map(|query| ((*query).to_owned(), (*query).to_owned())).collect();
    compare(&queries, 3);
}

#[test]
fn a_plan_tells_of_all_workers_their_stages_and_what_moved() {
    let workers = workers(2, crate::data::folder());
    let all = with(&workers);
    name_tables(&all);
    let query = "SELECT l_shipmode, count(*) FROM lineitem GROUP BY l_shipmode";
    for ran in [false, true] {
        let text = lines(&explained(&all, query, ran).root).join("\n");
        for worker in &workers {
            assert!(text.contains(&worker.address), "{text}");
        }
        assert!(text.contains("2 workers") && text.contains("stage 1: 2 tasks") && text.contains("scan"), "{text}");
        assert_eq!(text.contains("moved between processes"), ran, "{text}");
    }
    let ran = explained(&all, query, true);
    let rows = ran.ran.unwrap().0;
    assert_eq!(rows, 7);
}
