//! The angle between two points of a sphere, with the same bits on every machine and at every level of SIMD.
//!
//! With D and S for half the difference and half the sum of the latitudes, and L for half the difference of the longitudes,
//!
//! ```text
//!     hav θ = sin² D cos² L + cos² S sin² L
//! 1 - hav θ = cos² D cos² L + sin² S sin² L
//! ```
//!
//! is the usual formula (sin² D + cos φ1 cos φ2 sin² L) without a subtraction, for three angles instead of four. The second
//! line keeps points that are nearly opposite as exact as neighbours, and nothing has to be clamped: the arcsine is asked of
//! the smaller of the two.
//!
//! The arithmetic is written once, over a [`Vector`] of one lane or of several. It is made of additions, subtractions,
//! multiplications, square roots and choices, each rounded by itself as IEEE 754 has it; none is fused with another. Fused
//! multiply-adds would save a third of the instructions where there is hardware for them, but where there is none, the same
//! bits would cost a call a step.
//!
//! Angles are reduced in degrees, where that is exact. What is left is at most 45°, or 1/2 where it is an arcsine's; there
//! polynomials that are minimax for the relative error (Remez; 2^-58 at worst) stand for sine and arcsine.

use std::f64::consts::{FRAC_PI_2, PI};

use super::vector::Vector;

/// Added and taken away again it rounds to an integer, to even where that is a tie; between the two the integer is in the
/// lowest bits. For less than 2^51.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// Angles beyond this, which mean nothing any more, are reduced to less than a turn first.
const MANY_TURNS: f64 = 1e12;

/// What is to be added to `FRAC_PI_2` to make it π/2.
const FRAC_PI_2_LOW: f64 = 6.123_233_995_736_766e-17;
/// What is to be added to `PI` to make it π.
const PI_LOW: f64 = 1.224_646_799_147_353_2e-16;

/// (sin r / r - 1) / r² over r², for |r| <= π/4.
const SINE: [f64; 6] = [
    -0.166_666_666_666_666_32,
    0.008_333_333_333_322_419,
    -0.000_198_412_698_298_123_84,
    2.755_731_369_357_281e-6,
    -2.505_075_838_422_128_8e-8,
    1.589_681_178_259_353_4e-10,
];

/// (asin u / u - 1) / u² over u², for |u| <= 1/2.
const ARCSINE: [f64; 13] = [
    0.166_666_666_666_667_62,
    0.074_999_999_999_702_62,
    0.044_642_857_175_121_16,
    0.030_381_942_683_605_525,
    0.022_372_215_660_511_296,
    0.017_351_600_089_656_55,
    0.013_980_961_464_949_235,
    0.011_397_775_939_635_704,
    0.010_786_529_144_419_322,
    0.003_683_041_853_432_290_6,
    0.021_763_499_618_343_147,
    -0.021_077_293_643_776_366,
    0.032_676_891_268_707_624,
];

/// The angle between two points given as latitudes and longitudes in degrees, in radians: from 0 to π.
///
/// No number where a coordinate is none or infinite, and only there.
pub(super) fn angle([lat1, lon1, lat2, lon2]: [f64; 4]) -> f64 {
    let within_a_turn = || angles([lat1 % 360.0, lon1 % 360.0, lat2 % 360.0, lon2 % 360.0]);
    angles([lat1, lon1, lat2, lon2]).or_else(within_a_turn).unwrap_or(f64::NAN)
}

/// The same of many points, unless one of them has gone around too often.
#[inline(always)]
pub(super) fn angles<V: Vector>([lat1, lon1, lat2, lon2]: [V; 4]) -> Option<V> {
    let zero = V::splat(0.0);
    let (d, s, l) = (exact_sum(lat2, zero - lat1), exact_sum(lat2, lat1), exact_sum(lon2, zero - lon1));
    let many = V::or(V::or(is_many_turns(d.0), is_many_turns(s.0)), is_many_turns(l.0));
    if V::any(many) { None } else { Some(angle_of(d, s, l)) }
}

#[inline(always)]
fn is_many_turns<V: Vector>(angle: V) -> V::Mask {
    angle.abs().exceeds(V::splat(MANY_TURNS))
}

/// The angle by twice D, S and L, each with what rounding took.
#[inline(always)]
fn angle_of<V: Vector>(d: (V, V), s: (V, V), l: (V, V)) -> V {
    let (sin_d, cos_d) = squared_sine_and_cosine_of_half(d);
    let (sin_s, cos_s) = squared_sine_and_cosine_of_half(s);
    let (sin_l, cos_l) = squared_sine_and_cosine_of_half(l);
    arc(sin_d * cos_l + cos_s * sin_l, cos_d * cos_l + sin_s * sin_l)
}

/// A sum, and what is to be added to it to make it exact (Knuth's TwoSum).
#[inline(always)]
fn exact_sum<V: Vector>(a: V, b: V) -> (V, V) {
    let sum = a + b;
    let of_b = sum - a;
    (sum, (a - (sum - of_b)) + (b - of_b))
}

/// The squares of sine and cosine of half an angle in degrees, which is given in two parts.
#[inline(always)]
pub(super) fn squared_sine_and_cosine_of_half<V: Vector>((angle, low): (V, V)) -> (V, V) {
    let quarters = angle * V::splat(1.0 / 180.0) + V::splat(ROUNDER);
    // Exact: a multiple of the last place of the angle, and no larger than it.
    let beyond = angle - (quarters - V::splat(ROUNDER)) * V::splat(180.0);
    let sine = sine((beyond + low) * V::splat(PI / 360.0));
    let square = sine * sine;
    let rest = V::splat(1.0) - square;
    let odd = quarters.is_odd();
    (V::choose(odd, rest, square), V::choose(odd, square, rest))
}

/// The sine of an angle of at most π/4.
#[inline(always)]
pub(super) fn sine<V: Vector>(r: V) -> V {
    let z = r * r;
    r + r * z * polynomial(&SINE, z)
}

/// The angle whose haversine is given, and one minus it: 2 asin √h.
///
/// Up to a quarter that is so, from three quarters it is π - 2 asin √(1-h), and between them π/2 - asin (1-2h): the arcsine
/// is asked of no more than 1/2.
#[inline(always)]
pub(super) fn arc<V: Vector>(h: V, rest: V) -> V {
    let beyond = h.exceeds(rest);
    let small = V::choose(beyond, rest, h);
    let middle = small.exceeds(V::splat(0.25));
    let cosine = rest - h;
    let u = V::choose(middle, cosine, small.sqrt());
    let z = V::choose(middle, cosine * cosine, small);
    let arcsine = u + u * z * polynomial(&ARCSINE, z);
    let twice = arcsine + arcsine;
    let outer = V::choose(beyond, (V::splat(PI) - twice) + V::splat(PI_LOW), twice);
    V::choose(middle, (V::splat(FRAC_PI_2) - arcsine) + V::splat(FRAC_PI_2_LOW), outer)
}

/// By Horner's rule over the square of z, so that the steps of even and odd coefficients go side by side.
#[inline(always)]
fn polynomial<V: Vector, const N: usize>(coefficients: &[f64; N], z: V) -> V {
    let square = z * z;
    let (mut even, mut odd) = (V::splat(0.0), V::splat(0.0));
    for (at, coefficient) in coefficients.iter().enumerate().rev() {
        let sum = if at % 2 == 0 { &mut even } else { &mut odd };
        *sum = *sum * square + V::splat(*coefficient);
    }
    even + odd * z
}
