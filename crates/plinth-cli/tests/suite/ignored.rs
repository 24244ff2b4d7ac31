//! Nothing that is said is ignored, and no file takes the place of another that was meant.

use std::sync::Arc;

use arrow_array::{ArrayRef, Date32Array, Float64Array, Int64Array, NullArray, RecordBatch};

use crate::common::{Dir, plinth, write_parquet};

fn folder() -> Dir {
    let dir = Dir::new();
    std::fs::write(dir.path("s.csv"), "a,b\n1,x\n2,y\n").unwrap();
    std::fs::write(dir.path("s.ndjson"), "{\"a\":1}\n").unwrap();
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    write_parquet(&dir.path("s.parquet"), &RecordBatch::try_from_iter([("a", ids)]).unwrap(), 10);
    plinth(&dir, &["import", "s.csv", "--to", "x.plinth", "-q"]).ok();
    dir
}

#[test]
fn options_of_another_format_are_refused() {
    let dir = folder();
    let separated = [
        &["--delimiter", ";"][..],
        &["--quote", "'"],
        &["--escape", "none"],
        &["--header"],
        &["--no-header"],
        &["--thousands", "."],
        &["--decimal", ","],
        &["--null", "NA"],
    ];
    let json = [&["--root", "a"][..], &["--unknown", "report"], &["--unknown", "error"]];
    let text =
        [&["--sample", "all"][..], &["--max-record", "1MiB"], &["--rejects", "r.ndjson"], &["--on-error", "null"]];
    let cases = [
        (&["s.parquet", "s.ndjson"][..], &separated[..], "csv, tsv"),
        (&["s.parquet", "s.csv"][..], &json[..], "ndjson"),
        (&["s.parquet"][..], &text[..], "csv, tsv, ndjson"),
        (&["s.csv", "s.ndjson"][..], &[&["--binary-as-text"][..]][..], "parquet"),
    ];
    for (inputs, options, formats) in cases {
        for input in inputs {
            for option in options {
                let said = option[0];
                let expected = format!("plinth: {said}: is an option of {formats}, and {input} is ");
                for command in ["import", "export"] {
                    let to = if command == "import" { "o.plinth" } else { "o.csv" };
                    let run = plinth(&dir, &[&[command, *input, "--to", to][..], *option].concat());
                    run.fails(1, &expected);
                }
            }
        }
    }
    let run = plinth(&dir, &["import", "s.csv", "--to", "o.plinth", "--columns", "a"]);
    run.fails(1, "plinth: --columns: is an option of ndjson, and s.csv is csv");
    for option in [
        &["--delimiter", ";"][..],
        &["--no-header"],
        &["--null", "NA"],
        &["--schema", "a INT"],
        &["--format", "csv"],
        &["--no-hive"],
        &["--binary-as-text"],
    ] {
        let run = plinth(&dir, &[&["export", "x.plinth", "--to", "o.csv"][..], option].concat());
        run.fails(1, &format!("plinth: {}: is an option of foreign files", option[0]));
    }
    assert!(!dir.entries().iter().any(|name| name.starts_with("o.") || name == "r.ndjson"), "{:?}", dir.entries());
}

#[test]
fn a_schema_keeps_types_and_takes_those_that_describe_prints() {
    let dir = folder();
    let import =
        |schema: &str| plinth(&dir, &["import", "s.ndjson", "--to", "o.plinth", "--replace", "-q", "--schema", schema]);
    for more in ["a INT UNIQUE", "a INT PRIMARY KEY", "a INT DEFAULT 5"] {
        import(more).fails(1, "plinth: --schema: ");
    }
    for name in ["UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "DECIMAL(38,0)"] {
        import(&format!("a {name}")).ok();
        let described = plinth(&dir, &["-c", "DESCRIBE 'o.plinth'"]).ok().stdout;
        assert!(described.contains(name), "{name}: {described}");
    }
    std::fs::write(
        dir.path("n.ndjson"),
        "{\"s\":{\"x\":1,\"y\":[\"p\"]},\"m\":{\"k\":2},\"t\":\"2024-01-02T03:04:05.678\",\"b\":\"00ff\"}\n",
    )
    .unwrap();
    let schema = "s STRUCT(x INT, y VARCHAR[]), m MAP(VARCHAR, INT), t TIMESTAMP_MS, b BLOB";
    plinth(&dir, &["import", "n.ndjson", "--to", "n.plinth", "-q", "--schema", schema]).ok();
    let described = plinth(&dir, &["-c", "DESCRIBE 'n.plinth'"]).ok().stdout;
    for name in ["STRUCT(x INTEGER, y VARCHAR[])", "MAP(VARCHAR, INTEGER)", "TIMESTAMP_MS", "BLOB"] {
        assert!(described.contains(name), "{name}: {described}");
    }
}

#[test]
fn a_profile_takes_the_place_of_no_other_file() {
    let dir = folder();
    let before = std::fs::read(dir.path("s.csv")).unwrap();
    std::fs::write(dir.path("s.json"), "[{\"a\":1}]").unwrap();
    for args in [
        &["import", "s.csv", "--to", "q.plinth", "--profile-to", "s.csv"][..],
        &["import", "s.json", "--to", "q.plinth", "--profile-to", "./s.json"],
        &["import", "s.csv", "--to", "q.plinth", "--profile-to", "q.plinth"],
        &["import", "s.csv", "--to", "q.plinth", "--profile-to", "bad.txt", "--rejects", "./bad.txt"],
        &["sql", "-c", "FROM 's.csv'", "-o", "out.json", "--profile-to", "./out.json"],
        &["sql", "-c", "FROM 's.csv'", "--profile-to", "s.csv"],
        &["sql", "s.json", "-c", "FROM s", "--profile-to", "s.json"],
    ] {
        plinth(&dir, args).fails(1, "plinth: ");
    }
    assert_eq!(std::fs::read(dir.path("s.csv")).unwrap(), before);
    assert_eq!(std::fs::read_to_string(dir.path("s.json")).unwrap(), "[{\"a\":1}]");
    assert_eq!(dir.entries(), ["s.csv", "s.json", "s.ndjson", "s.parquet", "x.plinth"]);
}

#[test]
fn names_of_files_that_are_not_written_are_refused() {
    let dir = folder();
    for name in ["report.xlsx", "x.html", "x.yaml", "x.SQLITE"] {
        let run = plinth(&dir, &["-c", "SELECT 1", "-o", name]);
        run.fails(1, &format!("plinth: {name}: no such file is written"));
    }
    plinth(&dir, &["-c", "SELECT 1 AS a", "-o", "x.txt"]).ok();
    assert_eq!(std::fs::read_to_string(dir.path("x.txt")).unwrap(), "a\n1\n");
}

#[test]
fn nothing_is_told_as_nothing_and_errors_are_no_values() {
    let dir = Dir::new();
    let days: ArrayRef = Arc::new(Date32Array::from(vec![0, i32::MAX]));
    write_parquet(&dir.path("d.parquet"), &RecordBatch::try_from_iter([("d", days)]).unwrap(), 10);
    for format in ["json", "table", "csv", "markdown"] {
        let run = plinth(&dir, &["-c", "FROM 'd.parquet'", "--format", format]);
        assert!(run.fails(1, "plinth: column \"d\" holds a date").stderr.contains("too far off"), "{}", run.stderr);
        assert!(!run.stdout.contains("ERROR"), "{}", run.stdout);
    }
    let columns =
        [("i", Arc::new(Int64Array::from(vec![1])) as ArrayRef, false), ("n", Arc::new(NullArray::new(1)), true)];
    write_parquet(&dir.path("n.parquet"), &RecordBatch::try_from_iter_with_nullable(columns).unwrap(), 10);
    let text =
        |format: &str| plinth(&dir, &["export", "n.parquet", "--to", "-", "--to-format", format, "-q"]).ok().stdout;
    assert_eq!(text("ndjson"), "{\"i\":1,\"n\":null}\n");
    assert_eq!(text("csv"), "i,n\n1,\n");
    plinth(&dir, &["import", "n.parquet", "--to", "n.plinth", "-q", "--schema", "i BIGINT, n INT"]).ok();
    assert_eq!(plinth(&dir, &["-c", "SELECT n IS NULL AS n FROM 'n.plinth'"]).ok().stdout, "n\ntrue\n");
}

#[test]
fn both_zeros_are_looked_up_as_one_number() {
    let dir = Dir::new();
    let values = (0..100).map(|row| [0.0, -0.0, 1.5, -1.5][row % 4]);
    let column: ArrayRef = Arc::new(Float64Array::from_iter_values(values));
    write_parquet(&dir.path("f.parquet"), &RecordBatch::try_from_iter([("f", column)]).unwrap(), 100);
    plinth(&dir, &["import", "f.parquet", "--to", "f.plinth", "--index", "f", "-q"]).ok();
    for access in ["auto", "scan", "postings"] {
        for (value, count) in [("0", 50), ("-0", 50), ("0.0", 50), ("1.5", 25)] {
            let run = plinth(&dir, &["lookup", "f.plinth", "f", "--equals", value, "--rows", "--access", access]).ok();
            assert_eq!(run.stdout.lines().count(), count + 1, "{access} {value}");
        }
    }
}

#[test]
fn intervals_go_to_parquet_or_are_refused_by_the_name_of_their_column() {
    let dir = Dir::new();
    let ask = |sql: &str| plinth(&dir, &["-c", sql, "-o", "i.parquet", "--replace"]);
    ask("SELECT interval '14 months 3 days 2.5 seconds' AS i").ok();
    let same = "SELECT i = interval '14 months 3 days 2.5 seconds' AS same FROM 'i.parquet'";
    assert_eq!(plinth(&dir, &["-c", same]).ok().stdout, "same\ntrue\n");
    ask("SELECT interval '-1 month' AS past").fails(1, "plinth: column \"past\": holds a negative interval");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_is_named() {
    let dir = folder();
    let run = plinth(&dir, &["-c", "SELECT 1", "-o", "/dev/full"]);
    assert!(run.fails(1, "plinth: /dev/full: ").stderr.contains("No space left"), "{}", run.stderr);
}

#[cfg(unix)]
#[test]
fn an_export_to_a_closed_pipe_ends_quietly() {
    use std::process::Stdio;
    let dir = folder();
    let text: String = (0..200_000).map(|row| format!("{row},some text\n")).collect();
    std::fs::write(dir.path("big.csv"), format!("a,b\n{text}")).unwrap();
    for format in ["csv", "ndjson", "parquet"] {
        let mut export = crate::common::command(&dir, &["export", "big.csv", "--to", "-", "--to-format", format, "-q"]);
        let mut child = export.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap()), (Some(0), String::new()));
    }
}

#[test]
fn a_script_may_begin_with_a_byte_order_mark() {
    let dir = folder();
    std::fs::write(dir.path("s.sql"), "\u{feff}SELECT 1 AS a;\n").unwrap();
    assert_eq!(plinth(&dir, &["-f", "s.sql"]).ok().stdout, "a\n1\n");
}
