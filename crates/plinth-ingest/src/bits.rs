//! Stage one: what the bytes of a text are, 64 at a time.
//!
//! A [`Kernel`] turns a block into bitmaps, one bit a byte; what follows from them is worked out on words: which bytes of JSON
//! are within strings and how deep brackets are nested ([`brackets`]), where the fields and the records of CSV end
//! ([`fields`]). What crosses the end of a block is carried in a few bits, so a text may come in parts of any size. The idea is
//! that of simdjson (Langdale and Lemire, "Parsing Gigabytes of JSON per Second", VLDB Journal 2019).

#[cfg(target_arch = "x86_64")]
mod avx2;
pub(crate) mod brackets;
pub(crate) mod dialect;
mod dispatch;
pub(crate) mod fields;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod sse2;

pub use plinth_core::simd::Level;

/// Bytes of a block.
pub(crate) const BLOCK: usize = 64;

/// Bitmaps of a block.
struct Brackets {
    quotes: u64,
    backslashes: u64,
    opens: u64,
    closes: u64,
    commas: u64,
}

/// What a vector unit does.
trait Kernel {
    /// Where a byte is.
    fn find(block: &[u8; BLOCK], byte: u8) -> u64;

    /// Where a brace or the square bracket like it is: in ASCII they differ in one bit.
    fn find_bracket(block: &[u8; BLOCK], brace: u8) -> u64;

    /// Where each of some bytes is.
    #[inline(always)]
    fn equal<const N: usize>(block: &[u8; BLOCK], bytes: [u8; N]) -> [u64; N] {
        // Not `map`, which would not be inlined and then has no vectors.
        let mut found = [0; N];
        for (found, byte) in found.iter_mut().zip(bytes) {
            *found = Self::find(block, byte);
        }
        found
    }

    /// Where the bytes are that structure JSON.
    #[inline(always)]
    fn brackets(block: &[u8; BLOCK]) -> Brackets {
        let [quotes, backslashes, commas] = Self::equal(block, [b'"', b'\\', b',']);
        let (opens, closes) = (Self::find_bracket(block, b'{'), Self::find_bracket(block, b'}'));
        Brackets { quotes, backslashes, opens, closes, commas }
    }

    /// Bit `i` says whether an odd number of the bits up to and including `i` is set: where quotes are, what is between.
    #[inline(always)]
    fn parity(bits: u64) -> u64 {
        [1, 2, 4, 8, 16, 32].into_iter().fold(bits, |bits, by| bits ^ (bits << by))
    }
}
