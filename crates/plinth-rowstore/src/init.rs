//! A folder of plain files becomes a table that can be written to.
//!
//! The table is made in a hidden folder within. Its files then move, the manifest last: before that the plain files are the
//! table, from then on they are not looked at, and go.

use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};

use arrow_array::RecordBatch;
use plinth_format::FormatError;
use plinth_io::{IoError, sync_folder};
use plinth_table::{Handover, Snapshot};

use crate::error::{Result, TableError};
use crate::manifest;
use crate::options::TableOptions;
use crate::table::{LOCK, Table};

/// Where the table is made.
const MAKING: &str = ".plinth-init";

/// Batches that wait to be written.
const AHEAD: usize = 2;

impl Table {
    /// Makes a table of the plain files in a folder, which go, and tells how many rows they had. `key` names the columns of its
    /// primary key; without one, rows are given numbers. `progress` is told how many bytes of the files are done.
    ///
    /// # Errors
    /// If it is one already, or has no files; if two rows have the same key, or one has none; if others add files or compact
    /// meanwhile. Nothing is changed then.
    pub fn init(
        folder: impl AsRef<Path>,
        key: &[&str],
        options: &TableOptions,
        mut progress: impl FnMut(u64) + Send,
    ) -> Result<u64> {
        let folder = folder.as_ref();
        if Self::is_table(folder) {
            return Err(TableError::invalid(format!("{}: is a writable table already", folder.display())));
        }
        let plain = Handover::begin(folder, options.open.clone())?;
        if plain.files().files().is_empty() {
            let what = format!("{}: has no .plinth files; CREATE TABLE makes an empty table", folder.display());
            return Err(TableError::invalid(what));
        }
        let making = folder.join(MAKING);
        remove_folder(&making)?;
        let made = make(&making, plain.files(), key, options, &mut progress).and_then(|rows| {
            plain.commit(|| move_table(&making, folder))?;
            Ok(rows)
        });
        // What can't be removed now, the next attempt removes.
        let _ = remove_folder(&making);
        made
    }
}

/// Makes the table with all rows.
fn make(
    making: &Path,
    plain: &Snapshot,
    key: &[&str],
    options: &TableOptions,
    progress: &mut (impl FnMut(u64) + Send),
) -> Result<u64> {
    let schema = plain.schema();
    let table = Table::create(making, &schema, key, options.clone())?;
    let (sender, batches) = sync_channel(AHEAD);
    let imported = std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut done = 0;
            let read = plinth_table::read(plain.files(), &schema, |batch, bytes| {
                done += bytes;
                progress(done);
                Ok(sender.send(Message::Batch(batch)).is_ok())
            });
            // It is not waited for any more if writing failed.
            let _ = sender.send(read.map_or_else(Message::Failed, |()| Message::End));
        });
        table.import(Received(batches))
    })?;
    table.close()?;
    Ok(imported.inserted)
}

/// What travels from the thread that reads.
enum Message {
    Batch(RecordBatch),
    Failed(FormatError),
    End,
}

struct Received(Receiver<Message>);

impl Iterator for Received {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.0.recv() {
            Ok(Message::Batch(batch)) => Some(Ok(batch)),
            Ok(Message::Failed(error)) => Some(Err(error.into())),
            Ok(Message::End) => None,
            Err(_) => Some(Err(TableError::invalid("reading was given up"))),
        }
    }
}

/// Moves the files of a table to a folder, the manifest last.
fn move_table(making: &Path, folder: &Path) -> Result<()> {
    let moved = |name: &std::ffi::OsStr| {
        let (from, to) = (making.join(name), folder.join(name));
        std::fs::rename(&from, &to).map_err(|e| IoError::os(&from, "move", e))
    };
    for entry in std::fs::read_dir(making).map_err(|e| IoError::os(making, "list", e))? {
        let name = entry.map_err(|e| IoError::os(making, "list", e))?.file_name();
        if name != manifest::NAME && name != LOCK {
            moved(&name)?;
        }
    }
    sync_folder(folder)?;
    moved(manifest::NAME.as_ref())?;
    Ok(sync_folder(folder)?)
}

fn remove_folder(path: &Path) -> Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(IoError::os(path, "remove", error).into()),
        _ => Ok(()),
    }
}
