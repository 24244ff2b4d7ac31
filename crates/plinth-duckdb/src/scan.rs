//! A running scan: threads of DuckDB's take pieces of the table from one queue, in order, and decode them.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use duckdb_neo::connection::Context;
use duckdb_neo::data_chunk::DataChunkRef;
use duckdb_neo::value::Value;
use duckdb_neo::{DuckDBType, ToValue};
use plinth_core::sync::lock;
use plinth_encoding::expr::Expr;
use plinth_format::scan::ScanColumn;
use plinth_format::{AdaptiveStats, Chunk, PushdownMode, Scan};

use crate::codes::Codes;
use crate::failure::{Result, guarded, of_arrow, of_format};
use crate::handover::{Filled, Handover};
use crate::keys::KeyType;
use crate::shape;
use crate::shelf::Vectors;
use crate::table::{Column, Table};

/// A piece takes one part in so many of a thread's share of what is left.
const PART: u64 = 2;

/// Rows that a filter goes through before it is looked whether rows were handed over lately.
const FILTERED: u64 = 4 << 20;

/// DuckDB sees between chunks whether a statement was interrupted: without rows for so long, it gets one that its filter drops.
const QUIET: Duration = Duration::from_millis(100);

/// What a scan is to do.
pub(crate) struct Wanted {
    /// Which columns, by their places in the table.
    pub(crate) columns: Vec<usize>,
    /// What rows pass.
    pub(crate) filters: Vec<Expr>,
    /// Which files to read, by their places.
    pub(crate) parts: Vec<usize>,
    pub(crate) mode: PushdownMode,
}

/// Row groups of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    part: usize,
    groups: Range<usize>,
    rows: u64,
}

/// What threads share.
#[derive(Debug)]
pub(crate) struct Shared {
    table: Arc<Table>,
    columns: Vec<usize>,
    /// The stored columns among them as a scan gives them.
    stored: Vec<usize>,
    schema: SchemaRef,
    filters: Vec<Expr>,
    mode: PushdownMode,
    parts: Vec<usize>,
    queue: Mutex<Queue>,
    threads: usize,
    /// What was learned of the filters.
    stats: Mutex<Option<Arc<AdaptiveStats>>>,
    rows: u64,
    done: AtomicU64,
    vectors: Arc<Vectors>,
}

/// What was not given out yet.
#[derive(Debug, Default)]
struct Queue {
    part: usize,
    group: usize,
    /// Rows from there on.
    left: u64,
    given: usize,
}

impl Shared {
    /// A scan of a table by at most so many threads.
    ///
    /// # Errors
    /// If a column does not exist, which DuckDB asks for none of.
    pub(crate) fn new(table: &Arc<Table>, wanted: Wanted, threads: usize, vectors: &Arc<Vectors>) -> Result<Self> {
        let Wanted { columns, filters, parts, mode } = wanted;
        let mut stored = Vec::new();
        let mut fields = Vec::new();
        for &at in &columns {
            let column = table.columns.get(at).ok_or_else(|| of_arrow(format!("a table has no column {at}")))?;
            if let Column::Stored(field) = column {
                stored.push(at);
                fields.push(shape::of_field(field));
            }
        }
        let rows = parts.iter().filter_map(|&part| table.parts.get(part)).map(|part| part.file.num_rows()).sum();
        let groups: usize =
            parts.iter().filter_map(|&part| table.parts.get(part)).map(|part| part.file.row_groups().len()).sum();
        Ok(Self {
            table: Arc::clone(table),
            columns,
            stored,
            schema: Arc::new(Schema::new(fields)),
            filters,
            mode,
            parts,
            queue: Mutex::new(Queue { left: rows, ..Queue::default() }),
            threads: threads.clamp(1, groups.max(1)),
            stats: Mutex::default(),
            rows,
            done: AtomicU64::new(0),
            vectors: Arc::clone(vectors),
        })
    }

    /// Threads that can share it.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// The part of it that was done.
    pub(crate) fn progress(&self) -> f64 {
        let [done, all] = [self.done.load(Ordering::Relaxed), self.rows]
            .map(|rows| u32::try_from(rows >> self.shift()).unwrap_or(u32::MAX));
        if all == 0 { 1.0 } else { (f64::from(done) / f64::from(all)).min(1.0) }
    }

    /// Bits of the count of rows that a fraction does not need.
    fn shift(&self) -> u32 {
        u64::BITS.saturating_sub(self.rows.leading_zeros()).saturating_sub(u32::BITS)
    }

    /// A scan of some columns of a piece, of the rows that pass or of all.
    fn scan(&self, piece: &Piece, names: &[String], filtered: bool) -> Result<Scan> {
        let part = self.table.parts.get(piece.part).ok_or_else(|| of_arrow("a piece of no file"))?;
        let mut scan = part.file.scan().select(names.iter().map(String::as_str)).row_groups(piece.groups.clone());
        scan = scan.table_bytes(self.table.bytes).pushdown_mode(self.mode);
        if let Some(kept) = &part.kept {
            scan = scan.only_rows(kept.clone());
        }
        if filtered {
            scan = self.filters.iter().fold(scan, |scan, filter| scan.filter(filter.clone()));
            if let Some(stats) = &*lock(&self.stats) {
                scan = scan.adaptive_stats(Arc::clone(stats));
            }
        }
        scan.build().map_err(of_format)
    }

    /// The next piece, and how many were given before it.
    fn take(&self) -> Option<(usize, Piece)> {
        let mut queue = lock(&self.queue);
        loop {
            let part = *self.parts.get(queue.part)?;
            let groups = self.table.parts.get(part)?.file.row_groups();
            let start = queue.group;
            let most = if self.filters.is_empty() { u64::MAX } else { FILTERED };
            let wanted = (queue.left / (PART * self.threads as u64)).min(most);
            let mut rows = 0;
            let mut end = start;
            // One row group at least, and the next if most of it is wanted.
            while let Some(group) = groups.get(end)
                && (rows == 0 || rows + group.rows / 2 <= wanted)
            {
                rows += group.rows;
                end += 1;
            }
            queue.left = queue.left.saturating_sub(rows);
            queue.group = end;
            if end >= groups.len() {
                queue.part += 1;
                queue.group = 0;
            }
            if end > start {
                queue.given += 1;
                return Some((queue.given, Piece { part, groups: start..end, rows }));
            }
        }
    }
}

/// What one thread works on.
pub(crate) struct Running {
    handover: Handover,
    /// The values of columns that are not stored, of the current file.
    constants: Vec<Option<Value>>,
    piece: Option<Reading>,
    given: usize,
    /// Where the values of the batch lie that chunks are made of.
    lies: Vec<Option<Range<usize>>>,
    /// When rows were handed over.
    lately: Instant,
}

impl Running {
    /// Of a thread that begins.
    pub(crate) fn new() -> Self {
        let (handover, lately) = (Handover::default(), Instant::now());
        Self { handover, constants: Vec::new(), piece: None, given: 0, lies: Vec::new(), lately }
    }

    /// The place of the last chunk's piece in the order of the rows.
    pub(crate) fn place(&self) -> usize {
        self.given
    }

    /// Puts the next rows into the output; leaves it empty at the end.
    ///
    /// # Errors
    /// If a file can't be read or is damaged, or memory ends.
    fn next(&mut self, context: &Context, shared: &Shared, output: &DataChunkRef<'_>) -> Result<()> {
        loop {
            if let Some(rows) = self.handover.next()? {
                rows.fill(output, self.filled(shared))?;
                shared.vectors.rows.fetch_add(rows.rows as u64, Ordering::Relaxed);
                for (column, lies) in self.lies.iter().enumerate() {
                    if let (Some(lies), Some(address)) = (lies, rows.address(column)) {
                        shared.vectors.all.fetch_add(1, Ordering::Relaxed);
                        shared.vectors.shared.fetch_add(u64::from(lies.contains(&address)), Ordering::Relaxed);
                    }
                }
                self.lately = Instant::now();
                return Ok(());
            }
            let Some(piece) = &mut self.piece else {
                let Some((given, piece)) = shared.take() else { return Ok(()) };
                self.begin(context, shared, given, piece)?;
                continue;
            };
            match piece.next(shared)? {
                Some(batch) => self.give(context, batch)?,
                None => {
                    let dropped = match piece.passed {
                        false if self.lately.elapsed() > QUIET => piece.dropped(shared)?,
                        _ => None,
                    };
                    self.piece = None;
                    if let Some(row) = dropped {
                        self.give(context, row)?;
                    }
                }
            }
        }
    }

    fn give(&mut self, context: &Context, batch: RecordBatch) -> Result<()> {
        self.lies = batch.columns().iter().map(shape::lies).collect();
        self.handover.give(context, batch)
    }

    fn begin(&mut self, context: &Context, shared: &Shared, given: usize, piece: Piece) -> Result<()> {
        let table = &shared.table;
        let part = table.parts.get(piece.part).ok_or_else(|| of_arrow("a piece of no file"))?;
        let mut names = Vec::new();
        let mut columns = Vec::new();
        for &at in &shared.stored {
            let Some(Column::Stored(field)) = table.columns.get(at) else {
                return Err(of_arrow("a scan of a column that is not stored"));
            };
            let there = part.file.schema().field_with_name(field.name()).is_ok();
            columns.push(Output {
                data_type: field.data_type().clone(),
                from: there.then_some(names.len()),
                codes: Codes::default(),
            });
            names.extend(there.then(|| field.name().clone()));
        }
        let constant = |&at: &usize| {
            Ok(match table.columns.get(at) {
                Some(Column::Filename) => Some(part.path.value(context)?),
                Some(Column::Key(key)) => Some(key_value(context, table, *key, piece.part)?),
                _ => None,
            })
        };
        self.constants = shared.columns.iter().map(constant).collect::<Result<_>>()?;
        let scan = shared.scan(&piece, &names, true)?;
        (self.given, self.piece) = (given, Some(Reading { piece, names, scan, columns, passed: false }));
        Ok(())
    }

    fn filled<'a>(&'a self, shared: &'a Shared) -> impl Iterator<Item = Filled<'a>> {
        let mut stored = 0;
        (0..shared.columns.len()).map(move |at| match self.constants.get(at) {
            Some(Some(value)) => Filled::Constant(value),
            _ => {
                stored += 1;
                Filled::Column(stored - 1)
            }
        })
    }
}

/// Puts the next rows of a scan into the output, as callbacks are asked to.
///
/// # Errors
/// As [`Running::next`], or if the scan was not begun.
pub(crate) fn exec(
    shared: Option<&Shared>,
    running: Option<&mut Running>,
    context: &Context,
    output: &DataChunkRef<'_>,
) -> Result<()> {
    guarded(|| match (shared, running) {
        (Some(shared), Some(running)) => running.next(context, shared, output),
        _ => Err(of_arrow("a scan that was not begun")),
    })
}

/// A piece that is being read.
struct Reading {
    piece: Piece,
    /// Of the columns that the file has.
    names: Vec<String>,
    scan: Scan,
    columns: Vec<Output>,
    /// Whether any row passed.
    passed: bool,
}

/// A column of what is read.
struct Output {
    /// As the table has it.
    data_type: DataType,
    /// Its place in the scan; none if the file lacks it.
    from: Option<usize>,
    codes: Codes,
}

impl Reading {
    /// The next rows with the columns that DuckDB was told, texts of small dictionaries as codes; `None` at the end of the piece.
    fn next(&mut self, shared: &Shared) -> Result<Option<RecordBatch>> {
        let Some(chunk) = self.scan.next_chunk().map_err(of_format)? else {
            shared.done.fetch_add(self.piece.rows, Ordering::Relaxed);
            *lock(&shared.stats) = Some(Arc::clone(self.scan.adaptive_stats()));
            return Ok(None);
        };
        self.passed = true;
        self.batch(shared, &chunk).map(Some)
    }

    /// A row of a piece of which none passed; `None` if it has no rows.
    fn dropped(&mut self, shared: &Shared) -> Result<Option<RecordBatch>> {
        self.scan = shared.scan(&self.piece, &self.names, false)?;
        let Some(chunk) = self.scan.next_chunk().map_err(of_format)? else { return Ok(None) };
        Ok(Some(self.batch(shared, &chunk)?.slice(0, 1)))
    }

    fn batch(&mut self, shared: &Shared, chunk: &Chunk) -> Result<RecordBatch> {
        let mut fields = Vec::with_capacity(self.columns.len());
        let mut arrays = Vec::with_capacity(self.columns.len());
        for (output, field) in self.columns.iter_mut().zip(shared.schema.fields()) {
            let column = output.from.and_then(|from| chunk.columns.get(from));
            let array = output.values(&self.scan, column, chunk.rows)?;
            fields.push(match array.data_type() == field.data_type() {
                true => Arc::clone(field),
                false => Arc::new(Field::new(field.name(), array.data_type().clone(), true)),
            });
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(chunk.rows)).with_match_field_names(false);
        let schema = Arc::new(Schema::new(fields));
        RecordBatch::try_new_with_options(schema, arrays, &options).map_err(of_arrow)
    }
}

impl Output {
    fn values(&mut self, scan: &Scan, column: Option<&ScanColumn>, rows: usize) -> Result<ArrayRef> {
        let (ids, nulls, dictionary) = match column {
            None => return shape::of_values(None, &self.data_type, rows),
            Some(ScanColumn::Narrow { .. }) => return Err(of_arrow("decimals in 64 bits, which were not asked for")),
            Some(ScanColumn::Arrow(array)) => return shape::of_values(Some(array), &self.data_type, rows),
            Some(ScanColumn::Codes { ids, nulls, dictionary }) => (ids, nulls, dictionary),
        };
        let from = self.from.ok_or_else(|| of_arrow("codes of no column"))?;
        let known = || scan.code_values(from, dictionary).ok_or_else(|| of_arrow("codes without values"));
        if self.data_type == DataType::Utf8View
            && let Some(coded) = self.codes.few(ids, nulls.as_ref(), dictionary, known)?
        {
            return Ok(coded);
        }
        let array = known()?.values(ids, nulls.as_ref()).map_err(of_format)?;
        shape::of_values(Some(&array), &self.data_type, rows)
    }
}

/// The type that DuckDB has for a key's column.
///
/// # Errors
/// If DuckDB does not make it.
pub(crate) fn key_type(context: &Context, key_type: KeyType) -> Result<duckdb_neo::logical_type::LogicalType> {
    match key_type {
        KeyType::BigInt => i64::logical_type(context),
        KeyType::Date => duckdb_neo::types::DateValue::logical_type(context),
        KeyType::Varchar => String::logical_type(context),
    }
}

fn key_value(context: &Context, table: &Table, key: usize, part: usize) -> Result<Value> {
    let key = table.keys.get(key).ok_or_else(|| of_arrow("a key that no folder has"))?;
    let to = key_type(context, key.key_type)?;
    match key.values.get(part).and_then(Option::as_ref) {
        Some(text) => text.value(context)?.cast(context, &to),
        None => Value::null(context, &to),
    }
}
