//! The tags of encodings, and what each costs.

use crate::error::EncodingError;

macro_rules! encodings {
    ($($(#[$doc:meta])* $name:ident = $tag:literal, $text:literal;)*) => {
        /// How the values of a block, or of a part of one, are encoded; one byte in the file.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Encoding {
            $($(#[$doc])* $name = $tag,)*
        }

        impl Encoding {
            /// The byte in the file.
            pub fn tag(self) -> u8 {
                self as u8
            }

            /// What people call it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }

        impl TryFrom<u8> for Encoding {
            type Error = EncodingError;

            fn try_from(tag: u8) -> Result<Self, EncodingError> {
                match tag {
                    $($tag => Ok(Self::$name),)*
                    _ => Err(EncodingError::corrupt(format!("encoding {tag} is unknown"))),
                }
            }
        }
    };
}

encodings! {
    /// No row has a value.
    AllNull = 0, "all-null";
    /// All values are equal.
    Constant = 1, "constant";
    /// Values as they stand.
    Plain = 2, "plain";
    /// Frame of reference and bit-packing.
    BitPacked = 3, "bit-packed";
    /// Differences between neighbours.
    Delta = 4, "delta";
    /// Runs of equal values.
    RunLength = 5, "run-length";
    /// One dominant value and exceptions.
    Sparse = 6, "sparse";
    /// Bit-packing with exceptions.
    Patched = 7, "patched";
    /// Floats as decimals (ALP).
    Alp = 8, "alp";
    /// Numbers by pco.
    Pco = 9, "pco";
    /// Distinct values and codes.
    Dictionary = 10, "dictionary";
    /// Byte strings by FSST.
    Fsst = 11, "fsst";
    /// Bytes by Zstandard.
    Zstd = 12, "zstd";
    /// Wide integers that fit 64 bits.
    Narrowed = 13, "narrowed";
    /// Frame of reference and mixed-radix packing.
    Mixed = 14, "mixed";
    /// Increasing integers by Elias and Fano.
    EliasFano = 15, "elias-fano";
    /// Distinct integers and which of them each row has.
    Distinct = 16, "distinct";
}

/// The feature of the format that readers of its first version do not know: [`Encoding::EliasFano`] and [`Encoding::Distinct`].
pub const DISTINCT: u32 = 1 << 1;

impl Encoding {
    /// What a reader must know of the format beyond its first version to decode it: bits of a file's tail.
    pub fn features(self) -> u32 {
        match self {
            Self::EliasFano | Self::Distinct => DISTINCT,
            _ => 0,
        }
    }
}

/// What to favour when encodings are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Effort {
    /// None at all: values as they are, which a reader hands out without decoding or copying them.
    Plain,
    /// Little work for writer and reader.
    Fast,
    /// Small where reading stays fast.
    #[default]
    Balanced,
    /// As small as it gets.
    Compact,
}

/// A size with the encoding's decode cost added, in thousandths of a byte: candidates are compared by it.
///
/// The shares (in percent of the size) say how much smaller an encoding must be than a plain one to be worth its
/// decoding. They are part of the writer, not of the format.
pub(crate) fn cost(encoding: Encoding, size: usize, effort: Effort) -> usize {
    let [fast, balanced, compact] = match encoding {
        Encoding::AllNull | Encoding::Constant | Encoding::Plain | Encoding::RunLength | Encoding::Narrowed => [0; 3],
        Encoding::BitPacked | Encoding::Sparse => [2, 1, 0],
        // A hundredth more than bit-packing: it should save as much, and something to speak of where reading must be fast.
        Encoding::Mixed => [12, 2, 1],
        Encoding::Patched => [5, 2, 0],
        Encoding::Delta | Encoding::EliasFano => [10, 3, 0],
        Encoding::Distinct => [20, 5, 0],
        Encoding::Alp | Encoding::Dictionary => [10, 5, 0],
        Encoding::Pco => [400, 34, 11],
        Encoding::Fsst => [20, 10, 5],
        Encoding::Zstd => [150, 40, 5],
    };
    let share = match effort {
        Effort::Plain if !matches!(encoding, Encoding::AllNull | Encoding::Constant | Encoding::Plain) => {
            return usize::MAX;
        }
        Effort::Plain => 0,
        Effort::Fast => fast,
        Effort::Balanced => balanced,
        Effort::Compact => compact,
    };
    size.saturating_mul(1000).saturating_add(size.saturating_mul(share * 10))
}
