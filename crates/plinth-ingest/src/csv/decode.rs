//! Chunks of CSV to batches, and to what a schema is inferred from.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{RecordBatch, StringViewArray};
use arrow_schema::{DataType, Fields};

use super::framing::{Chunk, FramingOptions, Head};
use super::lines;
use super::numbers::Numbers;
use super::records::{Records, Window, too_large};
use super::rows::Rows;
use crate::error::{IngestError, Result};
use crate::stream::ahead::{Item, Worker};
use crate::stream::fault::Place;
use crate::stream::feed::TextChunk;
use crate::stream::output::{ChunkOutput, Decoded, Plan, panicked};
use crate::stream::sample::{ChunkSampler, Samples};
use crate::stream::unknown::UnknownKeys;
use crate::values::infer::{Objects, check_width};

/// The columns, and how to find them in a file.
#[derive(Debug)]
pub(super) struct Layout {
    plan: Arc<Plan>,
    by_name: HashMap<String, usize>,
    ignore_extra: bool,
    /// Whether nothing else than nothing stands for null.
    plain_nulls: bool,
    framing: FramingOptions,
}

impl Layout {
    pub(super) fn new(plan: Arc<Plan>, ignore_extra: bool, plain_nulls: bool, framing: FramingOptions) -> Self {
        let by_name = plan.schema.fields().iter().enumerate().map(|(at, f)| (f.name().clone(), at)).collect();
        Self { plan, by_name, ignore_extra, plain_nulls, framing }
    }

    /// Where the fields of a file's records go.
    pub(super) fn columns(&self, path: &Path, names: &[String]) -> Result<Positions> {
        self.plan.named();
        let column = |name: &String| match self.by_name.get(name) {
            Some(at) => {
                self.plan.saw(*at);
                Ok(Some(*at))
            }
            None if self.ignore_extra => Ok(None),
            None => Err(IngestError::ExtraColumn { path: path.display().to_string(), column: name.clone() }),
        };
        names.iter().map(column).collect()
    }

    /// The values of a chunk whose lines are values as they are.
    fn lines(&self, chunk: &Chunk, columns: &[Option<usize>]) -> Option<Vec<StringViewArray>> {
        let fields = self.plan.schema.fields();
        let plain = fields.len() == 1
            && fields.iter().all(|field| field.data_type() == &DataType::Utf8View)
            && columns == [Some(0)]
            && self.plain_nulls;
        if plain { lines::values(chunk, self.framing.record, self.plan.batch_rows) } else { None }
    }
}

/// Per field of a file's records, its column.
type Positions = Vec<Option<usize>>;

/// Decodes chunks on one thread.
pub(super) struct Decoder {
    layout: Arc<Layout>,
    rows: Rows,
    window: Window,
    /// Where the fields go, of the file it is at.
    columns: Option<(Arc<Head>, Positions)>,
}

impl Decoder {
    pub(super) fn new(layout: Arc<Layout>, rows: Rows) -> Self {
        Self { layout, rows, window: Window::default(), columns: None }
    }

    fn decode(&mut self, chunk: &Chunk, give: &mut dyn FnMut(Item<Decoded>) -> bool) -> Result<()> {
        let Self { layout, rows, window, columns } = self;
        let FramingOptions { record, level, .. } = layout.framing;
        let columns = match columns {
            Some((of, columns)) if Arc::ptr_eq(of, &chunk.head) => columns,
            _ => &mut columns.insert((Arc::clone(&chunk.head), layout.columns(&chunk.path, &chunk.head.names)?)).1,
        };
        let mut out = ChunkOutput::new(&layout.plan, &chunk.path, chunk.stored, give);
        if let Some(len) = chunk.oversized {
            let place = Place { line: chunk.line, offset: chunk.offset, raw: &chunk.bytes, len };
            out.broken(place, too_large(record))?;
            out.give_batch(None, UnknownKeys::default());
            return Ok(());
        }
        if let Some(arrays) = layout.lines(chunk, columns) {
            for array in arrays {
                let batch = RecordBatch::try_new(Arc::clone(&layout.plan.schema), vec![Arc::new(array)]);
                let batch = batch.map_err(|e| IngestError::damaged(&chunk.path, e.to_string()))?;
                out.give_batch(Some(batch), UnknownKeys::default());
                if !out.wanted {
                    break;
                }
            }
            return Ok(());
        }
        let mut records = Records::new(chunk, record, level);
        while out.wanted && records.next(window, columns.len())? {
            let faults = rows.push(&records, window, columns);
            judge(&mut records, window, columns.len(), faults, &mut out)?;
            if out.is_full(rows.len(), 0) {
                out.give(|| Ok(rows.finish()), UnknownKeys::default())?;
            }
        }
        if out.is_wanting(rows.len()) {
            out.give(|| Ok(rows.finish()), UnknownKeys::default())?;
        }
        Ok(())
    }
}

/// Says of each row of a window whether it is sound, and what is wrong with the other records, in their order.
fn judge(
    records: &mut Records<'_>,
    window: &mut Window,
    columns: usize,
    faults: Vec<(usize, crate::stream::fault::Fault)>,
    out: &mut ChunkOutput<'_>,
) -> Result<()> {
    let mut broken = std::mem::take(&mut window.broken).into_iter().peekable();
    let mut faults = faults.into_iter().peekable();
    let mut judged = 0;
    loop {
        let next_broken = broken.peek().map_or(usize::MAX, |(before, ..)| *before);
        let next_fault = faults.peek().map_or(usize::MAX, |(row, _)| *row);
        let sound = next_broken.min(next_fault).min(window.rows.len());
        out.keep.append_n_non_nulls(sound.saturating_sub(judged));
        judged = judged.max(sound);
        // A broken record is before the row that it is counted by.
        if next_broken <= next_fault {
            let Some((_, extent, why)) = broken.next() else { return Ok(()) };
            out.broken(records.place(extent), why)?;
        } else if let Some((row, fault)) = faults.next() {
            let extent = window.rows.get(row).map_or(0..0, |row| records.extent(window, *row, columns));
            out.row(fault, || records.place(extent))?;
            judged += 1;
        }
    }
}

impl Worker<Chunk, Decoded, IngestError> for Decoder {
    fn run(&mut self, chunk: &Chunk, give: &mut dyn FnMut(Item<Decoded>) -> bool) -> Result<()> {
        self.decode(chunk, give)
    }

    fn bytes(&self, chunk: &Chunk) -> u64 {
        TextChunk::bytes(chunk)
    }

    fn internal(&self, what: &'static str) -> IngestError {
        IngestError::internal(what)
    }

    fn panicked(&self, chunk: Option<&Chunk>) -> IngestError {
        panicked(chunk.map(|chunk| (chunk.path.as_ref(), chunk.line)))
    }
}

/// Looks at chunks to infer a schema. Records that can't be read are left to the decoder.
pub(super) struct Sampler {
    framing: FramingOptions,
    nulls: Vec<String>,
    numbers: Numbers,
    window: Window,
}

impl Sampler {
    pub(super) fn new(framing: FramingOptions, nulls: Vec<String>, numbers: Numbers) -> Self {
        Self { framing, nulls, numbers, window: Window::default() }
    }
}

impl ChunkSampler<Chunk, Objects> for Sampler {
    fn sample(&mut self, chunk: &Chunk, limit: u64, to: &mut Objects) -> u64 {
        let Self { framing, nulls, numbers, window } = self;
        let names = &chunk.head.names;
        for name in names {
            let _ = to.column(name);
        }
        if chunk.oversized.is_some() {
            return 1;
        }
        let mut records = Records::new(chunk, framing.record, framing.level);
        let (mut taken, mut plain) = (0, String::new());
        // Ends of records are ends of fields, or the decoder fails by name; a sample has no one to tell.
        while taken < limit && records.next(window, names.len()).unwrap_or(false) {
            let most = usize::try_from(limit - taken).unwrap_or(usize::MAX);
            let rows = || window.rows.iter().take(most);
            for (at, name) in names.iter().enumerate() {
                let Some(seen) = to.column(name) else { continue };
                for row in rows() {
                    let field = records.value(window.field(*row, at));
                    if !field.quoted && nulls.iter().any(|null| *null == field.text) {
                        continue;
                    }
                    match numbers.plain(&field.text, &mut plain) {
                        Some(text) => seen.field(text),
                        None => seen.text(&field.text),
                    }
                }
            }
            taken += (rows().count() + window.broken.len()) as u64;
        }
        taken
    }
}

impl Samples for Objects {
    fn unite(&mut self, other: Self) {
        self.unite(other);
    }

    fn check(&self, path: &Path) -> Result<()> {
        check_width(path, self)
    }

    fn fields(self) -> Result<Fields> {
        Ok(self.fields())
    }
}

impl Worker<Chunk, Objects, IngestError> for Sampler {
    fn run(&mut self, chunk: &Chunk, give: &mut dyn FnMut(Item<Objects>) -> bool) -> Result<()> {
        let mut objects = Objects::default();
        self.sample(chunk, u64::MAX, &mut objects);
        give(Item { bytes: objects.memory(), value: objects });
        Ok(())
    }

    fn bytes(&self, chunk: &Chunk) -> u64 {
        TextChunk::bytes(chunk)
    }

    fn internal(&self, what: &'static str) -> IngestError {
        IngestError::internal(what)
    }

    fn panicked(&self, chunk: Option<&Chunk>) -> IngestError {
        panicked(chunk.map(|chunk| (chunk.path.as_ref(), chunk.line)))
    }
}
