//! How much memory rows take, told from their values alone: not from how they were batched, encoded or sliced, so that
//! what is decided by it is the same for the same rows.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowDictionaryKeyType, Int8Type, Int16Type, Int32Type, Int64Type};
use arrow_array::types::{UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, GenericByteArray, OffsetSizeTrait, PrimitiveArray, types::ByteArrayType};
use arrow_buffer::{ArrowNativeType, Buffer};
use arrow_schema::DataType;

use crate::shred::{VIEW_BYTES, long_bytes, long_len};

/// Longest value a view holds itself.
const INLINE: usize = 12;

/// Bytes some rows of an array take once they are laid out as they are stored: text and binaries as views.
pub(crate) fn weigh(array: &dyn Array, rows: Range<usize>) -> u64 {
    let len = rows.len() as u64;
    match array.data_type() {
        DataType::Null => 0,
        // Whole bytes, so that the sum over slices is the weight of the whole.
        DataType::Boolean => len,
        DataType::FixedSizeBinary(width) => len * u64::from(width.unsigned_abs()),
        DataType::Utf8View => views(array.as_string_view().views(), array.as_string_view().data_buffers(), rows),
        DataType::BinaryView => views(array.as_binary_view().views(), array.as_binary_view().data_buffers(), rows),
        DataType::Utf8 => bytes(array.as_string::<i32>(), rows),
        DataType::LargeUtf8 => bytes(array.as_string::<i64>(), rows),
        DataType::Binary => bytes(array.as_binary::<i32>(), rows),
        DataType::LargeBinary => bytes(array.as_binary::<i64>(), rows),
        DataType::Dictionary(key, _) => match key.as_ref() {
            DataType::Int8 => dictionary::<Int8Type>(array, rows),
            DataType::Int16 => dictionary::<Int16Type>(array, rows),
            DataType::Int32 => dictionary::<Int32Type>(array, rows),
            DataType::Int64 => dictionary::<Int64Type>(array, rows),
            DataType::UInt8 => dictionary::<UInt8Type>(array, rows),
            DataType::UInt16 => dictionary::<UInt16Type>(array, rows),
            DataType::UInt32 => dictionary::<UInt32Type>(array, rows),
            _ => dictionary::<UInt64Type>(array, rows),
        },
        DataType::RunEndEncoded(_, values) => {
            arrow_cast::cast(&array.slice(rows.start, rows.len()), values.data_type())
                .map_or(0, |values| weigh(&values, 0..values.len()))
        }
        DataType::Struct(_) => {
            array.as_struct().columns().iter().map(|child| weigh(child, rows.clone())).sum::<u64>() + len
        }
        DataType::List(_) => items(array.as_list::<i32>().values(), array.as_list::<i32>().value_offsets(), rows),
        DataType::LargeList(_) => items(array.as_list::<i64>().values(), array.as_list::<i64>().value_offsets(), rows),
        DataType::Map(..) => {
            let map = array.as_map();
            map.entries().columns().iter().map(|child| items(child, map.value_offsets(), rows.clone())).sum()
        }
        DataType::FixedSizeList(..) => {
            let list = array.as_fixed_size_list();
            let size = usize::try_from(list.value_length()).unwrap_or(0);
            weigh(list.values(), rows.start * size..rows.end * size)
        }
        other => other.primitive_width().map_or_else(|| any(array, rows), |width| len * width as u64),
    }
}

fn views(views: &[u128], buffers: &[Buffer], rows: Range<usize>) -> u64 {
    let views = views.get(rows).unwrap_or_default();
    (views.len() * VIEW_BYTES) as u64 + long_bytes(views, buffers)
}

fn view(view: &u128) -> u64 {
    VIEW_BYTES as u64 + long_len(*view)
}

fn value(len: usize) -> u64 {
    (VIEW_BYTES + if len > INLINE { len } else { 0 }) as u64
}

fn bytes<T: ByteArrayType>(array: &GenericByteArray<T>, rows: Range<usize>) -> u64 {
    let offsets = array.value_offsets().get(rows.start..=rows.end).unwrap_or_default();
    offsets.windows(2).map(|pair| value(pair[1].as_usize() - pair[0].as_usize())).sum()
}

/// Each row as the value it stands for; null rows as empty ones.
fn dictionary<K: ArrowDictionaryKeyType>(array: &dyn Array, rows: Range<usize>) -> u64 {
    fn of_keys<K: ArrowDictionaryKeyType>(
        keys: &PrimitiveArray<K>,
        rows: Range<usize>,
        of: impl Fn(usize) -> u64,
    ) -> u64 {
        rows.map(|row| if keys.is_null(row) { value(0) } else { of(keys.value(row).as_usize()) }).sum()
    }
    let array = array.as_dictionary::<K>();
    let (keys, values) = (array.keys(), array.values());
    match values.data_type() {
        DataType::Utf8View => {
            let views = values.as_string_view().views();
            of_keys(keys, rows, |key| views.get(key).map_or(0, view))
        }
        DataType::BinaryView => {
            let views = values.as_binary_view().views();
            of_keys(keys, rows, |key| views.get(key).map_or(0, view))
        }
        other => match other.primitive_width() {
            Some(width) => (rows.len() * width) as u64,
            None => of_keys(keys, rows, |key| if key < values.len() { weigh(values, key..key + 1) } else { 0 }),
        },
    }
}

fn items<O: OffsetSizeTrait>(values: &ArrayRef, offsets: &[O], rows: Range<usize>) -> u64 {
    let at = |row: usize| offsets.get(row).map_or(0, |offset| offset.as_usize());
    (rows.len() * 4) as u64 + weigh(values, at(rows.start)..at(rows.end))
}

/// Rare types: by what Arrow says of a slice.
fn any(array: &dyn Array, rows: Range<usize>) -> u64 {
    array.slice(rows.start, rows.len()).to_data().get_slice_memory_size().map_or(0, |bytes| bytes as u64)
}
