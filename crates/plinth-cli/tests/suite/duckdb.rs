//! Answers compared with DuckDB's, by tests/duckdb/compare.py in a virtual environment of the tests' own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

#[path = "../../../../tests/duckdb/python.rs"]
mod environment;

#[test]
fn answers_equal_duckdbs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let scripts = root.join("tests/duckdb");
    let python = match environment::python(&scripts.join("requirements.txt")) {
        Ok(python) => python,
        Err(reason) => return environment::skip(&reason),
    };
    let data = std::env::var_os("PLINTH_DATA").map_or_else(|| root.join("../shared/data"), PathBuf::from);
    let Output { status, stdout, stderr } = Command::new(python)
        .args(["-B", "-X", "utf8"])
        .arg(scripts.join("compare.py"))
        .arg(env!("CARGO_BIN_EXE_plinth"))
        .arg("--data")
        .arg(data)
        .args(["--work", env!("CARGO_TARGET_TMPDIR")])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    // What was left out is told even where the test passes.
    for line in stderr.lines().filter(|line| line.starts_with("skipped: ")) {
        environment::tell(line);
    }
    assert!(status.success(), "{status}\n{stdout}{stderr}");
}

/// Random questions of three-valued logic. `PLINTH_QUESTIONS` says how many, `PLINTH_SEED` where they begin.
#[test]
fn logic_is_duckdbs() {
    random("logic.py", "PLINTH_QUESTIONS", "40");
}

/// Random joins, groups, tops and sets over files. `PLINTH_QUESTIONS` says how many, `PLINTH_SEED` where they begin.
#[test]
fn joins_groups_and_tops_are_duckdbs() {
    random("analysis.py", "PLINTH_QUESTIONS", "120");
}

/// Random statements of the dialect. `PLINTH_STATEMENTS` says how many, `PLINTH_SEED` where they begin.
#[test]
fn statements_are_duckdbs() {
    random("statements.py", "PLINTH_STATEMENTS", "200");
}

/// Runs a script that asks both so many questions.
fn random(script: &str, count: &str, otherwise: &str) {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/duckdb");
    let python = match environment::python(&scripts.join("requirements.txt")) {
        Ok(python) => python,
        Err(reason) => return environment::skip(&reason),
    };
    let told = |name: &str, otherwise: &str| std::env::var(name).unwrap_or_else(|_| otherwise.to_owned());
    let Output { status, stdout, stderr } = Command::new(python)
        .args(["-B", "-X", "utf8"])
        .arg(scripts.join(script))
        .arg(env!("CARGO_BIN_EXE_plinth"))
        .args(["--questions", &told(count, otherwise), "--seed", &told("PLINTH_SEED", "0")])
        .args(["--work", env!("CARGO_TARGET_TMPDIR")])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{status}\n{stdout}{stderr}");
}
