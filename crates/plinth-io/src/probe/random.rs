//! Random numbers that are the same on every run.

/// Splitmix64 (Steele, Lea and Flood 2014): one addition and a mix a number, good enough for offsets and for data that
/// neither compresses nor deduplicates.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; zero if there is none.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        // The upper half of the product: no division, and no bias that matters here.
        u64::try_from((u128::from(self.next()) * u128::from(end)) >> 64).unwrap_or(0)
    }

    pub(super) fn fill(&mut self, bytes: &mut [u8]) {
        let mut chunks = bytes.chunks_exact_mut(8);
        for chunk in &mut chunks {
            chunk.copy_from_slice(&self.next().to_le_bytes());
        }
        let last = self.next().to_le_bytes();
        chunks.into_remainder().iter_mut().zip(last).for_each(|(byte, random)| *byte = random);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_splitmix64_and_stays_below_its_end() {
        // The first outputs of the reference implementation for seed 1234567.
        let mut random = Random::new(1_234_567);
        assert_eq!(
            [random.next(), random.next(), random.next()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
        let mut seen = [0u32; 7];
        for _ in 0..7_000 {
            seen[usize::try_from(random.below(7)).unwrap()] += 1;
        }
        assert!(seen.iter().all(|n| (800..1_200).contains(n)), "{seen:?}");
        assert_eq!(random.below(0), 0);
        let mut bytes = [0; 1_003];
        random.fill(&mut bytes);
        assert!(bytes[1_000..].iter().any(|byte| *byte != 0));
        assert!(bytes.iter().filter(|byte| **byte == 0).count() < 30);
    }
}
