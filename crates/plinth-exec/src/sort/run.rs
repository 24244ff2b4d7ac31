//! A sorted run in a scratch file: pieces, each the body and then the header of a message as Arrow's files have them.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::reader::read_record_batch;
use arrow_ipc::root_as_message;
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions};
use arrow_row::Rows;
use arrow_schema::SchemaRef;
use plinth_io::Spool;

use super::gathered::bytes_of;
use super::{Keys, Sort};
use crate::error::{ExecError, Result};

/// A piece of a run.
struct Piece {
    place: Range<u64>,
    /// Of its bytes, those of the body.
    body: usize,
}

/// Rows in order, in a file that is gone with the run.
pub(super) struct Run {
    spool: Spool,
    schema: SchemaRef,
    pieces: VecDeque<Piece>,
    bytes: u64,
    rows: usize,
    largest: usize,
    key: usize,
}

impl Run {
    /// Bytes of its file.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes that its largest piece takes in memory, with its keys.
    pub(super) fn largest(&self) -> usize {
        self.largest
    }

    /// Bytes of a key, on average.
    pub(super) fn key(&self) -> usize {
        self.key
    }

    /// The next piece's rows and their keys.
    pub(super) fn next(&mut self, keys: &Keys) -> Result<Option<(RecordBatch, Rows)>> {
        let Some(Piece { place, body }) = self.pieces.pop_front() else { return Ok(None) };
        let bytes = self.spool.read(&place)?;
        let damaged = |what: &str| ExecError::internal(format!("a piece of a run {what}"));
        let header = bytes.as_slice().get(body..).ok_or_else(|| damaged("is shorter than it was"))?;
        let message = root_as_message(header).map_err(|error| damaged(&error.to_string()))?;
        let batch = message.header_as_record_batch().ok_or_else(|| damaged("has no rows"))?;
        let body = bytes.slice_with_length(0, body);
        let schema = Arc::clone(&self.schema);
        let batch = read_record_batch(&body, batch, schema, &HashMap::new(), None, &message.version())?;
        let keys = keys.make(&batch)?;
        Ok(Some((batch, keys)))
    }
}

/// Writes a run.
pub(super) struct Writer {
    run: Run,
    options: IpcWriteOptions,
    context: IpcWriteContext,
}

impl Writer {
    /// Of rows whose keys take so many bytes on average.
    pub(super) fn new(sort: &Sort, key: usize) -> Result<Self> {
        let options = IpcWriteOptions::default().try_with_compression(sort.compression)?;
        let run = Run {
            spool: Spool::new(&sort.folder),
            schema: Arc::clone(&sort.schema),
            pieces: VecDeque::new(),
            bytes: 0,
            rows: 0,
            largest: 0,
            key,
        };
        Ok(Self { run, options, context: IpcWriteContext::default() })
    }

    /// Writes rows as a piece.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut dictionaries = DictionaryTracker::new(true);
        let generator = IpcDataGenerator::default();
        let (dictionary, piece) = generator.encode(batch, &mut dictionaries, &self.options, &mut self.context)?;
        if !dictionary.is_empty() {
            return Err(ExecError::internal("a run of rows with dictionaries"));
        }
        let body = self.run.spool.append(&piece.arrow_data)?;
        let header = self.run.spool.append(&piece.ipc_message)?;
        self.run.pieces.push_back(Piece { place: body.start..header.end, body: piece.arrow_data.len() });
        self.run.bytes = header.end;
        self.run.rows += batch.num_rows();
        let bytes = bytes_of(batch) + batch.num_rows() * (self.run.key + size_of::<usize>());
        self.run.largest = self.run.largest.max(bytes);
        Ok(())
    }

    pub(super) fn finish(self) -> Run {
        self.run
    }
}
