//! Numbers that follow from a seed.

#[derive(Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 16) % n
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// How many operations: `PLINTH_INDEX_OPS`, or as many as a test has time for.
pub fn operations(otherwise: u64) -> u64 {
    std::env::var("PLINTH_INDEX_OPS").ok().and_then(|n| n.parse().ok()).unwrap_or(otherwise)
}
