//! Scripts of sqllogictest: those of this repository, and the corpora of DataFusion and DuckDB where `PLINTH_SLT` names a folder of them
//! (`cargo xtask slt` fetches them). A statement may be refused; one that runs must be right.

mod script;
mod values;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use plinth_profile::Profiler;
use plinth_sql::{Params, Session, SessionOptions, parse};
use tokio::runtime::Runtime;

use script::{Expect, Step};
use values::Verdict;

/// How long a statement, and a script, may take.
const PATIENCE: Duration = Duration::from_secs(20);
const SCRIPT: Duration = Duration::from_secs(120);

/// How the statements of some scripts fared.
#[derive(Debug, Default)]
struct Tally {
    scripts: usize,
    passed: usize,
    refused: usize,
    wrong: usize,
    /// They run, though they are to be refused.
    taken: usize,
    reordered: usize,
    /// What was not compared, and why.
    skipped: BTreeMap<String, usize>,
    /// What is said of those that are wrong.
    notes: Vec<String>,
    /// Why statements were refused.
    refusals: Vec<String>,
}

impl Tally {
    fn skip(&mut self, why: &str) {
        *self.skipped.entry(why.to_owned()).or_default() += 1;
    }

    fn add(&mut self, other: Self) {
        self.scripts += other.scripts;
        self.passed += other.passed;
        self.refused += other.refused;
        self.wrong += other.wrong;
        self.taken += other.taken;
        self.reordered += other.reordered;
        for (why, count) in other.skipped {
            *self.skipped.entry(why).or_default() += count;
        }
        self.notes.extend(other.notes);
        self.refusals.extend(other.refusals);
    }
}

/// What a statement gave.
enum Outcome {
    Rows(values::Rows),
    Refused(String),
    Slow,
}

struct Runner {
    runtime: Runtime,
    session: Arc<Session>,
}

impl Runner {
    fn new(folder: &Path) -> Self {
        let options =
            SessionOptions { db: Some(folder.to_path_buf()), memory: 1 << 30, threads: 2, ..SessionOptions::default() };
        Self { runtime: plinth_sql::start_runtime(2).unwrap(), session: Arc::new(Session::new(&options).unwrap()) }
    }

    fn run(&self, sql: &str) -> Outcome {
        let statements = match parse(sql) {
            Ok(statements) => statements,
            Err(error) => return Outcome::Refused(error.to_string()),
        };
        let work = async {
            let mut rows = Vec::new();
            for statement in statements {
                let mut stream = self.session.start(statement, &Params::default(), &Profiler::off()).await?;
                let mut batches = Vec::new();
                while let Some(batch) = stream.next().await {
                    batches.push(batch?);
                }
                rows = values::texts(&batches);
            }
            Ok::<_, plinth_sql::SqlError>(rows)
        };
        match self.runtime.block_on(async { tokio::time::timeout(PATIENCE, work).await }) {
            Ok(Ok(rows)) => Outcome::Rows(rows),
            Ok(Err(error)) => Outcome::Refused(error.to_string()),
            Err(_) => Outcome::Slow,
        }
    }
}

/// Whether a statement changes what later ones see.
fn changes(sql: &str) -> bool {
    const LOOKS: [&str; 10] =
        ["SELECT", "VALUES", "FROM", "EXPLAIN", "DESCRIBE", "SHOW", "SUMMARIZE", "PRAGMA", "TABLE", ""];
    let upper = sql.trim_start().to_ascii_uppercase();
    let word = upper.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    match word {
        "WITH" => ["INSERT", "UPDATE", "DELETE", "MERGE"].iter().any(|change| upper.contains(change)),
        "PRAGMA" => upper.contains('='),
        word => !LOOKS.contains(&word) || upper.contains("SETVAL(") || upper.contains("NEXTVAL("),
    }
}

/// The names by which scripts know the folder that they may write to.
const FILES: [&str; 3] = ["__TEST_DIR__", "{TEST_DIR}", "{TEMP_DIR}"];

/// What stands in statements about files that lie beside the scripts, and are not fetched.
const FILES_BESIDE: [&str; 4] = ["{DATA_DIR}", "'data/", "'./data/", "__WORKING_DIRECTORY__"];

fn run_script(text: &str, name: &str) -> Tally {
    let mut tally = Tally { scripts: 1, ..Tally::default() };
    let (steps, unfit) = script::parse(text);
    if let Some(unfit) = unfit {
        tally.skip(&unfit.0);
        if unfit.0.starts_with("requires") || steps.is_empty() {
            return tally;
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let tables = folder.path().join("tables");
    std::fs::create_dir(&tables).unwrap();
    let runner = Runner::new(&tables);
    // How scripts name the folder that they may write to.
    let files = folder.path().join("files").display().to_string();
    std::fs::create_dir(&files).unwrap();
    let started = Instant::now();
    // Once a change was refused that the script counts on, or made that it does not, answers tell nothing.
    let mut adrift = false;
    for Step { line, sql, expect } in steps {
        let sql = FILES.iter().fold(sql, |sql, name| sql.replace(name, &files));
        if started.elapsed() > SCRIPT {
            tally.skip("takes long");
            break;
        }
        if sql.trim_start().to_ascii_uppercase().starts_with("EXPLAIN") {
            tally.skip("EXPLAIN");
            continue;
        }
        if FILES_BESIDE.iter().any(|name| sql.contains(name)) {
            tally.skip("needs files beside the scripts");
            adrift |= changes(&sql);
            continue;
        }
        let outcome = runner.run(&sql);
        let one_line = || sql.split_whitespace().collect::<Vec<_>>().join(" ");
        match (outcome, expect) {
            (Outcome::Slow, _) => {
                tally.skip("takes long");
                adrift |= changes(&sql);
            }
            (Outcome::Refused(_), Expect::Error) => tally.passed += 1,
            (Outcome::Refused(why), expect) => {
                if expect == Expect::Either {
                    tally.skip("may fail");
                } else if adrift {
                    tally.skip("after a refusal");
                } else {
                    tally.refused += 1;
                    tally.refusals.push(format!("{name}:{line}: {why}: {}", one_line()));
                }
                adrift |= changes(&sql);
            }
            (Outcome::Rows(_), Expect::Error) => {
                if adrift {
                    tally.skip("after a refusal");
                } else {
                    tally.taken += 1;
                    tally.notes.push(format!("TAKEN {name}:{line}: {}", one_line()));
                }
                adrift |= changes(&sql);
            }
            (Outcome::Rows(_), Expect::Ok) => tally.passed += 1,
            (Outcome::Rows(_), Expect::Either) => tally.skip("may fail"),
            (Outcome::Rows(rows), Expect::Rows { sort, lines, .. }) => {
                let ordered = sql.to_ascii_uppercase().contains("ORDER BY");
                match values::compare(&rows, &lines, sort, ordered) {
                    Verdict::Same => tally.passed += 1,
                    Verdict::Unknown => tally.skip("hashed"),
                    _ if adrift => tally.skip("after a refusal"),
                    Verdict::Reordered => {
                        tally.reordered += 1;
                        tally.notes.push(format!("ORDER {name}:{line}: {}", one_line()));
                    }
                    Verdict::Other => {
                        tally.wrong += 1;
                        let shown = rows.iter().take(5).map(|row| {
                            row.iter().map(|cell| cell.as_deref().unwrap_or("NULL")).collect::<Vec<_>>().join("|")
                        });
                        let shown = shown.collect::<Vec<_>>().join(" / ");
                        let lines =
                            lines.iter().take(5).map(|line| line.replace('\t', "|")).collect::<Vec<_>>().join(" / ");
                        let note =
                            format!("WRONG {name}:{line}: {}\n    here: {shown}\n    there: {lines}", one_line());
                        tally.notes.push(note);
                    }
                }
            }
        }
    }
    tally
}

/// Scripts below a folder.
fn scripts(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(scripts(&path));
        } else if path.extension().is_some_and(|extension| extension == "slt" || extension == "test") {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn scripts_of_this_repository_pass_whole() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt");
    let mut all = Tally::default();
    for path in scripts(&folder) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        all.add(run_script(&std::fs::read_to_string(&path).unwrap(), &name));
    }
    assert!(all.scripts >= 5 && all.passed > 100, "{all:?}");
    let clean = all.refused + all.wrong + all.taken + all.reordered == 0 && all.skipped.is_empty();
    assert!(clean, "{:?}\n{}\n{}", all.skipped, all.notes.join("\n"), all.refusals.join("\n"));
}

#[test]
fn a_script_that_is_wrong_is_found_so() {
    let text = "statement ok\nCREATE TABLE t (a INT)\n\nquery I\nSELECT 1\n----\n2\n\nquery II rowsort\nSELECT * FROM (VALUES (2, 3), (1, 4)) v\n\
                ----\n1\t4\n2\t3\n\nquery I\nSELECT * FROM (VALUES (2), (1)) v(a) ORDER BY a DESC\n----\n1\n2\n\nstatement error\nSELECT 1\n\n\
                statement error\nSELECT nothing\n\nstatement ok\nSELECT nothing\n\nloop i 0 3\n\nstatement ok\nINSERT INTO t VALUES (${i})\n\n\
                endloop\n\nquery I\nSELECT sum(a) FROM t\n----\n3\n";
    let tally = run_script(text, "test");
    let counts = (tally.passed, tally.refused, tally.wrong, tally.taken, tally.reordered);
    assert_eq!(counts, (7, 1, 1, 1, 1), "{tally:?}");
}

/// Where `PLINTH_SLT` names a folder: a line for each of its folders of scripts, and what was wrong in a file beside.
#[test]
fn corpora() {
    let Some(folder) = std::env::var_os("PLINTH_SLT").map(PathBuf::from) else { return };
    let report = std::env::var_os("PLINTH_SLT_REPORT").map_or_else(|| folder.join("report"), PathBuf::from);
    std::fs::create_dir_all(&report).unwrap();
    let mut table: BTreeMap<String, Tally> = BTreeMap::new();
    let all = scripts(&folder);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let done = std::sync::Mutex::new(Vec::new());
    let (all_scripts, next, done_here) = (&all, &next, &done);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let folder = &folder;
            let work = move || {
                while let Some(path) = all_scripts.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    let name = path.strip_prefix(folder).unwrap().display().to_string();
                    let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
                    let tally = run_script(&text, &name);
                    done_here.lock().unwrap().push((name, tally));
                }
            };
            // As deep as the program's own threads.
            std::thread::Builder::new().stack_size(64 << 20).spawn_scoped(scope, work).unwrap();
        }
    });
    for (name, tally) in done.into_inner().unwrap() {
        let group = Path::new(&name).parent().map(|parent| parent.display().to_string()).unwrap_or_default();
        table.entry(group).or_default().add(tally);
    }
    let mut text = String::new();
    let mut whole = Tally::default();
    writeln!(
        text,
        "{:<44} {:>7} {:>7} {:>7} {:>5} {:>5} {:>5} {:>7}",
        "folder", "scripts", "passed", "refused", "wrong", "taken", "order", "skipped"
    )
    .unwrap();
    let line = |text: &mut String, name: &str, tally: &Tally| {
        let Tally { scripts, passed, refused, wrong, taken, reordered, .. } = tally;
        let skipped: usize = tally.skipped.values().sum();
        writeln!(
            text,
            "{name:<44} {scripts:>7} {passed:>7} {refused:>7} {wrong:>5} {taken:>5} {reordered:>5} {skipped:>7}"
        )
        .unwrap();
    };
    let (mut notes, mut refusals) = (String::new(), String::new());
    for (name, tally) in table {
        line(&mut text, &name, &tally);
        notes.extend(tally.notes.iter().map(|note| format!("{note}\n")));
        refusals.extend(tally.refusals.iter().map(|note| format!("{note}\n")));
        whole.add(tally);
    }
    line(&mut text, "all", &whole);
    let mut reasons: Vec<_> = whole.skipped.iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (why, count) in reasons {
        writeln!(text, "skipped {count:>7}  {why}").unwrap();
    }
    std::fs::write(report.join("table.txt"), &text).unwrap();
    std::fs::write(report.join("notes.txt"), notes).unwrap();
    std::fs::write(report.join("refusals.txt"), refusals).unwrap();
    std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes()).unwrap();
}
