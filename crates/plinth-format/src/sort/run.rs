//! Runs: sorted rows in a scratch file, in chunks small enough that one of each run fits into memory.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_buffer::Buffer;
use arrow_ipc::writer::{DictionaryTracker, EncodedData, IpcDataGenerator, IpcWriteContext, IpcWriteOptions};
use arrow_ipc::{CompressionType, MetadataVersion, root_as_message};
use arrow_select::interleave::interleave;
use plinth_io::Spool;
use plinth_profile::Stage;
use rayon::prelude::*;

use super::keys::{self, Keys, Place};
use super::{Shared, SortOptions, fail};
use crate::error::Result;
use crate::shred::normalise;
use crate::writer::{on_threads, weigh};

/// Chunks of about this many bytes, fewer if memory is short.
const CHUNK_BYTES: u64 = 1 << 20;

/// Runs to be merged at once if chunks can be small enough for it: more passes cost more than smaller reads.
const FAN_IN: u64 = 256;

/// Bytes of a chunk.
pub(super) fn chunk_bytes(options: &SortOptions) -> u64 {
    (options.merge_bytes / 2 / FAN_IN).clamp(16 << 10, CHUNK_BYTES)
}

/// Runs that can be merged at once: a chunk of each, and what is made of them.
pub(super) fn fan_in(options: &SortOptions) -> usize {
    usize::try_from(options.merge_bytes / 2 / chunk_bytes(options)).unwrap_or(usize::MAX).max(4)
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

/// A chunk as it goes into the scratch file.
pub(super) struct Encoded(EncodedData);

/// Encodes rows as a chunk, lightly compressed: what a device takes and gives back costs more.
pub(super) fn encode(batch: &RecordBatch) -> Result<Encoded> {
    let options = IpcWriteOptions::try_new(64, false, MetadataVersion::V5)
        .and_then(|options| options.try_with_compression(Some(CompressionType::LZ4_FRAME)))
        .map_err(fail)?;
    let (_, encoded) = IpcDataGenerator::default()
        .encode(batch, &mut DictionaryTracker::new(false), &options, &mut IpcWriteContext::default())
        .map_err(fail)?;
    Ok(Encoded(encoded))
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

    /// Appends a chunk.
    pub(super) fn write(&mut self, Encoded(chunk): Encoded) -> Result<()> {
        self.shared.check_cancelled()?;
        let message = self.spool.append(&chunk.ipc_message)?;
        let buffers = self.spool.append(&chunk.arrow_data)?;
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

/// Sorts what has gathered and writes it as a run. A few chunks are made side by side while those before are written.
pub(super) fn spill(shared: &Shared, gathered: Vec<(RecordBatch, Keys)>, mut spool: Spool) -> Result<(Run, Spool)> {
    let order = on_threads(&shared.pool, Stage::Sort, || keys::order(&gathered));
    let batches: Vec<&RecordBatch> = gathered.iter().map(|(batch, _)| batch).collect();
    let mut writer = RunWriter::new(shared, &mut spool);
    let pieces: Vec<_> = pieces(&order, &batches, chunk_bytes(&shared.options)).collect();
    let piece = |places: &&[Place]| {
        let _encode = shared.profiler.scope(Stage::Encode.of("scratch"));
        encode_piece(shared, &batches, places)
    };
    let encode = |pieces: &[&[Place]]| -> Result<Vec<Encoded>> {
        let encoded: Vec<Vec<Encoded>> = pieces.par_iter().map(piece).collect::<Result<_>>()?;
        Ok(encoded.into_iter().flatten().collect())
    };
    let mut ready: Vec<Encoded> = Vec::new();
    for pieces in pieces.chunks(4 * shared.pool.current_num_threads()) {
        let write = || {
            let _write = shared.profiler.scope(Stage::Sort);
            ready.into_iter().try_for_each(|chunk| writer.write(chunk))
        };
        let (written, next) = on_threads(&shared.pool, Stage::Sort, || rayon::join(write, || encode(pieces)));
        written?;
        ready = next?;
    }
    ready.into_iter().try_for_each(|chunk| writer.write(chunk))?;
    let run = writer.finish();
    Ok((run, spool))
}

/// A piece as chunks: one, or several where its rows are far wider than the average.
fn encode_piece(shared: &Shared, batches: &[&RecordBatch], places: &[Place]) -> Result<Vec<Encoded>> {
    let batch = collect(shared, batches, places)?;
    let bytes: u64 = batch.columns().iter().map(|column| weigh(column, 0..batch.num_rows())).sum();
    if bytes <= 2 * chunk_bytes(&shared.options) || places.len() < 2 {
        return Ok(vec![encode(&batch)?]);
    }
    drop(batch);
    let (first, second) = places.split_at(places.len() / 2);
    let mut chunks = encode_piece(shared, batches, first)?;
    chunks.append(&mut encode_piece(shared, batches, second)?);
    Ok(chunks)
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

/// The rows at these places as one batch of compact types.
pub(super) fn collect(shared: &Shared, batches: &[&RecordBatch], places: &[Place]) -> Result<RecordBatch> {
    let columns = (0..shared.schema.fields().len()).map(|at| column(shared, batches, places, at));
    assemble(shared, columns.collect::<Result<_>>()?, places.len())
}

/// As [`collect`], columns side by side.
pub(super) fn collect_side_by_side(shared: &Shared, batches: &[&RecordBatch], places: &[Place]) -> Result<RecordBatch> {
    let columns = on_threads(&shared.pool, Stage::Gather, || {
        (0..shared.schema.fields().len())
            .into_par_iter()
            .map(|at| {
                let _gather = shared.profiler.scope(Stage::Gather);
                column(shared, batches, places, at)
            })
            .collect::<Result<_>>()
    })?;
    assemble(shared, columns, places.len())
}

fn column(shared: &Shared, batches: &[&RecordBatch], places: &[Place], at: usize) -> Result<ArrayRef> {
    let columns: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(at).as_ref()).collect();
    interleave(&columns, places).and_then(|rows| normalise(&rows, shared.schema.field(at).data_type())).map_err(fail)
}

fn assemble(shared: &Shared, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(&shared.schema), columns, &options).map_err(fail)
}
