//! Decoded values: all of a dictionary's, and the views they come out as.

use arrow_buffer::{Buffer, ScalarBuffer};
use plinth_io::{HUGE_PAGE, OutOfMemory, Reservation, Slab};

use crate::column::{Column, Values};
use crate::dictionary::entry::INLINE;
use crate::dictionary::scratch::Scratch;
use crate::dictionary::wire::{corrupt, low_half};
use crate::error::{EncodingError, Result};

/// A buffer under views is closed before it grows beyond this many bytes (a longer value gets one of its own): growing
/// stays cheap and offsets small.
const HEAP: usize = 64 << 20;

/// All values of a dictionary in the order of their codes.
#[derive(Debug)]
pub struct Decoded {
    pub(super) values: Values,
    pub(super) len: usize,
    /// Bytes that views point at.
    pub(super) heap: usize,
    /// What they take of a budget, for as long as anybody has them.
    held: Option<Reservation>,
}

impl Decoded {
    pub(super) fn new(values: Values, len: usize, heap: usize) -> Self {
        let values = match values {
            Values::Fixed(table) => Values::Fixed(in_huge_pages(table)),
            Values::Views { views, buffers } => {
                Values::Views { views: ScalarBuffer::new(in_huge_pages(views.into_inner()), 0, len), buffers }
            }
            other => other,
        };
        Self { values, len, heap, held: None }
    }

    /// Takes over what was reserved, as much as it needs now that this is known.
    pub(super) fn hold(&mut self, held: Option<Reservation>) -> Result<(), OutOfMemory> {
        self.held = held;
        let bytes = self.memory() as u64;
        self.held.as_mut().map_or(Ok(()), |held| held.resize(bytes))
    }

    /// Bytes of a budget.
    pub(super) fn held(&self) -> u64 {
        self.held.as_ref().map_or(0, Reservation::bytes)
    }

    /// One value a code: [`Values::Fixed`], or [`Values::Views`] for `Bytes`.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// The values as a column without nulls.
    pub fn column(&self) -> Column {
        Column { len: self.len, values: self.values.clone(), nulls: None }
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        match &self.values {
            Values::Bool(bits) => bits.inner().capacity(),
            Values::Fixed(buffer) => buffer.capacity(),
            Values::Views { views, buffers } => {
                views.inner().capacity() + buffers.iter().map(Buffer::capacity).sum::<usize>()
            }
        }
    }
}

/// A table that is read all over is found through few pages: where it is as large as one of the huge ones, it is moved
/// there, if the system has any.
fn in_huge_pages(table: Buffer) -> Buffer {
    if table.len() < HUGE_PAGE {
        return table;
    }
    let Some(mut extent) = Slab::new(table.len(), true).ok().and_then(|slab| slab.take(table.len())) else {
        return table;
    };
    let Some(room) = extent.get_mut(..table.len()) else { return table };
    room.copy_from_slice(&table);
    extent.into_buffer(0, table.len()).unwrap_or(table)
}

/// Views under construction and the buffers they point into.
#[derive(Debug, Default)]
pub(super) struct Heap {
    buffers: Vec<Buffer>,
    open: Vec<u8>,
    /// Bytes of all long values.
    pub(super) bytes: usize,
}

impl Heap {
    /// A heap that expects so many bytes.
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self { open: Vec::with_capacity(bytes.min(HEAP)), ..Self::default() }
    }

    /// The view of a value; long values are copied.
    #[inline]
    pub(super) fn view(&mut self, value: &[u8]) -> Result<u128> {
        if value.len() > INLINE {
            return self.long_view(value);
        }
        let mut view = [0; 16];
        view[0] = super::wire::low_byte(value.len());
        view[4..4 + value.len()].copy_from_slice(value);
        Ok(u128::from_le_bytes(view))
    }

    #[inline]
    pub(super) fn long_view(&mut self, value: &[u8]) -> Result<u128> {
        if self.open.len() + value.len() > HEAP && !self.open.is_empty() {
            self.buffers.push(std::mem::take(&mut self.open).into());
        }
        // Arrow's lengths, offsets and buffer numbers are signed.
        let len = i32::try_from(value.len()).map_err(|_| too_long(value.len()))?;
        let buffer = i32::try_from(self.buffers.len()).map_err(|_| too_long(value.len()))?;
        let offset = low_half(self.open.len() as u64);
        self.open.extend_from_slice(value);
        self.bytes += value.len();
        let prefix = value.first_chunk::<4>().map_or(0, |prefix| u32::from_le_bytes(*prefix));
        Ok(u128::from(len.unsigned_abs())
            | u128::from(prefix) << 32
            | u128::from(buffer.unsigned_abs()) << 64
            | u128::from(offset) << 96)
    }

    pub(super) fn finish(mut self, views: Vec<u128>) -> Values {
        if !self.open.is_empty() {
            self.buffers.push(self.open.into());
        }
        Values::Views { views: views.into(), buffers: self.buffers }
    }
}

#[cold]
fn too_long(len: usize) -> EncodingError {
    EncodingError::invalid(format!("a value of {len} bytes is too long for Arrow"))
}

impl Scratch {
    /// Appends the view of every key.
    pub(super) fn push_views(&self, views: &mut Vec<u128>, heap: &mut Heap) -> Result<()> {
        views.reserve(self.ends().len());
        let mut start = 0;
        for &end in self.ends() {
            let len = end - start;
            views.push(if len <= INLINE {
                let low = self.word(start) & ((1 << (8 * len)) - 1);
                low << 32 | len as u128
            } else {
                heap.long_view(&self.bytes()[start..end])?
            });
            start = end;
        }
        Ok(())
    }

    /// Checks that every key is UTF-8.
    pub(super) fn check_utf8(&self) -> Result<()> {
        let bytes = self.bytes();
        if bytes.is_ascii() {
            return Ok(());
        }
        let text = std::str::from_utf8(bytes).map_err(|_| not_utf8())?;
        if self.ends().iter().all(|&end| text.is_char_boundary(end)) { Ok(()) } else { Err(not_utf8()) }
    }
}

#[cold]
pub(super) fn not_utf8() -> EncodingError {
    corrupt("a value is not UTF-8")
}
