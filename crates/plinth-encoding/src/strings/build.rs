//! String views made from lengths and a heap.

use arrow_buffer::{BooleanBuffer, Buffer};

use crate::bitpack::VECTOR;
use crate::error::{EncodingError, Result};
use crate::ints::{Wanted, is_wanted};
use crate::views::{Views, view};

/// Anything that counts bytes.
pub(crate) trait Length: Copy {
    fn get(self) -> usize;
}

impl Length for u32 {
    #[inline(always)]
    fn get(self) -> usize {
        self as usize
    }
}

impl Length for usize {
    #[inline(always)]
    fn get(self) -> usize {
        self
    }
}

/// Whether a byte begins no character of UTF-8.
#[inline(always)]
fn continues(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

fn not_utf8() -> EncodingError {
    EncodingError::corrupt("text is not UTF-8")
}

/// Views of all values. The lengths must add up to the heap's length.
pub(crate) fn build<L: Length>(heap: Buffer, lengths: &[L], utf8: bool) -> Result<Views> {
    let bytes = heap.as_slice();
    let ascii = !utf8 || bytes.is_ascii();
    if !ascii {
        std::str::from_utf8(bytes).map_err(|_| not_utf8())?;
    }
    let mut at = 0;
    let mut split = false;
    let mut long = false;
    let views = lengths
        .iter()
        .map(|len| {
            let len = len.get();
            let view = view(bytes, at, len);
            if !ascii {
                split |= bytes.get(at).is_some_and(|&byte| continues(byte));
            }
            long |= len > 12;
            at += len;
            view
        })
        .collect();
    if split {
        return Err(not_utf8());
    }
    Ok(Views { views, buffers: if long { vec![heap] } else { vec![] } })
}

/// Views of the selected values. The heap holds the values of the wanted vectors only.
pub(crate) fn build_selected(
    heap: Buffer,
    lengths: &[u32],
    wanted: Wanted<'_>,
    selection: &BooleanBuffer,
    utf8: bool,
) -> Result<Views> {
    let count = selection.count_set_bits();
    let bytes = heap.as_slice();
    // One look at all bytes spares one at each value.
    let check = utf8 && !bytes.is_ascii();
    let mut picked = Picked { bytes, check, views: Vec::with_capacity(count), long: false };
    let mut start = 0;
    for (i, lengths) in lengths.chunks(VECTOR).enumerate() {
        if !is_wanted(wanted, i) {
            continue;
        }
        let selected = selection.slice(i * VECTOR, lengths.len());
        // Rows that are mostly kept come in runs.
        if count * 4 > selection.len() {
            picked.take(start, lengths, selected.set_slices())?;
        } else {
            picked.take(start, lengths, selected.set_indices().map(|row| (row, row + 1)))?;
        }
        start += lengths.iter().map(|len| len.get()).sum::<usize>();
    }
    let Picked { views, long, .. } = picked;
    Views { views, buffers: if long { vec![heap] } else { vec![] } }.compact()
}

/// Views of values picked out of a heap.
struct Picked<'h> {
    bytes: &'h [u8],
    /// Whether each value has to be looked at: there are bytes that are not ASCII.
    check: bool,
    views: Vec<u128>,
    /// Whether any value lies in the heap.
    long: bool,
}

impl Picked<'_> {
    /// Adds runs of rows, each from one row up to another, of a vector whose values begin at `at`.
    fn take(&mut self, mut at: usize, lengths: &[u32], runs: impl Iterator<Item = (usize, usize)>) -> Result<()> {
        let mut row = 0;
        for (from, to) in runs {
            at += lengths.get(row..from).unwrap_or_default().iter().map(|len| len.get()).sum::<usize>();
            row = to;
            for len in lengths.get(from..to).unwrap_or_default() {
                let len = len.get();
                if self.check {
                    std::str::from_utf8(self.bytes.get(at..at + len).unwrap_or_default()).map_err(|_| not_utf8())?;
                }
                self.long |= len > 12;
                self.views.push(view(self.bytes, at, len));
                at += len;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
