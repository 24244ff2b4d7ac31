//! Pages as Arrow arrays, by the decoders of the `parquet` crate.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, StructArray, make_array, new_null_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_data::transform::MutableArrayData;
use arrow_schema::DataType;
use arrow_select::concat::concat;
use arrow_select::filter::filter;
use arrow_select::take::take;
use bytes::Bytes;
use parquet::arrow::FieldLevels;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowGroups};
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use plinth_core::sync::lock;
use plinth_encoding::text::compact_wasteful;
use plinth_encoding::{Column, Physical, Values};
use plinth_ingest::checked_pages;

/// Memory is shared with the rest of a page, but not for so many times the rows.
pub(super) const LENT: usize = 4;

/// Values of a dictionary decoded at a time: what a page header claims is not allocated before it is there.
const STEP: usize = 1 << 17;

/// Runs code of the decoders, whose panics over damaged files are errors of those files.
pub(super) fn guarded<T>(decode: impl FnOnce() -> Result<T>) -> Result<T> {
    std::panic::catch_unwind(AssertUnwindSafe(decode))
        .unwrap_or_else(|_| Err(ParquetError::General("its pages are damaged".to_owned())))
}

/// Where the values of a column lie in what a reader of its leaves gives: the fields to descend into.
pub(super) fn descend(array: &ArrayRef, fields: &[String]) -> Result<ArrayRef> {
    let mut here = Arc::clone(array);
    for name in fields {
        let parent = here.as_struct_opt().ok_or_else(|| missing(name))?;
        let child = Arc::clone(parent.column_by_name(name).ok_or_else(|| missing(name))?);
        here = match parent.nulls() {
            Some(nulls) if nulls.null_count() > 0 => with_nulls(&child, nulls)?,
            _ => child,
        };
    }
    Ok(here)
}

fn missing(name: &str) -> ParquetError {
    ParquetError::General(format!("there is no field {name:?}"))
}

/// Where a struct is null its fields are.
fn with_nulls(array: &ArrayRef, nulls: &NullBuffer) -> Result<ArrayRef> {
    let nulls = NullBuffer::union(array.nulls(), Some(nulls));
    if let Some(fields) = array.as_struct_opt() {
        let (names, columns, _) = fields.clone().into_parts();
        return Ok(match columns.is_empty() {
            true => Arc::new(StructArray::new_empty_fields(array.len(), nulls)),
            false => Arc::new(StructArray::try_new(names, columns, nulls)?),
        });
    }
    Ok(make_array(array.to_data().into_builder().nulls(nulls).build()?))
}

/// Decodes a page of a leaf without repeated levels, perhaps after its dictionary, some rows at a time.
pub(super) fn reader(
    metadata: &ParquetMetaData,
    levels: &FieldLevels,
    pages: Vec<Page>,
    (rows, step): (usize, usize),
) -> Result<ParquetRecordBatchReader> {
    let group = Pages { metadata, rows, pages: Mutex::new(Some(pages)) };
    ParquetRecordBatchReader::try_new_with_row_groups(levels, &group, step, None)
}

/// The column of a reader's next rows.
pub(super) fn next(reader: &mut ParquetRecordBatchReader, fields: &[String]) -> Result<ArrayRef> {
    let batch = reader.next().transpose()?.ok_or_else(|| ParquetError::EOF("a page holds too few rows".to_owned()))?;
    descend(batch.columns().first().ok_or_else(|| missing(""))?, fields)
}

/// The values of a dictionary page: those of a data page on which nothing is null.
pub(super) fn dictionary(
    metadata: &ParquetMetaData,
    levels: &FieldLevels,
    largest_level: i16,
    (values, count): (&Bytes, u32),
    fields: &[String],
) -> Result<Option<ArrayRef>> {
    let rows = usize::try_from(count)?;
    // A value has a byte at least, and where there are none it cannot be told how many.
    if rows > values.len() {
        return Err(ParquetError::EOF(format!("a dictionary of {rows} values has {} bytes", values.len())));
    }
    if rows == 0 {
        return Ok(None);
    }
    let mut buf = Vec::with_capacity(values.len() + 16);
    if largest_level > 0 {
        let mut run = Vec::with_capacity(8);
        let mut header = u64::from(count) << 1;
        while header >= 0x80 {
            run.push(u8::try_from(header & 0x7F).unwrap_or(0) | 0x80);
            header >>= 7;
        }
        run.push(u8::try_from(header).unwrap_or(0));
        run.push(u8::try_from(largest_level).map_err(|_| ParquetError::General("levels beyond 255".to_owned()))?);
        buf.extend_from_slice(&u32::try_from(run.len())?.to_le_bytes());
        buf.extend_from_slice(&run);
    }
    buf.extend_from_slice(values);
    let page = Page::DataPage {
        buf: buf.into(),
        num_values: count,
        encoding: Encoding::PLAIN,
        def_level_encoding: Encoding::RLE,
        rep_level_encoding: Encoding::RLE,
        statistics: None,
    };
    let mut reader = reader(metadata, levels, vec![page], (rows, rows.min(STEP)))?;
    let (mut arrays, mut found) = (Vec::new(), 0);
    while found < rows {
        let values = next(&mut reader, fields)?;
        found += values.len();
        arrays.push(values);
    }
    Ok(Some(concat(&arrays.iter().map(AsRef::as_ref).collect::<Vec<_>>())?))
}

/// The values of a dictionary that indices within it stand for.
pub(super) fn gather(dictionary: &ArrayRef, indices: &dyn Array) -> Result<ArrayRef> {
    if dictionary.is_empty() {
        return Ok(new_null_array(dictionary.data_type(), indices.len()));
    }
    Ok(take(dictionary, indices, None)?)
}

/// A row group of a few pages of one leaf.
struct Pages<'a> {
    metadata: &'a ParquetMetaData,
    rows: usize,
    pages: Mutex<Option<Vec<Page>>>,
}

impl RowGroups for Pages<'_> {
    fn num_rows(&self) -> usize {
        self.rows
    }

    fn column_chunks(&self, leaf: usize) -> Result<Box<dyn PageIterator>> {
        let pages = lock(&self.pages).take().unwrap_or_default();
        let column = self.metadata.file_metadata().schema_descr().columns().get(leaf);
        let column = column.ok_or_else(|| ParquetError::General(format!("there is no column {leaf}")))?;
        Ok(checked_pages(Queue(pages.into()), column))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(std::iter::empty())
    }

    fn metadata(&self) -> &ParquetMetaData {
        self.metadata
    }
}

/// Pages that are in memory.
struct Queue(VecDeque<Page>);

impl Iterator for Queue {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.pop_front().map(Ok)
    }
}

impl PageReader for Queue {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        Ok(self.0.pop_front())
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        Ok(self.0.front().map(|page| PageMetadata {
            num_rows: None,
            num_levels: usize::try_from(page.num_values()).ok(),
            is_dict: page.is_dictionary_page(),
        }))
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.0.pop_front();
        Ok(())
    }
}

/// The physical type that values of an Arrow type are compared as; `None` if they are not, or not here.
pub(super) fn physical(data_type: &DataType) -> Option<Physical> {
    let int = |width, signed| Some(Physical::Int { width, signed });
    match data_type {
        DataType::Boolean => Some(Physical::Bool),
        DataType::Int8 => int(1, true),
        DataType::Int16 => int(2, true),
        DataType::Int32 | DataType::Date32 | DataType::Time32(_) | DataType::Decimal32(..) => int(4, true),
        DataType::Int64
        | DataType::Date64
        | DataType::Time64(_)
        | DataType::Timestamp(..)
        | DataType::Duration(_)
        | DataType::Decimal64(..) => int(8, true),
        DataType::UInt8 => int(1, false),
        DataType::UInt16 => int(2, false),
        DataType::UInt32 => int(4, false),
        DataType::UInt64 => int(8, false),
        DataType::Decimal128(..) => Some(Physical::Wide { width: 16 }),
        DataType::Decimal256(..) => Some(Physical::Wide { width: 32 }),
        DataType::Float16 => Some(Physical::Float { width: 2 }),
        DataType::Float32 => Some(Physical::Float { width: 4 }),
        DataType::Float64 => Some(Physical::Float { width: 8 }),
        DataType::FixedSizeBinary(width) => u32::try_from(*width).ok().map(|width| Physical::Fixed { width }),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(Physical::Bytes { utf8: true }),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Some(Physical::Bytes { utf8: false }),
        _ => None,
    }
}

/// An array of such a type in physical terms.
pub(super) fn column(array: &ArrayRef) -> Option<Column> {
    let (len, nulls) = (array.len(), array.nulls().filter(|nulls| nulls.null_count() > 0).cloned());
    let views = |views: &ScalarBuffer<u128>, buffers: &[Buffer]| Values::Views {
        views: views.clone(),
        buffers: buffers.to_vec(),
    };
    let values = match array.data_type() {
        DataType::Boolean => Values::Bool(array.as_boolean().values().clone()),
        DataType::Utf8View => {
            let array = array.as_string_view();
            views(array.views(), array.data_buffers())
        }
        DataType::BinaryView => {
            let array = array.as_binary_view();
            views(array.views(), array.data_buffers())
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => {
            let array: arrow_array::BinaryViewArray = match array.data_type() {
                DataType::Utf8 => array.as_string::<i32>().iter().map(|v| v.map(str::as_bytes)).collect(),
                DataType::LargeUtf8 => array.as_string::<i64>().iter().map(|v| v.map(str::as_bytes)).collect(),
                DataType::Binary => array.as_binary::<i32>().iter().collect(),
                _ => array.as_binary::<i64>().iter().collect(),
            };
            views(array.views(), array.data_buffers())
        }
        other => {
            let width = physical(other)?.fixed_width()?;
            let data = array.to_data();
            let buffer = data.buffers().first()?;
            let (from, bytes) = (data.offset() * width, len * width);
            if from + bytes > buffer.len() {
                return None;
            }
            Values::Fixed(buffer.slice_with_length(from, bytes))
        }
    };
    Some(Column { len, values, nulls })
}

/// A copy of a slice, which keeps no more in memory than its rows.
pub(super) fn copied(array: &ArrayRef) -> Result<ArrayRef> {
    let data = array.to_data();
    let mut copy = MutableArrayData::new(vec![&data], false, data.len());
    copy.try_extend(0, 0, data.len())?;
    Ok(make_array(copy.freeze()))
}

/// The selected values. A few out of many do not keep the others in memory; of a larger part the page is shared: it is held
/// for the rest of it anyway.
pub(super) fn selected(values: &ArrayRef, selection: BooleanBuffer) -> Result<ArrayRef> {
    let selection = BooleanArray::new(selection, None);
    let found = filter(values, &selection)?;
    Ok(if found.len() < values.len() / LENT { compacted(&found) } else { found })
}

/// Values without the memory of others, where that is most of it.
pub(super) fn compacted(array: &ArrayRef) -> ArrayRef {
    compact_wasteful(array, 0, Buffer::len)
}
