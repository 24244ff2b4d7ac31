//! Times writing a column of words through the public writer: random lower-case words of 4 to 10 letters, drawn again and
//! again with lognormal weights or equal ones.
//!
//! `cargo run --release -p plinth-format --example encode -- [ROWS] [DISTINCT] [uniform|skewed] [RUNS] [THREADS...]`
#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an example that measures"
)]

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::builder::StringViewBuilder;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use plinth_core::random::Random;
use plinth_format::{Writer, WriterOptions};
use plinth_profile::Clock;

/// Rows of a batch.
const BATCH: usize = 65_536;

/// Variance of the logarithms of the weights.
const VARIANCE: f64 = 0.35;

/// From 0 to 1, neither included.
fn unit(random: &mut Random) -> f64 {
    ((random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

fn word(random: &mut Random) -> String {
    let len = 4 + random.below(7);
    (0..len).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
}

/// Draws in constant time by weights (the alias method of Walker and Vose).
struct Draw(Vec<(f64, u32)>);

impl Draw {
    fn new(weights: &[f64]) -> Self {
        let mean = weights.iter().sum::<f64>() / weights.len() as f64;
        let mut table: Vec<(f64, u32)> = weights.iter().zip(0..).map(|(weight, at)| (weight / mean, at)).collect();
        let (mut light, mut heavy): (Vec<usize>, Vec<usize>) = (0..table.len()).partition(|&at| table[at].0 < 1.0);
        while let (Some(small), Some(&large)) = (light.pop(), heavy.last()) {
            table[small].1 = large as u32;
            table[large].0 -= 1.0 - table[small].0;
            if table[large].0 < 1.0 {
                light.extend(heavy.pop());
            }
        }
        Self(table)
    }

    fn next(&self, random: &mut Random) -> usize {
        let at = random.below(self.0.len() as u64) as usize;
        let (share, other) = self.0[at];
        if unit(random) < share { at } else { other as usize }
    }
}

fn batches(rows: usize, distinct: usize, skewed: bool) -> Vec<RecordBatch> {
    let mut random = Random(7);
    let mut words = HashSet::with_capacity(distinct);
    while words.len() < distinct {
        words.insert(word(&mut random));
    }
    let mut words: Vec<String> = words.into_iter().collect();
    words.sort_unstable();
    let mut weight = || {
        let (u, v) = (unit(&mut random), unit(&mut random));
        (VARIANCE.sqrt() * (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()).exp()
    };
    let weights: Vec<f64> = (0..distinct).map(|_| if skewed { weight() } else { 1.0 }).collect();
    let draw = Draw::new(&weights);
    let schema = Arc::new(Schema::new(vec![Field::new("word", DataType::Utf8View, false)]));
    (0..rows)
        .step_by(BATCH)
        .map(|from| {
            let mut builder = StringViewBuilder::with_capacity(BATCH);
            (from..rows.min(from + BATCH)).for_each(|_| builder.append_value(&words[draw.next(&mut random)]));
            RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(builder.finish()) as ArrayRef]).unwrap()
        })
        .collect()
}

/// Seconds that this process had a core, where the system tells.
fn busy() -> f64 {
    Clock::Machine.process_cpu().unwrap_or_default() as f64 / 1e9
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: usize| arguments.get(at).map_or(default, |text| text.parse().unwrap());
    let (rows, distinct, runs) = (number(0, 10_000_000), number(1, 70_000), number(3, 3));
    let skewed = arguments.get(2).is_none_or(|kind| kind == "skewed");
    let threads: Vec<usize> = match arguments.get(4..) {
        None | Some([]) => vec![1, 2],
        Some(given) => given.iter().map(|text| text.parse().unwrap()).collect(),
    };
    let batches = batches(rows, distinct, skewed);
    let folder = tempfile::tempdir_in(std::env::var("ENCODE_DIR").unwrap_or_else(|_| ".".into())).unwrap();
    let path = folder.path().join("words.plinth");
    let each = |seconds: f64| seconds * 1e9 / rows as f64;
    println!("{rows} rows of {distinct} words, {}; ns a row", if skewed { "skewed" } else { "uniform" });
    let mut totals: Vec<Vec<f64>> = vec![Vec::new(); threads.len()];
    for _ in 0..runs {
        for (&threads, all) in threads.iter().zip(&mut totals) {
            let options = WriterOptions { threads, replace: true, ..WriterOptions::default() };
            let (start, before) = (Instant::now(), busy());
            let mut writer = Writer::create(&path, &batches[0].schema(), options).unwrap();
            batches.iter().for_each(|batch| writer.write(batch).unwrap());
            let (written, busy_written) = (start.elapsed().as_secs_f64(), busy() - before);
            let (file, _) = writer.complete().unwrap();
            let (complete, busy_complete) = (start.elapsed().as_secs_f64(), busy() - before);
            let bytes = file.commit().unwrap();
            let synced = start.elapsed().as_secs_f64();
            println!(
                "  {threads} threads: rows in {:.1}, finished {:.1}, in all {:.1} (and synced {:.1}); busy {:.1} + {:.1} = {:.1}; {:.3} bits a row",
                each(written),
                each(complete - written),
                each(complete),
                each(synced),
                each(busy_written),
                each(busy_complete - busy_written),
                each(busy_complete),
                8.0 * bytes as f64 / rows as f64
            );
            all.push(complete);
        }
    }
    for (threads, mut totals) in threads.iter().zip(totals) {
        totals.sort_by(f64::total_cmp);
        println!("{threads} threads: least {:.1}, median {:.1}", each(totals[0]), each(totals[totals.len() / 2]));
    }
}
