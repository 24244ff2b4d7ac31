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

/// `PLINTH_PREDICATES` says how many random predicates, `PLINTH_SEED` where they begin.
#[test]
fn answers_are_those_of_duckdbs_own_tables() {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/duckdb");
    let python = match environment::python(&scripts.join("requirements.txt")) {
        Ok(python) => python,
        Err(reason) => return environment::skip(&reason),
    };
    let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join("extension");
    let _ = fs::remove_dir_all(&work);
    fs::create_dir_all(&work).unwrap();
    let extension = match extension(&work) {
        Ok(extension) => extension,
        Err(reason) => panic!("{reason}"),
    };
    // Open for writing all the while.
    let table = table(&work.join("rows"));
    let told = |name: &str, otherwise: &str| std::env::var(name).unwrap_or_else(|_| otherwise.to_owned());
    let Output { status, stdout, stderr } = Command::new(python)
        .args(["-B", "-X", "utf8"])
        .arg(scripts.join("extension.py"))
        .args([extension, work.join("work")])
        .arg("--rows")
        .arg(work.join("rows"))
        .args(["--predicates", &told("PLINTH_PREDICATES", "300"), "--seed", &told("PLINTH_SEED", "1")])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{status}\n{stdout}{stderr}");
    table.close().unwrap();
    let _ = fs::remove_dir_all(&work);
}
