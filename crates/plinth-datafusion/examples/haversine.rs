//! What a distance costs, by level: nanoseconds a pair, the median of runs in turn.
//!
//!     cargo run --release -p plinth-datafusion --example haversine [RUNS]
//!
//! The functions of the standard library, one pair after the other, are beside it.

#![allow(clippy::unwrap_used, clippy::cast_precision_loss, missing_docs, reason = "an example")]

use std::time::Instant;

use plinth_core::random::Random;
use plinth_core::simd::Level;
use plinth_datafusion::{Coordinate, distances};

/// As many as a batch of the engine has.
const PAIRS: usize = 8_192;

/// The formula as it is usually written.
fn usual(columns: &[Vec<f64>; 4], radius: f64, out: &mut [f64]) {
    let [lat1, lon1, lat2, lon2] = columns;
    for (at, out) in out.iter_mut().enumerate() {
        let north = ((lat2[at] - lat1[at]).to_radians() / 2.0).sin();
        let east = ((lon2[at] - lon1[at]).to_radians() / 2.0).sin();
        let h = north * north + lat1[at].to_radians().cos() * lat2[at].to_radians().cos() * east * east;
        *out = 2.0 * radius * h.sqrt().asin();
    }
}

fn main() {
    let runs: usize = std::env::args().nth(1).map_or(201, |runs| runs.parse().unwrap());
    let mut random = Random(1);
    let mut degrees = |most: f64| (2.0 * random.fraction() - 1.0) * most;
    let columns = [90.0, 180.0, 90.0, 180.0].map(|most| (0..PAIRS).map(|_| degrees(most)).collect::<Vec<_>>());
    let [lat1, lon1, lat2, lon2] = columns.each_ref().map(|column| Coordinate::Each(column));
    let inputs = [lat1, lon1, lat2, lon2, Coordinate::All(6_371_008.8)];
    let levels = Level::all();
    let mut times = vec![Vec::with_capacity(runs); levels.len() + 1];
    let mut out = vec![0.0; PAIRS];
    for _ in 0..runs {
        for (at, times) in times.iter_mut().enumerate() {
            let start = Instant::now();
            match levels.get(at) {
                Some(level) => distances(*level, &inputs, &mut out),
                None => usual(&columns, 6_371_008.8, &mut out),
            }
            times.push(start.elapsed().as_nanos() as f64 / PAIRS as f64);
            std::hint::black_box(&mut out);
        }
    }
    let names = levels.iter().map(|level| format!("{level:?}")).chain(["standard library".to_owned()]);
    for (name, mut times) in names.zip(times) {
        times.sort_by(f64::total_cmp);
        println!("{name}: {:.1} ns a pair", times[runs / 2]);
    }
}
