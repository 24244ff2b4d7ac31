//! The extension inside DuckDB: `tests/duckdb/extension.py` compares its answers with those of DuckDB's own tables.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "../../../../tests/duckdb/python.rs"]
mod environment;
#[allow(dead_code, reason = "the chore says more")]
#[path = "../../../../xtask/src/footer.rs"]
mod footer;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use plinth_rowstore::{Table, TableOptions};

/// Ids as numbers, names as "n" and the id.
fn rows(ids: impl Iterator<Item = i64> + Clone) -> RecordBatch {
    let names: ArrayRef = Arc::new(StringArray::from_iter_values(ids.clone().map(|id| format!("n{id}"))));
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(ids));
    RecordBatch::try_from_iter([("id", ids), ("name", names)]).unwrap()
}

/// A table with rows in segments, some of them deleted, and others in memory: see `writable` of the script.
fn table(folder: &Path) -> Table {
    let first = rows(0..30_000);
    let options = TableOptions { background: false, ..TableOptions::default() };
    let table = Table::create(folder, &first.schema(), &["id"], options).unwrap();
    table.insert(&first).unwrap();
    table.merge().unwrap();
    let deleted: Vec<_> = (0..30_000_i64).step_by(10).map(Into::into).collect();
    table.delete(&deleted).unwrap();
    table.insert(&rows(30_000..30_100)).unwrap();
    table
}

/// The extension: the library that was built for this test, signed off.
fn extension(work: &Path) -> Result<PathBuf, String> {
    let name = format!("{}plinth_duckdb{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let library = std::env::current_exe().unwrap().with_file_name(name);
    let bytes = fs::read(&library).map_err(|e| format!("{}: {e}", library.display()))?;
    let path = work.join("plinth.duckdb_extension");
    fs::write(&path, footer::sign_off(bytes, footer::platform()?, env!("CARGO_PKG_VERSION"))).unwrap();
    Ok(path)
}

/// A script with checks of the extension, its folder for files, and what it may need.
struct Checks {
    python: PathBuf,
    script: PathBuf,
    extension: PathBuf,
    work: PathBuf,
}

impl Checks {
    /// `None` if there is no environment for it, which is told.
    fn new(script: &str) -> Option<Self> {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/duckdb");
        let python = match environment::python(&scripts.join("requirements.txt")) {
            Ok(python) => python,
            Err(reason) => {
                environment::skip(&reason);
                return None;
            }
        };
        let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join(script).with_extension("");
        let _ = fs::remove_dir_all(&work);
        fs::create_dir_all(&work).unwrap();
        let extension = extension(&work).unwrap_or_else(|reason| panic!("{reason}"));
        Some(Self { python, script: scripts.join(script), extension, work })
    }

    fn run(&self, more: &[&str]) {
        let Output { status, stdout, stderr } = Command::new(&self.python)
            .args(["-B", "-X", "utf8"])
            .arg(&self.script)
            .args([&self.extension, &self.work.join("work")])
            .args(more)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert!(status.success(), "{status}\n{stdout}{stderr}");
        for skipped in stdout.lines().filter(|line| line.contains("skipped")) {
            environment::tell(skipped);
        }
    }
}

impl Drop for Checks {
    fn drop(&mut self) {
        // What a failed check worked with is left to be looked at.
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.work);
        }
    }
}

/// `PLINTH_PREDICATES` says how many random predicates, `PLINTH_SEED` where they begin.
#[test]
fn answers_are_those_of_duckdbs_own_tables() {
    let Some(checks) = Checks::new("extension.py") else { return };
    // Open for writing all the while.
    let rows = checks.work.join("rows");
    let table = table(&rows);
    let told = |name: &str, otherwise: &str| std::env::var(name).unwrap_or_else(|_| otherwise.to_owned());
    let (predicates, seed) = (told("PLINTH_PREDICATES", "300"), told("PLINTH_SEED", "1"));
    checks.run(&["--rows", rows.to_str().unwrap(), "--predicates", &predicates, "--seed", &seed]);
    table.close().unwrap();
}

#[test]
fn faults_give_errors_or_the_right_answers() {
    if let Some(checks) = Checks::new("faults.py") {
        checks.run(&[]);
    }
}
