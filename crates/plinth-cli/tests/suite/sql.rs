//! `plinth sql`: statements in, rows out, tables of a folder.

use crate::common::{Dir, people, plinth, write_parquet};

#[test]
fn csv_and_json_are_exact() {
    let dir = Dir::new();
    let sql = "SELECT 1 AS n, 'a,\"b\"' AS t, NULL AS z, '12345678901234567890.12'::decimal(38,2) AS d, \
               timestamp '2024-02-29 12:34:56.789' AS ts, [1, NULL] AS l, true AS b";
    let csv = plinth(&dir, &["sql", "--format", "csv", "-c", sql]).ok().stdout;
    assert_eq!(
        csv,
        "n,t,z,d,ts,l,b\n1,\"a,\"\"b\"\"\",,12345678901234567890.12,2024-02-29T12:34:56.789,\"[1, null]\",true\n"
    );
    let json = plinth(&dir, &["sql", "--format", "json", "-c", sql]).ok().stdout;
    assert_eq!(
        json,
        "{\"n\":1,\"t\":\"a,\\\"b\\\"\",\"z\":null,\"d\":12345678901234567890.12,\"ts\":\"2024-02-29T12:34:56.789\",\
         \"l\":[1,null],\"b\":true}\n"
    );
    // Text that is empty is not NULL.
    let empty = "SELECT '' AS t, NULL::varchar AS n";
    assert_eq!(plinth(&dir, &["sql", "--format", "csv", "-c", empty]).ok().stdout, "t,n\n\"\",\n");
    assert_eq!(plinth(&dir, &["sql", "--format", "tsv", "-c", empty]).ok().stdout, "t\tn\n\"\"\t\n");
    let markdown = "| t | n |\n| --- | --- |\n|  | NULL |\n";
    assert_eq!(plinth(&dir, &["sql", "--format", "markdown", "-c", empty]).ok().stdout, markdown);
    assert_eq!(
        plinth(&dir, &["sql", "--format", "json", "-c", "SELECT 'NaN'::double AS f"]).ok().stdout,
        "{\"f\":null}\n"
    );
    // No rows: a header, and nothing.
    let none = "SELECT 1 AS a WHERE false";
    assert_eq!(plinth(&dir, &["sql", "--format", "csv", "-c", none]).ok().stdout, "a\n");
    assert_eq!(plinth(&dir, &["sql", "--format", "json", "-c", none]).ok().stdout, "");
    let table = plinth(&dir, &["sql", "--format", "table", "-c", "SELECT 1 AS a, NULL AS b"]).ok().stdout;
    assert_eq!(table, "a │ b\n──┼─────\n1 │ NULL\n");
    // Not on a terminal: CSV.
    assert_eq!(plinth(&dir, &["sql", "-c", "SELECT 2 AS a"]).ok().stdout, "a\n2\n");
}

#[test]
fn rows_go_to_files_that_are_complete_or_absent() {
    let dir = Dir::new();
    write_parquet(&dir.path("a.parquet"), &people(1_000), 300);
    plinth(&dir, &["sql", "-c", "SELECT * FROM 'a.parquet'", "--output", "b.parquet"]).ok();
    let same = "SELECT count(*) FROM (SELECT * FROM 'a.parquet' EXCEPT SELECT * FROM 'b.parquet')";
    assert_eq!(plinth(&dir, &["sql", "-c", same]).ok().stdout.lines().last(), Some("0"));
    // To a pipe too; what other statements wrote elsewhere is no result.
    let sql = "COPY (SELECT 1 AS a) TO 'c.parquet'; SELECT id FROM 'a.parquet'";
    let run = crate::common::command(&dir, &["sql", "--format", "parquet", "-c", sql]).output().unwrap();
    assert!(run.status.success() && run.stdout.starts_with(b"PAR1") && run.stdout.ends_with(b"PAR1"));
    let args = ["sql", "-c", "SELECT 1 AS a; SELECT 2 AS a", "-o", "two.parquet"];
    plinth(&dir, &args).fails(1, "plinth: a Parquet file holds one result");
    // The name gives the format, and a failure leaves what was there.
    let args = ["sql", "-c", "SELECT 1 AS a; SELECT 2 AS b", "-o", "d.csv"];
    assert_eq!(plinth(&dir, &args).ok().stdout, "");
    assert_eq!(std::fs::read_to_string(dir.path("d.csv")).unwrap(), "a\n1\nb\n2\n");
    plinth(&dir, &["sql", "-c", "SELECT 3 AS a", "-o", "d.csv"])
        .fails(1, "plinth: d.csv: already exists; give --replace to replace it");
    plinth(&dir, &["sql", "-c", "SELECT 3 AS a; SELECT 1 / 0", "-o", "d.csv", "--replace"])
        .fails(1, "plinth: division by zero");
    assert_eq!(std::fs::read_to_string(dir.path("d.csv")).unwrap(), "a\n1\nb\n2\n");
    plinth(&dir, &["sql", "-c", "SELECT 4 AS a", "-o", "d.csv", "--format", "ndjson", "--replace"]).ok();
    assert_eq!(std::fs::read_to_string(dir.path("d.csv")).unwrap(), "{\"a\":4}\n");
    plinth(&dir, &["sql", "-c", "SELECT 1", "-o", "no/d.csv"]).fails(1, "plinth: no/d.csv: ");
    #[cfg(unix)]
    {
        // A link stays a link, and a device a device.
        std::os::unix::fs::symlink("d.csv", dir.path("link.csv")).unwrap();
        plinth(&dir, &["sql", "-c", "SELECT 5 AS a", "-o", "link.csv", "--replace"]).ok();
        assert_eq!(std::fs::read_to_string(dir.path("d.csv")).unwrap(), "a\n5\n");
        assert!(dir.path("link.csv").is_symlink());
        plinth(&dir, &["sql", "-c", "SELECT 5 AS a", "-o", "/dev/null"]).ok();
    }
    assert_eq!(dir.entries().iter().filter(|name| name.starts_with('.')).count(), 0);
}

#[test]
fn parameters_take_values() {
    let dir = Dir::new();
    write_parquet(&dir.path("a.parquet"), &people(100), 30);
    let last = |sql: &str, params: &[&str]| {
        let mut args = vec!["sql", "-c", sql];
        params.iter().for_each(|param| args.extend(["--param", param]));
        plinth(&dir, &args)
    };
    let answer = |sql: &str, params: &[&str]| last(sql, params).ok().stdout.lines().last().unwrap().to_owned();
    // The place says what a value is.
    assert_eq!(answer("SELECT count(*) FROM 'a.parquet' WHERE id < $1", &["1=42"]), "42");
    assert_eq!(answer("SELECT count(*) FROM 'a.parquet' WHERE city = $city AND id < $n", &["$city=Bern", "n=20"]), "5");
    assert_eq!(answer("SELECT count(*) FROM (SELECT id FROM 'a.parquet' LIMIT $n)", &["n=7"]), "7");
    assert_eq!(answer("SELECT count(*) FROM 'a.parquet' WHERE day >= $day", &["day=2022-01-08"]), "100");
    assert_eq!(answer("SELECT 'x' || $1", &["1=a='; DROP"]), "xa='; DROP");
    assert_eq!(
        answer("SELECT count(*) FROM 'a.parquet' WHERE id IN (SELECT id FROM 'a.parquet' WHERE id < $1)", &["1=5"]),
        "5"
    );
    last("SELECT $missing", &[]).fails(1, "plinth: no value for $missing: ");
    last("SELECT id FROM 'a.parquet' WHERE id < $1", &["1=many"]).fails(1, "plinth: $1 is \"many\", which is no ");
    assert_eq!(last("SELECT 1", &["nothing"]).code, Some(2));
    // Prepared statements live as long as the session.
    let prepared = "PREPARE p(bigint, varchar) AS SELECT count(*) AS n FROM 'a.parquet' WHERE id < $1 AND city = $2; ";
    assert_eq!(answer(&format!("{prepared} EXECUTE p(20, 'Bern')"), &[]), "5");
    for (sql, error) in [
        ("EXECUTE p(20)", "prepared statement 'p' expects 2 parameters, but 1 provided"),
        ("EXECUTE p('x', 'Bern')", "'x' is no BIGINT"),
        ("EXECUTE q(1)", "no statement q was prepared"),
        ("DEALLOCATE p; EXECUTE p(1, 'Bern')", "no statement p was prepared"),
    ] {
        let run = last(&format!("{prepared} {sql}"), &[]);
        run.fails(1, "plinth: ");
        assert!(run.stderr.contains(error), "{sql}: {}", run.stderr);
    }
    last("PREPARE p AS DELETE FROM t", &[]).fails(1, "plinth: ");
}

#[test]
fn long_tables_are_cut_and_say_so() {
    let dir = Dir::new();
    let sql = "SELECT value FROM range(0, 20000)";
    let run = plinth(&dir, &["sql", "--format", "table", "-c", sql]).ok();
    assert_eq!(run.stdout.lines().count(), 10_000 + 2);
    assert_eq!(run.stderr, "only the first 10,000 rows are shown; --format csv or json prints all\n");
    let run = plinth(&dir, &["sql", "--format", "csv", "-c", sql]).ok();
    assert_eq!((run.stdout.lines().count(), run.stderr.as_str()), (20_001, ""));
}

#[test]
fn statements_come_from_everywhere_and_run_in_turn() {
    let dir = Dir::new();
    std::fs::write(dir.path("q.sql"), "CREATE TABLE t AS SELECT 5 AS a; -- a comment; with a semicolon\n").unwrap();
    let args = ["sql", "-c", "SELECT 'a;b' AS x", "-c", "SELECT 2 AS y;", "-f", "q.sql"];
    assert_eq!(plinth(&dir, &args).ok().stdout, "x\na;b\ny\n2\n");
    let run = crate::common::with_input(&dir, &["sql"], "SELECT 1 AS a; SELECT 2 AS b -- the end");
    assert_eq!(run.ok().stdout, "a\n1\nb\n2\n");
    // What comes before an error is printed; nothing runs if any statement can't be read.
    let run = plinth(&dir, &["sql", "-c", "SELECT 1 AS a; SELECT 1 / 0"]);
    assert!(run.fails(1, "plinth: division by zero").stdout.starts_with("a\n1\n"));
    let run = plinth(&dir, &["sql", "-c", "SELECT 1 AS a; SELEC 2"]);
    assert_eq!(run.fails(1, "plinth: SQL: ").stdout, "");
    plinth(&dir, &["sql", "-f", "missing.sql"]).fails(1, "plinth: missing.sql: ");
    plinth(&dir, &["sql", "-c", "SELECT * FROM nope"]).fails(1, "plinth: no table \"nope\"");
}

#[test]
fn timings_are_the_last_line() {
    let dir = Dir::new();
    let args = ["sql", "-c", "SELECT 1 AS a; SELECT 2 AS b", "--repeat", "4", "--timings", "json"];
    let run = plinth(&dir, &args).ok();
    assert_eq!(run.stdout, "a\n1\nb\n2\n");
    let timings: serde_json::Value = serde_json::from_str(run.stderr.lines().last().unwrap()).unwrap();
    let [seconds, planning] = ["seconds", "planning"].map(|name| timings[name].as_array().unwrap());
    assert!(seconds.len() == 4 && planning.len() == 4);
    assert!(
        planning.iter().zip(seconds).all(|(part, all)| (0.0..=all.as_f64().unwrap()).contains(&part.as_f64().unwrap()))
    );
}

#[test]
fn a_folder_is_a_database() {
    let dir = Dir::new();
    let db = dir.path("db");
    std::fs::create_dir_all(db.join("parts")).unwrap();
    write_parquet(&db.join("Hits.parquet"), &people(20), 100);
    std::fs::write(db.join("c.csv"), "x,y\n1,2\n3,4\n").unwrap();
    for (part, rows) in [("a", 3), ("b", 4)] {
        let parquet = dir.path(&format!("{part}.parquet"));
        write_parquet(&parquet, &people(rows), 100);
        let to = db.join(format!("parts/{part}.plinth"));
        plinth(&dir, &["import", parquet.to_str().unwrap(), "--to", to.to_str().unwrap(), "-q"]).ok();
    }
    let sql = |text: &str| plinth(&dir, &["sql", "--db", "db", "-c", text]);
    let last = |text: &str| sql(text).ok().stdout.lines().last().unwrap().to_owned();
    assert_eq!(last("SELECT count(*), max(id) FROM hits"), "20,19");
    assert_eq!(last("SELECT sum(y) FROM c"), "6");
    assert_eq!(last("SELECT count(*), max(id) FROM parts"), "7,3");

    // A table is a file, written as its rows come.
    assert_eq!(sql("CREATE TABLE t AS SELECT id, city FROM hits WHERE id < 10").ok().stdout, "");
    assert!(db.join("t.plinth").is_file());
    assert_eq!(last("SELECT count(*), sum(id) FROM t"), "10,45");
    sql("CREATE TABLE t AS SELECT 1 AS a").fails(1, "plinth: CREATE TABLE t: already exists");
    assert_eq!(sql("CREATE TABLE IF NOT EXISTS t AS SELECT 1 AS a").ok().stdout, "");
    assert_eq!(last("SELECT count(*) FROM t"), "10");
    // Also from itself, and seen in the same session.
    let both = "CREATE OR REPLACE TABLE t AS SELECT id + 1 AS id FROM t; SELECT sum(id) FROM t";
    assert_eq!(last(both), "55");
    sql("CREATE OR REPLACE TABLE c AS SELECT 1 AS a").fails(1, "plinth: CREATE OR REPLACE TABLE c: ");
    // One of columns alone is a folder that can be written to.
    assert_eq!(
        last("CREATE TABLE u (a int); INSERT INTO u VALUES (1), (2); UPDATE u SET a = a + 1; SELECT sum(a) FROM u"),
        "5"
    );
    assert!(db.join("u").is_dir());
    assert_eq!(sql("DROP TABLE u").ok().stdout, "");
    assert!(!db.join("u").exists());
    sql("CREATE TABLE \"../u\" AS SELECT 1 AS a").fails(1, "plinth: ");
    assert_eq!(
        last("CREATE TABLE twice AS SELECT a.id, b.id FROM t a JOIN t b ON a.id = b.id; SELECT sum(id_1) FROM twice"),
        "55"
    );
    std::fs::remove_file(db.join("twice.plinth")).unwrap();
    // A failing query leaves no table.
    sql("CREATE TABLE u AS SELECT 1 / (id - 5) AS a FROM t").fails(1, "plinth: division by zero");

    // Files are not changed or deleted.
    for statement in ["DROP TABLE t", "DROP TABLE IF EXISTS t", "DROP TABLE c"] {
        sql(statement).fails(1, "plinth: DROP TABLE ");
    }
    for statement in [
        "DELETE FROM t",
        "DELETE FROM t WHERE id IN (SELECT id FROM parts)",
        "UPDATE t SET id = 1",
        "TRUNCATE TABLE t",
        "MERGE INTO t USING parts p ON t.id = p.id WHEN MATCHED THEN UPDATE SET id = 1",
    ] {
        let run = sql(statement);
        run.fails(1, "plinth: ");
        assert!(run.stderr.contains("CREATE TABLE ... AS SELECT"), "{statement}: {}", run.stderr);
    }
    for statement in ["INSERT INTO t VALUES (1)", "EXPLAIN ANALYZE INSERT INTO t VALUES (1)"] {
        sql(statement).fails(1, "plinth: INSERT INTO t: a Plinth file is not changed once written");
    }
    assert_eq!(last("SELECT count(*), sum(id) FROM t"), "10,55");
    let names: Vec<_> = std::fs::read_dir(&db).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 4, "{names:?}");
    plinth(&dir, &["sql", "--db", "no/pe", "-c", "SELECT 1"]).fails(1, "plinth: database folder no/pe: ");
    // A new one is made, and stays if something is in it.
    let create = "CREATE TABLE t AS SELECT 1 AS a; SELECT * FROM t";
    assert_eq!(plinth(&dir, &["sql", "--db", "new", "-c", create]).ok().stdout, "a\n1\n");
    plinth(&dir, &["sql", "--db", "newer", "-c", "SELECT 1"]).ok();
    assert!(dir.path("new/t.plinth").is_file() && !dir.path("newer").exists());

    // Names that two files share.
    std::fs::write(db.join("c.json"), "{\"x\":1}\n").unwrap();
    sql("SELECT * FROM c").fails(1, "plinth: table \"c\" may be any of ");
    std::fs::copy(db.join("t.plinth"), db.join("c.plinth")).unwrap();
    assert_eq!(last("SELECT count(*) FROM c"), "10");
}

#[test]
fn tables_without_a_folder_live_in_memory() {
    let dir = Dir::new();
    let sql = "CREATE TABLE t AS SELECT 1 AS a; INSERT INTO t VALUES (2); SELECT sum(a) AS s FROM t; DROP TABLE t";
    let run = plinth(&dir, &["sql", "-c", sql]).ok();
    assert_eq!(run.stdout, "s\n3\n");
    assert!(dir.entries().is_empty());
}

#[test]
fn copy_writes_plinth_files() {
    let dir = Dir::new();
    write_parquet(&dir.path("a.parquet"), &people(100), 100);
    plinth(&dir, &["sql", "-c", "COPY (SELECT id, city FROM 'a.parquet' WHERE id >= 50) TO 'b.plinth'"]).ok();
    let run = plinth(&dir, &["sql", "-c", "SELECT count(*), min(id), max(id) FROM 'b.plinth'"]).ok();
    assert_eq!(run.stdout.lines().last().unwrap(), "50,50,99");
    plinth(&dir, &["verify", "b.plinth"]).ok();
    let again = plinth(&dir, &["sql", "-c", "COPY (SELECT 1 AS a) TO 'b.plinth'"]);
    again.fails(1, "plinth: b.plinth: already exists; remove it");
    let text = plinth(&dir, &["sql", "-c", "EXPLAIN ANALYZE SELECT sum(id) FROM 'b.plinth' WHERE id > 60"]).ok().stdout;
    assert!(text.contains("metrics"), "{text}");
}

#[test]
fn little_memory_is_an_error_or_an_answer() {
    let dir = Dir::new();
    let sql = "SELECT count(*) FROM (SELECT DISTINCT value % 1000000 AS a, value AS b FROM range(0, 2000000))";
    let run = plinth(&dir, &["sql", "--memory", "2MB", "-c", sql]);
    if run.code == Some(0) {
        assert_eq!(run.stdout.lines().last().unwrap(), "2000000");
    } else {
        run.fails(1, "plinth: out of memory: ");
    }
}

#[test]
fn what_cannot_spill_says_which_operator_it_was_and_joins_that_could_not_are_merged() {
    let dir = Dir::new();
    for (sql, operator) in [
        ("SELECT max(s) FROM (SELECT ntile(4) OVER (ORDER BY value) AS s FROM range(0, 3000000))", "window"),
        (
            "SELECT count(DISTINCT value), count(DISTINCT value % 1000000) FROM range(0, 3000000)",
            "aggregate (DISTINCT)",
        ),
    ] {
        let run = plinth(&dir, &["sql", "--memory", "40MB", "--threads", "2", "-c", sql]);
        run.fails(1, &format!("plinth: out of memory: {operator} needs "));
        assert!(run.stderr.contains("of the memory limit of 40.0 MB are left"), "{}", run.stderr);
        assert!(run.stderr.contains("raise --memory") && run.stderr.lines().count() == 1, "{}", run.stderr);
        plinth(&dir, &["sql", "--memory", "1GB", "--threads", "2", "-c", sql]).ok();
    }
    plinth(&dir, &["sql", "-c", "COPY (SELECT value AS id FROM range(0, 2000000)) TO 'n.plinth'"]).ok();
    let join = "SELECT count(*), sum(a.id) FROM 'n.plinth' AS a JOIN 'n.plinth' AS b ON a.id = b.id";
    for (memory, merged) in [("40MB", true), ("1GB", false)] {
        let sql = ["sql", "--memory", memory, "--threads", "2", "--format", "csv", "-c"];
        let plan = plinth(&dir, &[&sql[..], &[&format!("EXPLAIN {join}")]].concat()).ok().stdout;
        assert_eq!(plan.contains("SortMergeJoin"), merged, "{memory}: {plan}");
        let rows = plinth(&dir, &[&sql[..], &[join]].concat()).ok().stdout;
        assert_eq!(rows.lines().last(), Some("2000000,1999999000000"), "{memory}");
    }
}

#[test]
fn writers_of_statements_take_their_memory_from_the_limit() {
    let dir = Dir::new();
    std::fs::create_dir_all(dir.path("db")).unwrap();
    let create = "CREATE TABLE t AS SELECT value AS id, 'row ' || value AS name FROM range(0, 300000)";
    let run = plinth(&dir, &["sql", "--db", "db", "--memory", "20MB", "-c", create]);
    run.fails(1, "plinth: out of memory: writer needs ");
    assert_eq!(std::fs::read_dir(dir.path("db")).unwrap().count(), 0);
    plinth(&dir, &["sql", "--db", "db", "--memory", "160MB", "-c", create]).ok();
    plinth(&dir, &["verify", "db/t.plinth"]).ok();
    let sums = "SELECT count(*), count(DISTINCT name), sum(id) FROM t";
    let run = plinth(&dir, &["sql", "--db", "db", "--format", "csv", "-c", sums]).ok();
    assert_eq!(run.stdout.lines().last(), Some("300000,300000,44999850000"));
}
