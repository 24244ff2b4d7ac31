//! What scopes cost, in nanoseconds: `cargo run --release -p plinth-profile --example overhead`.
//!
//! Kinds take turns, so that what disturbs one disturbs all; the best and the median of the rounds are shown.
#![allow(clippy::cast_precision_loss, clippy::unwrap_used, reason = "an example")]

use std::hint::black_box;
use std::time::Instant;

use plinth_profile::{Profiler, ProfilerOptions, Stage, scope};

const ROUNDS: usize = 41;
const SCOPES: u32 = 20_000;

/// What is measured, and nanoseconds of one of it.
type Kind = (&'static str, Box<dyn FnMut() -> f64>);

fn main() {
    let start = |spans, detailed| Profiler::start(ProfilerOptions { spans, detailed, ..ProfilerOptions::default() });
    let off = || scope(Stage::Decode.of("bit-packed")).rows(8192);
    let mut kinds: Vec<Kind> = vec![
        ("nothing at all", Box::new(|| each(|| ()))),
        ("scope, no profiler anywhere", Box::new(move || each(off))),
        (
            "scope, a profiler runs elsewhere",
            Box::new(move || {
                let _running = start(0, false);
                each(off)
            }),
        ),
        ("scope within a scope", Box::new(move || within(&start(0, false), off))),
        (
            "the same, the third of its siblings, two deep",
            Box::new(move || {
                within(&start(0, false), || {
                    let _filter = scope(Stage::Filter.nth(0));
                    off();
                }) / 2.0
            }),
        ),
        ("the same, kept for a trace", Box::new(move || within(&start(1 << 20, false), off))),
        ("the same, detailed", Box::new(move || within(&start(0, true), off))),
        (
            "outermost scope of a thread",
            Box::new(move || {
                let profiler = start(0, false);
                each(|| profiler.scope(Stage::Operator.nth(0)).rows(8192))
            }),
        ),
    ];
    let mut times = vec![Vec::new(); kinds.len()];
    for _ in 0..ROUNDS {
        for ((_, kind), times) in kinds.iter_mut().zip(&mut times) {
            times.push(kind());
        }
    }
    for ((what, _), times) in kinds.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        println!("{:>8.1} ns  (median {:.1})  {what}", times[0], times[ROUNDS / 2]);
    }
}

/// Within a scope, as all but the outermost are.
fn within(profiler: &Profiler, work: impl FnMut()) -> f64 {
    let _operator = profiler.scope(Stage::Operator.nth(0));
    each(work)
}

fn each(mut work: impl FnMut()) -> f64 {
    let started = Instant::now();
    for _ in 0..SCOPES {
        work();
        black_box(());
    }
    started.elapsed().as_nanos() as f64 / f64::from(SCOPES)
}
