//! A table is removed.

use std::path::Path;

use plinth_io::{IoError, sync_folder};

use crate::error::{Result, TableError};
use crate::table::{LOCK, Table, lock_folder};
use crate::{index, log, manifest, segment};

impl Table {
    /// Removes a table and all of its rows, and its folder if there is nothing else in it. It is gone once its manifest is: what
    /// a crash leaves then is no table, and goes when one is created there.
    ///
    /// # Errors
    /// [`TableError::InUse`] if it is open for writing. If there is none, or it can't be removed.
    pub fn destroy(path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        if !Self::is_table(path) {
            return Err(TableError::invalid(format!("{}: is no writable table", path.display())));
        }
        let lock = lock_folder(path)?;
        let remove = |name: &str| {
            let file = path.join(name);
            std::fs::remove_file(&file).map_err(|e| IoError::os(&file, "remove", e))
        };
        remove(manifest::NAME)?;
        sync_folder(path)?;
        for entry in std::fs::read_dir(path).map_err(|e| IoError::os(path, "list", e))? {
            let name = entry.map_err(|e| IoError::os(path, "list", e))?.file_name();
            let Some(name) = name.to_str() else { continue };
            let numbered = segment::number(name).is_some() || log::number(name).is_some();
            if numbered || index::numbers(name).is_some() || name.starts_with("_version-") {
                remove(name)?;
            }
        }
        remove(LOCK)?;
        drop(lock);
        // Other files that are there stay.
        if std::fs::remove_dir(path).is_ok()
            && let Some(parent) = path.parent()
        {
            sync_folder(parent)?;
        }
        Ok(())
    }
}
