//! `plinth probe` from outside.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use plinth_probe::{DeviceProfile, Grade};

use crate::common::{Dir, Run, command, plinth};

#[test]
fn a_short_probe_prints_four_lines_first_and_leaves_only_what_was_asked_for() {
    let dir = Dir::new();
    std::fs::create_dir(dir.path("data")).unwrap();
    let out = ["--json", "p.json", "--csv", "p.csv", "--plot", "p.html"];
    let args: Vec<&str> = ["probe", "data", "--seconds", "1", "--size", "32MiB"].into_iter().chain(out).collect();
    let run = plinth(&dir, &args).ok();
    assert_eq!(run.stderr, "");
    let first: Vec<&str> = run.stdout.lines().take(5).collect();
    for (line, start) in first.iter().zip(["sequential read ", "sequential write ", "random read ", "random read "]) {
        assert!(line.starts_with(start) && line.contains(" IOPS ") && line.contains(" p99 "), "{line}");
    }
    assert_eq!(first[4], "");
    for part in
        ["data on ", ": grade ", "knee: ", "fdatasync", "checksum XXH3", "io_uring", "fio --name=cell ", "no time for "]
    {
        assert!(run.stdout.contains(part), "{part} in {}", run.stdout);
    }
    assert_eq!(dir.entries(), ["data", "p.csv", "p.html", "p.json"]);
    let names: Vec<_> = std::fs::read_dir(dir.path("data")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["plinth-device.toml"]);

    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(dir.path("p.json")).unwrap()).unwrap();
    let rows = json["rows"].as_array().unwrap();
    assert!(rows.len() >= 4 && json["left_out"].as_array().unwrap().len() + rows.len() == 144);
    for row in rows {
        let (iops, size) = (row["iops"].as_f64().unwrap(), row["size"].as_f64().unwrap());
        let off = row["bandwidth"].as_f64().unwrap() / (iops * size) - 1.0;
        let told = row["broken"].as_array().unwrap().iter().any(|law| law.as_str().unwrap().starts_with("bandwidth"));
        assert!(off.abs() < 0.02 || told || iops == 0.0, "{row}");
    }
    let csv = std::fs::read_to_string(dir.path("p.csv")).unwrap();
    assert_eq!(csv.lines().count(), rows.len() + 1);
    let html = std::fs::read_to_string(dir.path("p.html")).unwrap();
    assert!(html.starts_with("<!doctype html>") && html.contains("<svg") && !html.contains("<script"));
    assert!(!html.replace("http://www.w3.org/2000/svg", "").contains("http"), "nothing is fetched");

    let profile = DeviceProfile::read(dir.path("data/plinth-device.toml")).unwrap();
    assert!(profile.grade > Grade::A, "a second is too short for an A: {profile:?}");
    assert_eq!(json["trust"]["grade"], profile.grade.to_string());
    let lasting = &json["lasting"];
    let cell = |row: &serde_json::Value| ["order", "reads", "size", "depth"].map(|name| row[name].clone());
    let best = rows.iter().filter(|row| row["reads"] == 100);
    let best = best.max_by(|a, b| a["bandwidth"].as_f64().unwrap().total_cmp(&b["bandwidth"].as_f64().unwrap()));
    assert_eq!(cell(lasting), cell(best.unwrap()));
    let lasting = lasting["bandwidth"].as_f64().unwrap();
    assert!((lasting / profile.read_bandwidth.to_string().parse::<f64>().unwrap() - 1.0).abs() < 1e-6);
    assert!(profile.decode.iter().any(|(encoding, speed)| encoding == "bit-packed" && *speed > 0));
}

#[test]
fn queries_read_the_profile_of_their_folder_or_the_one_they_are_told() {
    let dir = Dir::new();
    std::fs::create_dir(dir.path("data")).unwrap();
    plinth(&dir, &["sql", "--db", "data", "-c", "create table t as select 1 as a"]).ok();
    let ask = |args: &[&str]| plinth(&dir, &[&["sql", "--db", "data", "-c", "select a from t"], args].concat());
    let device = DeviceProfile { read_bandwidth: 1, request_bytes: 1 << 20, depth: 4, ..DeviceProfile::default() };
    device.write(dir.path("data/plinth-device.toml")).unwrap();
    assert_eq!(ask(&[]).ok().stderr, "");
    std::fs::write(dir.path("data/plinth-device.toml"), "version = 7").unwrap();
    let run = ask(&[]).ok();
    assert!(
        run.stdout.contains('1') && run.stderr.contains("data/plinth-device.toml: line 1: version 7"),
        "{}",
        run.stderr
    );
    ask(&["--device", "data/plinth-device.toml"]).fails(1, "plinth: data/plinth-device.toml: line 1: version 7");
    ask(&["--device", "none"]).fails(1, "plinth: none: ");
}

#[test]
fn every_engine_answers_or_says_why_not() {
    let dir = Dir::new();
    for engine in ["uring", "direct", "cached", "auto"] {
        let args =
            ["probe", ".", "--seconds", "1", "--size", "16MiB", "--engine", engine, "--json", "-", "--profile", "p"];
        let run = plinth(&dir, &args);
        if run.code == Some(0) {
            let json: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
            assert!(engine == "auto" || json["engine"] == engine, "{}", json["engine"]);
            assert!(engine != "cached" || json["trust"]["grade"] == "D", "{}", json["trust"]);
        } else {
            assert!(engine == "uring" || engine == "direct", "{engine}");
            run.fails(1, "plinth: .: cannot measure it as --engine says: ");
        }
    }
    assert_eq!(dir.entries(), ["p"]);
}

#[test]
fn fio_answers_where_it_is_installed() {
    let dir = Dir::new();
    let run = plinth(&dir, &["probe", ".", "--seconds", "1", "--size", "16MiB", "--engine", "fio", "--csv", "-"]);
    if std::process::Command::new("fio").arg("--version").output().is_err() {
        run.fails(1, "plinth: .: cannot measure it as --engine says: fio is not installed");
        eprintln!("skipped: fio is not installed");
        return;
    }
    let csv = run.ok().stdout;
    assert!(csv.lines().count() >= 5, "{csv}");
    assert!(csv.lines().skip(1).all(|line| line.contains(",fio ") && line.contains("fio --name=cell")), "{csv}");
    assert_eq!(dir.entries(), ["plinth-device.toml"]);
}

#[test]
fn bad_folders_and_arguments_are_one_line_and_leave_nothing() {
    let dir = Dir::new();
    std::fs::write(dir.path("file"), "x").unwrap();
    for (args, start) in [
        (&["none"][..], "plinth: none: no such folder"),
        (&["file"], "plinth: file: is a file, not a folder"),
        (&["/proc"], "plinth: /proc/plinth-device.toml: "),
        (&[".", "--size", "2MiB"], "plinth: --size: at least 16 MiB"),
        (&[".", "--size", "900TiB"], "plinth: .: cannot probe it: the probe's file of "),
        (&[".", "--json", "no/such/x.json"], "plinth: no/such/x.json: "),
        (&[".", "--json", "-", "--csv", "-"], "plinth: only one of "),
    ] {
        let args: Vec<&str> = ["probe", "--seconds", "1"].into_iter().chain(args.iter().copied()).collect();
        plinth(&dir, &args).fails(1, start);
    }
    for args in [
        &["probe"][..],
        &["probe", ".", "--engine", "spdk"],
        &["probe", ".", "--seconds", "0"],
        &["probe", ".", "--seconds", "5", "--full"],
    ] {
        assert_eq!(plinth(&dir, args).code, Some(2), "{args:?}");
    }
    assert_eq!(dir.entries(), ["file"]);
}

#[test]
fn a_small_device_is_not_filled() {
    let dir = Dir::new();
    let small = dir.path("small");
    std::fs::create_dir(&small).unwrap();
    let mount = |args: &[&str]| {
        let status = std::process::Command::new(args[0]).args(&args[1..]).arg(&small).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    if !mount(&["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs"]) {
        eprintln!("skipped: mounting a small file system needs root");
        return;
    }
    let refused = plinth(&dir, &["probe", "small", "--seconds", "1", "--size", "32MiB"]);
    let left = std::fs::read_dir(&small).unwrap().count();
    let fits = plinth(&dir, &["probe", "small", "--seconds", "1", "--size", "16MiB"]);
    let unmounted = mount(&["umount"]);
    refused.fails(1, "plinth: small: cannot probe it: the probe's file of 32 MiB would take more than half");
    assert_eq!(left, 0);
    assert!(fits.ok().stdout.contains("grade D"), "memory is no device");
    assert!(unmounted);
}

#[test]
fn an_interrupted_probe_leaves_nothing() {
    let dir = Dir::new();
    let folder = dir.path("d");
    std::fs::create_dir(&folder).unwrap();
    let mut child = command(&dir, &["probe", "d", "--seconds", "600", "--size", "16MiB"]);
    let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let filling = |folder: &Path| {
        let mut names = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        names.any(|name| name.starts_with(".plinth-probe."))
    };
    let started = Instant::now();
    while !filling(&folder) && started.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let status = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
    let run = Run::from(child.wait_with_output().unwrap());
    run.fails(130, "plinth: interrupted");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}
