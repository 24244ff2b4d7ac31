//! Which keys a segment can't have: a split block Bloom filter, as Parquet has it (Putze, Sanders, Singler 2007).
//!
//! A filter is blocks of eight words of 32 bits. A key's hash chooses a block by its high half, and in each word of the block
//! one bit by its low half.

/// Bits a key: about one in two hundred keys that are not there seems to be.
const BITS: usize = 12;

/// Odd numbers that spread the low half of a hash over the words.
const SALTS: [u32; 8] =
    [0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31];

fn blocks_for(keys: usize) -> usize {
    keys.saturating_mul(BITS).div_ceil(256).max(1)
}

fn blocks_for_entries(entries: usize) -> usize {
    blocks_for(entries).next_multiple_of(1 << FOLDS)
}

/// How often a filter can be halved at most.
const FOLDS: u32 = 8;

/// The keys that may be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    blocks: Vec<[u32; 8]>,
}

impl Filter {
    /// A filter for so many keys.
    pub(crate) fn for_keys(keys: usize) -> Self {
        Self { blocks: vec![[0; 8]; blocks_for(keys)] }
    }

    /// A filter for at most so many keys, many of which may be the same: once they are in it, it is [folded](Self::folded).
    pub(crate) fn for_entries(entries: usize) -> Self {
        Self { blocks: vec![[0; 8]; blocks_for_entries(entries)] }
    }

    /// Bytes of that.
    pub(crate) fn bytes_for_entries(entries: usize) -> u64 {
        (blocks_for_entries(entries) as u64).saturating_mul(32)
    }

    /// Halves it while at most a quarter of its bits are set, so that at most half of them are in the end, as in a filter that is
    /// full. What it says of keys that are there stays.
    pub(crate) fn folded(mut self) -> Self {
        while self.blocks.len().is_multiple_of(2) && self.ones().saturating_mul(4) <= self.bytes().saturating_mul(8) {
            // A key's block is a fraction of all: in half as many it is half as far.
            let (pairs, _) = self.blocks.as_chunks::<2>();
            self.blocks = pairs
                .iter()
                .map(|[a, b]| std::array::from_fn(|i| a.get(i).unwrap_or(&0) | b.get(i).unwrap_or(&0)))
                .collect();
        }
        self
    }

    fn ones(&self) -> u64 {
        self.blocks.iter().flatten().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Bytes of a filter for so many keys.
    pub(crate) fn bytes_for(keys: usize) -> u64 {
        blocks_for(keys) as u64 * 32
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.blocks.len() as u64 * 32
    }

    fn block(&self, hash: u64) -> usize {
        // The high half as a fraction of all blocks.
        let share = u128::from(hash >> 32) * self.blocks.len() as u128;
        usize::try_from(share >> 32).unwrap_or(0)
    }

    pub(crate) fn insert(&mut self, hash: u64) {
        let block = self.block(hash);
        if let Some(words) = self.blocks.get_mut(block) {
            words.iter_mut().zip(masks(hash)).for_each(|(word, mask)| *word |= mask);
        }
    }

    pub(crate) fn may_have(&self, hash: u64) -> bool {
        let words = self.blocks.get(self.block(hash));
        words.is_some_and(|words| words.iter().zip(masks(hash)).all(|(word, mask)| word & mask != 0))
    }

    /// Its words, little-endian.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        self.blocks.iter().flatten().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
    }

    /// A filter from exactly its words.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (blocks, rest) = bytes.as_chunks::<32>();
        let word = |block: &[u8; 32], i: usize| {
            let word = block.as_chunks::<4>().0.get(i);
            word.map_or(0, |word| u32::from_le_bytes(*word))
        };
        let blocks: Vec<[u32; 8]> = blocks.iter().map(|block| std::array::from_fn(|i| word(block, i))).collect();
        (rest.is_empty() && !blocks.is_empty()).then_some(Self { blocks })
    }
}

fn masks(hash: u64) -> impl Iterator<Item = u32> {
    let [a, b, c, d, ..] = hash.to_le_bytes();
    let low = u32::from_le_bytes([a, b, c, d]);
    SALTS.into_iter().map(move |salt| 1 << (low.wrapping_mul(salt) >> 27))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::hash;

    #[test]
    fn what_was_put_in_is_found_and_little_else() {
        let mut filter = Filter::for_keys(10_000);
        let key = |i: u64| hash(&i.to_be_bytes());
        (0..10_000).for_each(|i| filter.insert(key(i)));
        let mut bytes = Vec::new();
        filter.write(&mut bytes);
        let filter = Filter::read(&bytes).unwrap();
        assert!((0..10_000).all(|i| filter.may_have(key(i))));
        let wrong = (10_000..110_000).filter(|&i| filter.may_have(key(i))).count();
        assert!(wrong < 1_000, "{wrong}");
        assert!(Filter::read(&bytes[1..]).is_none() && Filter::read(&[]).is_none());
    }

    #[test]
    fn a_folded_filter_is_as_large_as_its_keys_need() {
        let key = |i: u64| hash(&i.to_be_bytes());
        for distinct in [1, 100, 10_000, 100_000] {
            let mut filter = Filter::for_entries(100_000);
            let before = filter.bytes();
            (0..100_000).for_each(|i| filter.insert(key(i % distinct)));
            let filter = filter.folded();
            assert!((0..distinct).all(|i| filter.may_have(key(i))), "{distinct}");
            let wrong = (100_000..200_000).filter(|&i| filter.may_have(key(i))).count();
            assert!(wrong < 2_000, "{wrong} of {distinct}");
            let least = Filter::bytes_for(usize::try_from(distinct).unwrap());
            let halves = before >> FOLDS;
            assert!(filter.bytes() <= (least * 2).max(halves), "{} of {distinct}, {least}", filter.bytes());
        }
    }
}
