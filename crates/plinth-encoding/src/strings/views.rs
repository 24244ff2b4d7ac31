//! Arrow's string views, made from lengths and a heap.

use arrow_buffer::{BooleanBuffer, Buffer};

use crate::bitpack::VECTOR;
use crate::bits;
use crate::error::{EncodingError, Result};
use crate::ints::{Wanted, is_wanted};

/// Views and what those of values longer than 12 bytes point into: buffer 0, if there is one.
pub(crate) struct Views {
    pub(crate) views: Vec<u128>,
    pub(crate) buffers: Vec<Buffer>,
}

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

impl Views {
    /// The bitmap of a test over the values.
    pub(crate) fn map(&self, test: impl Fn(&[u8]) -> bool) -> BooleanBuffer {
        bits::map_bits(&self.views, |view| {
            crate::block::view_bytes(&view.to_le_bytes(), &self.buffers).is_ok_and(&test)
        })
    }
}

impl Views {
    /// Few long values out of many get a buffer of their own: whoever keeps them would keep all others, and engines charge
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
            let bytes = crate::block::view_bytes(&whole, &self.buffers)?;
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
mod tests {
    use super::*;

    #[test]
    fn few_long_values_get_a_buffer_of_their_own_and_many_share_the_blocks() {
        let values: Vec<String> = (0..2000).map(|i| "x".repeat(i % 40) + &i.to_string()).collect();
        let heap = Buffer::from(values.concat().as_bytes());
        let lengths: Vec<u32> = values.iter().map(|value| u32::try_from(value.len()).unwrap()).collect();
        for step in [1, 3, 700] {
            let selection = BooleanBuffer::from_iter((0..2000).map(|row| row % step == 0));
            let selected = build_selected(heap.clone(), &lengths, None, &selection, true).unwrap();
            let expected: Vec<&String> = values.iter().step_by(step).collect();
            let found = std::cell::RefCell::new(Vec::new());
            selected.map(|value| {
                found.borrow_mut().push(String::from_utf8(value.to_vec()).unwrap());
                true
            });
            assert!(found.into_inner().iter().eq(expected.iter().copied()));
            let long: usize = expected.iter().map(|value| value.len()).filter(|&len| len > 12).sum();
            let kept: usize = selected.buffers.iter().map(Buffer::len).sum();
            assert_eq!(kept, if step == 1 { heap.len() } else { long }, "{step}");
        }
        let none = build_selected(heap, &lengths, None, &BooleanBuffer::new_unset(2000), true).unwrap();
        assert!(none.views.is_empty() && none.buffers.is_empty());
    }
}
