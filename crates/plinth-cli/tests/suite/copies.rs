//! `COPY ... TO` in formats of others: whole or not at all, whatever the file is called.

use std::fs;

use crate::common::{Dir, plinth};

/// What stands in a file that a COPY is to replace.
const OLD: &str = "old\n";

/// A query that fails behind its first 80,000 rows.
const FAILS: &str = "SELECT 100 / (90000 - value) AS x FROM generate_series(1, 100000)";

fn run(dir: &Dir, sql: &str) -> String {
    plinth(dir, &["-c", sql]).ok().stdout
}

/// The names in a folder, in their order.
fn names(dir: &Dir, path: &str) -> Vec<String> {
    let entries = fs::read_dir(dir.path(path)).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_copy_that_fails_leaves_what_was_there_and_nothing_else() {
    let dir = Dir::new();
    for file in ["keep.csv", "keep.json", "keep.parquet"] {
        fs::write(dir.path(file), OLD).unwrap();
        let run = plinth(&dir, &["-c", &format!("COPY ({FAILS}) TO '{file}'")]);
        assert_eq!(run.code, Some(1), "{file}: {}", run.stderr);
        assert_eq!(fs::read_to_string(dir.path(file)).unwrap(), OLD, "{file}");
    }
    for format in ["csv", "json", "parquet"] {
        let sql = format!("COPY (SELECT x % 3 AS k, x FROM ({FAILS})) TO 'parts' (FORMAT {format}, PARTITION_BY (k))");
        assert_eq!(plinth(&dir, &["-c", &sql]).code, Some(1), "{format}");
    }
    // A type that CSV can't hold is found before the file is begun.
    let run = plinth(&dir, &["-c", "COPY (SELECT [1, 2] AS l) TO 'keep.csv'"]);
    assert!(run.code == Some(1) && run.stderr.contains("nested"), "{}", run.stderr);
    let run = plinth(&dir, &["-c", "COPY (SELECT 1 AS a) TO 'nowhere/x.csv'"]);
    assert!(run.code == Some(1) && run.stderr.contains("nowhere"), "{}", run.stderr);
    assert_eq!(names(&dir, "."), ["keep.csv", "keep.json", "keep.parquet"]);
    assert_eq!(fs::read_to_string(dir.path("keep.csv")).unwrap(), OLD);
}

#[test]
fn files_are_called_as_they_are_written() {
    let dir = Dir::new();
    let called =
        ["sales[1].parquet", "a*b.csv", "what?.json", "no ending", "ü ß.csv", "%41.parquet", "{x}.csv", "a#b.json"];
    for name in called {
        let form = if name.contains('.') { "" } else { " (FORMAT csv)" };
        run(&dir, &format!("COPY (SELECT 1 AS a) TO '{name}'{form}"));
    }
    let mut expected = called.map(str::to_owned).to_vec();
    expected.sort();
    assert_eq!(names(&dir, "."), expected);
    assert_eq!(fs::read_to_string(dir.path("no ending")).unwrap(), "a\n1\n");
    // Again it is replaced, not added to.
    run(&dir, "COPY (SELECT 2 AS a) TO 'no ending' (FORMAT csv)");
    assert_eq!(fs::read_to_string(dir.path("no ending")).unwrap(), "a\n2\n");
    fs::create_dir(dir.path("b[c]")).unwrap();
    run(&dir, "COPY (SELECT 3 AS a) TO 'b[c]/x.parquet'; COPY (SELECT 3 AS a) TO 'b[c]/x.csv'");
    assert_eq!(names(&dir, "b[c]"), ["x.csv", "x.parquet"]);
    let refused = plinth(&dir, &["-c", "COPY (SELECT 3 AS a) TO 'b[c]'"]);
    assert!(refused.stderr.contains("its name says no format"), "{}", refused.stderr);
    let refused = plinth(&dir, &["-c", "COPY (SELECT 3 AS a) TO 'b[c]' (FORMAT csv)"]);
    assert!(refused.stderr.contains("is a folder"), "{}", refused.stderr);
}

#[test]
fn null_and_no_letters_are_told_apart() {
    let dir = Dir::new();
    let rows = "SELECT * FROM (VALUES (1, NULL), (2, ''), (3, 'x')) t(id, s)";
    run(&dir, &format!("COPY ({rows}) TO 'a.csv'; COPY ({rows}) TO 'a.json'; COPY ({rows}) TO 'a.tsv'"));
    assert_eq!(fs::read_to_string(dir.path("a.csv")).unwrap(), "id,s\n1,\n2,\"\"\n3,x\n");
    assert_eq!(fs::read_to_string(dir.path("a.tsv")).unwrap(), "id\ts\n1\t\n2\t\"\"\n3\tx\n");
    let json = "{\"id\":1,\"s\":null}\n{\"id\":2,\"s\":\"\"}\n{\"id\":3,\"s\":\"x\"}\n";
    assert_eq!(fs::read_to_string(dir.path("a.json")).unwrap(), json);
    for file in ["a.csv", "a.json", "a.tsv"] {
        assert_eq!(run(&dir, &format!("SELECT id FROM '{file}' WHERE s IS NULL")), "id\n1\n", "{file}");
    }
    let options = "(FORMAT csv, HEADER false, DELIMITER ';', NULL 'x', QUOTE '''', TIMESTAMPFORMAT '%d.%m.%Y')";
    let rows = "SELECT NULL AS a, 'x' AS b, 'it''s;' AS c, TIMESTAMP '2024-02-03 00:00:00' AS d";
    run(&dir, &format!("COPY ({rows}) TO 'b.txt' {options}"));
    assert_eq!(fs::read_to_string(dir.path("b.txt")).unwrap(), "x;'x';'it''s;';03.02.2024\n");
    run(&dir, "COPY (SELECT 'a\"b\\' AS a) TO 'c.csv' (ESCAPE '\\')");
    assert_eq!(fs::read_to_string(dir.path("c.csv")).unwrap(), "a\n\"a\\\"b\\\\\"\n");
}

#[test]
fn names_say_the_compression_and_options_overrule_them() {
    let dir = Dir::new();
    for (file, options, begins) in [
        ("a.csv.gz", "", &[0x1f, 0x8b][..]),
        ("a.json.zst", "", &[0x28, 0xb5]),
        ("b.csv.gz", "(FORMAT csv)", &[0x1f, 0x8b]),
        ("c.csv", "(COMPRESSION gzip)", &[0x1f, 0x8b]),
        ("d.csv.gz", "(COMPRESSION none)", b"a\n"),
    ] {
        run(&dir, &format!("COPY (SELECT 1 AS a) TO '{file}' {options}"));
        assert!(fs::read(dir.path(file)).unwrap().starts_with(begins), "{file}");
    }
    assert_eq!(run(&dir, "SELECT sum(a) AS s FROM 'a.csv.gz'"), "s\n1\n");
    let refused = plinth(&dir, &["-c", "COPY (SELECT 1 AS a) TO 'e.csv' (COMPRESSION snappy)"]);
    assert!(refused.stderr.contains("COMPRESSION snappy"), "{}", refused.stderr);
}

#[test]
fn partitions_are_complete_and_null_is_one_of_its_own() {
    let dir = Dir::new();
    let rows = "SELECT nullif(value % 3, 1) AS k, value AS i FROM generate_series(1, 9)";
    for format in ["parquet", "csv", "json"] {
        run(&dir, &format!("COPY ({rows}) TO '{format}' (FORMAT {format}, PARTITION_BY (k))"));
        assert_eq!(names(&dir, format), ["k=0", "k=2", "k=__HIVE_DEFAULT_PARTITION__"], "{format}");
        let again = plinth(&dir, &["-c", &format!("COPY ({rows}) TO '{format}' (FORMAT {format}, PARTITION_BY (k))")]);
        assert!(again.stderr.contains("has files in it"), "{}", again.stderr);
    }
    fs::create_dir(dir.path("empty")).unwrap();
    let odd = "SELECT 'a/b=c%' AS k, 1 AS i UNION ALL SELECT 'd', 2";
    run(&dir, &format!("COPY ({odd}) TO 'empty' (FORMAT csv, PARTITION_BY (k))"));
    assert_eq!(names(&dir, "empty"), ["k=a%2Fb%3Dc%25", "k=d"]);
    assert_eq!(fs::read_to_string(dir.path("empty/k=d/data_0.csv")).unwrap(), "i\n2\n");
    // More partitions than files may be open.
    run(
        &dir,
        "COPY (SELECT value % 700 AS k, value AS i FROM generate_series(0, 2099)) TO 'many' (FORMAT csv, PARTITION_BY (k))",
    );
    assert_eq!(names(&dir, "many").len(), 700);
    let sums = "SELECT count(*) AS n, sum(i) AS s FROM read_csv('many/*/*.csv')";
    assert_eq!(run(&dir, sums), "n,s\n2100,2203950\n");
}

#[test]
fn columns_of_one_name_get_others() {
    let dir = Dir::new();
    let rows = "SELECT * FROM (VALUES (1, 'l')) x(id, v) JOIN (VALUES (1, 'r')) y(id, v) ON x.id = y.id";
    run(&dir, &format!("COPY ({rows}) TO 'a.parquet'; COPY ({rows}) TO 'a.json'; COPY ({rows}) TO 'a.csv'"));
    for file in ["a.parquet", "a.json", "a.csv"] {
        assert_eq!(run(&dir, &format!("FROM '{file}'")), "id,v,id_1,v_1\n1,l,1,r\n", "{file}");
    }
    plinth(&dir, &["-c", rows, "-o", "b.parquet"]).ok();
    assert_eq!(run(&dir, "FROM 'b.parquet'"), "id,v,id_1,v_1\n1,l,1,r\n");
    let json = plinth(&dir, &["-c", rows, "--format", "json"]).ok().stdout;
    assert_eq!(json, "{\"id\":1,\"v\":\"l\",\"id_1\":1,\"v_1\":\"r\"}\n");
}

/// Files without a header are copied from by the places of their columns, and points in time of any precision as they were written.
#[test]
fn what_was_copied_out_is_copied_back() {
    let dir = Dir::new();
    let db = |statement: &str| plinth(&dir, &["sql", "--db", "db", "--format", "csv", "-c", statement]);
    db("CREATE TABLE t (id INT PRIMARY KEY, s TEXT, at TIMESTAMP(6), z TIMESTAMP WITH TIME ZONE)").ok();
    db("INSERT INTO t VALUES (1, 'a,b', '1500-01-01 00:00:00.000001', '2024-01-01 00:00:00+00'), (2, NULL, NULL, NULL)").ok();
    let rows = db("SELECT * FROM t ORDER BY id").ok().stdout;
    for header in ["true", "false"] {
        db(&format!("COPY t TO 'x.csv' (HEADER {header})")).ok();
        db("CREATE TABLE u (id INT PRIMARY KEY, s TEXT, at TIMESTAMP(6), z TIMESTAMP WITH TIME ZONE)").ok();
        db(&format!("COPY u FROM 'x.csv' (HEADER {header})")).ok();
        assert_eq!(db("SELECT * FROM u ORDER BY id").ok().stdout, rows, "header {header}");
        db("DROP TABLE u").ok();
    }
    db("CREATE TABLE two (s TEXT, id INT)").ok();
    std::fs::write(dir.path("two.csv"), "1,a\n2,b\n").unwrap();
    db("COPY two (id, s) FROM 'two.csv' (HEADER false)").ok();
    assert_eq!(db("SELECT s, id FROM two ORDER BY id").ok().stdout, "s,id\na,1\nb,2\n");
}
