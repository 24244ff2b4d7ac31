//! Foreign files in and out, folders of files, and what happens when an import dies.

use std::fmt::Write as _;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{Dir, big_parquet, command, people, plinth, with_input, write_parquet};

/// The answer to a query, without its header.
fn ask(dir: &Dir, sql: &str) -> String {
    let run = plinth(dir, &["sql", "--format", "csv", "-c", sql]).ok();
    run.stdout.split_once('\n').map(|(_, rows)| rows.trim_end().to_owned()).unwrap_or_default()
}

fn events(rows: std::ops::Range<u32>) -> String {
    let mut csv = String::from("id,at,name,x\n");
    for i in rows {
        let name = ["", "\"\"", "\"a, b\"", "plain", "\"line\nbreak\""][i as usize % 5];
        writeln!(csv, "{i},2024-01-{:02}T00:00:{:02}Z,{name},{}", i % 28 + 1, i % 60, f64::from(i) / 8.0).unwrap();
    }
    csv
}

#[test]
fn every_format_and_compression_comes_back_as_it_went() {
    let dir = Dir::new();
    std::fs::write(dir.path("e.csv"), events(0..3_000)).unwrap();
    plinth(&dir, &["import", "e.csv", "--to", "e.plinth", "-q"]).ok();
    let all =
        "SELECT count(*), count(name), sum(id), sum(x), min(at), max(at), count(distinct name), sum(length(name)) FROM";
    let expected = ask(&dir, &format!("{all} 'e.plinth'"));
    assert!(expected.starts_with("3000,2400,4498500,562312.5,2024-01-01T00:00:00Z,"), "{expected}");
    for name in ["e.parquet", "e.tsv", "e.ndjson", "e.csv.gz", "e.csv.zst", "e.ndjson.lz4", "e.tsv.bz2"] {
        plinth(&dir, &["export", "e.plinth", "--to", name, "-q"]).ok();
        plinth(&dir, &["import", name, "--to", "back.plinth", "--replace", "-q"]).ok();
        assert_eq!(ask(&dir, &format!("{all} 'back.plinth'")), expected, "{name}");
        let differ = "SELECT count(*) FROM (SELECT * FROM 'e.plinth' EXCEPT SELECT * FROM 'back.plinth')";
        assert_eq!(ask(&dir, differ), "0", "{name}");
    }
    // One foreign format to another, columns chosen, standard output and input.
    plinth(&dir, &["convert", "e.csv.gz", "--to", "c.ndjson", "--columns", "x,id", "-q"]).ok();
    let lines = std::fs::read_to_string(dir.path("c.ndjson")).unwrap();
    assert_eq!(lines.lines().nth(3), Some("{\"x\":0.375,\"id\":3}"));
    let csv = plinth(&dir, &["export", "e.plinth", "--to", "-", "--to-format", "csv", "-q"]).ok().stdout;
    let run = with_input(&dir, &["import", "-", "--format", "csv", "--to", "in.plinth"], &csv).ok();
    assert!(run.stderr.starts_with("in.plinth: 3,000 rows, 4 columns from 1 file in "), "{}", run.stderr);
    assert_eq!(ask(&dir, &format!("{all} 'in.plinth'")), expected);
}

#[test]
fn export_says_what_it_cannot_do() {
    let dir = Dir::new();
    write_parquet(&dir.path("p.parquet"), &people(100), 100);
    plinth(&dir, &["import", "p.parquet", "--to", "p.plinth", "-q"]).ok();
    for (args, expected) in [
        (&["p.plinth", "--to", "p.csv"][..], "plinth: column \"tags\": "),
        (&["p.plinth", "--to", "p.parquet"], "plinth: p.parquet: already exists"),
        (&["p.plinth", "--to", "p.xls"], "plinth: p.xls: "),
        (
            &["p.plinth", "--to", "x.csv", "--columns", "id,nope"],
            "plinth: --columns: no column \"nope\"; there are id, city",
        ),
        (&["p.plinth", "p.parquet", "--to", "x.csv"], "plinth: p.plinth: Plinth files and others"),
        (&["p.plinth", "--to", "-"], "plinth: give --to-format"),
        (&["p.plinth", "--to", "x.csv", "--columns", "id,id"], "plinth: --columns: \"id\" occurs twice"),
        (&["none.plinth", "--to", "x.csv"], "plinth: none.plinth: "),
        (&["p.plinth", "--to", "no/such/x.ndjson"], "plinth: no/such/x.ndjson: "),
    ] {
        let args: Vec<&str> = ["export"].into_iter().chain(args.iter().copied()).collect();
        plinth(&dir, &args).fails(1, expected);
    }
    assert_eq!(dir.entries(), ["p.parquet", "p.plinth"]);
    plinth(&dir, &["export", "p.plinth", "--to", "p.csv", "--columns", "id,amount,day", "-q"]).ok();
    let csv = std::fs::read_to_string(dir.path("p.csv")).unwrap();
    assert_eq!(csv.lines().nth(2), Some("1,0.37,2022-01-08"));
}

#[test]
fn bad_records_are_errors_or_are_kept_apart() {
    let dir = Dir::new();
    let mut csv = events(0..50);
    csv.push_str("50,yesterday,n,1\n51,2024-01-01T00:00:00Z,n\n52,2024-01-01T00:00:00Z,n,2.5\n");
    std::fs::write(dir.path("e.csv"), &csv).unwrap();
    let schema = "id BIGINT, at TIMESTAMP WITH TIME ZONE, name TEXT, x DOUBLE";
    let import = ["import", "e.csv", "--to", "e.plinth", "--schema", schema];
    let run = plinth(&dir, &import);
    run.fails(1, "plinth: e.csv: line 62");
    assert!(run.stderr.contains("yesterday"), "{}", run.stderr);
    assert_eq!(dir.entries(), ["e.csv"]);

    let collect: Vec<&str> = import.into_iter().chain(["--rejects", "bad.ndjson"]).collect();
    let run = plinth(&dir, &collect).ok();
    assert!(run.stderr.contains("2 bad records left out"), "{}", run.stderr);
    assert_eq!(ask(&dir, "SELECT count(*), max(id) FROM 'e.plinth'"), "51,52");
    let rejects = std::fs::read_to_string(dir.path("bad.ndjson")).unwrap();
    let bad: Vec<serde_json::Value> = rejects.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((bad.len(), &bad[0]["file"], &bad[0]["column"]), (2, &"e.csv".into(), &"at".into()));
    assert!(bad[1]["raw"].as_str().unwrap().starts_with("51,"), "{rejects}");

    let few: Vec<&str> = collect.iter().copied().chain(["--max-rejects", "1", "--replace"]).collect();
    plinth(&dir, &few).fails(1, "plinth: more than 1 bad records");
    assert_eq!(ask(&dir, "SELECT count(*) FROM 'e.plinth'"), "51", "the old table is whole");

    for (schema, expected) in [
        ("id BIGINT", "plinth: e.csv: "),
        ("id BIGINT, nope TEXT", "plinth: "),
        ("id NONSENSE", "plinth: --schema: "),
        ("id", "plinth: --schema: "),
    ] {
        plinth(&dir, &["import", "e.csv", "--to", "x.plinth", "--schema", schema]).fails(1, expected);
    }
    std::fs::write(dir.path("noise.csv"), [0x80u8, 0xff, 0, 1, 2, 0xfe, b'\n'].repeat(1_000)).unwrap();
    std::fs::write(dir.path("half.ndjson"), "{\"a\":1}\n{\"a\":").unwrap();
    for name in ["noise.csv", "half.ndjson"] {
        let run = plinth(&dir, &["import", name, "--to", "x.plinth"]);
        assert!(run.fails(1, "plinth: ").stderr.contains(name), "{}", run.stderr);
    }
    assert!(!dir.path("x.plinth").exists());
    let twice = ["import", "e.csv", "--to", "x.plinth", "--rejects", "e.csv"];
    plinth(&dir, &twice).fails(1, "plinth: e.csv: is an input");
    assert_eq!(std::fs::read_to_string(dir.path("e.csv")).unwrap(), csv);
}

#[test]
fn a_row_unlike_the_sample_starts_the_import_again() {
    let dir = Dir::new();
    let mut json = String::new();
    for i in 0..30_000 {
        writeln!(json, "{{\"id\":{i}}}").unwrap();
    }
    json.push_str("{\"id\":30000.5,\"late\":\"x\"}\n");
    std::fs::write(dir.path("e.ndjson"), &json).unwrap();
    plinth(&dir, &["import", "e.ndjson", "--to", "e.plinth", "-q"]).ok();
    assert_eq!(ask(&dir, "SELECT count(*), max(id), count(late) FROM 'e.plinth'"), "30001,30000.5,1");
}

#[test]
fn a_folder_grows_by_files_whose_columns_may_differ() {
    let dir = Dir::new();
    std::fs::write(dir.path("1.csv"), "id,name\n1,a\n2,b\n").unwrap();
    std::fs::write(dir.path("2.ndjson"), "{\"id\":3,\"extra\":{\"k\":1}}\n").unwrap();
    std::fs::write(dir.path("3.csv"), "id,name\nthree,c\n").unwrap();
    plinth(&dir, &["import", "1.csv", "--append", "db/events", "--schema", "id INT, name TEXT", "-q"]).ok();
    let second = std::fs::read_to_string(dir.path("2.ndjson")).unwrap();
    with_input(&dir, &["import", "-", "--append", "db/events", "-q"], &second).ok();
    with_input(&dir, &["import", "-", "--append", "db/fresh", "-q"], &second).ok();
    let db = |sql: &str| plinth(&dir, &["sql", "--db", "db", "--format", "csv", "-c", sql]);
    assert_eq!(db("SELECT * FROM events").ok().stdout, "id,name,extra\n1,a,\n2,b,\n3,,{k: 1}\n");
    assert_eq!(db("INSERT INTO events (id, name) VALUES (4, 'd'), (5, 'e')").ok().stdout, "");
    assert_eq!(db("SELECT sum(id), count(name), count(extra) FROM events").ok().stdout.lines().last(), Some("15,4,1"));

    // What can't be united is refused, and nothing is left of it.
    let before = std::fs::read_dir(dir.path("db/events")).unwrap().count();
    let run = plinth(&dir, &["import", "3.csv", "--append", "db/events"]);
    assert!(run.fails(1, "plinth: ").stderr.contains("\"id\""), "{}", run.stderr);
    plinth(&dir, &["import", "1.csv", "--append", "1.csv"]).fails(1, "plinth: 1.csv: is a file, not a folder");
    assert_eq!(std::fs::read_dir(dir.path("db/events")).unwrap().count(), before);

    plinth(&dir, &["compact", "db/events", "--all", "-q"]).ok();
    let files: Vec<_> = std::fs::read_dir(dir.path("db/events")).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(files.iter().filter(|path| path.extension().is_some_and(|e| e == "plinth")).count(), 1, "{files:?}");
    assert_eq!(db("SELECT sum(id), count(name), count(extra) FROM events").ok().stdout.lines().last(), Some("15,4,1"));
    plinth(&dir, &["export", "db/events", "--to", "all.ndjson", "-q"]).ok();
    let exported = std::fs::read_to_string(dir.path("all.ndjson")).unwrap();
    assert_eq!(exported.lines().count(), 5);
    assert_eq!(exported.lines().nth(2), Some("{\"id\":3,\"name\":null,\"extra\":{\"k\":1}}"));
    // A single file is no table to insert into.
    plinth(&dir, &["import", "1.csv", "--to", "db/one.plinth", "-q"]).ok();
    db("INSERT INTO one VALUES (1, 'x')").fails(1, "plinth: INSERT INTO one: ");
}

#[test]
fn appends_at_once_lose_nothing() {
    let dir = Dir::new();
    for i in 0..6 {
        std::fs::write(dir.path(&format!("{i}.csv")), events(i * 1_000..(i + 1) * 1_000)).unwrap();
    }
    let append = |i: usize| {
        let input = format!("{i}.csv");
        let mut child = command(&dir, &["import", &input, "--append", "events", "-q"]);
        child.stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = (0..6).map(append).collect();
    for child in children {
        crate::common::Run::from(child.wait_with_output().unwrap()).ok();
    }
    assert_eq!(ask(&dir, "SELECT count(*), count(distinct id), sum(id) FROM 'events/'"), "6000,6000,17997000");
}

#[test]
fn sorted_imports_are_in_order_whatever_the_memory() {
    let dir = Dir::new();
    big_parquet(&dir.path("big.parquet"), 400_000);
    plinth(&dir, &["import", "big.parquet", "--to", "plain.plinth", "-q"]).ok();
    let mut answers = Vec::new();
    for (memory, to) in [("64MB", "a.plinth"), ("2GB", "b.plinth")] {
        plinth(&dir, &["import", "big.parquet", "--to", to, "--sort-by", "n:desc,t", "--memory", memory, "-q"]).ok();
        // Neighbours, as they lie in the file.
        let disorder = format!(
            "SET datafusion.execution.target_partitions = 1; SELECT count(*) FROM (SELECT n, lag(n) OVER () AS before \
             FROM '{to}') WHERE n > before"
        );
        assert_eq!(ask(&dir, &disorder).lines().last(), Some("0"), "{to}");
        answers.push(ask(&dir, &format!("SELECT count(*), min(t), max(t), sum(n % 1000003) FROM '{to}'")));
    }
    let expected = ask(&dir, "SELECT count(*), min(t), max(t), sum(n % 1000003) FROM 'plain.plinth'");
    assert_eq!(answers, [expected.clone(), expected]);
    let run = plinth(&dir, &["import", "big.parquet", "--to", "c.plinth", "--sort-by", "nope"]);
    run.fails(1, "plinth: no column \"nope\" to sort by; there are n, t");
    assert!(!dir.path("c.plinth").exists());
}

#[cfg(unix)]
#[test]
fn a_killed_import_leaves_the_old_table_whole_and_its_remains_go_next_time() {
    let dir = Dir::new();
    std::fs::write(dir.path("old.csv"), "id\n1\n2\n").unwrap();
    plinth(&dir, &["import", "old.csv", "--to", "t.plinth", "-q"]).ok();
    plinth(&dir, &["import", "old.csv", "--append", "folder", "-q"]).ok();
    for target in [&["--to", "t.plinth", "--replace"][..], &["--append", "folder"]] {
        let folder = if target[0] == "--to" { dir.path("") } else { dir.path("folder") };
        let temporary = || {
            let entries = std::fs::read_dir(&folder).unwrap();
            entries.filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().ends_with("-tmp")).count()
        };
        let args: Vec<&str> =
            ["import", "-", "--format", "csv", "--schema", "id BIGINT"].iter().chain(target).copied().collect();
        let mut child = command(&dir, &args).stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let rows: String = (0..100_000).fold(String::from("id\n"), |rows, i| rows + &format!("{i}\n"));
        input.write_all(rows.as_bytes()).unwrap();
        let started = Instant::now();
        while temporary() == 0 && started.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(temporary(), 1, "{target:?}");
        for table in ["t.plinth", "folder/"] {
            assert_eq!(ask(&dir, &format!("SELECT count(*), sum(id) FROM '{table}'")), "2,3", "{target:?}");
        }
        // A writer that lives keeps its file, what a dead one left goes.
        let next: Vec<&str> = ["import", "old.csv", "-q"].iter().chain(target).copied().collect();
        plinth(&dir, &next).ok();
        assert_eq!(temporary(), 0, "{target:?}");
        if target[0] == "--append" {
            assert_eq!(ask(&dir, "SELECT count(*), sum(id) FROM 'folder/'"), "4,6");
        }
    }
}

#[test]
fn a_full_disk_while_sorting_is_one_line_and_leaves_nothing() {
    let dir = Dir::new();
    big_parquet(&dir.path("big.parquet"), 400_000);
    let disk = dir.path("disk");
    std::fs::create_dir(&disk).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"])
        .arg(&disk)
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !mounted {
        eprintln!("SKIPPED: a_full_disk_while_sorting: mounting a small tmpfs is not allowed here");
        return;
    }
    let run = plinth(&dir, &["import", "big.parquet", "--to", "disk/s.plinth", "--sort-by", "n", "--memory", "64MB"]);
    let left: Vec<_> = std::fs::read_dir(&disk).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(std::process::Command::new("umount").arg(&disk).status().unwrap().success());
    assert!(run.fails(1, "plinth: ").stderr.contains("No space left"), "{}", run.stderr);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn rows_of_json_are_where_the_root_says_and_nothing_is_passed_over_in_silence() {
    let dir = Dir::new();
    let mut document = String::from("{\"made\": [1, {\"by\": \"hand\"}], \"data\": {\"pairs\": [");
    for i in 0..5_000 {
        let separator = if i == 0 { "" } else { "," };
        write!(document, "{separator}\n  {{\"x\": {i}.5, \"name\": \"n{}\"}}", i % 7).unwrap();
    }
    document += "]}, \"end\": null}\n";
    std::fs::write(dir.path("d.json"), &document).unwrap();
    for root in ["data.pairs", "/data/pairs", "$.data.pairs[*]"] {
        plinth(&dir, &["import", "d.json", "--root", root, "--to", "d.plinth", "--replace", "-q"]).ok();
        assert_eq!(ask(&dir, "SELECT count(*), sum(x), count(distinct name) FROM 'd.plinth'"), "5000,12500000.0,7");
    }
    let run = plinth(&dir, &["import", "d.json", "--root", "data.none", "--to", "none.plinth", "-q"]);
    assert!(run.fails(1, "plinth: d.json: ").stderr.contains("--root leads to nothing"), "{}", run.stderr);

    // Keys beyond the schema: an error, a note, or a column of their own.
    let rows = "{\"a\":1}\n{\"a\":2,\"b\":[true]}\n{\"a\":\"three\",\"b\":{}}\n";
    std::fs::write(dir.path("r.ndjson"), rows).unwrap();
    let import = |more: &[&str]| {
        let all = [&["import", "r.ndjson", "--schema", "a BIGINT", "--to", "r.plinth", "--replace"], more].concat();
        plinth(&dir, &all)
    };
    assert!(import(&[]).fails(1, "plinth: ").stderr.contains("\"b\""));
    let run = import(&["--unknown", "report", "--on-error", "null"]).ok();
    assert!(run.stderr.contains("note: keys without a column were passed over: \"b\" 2 times"), "{}", run.stderr);
    assert_eq!(ask(&dir, "SELECT count(*), sum(a) FROM 'r.plinth'"), "3,3");
    import(&["--unknown", "extra", "--on-error", "skip", "--rejects", "bad.ndjson"]).ok();
    assert_eq!(ask(&dir, "SELECT a, _extra FROM 'r.plinth' ORDER BY a"), "1,\n2,\"{\"\"b\"\":[true]}\"");
    assert!(std::fs::read_to_string(dir.path("bad.ndjson")).unwrap().contains("three"));
    assert!(import(&["--on-error", "skip"]).fails(1, "plinth: on-error is skip").stderr.contains("rejects"));
    std::fs::write(dir.path("long.ndjson"), format!("{{\"a\": \"{}\"}}\n", "x".repeat(3 << 20))).unwrap();
    let import = |most: &str| plinth(&dir, &["import", "long.ndjson", "--max-record", most, "--to", "l.plinth", "-q"]);
    import("2MiB").fails(1, "plinth: long.ndjson: ");
    import("4MiB").ok();
}

#[test]
fn a_folder_becomes_a_table_that_is_written_to_inspected_and_verified() {
    let dir = Dir::new();
    std::fs::create_dir(dir.path("t")).unwrap();
    for part in ["a", "b"] {
        let first = if part == "a" { 0 } else { 100 };
        let sql = format!(
            "COPY (SELECT value + {first} AS id, 'n' || value AS name FROM range(0, 100)) TO 't/{part}.plinth'"
        );
        plinth(&dir, &["sql", "-c", &sql]).ok();
    }
    plinth(&dir, &["table", "init", "t", "--key", "name"])
        .fails(1, "plinth: a row with the key \"n0\" is there already");
    plinth(&dir, &["table", "init", "nowhere"]).fails(1, "plinth: nowhere: no such folder");
    assert!(dir.path("t").join("a.plinth").exists() && !dir.path("t").join("_manifest").exists());
    let run = plinth(&dir, &["table", "init", "t", "--key", "id"]).ok();
    assert!(run.stderr.starts_with("t: 200 rows, key (id), in "), "{}", run.stderr);
    plinth(&dir, &["table", "init", "t"]).fails(1, "plinth: t: is a writable table already");
    let sql = |text: &str| plinth(&dir, &["sql", "--db", ".", "-c", text]).ok().stdout;
    assert_eq!(
        sql("DELETE FROM t WHERE id < 50; SELECT count(*), min(id), max(id) AS n FROM t"),
        "count(*),min(id),n\n150,50,199\n"
    );
    assert!(!dir.path("t").join("a.plinth").exists());

    std::fs::write(dir.path("more.csv"), "name,id\nx,1\ny,2\n").unwrap();
    let run = plinth(&dir, &["import", "more.csv", "--append", "t"]).ok();
    assert!(run.stderr.starts_with("t: 2 rows"), "{}", run.stderr);
    plinth(&dir, &["import", "more.csv", "--append", "t"]).fails(1, "plinth: a row with the key 1 is there already");
    std::fs::write(dir.path("other.csv"), "id,other\n7,1\n").unwrap();
    plinth(&dir, &["import", "other.csv", "--append", "t"]).fails(1, "plinth: t: the table has no column \"other\"");
    sql("UPDATE t SET name = 'z' WHERE id = 2");
    assert!(sql("SELECT id, name FROM t WHERE id < 3 ORDER BY id").ends_with("1,x\n2,z\n"));

    sql("CREATE INDEX ON t (name)");
    let text = plinth(&dir, &["inspect", "t"]).ok().stdout;
    for part in [
        "t: a writable table, key (id)",
        "t_name_idx  name     no",
        "152 rows: 1 in the log, the others in 2 segments",
        "_segment-",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let json = plinth(&dir, &["inspect", "t", "--json"]).ok().stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["rows"], &json["key"][0], &json["segments"][0]["deleted"]),
        (&152.into(), &"id".into(), &50.into())
    );
    let run = plinth(&dir, &["verify", "t"]).ok();
    assert!(run.stdout.starts_with("t: ok, 152 rows, "), "{}", run.stdout);
    plinth(&dir, &["verify", "--format", "t"]).fails(1, "plinth: t: --format looks at files");
    let run = plinth(&dir, &["export", "t", "--to", "t.csv", "--columns", "name,id"]).ok();
    assert!(run.stderr.starts_with("t.csv: 152 rows in "), "{}", run.stderr);
    let lines = std::fs::read_to_string(dir.path("t.csv")).unwrap();
    assert!(lines.starts_with("name,id\n") && lines.contains("\nz,2\n") && lines.lines().count() == 153, "{lines}");
    plinth(&dir, &["compact", "t"]).fails(1, "plinth: t: a writable table merges its files by itself");

    // A flipped byte is found.
    let segment = json["segments"][0]["file"].as_str().unwrap();
    let segment = dir.path(segment);
    let mut bytes = std::fs::read(&segment).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    plinth(&dir, &["verify", "t"]).fails(1, "plinth: ");
}
