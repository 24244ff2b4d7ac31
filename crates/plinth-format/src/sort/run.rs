//! Runs: sorted rows in a scratch file, in chunks small enough that one of each run fits into memory.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_buffer::Buffer;
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions};
use arrow_ipc::{MetadataVersion, root_as_message};
use arrow_select::interleave::interleave;
use plinth_io::Spool;
use rayon::prelude::*;

use super::keys::Place;
use super::{Shared, SortOptions, fail};
use crate::error::Result;
use crate::shred::normalise;
use crate::writer::weigh;

/// Chunks of about this many bytes, less if memory is short.
const CHUNK_BYTES: u64 = 1 << 20;

/// Runs that are merged at once, at least, whatever the memory.
const LEAST_FAN_IN: u64 = 8;

/// Bytes of a chunk.
pub(super) fn chunk_bytes(options: &SortOptions) -> u64 {
    CHUNK_BYTES.min(options.merge_bytes / (2 * LEAST_FAN_IN)).max(1 << 10)
}

/// Runs that can be merged at once: a chunk of each, and what is made of them.
pub(super) fn fan_in(options: &SortOptions) -> usize {
    let chunks = (options.merge_bytes / 2 / chunk_bytes(options)).max(LEAST_FAN_IN);
    usize::try_from(chunks).unwrap_or(usize::MAX)
}

/// Where the chunks of a run are.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) chunks: std::vec::IntoIter<Chunk>,
}

/// A chunk in the scratch file: a message of Arrow's interprocess format and the buffers it describes.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    message: Range<u64>,
    buffers: Range<u64>,
}

/// Writes a run.
pub(super) struct RunWriter<'a> {
    shared: &'a Shared,
    spool: &'a mut Spool,
    chunks: Vec<Chunk>,
}

impl<'a> RunWriter<'a> {
    pub(super) fn new(shared: &'a Shared, spool: &'a mut Spool) -> Self {
        Self { shared, spool, chunks: Vec::new() }
    }

    /// Appends rows as a chunk.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.shared.check_cancelled()?;
        let options = IpcWriteOptions::try_new(64, false, MetadataVersion::V5).map_err(fail)?;
        let (_, encoded) = IpcDataGenerator::default()
            .encode(batch, &mut DictionaryTracker::new(false), &options, &mut IpcWriteContext::default())
            .map_err(fail)?;
        let message = self.spool.append(&encoded.ipc_message)?;
        let buffers = self.spool.append(&encoded.arrow_data)?;
        self.chunks.push(Chunk { message, buffers });
        Ok(())
    }

    pub(super) fn finish(self) -> Run {
        Run { chunks: self.chunks.into_iter() }
    }
}

impl Chunk {
    /// Its rows.
    pub(super) fn read(&self, shared: &Shared, spool: &Spool) -> Result<RecordBatch> {
        let message = spool.read(&self.message)?;
        let buffers: Buffer = spool.read(&self.buffers)?;
        let message = root_as_message(&message).map_err(fail)?;
        let header = message.header_as_record_batch().ok_or_else(|| fail("the scratch file holds no rows"))?;
        let (schema, none) = (Arc::clone(&shared.schema), HashMap::new());
        arrow_ipc::reader::read_record_batch(&buffers, header, schema, &none, None, &message.version()).map_err(fail)
    }
}

/// Divides rows in order into pieces of about so many bytes.
pub(super) fn pieces<'a>(
    places: &'a [Place],
    batches: &[&RecordBatch],
    bytes: u64,
) -> impl Iterator<Item = &'a [Place]> {
    let weight =
        |batch: &&RecordBatch| -> u64 { batch.columns().iter().map(|column| weigh(column, 0..batch.num_rows())).sum() };
    let total: u64 = batches.iter().map(weight).sum();
    let row = (total / places.len().max(1) as u64).max(1);
    places.chunks(usize::try_from(bytes / row).unwrap_or(usize::MAX).max(1))
}

/// The rows at these places as one batch of compact types, columns in parallel.
pub(super) fn collect(shared: &Shared, batches: &[&RecordBatch], places: &[Place]) -> Result<RecordBatch> {
    let gather = |(at, field): (usize, &Arc<arrow_schema::Field>)| {
        let columns: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(at).as_ref()).collect();
        normalise(&interleave(&columns, places)?, field.data_type())
    };
    let fields: Vec<_> = shared.schema.fields().iter().enumerate().collect();
    let columns: std::result::Result<Vec<ArrayRef>, _> =
        shared.pool.install(|| fields.into_par_iter().map(gather).collect());
    let options = RecordBatchOptions::new().with_row_count(Some(places.len()));
    RecordBatch::try_new_with_options(Arc::clone(&shared.schema), columns.map_err(fail)?, &options).map_err(fail)
}
