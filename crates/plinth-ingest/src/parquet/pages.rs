//! Pages of foreign files, looked at before the `parquet` crate makes room for what their headers claim.
//!
//! It fills a dictionary of so many values as the header of its page says, and reads them then: of a file of some hundred bytes 8 GB are
//! written. So it does with lengths of texts ([`lengths`]).

mod lengths;

use std::sync::Arc;

use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowGroups};
use parquet::arrow::{FieldLevels, ProjectionMask, parquet_to_arrow_field_levels};
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescriptor;

/// The pages of a column's chunk. More values of a dictionary, or lengths of texts, than there are bytes for are an error.
pub fn checked_pages(pages: impl PageReader + 'static, column: &ColumnDescriptor) -> Box<dyn PageIterator> {
    let levels = [column.max_rep_level(), column.max_def_level()];
    Box::new(Once(Some(Box::new(Checked { pages, levels }))))
}

/// One column chunk.
struct Once(Option<Box<dyn PageReader>>);

impl Iterator for Once {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(Ok)
    }
}

impl PageIterator for Once {}

struct Checked<P> {
    pages: P,
    /// The largest levels of repetition and definition.
    levels: [i16; 2],
}

impl<P> Checked<P> {
    fn check(&self, page: &Page) -> Result<()> {
        match page {
            // A value has a byte at least, and where there are none it cannot be told how many.
            Page::DictionaryPage { buf, num_values, .. } if usize::try_from(*num_values)? > buf.len() => {
                Err(ParquetError::EOF(format!("a dictionary of {num_values} values has {} bytes", buf.len())))
            }
            Page::DataPage { buf, num_values, encoding, def_level_encoding, rep_level_encoding, .. }
                if is_of_lengths(*encoding) =>
            {
                let count = usize::try_from(*num_values)?;
                let mut values = buf.as_ref();
                for (level, encoding) in self.levels.into_iter().zip([rep_level_encoding, def_level_encoding]) {
                    values = values.get(bytes_of_levels(level, *encoding, values, count)?..).ok_or_else(ends)?;
                }
                lengths::check(*encoding, values, count)
            }
            Page::DataPageV2 { buf, num_values, encoding, def_levels_byte_len, rep_levels_byte_len, .. }
                if is_of_lengths(*encoding) =>
            {
                let levels = usize::try_from(*def_levels_byte_len)?.checked_add(usize::try_from(*rep_levels_byte_len)?);
                let values = levels.and_then(|levels| buf.get(levels..)).ok_or_else(ends)?;
                lengths::check(*encoding, values, usize::try_from(*num_values)?)
            }
            _ => Ok(()),
        }
    }
}

fn is_of_lengths(encoding: Encoding) -> bool {
    matches!(encoding, Encoding::DELTA_LENGTH_BYTE_ARRAY | Encoding::DELTA_BYTE_ARRAY)
}

/// The bytes that the levels before a page's values take.
fn bytes_of_levels(largest: i16, encoding: Encoding, page: &[u8], count: usize) -> Result<usize> {
    if largest <= 0 {
        return Ok(0);
    }
    if encoding == Encoding::RLE {
        let length = page.first_chunk::<4>().ok_or_else(ends)?;
        return usize::try_from(u32::from_le_bytes(*length))?.checked_add(4).ok_or_else(ends);
    }
    // The oldest writers pack their bits without a length.
    let bits = usize::try_from(i16::BITS - largest.leading_zeros())?;
    Ok(count.checked_mul(bits).ok_or_else(ends)?.div_ceil(8))
}

fn ends() -> ParquetError {
    ParquetError::EOF("a page ends within its levels".to_owned())
}

impl<P: PageReader> Iterator for Checked<P> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl<P: PageReader> PageReader for Checked<P> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        page.as_ref().map_or(Ok(()), |page| self.check(page))?;
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

/// A row group of an open file.
pub(super) struct Group<R> {
    file: Arc<R>,
    metadata: Arc<ParquetMetaData>,
    number: usize,
    rows: usize,
}

impl<R: ChunkReader + 'static> Group<R> {
    /// # Errors
    /// If the file has no row group of this number, or one of less than no rows.
    pub(super) fn new(file: R, metadata: Arc<ParquetMetaData>, number: usize) -> Result<Self> {
        let rows = metadata.row_groups().get(number).map(RowGroupMetaData::num_rows);
        let rows = rows.ok_or_else(|| ParquetError::General("there is no such row group".to_owned()))?;
        Ok(Self { file: Arc::new(file), metadata, number, rows: usize::try_from(rows)? })
    }

    /// Decodes its columns to the types of a schema, some rows at a time.
    ///
    /// # Errors
    /// If columns can't be decoded to these types, or the first pages are damaged.
    pub(super) fn reader(&self, schema: &arrow_schema::Schema, rows: usize) -> Result<ParquetRecordBatchReader> {
        let stored = self.metadata.file_metadata().schema_descr();
        let levels: FieldLevels = parquet_to_arrow_field_levels(stored, ProjectionMask::all(), Some(schema.fields()))?;
        ParquetRecordBatchReader::try_new_with_row_groups(&levels, self, rows, None)
    }
}

impl<R: ChunkReader + 'static> RowGroups for Group<R> {
    fn num_rows(&self) -> usize {
        self.rows
    }

    fn column_chunks(&self, leaf: usize) -> Result<Box<dyn PageIterator>> {
        let chunk = self.metadata.row_group(self.number).columns().get(leaf);
        let chunk = chunk.ok_or_else(|| ParquetError::General(format!("a row group lacks column {leaf}")))?;
        let pages = SerializedPageReader::new(Arc::clone(&self.file), chunk, self.rows, None)?;
        Ok(checked_pages(pages, chunk.column_descr()))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(self.metadata.row_groups().get(self.number).into_iter())
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}
