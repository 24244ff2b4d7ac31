//! The pages of a leaf column chunk whose rows have one value each: any of its rows, as often as they are asked for.
//!
//! A page is decompressed and decoded once and kept while rows of it may still be wanted. Where it holds indices into the
//! chunk's dictionary it stays that way: predicates ask the dictionary, and the indices of rows that are not wanted become no
//! values.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, UInt32Array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_select::concat::concat;
use arrow_select::filter::filter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::serialized_reader::SerializedPageReader;
use plinth_io::Reservation;

use super::BLOCK_ROWS;
use super::arrays::{self, copied, guarded};
use super::chunk_bytes::ChunkBytes;
use super::decodes::Decodes;
use super::hybrid::Hybrid;
use super::resolved::Resolved;

/// Most rows of a page that is decoded whole. Of larger ones a block's worth is decoded at a time, so that a few
/// rows do not cost all.
const WHOLE_PAGE: usize = 4 * BLOCK_ROWS;

/// A column chunk that is being read.
#[derive(Debug)]
pub(super) struct LeafChunk {
    chunk_bytes: Arc<ChunkBytes>,
    metadata: Arc<ParquetMetaData>,
    group: usize,
    column: Arc<Resolved>,
    reader: Option<Pages>,
    dictionary: Option<ArrayRef>,
    /// What is decoded, in the order of the rows.
    decoded: Vec<Decoded>,
    decodes: Decodes,
    /// What it takes.
    memory: Reservation,
}

/// The pages that come next.
struct Pages {
    reader: SerializedPageReader<ChunkBytes>,
    /// The page that is being decoded.
    page: Option<OpenPage>,
    /// The first row that comes next.
    row: usize,
}

/// A page that is decoded as far as was asked for.
struct OpenPage {
    end: usize,
    values: OpenValues,
}

enum OpenValues {
    Plain(ParquetRecordBatchReader),
    Indices { levels: Option<Hybrid>, indices: Hybrid },
}

impl std::fmt::Debug for Pages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pages").field("row", &self.row).finish_non_exhaustive()
    }
}

/// Some rows of a page.
#[derive(Debug)]
pub(super) struct Decoded {
    first: usize,
    values: PageValues,
    bytes: u64,
}

/// Values of rows that follow one another.
#[derive(Clone, Debug)]
pub(super) enum PageValues {
    Plain(ArrayRef),
    /// Indices into the chunk's dictionary, which has all of them; null where the row is.
    Indices(UInt32Array),
}

impl PageValues {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Plain(values) => values.len(),
            Self::Indices(indices) => indices.len(),
        }
    }

    fn slice(&self, offset: usize, len: usize) -> Self {
        match self {
            Self::Plain(values) => Self::Plain(values.slice(offset, len)),
            Self::Indices(indices) => Self::Indices(indices.slice(offset, len)),
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::Plain(values) => values.get_buffer_memory_size() as u64,
            Self::Indices(indices) => indices.get_buffer_memory_size() as u64,
        }
    }
}

impl Decoded {
    fn rows(&self) -> Range<usize> {
        self.first..self.first + self.values.len()
    }
}

impl LeafChunk {
    pub(super) fn new(
        chunk_bytes: Arc<ChunkBytes>,
        metadata: Arc<ParquetMetaData>,
        group: usize,
        column: Arc<Resolved>,
        decodes: Decodes,
        memory: Reservation,
    ) -> Self {
        Self {
            chunk_bytes,
            metadata,
            group,
            column,
            reader: None,
            dictionary: None,
            decoded: Vec::new(),
            decodes,
            memory,
        }
    }

    /// The dictionary of the pages of indices that were decoded so far.
    pub(super) fn dictionary(&self) -> Option<&ArrayRef> {
        self.dictionary.as_ref()
    }

    /// What the rows hold, page by page.
    pub(super) fn rows(&mut self, rows: &Range<usize>) -> Result<Vec<PageValues>> {
        guarded(|| self.cover(rows))?;
        let mut parts = Vec::new();
        let mut at = rows.start;
        for page in self.decoded_from(at) {
            let page_rows = page.rows();
            if !page_rows.contains(&at) || at >= rows.end {
                break;
            }
            let end = page_rows.end.min(rows.end);
            parts.push(page.values.slice(at - page.first, end - at));
            at = end;
        }
        if at == rows.end { Ok(parts) } else { Err(ParquetError::General("its pages overlap".to_owned())) }
    }

    /// The selected rows as an array.
    pub(super) fn array(&mut self, rows: &Range<usize>, selection: Option<&BooleanBuffer>) -> Result<ArrayRef> {
        let parts = self.rows(rows)?;
        let mut arrays = Vec::with_capacity(parts.len());
        let mut at = 0;
        for part in parts {
            let here = selection.map(|selection| selection.slice(at, part.len()));
            at += part.len();
            let array = match here.map(|here| (here.count_set_bits(), here)) {
                Some((0, _)) => continue,
                Some((kept, here)) if kept < part.len() => self.filtered(&part, here)?,
                _ => self.whole(&part)?,
            };
            arrays.push(array);
        }
        match arrays.as_slice() {
            [] => Ok(arrow_array::new_empty_array(&self.column.data_type)),
            [one] => Ok(Arc::clone(one)),
            several => Ok(concat(&several.iter().map(AsRef::as_ref).collect::<Vec<_>>())?),
        }
    }

    fn filtered(&self, part: &PageValues, selection: BooleanBuffer) -> Result<ArrayRef> {
        match part {
            PageValues::Plain(values) => arrays::selected(values, selection),
            PageValues::Indices(indices) => {
                let indices = filter(indices, &BooleanArray::new(selection, None))?;
                arrays::gather(self.known_dictionary()?, &indices)
            }
        }
    }

    fn whole(&self, part: &PageValues) -> Result<ArrayRef> {
        match part {
            PageValues::Plain(values) => {
                // A slice of its page: what it holds is what the page takes.
                let held = values.get_buffer_memory_size();
                let own = own_bytes(values);
                if held > arrays::LENT * own.max(1) { copied(values) } else { Ok(Arc::clone(values)) }
            }
            PageValues::Indices(indices) => arrays::gather(self.known_dictionary()?, indices),
        }
    }

    fn known_dictionary(&self) -> Result<&ArrayRef> {
        self.dictionary.as_ref().ok_or_else(|| ParquetError::General("indices without a dictionary".to_owned()))
    }

    /// Lets go of what holds no row that is still wanted.
    pub(super) fn keep(&mut self, wanted: impl Fn(Range<usize>) -> bool) {
        let mut freed = 0;
        self.decoded.retain(|page| {
            let kept = wanted(page.rows());
            freed += if kept { 0 } else { page.bytes };
            kept
        });
        self.memory.shrink(freed);
    }

    /// What is decoded from a row on.
    fn decoded_from(&self, row: usize) -> &[Decoded] {
        let first = self.decoded.partition_point(|page| page.rows().end <= row);
        self.decoded.get(first..).unwrap_or_default()
    }

    /// Decodes these rows as far as they are not there.
    fn cover(&mut self, rows: &Range<usize>) -> Result<()> {
        let mut from = rows.start;
        for page in self.decoded_from(from) {
            if !page.rows().contains(&from) {
                break;
            }
            from = page.rows().end;
        }
        if from >= rows.end {
            return Ok(());
        }
        let total = usize::try_from(self.metadata.row_group(self.group).num_rows())?;
        let mut pages = match self.reader.take().filter(|pages| pages.row <= from) {
            Some(pages) => pages,
            None => Pages { reader: self.pages(total)?, page: None, row: 0 },
        };
        while pages.row < rows.end {
            match &mut pages.page {
                Some(page) => {
                    pages.row = self.step(page, pages.row, from)?;
                    if pages.row >= page.end {
                        pages.page = None;
                    }
                }
                None => self.next_page(&mut pages, from, total)?,
            }
        }
        self.reader = Some(pages);
        self.chunk_bytes.trim();
        Ok(())
    }

    /// Opens the next page, or goes past it if all its rows are before `from`.
    fn next_page(&mut self, pages: &mut Pages, from: usize, total: usize) -> Result<()> {
        let Some(next) = pages.reader.peek_next_page()? else {
            return Err(ParquetError::EOF(format!("its pages end at row {} of {total}", pages.row)));
        };
        if next.is_dict {
            if self.dictionary.is_some() {
                return pages.reader.skip_next_page();
            }
            if let Some(Page::DictionaryPage { buf, num_values, .. }) = pages.reader.get_next_page()? {
                self.set_dictionary(&buf, num_values)?;
            }
            return Ok(());
        }
        let rows = next.num_rows.or(next.num_levels).unwrap_or(0);
        let end = pages.row.checked_add(rows).filter(|&end| end <= total);
        let end = end.ok_or_else(|| ParquetError::General(format!("its pages hold more than {total} rows")))?;
        if end <= from {
            pages.row = end;
            return pages.reader.skip_next_page();
        }
        if let Some(page) = pages.reader.get_next_page()? {
            pages.page = Some(OpenPage { end, values: self.open(page, rows)? });
        }
        Ok(())
    }

    /// Decodes the next rows of a page, to the end of their block; those before `from` for nothing. Says which row is next.
    fn step(&mut self, page: &mut OpenPage, row: usize, from: usize) -> Result<usize> {
        let end = page.end.min((row / BLOCK_ROWS + 1) * BLOCK_ROWS);
        let values = match &mut page.values {
            OpenValues::Indices { levels, indices } => {
                if end <= from {
                    let valid = match levels {
                        Some(levels) => levels.present(end - row, self.column.level)?.count_set_bits(),
                        None => end - row,
                    };
                    indices.skip(valid)?;
                    return Ok(end);
                }
                PageValues::Indices(self.indices(levels.as_mut(), indices, end - row)?)
            }
            OpenValues::Plain(reader) => {
                let values = guarded(|| arrays::next(reader, self.column.fields()))?;
                PageValues::Plain(self.column.meant(&values)?)
            }
        };
        let end = row + values.len();
        if values.len() == 0 || end > page.end {
            return Err(ParquetError::General("a page holds other rows than it says".to_owned()));
        }
        self.decodes.decoded(row..end);
        if end > from && !self.decoded_from(row).first().is_some_and(|known| known.rows().contains(&row)) {
            let bytes = values.bytes();
            self.memory.charge(bytes);
            let at = self.decoded.partition_point(|known| known.first < row);
            self.decoded.insert(at, Decoded { first: row, values, bytes });
        }
        Ok(end)
    }

    fn pages(&self, rows: usize) -> Result<SerializedPageReader<ChunkBytes>> {
        let leaf = self.column.leaf();
        let chunk = self.metadata.row_group(self.group).column(leaf);
        let locations = super::resolved::page_locations(&self.metadata, self.group, leaf);
        SerializedPageReader::new(Arc::clone(&self.chunk_bytes), chunk, rows, locations.map(<[_]>::to_vec))
    }

    fn set_dictionary(&mut self, buf: &bytes::Bytes, count: u32) -> Result<()> {
        let column = &self.column;
        let found = arrays::dictionary(&self.metadata, &column.levels, column.level, (buf, count), column.fields())?;
        if let Some(values) = found {
            let values = column.meant(&values)?;
            self.memory.charge(values.get_buffer_memory_size() as u64);
            self.dictionary = Some(values);
        }
        Ok(())
    }

    fn open(&mut self, page: Page, rows: usize) -> Result<OpenValues> {
        if usize::try_from(page.num_values())? != rows {
            return Err(ParquetError::General(format!("a page of {} values where {rows} rows are", page.num_values())));
        }
        if !matches!(page.encoding(), Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY) {
            return self.plain(vec![page], rows);
        }
        // Where all is null some writers leave the dictionary out.
        self.dictionary.get_or_insert_with(|| arrow_array::new_empty_array(&self.column.data_type));
        let cut_short = || ParquetError::EOF("a page is cut short".to_owned());
        let largest = self.column.level;
        let mut values = page.buffer().clone();
        let mut split = |bytes: usize| {
            if bytes > values.len() { Err(cut_short()) } else { Ok(values.split_to(bytes)) }
        };
        let levels = match &page {
            _ if largest == 0 => None,
            Page::DataPage { def_level_encoding: Encoding::RLE, .. } => {
                let len = split(4)?.first_chunk::<4>().map_or(0, |len| u32::from_le_bytes(*len));
                Some(split(usize::try_from(len)?)?)
            }
            Page::DataPageV2 { def_levels_byte_len, .. } => Some(split(usize::try_from(*def_levels_byte_len)?)?),
            _ => {
                // Levels as they were in the format's first days. The chunk begins with its dictionary.
                let dictionary = self.pages(rows)?.get_next_page()?.filter(Page::is_dictionary_page);
                return self.plain(dictionary.into_iter().chain([page]).collect(), rows);
            }
        };
        let levels = levels.map(|levels| Hybrid::of_levels(levels, largest)).transpose()?;
        // A page of nulls may have no indices, not even their width.
        let width = split(1).ok().and_then(|width| width.first().copied()).unwrap_or(0);
        Ok(OpenValues::Indices { levels, indices: Hybrid::new(values, width)? })
    }

    fn plain(&self, pages: Vec<Page>, rows: usize) -> Result<OpenValues> {
        let step = if rows <= WHOLE_PAGE { rows.max(1) } else { BLOCK_ROWS };
        arrays::reader(&self.metadata, &self.column.levels, pages, (rows, step)).map(OpenValues::Plain)
    }

    /// The next indices of a page: its levels say which rows have one.
    fn indices(&self, levels: Option<&mut Hybrid>, indices: &mut Hybrid, rows: usize) -> Result<UInt32Array> {
        let present = levels.map(|levels| levels.present(rows, self.column.level)).transpose()?;
        let valid = present.as_ref().map_or(rows, BooleanBuffer::count_set_bits);
        let indices = indices.take(valid)?;
        let known = self.known_dictionary()?.len();
        if indices.iter().copied().max().is_some_and(|most| usize::try_from(most).is_ok_and(|most| most >= known)) {
            return Err(ParquetError::General(format!("an index beyond the dictionary's {known} values")));
        }
        let Some(present) = present.filter(|_| valid < rows) else { return Ok(UInt32Array::new(indices.into(), None)) };
        let mut spread = vec![0; rows];
        let mut taken = 0;
        for (start, end) in present.set_slices() {
            let from = indices.get(taken..taken + end - start).unwrap_or_default();
            if let Some(to) = spread.get_mut(start..end) {
                to.copy_from_slice(from);
            }
            taken += end - start;
        }
        Ok(UInt32Array::new(spread.into(), Some(NullBuffer::new(present))))
    }
}

/// Bytes that a slice would take alone, but for what views point into, which is shared anyway.
fn own_bytes(values: &ArrayRef) -> usize {
    let data = values.to_data();
    let shared: usize = match values.data_type() {
        arrow_schema::DataType::Utf8View | arrow_schema::DataType::BinaryView => {
            data.buffers().iter().skip(1).map(arrow_buffer::Buffer::capacity).sum()
        }
        _ => 0,
    };
    data.get_slice_memory_size().unwrap_or(0).saturating_add(shared)
}
