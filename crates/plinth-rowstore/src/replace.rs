//! Tables that change their place: one that is renamed, and one that another takes the place of.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use plinth_io::{Folder, IoError, Storage, swap_folders, sync_folder};

use crate::error::{Result, TableError};
use crate::lookup::TableIndex;
use crate::options::TableOptions;
use crate::snapshot::Snapshot;
use crate::table::{Table, lock_folder};

/// A table as another was made of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// After so many commits ([`Snapshot::sequence`]).
    pub sequence: u64,
    /// With these indexes.
    pub indexes: Vec<TableIndex>,
    /// And these texts beside its columns.
    pub notes: BTreeMap<String, String>,
}

impl Table {
    /// Puts the table of another folder in the place of one, which is removed, if that is still as it was seen.
    /// To those who open the folder there is either table at any moment, where the system can exchange two names at once; both
    /// folders lie side by side.
    ///
    /// # Errors
    /// [`TableError::InUse`] if either is open for writing. If the table has changed since, or can't be replaced: then it is as it was.
    pub fn replace(place: impl AsRef<Path>, with: impl AsRef<Path>, seen: &Seen) -> Result<()> {
        let (place, with) = (place.as_ref(), with.as_ref());
        let locks = [lock_folder(place)?, lock_folder(with)?];
        let options = TableOptions { background: false, ..TableOptions::default() };
        let storage: Arc<dyn Storage> = Arc::new(Folder::new(place, &options.open.io));
        let shared = Self::open_reading(&storage, &options)?.shared;
        let now = Snapshot { version: shared.current(), shared };
        let now = Seen { sequence: now.sequence(), indexes: now.indexes(), notes: now.notes().as_ref().clone() };
        if now != *seen {
            return Err(TableError::invalid(format!("{}: was changed meanwhile; try again", place.display())));
        }
        drop(storage);
        swap_folders(place, with)?;
        drop(locks);
        // It is done: what can't be removed now, the next to replace the table removes.
        let _ = Self::destroy(with);
        Ok(())
    }

    /// Gives a table's folder another name, which nothing has.
    ///
    /// # Errors
    /// [`TableError::InUse`] if it is open for writing. If there is none, the name is taken, or the system refuses.
    pub fn rename(place: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<()> {
        let (place, to) = (place.as_ref(), to.as_ref());
        if !Self::is_table(place) {
            return Err(TableError::invalid(format!("{}: is no writable table", place.display())));
        }
        let lock = lock_folder(place)?;
        if to.exists() {
            return Err(TableError::invalid(format!("{}: is there already", to.display())));
        }
        std::fs::rename(place, to).map_err(|e| IoError::os(place, "rename", e))?;
        drop(lock);
        match to.parent() {
            Some(parent) => Ok(sync_folder(parent)?),
            None => Ok(()),
        }
    }
}
