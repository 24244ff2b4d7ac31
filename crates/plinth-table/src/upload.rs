//! A file of an object store: written on this machine, then sent.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use plinth_format::{FileSummary, Result, Writer, WriterOptions};
use plinth_io::{AtomicFile, Objects};

use crate::scratch::Scratch;

/// Its name on this machine.
const NAME: &str = "rows.plinth";

/// An object while it is written. Dropped before it was sent, it leaves nothing behind.
#[derive(Debug)]
pub struct ObjectWriter {
    writer: Writer,
    /// Last, as it is dropped after the writer's file has gone.
    to: Destination,
}

/// A complete file that was not sent yet.
#[derive(Debug)]
pub struct CompleteObject {
    file: AtomicFile,
    rows: u64,
    to: Destination,
}

#[derive(Debug)]
struct Destination {
    stores: Arc<dyn Objects>,
    url: PathBuf,
    replace: bool,
    scratch: Scratch,
}

impl ObjectWriter {
    /// Begins a file where the system keeps scratch files, to be sent to a URL.
    ///
    /// # Errors
    /// If there is no room on this machine, or the columns can't be stored.
    pub fn create(stores: Arc<dyn Objects>, url: PathBuf, schema: &Schema, options: WriterOptions) -> Result<Self> {
        let scratch = Scratch::make()?;
        let replace = options.replace;
        let writer = Writer::create(scratch.path().join(NAME), schema, options)?;
        Ok(Self { writer, to: Destination { stores, url, replace, scratch } })
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
    /// As [`ObjectWriter::write`].
    pub fn write_lane(&mut self, lane: usize, batch: &RecordBatch) -> Result<()> {
        self.writer.write_lane(lane, batch)
    }

    /// Rows written so far.
    pub fn rows(&self) -> u64 {
        self.writer.rows()
    }

    /// Completes the file, which takes long, without sending it.
    ///
    /// # Errors
    /// If the device is full or refuses, or writing was cancelled; nothing is left then.
    pub fn complete(self) -> Result<CompleteObject> {
        let (file, rows) = self.writer.complete()?;
        Ok(CompleteObject { file, rows, to: self.to })
    }
}

impl CompleteObject {
    /// Sends the file.
    ///
    /// # Errors
    /// If there is an object of that name and it was not to be replaced, or the store refuses or does not answer.
    pub fn send(self) -> Result<FileSummary> {
        let Self { file, rows, to: Destination { stores, url, replace, scratch } } = self;
        let file_bytes = file.commit()?;
        stores.upload(&scratch.path().join(NAME), &url.display().to_string(), replace)?;
        Ok(FileSummary { rows, file_bytes })
    }
}
