//! The columns of a Parquet file as the executor sees them.

mod fetch;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use arrow_array::{Array, ArrayRef};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{Schema, SchemaRef};
use plinth_encoding::expr::Path;
use plinth_encoding::{Mask, Physical, ZoneMapResult};
use plinth_format::scan::source::{BlockId, ColumnId, ColumnPredicate, ColumnSource, Leaf, Rows, ScanColumn};
use plinth_format::{FormatError, Result, ScanMetrics};
use plinth_io::{Io, Priority, Reservation};
use plinth_profile::{Anchor, Stage, scope};

use fetch::Fetch;

use super::BLOCK_ROWS;
use super::arrays::{compacted, physical, selected};
use super::bloom::Blooms;
use super::chunk_bytes::ChunkBytes;
use super::decodes::Decodes;
use super::file::{ParquetFile, one_line};
use super::leaf::{LeafChunk, PageValues};
use super::nested::NestedChunk;
use super::predicate::{Asked, ChunkAnswers, LeafState, Question};
use super::resolved::Resolved;
use super::zones::{StatisticsOf, Zones};

/// What profiles charge decoding to, whatever the encoding.
const DECODE: Anchor = Stage::Decode.of("parquet");

/// Bytes of a value, if it is no more than its place in an array.
const VALUE_BYTES: u64 = 33;

/// A file's columns while one scan reads them.
#[derive(Debug)]
pub(crate) struct ParquetColumns {
    pub(super) file: ParquetFile,
    /// The file's row groups that are the scan's, in order; the executor counts these.
    pub(super) groups: Vec<usize>,
    /// Rows of the file before each of its row groups.
    rows_before: Vec<u64>,
    pub(super) metrics: Arc<ScanMetrics>,
    /// Bytes that the whole query reads, as far as is known.
    pub(super) query_bytes: u64,
    /// Whether all rows come out: then readers that go forward serve for columns of any kind, and best.
    forward: bool,
    columns: Vec<Arc<Resolved>>,
    /// Those that come out.
    output: BTreeSet<ColumnId>,
    pub(super) chunks: RefCell<HashMap<(usize, usize), Arc<ChunkBytes>>>,
    zones: RefCell<HashMap<(ColumnId, usize), Arc<Zones>>>,
    blooms: Blooms,
    flat: HashMap<(ColumnId, usize), LeafChunk>,
    nested: HashMap<(ColumnId, usize), NestedChunk>,
    /// What predicates decoded of nested columns, and what is left of any column of blocks that wait for their turn.
    cache: HashMap<(ColumnId, BlockId), Cached>,
    answers: HashMap<(usize, usize), ChunkAnswers>,
    /// Blocks that the executor has not done with, and those whose columns were counted as decoded.
    live: BTreeSet<BlockId>,
    /// Those of which predicates need no more.
    settled: BTreeSet<BlockId>,
    decoded: BTreeSet<(BlockId, ColumnId)>,
    /// Nothing is held of row groups before this one.
    forgotten: usize,
    /// Memory of what is kept.
    pub(super) memory: Reservation,
}

/// Values of a block.
#[derive(Clone, Debug)]
struct Cached {
    values: ArrayRef,
    /// The rows they are of, if not of all.
    rows: Option<BooleanBuffer>,
}

impl Cached {
    /// Some of the rows.
    fn select(&self, selection: Option<&BooleanBuffer>) -> Result<ArrayRef> {
        let within = match (selection, &self.rows) {
            (None, _) => return Ok(Arc::clone(&self.values)),
            (Some(selection), None) => selection.clone(),
            (Some(selection), Some(rows)) if selection == rows => return Ok(Arc::clone(&self.values)),
            (Some(selection), Some(rows)) => rows.set_indices().map(|row| selection.value(row)).collect(),
        };
        selected(&self.values, within).map_err(|e| FormatError::InvalidArgument(e.to_string()))
    }

    fn bytes(&self) -> u64 {
        self.values.get_buffer_memory_size() as u64
    }
}

impl ParquetColumns {
    pub(crate) fn new(
        file: ParquetFile,
        groups: Vec<usize>,
        io: &Io,
        query_bytes: u64,
        metrics: Arc<ScanMetrics>,
    ) -> Self {
        let rows = file.metadata.row_groups().iter().map(|group| u64::try_from(group.num_rows()).unwrap_or(0));
        let rows_before =
            rows.scan(0_u64, |sum, rows| Some(std::mem::replace(sum, sum.saturating_add(rows)))).collect();
        Self {
            rows_before,
            blooms: Blooms::new(file.clone(), Arc::clone(&metrics)),
            memory: io.budget().open("parquet pages"),
            file,
            groups,
            metrics,
            query_bytes,
            forward: false,
            columns: Vec::new(),
            output: BTreeSet::new(),
            chunks: RefCell::default(),
            zones: RefCell::default(),
            flat: HashMap::new(),
            nested: HashMap::new(),
            cache: HashMap::new(),
            answers: HashMap::new(),
            live: BTreeSet::new(),
            settled: BTreeSet::new(),
            decoded: BTreeSet::new(),
            forgotten: 0,
        }
    }

    /// Without the blooms, which take reads of their own.
    #[must_use]
    pub(crate) fn without_bloom_filters(mut self) -> Self {
        self.blooms.disable();
        self
    }

    /// For a scan without predicates.
    #[must_use]
    pub(crate) fn with_all_rows(mut self) -> Self {
        self.forward = true;
        self
    }

    /// The schema of some columns.
    pub(crate) fn schema(&mut self, paths: &[Path]) -> Result<SchemaRef> {
        let mut fields = Vec::with_capacity(paths.len());
        for path in paths {
            let column = self.resolve(path)?;
            fields.push(Arc::clone(&self.column(column)?.field));
        }
        Ok(Arc::new(Schema::new(fields)))
    }

    /// The file's number of a row group.
    pub(super) fn group(&self, group: usize) -> Result<usize> {
        let found = self.groups.get(group).copied();
        found.ok_or_else(|| FormatError::internal(format!("there is no row group {group}")))
    }

    pub(super) fn column(&self, column: ColumnId) -> Result<&Arc<Resolved>> {
        let found = self.columns.get(column);
        found.ok_or_else(|| FormatError::internal(format!("there is no column {column}")))
    }

    fn group_rows(&self, group: usize) -> Result<usize> {
        let rows = self.file.metadata.row_group(self.group(group)?).num_rows();
        usize::try_from(rows).map_err(|_| FormatError::Corrupt {
            file: self.file.source.name().to_owned(),
            what: format!("row group {group} has {rows} rows"),
        })
    }

    /// The rows of a block, counted from its row group's first.
    pub(super) fn rows(&self, at: BlockId) -> Result<Range<usize>> {
        let rows = self.group_rows(at.group)?;
        let start = at.block.saturating_mul(BLOCK_ROWS);
        if start >= rows {
            return Err(FormatError::internal(format!("there is no block {} of row group {}", at.block, at.group)));
        }
        Ok(start..rows.min(start + BLOCK_ROWS))
    }

    fn zones(&self, column: ColumnId, group: usize) -> Result<Arc<Zones>> {
        if let Some(known) = self.zones.borrow().get(&(column, group)) {
            return Ok(Arc::clone(known));
        }
        let resolved = self.column(column)?;
        let of = StatisticsOf {
            metadata: &self.file.metadata,
            group: self.group(group)?,
            leaf: resolved.leaf(),
            data_type: &resolved.data_type,
            in_struct: !resolved.fields().is_empty(),
        };
        let zones = Arc::new(Zones::new(&of));
        self.zones.borrow_mut().insert((column, group), Arc::clone(&zones));
        Ok(zones)
    }

    /// Counts a column of a block as decoded, once.
    fn count(&mut self, column: ColumnId, at: BlockId) {
        if self.decoded.insert((at, column)) {
            self.metrics.blocks_decoded.fetch_add(1, Relaxed);
        }
    }

    fn leaf_chunk(&mut self, column: ColumnId, group: usize) -> Result<&mut LeafChunk> {
        if !self.flat.contains_key(&(column, group)) {
            let (resolved, number) = (Arc::clone(self.column(column)?), self.group(group)?);
            let chunk_bytes = self.chunk_bytes(number, resolved.leaf());
            let memory = self.memory.budget().open("parquet pages");
            let decodes = Decodes::new(Arc::clone(&self.metrics));
            let chunk = LeafChunk::new(chunk_bytes, Arc::clone(&self.file.metadata), number, resolved, decodes, memory);
            self.flat.insert((column, group), chunk);
        }
        self.flat.get_mut(&(column, group)).ok_or_else(|| FormatError::internal("a column chunk was lost"))
    }

    /// A block of a nested column, whole.
    fn nested_block(&mut self, column: ColumnId, at: BlockId) -> Result<ArrayRef> {
        let (resolved, group) = (Arc::clone(self.column(column)?), self.group(at.group)?);
        if !self.nested.contains_key(&(column, at.group)) {
            let chunks = resolved.leaves().iter().map(|&leaf| (leaf, self.chunk_bytes(group, leaf))).collect();
            let (metadata, decodes) = (Arc::clone(&self.file.metadata), Decodes::new(Arc::clone(&self.metrics)));
            let chunk = NestedChunk::new(chunks, metadata, group, Arc::clone(&resolved), decodes);
            self.nested.insert((column, at.group), chunk);
        }
        let rows = self.rows(at)?.len();
        self.count(column, at);
        let Some(chunk) = self.nested.get_mut(&(column, at.group)) else {
            return Err(FormatError::internal("a column chunk was lost"));
        };
        let decode = scope(DECODE);
        decode.rows(rows as u64);
        chunk.block(at.block, rows).map_err(self.file.fail(&resolved, group))
    }

    /// Values of some rows of a block.
    fn array(&mut self, column: ColumnId, at: BlockId, selection: Option<&BooleanBuffer>) -> Result<ArrayRef> {
        if let Some(cached) = self.cache.get(&(column, at)) {
            return cached.select(selection);
        }
        let resolved = Arc::clone(self.column(column)?);
        if resolved.is_flat && !self.forward {
            let (rows, group) = (self.rows(at)?, self.group(at.group)?);
            self.count(column, at);
            let decode = scope(DECODE);
            let array = self.leaf_chunk(column, at.group)?.array(&rows, selection);
            array.iter().for_each(|array| decode.rows(array.len() as u64));
            return array.map_err(self.file.fail(&resolved, group));
        }
        Cached { values: self.nested_block(column, at)?, rows: None }.select(selection)
    }

    fn insert(&mut self, column: ColumnId, at: BlockId, cached: Cached) {
        self.memory.charge(cached.bytes());
        if let Some(before) = self.cache.insert((column, at), cached) {
            self.memory.shrink(before.bytes());
        }
    }

    /// The same, of a nested column kept whole: its reader goes forward only.
    fn looked(&mut self, column: ColumnId, at: BlockId, scope: Option<&BooleanBuffer>) -> Result<ArrayRef> {
        if !self.column(column)?.is_flat && !self.cache.contains_key(&(column, at)) {
            let cached = Cached { values: self.nested_block(column, at)?, rows: None };
            self.insert(column, at, cached);
        }
        self.array(column, at, scope)
    }

    /// Lets go of pages with no row that is still wanted: of columns that predicates read those of blocks that are settled, too.
    fn drop_pages(&mut self, at: BlockId) {
        let (live, settled, decoded) = (&self.live, &self.settled, &self.decoded);
        for (&(column, group), chunk) in &mut self.flat {
            if group != at.group {
                continue;
            }
            chunk.keep(|rows| {
                let block = |row: usize| BlockId { group, block: row / BLOCK_ROWS };
                // The page that the next block begins in is about to be asked for.
                rows.end > (at.block + 1).saturating_mul(BLOCK_ROWS)
                    || live
                        .range(block(rows.start)..=block(rows.end.saturating_sub(1)))
                        .any(|block| !(settled.contains(block) && decoded.contains(&(*block, column))))
            });
        }
    }

    /// A predicate on pages of which some may hold indices.
    fn evaluate_flat(&mut self, leaf: &Leaf<LeafState>, asked: &Rows<'_>) -> Result<Mask> {
        let (at, selection) = (asked.at, asked.selection);
        let resolved = Arc::clone(self.column(leaf.column)?);
        let question = Question { predicate: &leaf.predicate, column: &resolved };
        let (rows, group) = (self.rows(at)?, self.group(at.group)?);
        let fail = self.file.fail(&resolved, group);
        let chunk = self.leaf_chunk(leaf.column, at.group)?;
        let decode = scope(DECODE);
        let parts = chunk.rows(&rows).map_err(fail)?;
        decode.rows(rows.len() as u64);
        drop(decode);
        let dictionary = chunk.dictionary().cloned();
        let mut answers = self.answers.remove(&(leaf.state.id, at.group)).unwrap_or_default();
        let (mut masks, mut row, mut on_values) = (Vec::with_capacity(parts.len()), 0, false);
        for part in &parts {
            let selected = selection.slice(row, part.len());
            row += part.len();
            let mask = match (part, &dictionary) {
                (PageValues::Plain(values), _) => {
                    on_values = true;
                    question.on_values(values, &selected)?
                }
                (PageValues::Indices(indices), Some(dictionary)) => {
                    let asked = Asked { indices, dictionary, selected: &selected };
                    match question.on_indices(&asked, &mut answers)? {
                        Some(mask) => mask,
                        None => {
                            on_values = true;
                            question.on_some_values(&asked)?
                        }
                    }
                }
                (PageValues::Indices(_), None) => {
                    return Err(FormatError::internal("indices without a dictionary"));
                }
            };
            masks.push(mask);
        }
        self.answers.insert((leaf.state.id, at.group), answers);
        if on_values {
            asked.ran(question.ran());
            self.count(leaf.column, at);
        } else {
            self.metrics.blocks_evaluated.fetch_add(1, Relaxed);
        }
        Ok(Mask::concat(&masks))
    }

    /// Drops what is held of the row groups before one, once the scan has gone past them.
    fn forget_groups(&mut self, before: usize) {
        if before <= self.forgotten || self.live.first().is_some_and(|at| at.group < before) {
            return;
        }
        self.forgotten = before;
        self.flat.retain(|(_, group), _| *group >= before);
        self.nested.retain(|(_, group), _| *group >= before);
        self.answers.retain(|(_, group), _| *group >= before);
        self.decoded.retain(|(at, _)| at.group >= before);
        self.zones.borrow_mut().retain(|(_, group), _| *group >= before);
        let first = self.groups.get(before).copied().unwrap_or(usize::MAX);
        self.chunks.borrow_mut().retain(|(number, _), _| *number >= first);
        self.blooms.forget(first);
    }
}

impl ColumnSource for ParquetColumns {
    type LeafState = LeafState;
    type Fetch = Fetch;

    fn bytes_a_wait(&self) -> u64 {
        self.file.source.bytes_a_wait()
    }

    fn resolve(&mut self, path: &Path) -> Result<ColumnId> {
        if let Some(known) = self.columns.iter().position(|known| known.path == *path) {
            return Ok(known);
        }
        let resolved = Resolved::find(&self.file.metadata, &self.file.schema, path)
            .map_err(|e| FormatError::InvalidArgument(format!("{}: {}", self.file.source.name(), one_line(&e))))?;
        self.columns.push(Arc::new(resolved));
        Ok(self.columns.len() - 1)
    }

    fn name(&self, column: ColumnId) -> &str {
        self.columns.get(column).and_then(|column| column.path.parts().last()).map_or("", String::as_str)
    }

    fn physical(&self, column: ColumnId) -> Result<Physical> {
        let resolved = self.column(column)?;
        physical(&resolved.data_type).filter(|_| resolved.is_flat).ok_or_else(|| {
            let (path, data_type) = (resolved.path.to_string(), &resolved.data_type);
            FormatError::InvalidArgument(format!("column {path:?}: a {data_type} can't be compared with a constant"))
        })
    }

    fn first_row(&self, at: BlockId) -> Result<u64> {
        let before = self.rows_before.get(self.group(at.group)?).copied().unwrap_or(0);
        Ok(before + self.rows(at)?.start as u64)
    }

    fn block_rows(&self, group: usize) -> Result<Vec<usize>> {
        let rows = self.group_rows(group)?;
        Ok((0..rows.div_ceil(BLOCK_ROWS)).map(|i| (rows - i * BLOCK_ROWS).min(BLOCK_ROWS)).collect())
    }

    fn zone_map_result(&self, leaf: &Leaf<LeafState>, at: BlockId) -> Result<ZoneMapResult> {
        let is_function = matches!(leaf.predicate, ColumnPredicate::Function(_));
        if is_function || !self.column(leaf.column)?.is_flat {
            return Ok(ZoneMapResult::ANYTHING);
        }
        let zones = self.zones(leaf.column, at.group)?;
        let chunk = zones.of_chunk(&leaf.predicate);
        if !chunk.may_be_true || chunk.always_true() {
            return Ok(chunk);
        }
        let rows = self.rows(at)?;
        let both = chunk.on_both(zones.of_rows(&leaf.predicate, rows.start as u64, rows.len() as u64));
        if both.may_be_true && self.blooms.rule_out(leaf, self.column(leaf.column)?, self.group(at.group)?) {
            return Ok(ZoneMapResult { may_be_true: false, ..both });
        }
        Ok(both)
    }

    fn size(&self, column: ColumnId, at: BlockId) -> Result<u64> {
        let (rows, all, group) = (self.rows(at)?, self.group_rows(at.group)?, self.group(at.group)?);
        let bytes = |leaf: &usize| self.file.metadata.row_group(group).column(*leaf).byte_range().1;
        let bytes: u64 = self.column(column)?.leaves().iter().map(bytes).sum();
        Ok(u64::try_from(u128::from(bytes) * rows.len() as u128 / all.max(1) as u128).unwrap_or(u64::MAX))
    }

    fn start(&self, wanted: &[(ColumnId, BlockId)], priority: Priority) -> Result<Option<Fetch>> {
        self.start_reading(wanted, priority)
    }

    fn finish(&mut self, fetch: Fetch) -> Result<()> {
        let blocks = fetch.finish()?;
        self.live.extend(blocks);
        Ok(())
    }

    fn evaluate(&mut self, leaf: &Leaf<LeafState>, rows: &Rows<'_>) -> Result<Mask> {
        let column = Arc::clone(self.column(leaf.column)?);
        if column.is_flat {
            return self.evaluate_flat(leaf, rows);
        }
        let question = Question { predicate: &leaf.predicate, column: &column };
        rows.ran(question.ran());
        let array = self.looked(leaf.column, rows.at, None)?;
        question.on_values(&array, rows.selection)
    }

    fn decode_cached(&mut self, column: ColumnId, at: BlockId, scope: Option<&BooleanBuffer>) -> Result<ScanColumn> {
        self.looked(column, at, scope).map(ScanColumn::Arrow)
    }

    fn set_output(&mut self, output: &[ColumnId]) {
        self.output = output.iter().copied().collect();
    }

    fn max_retained_bytes(&self, column: ColumnId, at: BlockId) -> Result<u64> {
        if !self.output.contains(&column) {
            return Ok(0);
        }
        let (rows, all, group) = (self.rows(at)?.len() as u64, self.group_rows(at.group)?, self.group(at.group)?);
        let bytes = |leaf: &usize| self.file.metadata.row_group(group).column(*leaf).uncompressed_size();
        let bytes: i64 = self.column(column)?.leaves().iter().map(bytes).sum();
        let share = u128::from(u64::try_from(bytes).unwrap_or(0)) * u128::from(rows) / all.max(1) as u128;
        // Indices become values, of which all may be views; text that they share is counted with the dictionary.
        Ok(u64::try_from(share).unwrap_or(u64::MAX).saturating_add(rows * VALUE_BYTES))
    }

    fn retain_selected(&mut self, at: BlockId, selection: &BooleanBuffer, wait: bool) -> Result<u64> {
        if !wait {
            return Ok(0);
        }
        let mut bytes = 0;
        let decoded = |column: &ColumnId| self.decoded.contains(&(at, *column));
        let columns: Vec<ColumnId> = self.output.iter().copied().filter(decoded).collect();
        for column in columns {
            let values = compacted(&self.array(column, at, Some(selection))?);
            let cached = Cached { values, rows: Some(selection.clone()) };
            bytes += cached.bytes();
            self.insert(column, at, cached);
        }
        let mut freed = 0;
        let output = &self.output;
        self.cache.retain(|(column, known), cached| {
            let stays = *known != at || output.contains(column);
            freed += if stays { 0 } else { cached.bytes() };
            stays
        });
        self.memory.shrink(freed);
        self.settled.insert(at);
        self.drop_pages(at);
        Ok(bytes)
    }

    fn decode(&mut self, column: ColumnId, at: BlockId, selection: Option<&BooleanBuffer>) -> Result<ScanColumn> {
        self.array(column, at, selection).map(ScanColumn::Arrow)
    }

    fn values(&self, _column: ColumnId, decoded: ScanColumn) -> Result<ArrayRef> {
        match decoded {
            ScanColumn::Arrow(array) => Ok(array),
            ScanColumn::Codes { .. } => Err(FormatError::internal("codes of a Parquet file")),
            ScanColumn::Narrow { .. } => Err(FormatError::internal("decimals in 64 bits of a Parquet file")),
        }
    }

    fn release(&mut self, at: BlockId) {
        self.live.remove(&at);
        self.settled.remove(&at);
        let mut freed = 0;
        self.cache.retain(|(_, known), cached| {
            let stays = *known != at;
            freed += if stays { 0 } else { cached.bytes() };
            stays
        });
        self.memory.shrink(freed);
        self.drop_pages(at);
        self.forget_groups(at.group);
    }
}
