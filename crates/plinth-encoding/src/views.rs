//! Arrow's string views: 16 bytes a value, of which values of at most 12 bytes are part.

use arrow_buffer::Buffer;

use crate::error::{EncodingError, Result};

/// Views and what those of values longer than 12 bytes point into: buffer 0, if there is one.
pub(crate) struct Views {
    pub(crate) views: Vec<u128>,
    pub(crate) buffers: Vec<Buffer>,
}

impl Views {
    /// Few long values out of many get a buffer of their own: to keep them would be to keep all others, and engines charge
    /// operators for whole buffers.
    pub(crate) fn compact(self) -> Result<Self> {
        let kept = self.kept();
        self.gathered(kept / 2)
    }

    /// Bytes of all buffers.
    pub(crate) fn kept(&self) -> usize {
        self.buffers.iter().map(Buffer::len).sum()
    }

    /// Long values in a buffer of their own, if that has at most so many bytes.
    pub(crate) fn gathered(self, most: usize) -> Result<Self> {
        let len = |view: u128| (view & 0xFFFF_FFFF) as usize;
        let needed = self.views.iter().map(|&view| len(view)).filter(|&len| len > 12).sum();
        if needed > most {
            return Ok(self);
        }
        let mut heap = Vec::with_capacity(needed);
        let mut views = self.views;
        for view in views.iter_mut().filter(|view| len(**view) > 12) {
            let whole = view.to_le_bytes();
            let bytes = view_bytes(&whole, &self.buffers)?;
            // Fewer bytes than the blocks had: their offsets fit. The buffer's number is 0.
            *view = (heap.len() as u128) << 96 | (*view & u128::from(u64::MAX));
            heap.extend_from_slice(bytes);
        }
        Ok(Self { views, buffers: if needed > 0 { vec![heap.into()] } else { vec![] } })
    }
}

/// The view of `heap[at..at + len]`, which must be in bounds.
#[inline(always)]
pub(crate) fn view(heap: &[u8], at: usize, len: usize) -> u128 {
    let bytes = match heap.get(at..).and_then(|rest| rest.first_chunk::<12>()) {
        // One load and a mask: the bytes after a short value are another's.
        Some(chunk) => {
            let [a, b, c, d, e, f, g, h, i, j, k, l] = *chunk;
            u128::from_le_bytes([a, b, c, d, e, f, g, h, i, j, k, l, 0, 0, 0, 0])
        }
        None => heap
            .get(at..at + len.min(12))
            .unwrap_or_default()
            .iter()
            .rev()
            .fold(0, |word, &b| word << 8 | u128::from(b)),
    };
    if len <= 12 {
        let kept = bytes & ((1 << (8 * len)) - 1);
        kept << 32 | len as u128
    } else {
        // Length, four bytes of prefix, buffer 0, offset.
        (at as u128) << 96 | (bytes & 0xFFFF_FFFF) << 32 | len as u128
    }
}

/// What a view stands for.
pub(crate) fn view_bytes<'b>(view: &'b [u8; 16], buffers: &'b [Buffer]) -> Result<&'b [u8]> {
    let word =
        |at: usize| view.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_le_bytes(*word));
    let len = word(0) as usize;
    if len <= 12 {
        return Ok(view.get(4..4 + len).unwrap_or_default());
    }
    let from = word(12) as usize;
    buffers
        .get(word(8) as usize)
        .and_then(|buffer| buffer.as_slice().get(from..from.checked_add(len)?))
        .ok_or_else(|| EncodingError::invalid("a string view points outside its buffers"))
}
