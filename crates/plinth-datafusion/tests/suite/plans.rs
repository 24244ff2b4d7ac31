//! What plans look like: work that metadata saves, and what EXPLAIN says.

use crate::data::{Twins, plan, rows, session};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counts_and_bounds_are_answered_without_a_scan() {
    let t = Twins::new(&[4_000, 1_000], 1_024, 3);
    for sql in [
        "SELECT count(*) FROM t",
        "SELECT count(1) FROM t",
        "SELECT count(i) FROM t",
        "SELECT min(i), max(i), count(*) FROM t",
        "SELECT min(s), max(s), min(day), max(tz), min(d), max(g), count(st) FROM t",
    ] {
        let plan = t.plan(sql).await;
        assert!(!plan.contains("DataSourceExec"), "{sql}\n{plan}");
        t.agree(sql).await;
    }
    // With a filter, a limit or a group there is something to scan.
    for sql in [
        "SELECT count(*) FROM t WHERE i > 3",
        "SELECT max(i) FROM t WHERE s LIKE '%a%'",
        "SELECT s, count(*) FROM t GROUP BY s",
    ] {
        let plan = t.plan(sql).await;
        assert!(plan.contains("DataSourceExec"), "{sql}\n{plan}");
    }
    assert_eq!(rows(&t.plinth, "SELECT count(*) FROM (SELECT * FROM t LIMIT 10)").await.unwrap(), ["|10|"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explain_shows_the_predicate_and_what_was_read() {
    let t = Twins::new(&[40_000], 8_192, 2);
    let plan = t.plan("SELECT st['a'] FROM t WHERE s = 'abc' AND i < 20").await;
    assert!(plan.contains("file_type=plinth") && plan.contains("predicate="), "{plan}");
    assert!(plan.contains("get_field(st@12, a)"), "the field is read by the scan: {plan}");
    let analysed =
        rows(&t.plinth, "EXPLAIN ANALYZE SELECT id FROM t WHERE s = 'abc' AND i < 20").await.unwrap().join("\n");
    for metric in [
        "bytes_read=",
        "row_groups=",
        "blocks=",
        "rows_scanned=",
        "rows_matched=",
        "blocks_decoded=",
        "blocks_evaluated_encoded=",
    ] {
        assert!(analysed.contains(metric), "{metric} is missing\n{analysed}");
    }
    // `i` grows with the rows, so most row groups can't match.
    assert!(analysed.contains("row_groups=5 total → "), "{analysed}");
    assert!(!analysed.contains("row_groups=5 total → 5 matched"), "{analysed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filtered_scan_is_divided_among_partitions() {
    let t = Twins::new(&[40_000], 8_192, 4);
    let plan = t.plan("SELECT id FROM t WHERE s LIKE '%a%'").await;
    assert!(plan.contains("file_groups={4 groups"), "{plan}");
    let plan = t.plan("SELECT s, count(*) FROM t GROUP BY s").await;
    assert!(plan.contains("file_groups={4 groups"), "{plan}");
    // A session that wants the rows in the order of the file says so.
    t.plinth.sql("SET datafusion.optimizer.repartition_file_scans = false").await.unwrap();
    let plan = t.plan("SELECT id FROM t WHERE i < 100").await;
    assert!(plan.contains("file_groups={1 group"), "{plan}");
    let ids = rows(&t.plinth, "SELECT id FROM t WHERE i < 500").await.unwrap();
    assert!(ids.len() > 10_000 && ids.is_sorted_by_key(|id| id.trim_matches('|').parse::<u64>().unwrap()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn external_tables_and_folders_with_partitions() {
    let t = Twins::new(&[500, 300], 1_024, 2);
    let ctx = session(2);
    crate::copy::register_format(&ctx);
    let dir = t.dir.path().display();
    let create = format!("CREATE EXTERNAL TABLE e STORED AS PLINTH LOCATION '{dir}/'");
    ctx.sql(&create).await.unwrap().collect().await.unwrap();
    assert_eq!(rows(&ctx, "SELECT count(*), min(id), max(id) FROM e").await.unwrap(), ["|800|0|799|"]);
    let counted = rows(&ctx, "SELECT count(*) FROM e WHERE i = 5 AND s LIKE 'a%'").await.unwrap();
    assert_eq!(counted, rows(&t.memory, "SELECT count(*) FROM t WHERE i = 5 AND s LIKE 'a%'").await.unwrap());
    assert!(!plan(&ctx, "SELECT id FROM e WHERE i = 5").await.contains("FilterExec"));

    let hive = tempfile::tempdir().unwrap();
    for (i, file) in t.files.iter().enumerate() {
        let folder = hive.path().join(format!("p={i}"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::copy(file, folder.join("x.plinth")).unwrap();
    }
    let create =
        format!("CREATE EXTERNAL TABLE h STORED AS PLINTH PARTITIONED BY (p) LOCATION '{}/'", hive.path().display());
    ctx.sql(&create).await.unwrap().collect().await.unwrap();
    assert_eq!(rows(&ctx, "SELECT p, count(*) FROM h GROUP BY p ORDER BY p").await.unwrap(), ["|0|500|", "|1|300|"]);
    assert_eq!(rows(&ctx, "SELECT count(*), max(p) FROM h WHERE p = '1' AND id >= 500").await.unwrap(), ["|300|1|"]);
    assert_eq!(rows(&ctx, "SELECT count(*) FROM h WHERE p = '1' OR id < 10").await.unwrap(), ["|310|"]);
    assert_eq!(rows(&ctx, "SELECT p FROM h WHERE id = 600").await.unwrap(), ["|1|"]);
}
