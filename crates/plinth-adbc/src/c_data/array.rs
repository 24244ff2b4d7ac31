//! Arrays as `ArrowArray`, there and back: pointers to the same buffers.

use std::ffi::c_void;
use std::ptr::{NonNull, null, null_mut};
use std::sync::Arc;

use arrow_array::{Array, RecordBatch, RecordBatchOptions, StructArray};
use arrow_buffer::{BooleanBufferBuilder, Buffer};
use arrow_data::{ArrayData, BufferSpec, layout};
use arrow_schema::{DataType, SchemaRef};

use super::{CArray, Result, all_of, count};

/// What a structure that was made here holds.
struct Private {
    // Read by their pointers.
    _buffers: Vec<Option<Buffer>>,
    pointers: Box<[*const c_void]>,
    children: Box<[*mut CArray]>,
    dictionary: *mut CArray,
}

/// Releases a structure that was made here.
unsafe extern "C" fn release(array: *mut CArray) {
    // SAFETY: the consumer hands in a structure of ours that is not released.
    let array = unsafe { &mut *array };
    // SAFETY: it was made of such a box.
    let private = unsafe { Box::from_raw(array.private_data.cast::<Private>()) };
    for child in private.children.iter().chain([&private.dictionary]).filter(|child| !child.is_null()) {
        // SAFETY: each was made of a box; one that the consumer has moved out is marked as released.
        drop(unsafe { Box::from_raw(*child) });
    }
    array.release = None;
    array.private_data = null_mut();
}

fn to_i64(of: usize) -> Result<i64> {
    i64::try_from(of).map_err(|e| e.to_string())
}

/// The validity of values, from the bit at which the data starts.
fn validity(data: &ArrayData) -> Option<Buffer> {
    let nulls = data.nulls()?;
    if nulls.offset() == data.offset() {
        return Some(nulls.buffer().clone());
    }
    if data.offset() == 0 {
        return Some(nulls.inner().sliced());
    }
    let mut bits = BooleanBufferBuilder::new(data.offset() + nulls.len());
    bits.append_n(data.offset(), false);
    bits.append_buffer(nulls.inner());
    Some(bits.finish().into_inner())
}

impl CArray {
    /// The rows of a batch as an array of structs.
    ///
    /// # Errors
    /// If a length is beyond what the interface has.
    pub fn of_batch(batch: RecordBatch) -> Result<Self> {
        Self::of(&StructArray::from(batch).to_data())
    }

    fn of(data: &ArrayData) -> Result<Self> {
        let layout = layout(data.data_type());
        let mut buffers: Vec<Option<Buffer>> = Vec::with_capacity(data.buffers().len() + 2);
        if layout.can_contain_null_mask {
            buffers.push(validity(data));
        }
        buffers.extend(data.buffers().iter().cloned().map(Some));
        if layout.variadic {
            let lengths =
                data.buffers().iter().skip(1).map(|buffer| to_i64(buffer.len())).collect::<Result<Vec<_>>>()?;
            buffers.push(Some(Buffer::from_vec(lengths)));
        }
        let pointers: Box<[*const c_void]> =
            buffers.iter().map(|buffer| buffer.as_ref().map_or(null(), |buffer| buffer.as_ptr().cast())).collect();
        let boxed = |data: &ArrayData| Ok(Box::into_raw(Box::new(Self::of(data)?)));
        let (children, dictionary) = match (data.data_type(), data.child_data()) {
            (DataType::Dictionary(..), [values]) => (Box::default(), boxed(values)?),
            (_, children) => (children.iter().map(boxed).collect::<Result<Box<[_]>>>()?, null_mut()),
        };
        let null_count = match data.data_type() {
            DataType::Null => data.len(),
            _ => data.null_count(),
        };
        let mut private = Box::new(Private { _buffers: buffers, pointers, children, dictionary });
        Ok(Self {
            length: to_i64(data.len())?,
            null_count: to_i64(null_count)?,
            offset: to_i64(data.offset())?,
            n_buffers: to_i64(private.pointers.len())?,
            n_children: to_i64(private.children.len())?,
            buffers: private.pointers.as_mut_ptr(),
            children: private.children.as_mut_ptr(),
            dictionary,
            release: Some(release),
            private_data: Box::into_raw(private).cast(),
        })
    }

    /// The rows of an array of structs. It is released when the last of their buffers is dropped.
    ///
    /// # Errors
    /// If what the producer says of it does not fit together.
    ///
    /// # Safety
    /// The structure is as the interface has it, of values of this schema.
    pub unsafe fn into_batch(self, schema: &SchemaRef) -> Result<RecordBatch> {
        let data_type = DataType::Struct(schema.fields().clone());
        let owner = Arc::new(self);
        // SAFETY: as the caller promises.
        let mut data = unsafe { owner.data(&data_type, &owner) }?;
        // The interface recommends what Arrow's crates rely on.
        data.align_buffers();
        data.validate().map_err(|e| format!("the producer's data: {e}"))?;
        let array = StructArray::from(data);
        if array.null_count() > 0 {
            return Err("a row is null as a whole, and not its values".to_owned());
        }
        let rows = RecordBatchOptions::new().with_row_count(Some(array.len()));
        RecordBatch::try_new_with_options(Arc::clone(schema), array.columns().to_vec(), &rows)
            .map_err(|e| e.to_string())
    }

    /// # Safety
    /// As [`CArray::into_batch`]; `owner` keeps this structure.
    unsafe fn data(&self, data_type: &DataType, owner: &Arc<Self>) -> Result<ArrayData> {
        let (len, offset) = (count(self.length, "length")?, count(self.offset, "offset")?);
        let layout = layout(data_type);
        let found = count(self.n_buffers, "buffers")?;
        let nulls = usize::from(layout.can_contain_null_mask);
        let wanted = nulls + layout.buffers.len();
        // Views have any number of further buffers, and their lengths.
        let fits = if layout.variadic { found > wanted } else { found >= wanted };
        if !fits || (found > 0 && self.buffers.is_null()) {
            return Err(format!("the producer has {found} buffers for a column of type {data_type}, not {wanted}"));
        }
        // SAFETY: as many as the producer says.
        let at = |at: usize| unsafe { self.buffers.add(at).read_unaligned() }.cast::<u8>();
        let total = len.checked_add(offset).ok_or("the producer's length is too large")?;
        let buffer = |at: *const u8, bytes: usize| -> Result<Buffer> {
            match NonNull::new(at.cast_mut()) {
                _ if bytes == 0 => Ok(Buffer::from_vec(Vec::<u8>::new())),
                // SAFETY: the producer keeps so many bytes there until it is released, and the buffer keeps it.
                Some(at) => Ok(unsafe { Buffer::from_custom_allocation(at, bytes, Arc::clone(owner) as _) }),
                None => Err(format!("a buffer of a column of type {data_type} is missing")),
            }
        };
        let mut buffers = Vec::with_capacity(found);
        let mut before = null();
        for (spec, position) in layout.buffers.iter().zip(nulls..) {
            let address = at(position);
            let bytes = match spec {
                BufferSpec::FixedWidth { byte_width, .. } if has_offsets(data_type) => match len {
                    // Such an array need not have offsets.
                    0 if address.is_null() => Some(0),
                    _ => total.checked_add(1).and_then(|total| total.checked_mul(*byte_width)),
                },
                BufferSpec::FixedWidth { byte_width, .. } => total.checked_mul(*byte_width),
                BufferSpec::BitMap => Some(total.div_ceil(8)),
                // SAFETY: the buffer before has the offsets, which were not missing.
                BufferSpec::VariableWidth if len > 0 => Some(unsafe { last_offset(data_type, before, total) }?),
                BufferSpec::VariableWidth | BufferSpec::AlwaysNull => Some(0),
            };
            buffers.push(buffer(address, bytes.ok_or("the producer's length is too large")?)?);
            before = address;
        }
        if layout.variadic {
            let lengths = at(found - 1).cast::<i64>();
            for further in 0..found - 1 - wanted {
                if lengths.is_null() {
                    return Err("the lengths of a view's buffers are missing".to_owned());
                }
                // SAFETY: the last buffer has a length for each that is there beyond the views.
                let bytes = unsafe { lengths.add(further).read_unaligned() };
                buffers.push(buffer(at(wanted + further), count(bytes, "the length of a buffer")?)?);
            }
        }
        let validity = match nulls == 1 && self.null_count != 0 && !at(0).is_null() {
            true => Some(buffer(at(0), total.div_ceil(8))?),
            false => None,
        };
        let children = match data_type {
            // SAFETY: null, or a structure that lives as long as this one.
            DataType::Dictionary(_, values) => match unsafe { self.dictionary.as_ref() } {
                // SAFETY: the same.
                Some(dictionary) => vec![unsafe { dictionary.data(values, owner) }?],
                None => return Err("a dictionary is missing".to_owned()),
            },
            _ => {
                // SAFETY: they live as long as this structure.
                let children = unsafe { all_of(self.children, self.n_children, "children") }?;
                let types = child_types(data_type);
                if types.len() != children.len() {
                    return Err(format!(
                        "the producer has {} children for a column of type {data_type}",
                        children.len()
                    ));
                }
                let children = children.into_iter().zip(types);
                // SAFETY: the same.
                children.map(|(child, data_type)| unsafe { child.data(data_type, owner) }).collect::<Result<_>>()?
            }
        };
        let builder = ArrayData::builder(data_type.clone())
            .len(len)
            .offset(offset)
            .buffers(buffers)
            .child_data(children)
            .null_bit_buffer(validity);
        // SAFETY: lengths and offsets are checked when all is there and aligned; values are the producer's, as the interface has it.
        Ok(unsafe { builder.build_unchecked() })
    }
}

fn child_types(data_type: &DataType) -> Vec<&DataType> {
    match data_type {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => vec![field.data_type()],
        DataType::Struct(fields) => fields.iter().map(|field| field.data_type()).collect(),
        DataType::Union(fields, _) => fields.iter().map(|(_, field)| field.data_type()).collect(),
        _ => Vec::new(),
    }
}

/// Whether the first buffer of a type has one value more than there are values.
fn has_offsets(data_type: &DataType) -> bool {
    use DataType::{Binary, LargeBinary, LargeList, LargeUtf8, List, Map, Utf8};
    matches!(data_type, Binary | LargeBinary | Utf8 | LargeUtf8 | List(_) | LargeList(_) | Map(..))
}

/// Where the bytes of the last value end.
///
/// # Safety
/// `offsets` is null, or leads to `total` offsets of this type and one more.
unsafe fn last_offset(data_type: &DataType, offsets: *const u8, total: usize) -> Result<usize> {
    if offsets.is_null() {
        return Err(format!("the offsets of a column of type {data_type} are missing"));
    }
    let last = match data_type {
        // SAFETY: as the caller promises.
        DataType::LargeBinary | DataType::LargeUtf8 => unsafe { offsets.cast::<i64>().add(total).read_unaligned() },
        // SAFETY: the same.
        _ => i64::from(unsafe { offsets.cast::<i32>().add(total).read_unaligned() }),
    };
    count(last, "an offset")
}
