//! Sessions that reach few files or none, and those that only read.

#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::{Connection, SessionOptions};

/// A folder of tables, and another beside it with files that may be granted.
struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["db", "root/in", "out"] {
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        for file in ["root/a.csv", "root/in/b.csv", "out/secret.csv", "db/foreign.csv"] {
            std::fs::write(dir.path().join(file), "id,name\n1,x\n2,y\n").unwrap();
        }
        let place = Self { dir };
        let mut owner = place.open(Grants::default());
        for sql in [
            "CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT)",
            "INSERT INTO t VALUES (1, 'one')",
            "CREATE SEQUENCE s",
        ] {
            run(&mut owner, sql).unwrap();
        }
        place
    }

    fn path(&self, below: &str) -> String {
        self.dir.path().join(below).display().to_string()
    }

    fn open(&self, grants: Grants) -> Connection {
        let db = Some(self.dir.path().join("db"));
        Connection::open(&SessionOptions { db, grants, threads: 2, ..SessionOptions::default() }).unwrap()
    }

    fn below(&self) -> Grants {
        Grants::files_below(&self.dir.path().join("root")).unwrap()
    }
}

/// The rows that a text gives.
fn run(connection: &mut Connection, sql: &str) -> Result<usize, String> {
    let rows = connection.query(sql).map_err(|e| e.to_string())?;
    rows.map(|batch| batch.map(|batch| batch.num_rows()).map_err(|e| e.to_string())).sum()
}

/// Every way in which a statement may name a file.
fn naming(file: &str, new: &str, folder: &str) -> Vec<String> {
    vec![
        format!("SELECT * FROM '{file}'"),
        format!("DESCRIBE '{file}'"),
        format!("SELECT * FROM 'file://{file}'"),
        format!("SELECT * FROM 'file:{file}'"),
        format!("SELECT * FROM '{folder}'"),
        format!("SELECT * FROM '{folder}/*.csv'"),
        format!("SELECT * FROM '{folder}/s?cret.csv'"),
        format!("SELECT * FROM read_csv('{file}')"),
        format!("SELECT * FROM read_csv(['{file}'])"),
        format!("SELECT * FROM read_csv('{file}', filename => true)"),
        format!("SELECT * FROM read_json('{file}')"),
        format!("SELECT * FROM read_parquet('{file}')"),
        format!("SELECT * FROM parquet_schema('{file}')"),
        format!("SELECT * FROM parquet_metadata('{file}')"),
        format!("SELECT * FROM glob('{folder}/*')"),
        format!("SELECT * FROM glob('{file}')"),
        format!("COPY t FROM '{file}'"),
        format!("COPY t FROM '{file}' (FORMAT csv)"),
        format!("COPY t TO '{new}.csv'"),
        format!("COPY (SELECT 1 AS a) TO '{new}.plinth'"),
        format!("COPY (SELECT 1 AS a) TO '{new}.parquet'"),
        format!("COPY (SELECT 1 AS a) TO '{new}/' STORED AS PARQUET"),
        format!("EXPLAIN ANALYZE COPY (SELECT 1 AS a) TO '{new}.csv'"),
        format!("CREATE EXTERNAL TABLE e STORED AS CSV LOCATION '{file}' OPTIONS ('format.has_header' 'true')"),
        format!("CREATE VIEW v AS SELECT * FROM '{file}'"),
        format!("CREATE TEMP VIEW v AS SELECT * FROM read_csv('{file}')"),
        format!("CREATE TABLE u AS SELECT * FROM '{file}'"),
        format!("INSERT INTO t SELECT * FROM read_csv('{file}')"),
        format!("INSERT INTO '{folder}' VALUES (1)"),
        format!("ATTACH '{folder}' AS other"),
        format!("PREPARE p AS SELECT * FROM '{file}'"),
        format!("SELECT (SELECT count(*) FROM '{file}') + 1"),
        format!("WITH w AS (SELECT * FROM '{file}') SELECT * FROM w"),
    ]
}

#[test]
fn a_session_of_tables_alone_reaches_no_file_in_any_way() {
    let place = Place::new();
    let mut session = place.open(Grants::tables_alone());
    for (file, new, folder) in
        [("out/secret.csv", "out/new", "out"), ("root/a.csv", "root/new", "root"), ("db/t", "db/new", "db")]
    {
        for sql in naming(&place.path(file), &place.path(new), &place.path(folder)) {
            let refused = run(&mut session, &sql).unwrap_err();
            assert!(refused.contains("this session reaches"), "{sql}: {refused}");
        }
    }
    // What is not there is refused with the same words.
    let there = run(&mut session, &format!("SELECT * FROM '{}'", place.path("out/secret.csv"))).unwrap_err();
    let gone = run(&mut session, &format!("SELECT * FROM '{}'", place.path("out/nothing.csv"))).unwrap_err();
    assert_eq!(there.replace("secret", "nothing"), gone);
    for url in ["s3://bucket/x.csv", "https://127.0.0.1:1/x.csv", "gs://b/*.parquet", "az://b/x.plinth"] {
        for sql in naming(url, url, url).into_iter().filter(|sql| !sql.contains("file:")) {
            let refused = run(&mut session, &sql).unwrap_err();
            assert!(refused.contains("this session reaches"), "{sql}: {refused}");
        }
    }
    // A word that is a file of the folder the process is in is no table, and no hint names another file.
    let refused = run(&mut session, "SELECT * FROM src").unwrap_err();
    assert!(refused.starts_with("no table \"src\""), "{refused}");
    assert_eq!(std::fs::read_dir(place.path("out")).unwrap().count(), 1);
    assert_eq!(std::fs::read_dir(place.path("root")).unwrap().count(), 2);
    // Its tables are there, foreign files of its folder among them.
    assert_eq!(run(&mut session, "SELECT * FROM t"), Ok(1));
    assert_eq!(run(&mut session, "SELECT * FROM foreign"), Ok(2));
    assert!(run(&mut session, "INSERT INTO t VALUES (2, 'two')").is_ok());
}

#[test]
fn a_session_with_a_root_reaches_what_is_below_it() {
    let place = Place::new();
    let mut session = place.open(place.below());
    for below in ["root/a.csv", "root/in/b.csv", "root/in", "root/in/*.csv", "root/*.csv"] {
        assert_eq!(run(&mut session, &format!("SELECT * FROM '{}'", place.path(below))), Ok(2), "{below}");
    }
    assert!(run(&mut session, &format!("COPY t TO '{}'", place.path("root/new.csv"))).is_ok());
    assert_eq!(run(&mut session, &format!("SELECT * FROM '{}'", place.path("root/new.csv"))), Ok(1));
    let outside = naming(&place.path("out/secret.csv"), &place.path("out/new"), &place.path("out"));
    let dots = naming(
        &format!("{}/../out/secret.csv", place.path("root")),
        &format!("{}/in/../../out/new", place.path("root")),
        &format!("{}/./../out", place.path("root")),
    );
    for sql in outside.into_iter().chain(dots) {
        let refused = run(&mut session, &sql).unwrap_err();
        assert!(refused.contains("not below the folder") || refused.contains("reaches no URLs"), "{sql}: {refused}");
    }
    assert_eq!(std::fs::read_dir(place.path("out")).unwrap().count(), 1);
}

#[cfg(unix)]
#[test]
fn no_link_leads_out() {
    let place = Place::new();
    let link = |to: &str, name: &str| std::os::unix::fs::symlink(place.path(to), place.path(name)).unwrap();
    link("out/secret.csv", "root/in/link.csv");
    link("out", "root/folder");
    link("out/made.csv", "root/nowhere.csv");
    link("root/a.csv", "root/within.csv");
    let mut session = place.open(place.below());
    for named in [
        "root/in/link.csv",
        "root/folder/secret.csv",
        "root/folder",
        "root/in",
        "root/in/*.csv",
        "root/*/secret.csv",
        "root",
    ] {
        let refused = run(&mut session, &format!("SELECT * FROM '{}'", place.path(named))).unwrap_err();
        assert!(refused.contains("not below the folder"), "{named}: {refused}");
        let refused = run(&mut session, &format!("SELECT * FROM glob('{}')", place.path(named))).unwrap_err();
        assert!(refused.contains("not below the folder"), "{named}: {refused}");
    }
    for new in ["root/nowhere.csv", "root/folder/new.csv", "root/in/link.csv"] {
        let refused = run(&mut session, &format!("COPY t TO '{}'", place.path(new))).unwrap_err();
        assert!(refused.contains("not below the folder"), "{new}: {refused}");
    }
    assert_eq!(std::fs::read_dir(place.path("out")).unwrap().count(), 1);
    assert_eq!(run(&mut session, &format!("SELECT * FROM '{}'", place.path("root/within.csv"))), Ok(2));
}

#[test]
fn options_that_name_files_are_paths_too() {
    let place = Place::new();
    let mut session = place.open(place.below());
    std::fs::write(place.path("out/columns"), "id BIGINT, name TEXT").unwrap();
    std::fs::write(place.path("root/columns"), "id BIGINT, name TEXT").unwrap();
    let read = |options: &str| format!("SELECT * FROM read_csv('{}', {options})", place.path("root/a.csv"));
    assert_eq!(run(&mut session, &read(&format!("schema => '{}'", place.path("root/columns")))), Ok(2));
    let refused = run(&mut session, &read(&format!("schema => '{}'", place.path("out/columns")))).unwrap_err();
    assert!(refused.contains("columns and types are expected"), "{refused}");
    assert_eq!(run(&mut session, &read("schema => 'id BIGINT, name TEXT'")), Ok(2));
    let refused = run(&mut session, &read(&format!("rejects => '{}'", place.path("out/rejects")))).unwrap_err();
    assert!(refused.contains("not below the folder"), "{refused}");
    let mut reader = place.open(place.below().for_reading());
    let refused = run(&mut reader, &read(&format!("rejects => '{}'", place.path("root/rejects")))).unwrap_err();
    assert!(refused.contains("only reads"), "{refused}");
    assert_eq!(run(&mut reader, &read("header => true")), Ok(2));
}

#[test]
fn a_session_that_is_bounded_sets_no_folder_and_no_limit() {
    let place = Place::new();
    let mut session = place.open(Grants::tables_alone());
    for sql in [
        "SET datafusion.runtime.temp_directory = '/tmp'",
        "SET datafusion.runtime.memory_limit = '1T'",
        "SET DATAFUSION.RUNTIME.memory_limit = '1T'",
        "RESET datafusion.runtime.memory_limit",
        "SET datafusion.catalog.location = '/tmp'",
        "SET datafusion.execution.batch_size = 1",
        "SET threads = 64",
        "SET memory_limit = '1T'",
        "CREATE SECRET (TYPE s3, KEY_ID 'a', SECRET 'b')",
        "DROP SECRET a",
    ] {
        assert!(run(&mut session, sql).is_err(), "{sql}");
    }
    for sql in [
        "SET threads = 1",
        "SET plinth.profile = true",
        "SET TIME ZONE = '+01:00'",
        "SET datafusion.explain.format = 'tree'",
    ] {
        assert_eq!(run(&mut session, sql), Ok(0), "{sql}");
    }
}

#[test]
fn a_session_that_reads_changes_nothing() {
    let place = Place::new();
    let mut session = place.open(Grants::tables_alone().for_reading());
    for sql in [
        "INSERT INTO t VALUES (3, 'x')",
        "UPDATE t SET name = 'y'",
        "DELETE FROM t",
        "DELETE FROM t WHERE id IN (SELECT 1)",
        "MERGE INTO t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "TRUNCATE t",
        "VACUUM t",
        "DROP TABLE t",
        "ALTER TABLE t ADD COLUMN c BIGINT",
        "CREATE TABLE u (id BIGINT)",
        "CREATE TABLE u AS SELECT 1 AS a",
        "CREATE TEMP TABLE u AS SELECT 1 AS a",
        "SELECT 1 AS a INTO u",
        "CREATE INDEX i ON t (name)",
        "DROP INDEX i",
        "CREATE VIEW v AS SELECT 1 AS a",
        "DROP VIEW v",
        "CREATE SCHEMA w",
        "DROP SCHEMA w",
        "CREATE SEQUENCE r",
        "DROP SEQUENCE s",
        "SELECT nextval('s')",
        "COPY t TO 'x.csv'",
        "COPY t FROM 'x.csv'",
        "ATTACH 'x' AS x",
        "PREPARE p AS INSERT INTO t VALUES (4, 'z')",
        "EXPLAIN ANALYZE INSERT INTO t VALUES (5, 'z')",
        "EXPLAIN ANALYZE COPY t TO 'x.csv'",
        "WITH gone AS (DELETE FROM t RETURNING id) SELECT * FROM gone",
    ] {
        assert!(run(&mut session, sql).is_err(), "{sql}");
    }
    for sql in [
        "SELECT * FROM t",
        "EXPLAIN SELECT * FROM t",
        "SHOW TABLES",
        "DESCRIBE t",
        "BEGIN",
        "SELECT * FROM t",
        "COMMIT",
    ] {
        run(&mut session, sql).unwrap();
    }
    run(&mut session, "PREPARE q AS SELECT * FROM t WHERE id = $1").unwrap();
    assert_eq!(run(&mut session, "EXECUTE q(1)"), Ok(1));
    drop(session);
    let mut owner = place.open(Grants::default());
    assert_eq!(run(&mut owner, "SELECT * FROM t WHERE id = 1 AND name = 'one'"), Ok(1));
    assert_eq!(run(&mut owner, "SELECT * FROM t"), Ok(1));
    assert_eq!(run(&mut owner, "SELECT * FROM (SELECT nextval('s') AS n) WHERE n = 1"), Ok(1));
}

#[test]
fn names_with_a_scheme_are_urls() {
    for url in ["s3://b/x", "file:x", "FILE:///x", "c:x", "a+b-1.c:x"] {
        assert!(has_scheme(url), "{url}");
    }
    for path in ["/a:b", "./a:b", "a b:c", ":x", "a"] {
        assert!(!has_scheme(path), "{path}");
    }
}
