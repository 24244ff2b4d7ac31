//! Answers compared with DuckDB's, by tests/duckdb/compare.py in a virtual environment of the tests' own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

/// The environment's Python, made on first use and made anew when the requirements change; else why there is none.
fn python(requirements: &Path) -> Result<PathBuf, String> {
    // One test makes it, the others wait.
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("duckdb-venv");
    let python = folder.join("bin/python");
    let wanted = fs::read_to_string(requirements).map_err(|e| format!("{}: {e}", requirements.display()))?;
    // Written last: an environment without it was left half-made.
    let stamp = folder.join("installed.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
    let pip =
        ["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check", "--no-input", "--requirement"];
    run(Command::new(&python).args(pip).arg(requirements))?;
    fs::write(&stamp, wanted).map_err(|e| format!("{}: {e}", stamp.display()))?;
    Ok(python)
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let Output { status, stderr, .. } =
        command.stdin(Stdio::null()).output().map_err(|e| format!("{name} can't be run: {e}"))?;
    if status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&stderr);
    Err(format!("{name}: {status}: {}", stderr.trim().lines().last().unwrap_or_default()))
}

#[test]
fn answers_equal_duckdbs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let scripts = root.join("tests/duckdb");
    let python = match python(&scripts.join("requirements.txt")) {
        Ok(python) => python,
        Err(reason) => return skip(&reason),
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
        tell(line);
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
    let python = match python(&scripts.join("requirements.txt")) {
        Ok(python) => python,
        Err(reason) => return skip(&reason),
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

fn skip(reason: &str) {
    tell(&format!("skipped: the comparison with DuckDB ({reason})"));
}

/// Writes past the capture of the test harness, which swallows what a passing test prints.
fn tell(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{line}");
}
