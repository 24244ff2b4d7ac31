//! Rows added to a table.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use plinth_format::{FileSummary, Result, Writer, WriterOptions};
use plinth_io::{AtomicFile, IoError, sync_folder};

use crate::far::FarFolder;
use crate::folder::{Snapshot, TableFolder};
use crate::journal::Journal;
use crate::listed::Listed;
use crate::scratch::Scratch;
use crate::{lock, names};

/// Writes one new file of a table under a temporary name. [`Appender::finish`] publishes it after all others, at once and
/// for everybody; dropped before that, it leaves nothing behind.
///
/// Any number may write to a folder at once: their files get their order when they are published.
#[derive(Debug)]
pub struct Appender {
    folder: TableFolder,
    writer: Writer,
    schema: SchemaRef,
    /// What was there already, so that only newer files are opened before the commit.
    known: Snapshot,
    /// Last, as it is dropped after the writer's file has gone.
    place: Place,
}

/// Where the file is written.
#[derive(Debug)]
enum Place {
    /// In the folder itself.
    Near(NewFolder),
    /// On this machine, to be sent to a store.
    Far(FarFolder, Scratch),
}

impl Appender {
    /// Starts a file in a folder of this machine, which is created if it is missing. The columns may be fewer, more or others than the
    /// table's, in any order; where both have one, its types must meet (see [`crate::SchemaUnion`]).
    /// [`WriterOptions::replace`] does not matter.
    ///
    /// # Errors
    /// If the columns do not fit the table or can't be stored, or the folder can't be read or written to.
    pub fn create(folder: impl AsRef<Path>, schema: &Schema, options: WriterOptions) -> Result<Self> {
        Self::create_in(TableFolder::new(folder.as_ref()), schema, options)
    }

    /// As [`Appender::create`]; the folder may be in a store, to which the file is sent when it is complete.
    ///
    /// # Errors
    /// As [`Appender::create`]; if there is no room for the file on this machine.
    pub fn create_in(folder: TableFolder, schema: &Schema, options: WriterOptions) -> Result<Self> {
        let place = match folder.far()? {
            Some(far) => Place::Far(far, Scratch::make()?),
            None => Place::Near(NewFolder::make(folder.path())?),
        };
        let known = folder.open(None)?;
        let here = match &place {
            Place::Near(_) => folder.path(),
            Place::Far(_, scratch) => scratch.path(),
        };
        // A name that only says what it is: the file gets another when it is published.
        let writer = Writer::create(here.join(".append"), schema, WriterOptions { replace: true, ..options })?;
        let schema = Arc::new(writer.schema());
        known.union().clone().add(NEW_ROWS, &schema)?;
        Ok(Self { folder, writer, schema, known, place })
    }

    /// Adds rows, as [`Writer::write`].
    ///
    /// # Errors
    /// If the batch does not fit the schema, the device is full, or writing was cancelled.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.writer.write(batch)
    }

    /// Adds rows to one of several lanes, as [`Writer::write_lane`].
    ///
    /// # Errors
    /// As [`Appender::write`].
    pub fn write_lane(&mut self, lane: usize, batch: &RecordBatch) -> Result<()> {
        self.writer.write_lane(lane, batch)
    }

    /// Rows written so far.
    pub fn rows(&self) -> u64 {
        self.writer.rows()
    }

    /// Completes the file and publishes it.
    ///
    /// # Errors
    /// As [`Appender::complete`] and [`Appended::publish`].
    pub fn finish(self) -> Result<FileSummary> {
        self.complete()?.publish()
    }

    /// Completes the file, which takes long, without publishing it.
    ///
    /// # Errors
    /// If the device is full or refuses, or writing was cancelled; nothing is left then.
    pub fn complete(self) -> Result<Appended> {
        let (file, rows) = self.writer.complete()?;
        file.sync()?;
        Ok(Appended { folder: self.folder, file, rows, schema: self.schema, known: self.known, place: self.place })
    }
}

/// A complete file of a table that is not seen yet. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub struct Appended {
    folder: TableFolder,
    file: AtomicFile,
    rows: u64,
    schema: SchemaRef,
    known: Snapshot,
    place: Place,
}

impl Appended {
    /// Publishes the file. No rows make no file, unless the table has none yet: its columns must be known from somewhere.
    ///
    /// # Errors
    /// If the file system or the store refuses, or someone else has added columns meanwhile that these do not fit; nothing is left
    /// then. If the store does not answer any more, the rows may be in the table or not.
    pub fn publish(self) -> Result<FileSummary> {
        let Self { folder, file, rows, schema, known, place } = self;
        let fits = |now: &Snapshot| now.union().clone().add(NEW_ROWS, &schema);
        match place {
            Place::Near(made) => {
                let path = folder.path();
                let _lock = lock::exclusive(path)?;
                Journal::finish(path, &mut |_| Ok(()))?;
                let names = folder.names_under(None)?;
                if rows == 0 && !names.is_empty() {
                    return Ok(FileSummary { rows: 0, file_bytes: 0 });
                }
                let listed = names.iter().map(|name| Listed::of(path.join(name))).collect::<Result<Vec<_>>>()?;
                fits(&Snapshot::open(listed.into_iter().flatten().collect(), Some(&known))?)?;
                let target = path.join(names::next(names.last().map(AsRef::as_ref)));
                let file_bytes = file.commit_as(target, false)?;
                made.keep();
                Ok(FileSummary { rows, file_bytes })
            }
            Place::Far(far, scratch) => {
                if rows == 0 && folder.has_files()? {
                    return Ok(FileSummary { rows: 0, file_bytes: 0 });
                }
                let complete = scratch.path().join("rows.plinth");
                let file_bytes = file.commit_as(complete.clone(), false)?;
                let sent = far.send(&complete)?;
                let mut refused = false;
                let published = far.commit(|manifest| {
                    if manifest.has(&sent.name) {
                        return Ok(());
                    }
                    let now = Snapshot::open_with(far.listed(manifest), Some(&known), folder.options());
                    let fitting = now.and_then(|now| fits(&now));
                    refused = fitting.is_err();
                    fitting?;
                    manifest.files.push(sent.clone());
                    Ok(())
                });
                // Of what the store did not answer it is not known whether the manifest names the file.
                if refused {
                    far.take_back(&sent);
                }
                published.map(|()| FileSummary { rows, file_bytes })
            }
        }
    }
}

/// A folder that was made for rows, and goes if they do not come and no other has put anything into it.
#[derive(Debug)]
struct NewFolder(Option<PathBuf>);

impl NewFolder {
    /// Makes a folder if it is missing.
    fn make(path: &Path) -> Result<Self> {
        if path.is_dir() {
            return Ok(Self(None));
        }
        std::fs::create_dir_all(path).map_err(|e| IoError::os(path, "create", e))?;
        // Rows that were said to be there must not be lost with the folder's name.
        if let Some(parent) = path.canonicalize().ok().as_deref().and_then(Path::parent) {
            sync_folder(parent)?;
        }
        Ok(Self(Some(path.to_path_buf())))
    }

    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // Not if it has files, of whomever.
            let _ = std::fs::remove_dir(path);
        }
    }
}

/// How messages name a file that has no name yet.
const NEW_ROWS: &str = "the rows to append";
