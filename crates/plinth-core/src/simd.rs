//! Which instruction sets this machine has: asked once at run time, so that one program runs everywhere.

use std::sync::OnceLock;

/// A set of vector instructions. Kernels of different levels give the same answers, so the choice matters for speed only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Portable Rust.
    Scalar,
    /// 128-bit vectors, which every x86-64 has.
    Sse2,
    /// 256-bit vectors of x86-64, with the bit instructions that came with them (BMI1, BMI2, LZCNT, POPCNT)
    /// and carry-less multiplication. Where one of them is masked (by a virtual machine, say), kernels that would do without it
    /// take the level below, too: one question for all.
    Avx2,
    /// 128-bit vectors, which every 64-bit ARM has.
    Neon,
}

impl Level {
    /// Whether this machine has it.
    #[inline]
    pub fn available(self) -> bool {
        match self {
            Self::Scalar => true,
            Self::Sse2 => cfg!(target_arch = "x86_64"),
            Self::Avx2 => Self::best() == Self::Avx2,
            Self::Neon => cfg!(target_arch = "aarch64"),
        }
    }

    /// Those this machine has, the fastest last.
    pub fn all() -> Vec<Self> {
        [Self::Scalar, Self::Sse2, Self::Avx2, Self::Neon].into_iter().filter(|level| level.available()).collect()
    }

    /// The fastest this machine has: asked of the processor once, a load from then on.
    #[inline]
    pub fn best() -> Self {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(|| match () {
            () if avx2() => Self::Avx2,
            () if cfg!(target_arch = "x86_64") => Self::Sse2,
            () if cfg!(target_arch = "aarch64") => Self::Neon,
            () => Self::Scalar,
        })
    }
}

fn avx2() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("pclmulqdq")
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_level_is_the_last_of_those_there_are() {
        assert_eq!(Level::all().last(), Some(&Level::best()));
        assert!(Level::all().iter().all(|level| level.available()));
    }
}
