//! The values of one block in memory: a buffer, and which of them are null.

use std::collections::BTreeSet;

use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, MutableBuffer, NullBuffer, ScalarBuffer};

use crate::bits;
use crate::error::{EncodingError, Result};
use crate::views::Views;

/// The values of a block. Slots of null rows hold anything.
#[derive(Clone, Debug)]
pub enum Values {
    /// For [`Bool`](crate::Physical::Bool).
    Bool(BooleanBuffer),
    /// For `Int`, `Wide`, `Float` and `Fixed`: `len * width` little-endian bytes, aligned as Arrow wants the type.
    Fixed(Buffer),
    /// For `Bytes`: Arrow's view layout (16 bytes a value; values of at most 12 bytes are inline).
    Views {
        /// One view a value.
        views: ScalarBuffer<u128>,
        /// What the views of longer values point into.
        buffers: Vec<Buffer>,
    },
}

/// The values of one block and which of them are null.
#[derive(Clone, Debug)]
pub struct Column {
    /// Number of rows.
    pub len: usize,
    /// One slot a row.
    pub values: Values,
    /// Absent when no row is null.
    pub nulls: Option<NullBuffer>,
}

impl Column {
    /// A column of 64-bit integers as one of twice as wide ones.
    #[must_use]
    pub fn widened(self) -> Self {
        let Values::Fixed(values) = &self.values else { return self };
        let wide = values.as_chunks::<8>().0.iter().map(|value| i128::from(i64::from_le_bytes(*value)));
        Self { values: Values::Fixed(Buffer::from_vec(wide.collect::<Vec<_>>())), ..self }
    }

    /// The rows at the set positions of `selection`, which must be as long as the column.
    ///
    /// # Errors
    /// If it is not.
    pub fn select(&self, selection: &BooleanBuffer) -> Result<Self> {
        if selection.len() != self.len {
            let what = format!("a selection of {} rows for a column of {}", selection.len(), self.len);
            return Err(EncodingError::invalid(what));
        }
        let values = match &self.values {
            Values::Bool(values) => Values::Bool(bits::filter_bits(values, selection)),
            Values::Fixed(values) => Values::Fixed(select_fixed(values, self.len, selection)),
            Values::Views { views, buffers } => {
                let views = Views { views: bits::filter_values(views, selection), buffers: buffers.clone() };
                let Views { views, buffers } = views.compact()?;
                Values::Views { views: views.into(), buffers }
            }
        };
        let nulls = self.nulls.as_ref().map(|nulls| NullBuffer::new(bits::filter_bits(nulls.inner(), selection)));
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        Ok(Self { len: selection.count_set_bits(), values, nulls })
    }

    /// The same values; text in a buffer of its own, unless values that repeat share less.
    ///
    /// # Errors
    /// If a view points outside its buffers.
    pub fn compact(&self) -> Result<Self> {
        let Values::Views { views, buffers } = &self.values else { return Ok(self.clone()) };
        let views = Views { views: views.to_vec(), buffers: buffers.clone() };
        let kept = views.kept();
        let Views { views, buffers } = views.gathered(kept)?;
        Ok(Self { values: Values::Views { views: views.into(), buffers }, ..self.clone() })
    }

    /// Bytes of its values; of text and binaries, of what they hold.
    pub fn bytes(&self) -> u64 {
        match &self.values {
            Values::Bool(values) => values.len().div_ceil(8) as u64,
            Values::Fixed(values) => values.len() as u64,
            // The first four bytes of a view are the length.
            Values::Views { views, .. } => {
                views.iter().map(|view| u64::try_from(view & 0xffff_ffff).unwrap_or(0)).sum()
            }
        }
    }

    /// Whether some of it lies in the block it was decoded from.
    pub fn borrows(&self, block: &Buffer) -> bool {
        let values = match &self.values {
            Values::Bool(values) => lies_in(block, values.inner()),
            Values::Fixed(values) => lies_in(block, values),
            Values::Views { views, buffers } => {
                lies_in(block, views.inner()) || buffers.iter().any(|buffer| lies_in(block, buffer))
            }
        };
        values || self.nulls.as_ref().is_some_and(|nulls| lies_in(block, nulls.inner().inner()))
    }

    /// The same values, no longer borrowing from the block they were decoded from.
    #[must_use]
    pub fn detached(self, block: &Buffer) -> Self {
        let own = |buffer: &Buffer| {
            // Aligned as Arrow aligns what it allocates, which is enough for any type.
            if lies_in(block, buffer) { Buffer::from_slice_ref(buffer.as_slice()) } else { buffer.clone() }
        };
        let own_bits = |bits: &BooleanBuffer| BooleanBuffer::new(own(bits.inner()), bits.offset(), bits.len());
        let values = match &self.values {
            Values::Bool(values) => Values::Bool(own_bits(values)),
            Values::Fixed(values) => Values::Fixed(own(values)),
            Values::Views { views, buffers } => Values::Views {
                views: ScalarBuffer::new(own(views.inner()), 0, views.len()),
                buffers: buffers.iter().map(own).collect(),
            },
        };
        let nulls = self.nulls.as_ref().map(|nulls| NullBuffer::new(own_bits(nulls.inner())));
        Self { len: self.len, values, nulls }
    }
}

/// What columns take in memory: a buffer that several share counts once, and with all that was allocated for it.
#[derive(Debug, Default)]
pub struct Memory {
    allocations: BTreeSet<usize>,
    bytes: u64,
}

impl Memory {
    /// Counts what a column holds beyond the block it was decoded from.
    pub fn add(&mut self, column: &Column, block: &Buffer) {
        let mut add = |buffer: &Buffer| {
            if !lies_in(block, buffer) && self.allocations.insert(buffer.data_ptr().addr().get()) {
                self.bytes += buffer.capacity() as u64;
            }
        };
        match &column.values {
            Values::Bool(values) => add(values.inner()),
            Values::Fixed(values) => add(values),
            Values::Views { views, buffers } => {
                add(views.inner());
                buffers.iter().for_each(&mut add);
            }
        }
        if let Some(nulls) = &column.nulls {
            add(nulls.inner().inner());
        }
    }

    /// Bytes counted so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Whether a buffer is part of a block's memory.
fn lies_in(block: &Buffer, buffer: &Buffer) -> bool {
    block.as_ptr_range().contains(&buffer.as_ptr())
}

fn select_fixed(values: &Buffer, len: usize, selection: &BooleanBuffer) -> Buffer {
    fn typed<T: ArrowNativeType>(values: &Buffer, len: usize, selection: &BooleanBuffer) -> Buffer {
        Buffer::from_vec(bits::filter_values(&ScalarBuffer::<T>::new(values.clone(), 0, len), selection))
    }
    let width = values.len().checked_div(len).unwrap_or(0);
    let aligned = values.as_ptr().addr().is_multiple_of(width.max(1));
    match width {
        1 => typed::<u8>(values, len, selection),
        2 if aligned => typed::<u16>(values, len, selection),
        4 if aligned => typed::<u32>(values, len, selection),
        8 if aligned => typed::<u64>(values, len, selection),
        16 if aligned => typed::<i128>(values, len, selection),
        _ => {
            let mut out = MutableBuffer::new(selection.count_set_bits() * width);
            for row in selection.set_indices() {
                out.extend_from_slice(values.get(row * width..(row + 1) * width).unwrap_or_default());
            }
            out.into()
        }
    }
}
