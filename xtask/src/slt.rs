//! The scripts of sqllogictest of other databases: fetched into the target folder, at pinned commits, and run.

use std::path::Path;
use std::process::Command;

use crate::python::{run, target};

/// A corpus: its name, where it is, the commit, and the folder of its scripts.
const CORPORA: [(&str, &str, &str, &str); 2] = [
    ("datafusion", "https://github.com/apache/datafusion", "refs/tags/55.2.0", "datafusion/sqllogictest/test_files"),
    ("duckdb", "https://github.com/duckdb/duckdb", "044a04a7cd39e6e8235f756597ae42dde084e5e5", "test/sql"),
];

/// Runs the scripts of all corpora, or of the folders that are named behind the command (`duckdb/test/sql/join`).
pub(crate) fn test(arguments: &[String]) -> Result<(), String> {
    let corpora = target()?.join("slt");
    for (name, from, commit, scripts) in CORPORA {
        fetch(&corpora.join(name), from, commit, scripts)?;
    }
    let folders = if arguments.is_empty() { vec![String::new()] } else { arguments.to_vec() };
    for folder in folders {
        let folder = corpora.join(folder);
        if !folder.is_dir() {
            return Err(format!("{}: no such folder", folder.display()));
        }
        // With the rest of the workspace: another selection builds the query engine again.
        run(Command::new("cargo")
            .args(["test", "--workspace", "--test", "suite", "--", "slt::corpora", "--nocapture"])
            .env("PLINTH_SLT", &folder)
            .env("PLINTH_SLT_REPORT", corpora.join("report")))?;
    }
    eprintln!("{}: what was wrong, and what was refused", corpora.join("report").display());
    Ok(())
}

/// The scripts of a commit, without the rest of the repository. Those that are there are not fetched again.
fn fetch(folder: &Path, from: &str, commit: &str, scripts: &str) -> Result<(), String> {
    let stamp = folder.join("fetched.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|fetched| fetched == commit) {
        return Ok(());
    }
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let git = |arguments: &[&str]| run(Command::new("git").arg("-C").arg(folder).args(arguments));
    git(&["init", "--quiet"])?;
    git(&["config", "remote.origin.url", from])?;
    git(&["sparse-checkout", "set", "--no-cone", &format!("/{scripts}/")])?;
    git(&["fetch", "--quiet", "--depth", "1", "--filter", "blob:none", "origin", commit])?;
    git(&["checkout", "--quiet", "--force", "FETCH_HEAD"])?;
    std::fs::write(&stamp, commit).map_err(|e| format!("{}: {e}", stamp.display()))
}
