//! Sines and arcsines to a hundred bits, to compare with: numbers are sums of two floats (Dekker's double-double).

use std::ops::{Add, Div, Mul, Neg, Sub};

#[derive(Clone, Copy, Debug)]
pub(super) struct Double(pub(super) f64, pub(super) f64);

/// π / 180.
const DEGREE: Double = Double(0.017_453_292_519_943_295, 2.948_652_270_870_168_7e-19);
/// π / 2.
const QUARTER: Double = Double(std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17);

fn sum(a: f64, b: f64) -> Double {
    let s = a + b;
    let of_b = s - a;
    Double(s, (a - (s - of_b)) + (b - of_b))
}

impl From<f64> for Double {
    fn from(value: f64) -> Self {
        Self(value, 0.0)
    }
}

impl Neg for Double {
    type Output = Self;

    fn neg(self) -> Self {
        Self(-self.0, -self.1)
    }
}

impl Add for Double {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let (high, low) = (sum(self.0, other.0), sum(self.1, other.1));
        let high = sum(high.0, high.1 + low.0);
        sum(high.0, high.1 + low.1)
    }
}

impl Sub for Double {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Double {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let high = self.0 * other.0;
        let low = self.0.mul_add(other.0, -high) + (self.0 * other.1 + self.1 * other.0);
        sum(high, low)
    }
}

impl Div for Double {
    type Output = Self;

    fn div(self, other: Self) -> Self {
        let first = self.0 / other.0;
        let rest = self - other * first.into();
        let second = rest.0 / other.0;
        let rest = rest - other * second.into();
        sum(first, second) + (rest.0 / other.0).into()
    }
}

impl Double {
    pub(super) fn sqrt(self) -> Self {
        if self.0 <= 0.0 {
            return 0.0.into();
        }
        let root = Self::from(self.0.sqrt());
        root + (self - root * root) / (root + root)
    }

    /// Sine and cosine of at most a few radians, by Taylor's series.
    pub(super) fn sin_cos(self) -> [Self; 2] {
        let mut terms = [Self::from(0.0), Self::from(1.0)];
        let mut term = Self::from(1.0);
        for n in 1..60u8 {
            term = term * self / f64::from(n).into();
            let at = usize::from(n % 2 == 0);
            terms[at] = if n % 4 < 2 { terms[at] + term } else { terms[at] - term };
        }
        terms
    }

    /// The arcsine of 0 to 1, by two steps of Newton's from that of floats; by the complement where that is steep.
    pub(super) fn asin(self) -> Self {
        if self.0 > 0.8 {
            return QUARTER - ((Self::from(1.0) - self) * (Self::from(1.0) + self)).sqrt().asin();
        }
        let mut angle = Self::from(self.0.asin());
        for _ in 0..2 {
            let [sine, cosine] = angle.sin_cos();
            angle = angle + (self - sine) / cosine;
        }
        angle
    }

    /// How many units in the last place of its nearest float another is away.
    pub(super) fn ulps(self, other: f64) -> f64 {
        let place = self.0.abs().max(f64::MIN_POSITIVE);
        let ulp = f64::from_bits(place.to_bits() + 1) - place;
        ((Self::from(other) - self).0 / ulp).abs()
    }
}

/// Sine and cosine of degrees, reduced exactly.
pub(super) fn sin_cos_of_degrees(degrees: Double) -> [Double; 2] {
    let quarters = (degrees.0 / 90.0).round();
    let beyond = sum(degrees.0 - 90.0 * quarters, degrees.1);
    let [sine, cosine] = (beyond * DEGREE).sin_cos();
    match (quarters % 4.0 + 4.0) % 4.0 {
        0.0 => [sine, cosine],
        1.0 => [cosine, -sine],
        2.0 => [-sine, -cosine],
        _ => [-cosine, sine],
    }
}

/// The angle between two points of degrees, by the usual formula: a hundred bits have room for what it loses.
pub(super) fn angle([lat1, lon1, lat2, lon2]: [f64; 4]) -> Double {
    let half = |from: f64, to: f64| sin_cos_of_degrees(sum(to, -from) * 0.5.into());
    let ([north, _], [east, _]) = (half(lat1, lat2), half(lon1, lon2));
    let ([_, cos1], [_, cos2]) = (sin_cos_of_degrees(lat1.into()), sin_cos_of_degrees(lat2.into()));
    let haversine = north * north + cos1 * cos2 * east * east;
    let two = Double(2.0, 0.0);
    match haversine.0 <= 0.5 {
        true => two * haversine.sqrt().asin(),
        false => two * QUARTER - two * (Double(1.0, 0.0) - haversine).sqrt().asin(),
    }
}
