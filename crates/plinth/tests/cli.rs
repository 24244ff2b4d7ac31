//! The program from outside: what it prints, how it exits, what it leaves behind.
#![allow(clippy::unwrap_used, clippy::panic, clippy::cast_possible_wrap, clippy::cast_precision_loss)]

mod common;
mod lookup;
mod memory;
mod messages;
#[cfg(target_os = "linux")]
mod paths;
#[cfg(target_os = "linux")]
mod probe;
mod profile;
mod read;

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Dir, Run, big_parquet, people, plinth, write_parquet};

#[test]
fn a_file_goes_in_and_answers_come_out() {
    let dir = Dir::new();
    write_parquet(&dir.path("people.parquet"), &people(1_000), 300);
    let run = plinth(&dir, &["import", "people.parquet", "--to", "people.plinth"]).ok();
    let summary = run.stderr.trim_end();
    assert!(summary.starts_with("people.plinth: 1,000 rows, 6 columns from 1 file in "), "{summary}");
    assert_eq!(summary.lines().count(), 1);
    assert_eq!(run.stdout, "");

    // The same answers from both files.
    for sql in [
        "SELECT * FROM {} ORDER BY id",
        "SELECT city, count(*), sum(amount), min(day), max(score) FROM {} GROUP BY city ORDER BY city",
        "SELECT count(*), count(city), count(DISTINCT city), min(id), max(id) FROM {}",
        "SELECT id, tags FROM {} WHERE city LIKE 'B%' AND score > 50 ORDER BY id DESC LIMIT 7",
        "SELECT id FROM {} WHERE city IS NULL ORDER BY id",
        "SELECT id FROM {} WHERE id = 77 OR city = 'nowhere'",
    ] {
        for format in ["csv", "json"] {
            let [a, b] = ["people.parquet", "people.plinth"].map(|file| {
                let sql = sql.replace("{}", &format!("'{file}' AS t"));
                plinth(&dir, &["sql", "--format", format, "-c", &sql]).ok().stdout
            });
            assert_eq!(a, b, "{sql}");
            assert!(!a.is_empty());
        }
    }
    let run = plinth(&dir, &["verify", "people.plinth", "people.plinth"]).ok();
    assert_eq!(run.stdout.lines().filter(|l| l.starts_with("people.plinth: ok, 1,000 rows, ")).count(), 2);
    assert_eq!(dir.entries(), ["people.parquet", "people.plinth"]);
}

#[test]
fn inspect_shows_every_column_and_adds_up() {
    let dir = Dir::new();
    write_parquet(&dir.path("p.parquet"), &people(1_000), 300);
    plinth(&dir, &["import", "p.parquet", "--to", "p.plinth", "-q"]).ok();
    let text = plinth(&dir, &["inspect", "p.plinth"]).ok().stdout;
    for part in ["1,000 rows in ", "id", "city", "amount", "where the bytes are", "dictionaries", "metadata"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&plinth(&dir, &["inspect", "p.plinth", "--json"]).ok().stdout).unwrap();
    assert_eq!(json["rows"], 1_000);
    assert_eq!(json["file_bytes"], std::fs::metadata(dir.path("p.plinth")).unwrap().len());
    let columns = json["columns"].as_array().unwrap();
    assert!(columns.iter().any(|c| c["path"] == "id" && c["nulls"] == 0 && c["min"] == "0"), "{json}");
    let parts = columns.iter().map(|c| c["block_bytes"].as_u64().unwrap() + c["dictionary_bytes"].as_u64().unwrap());
    assert!(parts.sum::<u64>() <= json["file_bytes"].as_u64().unwrap());
}

#[test]
fn directories_patterns_and_differing_schemas_unite() {
    let dir = Dir::new();
    std::fs::create_dir_all(dir.path("in/deep")).unwrap();
    write_parquet(&dir.path("in/a.parquet"), &people(10), 100);
    let narrow = people(5).project(&[0]).unwrap();
    write_parquet(&dir.path("in/deep/b.parquet"), &narrow, 100);
    for input in ["in", "in/**/*.parquet"] {
        plinth(&dir, &["import", input, "--to", "all.plinth", "-q", "--replace"]).ok();
        let run = plinth(&dir, &["sql", "-c", "SELECT count(*), count(city), max(id) FROM 'all.plinth'"]).ok();
        let all = people(10);
        let cities = 10 - all.column(1).null_count();
        assert_eq!(run.stdout.lines().last().unwrap(), format!("15,{cities},9"));
    }
}

#[test]
fn every_bad_input_is_one_line_and_leaves_nothing() {
    let dir = Dir::new();
    std::fs::create_dir(dir.path("empty")).unwrap();
    std::fs::write(dir.path("data.xlsx"), "x").unwrap();
    std::fs::write(dir.path("text.parquet"), "a,b\n1,2\n").unwrap();
    write_parquet(&dir.path("a.parquet"), &people(100), 50);
    let whole = std::fs::read(dir.path("a.parquet")).unwrap();
    std::fs::write(dir.path("cut.parquet"), &whole[..whole.len() / 2]).unwrap();
    let id = people(3).column(1).clone();
    let conflict = arrow_array::RecordBatch::try_from_iter_with_nullable([("id", id, true)]).unwrap();
    write_parquet(&dir.path("b.parquet"), &conflict, 50);
    std::fs::write(dir.path("there.plinth"), "mine").unwrap();
    let before = dir.entries();
    for (inputs, to, expected) in [
        (&["missing.parquet"][..], "o.plinth", "plinth: missing.parquet: no such file or directory"),
        (&["empty"], "o.plinth", "plinth: nothing to import in empty"),
        (&["*.pq"], "o.plinth", "plinth: *.pq: the pattern matches no file"),
        (&["data.xlsx"], "o.plinth", "plinth: data.xlsx: can't import .xlsx files; known: .parquet"),
        (&["text.parquet"], "o.plinth", "plinth: text.parquet: not a readable Parquet file"),
        (&["cut.parquet"], "o.plinth", "plinth: cut.parquet: not a readable Parquet file"),
        (
            &["a.parquet", "b.parquet"],
            "o.plinth",
            "plinth: column \"id\" is Int64 in a.parquet but Utf8View in b.parquet",
        ),
        (&["a.parquet"], "there.plinth", "plinth: there.plinth: already exists; give --replace to replace it"),
        (&["a.parquet"], "nowhere/o.plinth", "plinth: nowhere: no such directory"),
        (&["a.parquet"], "o.parquet", "plinth: o.parquet: the output's name must end in .plinth"),
    ] {
        let args: Vec<&str> = ["import"].into_iter().chain(inputs.iter().copied()).chain(["--to", to]).collect();
        plinth(&dir, &args).fails(1, expected);
        assert_eq!(dir.entries(), before, "{inputs:?}");
    }
    assert_eq!(std::fs::read_to_string(dir.path("there.plinth")).unwrap(), "mine");
}

#[test]
fn bad_usage_exits_with_two() {
    let dir = Dir::new();
    for args in [
        &["import", "a.parquet"][..],
        &["import", "--to", "a.plinth"],
        &["import", "a.parquet", "--to", "b.plinth", "--fast", "--compact"],
        &["sql", "--memory", "lots", "-c", "SELECT 1"],
        &["sql", "--threads", "0", "-c", "SELECT 1"],
        &["sql", "--repeat", "0", "-c", "SELECT 1"],
        &["sql", "--format", "xml", "-c", "SELECT 1"],
        &["frobnicate"],
        &["inspect"],
        &[],
    ] {
        let run = plinth(&dir, args);
        assert_eq!(run.code, Some(2), "{args:?}: {}", run.stderr);
        assert!(run.stdout.is_empty() && !run.stderr.is_empty());
    }
    plinth(&dir, &["--version"]).ok();
    plinth(&dir, &["import", "--help"]).ok();
}

#[test]
fn damaged_plinth_files_are_refused_on_one_line() {
    let dir = Dir::new();
    write_parquet(&dir.path("a.parquet"), &people(500), 500);
    plinth(&dir, &["import", "a.parquet", "--to", "a.plinth", "-q"]).ok();
    let whole = std::fs::read(dir.path("a.plinth")).unwrap();
    let half = whole.len() / 2;
    for (name, bytes) in [
        ("empty.plinth", Vec::new()),
        ("half.plinth", whole[..half].to_vec()),
        ("short.plinth", whole[..whole.len() - 1].to_vec()),
        ("head.plinth", whole[1..].to_vec()),
        ("other.plinth", b"not a Plinth file at all, but long enough to hold a footer ".repeat(10)),
    ] {
        std::fs::write(dir.path(name), bytes).unwrap();
        let select = format!("SELECT * FROM '{name}'");
        for args in [&["inspect", name][..], &["verify", name], &["sql", "-c", &select]] {
            let run = plinth(&dir, args);
            run.fails(1, "plinth: ");
            assert!(run.stderr.contains(name), "{}", run.stderr);
        }
    }
    // A byte in the middle of a block: found by whoever reads it.
    let mut flipped = whole.clone();
    for at in (64..half).step_by(half / 7) {
        flipped[at] ^= 0x20;
    }
    std::fs::write(dir.path("flipped.plinth"), flipped).unwrap();
    let run = plinth(&dir, &["verify", "flipped.plinth"]);
    run.fails(1, "plinth: ");
    assert!(run.stderr.contains("flipped.plinth"), "{}", run.stderr);
    for args in [&["inspect", "missing.plinth"][..], &["verify", "missing.plinth"]] {
        assert!(plinth(&dir, args).fails(1, "plinth: ").stderr.contains("missing.plinth"));
    }
    plinth(&dir, &["sql", "-c", "SELECT * FROM 'missing.plinth'"]).fails(1, "plinth: ");
}

#[test]
fn a_full_disk_is_one_line_and_leaves_nothing() {
    let dir = Dir::new();
    big_parquet(&dir.path("big.parquet"), 400_000);
    let disk = dir.path("disk");
    std::fs::create_dir(&disk).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"])
        .arg(&disk)
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !mounted {
        eprintln!("SKIPPED: a_full_disk_is_one_line_and_leaves_nothing: mounting a small tmpfs is not allowed here");
        return;
    }
    let run = plinth(&dir, &["import", "big.parquet", "--to", "disk/big.plinth"]);
    let copied = plinth(&dir, &["sql", "--db", "disk", "-c", "CREATE TABLE t AS SELECT * FROM 'big.parquet'"]);
    let left: Vec<_> = std::fs::read_dir(&disk).unwrap().map(|e| e.unwrap().file_name()).collect();
    let unmounted = std::process::Command::new("umount").arg(&disk).status().unwrap();
    assert!(unmounted.success());
    for run in [run, copied] {
        run.fails(1, "plinth: ");
        assert!(run.stderr.contains("No space left"), "{}", run.stderr);
    }
    assert!(left.is_empty(), "{left:?}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_leaves_nothing() {
    let dir = Dir::new();
    // Large enough to be under way for a while, even optimised.
    big_parquet(&dir.path("big.parquet"), 3_000_000);
    let before = dir.entries();
    for args in [
        &["import", "big.parquet", "--to", "big.plinth"][..],
        &["sql", "--db", ".", "-c", "CREATE TABLE big2 AS SELECT * FROM 'big.parquet'"],
        &["sql", "-c", "COPY (SELECT * FROM 'big.parquet') TO 'big3.plinth'"],
    ] {
        let child = common::command(&dir, args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        // The signal comes as soon as there is something to leave behind.
        let started = Instant::now();
        while dir.entries() == before && started.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(2));
        }
        assert_ne!(dir.entries(), before, "{args:?}: nothing was begun");
        let id = child.id().to_string();
        assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        let run = Run::from(child.wait_with_output().unwrap());
        assert_eq!((run.code, run.stderr.as_str()), (Some(130), "plinth: interrupted\n"), "{args:?}");
        assert_eq!(dir.entries(), before, "{args:?}");
    }
}

#[test]
fn replace_replaces_and_neither_threads_nor_memory_change_the_bytes() {
    let dir = Dir::new();
    write_parquet(&dir.path("a.parquet"), &people(3_000), 700);
    let mut files = Vec::new();
    for (threads, memory) in [("1", "64MB"), ("2", "64MB"), ("8", "64MB"), ("2", "1MiB")] {
        let args =
            ["import", "a.parquet", "--to", "a.plinth", "-q", "--replace", "--threads", threads, "--memory", memory];
        assert_eq!(plinth(&dir, &args).ok().stderr, "");
        files.push(std::fs::read(dir.path("a.plinth")).unwrap());
    }
    assert!(files.windows(2).all(|pair| pair[0] == pair[1]));
    for effort in ["--fast", "--compact"] {
        plinth(&dir, &["import", "a.parquet", "--to", "b.plinth", "-q", "--replace", effort]).ok();
        plinth(&dir, &["verify", "b.plinth"]).ok();
    }
}

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
    let run = common::command(&dir, &["sql", "--format", "parquet", "-c", sql]).output().unwrap();
    assert!(run.status.success() && run.stdout.starts_with(b"PAR1") && run.stdout.ends_with(b"PAR1"));
    let args = ["sql", "-c", "SELECT 1 AS a; SELECT 2 AS a", "-o", "two.parquet"];
    plinth(&dir, &args).fails(1, "plinth: a Parquet file holds one result");
    // The name gives the format, and a failure leaves what was there.
    let args = ["sql", "-c", "SELECT 1 AS a; SELECT 2 AS b", "-o", "d.csv"];
    assert_eq!(plinth(&dir, &args).ok().stdout, "");
    assert_eq!(std::fs::read_to_string(dir.path("d.csv")).unwrap(), "a\n1\nb\n2\n");
    plinth(&dir, &["sql", "-c", "SELECT 3 AS a; SELECT 1 / 0", "-o", "d.csv"]).fails(1, "plinth: division by zero");
    assert_eq!(std::fs::read_to_string(dir.path("d.csv")).unwrap(), "a\n1\nb\n2\n");
    plinth(&dir, &["sql", "-c", "SELECT 4 AS a", "-o", "d.csv", "--format", "json"]).ok();
    assert_eq!(std::fs::read_to_string(dir.path("d.csv")).unwrap(), "{\"a\":4}\n");
    plinth(&dir, &["sql", "-c", "SELECT 1", "-o", "no/d.csv"]).fails(1, "plinth: no/d.csv: ");
    #[cfg(unix)]
    {
        // A link stays a link, and a device a device.
        std::os::unix::fs::symlink("d.csv", dir.path("link.csv")).unwrap();
        plinth(&dir, &["sql", "-c", "SELECT 5 AS a", "-o", "link.csv"]).ok();
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
    let run = common::with_input(&dir, &["sql"], "SELECT 1 AS a; SELECT 2 AS b -- the end");
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
    let seconds = timings["seconds"].as_array().unwrap();
    assert!(seconds.len() == 4 && seconds.iter().all(|s| s.as_f64().unwrap() > 0.0));
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
    assert_eq!(last("CREATE TABLE t AS SELECT id, city FROM hits WHERE id < 10"), "10");
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
    sql("CREATE TABLE u AS SELECT a.id, b.id FROM t a JOIN t b ON a.id = b.id").fails(1, "plinth: ");
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
    plinth(&dir, &["sql", "--db", "nope", "-c", "SELECT 1"]).fails(1, "plinth: --db nope: ");

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
    assert!(run.stdout.ends_with("s\n3\n"), "{}", run.stdout);
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
fn a_reader_that_goes_away_is_no_error() {
    let dir = Dir::new();
    for format in ["csv", "json", "table"] {
        let args = ["sql", "--format", format, "-c", "SELECT value, value AS b FROM range(0, 3000000)"];
        let mut child = common::command(&dir, &args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let run = Run::from(child.wait_with_output().unwrap());
        let stderr = run.stderr.lines().filter(|line| !line.starts_with("only the first")).count();
        assert_eq!((run.code, stderr), (Some(0), 0), "{format}: {}", run.stderr);
    }
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
        ("SELECT max(s) FROM (SELECT sum(value) OVER () AS s FROM range(0, 3000000))", "window"),
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

#[test]
fn the_demo_compares_the_users_files() {
    let dir = Dir::new();
    write_parquet(&dir.path("people.parquet"), &people(2_000), 500);
    let run = plinth(&dir, &["demo", "people.parquet", "--dir", "out"]).ok();
    assert!(Path::new(&dir.path("out/plinth/people.plinth")).is_file());
    for part in ["people: count", "people: top 10 city", "geometric mean", "Next:", "all are equal"] {
        assert!(run.stdout.contains(part), "{part} in {}", run.stdout);
    }
    assert!(run.stdout.lines().all(|line| line.chars().count() <= 120), "{}", run.stdout);
}

#[test]
fn a_folder_of_files_is_a_table_that_can_be_compacted() {
    let dir = Dir::new();
    std::fs::create_dir_all(dir.path("w/t")).unwrap();
    write_parquet(&dir.path("p.parquet"), &people(1_000), 300);
    for i in 1..=3 {
        plinth(&dir, &["import", "p.parquet", "--to", &format!("w/t/00000{i}.plinth"), "-q"]).ok();
    }
    // A session sees what comes into the folder, whatever its columns.
    let sql = "SELECT count(*), sum(id) FROM t; \
               COPY (SELECT 5000 AS id, 'new' AS more) TO 'w/t/000004.plinth'; \
               SELECT count(*), count(more), max(id) FROM t";
    let run = plinth(&dir, &["sql", "--db", "w", "--format", "csv", "-c", sql]).ok();
    assert!(run.stdout.contains("3000,1498500\n") && run.stdout.ends_with("3001,1,5000\n"), "{}", run.stdout);

    let answers = || {
        let sql = "SELECT id, city, more FROM t WHERE id < 3 OR id = 5000 ORDER BY id, city; SELECT sum(id), count(city) FROM t";
        plinth(&dir, &["sql", "--db", "w", "--format", "csv", "-c", sql]).ok().stdout
    };
    let names = || {
        let names = std::fs::read_dir(dir.path("w/t")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        names
    };
    let before = answers();
    // As a killed compaction leaves it: the new file is in place, the old ones are not removed.
    std::fs::write(
        dir.path("w/t/.plinth-compact"),
        "plinth compaction 2\n000001-000002.plinth\n000001.plinth\n000002.plinth\nchecksum 7053901794b1e7e3\n",
    )
    .unwrap();
    plinth(
        &dir,
        &[
            "sql",
            "-c",
            "COPY (SELECT * FROM 'p.parquet' UNION ALL SELECT * FROM 'p.parquet') TO 'w/t/000001-000002.plinth'",
        ],
    )
    .ok();
    assert_eq!(answers(), before);
    for path in ["w/t", "w/t/*.plinth", "w/*/0*"] {
        let run = plinth(&dir, &["sql", "--format", "csv", "-c", &format!("SELECT count(*) FROM '{path}'")]).ok();
        assert!(run.stdout.ends_with("3001\n"), "{path}: {}", run.stdout);
    }

    let run = plinth(&dir, &["compact", "w/t", "--threads", "2"]).ok();
    assert!(
        run.stderr.starts_with("w/t: 3 files -> 1 in ") && run.stderr.contains("; 3,001 rows rewritten, "),
        "{}",
        run.stderr
    );
    assert_eq!((run.stderr.lines().count(), run.stdout.as_str()), (1, ""));
    assert_eq!(names(), ["000001-000004.plinth"]);
    assert_eq!(answers(), before);
    let run = plinth(&dir, &["compact", "w/t", "--all"]).ok();
    assert_eq!(run.stderr, "w/t: 1 file, nothing to compact\n");
    assert_eq!(plinth(&dir, &["compact", "w/t", "-q", "--target-size", "1MiB"]).ok().stderr, "");
    plinth(&dir, &["compact", "w"]).fails(1, "plinth: w: no file in this folder ends in .plinth");
    plinth(&dir, &["compact", "none"]).fails(1, "plinth: none: no such folder");
    assert_eq!(plinth(&dir, &["compact", "w", "--all", "--target-size", "1MiB"]).code, Some(2));
}
