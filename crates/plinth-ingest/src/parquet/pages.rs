//! Pages of foreign files, looked at before the `parquet` crate makes room for what their headers claim.
//!
//! It fills a dictionary of so many values as the header of its page says, and reads them then: by 53 bytes of a file 8 GB would be written.

use std::sync::Arc;

use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowGroups};
use parquet::arrow::{FieldLevels, ProjectionMask, parquet_to_arrow_field_levels};
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;

/// The pages of a column chunk, of which a dictionary that has more values than bytes is an error.
pub fn checked_pages(pages: impl PageReader + 'static) -> Box<dyn PageIterator> {
    Box::new(Once(Some(Box::new(Checked(pages)))))
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

struct Checked<P>(P);

impl<P: PageReader> Iterator for Checked<P> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl<P: PageReader> PageReader for Checked<P> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.0.get_next_page()?;
        // A value has a byte at least, and where there are none it cannot be told how many.
        if let Some(Page::DictionaryPage { buf, num_values, .. }) = &page
            && usize::try_from(*num_values)? > buf.len()
        {
            return Err(ParquetError::EOF(format!("a dictionary of {num_values} values has {} bytes", buf.len())));
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.0.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.0.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.0.at_record_boundary()
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
        Ok(checked_pages(SerializedPageReader::new(Arc::clone(&self.file), chunk, self.rows, None)?))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(self.metadata.row_groups().get(self.number).into_iter())
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}
