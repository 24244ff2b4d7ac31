//! The kernel of the machine's level, chosen once a call.

use super::brackets::{self, Scan, Stop};
use super::fields::{self, Ends, FieldScan};
#[cfg(target_arch = "aarch64")]
use super::neon::Neon;
use super::scalar::Scalar;
use super::{BLOCK, Level};
#[cfg(target_arch = "x86_64")]
use super::{avx2, sse2::Sse2};

impl Scan {
    /// Goes on at `from`, to the first boundary that is not before `goal` (about), or to the array's end wherever it is. Less
    /// than a block at the end of the bytes is left for later unless it is the `last`.
    pub(crate) fn next(&mut self, bytes: &[u8], from: usize, goal: usize, last: bool) -> Stop {
        match self.level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2::scan(self, bytes, from, goal, last),
            #[cfg(target_arch = "x86_64")]
            Level::Sse2 => brackets::scan::<Sse2>(self, bytes, from, goal, last),
            #[cfg(target_arch = "aarch64")]
            Level::Neon => brackets::scan::<Neon>(self, bytes, from, goal, last),
            _ => brackets::scan::<Scalar>(self, bytes, from, goal, last),
        }
    }
}

impl FieldScan {
    /// Goes on at `from`, block by block, and says where that brought it. What `each` is told is where a block is and what ends in
    /// it; it answers whether more is wanted. Less than a block at the end of the bytes is left for later unless it is the `last`.
    pub(crate) fn run(
        &mut self,
        bytes: &[u8],
        from: usize,
        last: bool,
        each: impl FnMut(usize, Ends) -> bool,
    ) -> usize {
        match self.level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2::fields(self, bytes, from, last, each),
            #[cfg(target_arch = "x86_64")]
            Level::Sse2 => fields::run::<Sse2>(self, bytes, from, last, each),
            #[cfg(target_arch = "aarch64")]
            Level::Neon => fields::run::<Neon>(self, bytes, from, last, each),
            _ => fields::run::<Scalar>(self, bytes, from, last, each),
        }
    }

    /// The end of the first record, its line end included, and starts afresh there; else how far it came.
    pub(crate) fn first(&mut self, bytes: &[u8], from: usize, last: bool) -> Result<usize, usize> {
        let mut end = None;
        let at = self.run(bytes, from, last, |at, ends| {
            let found = ends.records.trailing_zeros() as usize;
            end = (found < BLOCK).then_some(at + found + 1);
            end.is_none()
        });
        if end.is_some() {
            self.restart();
        }
        end.ok_or(at)
    }

    /// The end of the last record, and how far it came.
    pub(crate) fn last(&mut self, bytes: &[u8], from: usize, last: bool) -> (Option<usize>, usize) {
        let mut end = None;
        let at = self.run(bytes, from, last, |at, ends| {
            if ends.records != 0 {
                end = Some(at + BLOCK - ends.records.leading_zeros() as usize);
            }
            true
        });
        (end, at)
    }
}
