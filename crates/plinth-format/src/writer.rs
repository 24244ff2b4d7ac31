//! Writing a file: rows gather into row groups, columns are encoded in parallel, dictionaries are sorted at the end.
//!
//! A column whose values repeat is interned as it comes: its rows become provisional codes in a spool. When all rows
//! are in, or its dictionary is full, the distinct values are sorted, provisional codes become ranks, and the column's chunks
//! are written; rows after a full dictionary get the next one. Every other column is encoded and written row group by row group. Nothing depends on threads, memory or how rows were
//! batched, so the same rows and options give the same bytes.

mod chunk;
mod dictionary;
mod index;
mod layout;
mod precedent;
mod provisional;
mod share;
mod stream;
mod summary;
mod weigh;

use std::path::Path as FsPath;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_cast::can_cast_types;
use arrow_schema::{DataType, Schema};
use plinth_encoding::text::{compact, compact_batch};
use plinth_encoding::{Effort, EncodeOptions};
use plinth_io::{AtomicFile, Output, Reservation, Spool};
use plinth_profile::{Anchor, Profiler, Stage, scope};
use rayon::prelude::*;

use crate::error::{FormatError, Result};
use crate::footer::{Footer, HEADER_LEN, HEADER_MAGIC, write_tail};
use crate::meta::Section;
use crate::types::Tree;
use crate::wire::checksum;
use chunk::EncodedChunk;
use layout::Layout;
pub use share::Charge;
use stream::{ColumnWriter, StreamWriter};
pub(crate) use weigh::weigh;

/// How to write a file. Everything but `threads`, `replace`, `cancelled` and whose memory is taken changes the bytes;
/// nothing else does.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// Size against speed.
    pub effort: Effort,
    /// Most rows of a row group (default 131,072).
    pub row_group_rows: usize,
    /// Bytes of rows in memory at which a row group ends before it has all its rows (default 128 MiB).
    pub row_group_bytes: u64,
    /// Most rows of a block; fewer when a column's values are large (default 8,192).
    pub block_rows: usize,
    /// Most distinct values of a dictionary (default 4 Mi): one that has more is closed, and the next row group has another.
    pub dictionary_values: usize,
    /// Most bytes of distinct values of a dictionary (default 64 MiB).
    pub dictionary_bytes: usize,
    /// Most bytes that all dictionaries take together, at most while they grow and when they are sorted; beyond it the
    /// largest is closed first, of equals the leftmost (default 384 MiB).
    pub dictionary_total_bytes: usize,
    /// Columns that get postings: for each of their values the rows that hold it. They get a dictionary, whether that saves
    /// bytes or not (default: none).
    pub index: Vec<String>,
    /// Threads that encode (default: one a core).
    pub threads: usize,
    /// Whether an existing file may be replaced.
    pub replace: bool,
    /// Set from elsewhere to stop: the next call fails with [`FormatError::Cancelled`].
    pub cancelled: Arc<AtomicBool>,
    /// Whose memory the writer takes ([`WriterOptions::charged_to`]); not counted if not said.
    pub charge: Option<Charge>,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            effort: Effort::default(),
            row_group_rows: 131_072,
            row_group_bytes: 128 << 20,
            block_rows: 8_192,
            dictionary_values: 4 << 20,
            dictionary_bytes: 64 << 20,
            dictionary_total_bytes: 384 << 20,
            index: Vec::new(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            replace: false,
            cancelled: Arc::default(),
            charge: None,
        }
    }
}

impl WriterOptions {
    fn encoding(&self) -> EncodeOptions {
        EncodeOptions { effort: self.effort }
    }

    fn check_cancelled(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) { Err(FormatError::Cancelled) } else { Ok(()) }
    }
}

/// Rows of a row group, at most, whatever the options.
const MOST_ROW_GROUP_ROWS: usize = 1 << 30;

/// Bytes that wait in all lanes together, in full row groups: beyond that the fullest lane is written early.
const LANES_FULL: u64 = 4;

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSummary {
    /// Rows.
    pub rows: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
}

/// Writes a file under a temporary name; [`Writer::finish`] syncs it and gives it its own. Dropped before that, it
/// leaves nothing behind. Or writes it wherever bytes can be appended ([`Writer::to_output`]).
#[derive(Debug)]
pub struct Writer<O: Output = AtomicFile> {
    output: O,
    spool: Spool,
    tree: Tree,
    columns: Vec<ColumnWriter>,
    options: WriterOptions,
    pool: rayon::ThreadPool,
    lanes: Vec<Lane>,
    layout: Option<Layout>,
    /// In the order written.
    row_groups: Vec<RowGroup>,
    rows: u64,
    /// Given back when the file is complete.
    _memory: Option<Reservation>,
}

/// Rows that wait for their row group to fill.
#[derive(Debug, Default)]
struct Lane {
    batches: Vec<RecordBatch>,
    rows: usize,
    bytes: u64,
}

/// A row group that was written.
#[derive(Clone, Copy, Debug)]
struct RowGroup {
    lane: usize,
    rows: u64,
}

impl Writer {
    /// Checks that every column can be stored, and creates the temporary file beside `path`.
    ///
    /// # Errors
    /// [`FormatError::Unsupported`] names the column; [`FormatError::InvalidArgument`] if a column to be indexed can't be;
    /// [`FormatError::Io`] if the file exists and may not be replaced,
    /// or its folder can't be written to; [`FormatError::Memory`] if the budget has not enough for a writer.
    pub fn create(path: impl AsRef<FsPath>, schema: &Schema, options: WriterOptions) -> Result<Self> {
        let folder = match path.as_ref().parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => FsPath::new("."),
        };
        let replace = options.replace;
        Self::begin(|| Ok(AtomicFile::create(&path, replace)?), folder, schema, options)
    }

    /// Completes the file: sorts the dictionaries, writes the columns that waited for them, the metadata and the
    /// footer, syncs, and gives the file its name.
    ///
    /// # Errors
    /// If the device is full or refuses, or writing was cancelled; nothing is left then.
    pub fn finish(self) -> Result<FileSummary> {
        let (file, rows) = self.complete()?;
        Ok(FileSummary { rows, file_bytes: file.commit()? })
    }
}

impl<O: Output> Writer<O> {
    /// Writes to an output of which nothing is written yet, with scratch files in a folder.
    ///
    /// # Errors
    /// As [`Writer::create`].
    pub fn to_output(output: O, scratch: impl AsRef<FsPath>, schema: &Schema, options: WriterOptions) -> Result<Self> {
        Self::begin(|| Ok(output), scratch.as_ref(), schema, options)
    }

    fn begin(
        output: impl FnOnce() -> Result<O>,
        scratch: &FsPath,
        schema: &Schema,
        options: WriterOptions,
    ) -> Result<Self> {
        let options = WriterOptions {
            row_group_rows: options.row_group_rows.clamp(1, MOST_ROW_GROUP_ROWS),
            row_group_bytes: options.row_group_bytes.max(1),
            ..options
        };
        let tree = Tree::from_arrow(schema)?;
        for (field, node) in schema.fields().iter().zip(&tree.columns) {
            let (from, to) = (field.data_type(), node.arrow_type());
            if from != &to && !can_cast_types(from, &to) {
                let what = format!("the type {from} can't be stored; cast it to {to} or leave the column out");
                return Err(FormatError::Unsupported { column: field.name().clone(), what });
            }
        }
        index::check(&tree, &options.index)?;
        let memory = options.charge.as_ref().map(|charge| charge.reserve(&options)).transpose()?;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(options.threads.max(1))
            .thread_name(|i| format!("plinth-encode-{i}"))
            .build()
            .map_err(|e| FormatError::InvalidArgument(format!("cannot start {} threads: {e}", options.threads)))?;
        let mut output = output()?;
        output.write_all(&HEADER_MAGIC)?;
        output.pad_to(HEADER_LEN)?;
        Ok(Self {
            spool: Spool::new(scratch),
            columns: tree
                .columns
                .iter()
                .map(|node| ColumnWriter::new(node, options.index.contains(&node.name)))
                .collect(),
            lanes: Vec::new(),
            output,
            tree,
            options,
            pool,
            layout: None,
            row_groups: Vec::new(),
            rows: 0,
            _memory: memory,
        })
    }

    /// Appends rows. Columns match by position and must have the types given to [`Writer::create`], or those types
    /// encoded as dictionaries or runs.
    ///
    /// # Errors
    /// If the batch does not fit the schema, the device is full, or writing was cancelled. The writer can only be
    /// dropped then.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.write_lane(0, batch)
    }

    /// Appends rows to one of several lanes, numbered from 0. The file holds the rows of lane 0 first, then those of
    /// lane 1, and so on, whatever the order they come in: the partitions of a query can be written side by side and
    /// still lie one after the other. Each lane fills row groups of its own, smaller ones if there are many lanes. Where
    /// there are several, the order they come in shows in the bytes of the file, but not in its rows.
    ///
    /// # Errors
    /// As [`Writer::write`].
    pub fn write_lane(&mut self, lane: usize, batch: &RecordBatch) -> Result<()> {
        if batch.num_columns() != self.columns.len() {
            let what = format!("a batch of {} columns for a file of {}", batch.num_columns(), self.columns.len());
            return Err(FormatError::InvalidArgument(what));
        }
        if self.columns.is_empty() && batch.num_rows() > 0 {
            return Err(FormatError::InvalidArgument("a file without columns can't hold rows".into()));
        }
        for (column, array) in self.columns.iter().zip(batch.columns()) {
            column.check(array)?;
        }
        if self.lanes.len() <= lane {
            self.lanes.resize_with(lane + 1, Lane::default);
        }
        let build = scope(Stage::Build);
        build.rows(batch.num_rows() as u64);
        let mut from = 0;
        while from < batch.num_rows() {
            // Until the layout is planned, only as much is taken as planning looks at.
            let (most_rows, most_bytes) = match self.layout {
                Some(layout) => (layout.row_group_rows, self.options.row_group_bytes),
                None => (layout::SAMPLE_ROWS, layout::SAMPLE_BYTES),
            };
            let waiting = self.lanes.get_mut(lane).ok_or_else(|| no_lane(lane))?;
            let full = waiting.take(batch, &mut from, most_rows, most_bytes)?;
            if full && self.layout.is_none() {
                self.plan(lane);
            } else if full {
                self.write_row_group(lane)?;
            }
        }
        if lane > 0 || self.lanes.len() > 1 {
            self.relieve()?;
        }
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    /// The schema the file will have: what [`crate::File::schema`] says of it.
    pub fn schema(&self) -> Schema {
        self.tree.arrow_schema()
    }

    /// Rows written so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Decides how many rows blocks and row groups hold, by what waits in a lane.
    fn plan(&mut self, lane: usize) {
        let sample = self.lanes.get(lane);
        let (batches, rows) = sample.map_or((&[][..], 0), |lane| (lane.batches.as_slice(), lane.rows));
        let width = |column: usize| batches.iter().map(|batch| weigh(batch.column(column), 0..batch.num_rows())).sum();
        let widths: Vec<u64> = (0..self.columns.len()).map(width).collect();
        self.layout = Some(Layout::plan(&widths, rows, &self.options));
    }

    /// Keeps what waits in many lanes bounded.
    fn relieve(&mut self) -> Result<()> {
        while self.layout.is_some()
            && self.lanes.iter().map(|lane| lane.bytes).sum::<u64>()
                > LANES_FULL.saturating_mul(self.options.row_group_bytes)
        {
            let fullest = (0..self.lanes.len()).max_by_key(|&lane| self.lanes[lane].bytes).unwrap_or(0);
            self.write_row_group(fullest)?;
        }
        Ok(())
    }

    /// Encodes a lane's rows and writes what need not wait for a dictionary.
    fn write_row_group(&mut self, lane: usize) -> Result<()> {
        self.options.check_cancelled()?;
        let layout = self.layout.ok_or_else(|| FormatError::internal("a row group before its layout"))?;
        let waiting = self.lanes.get_mut(lane).ok_or_else(|| no_lane(lane))?;
        let Lane { batches, rows, .. } = std::mem::take(waiting);
        let mut pieces: Vec<Vec<ArrayRef>> = vec![Vec::with_capacity(batches.len()); self.columns.len()];
        for batch in batches {
            for (pieces, array) in pieces.iter_mut().zip(batch.columns()) {
                pieces.push(Arc::clone(array));
            }
        }
        let (columns, options) = (&mut self.columns, &self.options);
        let profiler = Profiler::current();
        let encode = |(column, pieces): (&mut ColumnWriter, Vec<ArrayRef>)| {
            let _build = profiler.scope(Stage::Build);
            column.encode(pieces, layout.block_rows, options)
        };
        let encoded: Vec<Vec<EncodedChunk>> = {
            let _join = scope(Stage::Join);
            self.pool.install(|| columns.par_iter_mut().zip(pieces).map(encode).collect::<Result<_>>())?
        };
        for (column, chunks) in self.columns.iter_mut().zip(encoded) {
            for (stream, chunk) in column.streams.iter_mut().zip(chunks) {
                stream.store(chunk, &mut self.output, &mut self.spool)?;
            }
        }
        self.row_groups.push(RowGroup { lane, rows: rows as u64 });
        let groups = self.row_groups.len();
        let mut full = dictionary::full(&mut self.columns, &self.options);
        if !full.is_empty() {
            // At once: a dictionary that no longer grows is only in the way of those that do.
            let (output, spool, options) = (&mut self.output, &self.spool, &self.options);
            let write = || dictionary::write_all(&mut full, groups, output, spool, options);
            on_threads(&self.pool, Stage::Intern, write)?;
            full.into_iter().for_each(StreamWriter::close_dictionary);
        }
        Ok(())
    }

    /// [`Writer::finish`] up to the last byte: the output, which is not synced, and the file's rows.
    ///
    /// # Errors
    /// As [`Writer::finish`].
    pub fn complete(mut self) -> Result<(O, u64)> {
        for lane in 0..self.lanes.len() {
            if self.lanes.get(lane).is_some_and(|waiting| waiting.rows > 0) {
                if self.layout.is_none() {
                    self.plan(lane);
                }
                self.write_row_group(lane)?;
            }
        }
        if self.layout.is_none() {
            self.plan(0);
        }
        let (output, spool, options) = (&mut self.output, &self.spool, &self.options);
        let mut waiting = dictionary::waiting(&mut self.columns);
        let groups = self.row_groups.len();
        on_threads(&self.pool, Stage::Intern, || dictionary::write_all(&mut waiting, groups, output, spool, options))?;

        // Written as they came, listed lane by lane.
        let mut order: Vec<usize> = (0..groups).collect();
        order.sort_by_key(|&group| self.row_groups[group].lane);
        let (columns, options) = (&mut self.columns, &self.options);
        let rows = |group: usize| self.row_groups[group].rows;
        let write = || index::write_all(columns, &order, rows, &mut self.output, options);
        on_threads(&self.pool, Stage::Build.of("postings"), write)?;
        let (mut streams, mut features) = (Vec::with_capacity(self.tree.streams()), 0);
        for stream in self.columns.iter_mut().flat_map(|column| &mut column.streams) {
            let summary = stream.summary(&order);
            let details = Some(summary.details.as_slice()).filter(|details| !details.is_empty());
            let details = details.map(|details| write_section(&mut self.output, details)).transpose()?;
            let bytes = stream.metadata(&order, summary, details)?;
            streams.push(write_section(&mut self.output, &bytes)?);
            features |= stream.features;
        }
        let footer = Footer {
            tree: self.tree,
            block_rows: self.layout.map_or(1, |layout| u32::try_from(layout.block_rows).unwrap_or(u32::MAX)),
            row_groups: order.iter().map(|&group| self.row_groups[group].rows).collect(),
            streams,
        };
        let footer = write_section(&mut self.output, &footer.write())?;
        self.output.write_all(&write_tail(&footer, features))?;
        self.options.check_cancelled()?;
        Ok((self.output, self.rows))
    }
}

impl Lane {
    /// Takes rows of a batch from a row on, moved past them; tells whether the lane is full: it holds so many rows, or
    /// so many bytes at a multiple of a few rows, whichever comes first.
    fn take(&mut self, batch: &RecordBatch, from: &mut usize, most_rows: usize, most_bytes: u64) -> Result<bool> {
        let start = *from;
        let most = most_rows.saturating_sub(self.rows).min(batch.num_rows() - start);
        let weigh =
            |rows: std::ops::Range<usize>| batch.columns().iter().map(|array| weigh(array, rows.clone())).sum::<u64>();
        let mut rows = most;
        let mut bytes = weigh(start..start + rows);
        if self.bytes + bytes >= most_bytes {
            // Rarely: where exactly is looked for step by step.
            (rows, bytes) = (0, 0);
            while rows < most && (self.bytes + bytes < most_bytes || !(self.rows + rows).is_multiple_of(layout::STEP)) {
                let step = (layout::STEP - (self.rows + rows) % layout::STEP).min(most - rows);
                bytes += weigh(start + rows..start + rows + step);
                rows += step;
            }
        }
        self.batches.push(own(&batch.slice(start, rows))?);
        self.rows += rows;
        self.bytes += bytes;
        *from += rows;
        Ok(self.rows >= most_rows || (self.bytes >= most_bytes && self.rows.is_multiple_of(layout::STEP)))
    }
}

fn no_lane(lane: usize) -> FormatError {
    FormatError::internal(format!("rows for lane {lane}, which there is none of"))
}

/// Rows that wait must not keep alive what they were selected from: views that refer to a small part of their buffers get
/// buffers of their own.
fn own(batch: &RecordBatch) -> Result<RecordBatch> {
    /// Bytes not worth copying for.
    const SPARE: usize = 64 << 10;
    let keeps = |buffers: &[Buffer]| buffers.iter().map(Buffer::len).sum::<usize>();
    let owned = |column: &ArrayRef| {
        let kept = match column.data_type() {
            DataType::Utf8View => keeps(column.as_string_view().data_buffers()),
            DataType::BinaryView => keeps(column.as_binary_view().data_buffers()),
            _ => 0,
        };
        let wasteful = kept > SPARE && kept as u64 / 2 > weigh(column, 0..column.len());
        if wasteful { compact(column) } else { Arc::clone(column) }
    };
    compact_batch(batch, owned).map_err(|error| FormatError::internal(error.to_string()))
}

/// Has the threads of a pool do something, and waits for it.
pub(crate) fn on_threads<T: Send>(
    pool: &rayon::ThreadPool,
    anchor: impl Into<Anchor>,
    work: impl FnOnce() -> T + Send,
) -> T {
    let (profiler, anchor) = (Profiler::current(), anchor.into());
    let _join = scope(Stage::Join);
    pool.install(|| {
        let _work = profiler.scope(anchor);
        work()
    })
}

/// Appends a checksummed section.
fn write_section(output: &mut dyn Output, bytes: &[u8]) -> Result<Section> {
    let offset = output.position();
    let len = u32::try_from(bytes.len())
        .map_err(|_| FormatError::InvalidArgument("metadata of a column exceeds 4 GiB; write smaller files".into()))?;
    output.write_all(bytes)?;
    Ok(Section { offset, len, checksum: checksum(bytes) })
}

/// Whether an array of one type holds values of another, as they are or encoded as a dictionary or runs.
fn holds(array: &DataType, values: &DataType) -> bool {
    match array {
        _ if array == values => true,
        DataType::Dictionary(_, inner) => holds(inner, values),
        DataType::RunEndEncoded(_, inner) => holds(inner.data_type(), values),
        _ => false,
    }
}
