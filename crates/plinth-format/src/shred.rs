//! Arrow arrays to the streams of a column: each node of the tree gets its part of a block's rows.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, FixedSizeListArray, ListArray, MapArray, StructArray, UInt32Array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType};
use arrow_select::take::take;
use plinth_encoding::{Column, Physical, Values};

use crate::types::{Logical, Node};

/// Brings an array to the Arrow type its node is stored as: text and binaries as views, lists as plain lists,
/// dictionaries and runs as the values they stand for.
pub(crate) fn normalise(array: &ArrayRef, target: &DataType) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == target {
        return Ok(Arc::clone(array));
    }
    // Arrow's own cast loses the rows of fixed-size lists of no items, so what nests is rebuilt here.
    Ok(match (array.data_type(), target) {
        (DataType::Struct(_), DataType::Struct(fields)) if !fields.is_empty() => {
            let structs = array.as_struct();
            let children =
                structs.columns().iter().zip(fields).map(|(child, field)| normalise(child, field.data_type()));
            Arc::new(StructArray::try_new(
                fields.clone(),
                children.collect::<Result<_, _>>()?,
                structs.nulls().cloned(),
            )?)
        }
        (DataType::FixedSizeList(..), DataType::FixedSizeList(field, size)) => {
            let list = array.as_fixed_size_list();
            let width = usize::try_from(*size).unwrap_or(0);
            let first = if list.is_empty() { 0 } else { usize::try_from(list.value_offset(0)).unwrap_or(0) };
            let values = normalise(&list.values().slice(first, list.len() * width), field.data_type())?;
            let (nulls, len) = (list.nulls().cloned(), list.len());
            Arc::new(FixedSizeListArray::try_new_with_length(Arc::clone(field), *size, values, nulls, len)?)
        }
        (DataType::List(_), DataType::List(field)) => {
            let list = array.as_list::<i32>();
            let values = normalise(list.values(), field.data_type())?;
            Arc::new(ListArray::try_new(Arc::clone(field), list.offsets().clone(), values, list.nulls().cloned())?)
        }
        (DataType::LargeList(item) | DataType::ListView(item) | DataType::LargeListView(item), DataType::List(_)) => {
            let list = cast_strictly(array, &DataType::List(Arc::clone(item)))?;
            return normalise(&list, target);
        }
        (DataType::Map(..), DataType::Map(field, sorted)) => {
            let map = array.as_map();
            let entries = normalise(&(Arc::new(map.entries().clone()) as ArrayRef), field.data_type())?;
            let (entries, nulls) = (entries.as_struct().clone(), map.nulls().cloned());
            Arc::new(MapArray::try_new(Arc::clone(field), map.offsets().clone(), entries, nulls, *sorted)?)
        }
        (DataType::Dictionary(..), _) if array.as_any_dictionary().values().null_count() > 0 => {
            // A key may stand for NULL, which the cast to a view would take for a text of nothing.
            let dictionary = array.as_any_dictionary();
            return normalise(&take(dictionary.values(), dictionary.keys(), None)?, target);
        }
        _ => cast_strictly(array, target)?,
    })
}

fn cast_strictly(array: &ArrayRef, target: &DataType) -> Result<ArrayRef, ArrowError> {
    cast_with_options(array, target, &CastOptions { safe: false, ..CastOptions::default() })
}

/// Splits normalised rows of a column among the streams of its tree. `parent` marks the rows whose parent is null:
/// they are null in every stream below, so that a field can be read without its struct.
pub(crate) fn shred(
    node: &Node,
    array: &ArrayRef,
    parent: Option<&NullBuffer>,
    emit: &mut impl FnMut(&Node, Column),
) -> Result<(), ArrowError> {
    let len = array.len();
    let own = array.logical_nulls();
    let nulls = NullBuffer::union(parent, own.as_ref()).filter(|nulls| nulls.null_count() > 0);
    let presence = |nulls: Option<&NullBuffer>| Column {
        len,
        values: Values::Bool(nulls.map_or_else(|| BooleanBuffer::new_set(len), |n| n.inner().clone())),
        nulls: None,
    };
    match &node.logical {
        Logical::Struct => {
            let structs = array.as_struct();
            emit(node, presence(nulls.as_ref()));
            for (child, values) in node.children.iter().zip(structs.columns()) {
                shred(child, values, nulls.as_ref(), emit)?;
            }
        }
        Logical::List | Logical::Map { .. } => {
            let (offsets, items): (&[i32], ArrayRef) = match array.data_type() {
                DataType::Map(..) => {
                    let map: &MapArray = array.as_map();
                    (map.value_offsets(), Arc::new(map.entries().clone()))
                }
                _ => {
                    let list = array.as_list::<i32>();
                    (list.value_offsets(), list.values().clone())
                }
            };
            let (lengths, items) = list_parts(offsets, &items, nulls.as_ref())?;
            let lengths = Buffer::from_vec(lengths);
            emit(node, Column { len, values: Values::Fixed(lengths), nulls });
            for child in &node.children {
                shred(child, &items, None, emit)?;
            }
        }
        Logical::FixedList(n) => {
            let list = array.as_fixed_size_list();
            emit(node, presence(nulls.as_ref()));
            // The array's own values may be longer than its rows need after slicing.
            let size = usize::try_from(*n).unwrap_or(0);
            let first = usize::try_from(list.value_offset(0)).unwrap_or(0);
            let items = list.values().slice(if len == 0 { 0 } else { first }, len * size);
            for child in &node.children {
                shred(child, &items, None, emit)?;
            }
        }
        _ => emit(node, Column { len, values: leaf_values(array, node.physical()), nulls }),
    }
    Ok(())
}

/// The length of each list and the items of all, in order: what null lists may still point at is left behind.
fn list_parts(
    offsets: &[i32],
    items: &ArrayRef,
    nulls: Option<&NullBuffer>,
) -> Result<(Vec<u32>, ArrayRef), ArrowError> {
    let mut lengths = Vec::with_capacity(offsets.len().saturating_sub(1));
    let mut hidden = false;
    for (row, pair) in offsets.windows(2).enumerate() {
        let length = u32::try_from(pair[1] - pair[0]).unwrap_or(0);
        if nulls.is_some_and(|nulls| nulls.is_null(row)) {
            hidden |= length > 0;
            lengths.push(0);
        } else {
            lengths.push(length);
        }
    }
    let at = |offset: Option<&i32>| usize::try_from(offset.copied().unwrap_or(0)).unwrap_or(0);
    if !hidden {
        let (first, last) = (at(offsets.first()), at(offsets.last()));
        return Ok((lengths, items.slice(first, last - first)));
    }
    let mut kept = Vec::new();
    for (length, start) in lengths.iter().zip(offsets) {
        let start = start.cast_unsigned();
        kept.extend(start..start + length);
    }
    Ok((lengths, arrow_select::take::take(items, &UInt32Array::from(kept), None)?))
}

/// A leaf's values as they lie in memory.
pub(crate) fn leaf_values(array: &ArrayRef, physical: Physical) -> Values {
    match array.data_type() {
        DataType::Null => Values::Bool(BooleanBuffer::new_unset(array.len())),
        DataType::Boolean => {
            let booleans: &BooleanArray = array.as_boolean();
            Values::Bool(booleans.values().clone())
        }
        DataType::Utf8View => {
            let text = array.as_string_view();
            Values::Views { views: text.views().clone(), buffers: text.data_buffers().to_vec() }
        }
        DataType::BinaryView => {
            let binary = array.as_binary_view();
            Values::Views { views: binary.views().clone(), buffers: binary.data_buffers().to_vec() }
        }
        _ => {
            // Every other leaf is fixed-width: its first buffer holds the values.
            let data = array.to_data();
            let width = physical.fixed_width().unwrap_or(0);
            let values = data
                .buffers()
                .first()
                .map(|buffer| buffer.slice_with_length(data.offset() * width, data.len() * width));
            Values::Fixed(values.unwrap_or_else(|| Buffer::from_vec(Vec::<u8>::new())))
        }
    }
}

/// Bytes of a view.
pub(crate) const VIEW_BYTES: usize = 16;

/// Bytes a column's values take in memory in Arrow's layout: the yardstick of compression ratios. Validity is left out,
/// and what the slots of null rows hold does not count.
pub(crate) fn value_bytes(column: &Column) -> u64 {
    match &column.values {
        Values::Bool(bits) => bits.len().div_ceil(8) as u64,
        Values::Fixed(buffer) => buffer.len() as u64,
        Values::Views { views, buffers } => {
            let views = views.get(..column.len).unwrap_or_default();
            let long = match &column.nulls {
                None => long_bytes(views, buffers),
                Some(nulls) => nulls
                    .valid_slices()
                    .map(|(from, to)| long_bytes(views.get(from..to).unwrap_or_default(), buffers))
                    .sum(),
            };
            (column.len * VIEW_BYTES) as u64 + long
        }
    }
}

/// Bytes one value takes in memory, for types that a dictionary can hold.
pub(crate) fn value_memory(values: &Values, row: usize) -> u64 {
    match values {
        Values::Views { views, .. } => {
            let len = views.get(row).map_or(0, |view| view & u128::from(u32::MAX));
            VIEW_BYTES as u64 + if len > 12 { u64::try_from(len).unwrap_or(0) } else { 0 }
        }
        Values::Bool(_) | Values::Fixed(_) => 0,
    }
}

/// Bytes of those values of some views that lie in their buffers. Without buffers there are none, and no view is looked at.
pub(crate) fn long_bytes(views: &[u128], buffers: &[Buffer]) -> u64 {
    if buffers.is_empty() { 0 } else { views.iter().map(|view| long_len(*view)).sum() }
}

#[allow(clippy::cast_possible_truncation, reason = "a view's low 32 bits are the length")]
pub(crate) fn long_len(view: u128) -> u64 {
    /// Longest value a view holds itself.
    const INLINE: u32 = 12;
    if view as u32 > INLINE { u64::from(view as u32) } else { 0 }
}
