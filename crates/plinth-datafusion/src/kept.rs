//! Tables that statements named by path, kept open for the statements after: their footers and metadata, and what is kept of
//! their dictionaries and blocks.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use datafusion_common::Result;
use plinth_core::sync::lock;
use plinth_format::File;
use plinth_io::Object;

use crate::FileOptions;
use crate::table::PlinthTable;

/// Bytes of metadata, as they were read, of all tables that are kept but the last: dictionaries and blocks are the memory
/// budget's, which takes them back.
const METADATA: u64 = 64 << 20;

/// Files of a table that is kept.
const FILES: usize = 4096;

/// What a statement named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// Files, in this order.
    Files(Vec<PathBuf>),
    /// The files of a folder.
    Folder(PathBuf),
    /// What a URL named, as it was found just now.
    Objects(String, Vec<Object>),
}

/// What a table is kept under.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Key {
    Files(Vec<PathBuf>),
    Folder(PathBuf),
    Url(String),
}

/// The tables, that of the last statement last.
#[derive(Debug, Default)]
pub(crate) struct KeptTables(Mutex<Vec<(Key, Arc<PlinthTable>)>>);

impl KeptTables {
    /// The table as it is now: the one that is kept if its files are the same, else one that opens those that are not.
    pub(crate) fn open(&self, named: Named, options: &FileOptions) -> Result<Arc<PlinthTable>> {
        // A relative path means another file once the process has gone elsewhere.
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let key = match &named {
            Named::Files(files) => Key::Files(files.iter().map(absolute).collect()),
            Named::Folder(folder) => Key::Folder(absolute(folder)),
            Named::Objects(url, _) => Key::Url(url.clone()),
        };
        let before = lock(&self.0).iter().find(|(known, _)| *known == key).map(|(_, table)| Arc::clone(table));
        let table = match &before {
            Some(before) if is_current(before, &named) => Arc::clone(before),
            before => {
                let before = before.as_deref();
                Arc::new(match named {
                    Named::Files(files) => PlinthTable::open_files(files, before, options)?,
                    Named::Folder(folder) => PlinthTable::open_folder_with(folder, before, options)?,
                    Named::Objects(_, found) => PlinthTable::open_objects(&found, before, options)?,
                })
            }
        };
        self.keep(key, &table);
        Ok(table)
    }

    fn keep(&self, key: Key, table: &Arc<PlinthTable>) {
        let mut kept = lock(&self.0);
        kept.retain(|(known, _)| *known != key);
        if table.files().count() > FILES {
            return;
        }
        let metadata =
            |table: &PlinthTable| table.files().map(|(_, file)| File::metadata_bytes_read(file)).sum::<u64>();
        let mut room = METADATA;
        let fit = kept.iter().rev().take_while(|(_, table)| {
            let left = room.checked_sub(metadata(table));
            room = left.unwrap_or(0);
            left.is_some()
        });
        let gone = kept.len() - fit.count();
        kept.drain(..gone);
        kept.push((key, Arc::clone(table)));
    }
}

/// Whether a table is what was named now.
fn is_current(table: &PlinthTable, named: &Named) -> bool {
    match named {
        Named::Objects(_, found) => table.is_of(found),
        // What can't be looked at can't be opened either, and that error is the better one.
        Named::Files(_) | Named::Folder(_) => table.is_current().unwrap_or(false),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
