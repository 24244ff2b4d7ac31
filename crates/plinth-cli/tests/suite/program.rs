//! The program as people call it first: without a command, with files, with something on standard input.

use std::io::Write;
use std::process::Stdio;

use crate::common::{Dir, command, plinth, with_input};

const CSV: &str = "id,name,amount\n1,a,1.5\n2,b,2.5\n3,c,\n";

#[test]
fn files_are_tables() {
    let dir = Dir::new();
    std::fs::write(dir.path("t.csv"), CSV).unwrap();
    std::fs::create_dir(dir.path("logs")).unwrap();
    std::fs::write(dir.path("logs/t.ndjson"), "{\"a\":1}\n{\"a\":2}\n").unwrap();
    let args = ["t.csv", "logs/t.ndjson", "-c", "SHOW TABLES; SELECT sum(a) AS s FROM t_2, t WHERE id = 1"];
    assert_eq!(plinth(&dir, &args).ok().stdout, "name\nt\nt_2\ns\n3\n");
    let sql = [&["sql"], &args[..]].concat();
    assert_eq!(plinth(&dir, &sql).ok().stdout, "name\nt\nt_2\ns\n3\n");
    // A file that changes is read as it is.
    let both = "SELECT count(*) AS n FROM t; COPY (SELECT 7 AS id) TO 'u.csv'; SELECT * FROM u";
    std::fs::write(dir.path("u.csv"), "id\n5\n").unwrap();
    let run = plinth(&dir, &["t.csv", "u.csv", "-c", &both.replace("u.csv'", "v.csv'")]).ok();
    assert_eq!(run.stdout, "n\n3\nid\n5\n");
    // Without a terminal statements come from standard input.
    assert_eq!(with_input(&dir, &[], "SELECT 1 AS a;").ok().stdout, "a\n1\n");
    assert_eq!(with_input(&dir, &["t.csv"], "SELECT max(id) AS m FROM t").ok().stdout, "m\n3\n");
    for (word, said) in [
        ("imprt", "plinth: imprt: no such command and no such file; is import meant?\n"),
        ("frobnicate", "plinth: frobnicate: no such command and no such file; plinth --help lists the commands\n"),
    ] {
        let run = plinth(&dir, &[word]);
        assert_eq!((run.code, run.stderr.as_str()), (Some(2), said));
    }
}

#[test]
fn tables_that_can_be_written_to_are_named_on_the_command_line() {
    let dir = Dir::new();
    let create = "CREATE TABLE k (id BIGINT PRIMARY KEY, v TEXT); INSERT INTO k VALUES (1, 'a')";
    plinth(&dir, &["--db", "db", "-c", create]).ok();
    let sql = "INSERT INTO k VALUES (2, 'b'); UPDATE k SET v = 'z' WHERE id = 1; SELECT * FROM k ORDER BY id";
    assert_eq!(plinth(&dir, &["db/k", "-c", sql]).ok().stdout, "id,v\n1,z\n2,b\n");
}

#[test]
fn standard_input_is_a_table() {
    let dir = Dir::new();
    let ask = |sql: &str, input: &str| with_input(&dir, &["-c", sql], input);
    for table in ["stdin", "'-'", "'/dev/stdin'", "read_csv('-')", "read_csv('/dev/stdin', header => true)"] {
        let run = ask(&format!("SELECT count(*) AS n, sum(amount) AS s FROM {table}"), CSV).ok();
        assert_eq!(run.stdout, "n,s\n3,4.0\n", "{table}");
    }
    // More than once, and with an alias; JSON is told from its first letter.
    let twice =
        "SELECT count(*) AS n FROM stdin a JOIN stdin AS b ON a.id = b.id; SELECT max(stdin.id) AS m FROM stdin";
    assert_eq!(ask(twice, CSV).ok().stdout, "n\n3\nm\n3\n");
    assert_eq!(ask("SELECT sum(a) AS s FROM stdin", "{\"a\":1}\n{\"a\":2}\n").ok().stdout, "s\n3\n");
    assert_eq!(ask("SELECT sum(a) AS s FROM read_json('-')", "[{\"a\":1},{\"a\":5}]").ok().stdout, "s\n6\n");
    plinth(&dir, &["-c", "COPY (SELECT 4 AS q) TO 'q.parquet'"]).ok();
    let mut parquet = command(&dir, &["-c", "SELECT q FROM stdin"]);
    let run = parquet.stdin(std::fs::File::open(dir.path("q.parquet")).unwrap()).output().unwrap();
    assert_eq!(String::from_utf8(run.stdout).unwrap(), "q\n4\n");
    // A table of this name is the table; statements that come from there can't be rows, too.
    std::fs::write(dir.path("stdin.csv"), "x\n9\n").unwrap();
    assert_eq!(with_input(&dir, &["stdin.csv", "-c", "SELECT x FROM stdin"], CSV).ok().stdout, "x\n9\n");
    // What is wrong with it is told of standard input, not of the file that stands for it.
    for (input, what) in [("a\n\"x\n", "a"), ("PLINTH\r\n", "is a Plinth file"), ("ARROW1\0\0", "is a file of Arrow's")]
    {
        let run = with_input(&dir, &["-c", "SELECT * FROM read_csv('-', quote => '\"')"], input);
        assert!(run.fails(1, "plinth: standard input: ").stderr.contains(what), "{}", run.stderr);
    }
    // Rows without a key, and none at all, have one column.
    assert_eq!(ask("SELECT count(*) AS n FROM stdin", "{}\n{}\n").ok().stdout, "n\n2\n");
    assert_eq!(ask("SELECT count(*) AS n FROM stdin", "[]").ok().stdout, "n\n0\n");
    let run = with_input(&dir, &["sql"], "SELECT * FROM stdin");
    run.fails(1, "plinth: stdin: holds the statements themselves; give these with -c or -f");
}

#[test]
fn changes_print_nothing_among_results() {
    let dir = Dir::new();
    let sql = "CREATE TABLE t (id BIGINT PRIMARY KEY, n INT); INSERT INTO t VALUES (1, 1), (2, 2); UPDATE t SET n = 3; \
               DELETE FROM t WHERE id = 1; MERGE INTO t USING (VALUES (2)) s (id) ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 4; \
               PREPARE p AS INSERT INTO t VALUES ($1, 5); EXECUTE p(7); CREATE TABLE u AS SELECT 1 AS a; \
               COPY (SELECT 1 AS a) TO 'a.csv'; BEGIN; TRUNCATE TABLE t; COMMIT; VACUUM t; CREATE INDEX i ON t (n); \
               SELECT count(*) AS n FROM t";
    for (format, expected) in [("csv", "n\n0\n"), ("json", "{\"n\":0}\n"), ("table", "n\n─\n0\n")] {
        let _ = std::fs::remove_dir_all(dir.path("db"));
        let _ = std::fs::remove_file(dir.path("a.csv"));
        let run = plinth(&dir, &["--db", "db", "--format", format, "-c", sql]).ok();
        assert_eq!(run.stdout, expected);
    }
}

#[test]
fn arrow_is_a_stream() {
    let dir = Dir::new();
    let sql = "SELECT value AS n, 'x' || value AS t FROM range(0, 20000) ORDER BY n";
    let run = command(&dir, &["--format", "arrow", "-c", sql]).output().unwrap();
    assert!(run.status.success());
    plinth(&dir, &["-c", sql, "-o", "rows.arrows"]).ok();
    let read = |bytes: &[u8]| {
        let reader = arrow_ipc::reader::StreamReader::try_new(bytes, None).unwrap();
        reader.map(|batch| batch.unwrap().num_rows()).sum::<usize>()
    };
    assert_eq!((read(&run.stdout), read(&std::fs::read(dir.path("rows.arrows")).unwrap())), (20_000, 20_000));
    let run = plinth(&dir, &["-c", "SELECT 1 AS a; SELECT 2 AS b", "-o", "two.arrows"]);
    run.fails(1, "plinth: a stream of Arrow's holds one result");
}

#[test]
fn options_have_one_name_in_every_command() {
    let dir = Dir::new();
    std::fs::write(dir.path("t.csv"), CSV).unwrap();
    plinth(&dir, &["import", "t.csv", "-o", "t.plinth", "-q"]).ok();
    plinth(&dir, &["import", "t.csv", "--output", "t.plinth", "-q"])
        .fails(1, "plinth: t.plinth: already exists; give --replace to replace it");
    plinth(&dir, &["import", "t.csv", "--to", "t.plinth", "-q", "--replace"]).ok();
    for format in ["json", "ndjson", "jsonl"] {
        let export = ["export", "t.plinth", "-o", "-", "--to-format", format, "-q"];
        let sql = ["sql", "t.plinth", "--format", format, "-c", "FROM t"];
        assert_eq!(plinth(&dir, &export).ok().stdout.lines().count(), 3);
        assert_eq!(plinth(&dir, &sql).ok().stdout.lines().count(), 3);
    }
}

#[test]
fn a_mark_stands_below_what_a_message_is_about() {
    let dir = Dir::new();
    std::fs::write(dir.path("t.csv"), CSV).unwrap();
    for (sql, place) in [
        ("SELEC 1", "\n  SELEC 1\n  ^\n"),
        ("SELECT id,\n nam FROM 't.csv'", "\n   nam FROM 't.csv'\n   ^\n"),
        ("SELECT 1; SELECT mdo(7, 3)", "\n   SELECT mdo(7, 3)\n          ^\n"),
        ("SELECT CAST('x' AS INT)", "\n  SELECT CAST('x' AS INT)\n              ^\n"),
        ("SELECT * FROM 't.cvs'", "; is 't.csv' meant?\n  SELECT * FROM 't.cvs'\n                ^\n"),
    ] {
        let run = plinth(&dir, &["-c", sql]);
        assert_eq!(run.code, Some(1), "{sql}");
        assert!(run.stderr.ends_with(place), "{sql}: {}", run.stderr);
    }
}

#[test]
fn plans_are_trees_for_people_and_tables_for_programs() {
    let dir = Dir::new();
    std::fs::write(dir.path("t.csv"), CSV).unwrap();
    plinth(&dir, &["import", "t.csv", "-o", "t.plinth", "-q"]).ok();
    let query = "SELECT name, count(*) AS n FROM t WHERE id > 1 GROUP BY name ORDER BY n DESC";
    let explain = |form: &str, format: &str| {
        plinth(&dir, &["t.plinth", "--format", format, "-c", &format!("{form} {query}")]).ok().stdout
    };
    let tree = explain("EXPLAIN", "table");
    let head = tree.lines().next().unwrap();
    assert!(head.starts_with("operator ") && head.contains("expected") && !head.contains("memory"), "{tree}");
    assert!(tree.contains("└─ scan") && tree.contains("t.plinth · where id > 1") && tree.contains("by name"), "{tree}");
    let ran = explain("EXPLAIN ANALYZE", "table");
    assert!(ran.lines().next().unwrap().contains("rows") && ran.contains("2 rows in "), "{ran}");
    // Programs and those who ask for it get what the engine says.
    for (form, format) in [
        ("EXPLAIN", "csv"),
        ("EXPLAIN VERBOSE", "table"),
        ("EXPLAIN FORMAT INDENT", "table"),
        ("EXPLAIN (FORMAT indent)", "table"),
    ] {
        assert!(explain(form, format).contains("physical_plan"), "{form} {format}");
    }
    assert!(explain("EXPLAIN ANALYZE", "csv").contains("metrics=["));
}

#[test]
fn folders_of_files_are_inspected_and_verified_as_tables() {
    let dir = Dir::new();
    std::fs::write(dir.path("t.csv"), CSV).unwrap();
    plinth(&dir, &["import", "t.csv", "--append", "folder", "-q"]).ok();
    plinth(&dir, &["import", "t.csv", "--append", "folder", "-q"]).ok();
    let text = plinth(&dir, &["inspect", "folder"]).ok().stdout;
    assert!(text.contains("6 rows, ") && text.contains(" in 2 files") && text.contains("\namount"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&plinth(&dir, &["inspect", "folder", "--json"]).ok().stdout).unwrap();
    assert_eq!((&json["rows"], json["files"].as_array().unwrap().len()), (&6.into(), 2));
    let run = plinth(&dir, &["verify", "folder"]).ok();
    assert_eq!(run.stdout.lines().filter(|line| line.contains(": ok, 3 rows, ")).count(), 2, "{}", run.stdout);
}

#[test]
fn an_input_that_is_cut_short_leaves_nothing() {
    let dir = Dir::new();
    std::fs::create_dir(dir.path("tmp")).unwrap();
    let mut child = command(&dir, &["-c", "SELECT count(*) AS n FROM stdin"])
        .env("TMPDIR", dir.path("tmp"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(CSV.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap(), "n\n3\n");
    assert_eq!(std::fs::read_dir(dir.path("tmp")).unwrap().count(), 0);
}
