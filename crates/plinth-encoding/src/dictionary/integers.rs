//! Blocks of keys of at most eight bytes: buckets of 16 numbers, the first relative to the block's first, the others as
//! bit-packed differences. The layout is in the [parent module's documentation](super).

use arrow_buffer::Buffer;

use crate::dictionary::wire::{OrCorrupt, corrupt, low_byte, low_half};
use crate::dictionary::{BUCKET, Found};
use crate::error::Result;
use plinth_core::wire::Reader;

/// Encodes up to [`super::BLOCK`] ascending numbers.
pub(super) fn encode(numbers: &[u64]) -> Vec<u8> {
    let (Some(&first), Some(&last_head)) = (numbers.first(), numbers.iter().step_by(BUCKET).next_back()) else {
        return Vec::new();
    };
    let head_width = bytes_for(last_head - first);
    let mut out = first.to_le_bytes().to_vec();
    out.push(head_width);
    for head in numbers.iter().step_by(BUCKET).skip(1) {
        out.extend_from_slice(&(head - first).to_le_bytes()[..usize::from(head_width)]);
    }
    let gaps = |bucket: &[u64]| -> Vec<u64> { bucket.windows(2).map(|pair| pair[1] - pair[0] - 1).collect() };
    let widths: Vec<u32> = numbers
        .chunks(BUCKET)
        .map(|bucket| 64 - gaps(bucket).iter().fold(0, |all, gap| all | gap).leading_zeros())
        .collect();
    out.extend(widths.iter().map(|&width| low_byte(width as usize)));
    for (bucket, width) in numbers.chunks(BUCKET).zip(widths) {
        let (mut bits, mut held) = (0u128, 0);
        for gap in gaps(bucket) {
            bits |= u128::from(gap) << held;
            held += width;
            while held >= 8 {
                out.push(low_bits(bits));
                bits >>= 8;
                held -= 8;
            }
        }
        if held > 0 {
            out.push(low_bits(bits));
        }
    }
    out
}

fn bytes_for(value: u64) -> u8 {
    low_byte((64 - value.leading_zeros()).div_ceil(8) as usize)
}

#[allow(clippy::cast_possible_truncation, reason = "the lowest bits are what is asked for")]
fn low_bits(bits: u128) -> u8 {
    bits as u8
}

#[allow(clippy::cast_possible_truncation, reason = "the lowest half is what is asked for")]
fn low_word(bits: u128) -> u64 {
    bits as u64
}

/// A block ready to be searched.
#[derive(Debug)]
pub(super) struct IntBlock {
    bytes: Buffer,
    len: usize,
    heads: Vec<u64>,
    /// Where each bucket's differences start, and their width in bits.
    gaps: Vec<(u32, u8)>,
    largest: u64,
}

impl IntBlock {
    /// Opens a block of `len >= 1` numbers of which none may exceed `largest`.
    pub(super) fn open(bytes: Buffer, len: usize, largest: u64) -> Result<Self> {
        const CUT: &str = "a block of integers is cut short";
        let mut cursor = Reader::new(&bytes);
        let buckets = len.div_ceil(BUCKET);
        let first = cursor.int(8).or_corrupt(CUT)?;
        let head_width = usize::from(cursor.u8().or_corrupt(CUT)?);
        if head_width > 8 || cursor.left() < (buckets - 1) * head_width + buckets {
            return Err(corrupt(CUT));
        }
        let mut heads = Vec::with_capacity(buckets);
        heads.push(first);
        let mut before = first;
        for _ in 1..buckets {
            let head = cursor.int(head_width).ok().and_then(|more| first.checked_add(more));
            let head = head.filter(|&head| head > before).or_corrupt("the buckets of a block are not in order")?;
            heads.push(head);
            before = head;
        }
        if before > largest {
            return Err(corrupt("a value does not fit its type"));
        }
        let widths = cursor.take(buckets).or_corrupt(CUT)?;
        let mut gaps = Vec::with_capacity(buckets);
        for (bucket, &width) in widths.iter().enumerate() {
            if width > 64 {
                return Err(corrupt("a difference is wider than 64 bits"));
            }
            gaps.push((low_half(cursor.position() as u64), width));
            let count = BUCKET.min(len - bucket * BUCKET) - 1;
            cursor.skip((count * usize::from(width)).div_ceil(8)).or_corrupt(CUT)?;
        }
        if cursor.left() != 0 {
            return Err(corrupt("a block of integers has bytes to spare"));
        }
        Ok(Self { len, heads, gaps, largest, bytes })
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        self.bytes.len() + 8 * (self.heads.capacity() + self.gaps.capacity())
    }

    /// The smallest number.
    pub(super) fn first(&self) -> u64 {
        self.heads.first().copied().unwrap_or(0)
    }

    /// The numbers of a bucket that exists; gives how many.
    pub(super) fn bucket(&self, bucket: usize, out: &mut [u64; BUCKET]) -> Result<usize> {
        let (start, width) = self.gaps[bucket];
        let count = BUCKET.min(self.len - bucket * BUCKET);
        let (start, width) = (start as usize, usize::from(width));
        let mask = low_word((1u128 << width) - 1);
        let mut value = self.heads[bucket];
        out[0] = value;
        let mut ascending = true;
        for (i, slot) in out.iter_mut().enumerate().take(count).skip(1) {
            let bit = (i - 1) * width;
            let gap = low_word(self.word(start + bit / 8) >> (bit % 8)) & mask;
            let next = value.wrapping_add(gap).wrapping_add(1);
            ascending &= next > value;
            value = next;
            *slot = value;
        }
        // The next bucket's first number bounds this one's; its own were checked.
        let bound = self.heads.get(bucket + 1).map_or(self.largest, |&next| next - 1);
        if !ascending || value > bound {
            return Err(corrupt("values are not in order"));
        }
        Ok(count)
    }

    /// Up to 16 bytes from `at` on, zeros past the end.
    #[inline]
    fn word(&self, at: usize) -> u128 {
        let rest = self.bytes.get(at..).unwrap_or(&[]);
        match rest.first_chunk::<16>() {
            Some(chunk) => u128::from_le_bytes(*chunk),
            None => {
                let mut chunk = [0; 16];
                chunk[..rest.len()].copy_from_slice(rest);
                u128::from_le_bytes(chunk)
            }
        }
    }

    /// Where `number` is or would be.
    pub(super) fn locate(&self, number: u64) -> Result<Found> {
        let Some(bucket) = self.heads.partition_point(|&head| head <= number).checked_sub(1) else {
            return Ok(Found { rank: 0, exact: false });
        };
        let mut values = [0; BUCKET];
        let count = self.bucket(bucket, &mut values)?;
        let below = values[..count].partition_point(|&value| value < number);
        Ok(Found { rank: bucket * BUCKET + below, exact: values[..count].get(below) == Some(&number) })
    }

    /// Appends all numbers.
    pub(super) fn decode(&self, out: &mut Vec<u64>) -> Result<()> {
        let mut values = [0; BUCKET];
        out.reserve(self.len);
        for bucket in 0..self.heads.len() {
            let count = self.bucket(bucket, &mut values)?;
            out.extend_from_slice(&values[..count]);
        }
        Ok(())
    }
}
