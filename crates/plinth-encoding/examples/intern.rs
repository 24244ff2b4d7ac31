//! Times interning of words that are known already: the least of many short runs, so that what else the machine does
//! shows little.
//!
//! `cargo run --release -p plinth-encoding --example intern -- [DISTINCT...]`
#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "an example that measures"
)]

use std::collections::HashSet;
use std::time::{Duration, Instant};

use plinth_core::random::Random;
use plinth_encoding::dictionary::Interner;
use plinth_encoding::{Column, Physical, Values};

const ROWS: usize = 1 << 15;
const RUNS: usize = 1_000;

/// A word as a view.
fn word(random: &mut Random) -> u128 {
    let len = 4 + random.below(7);
    (0..len).fold(u128::from(len), |view, at| view | u128::from(97 + random.below(26)) << (32 + 8 * at))
}

fn main() {
    let given: Vec<usize> = std::env::args().skip(1).map(|text| text.parse().unwrap()).collect();
    let mut random = Random(7);
    for distinct in if given.is_empty() { vec![1_000, 70_000, 976_000] } else { given } {
        let mut words = HashSet::with_capacity(distinct);
        while words.len() < distinct {
            words.insert(word(&mut random));
        }
        let words: Vec<u128> = words.into_iter().collect();
        let column = |views: Vec<u128>| {
            let len = views.len();
            Column { len, values: Values::Views { views: views.into(), buffers: Vec::new() }, nulls: None }
        };
        let mut interner = Interner::new(Physical::Bytes { utf8: true }).unwrap();
        let mut codes = Vec::with_capacity(ROWS.max(distinct));
        let start = Instant::now();
        interner.intern(&column(words.clone()), &mut codes).unwrap();
        let fresh = start.elapsed().as_nanos() as f64 / distinct as f64;
        let mut least = Duration::MAX;
        for _ in 0..RUNS {
            let rows = column((0..ROWS).map(|_| words[random.below(distinct as u64) as usize]).collect());
            codes.clear();
            let start = Instant::now();
            interner.intern(&rows, &mut codes).unwrap();
            least = least.min(start.elapsed());
        }
        let known = least.as_nanos() as f64 / ROWS as f64;
        println!("{distinct} words: {fresh:.1} ns each when new, {known:.2} ns each when known");
    }
}
