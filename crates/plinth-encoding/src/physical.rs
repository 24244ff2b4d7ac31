//! The physical type of a leaf column, and its numbers as raw bits.

/// How a leaf's values are laid out and ordered, whatever they mean to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Physical {
    /// One bit a value; `false < true`.
    Bool,
    /// Integers of `width` 1, 2, 4 or 8 bytes.
    Int {
        /// Bytes a value.
        width: u8,
        /// Whether the top bit is a sign.
        signed: bool,
    },
    /// Two's complement integers of `width` 16 or 32 bytes (decimals).
    Wide {
        /// Bytes a value.
        width: u8,
    },
    /// IEEE 754 numbers of `width` 2, 4 or 8 bytes, in their total order (`-NaN < -inf < -0 < 0 < inf < NaN`).
    Float {
        /// Bytes a value.
        width: u8,
    },
    /// `width` bytes a value, ordered as bytes (fixed-size binaries; intervals, whose order is never asked for).
    Fixed {
        /// Bytes a value; may be zero.
        width: u32,
    },
    /// Any number of bytes a value, ordered as bytes.
    Bytes {
        /// Whether every value must be UTF-8.
        utf8: bool,
    },
}

impl Physical {
    /// Dictionary codes: ranks in a sorted dictionary.
    pub const CODES: Self = Self::Int { width: 4, signed: false };

    /// Bytes a value in [`Values::Fixed`], where the type has a fixed width.
    pub fn fixed_width(self) -> Option<usize> {
        match self {
            Self::Int { width, .. } | Self::Wide { width } | Self::Float { width } => Some(usize::from(width)),
            Self::Fixed { width } => usize::try_from(width).ok(),
            Self::Bool | Self::Bytes { .. } => None,
        }
    }
}

/// How wide the integers of a node are and how they compare.
///
/// In memory on the way in, an integer is a `u64` extended by its sign (`raw`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IntKind {
    pub(crate) width: u8,
    pub(crate) signed: bool,
}

impl IntKind {
    /// Positions, counts and codes.
    pub(crate) const U32: Self = Self { width: 4, signed: false };

    /// Extends the low `width` bytes by their sign.
    pub(crate) fn extend(self, raw: u64) -> u64 {
        let spare = 64 - 8 * u32::from(self.width.clamp(1, 8));
        if self.signed {
            (raw << spare).cast_signed().wrapping_shr(spare).cast_unsigned()
        } else {
            raw << spare >> spare
        }
    }

    /// Maps raw integers to others that compare unsigned as the values do.
    #[inline(always)]
    pub(crate) fn ordered(self, raw: u64) -> u64 {
        raw ^ u64::from(self.signed) << 63
    }

    /// What a raw integer stands for.
    #[inline(always)]
    pub(crate) fn value(self, raw: u64) -> i128 {
        if self.signed { raw.cast_signed().into() } else { raw.into() }
    }
}

/// A float of `width` bytes as an `f64`, exactly: payloads of NaN too, which a conversion in hardware would quieten.
#[allow(clippy::cast_possible_truncation, reason = "bit patterns of four bytes")]
pub(crate) fn to_f64(bits: u64, width: u8) -> f64 {
    match width {
        8 => f64::from_bits(bits),
        4 => {
            let value = f32::from_bits(bits as u32);
            if value.is_nan() {
                f64::from_bits((bits & 0x8000_0000) << 32 | 0x7FF << 52 | (bits & 0x7F_FFFF) << 29)
            } else {
                value.into()
            }
        }
        _ => {
            let (sign, exponent, fraction) = ((bits & 0x8000) << 48, bits >> 10 & 0x1F, bits & 0x3FF);
            let magnitude = match exponent {
                // Subnormals are multiples of 2^-24.
                0 => {
                    let fraction = u16::try_from(fraction).unwrap_or(0);
                    (f64::from(fraction) * 2.0_f64.powi(-24)).to_bits()
                }
                31 => 0x7FF << 52 | fraction << 42,
                _ => (exponent + 1023 - 15) << 52 | fraction << 42,
            };
            f64::from_bits(sign | magnitude)
        }
    }
}

/// A float's place in the total order, as an integer.
pub(crate) fn rank(value: f64) -> i64 {
    let bits = value.to_bits().cast_signed();
    bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
}

/// A two's complement integer of 16 or 32 bytes, if it fits 128 bits.
pub(crate) fn wide_value(bytes: &[u8]) -> Option<i128> {
    let value = i128::from_le_bytes(*bytes.first_chunk()?);
    let sign = if value < 0 { 0xFF } else { 0 };
    bytes.iter().skip(16).all(|&byte| byte == sign).then_some(value)
}
