//! Pseudo-random numbers that follow from a seed, the same on every machine: for tests, benchmarks and made-up data.

/// splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014): one addition and a mix a
/// number. Any seed is a good one. What it makes neither compresses nor repeats; it is no secret.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// A number of 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number less than `end`; 0 if `end` is 0.
    #[inline]
    pub fn below(&mut self, end: u64) -> u64 {
        // The high half of the product: no division, and no bias that matters here.
        u64::try_from((u128::from(self.next_u64()) * u128::from(end)) >> 64).unwrap_or(0)
    }

    /// An index of something of this length; 0 if it is empty.
    #[inline]
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or(0)
    }

    /// True in this many of a hundred cases.
    #[inline]
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A number from 0 to less than 1, in steps of 2^-53.
    #[inline]
    #[allow(clippy::cast_precision_loss, reason = "53 bits are a double's")]
    pub fn fraction(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Fills bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.iter_mut().zip(self.next_u64().to_le_bytes()).for_each(|(byte, random)| *byte = random);
        }
    }
}

/// How often a randomized test tries: what an environment variable says, or else `default`.
pub fn trials(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|trials| trials.parse().ok()).unwrap_or(default)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_splitmix64() {
        // The first outputs of the reference implementation for seed 1234567.
        let mut random = Random(1_234_567);
        assert_eq!(
            [random.next_u64(), random.next_u64(), random.next_u64()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn numbers_are_even_and_below_their_end() {
        let mut random = Random(1_234_567);
        let mut seen = [0_u32; 7];
        for _ in 0..7_000 {
            seen[random.index(7)] += 1;
            assert!((0.0..1.0).contains(&random.fraction()));
        }
        assert!(seen.iter().all(|n| (800..1_200).contains(n)), "{seen:?}");
        assert_eq!((random.below(0), random.index(0)), (0, 0));
        let mut bytes = [0; 1_003];
        random.fill(&mut bytes);
        assert!(bytes[1_000..].iter().any(|byte| *byte != 0));
        assert!(bytes.iter().filter(|byte| **byte == 0).count() < 30);
    }
}
