//! The virtual environment that comparisons with DuckDB run in, for tests of several crates.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

/// The environment's Python, made on first use and made anew when the requirements change; else why there is none.
pub(crate) fn python(requirements: &Path) -> Result<PathBuf, String> {
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

/// Says that a test was left out.
pub(crate) fn skip(reason: &str) {
    tell(&format!("skipped: the comparison with DuckDB ({reason})"));
}

/// Writes past the capture of the test harness, which swallows what a passing test prints.
pub(crate) fn tell(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{line}");
}
