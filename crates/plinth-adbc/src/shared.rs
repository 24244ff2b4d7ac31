//! Tables that all sessions of this process write to.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

use plinth_core::sync::lock;
use plinth_sql::OpenTables;

/// Tables that are open for writing, by the process and the folder.
static SHARED: Mutex<Vec<(u32, PathBuf, Weak<OpenTables>)>> = Mutex::new(Vec::new());

/// Those of a folder: all sessions of this process that are given them write to the same tables, as long as one of them keeps what
/// this returns.
pub fn tables_of(folder: &Path) -> Arc<OpenTables> {
    // What can't be looked at is told when it is opened.
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    let process = std::process::id();
    let mut shared = lock(&SHARED);
    shared.retain(|(_, _, tables)| tables.strong_count() > 0);
    let known = shared.iter().find(|(of, known, _)| *of == process && *known == folder);
    if let Some(tables) = known.and_then(|(_, _, tables)| tables.upgrade()) {
        return tables;
    }
    let tables = Arc::<OpenTables>::default();
    shared.push((process, folder, Arc::downgrade(&tables)));
    tables
}
