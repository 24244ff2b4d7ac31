//! One column of text, one value a line: where nothing but line ends means anything, values are taken as they lie.

use std::sync::Arc;

use arrow_array::StringViewArray;
use arrow_array::builder::make_view;
use arrow_buffer::{Buffer, ScalarBuffer};

use super::framing::Chunk;

/// Longest value a view holds itself.
const INLINE: usize = 12;

/// The lines of a chunk as arrays of at most so many values, if each of them is a value as it is: text without quotes,
/// delimiters and carriage returns, of the right size, and not empty, which may stand for a null.
pub(super) fn values(chunk: &Chunk, longest: usize, most: usize) -> Option<Vec<StringViewArray>> {
    let (bytes, dialect) = (&*chunk.bytes, chunk.head.dialect);
    let means = memchr::memchr3(dialect.delimiter, dialect.quote.unwrap_or(b'\r'), b'\r', bytes).is_some()
        || dialect.escape.is_some_and(|escape| memchr::memchr(escape, bytes).is_some());
    if bytes.is_empty() || means || dialect.line_end != b'\n' {
        return None;
    }
    // All at once, which takes a fraction of the time that it takes value by value.
    let text = std::str::from_utf8(bytes).ok()?;
    let (most, mut arrays) = (most.max(1), Vec::new());
    let mut lines = Lines { text, start: 0, longest, views: Vec::with_capacity(most), long: Vec::new() };
    for (at, chunk) in bytes.chunks(64).enumerate() {
        let mut ends = line_ends(chunk);
        while ends != 0 {
            lines.end(at * 64 + ends.trailing_zeros() as usize)?;
            ends &= ends - 1;
            if lines.views.len() == most {
                arrays.push(lines.take(most));
            }
        }
    }
    if lines.start < bytes.len() {
        lines.end(bytes.len())?;
    }
    if !lines.views.is_empty() {
        arrays.push(lines.take(0));
    }
    Some(arrays)
}

/// A bit for each of up to 64 bytes that is a line feed.
#[inline]
fn line_ends(chunk: &[u8]) -> u64 {
    // A compiler compares many at once where it knows how many there are.
    let ends = match <&[u8; 64]>::try_from(chunk) {
        Ok(chunk) => chunk.map(|byte| u8::from(byte == b'\n')),
        Err(_) => std::array::from_fn(|at| u8::from(chunk.get(at) == Some(&b'\n'))),
    };
    // Eight bytes, each zero or one, are gathered in the top byte by one multiplication.
    let bits = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    ends.as_chunks().0.iter().rev().fold(0, |ends, bytes| ends << 8 | bits(bytes))
}

/// The lines of a text as views.
struct Lines<'a> {
    text: &'a str,
    /// Of the line.
    start: usize,
    /// Bytes a line may have.
    longest: usize,
    /// Of the lines before.
    views: Vec<u128>,
    /// The bytes of those that a view does not hold.
    long: Vec<u8>,
}

impl Lines<'_> {
    /// Takes the line that ends before `end`, where a line feed or the text's end is.
    #[inline]
    fn end(&mut self, end: usize) -> Option<()> {
        // The bits of a view's bytes that so many bytes are.
        const MASKS: [u128; INLINE + 1] = {
            let mut masks = [0; INLINE + 1];
            let mut len = 1;
            while len <= INLINE {
                masks[len] = masks[len - 1] << 8 | 0xff << 32;
                len += 1;
            }
            masks
        };
        let len = end - self.start;
        let head = self.text.as_bytes().get(self.start..).and_then(<[u8]>::first_chunk::<16>);
        match (head, MASKS.get(len)) {
            // Which of the next bytes belong to the line is told by its length: to copy so many is a jump that cannot be predicted.
            (Some(head), Some(mask)) if (1..=self.longest).contains(&len) => {
                self.views.push(u128::from_le_bytes(*head) << 32 & mask | len as u128);
            }
            _ => self.any(end)?,
        }
        self.start = end + 1;
        Some(())
    }

    /// The same for a long line, or one of the last.
    #[inline(never)]
    fn any(&mut self, end: usize) -> Option<()> {
        let line = self.text.get(self.start..end).filter(|line| !line.is_empty() && line.len() <= self.longest)?;
        // Arrow's offsets and lengths are of 31 bits.
        let at = self.long.len();
        i32::try_from(at + line.len()).ok()?;
        self.views.push(make_view(line.as_bytes(), 0, u32::try_from(at).ok()?));
        if line.len() > INLINE {
            self.long.extend_from_slice(line.as_bytes());
        }
        Some(())
    }

    /// The lines so far as an array; so many more are expected.
    #[allow(
        unsafe_code,
        reason = "Arrow would check the UTF-8 of every value again, which costs more than all else here"
    )]
    fn take(&mut self, more: usize) -> StringViewArray {
        let views = ScalarBuffer::from(std::mem::replace(&mut self.views, Vec::with_capacity(more)));
        let long = std::mem::take(&mut self.long);
        let buffers: Arc<[Buffer]> = if long.is_empty() { Arc::default() } else { Arc::new([Buffer::from_vec(long)]) };
        // SAFETY: every view was made by `end` or `any`, of a length and that many bytes, padded with zeros, or of a range of
        // `long`, which is the one buffer, and its first four bytes. The bytes are a line of `text`, which is UTF-8: a line
        // feed is no part of another character, so that what lies between two of them is UTF-8 as well.
        unsafe { StringViewArray::new_unchecked(views, buffers, None) }
    }
}

#[cfg(test)]
mod tests;
