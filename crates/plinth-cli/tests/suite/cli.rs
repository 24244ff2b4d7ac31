//! Commands: their arguments, output, exit codes and files.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{Dir, Run, big_parquet, people, plinth, write_parquet};

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
    let run = plinth(&dir, &["verify", "--format", "people.plinth"]).ok();
    assert_eq!(run.stdout, "people.plinth: as the format wants it\n");
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
        &["--replace", "-c", "SELECT 1"],
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
    // A byte in the middle of a block: found by any read of it.
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
        let child = crate::common::command(&dir, args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
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
fn a_reader_that_goes_away_is_no_error() {
    let dir = Dir::new();
    for format in ["csv", "json", "table"] {
        let args = ["sql", "--format", format, "-c", "SELECT value, value AS b FROM range(0, 3000000)"];
        let mut child =
            crate::common::command(&dir, &args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let run = Run::from(child.wait_with_output().unwrap());
        let stderr = run.stderr.lines().filter(|line| !line.starts_with("only the first")).count();
        assert_eq!((run.code, stderr), (Some(0), 0), "{format}: {}", run.stderr);
    }
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
