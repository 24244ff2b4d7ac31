//! Floats that are computed with side by side.

use std::ops::{Add, Mul, Sub};

/// One float, or several.
pub(super) trait Vector: Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> {
    /// A truth a lane.
    type Mask: Copy;

    /// One value in all lanes.
    fn splat(value: f64) -> Self;
    fn sqrt(self) -> Self;
    fn abs(self) -> Self;
    /// Where it is larger; nowhere that one of them is no number.
    fn exceeds(self, other: Self) -> Self::Mask;
    /// Where the lowest bit of its representation is set.
    fn is_odd(self) -> Self::Mask;
    /// Either.
    fn or(a: Self::Mask, b: Self::Mask) -> Self::Mask;
    /// Whether any is set.
    fn any(mask: Self::Mask) -> bool;
    /// One or the other.
    fn choose(mask: Self::Mask, set: Self, unset: Self) -> Self;
}

impl Vector for f64 {
    type Mask = bool;

    #[inline(always)]
    fn splat(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        f64::sqrt(self)
    }

    #[inline(always)]
    fn abs(self) -> Self {
        f64::abs(self)
    }

    #[inline(always)]
    fn exceeds(self, other: Self) -> bool {
        self > other
    }

    #[inline(always)]
    fn is_odd(self) -> bool {
        self.to_bits() & 1 == 1
    }

    #[inline(always)]
    fn or(a: bool, b: bool) -> bool {
        a | b
    }

    #[inline(always)]
    fn any(mask: bool) -> bool {
        mask
    }

    #[inline(always)]
    fn choose(mask: bool, set: Self, unset: Self) -> Self {
        std::hint::select_unpredictable(mask, set, unset)
    }
}
