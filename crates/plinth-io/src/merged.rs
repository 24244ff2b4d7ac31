//! Ranges of a file that lie close to each other are read as one.

use std::ops::Range;

use arrow_buffer::Buffer;

/// Reads, each for one or more ranges that are wanted.
#[derive(Debug)]
pub struct Merged {
    reads: Vec<Range<u64>>,
    gap: u64,
    most: u64,
}

impl Merged {
    /// Ranges with at most `gap` bytes between them are read as one, as long as that has at most `most` bytes.
    pub fn new(gap: u64, most: u64) -> Self {
        Self { reads: Vec::new(), gap, most }
    }

    /// Adds a range: which of the reads has it. Only what comes in order is put together.
    pub fn add(&mut self, range: &Range<u64>) -> usize {
        match self.reads.last_mut() {
            Some(last)
                if range.start >= last.start
                    && range.start <= last.end.saturating_add(self.gap)
                    && range.end.max(last.end).saturating_sub(last.start) <= self.most =>
            {
                last.end = last.end.max(range.end);
            }
            _ => self.reads.push(range.clone()),
        }
        self.reads.len() - 1
    }

    /// The reads.
    pub fn reads(&self) -> &[Range<u64>] {
        &self.reads
    }

    /// Bytes of all reads.
    pub fn bytes(&self) -> u64 {
        self.reads.iter().map(|read| read.end - read.start).sum()
    }

    /// A range's bytes, of what one of the reads brought; `None` if that has too few.
    pub fn part(&self, read: usize, range: &Range<u64>, brought: &[Buffer]) -> Option<Buffer> {
        let (whole, bytes) = (self.reads.get(read)?, brought.get(read)?);
        let start = usize::try_from(range.start.checked_sub(whole.start)?).ok()?;
        let len = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
        (start.checked_add(len)? <= bytes.len()).then(|| bytes.slice_with_length(start, len))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_range_is_in_its_read(mut ranges in prop::collection::vec((0_u64..1000, 0_u64..50), 0..40),
                                     gap in 0_u64..20, most in 1_u64..200, sorted: bool) {
            if sorted {
                ranges.sort_unstable();
            }
            let file: Vec<u8> = (0..1100_u32).map(|i| (i % 251) as u8).collect();
            let mut merged = Merged::new(gap, most);
            let wanted: Vec<_> = ranges.iter().map(|&(start, len)| start..start + len).collect();
            let reads: Vec<usize> = wanted.iter().map(|range| merged.add(range)).collect();
            let of = |range: &Range<u64>| &file[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()];
            let brought: Vec<Buffer> = merged.reads().iter().map(|read| Buffer::from_slice_ref(of(read))).collect();
            for (range, read) in wanted.iter().zip(reads) {
                let part = merged.part(read, range, &brought).unwrap();
                prop_assert_eq!(part.as_slice(), of(range));
            }
            let longest = wanted.iter().map(|range| range.end - range.start).max().unwrap_or(0);
            prop_assert!(merged.reads().iter().all(|read| read.end - read.start <= most.max(longest)));
            prop_assert!(merged.bytes() == 0 || merged.part(0, &(0..5000), &brought).is_none());
        }
    }
}
