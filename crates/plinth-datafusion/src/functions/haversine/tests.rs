#![allow(clippy::unwrap_used, clippy::cast_precision_loss)]

use proptest::prelude::*;

use super::reference::{self, Double};
use plinth_core::simd::Level;

use super::{Coordinate, EARTH, distances, kernel};

/// Distances in radians, of coordinates one a pair.
fn angles(level: Level, points: &[[f64; 4]]) -> Vec<f64> {
    let columns: [Vec<f64>; 4] = std::array::from_fn(|at| points.iter().map(|point| point[at]).collect());
    let [lat1, lon1, lat2, lon2] = columns.each_ref().map(|column| Coordinate::Each(column));
    let mut out = vec![0.0; points.len()];
    distances(level, &[lat1, lon1, lat2, lon2, Coordinate::All(1.0)], &mut out);
    out
}

fn angle(point: [f64; 4]) -> f64 {
    angles(Level::Scalar, &[point])[0]
}

/// Any float, most of them coordinates.
fn coordinate() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => -180.0..180.0,
        2 => (-40i32..40).prop_map(|n| f64::from(n) * 22.5),
        1 => any::<f64>(),
        1 => proptest::num::f64::ANY,
        1 => Just(f64::INFINITY),
    ]
}

proptest! {
    #[test]
    fn all_levels_give_the_same_bits_whatever_the_inputs(
        points in prop::collection::vec(prop::array::uniform4(coordinate()), 0..40),
        radius in coordinate(),
        all in prop::array::uniform5(any::<bool>()),
    ) {
        let columns: [Vec<f64>; 4] = std::array::from_fn(|at| points.iter().map(|point| point[at]).collect());
        let radii = vec![radius; points.len()];
        let inputs: [Coordinate<'_>; 5] = std::array::from_fn(|at| {
            let values = columns.get(at).unwrap_or(&radii);
            match (all[at], values.first()) {
                (true, Some(first)) => Coordinate::All(*first),
                _ => Coordinate::Each(values),
            }
        });
        let value = |at: usize, row: usize| match inputs[at] {
            Coordinate::All(value) => value,
            Coordinate::Each(values) => values[row],
        };
        let of = |level| {
            let mut out = vec![0.0; points.len()];
            distances(level, &inputs, &mut out);
            out
        };
        let expected = of(Level::Scalar);
        for (row, distance) in expected.iter().enumerate() {
            let point: [f64; 4] = std::array::from_fn(|at| value(at, row));
            let single = angle(point) * value(4, row);
            let single = if single.is_nan() { f64::NAN } else { single };
            prop_assert_eq!(single.to_bits(), distance.to_bits());
            prop_assert_eq!(angle(point).is_nan(), point.iter().any(|degrees| !degrees.is_finite()));
        }
        for level in Level::all() {
            prop_assert!(of(level).iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits()), "{:?}", level);
        }
    }

    #[test]
    fn elementary_functions_are_within_two_places(degrees in -1e4..1e4, h in 0.0..1.0f64, r in -1.0..1.0f64) {
        let r = r * std::f64::consts::FRAC_PI_4;
        let [sine, _] = Double::from(r).sin_cos();
        prop_assert!(sine.ulps(kernel::sine(r)) <= 1.0, "sin {}: {}", r, sine.ulps(kernel::sine(r)));

        let expected = reference::sin_cos_of_degrees(Double::from(degrees) * 0.5.into());
        let (sine, cosine) = kernel::squared_sine_and_cosine_of_half((degrees, 0.0));
        for (expected, square) in expected.into_iter().zip([sine, cosine]) {
            // Compared as the sine and the cosine that they are the squares of.
            let root = Double::from(square).sqrt();
            prop_assert!((expected * expected - root * root).0.abs() <= 4.0 * f64::EPSILON * square, "{}", degrees);
        }

        let rest = 1.0 - h;
        let expected = Double::from(2.0) * Double::from(h).sqrt().asin();
        let arc = kernel::arc(h, rest);
        // One minus it is exact from a half on only.
        prop_assume!(h >= 0.5 || Double::from(1.0 - h).0 + h == 1.0);
        prop_assert!(expected.ulps(arc) <= 2.0, "arc {}: {}", h, expected.ulps(arc));
    }

    #[test]
    fn angles_are_exact_to_a_few_places_everywhere(
        lat1 in -90.0..90.0f64,
        lon1 in -180.0..180.0f64,
        how in 0..4u8,
        (a, b) in (-1.0..1.0f64, -1.0..1.0f64),
        scale in 0..14i32,
    ) {
        let (a, b) = (a * 10f64.powi(-scale), b * 10f64.powi(-scale));
        let point = match how {
            0 => [lat1, lon1, a * 90.0, b * 180.0],
            // Neighbours, points nearly opposite, and points near the poles.
            1 => [lat1, lon1, lat1 + a, lon1 + b],
            2 => [lat1, lon1, -lat1 + a, lon1 + 180.0 + b],
            _ => [90.0 + a, lon1, 90.0 + b, lat1 * 2.0],
        };
        let expected = reference::angle(point);
        let found = angle(point);
        prop_assert!(expected.ulps(found) <= 4.0, "{:?}: {} for {:?}", point, found, expected);
        let [lat1, lon1, lat2, lon2] = point;
        prop_assert_eq!(found.to_bits(), angle([lat2, lon2, lat1, lon1]).to_bits());
    }
}

#[test]
fn opposite_points_are_half_a_turn_apart_and_equal_ones_nothing() {
    for lat in -90..=90 {
        for lon in -180..=180 {
            let (lat, lon) = (f64::from(lat) * 0.999, f64::from(lon) * 0.997);
            let opposite = angle([lat, lon, -lat, lon + 180.0]);
            assert!((opposite - std::f64::consts::PI).abs() <= 1e-15, "{lat} {lon}: {opposite}");
            assert_eq!(angle([lat, lon, lat, lon]), 0.0);
        }
    }
}

#[test]
fn known_distances() {
    // A degree of a meridian, and half the way around.
    let meridian = EARTH * std::f64::consts::PI / 180.0;
    assert!((angle([0.0, 0.0, 1.0, 0.0]) * EARTH - meridian).abs() < 1e-9);
    assert_eq!(angle([90.0, 0.0, -90.0, 123.0]), std::f64::consts::PI);
    assert_eq!(angle([0.0, -90.0, 0.0, 90.0]), std::f64::consts::PI);
    // Over the antimeridian it is two degrees, not 358.
    assert!((angle([0.0, 179.0, 0.0, -179.0]).to_degrees() - 2.0).abs() < 1e-14);
    // Whole turns are nothing, however many.
    let far = 360.0 * 2f64.powi(60);
    assert_eq!(angle([10.0, 20.0, 30.0, 40.0 + 720.0]), angle([10.0, 20.0, 30.0, 40.0]));
    assert_eq!(angle([10.0, far, 30.0, 0.0]), angle([10.0, 0.0, 30.0, 0.0]));
}
