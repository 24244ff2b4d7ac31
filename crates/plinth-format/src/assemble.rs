//! Streams to Arrow arrays: the other direction of `shred`.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryViewArray, BooleanArray, FixedSizeListArray, ListArray, MapArray, NullArray, StringViewArray,
    StructArray, make_array,
};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use plinth_encoding::{Column, EncodingError, Result, Values};

use crate::meta::MOST_BLOCK_VALUES;
use crate::types::{Logical, Node};

/// A decoder of the rows of a stream's block that a selection keeps (all without one).
pub(crate) trait DecodeStream {
    /// What a struct's or list's stream says: presence or lengths.
    fn shape(&mut self, node: &Node, selection: Option<&BooleanBuffer>) -> Result<Column>;

    /// A leaf's values.
    fn leaf(&mut self, node: &Node, selection: Option<&BooleanBuffer>) -> Result<ArrayRef>;
}

/// Builds the array of a column's selected rows from the current block of its streams.
pub(crate) fn assemble(
    node: &Node,
    selection: Option<&BooleanBuffer>,
    streams: &mut impl DecodeStream,
) -> Result<ArrayRef> {
    match &node.logical {
        Logical::Struct => {
            let (len, nulls) = presence(streams.shape(node, selection)?)?;
            let children =
                node.children.iter().map(|child| assemble(child, selection, streams)).collect::<Result<Vec<_>>>()?;
            let DataType::Struct(fields) = node.arrow_type() else { return Err(EncodingError::corrupt("no struct")) };
            if children.is_empty() {
                return Ok(Arc::new(StructArray::new_empty_fields(len, nulls)));
            }
            Ok(Arc::new(StructArray::try_new(fields, children, nulls).map_err(corrupt)?))
        }
        Logical::List | Logical::Map { .. } => list(node, selection, streams),
        Logical::FixedList(n) => {
            let (len, nulls) = presence(streams.shape(node, selection)?)?;
            let size = usize::try_from(*n).unwrap_or(0);
            check_items(selection.map_or(len, BooleanBuffer::len) as u64 * u64::from(*n))?;
            let item_selection = selection.map(|rows| {
                let mut items = BooleanBufferBuilder::new(rows.len() * size);
                rows.iter().for_each(|kept| items.append_n(size, kept));
                items.finish()
            });
            let items = assemble(only_child(node)?, item_selection.as_ref(), streams)?;
            if items.len() != len * size {
                return Err(wrong_items(items.len(), len * size));
            }
            let DataType::FixedSizeList(field, width) = node.arrow_type() else {
                return Err(EncodingError::corrupt("no fixed-size list"));
            };
            let list = FixedSizeListArray::try_new_with_length(field, width, items, nulls, len).map_err(corrupt)?;
            Ok(Arc::new(list))
        }
        _ => streams.leaf(node, selection),
    }
}

/// Lists and maps. The lengths of all rows are needed to know which items the selected rows own.
fn list(node: &Node, selection: Option<&BooleanBuffer>, streams: &mut impl DecodeStream) -> Result<ArrayRef> {
    let all = streams.shape(node, None)?;
    // Lists in lists: how many there are was said by the lists around them.
    if let Some(rows) = selection.map(BooleanBuffer::len).filter(|&rows| rows != all.len) {
        return Err(wrong_items(all.len, rows));
    }
    let Values::Fixed(lengths) = &all.values else { return Err(EncodingError::corrupt("a list without lengths")) };
    let lengths = ScalarBuffer::<u32>::new(lengths.clone(), 0, all.len);
    let is_null = |row: usize| all.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
    let length = |(row, &length): (usize, &u32)| if is_null(row) { 0 } else { length };
    check_items(lengths.iter().enumerate().map(|list| u64::from(length(list))).sum())?;
    let mut offsets = vec![0i32];
    let mut end = 0i32;
    let mut items = selection.map(|_| BooleanBufferBuilder::new(0));
    for (row, length) in lengths.iter().enumerate().map(|list| (list.0, length(list))) {
        let kept = selection.is_none_or(|rows| rows.value(row));
        if let Some(items) = &mut items {
            items.append_n(length as usize, kept);
        }
        if kept {
            end = i32::try_from(length)
                .ok()
                .and_then(|length| end.checked_add(length))
                .ok_or_else(|| EncodingError::corrupt("a block's lists hold more items than 31 bits count"))?;
            offsets.push(end);
        }
    }
    let nulls = match (all.nulls, selection) {
        (Some(nulls), Some(rows)) => Some(rows.set_indices().map(|row| nulls.is_valid(row)).collect::<NullBuffer>())
            .filter(|n| n.null_count() > 0),
        (nulls, _) => nulls,
    };
    let items = items.map(|mut items| items.finish());
    let values = assemble(only_child(node)?, items.as_ref(), streams)?;
    if i32::try_from(values.len()) != Ok(end) {
        return Err(wrong_items(values.len(), usize::try_from(end).unwrap_or(0)));
    }
    let offsets = OffsetBuffer::new(offsets.into());
    match node.arrow_type() {
        DataType::Map(field, sorted) => {
            let entries = values.as_any().downcast_ref::<StructArray>().cloned();
            let entries = entries.ok_or_else(|| EncodingError::corrupt("a map whose entries are no structs"))?;
            Ok(Arc::new(MapArray::try_new(field, offsets, entries, nulls, sorted).map_err(corrupt)?))
        }
        DataType::List(field) => Ok(Arc::new(ListArray::try_new(field, offsets, values, nulls).map_err(corrupt)?)),
        _ => Err(EncodingError::corrupt("no list")),
    }
}

/// Before anything is allocated for the items of a block's lists.
fn check_items(items: u64) -> Result<()> {
    if items <= u64::from(MOST_BLOCK_VALUES) {
        return Ok(());
    }
    Err(EncodingError::corrupt(format!("lists of {items} items, more than a block may hold")))
}

fn wrong_items(found: usize, expected: usize) -> EncodingError {
    EncodingError::corrupt(format!("{found} items where the lists have {expected}"))
}

fn only_child(node: &Node) -> Result<&Node> {
    node.children.first().ok_or_else(|| EncodingError::corrupt("a list of nothing"))
}

fn presence(column: Column) -> Result<(usize, Option<NullBuffer>)> {
    let Values::Bool(present) = column.values else { return Err(EncodingError::corrupt("presence that is not bits")) };
    Ok((column.len, Some(NullBuffer::new(present)).filter(|nulls| nulls.null_count() > 0)))
}

fn corrupt(error: arrow_schema::ArrowError) -> EncodingError {
    EncodingError::corrupt(error.to_string())
}

/// A leaf's array.
pub(crate) fn leaf(node: &Node, column: Column) -> Result<ArrayRef> {
    let Column { len, values, nulls } = column;
    match values {
        Values::Bool(_) if node.logical == Logical::Null => Ok(Arc::new(NullArray::new(len))),
        Values::Bool(bits) => Ok(Arc::new(BooleanArray::new(bits, nulls))),
        Values::Views { views, buffers } => Ok(views_array(node.logical == Logical::Utf8, views, buffers, nulls)),
        Values::Fixed(buffer) => fixed_array(node, len, buffer, nulls),
    }
}

fn fixed_array(node: &Node, len: usize, buffer: Buffer, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    let data =
        ArrayData::builder(node.arrow_type()).len(len).add_buffer(buffer).nulls(nulls).align_buffers(true).build();
    Ok(make_array(data.map_err(corrupt)?))
}

/// Arrow would check every view and the UTF-8 of every value again, which costs more than decoding them.
#[allow(unsafe_code, reason = "the values were checked where they were decoded")]
fn views_array(utf8: bool, views: ScalarBuffer<u128>, buffers: Vec<Buffer>, nulls: Option<NullBuffer>) -> ArrayRef {
    let buffers: Arc<[Buffer]> = buffers.into();
    // SAFETY: `Values::Views` comes from `Block::decode` and `Dictionary::gather` only, which build every view
    // themselves from lengths they checked, over the buffers they return, and validate the bytes as UTF-8 when the
    // stream's physical type is `Bytes { utf8: true }`, which is the one `Logical::Utf8` has. Slots of null rows hold
    // views they built as well.
    unsafe {
        if utf8 {
            Arc::new(StringViewArray::new_unchecked(views, buffers, nulls))
        } else {
            Arc::new(BinaryViewArray::new_unchecked(views, buffers, nulls))
        }
    }
}
