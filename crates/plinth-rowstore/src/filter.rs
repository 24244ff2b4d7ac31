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

/// The keys that may be there.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    blocks: Vec<[u32; 8]>,
}

impl Filter {
    /// A filter for so many keys.
    pub(crate) fn for_keys(keys: usize) -> Self {
        Self { blocks: vec![[0; 8]; blocks_for(keys)] }
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
}
