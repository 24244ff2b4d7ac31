//! Every command, given every kind of thing that a path can lead to: an error or an answer, and soon.

use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::common::{Dir, command, people, plinth, with_input, write_parquet};

/// How long anything may take that does not hang, on a busy machine without optimisation.
const SOON: Duration = Duration::from_secs(120);

const KINDS: [(&str, Option<&str>); 11] = [
    ("pipe", Some("is a pipe")),
    ("pipe-link", Some("is a pipe")),
    ("null", Some("is a device")),
    ("zero", Some("is a device")),
    ("socket", Some("is a socket")),
    ("folder", None),
    ("empty", None),
    ("loop", None),
    ("locked", None),
    ("missing", None),
    ("odd\nname\u{1b}]0;pwned\u{7}", None),
];

/// What is done with a path, whose extension follows. `<` comes before what reads a file, `>` before what writes one, `/`
/// before what wants a folder.
const USES: [&str; 31] = [
    "<.plinth inspect @",
    "<.plinth inspect @ --json",
    "<.plinth verify @",
    "<.plinth verify good.plinth @",
    "<.plinth lookup @ id --equals 1",
    "<.plinth export @ --to out.csv --replace -q",
    "<.plinth sql -c SELECT*FROM'@'",
    "<.parquet sql -c SELECT*FROM'@'",
    "<.csv sql -c SELECT*FROM'@'",
    "<.json sql -c SELECT*FROM'@'",
    "<.csv sql -c SELECT*FROM(SELECT*FROM'@')",
    "<.csv sql -c CREATE|EXTERNAL|TABLE|e(a|INT)STORED|AS|CSV|LOCATION'@';SELECT*FROM|e",
    "<.parquet sql -c CREATE|EXTERNAL|TABLE|e|STORED|AS|PARQUET|LOCATION'@'",
    "<.sql sql -f @",
    "<.toml sql --device @ -c SELECT|1",
    " .csv sql -c SELECT*FROM|read_csv('@')",
    " .json sql -c SELECT*FROM|read_json('@')",
    " .csv import @ --to new.plinth --replace -q",
    " .parquet import @ --to new.plinth --replace -q",
    " .csv export @ --to out.ndjson --replace -q",
    ">.plinth import good.parquet --to @ --replace -q",
    ">.csv export flat.plinth --to @ --replace -q",
    ">.csv sql -c COPY(SELECT|1|AS|n)TO'@'",
    ">.plinth sql -c COPY(SELECT|1|AS|n)TO'@'",
    " .csv sql -o @ -c SELECT|1",
    " .json import good.csv --to new.plinth --replace -q --rejects @",
    "/ import good.parquet --append @ -q",
    "/ compact @ -q",
    "/ table init @ -q",
    "/ sql --db @ -c SHOW|TABLES",
    "/ probe @ --seconds 1 --size 64MiB --engine cached -q",
];

fn make(dir: &Dir, kind: &str, extension: &str) -> String {
    let name = format!("{kind}{extension}");
    let path = dir.path(&name);
    let fifo = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    match kind {
        "pipe" => fifo(&path),
        "pipe-link" => {
            let target = dir.path(&format!("target{extension}"));
            fifo(&target);
            symlink(target, &path).unwrap();
        }
        "null" => symlink("/dev/null", &path).unwrap(),
        "zero" => symlink("/dev/zero", &path).unwrap(),
        // It stays when its owner closes it.
        "socket" => drop(std::os::unix::net::UnixListener::bind(&path).unwrap()),
        "folder" => std::fs::create_dir(&path).unwrap(),
        "empty" => std::fs::write(&path, "").unwrap(),
        "loop" => symlink(&path, &path).unwrap(),
        "locked" => {
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o0)).unwrap();
        }
        _ => {}
    }
    name
}

/// Runs a command; None if it does not end.
fn run(mut command: Command) -> Option<(i32, Vec<u8>, String)> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let out = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        out.read_to_end(&mut bytes).map(|_| bytes)
    });
    let err = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        err.read_to_end(&mut bytes).map(|_| bytes)
    });
    let started = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if started.elapsed() > SOON => {
                child.kill().unwrap();
                child.wait().unwrap();
                return None;
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let (out, err) = (out.join().unwrap().unwrap(), err.join().unwrap().unwrap());
    Some((status.code().unwrap_or(-1), out, String::from_utf8(err).unwrap()))
}

fn check(use_of: &str, kind: &str, says: Option<&str>) {
    let dir = Dir::new();
    std::fs::write(dir.path("good.csv"), "a,b\n1,x\n").unwrap();
    write_parquet(&dir.path("good.parquet"), &people(10), 10);
    plinth(&dir, &["import", "good.parquet", "--to", "good.plinth", "-q"]).ok();
    plinth(&dir, &["import", "good.csv", "--to", "flat.plinth", "-q"]).ok();
    let (what, arguments) = use_of.split_once(' ').filter(|(what, _)| !what.is_empty()).unwrap_or((" ", &use_of[1..]));
    let (extension, arguments) = match what {
        "/" => ("", arguments),
        " " => arguments.split_once(' ').unwrap(),
        what => (&what[1..], arguments),
    };
    let name = make(&dir, kind, extension);
    let before: BTreeSet<String> = dir.entries().into_iter().collect();
    let arguments = arguments.split(' ').map(|part| part.replace('|', " ").replace('@', &name));
    let arguments: Vec<String> = arguments.collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some((code, _, said)) = run(command(&dir, &arguments)) else { panic!("{use_of} of {kind} does not end") };
    let told = format!("{use_of} of {kind}: {code}: {said}");
    assert!(matches!(code, 0..=2), "{told}");
    assert!(said.chars().all(|c| c == '\n' || !c.is_control()), "{told}");
    if code != 0 {
        // One line, and in SQL the statement with a mark below the place that it is about.
        let lines: Vec<&str> = said.trim_end().lines().collect();
        assert!(lines.len() == 1 || (lines.len() == 3 && lines[2].trim() == "^"), "{told}");
        assert!(lines[0].starts_with("plinth: ") && !lines[0].ends_with(':'), "{told}");
        // The path, or as much of it as shows which it is.
        assert!(said.contains(kind.split('\n').next().unwrap()), "{told}");
    }
    if let Some(says) = says {
        let reads_or_writes = !what.starts_with(' ');
        assert!(code == 1 || !reads_or_writes, "{told}");
        assert!(said.contains(says) || !reads_or_writes, "{told}");
    }
    // Nothing half-written stays.
    let after: BTreeSet<String> = dir.entries().into_iter().collect();
    let left: Vec<_> = after.difference(&before).filter(|name| name.ends_with("-tmp")).collect();
    assert!(left.is_empty(), "{told}: {left:?}");
    assert!(code == 0 || after.is_superset(&before), "{told}");
    let _ = std::fs::set_permissions(dir.path(&name), std::fs::Permissions::from_mode(0o700));
}

#[test]
fn whatever_a_path_leads_to_nothing_hangs() {
    let cases: Vec<_> = USES.iter().flat_map(|use_of| KINDS.iter().map(move |kind| (*use_of, *kind))).collect();
    // A folder is probed, which takes its time and tells nothing here.
    let cases: Vec<_> =
        cases.into_iter().filter(|(of, (kind, _))| !(of.contains("probe") && *kind == "folder")).collect();
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((use_of, (kind, says))) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = std::panic::catch_unwind(|| check(use_of, kind, *says));
                    if let Err(reason) = result {
                        let reason = reason.downcast_ref::<String>().cloned().unwrap_or_default();
                        failed.lock().unwrap().push(reason);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{} of {}:\n{}", failed.len(), cases.len(), failed.join("\n"));
    // What leads to a device was not replaced by a file.
    assert!(Path::new("/dev/null").metadata().unwrap().file_type().is_char_device());
}

#[test]
fn what_was_opened_for_the_program_is_read_and_written_whatever_it_is() {
    let dir = Dir::new();
    let csv = "id,name\n1,a\n2,b\n";
    with_input(&dir, &["import", "-", "--format", "csv", "--to", "a.plinth", "-q"], csv).ok();
    assert_eq!(plinth(&dir, &["sql", "-c", "SELECT count(*) AS n FROM 'a.plinth'"]).ok().stdout, "n\n2\n");
    for script in ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"] {
        assert_eq!(with_input(&dir, &["sql", "-f", script], "SELECT 1 AS n").ok().stdout, "n\n1\n", "{script}");
    }
    assert_eq!(plinth(&dir, &["sql", "-o", "/dev/stdout", "-c", "SELECT 1 AS n"]).ok().stdout, "n\n1\n");
    plinth(&dir, &["sql", "-o", "/dev/null", "-c", "SELECT 1 AS n"]).ok();
    // Standard input that is a file has a path, too.
    std::fs::write(dir.path("in.csv"), csv).unwrap();
    let mut import = command(&dir, &["import", "/dev/stdin", "--format", "csv", "--to", "b.plinth", "-q"]);
    import.stdin(std::fs::File::open(dir.path("in.csv")).unwrap());
    assert!(import.status().unwrap().success());
    // The reader of a pipe gets rows, though they come later.
    let pipe = dir.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        std::fs::read_to_string(pipe).unwrap()
    });
    plinth(&dir, &["sql", "-o", "pipe", "-c", "SELECT 1 AS n"]).ok();
    assert_eq!(reader.join().unwrap(), "n\n1\n");
}

#[test]
fn names_of_any_bytes_are_told_on_one_line() {
    let dir = Dir::new();
    write_parquet(&dir.path("good.parquet"), &people(10), 10);
    let name = std::ffi::OsStr::from_bytes(b"a\n\x1b[31m\xffz.plinth");
    let mut import = command(&dir, &["import", "good.parquet", "--to"]);
    let run: crate::common::Run = import.arg(name).output().unwrap().into();
    assert!(run.stderr.starts_with("a\\n\\u{1b}[31m\u{fffd}z.plinth: 10 rows"), "{}", run.stderr);
    for what in ["verify", "inspect"] {
        let run: crate::common::Run = command(&dir, &[what]).arg(name).output().unwrap().into();
        assert!(run.ok().stdout.starts_with("a\\n\\u{1b}[31m\u{fffd}z.plinth: "));
    }
}
