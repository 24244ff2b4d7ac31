//! Rows in an order, however many: gathered in memory, written to scratch files as sorted runs where memory ends, and merged.
//!
//! Keys are bytes that compare as the order has them ([`arrow_row`]); rows stay columns. What is held is counted before it is gathered:
//! batches (a buffer that several share once), their keys, and the places that are sorted. A run is written in pieces of so many bytes,
//! not rows, so that merging takes a known amount for each run; where there is room for few runs, they are merged in several passes.
//! Thus an order needs little more than the largest row: where memory is refused, it writes or takes what it can't do without.

mod gathered;
mod merge;
mod run;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{DataType, SchemaRef};

use crate::error::{ExecError, Result};
use crate::top::OrderColumn;
use gathered::{Gathered, Part, Places};
use merge::Merge;
use run::{Run, Writer};

/// Memory as its source counts it.
pub trait Memory: Send {
    /// Holds so many bytes from now on, if they may be had. Nothing has changed where not.
    fn try_resize(&mut self, bytes: usize) -> bool;

    /// Holds so many bytes from now on: the sort can't get on with less.
    fn resize(&mut self, bytes: usize);
}

/// The values of a batch that it is sorted by, a column for each of the order.
pub type KeysOf = Arc<dyn Fn(&RecordBatch) -> Result<Vec<ArrayRef>> + Send + Sync>;

/// What is sorted, and how.
pub struct Sort {
    /// The columns of rows.
    pub schema: SchemaRef,
    /// The order.
    pub order: Vec<OrderColumn>,
    /// The order's columns.
    pub keys: KeysOf,
    /// Of all rows the first so many.
    pub fetch: Option<usize>,
    /// Rows of a batch that comes out, at most.
    pub rows: usize,
    /// Bytes of a piece of a run and of a batch that comes out, about.
    pub piece: usize,
    /// Bytes that merging takes at most, unless two runs need more: what gets the rows needs memory, too.
    pub merging: usize,
    /// Where runs are written.
    pub folder: PathBuf,
    /// How they are.
    pub compression: Option<arrow_ipc::CompressionType>,
    /// Whether the query was cancelled.
    pub cancelled: Arc<AtomicBool>,
}

impl Sort {
    /// Whether rows of a type can be sorted here: runs have no dictionaries, and text within lists would be written with all that it shares.
    pub fn is_known(data_type: &DataType) -> bool {
        match data_type {
            DataType::Dictionary(..) | DataType::RunEndEncoded(..) | DataType::Union(..) | DataType::Map(..) => false,
            DataType::List(field)
            | DataType::LargeList(field)
            | DataType::FixedSizeList(field, _)
            | DataType::ListView(field)
            | DataType::LargeListView(field) => Self::is_known_within(field.data_type()),
            DataType::Struct(fields) => fields.iter().all(|field| Self::is_known_within(field.data_type())),
            _ => true,
        }
    }

    fn is_known_within(data_type: &DataType) -> bool {
        !matches!(data_type, DataType::Utf8View | DataType::BinaryView) && Self::is_known(data_type)
    }

    /// Whether rows can be sorted by values of a type.
    pub fn is_key(data_type: &DataType) -> bool {
        RowConverter::supports_fields(&[SortField::new(data_type.clone())])
    }

    fn check(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(ExecError::source("the query was cancelled"));
        }
        Ok(())
    }
}

/// How keys are made.
struct Keys {
    of: KeysOf,
    converter: RowConverter,
}

impl Keys {
    fn new(sort: &Sort) -> Result<Self> {
        let field = |column: &OrderColumn| SortField::new_with_options(column.data_type.clone(), column.options);
        let converter = RowConverter::new(sort.order.iter().map(field).collect())?;
        Ok(Self { of: Arc::clone(&sort.keys), converter })
    }

    fn make(&self, batch: &RecordBatch) -> Result<Rows> {
        let keys = self.converter.convert_columns(&(self.of)(batch)?)?;
        if keys.num_rows() != batch.num_rows() {
            return Err(ExecError::internal(format!("{} keys of {} rows", keys.num_rows(), batch.num_rows())));
        }
        Ok(keys)
    }
}

/// What was written to scratch files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Runs.
    pub runs: usize,
    /// Bytes.
    pub bytes: u64,
    /// Rows, each as often as it was written.
    pub rows: usize,
}

/// Takes rows as they come.
pub struct Sorter<M> {
    sort: Arc<Sort>,
    keys: Keys,
    memory: M,
    gathered: Gathered,
    runs: Vec<Run>,
    written: Written,
}

/// Bytes that are taken in at once, in pieces: more are cut first, so that what is gathered meets the limit in small steps.
const PIECES_AT_ONCE: usize = 4;

/// Pieces that are on their way while a run is written: what is picked, and what becomes of it in the file.
const PIECES_WRITTEN: usize = 3;

impl<M: Memory> Sorter<M> {
    /// No rows yet.
    ///
    /// # Errors
    /// If values of a column have no order.
    pub fn new(sort: Arc<Sort>, memory: M) -> Result<Self> {
        let (keys, gathered) = (Keys::new(&sort)?, Gathered::default());
        Ok(Self { sort, keys, memory, gathered, runs: Vec::new(), written: Written::default() })
    }

    /// Takes rows as long as there is memory; gives back those for which [`Sorter::push`] would have to write some.
    ///
    /// # Errors
    /// If they have other columns.
    pub fn offer(&mut self, batch: &RecordBatch) -> Result<Option<RecordBatch>> {
        let rows = self.rows_at_once(batch);
        for from in (0..batch.num_rows()).step_by(rows) {
            let part = batch.slice(from, rows.min(batch.num_rows() - from));
            let part = Part::new(part, &self.keys, self.gathered.buffers())?;
            if !self.hold(&part) {
                return Ok(Some(batch.slice(from, batch.num_rows() - from)));
            }
            self.gathered.push(part)?;
        }
        Ok(None)
    }

    /// Takes rows, whatever there is of memory.
    ///
    /// # Errors
    /// If they have other columns, or a run can't be written.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let rows = self.rows_at_once(batch);
        for from in (0..batch.num_rows()).step_by(rows) {
            self.push_part(batch.slice(from, rows.min(batch.num_rows() - from)))?;
        }
        Ok(())
    }

    fn rows_at_once(&self, batch: &RecordBatch) -> usize {
        let most = self.sort.piece.saturating_mul(PIECES_AT_ONCE);
        let parts = gathered::bytes_of(batch).div_ceil(most.max(1)).clamp(1, batch.num_rows().max(1));
        batch.num_rows().div_ceil(parts).max(1)
    }

    fn push_part(&mut self, batch: RecordBatch) -> Result<()> {
        let mut part = Part::new(batch, &self.keys, self.gathered.buffers())?;
        if self.hold(&part) {
            return self.gathered.push(part);
        }
        // Its buffers may be those of others, too: without these they are its own.
        part = part.alone()?;
        if !(self.gathered.compact()? && self.hold(&part)) {
            self.spill()?;
            if !self.hold(&part) {
                self.memory.resize(self.with(&part));
                self.gathered.push(part)?;
                return self.spill();
            }
        }
        self.gathered.push(part)
    }

    /// Whether there is memory for more rows.
    fn hold(&mut self, part: &Part) -> bool {
        let bytes = self.with(part);
        self.memory.try_resize(bytes)
    }

    /// What is held once some rows are gathered, too.
    fn with(&self, part: &Part) -> usize {
        let writing = self.sort.piece.saturating_mul(PIECES_WRITTEN);
        self.gathered.bytes().saturating_add(part.bytes()).saturating_add(writing)
    }

    /// Writes what is gathered as a run.
    fn spill(&mut self) -> Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let mut sorted = std::mem::take(&mut self.gathered).sorted(&self.sort)?;
        let run = write(&self.sort, sorted.key(), || sorted.next(&self.sort))?;
        self.written.add(&run);
        self.runs.push(run);
        drop(sorted);
        self.memory.resize(0);
        Ok(())
    }

    /// All rows in order.
    ///
    /// # Errors
    /// If a run can't be written or read.
    pub fn finish(mut self) -> Result<Sorted<M>> {
        if self.runs.is_empty() {
            let rows = Source::Memory(std::mem::take(&mut self.gathered).sorted(&self.sort)?);
            return Ok(Sorted {
                left: self.sort.fetch,
                sort: self.sort,
                rows,
                memory: self.memory,
                written: self.written,
            });
        }
        self.spill()?;
        let mut runs = std::mem::take(&mut self.runs);
        loop {
            let fan_in = self.room_for(&runs);
            // The passes before the last take as many as leave all others full ones, the smallest first.
            runs.sort_by_key(|run| std::cmp::Reverse(run.bytes()));
            if runs.len() <= fan_in {
                break;
            }
            let first = (runs.len() - fan_in) % (fan_in - 1).max(1);
            let few = if first == 0 { fan_in } else { first + 1 };
            let some = runs.split_off(runs.len() - few);
            let mut merge = Merge::new(some, &self.keys, &self.sort)?;
            let run = write(&self.sort, merge.key(), || merge.next(&self.keys, &self.sort))?;
            self.written.add(&run);
            runs.push(run);
        }
        let merge = Merge::new(runs, &self.keys, &self.sort)?;
        let rows = Source::Runs(merge, self.keys);
        Ok(Sorted { left: self.sort.fetch, sort: self.sort, rows, memory: self.memory, written: self.written })
    }

    /// How many of some runs there is memory to merge at once: two whatever there is.
    fn room_for(&mut self, runs: &[Run]) -> usize {
        let largest = runs.iter().map(Run::largest).max().unwrap_or(0);
        let bytes = |runs: usize| {
            let pieces = (runs + merge::BEHIND).saturating_mul(largest);
            pieces.saturating_add(self.sort.piece.saturating_mul(PIECES_WRITTEN))
        };
        let mut count = runs.len();
        while count > 2 {
            if bytes(count) <= self.sort.merging && self.memory.try_resize(bytes(count)) {
                return count;
            }
            count = (count * 3 / 4).max(2);
        }
        self.memory.resize(bytes(2));
        2
    }
}

impl Written {
    fn add(&mut self, run: &Run) {
        self.runs += 1;
        self.bytes += run.bytes();
        self.rows += run.rows();
    }
}

/// Writes rows, of which there may be too many, as a run. Their keys take so many bytes on average.
fn write(sort: &Sort, key: usize, mut next: impl FnMut() -> Result<Option<RecordBatch>>) -> Result<Run> {
    let mut writer = Writer::new(sort, key)?;
    let mut left = sort.fetch.unwrap_or(usize::MAX);
    while left > 0
        && let Some(batch) = next()?
    {
        sort.check()?;
        let batch = batch.slice(0, batch.num_rows().min(left));
        left -= batch.num_rows();
        writer.write(&batch)?;
    }
    Ok(writer.finish())
}

enum Source {
    Memory(Places),
    Runs(Merge, Keys),
}

/// Rows in order.
pub struct Sorted<M> {
    sort: Arc<Sort>,
    rows: Source,
    /// Rows that are wanted yet.
    left: Option<usize>,
    /// Of what is held until the last row was given.
    #[expect(dead_code, reason = "given back when the rows are dropped")]
    memory: M,
    written: Written,
}

impl<M: Memory> Sorted<M> {
    /// The next rows.
    ///
    /// # Errors
    /// If a run can't be read.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.left == Some(0) {
            return Ok(None);
        }
        let batch = match &mut self.rows {
            Source::Memory(places) => places.next(&self.sort)?,
            Source::Runs(merge, keys) => merge.next(keys, &self.sort)?,
        };
        let (Some(batch), Some(left)) = (&batch, &mut self.left) else { return Ok(batch) };
        let rows = batch.num_rows().min(*left);
        *left -= rows;
        Ok(Some(batch.slice(0, rows)))
    }

    /// What was written to scratch files for them.
    pub fn written(&self) -> Written {
        self.written
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
