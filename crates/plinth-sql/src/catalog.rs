//! What a database folder keeps beside its tables: the names of its schemas, its views, and its sequences.
//!
//! It is in the file `_catalog`, one line of text each (FORMAT.md 17), which is replaced as a whole: what a reader finds is what one
//! change left, and a crash leaves the file before or the one after. Changes wait for each other at `_catalog-lock`. Each statement
//! reads the file anew, so that sessions see what others change.

mod sequence;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use plinth_core::sync::lock;
use plinth_io::{AtomicFile, IoError, regular};

use crate::error::{Result, SqlError};

pub(crate) use sequence::Sequence;

/// The file of the catalog.
pub(crate) const NAME: &str = "_catalog";

/// Locked by the one that changes it.
const LOCK: &str = "_catalog-lock";

/// Bytes of a catalog that is still read.
const MOST_BYTES: u64 = 256 << 20;

/// A schema's name and that of one of its views or sequences.
pub(crate) type Name = (String, String);

/// A view: the statement that makes it, and the schema that names without one are looked for in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) search: String,
    pub(crate) sql: String,
}

/// All that a catalog says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) schemas: BTreeSet<String>,
    pub(crate) views: BTreeMap<Name, View>,
    pub(crate) sequences: BTreeMap<Name, Sequence>,
}

impl Contents {
    /// The names of a schema's views.
    pub(crate) fn views_of(&self, schema: &str) -> impl Iterator<Item = &String> {
        let of = move |(name, _): &(&Name, &View)| name.0 == schema;
        self.views.iter().filter(of).map(|((_, name), _)| name)
    }

    /// A view by its name: exactly, else ignoring case if one alone fits.
    pub(crate) fn view(&self, schema: &str, name: &str) -> Option<(&String, &View)> {
        let exact = self.views.get_key_value(&(schema.to_owned(), name.to_owned()));
        let mut alike =
            self.views.iter().filter(|((within, known), _)| within == schema && known.eq_ignore_ascii_case(name));
        let found = exact.or_else(|| alike.next().filter(|_| alike.next().is_none()));
        found.map(|((_, name), view)| (name, view))
    }
}

/// The catalog of a folder.
#[derive(Debug)]
pub(crate) struct Catalog {
    folder: PathBuf,
    /// What was read last, and from what.
    last: Mutex<(Vec<u8>, Arc<Contents>)>,
}

impl Catalog {
    /// That of a folder, which need not have any yet.
    pub(crate) fn of(folder: PathBuf) -> Self {
        Self { folder, last: Mutex::default() }
    }

    /// The folder that it is of.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What it says now.
    ///
    /// # Errors
    /// If the file can't be read, is damaged, or is of a later version.
    pub(crate) fn read(&self) -> Result<Arc<Contents>> {
        let path = self.folder.join(NAME);
        let bytes = match std::fs::metadata(&path) {
            Ok(metadata) if metadata.len() > MOST_BYTES => {
                return Err(SqlError::new(format!("{}: is too large for a catalog", path.display())));
            }
            Ok(_) => {
                regular::check(&path).map_err(SqlError::new)?;
                std::fs::read(&path).map_err(|e| SqlError::new(format!("{}: can't be read: {e}", path.display())))?
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Arc::default()),
            Err(e) => return Err(SqlError::new(format!("{}: can't be read: {e}", path.display()))),
        };
        let mut last = lock(&self.last);
        if last.0 != bytes || bytes.is_empty() {
            let contents = text::parse(&bytes).map_err(|what| SqlError::new(format!("{}: {what}", path.display())))?;
            *last = (bytes, Arc::new(contents));
        }
        Ok(Arc::clone(&last.1))
    }

    /// Changes it, while no other does. Nothing is written if the change refuses or changes nothing.
    ///
    /// # Errors
    /// Those of the change, and if the file can't be read or written.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Contents) -> Result<T>) -> Result<T> {
        let name = self.folder.join(LOCK);
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(false);
        let held = regular::open_with(&name, "create", options).map_err(SqlError::new)?;
        held.lock().map_err(|e| SqlError::new(IoError::os(&name, "lock", e)))?;
        let before = self.read()?;
        let mut contents = Contents::clone(&before);
        let done = change(&mut contents)?;
        if contents != *before {
            let write = || {
                let mut file = AtomicFile::create(self.folder.join(NAME), true)?;
                file.write_all(text::write(&contents).as_bytes())?;
                file.commit()
            };
            write().map_err(SqlError::new)?;
        }
        Ok(done)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
