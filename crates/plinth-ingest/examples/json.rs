//! How fast JSON becomes columns: pairs of points as one document (`{"pairs":[{"x0":..,"y0":..,"x1":..,"y1":..},...]}`), or a
//! pair a line.
//!
//! `cargo run --release -p plinth-ingest --example json -- generate FILE PAIRS [SEED]` writes `FILE` (as lines if its name ends
//! in `.ndjson`); `... -- read FILE [THREADS] [RUNS]` reads it into four columns, checks nothing but their lengths and sums,
//! and prints GB/s.
#![allow(clippy::unwrap_used, clippy::cast_precision_loss, reason = "an example that measures")]

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_schema::{DataType, Field, Schema};
use plinth_ingest::{JsonOptions, SourceOptions, open};

/// SplitMix64 (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    /// A number from 0 to 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ word >> 31) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn generate(path: &Path, pairs: u64, seed: u64) {
    let lines = path.extension().is_some_and(|extension| extension == "ndjson");
    let mut random = Random(seed);
    let mut out = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    if !lines {
        out.write_all(b"{\"pairs\":[\n").unwrap();
    }
    for at in 0..pairs {
        let mut degrees = |most: f64| (random.next() * 2.0 - 1.0) * most;
        let [x0, y0, x1, y1] = [180.0, 90.0, 180.0, 90.0].map(&mut degrees);
        let end = if lines || at + 1 == pairs { "\n" } else { ",\n" };
        write!(out, r#"{{"x0":{x0:.16},"y0":{y0:.16},"x1":{x1:.16},"y1":{y1:.16}}}{end}"#).unwrap();
    }
    if !lines {
        out.write_all(b"]}\n").unwrap();
    }
    out.flush().unwrap();
}

fn read(path: &Path, threads: usize, runs: usize) {
    let bytes = std::fs::metadata(path).unwrap().len();
    let lines = path.extension().is_some_and(|extension| extension == "ndjson");
    let fields = ["x0", "y0", "x1", "y1"].map(|name| Field::new(name, DataType::Float64, true));
    let json = JsonOptions { root: (!lines).then(|| "pairs".to_owned()), ..JsonOptions::default() };
    let piece_bytes = std::env::var("PIECE").ok().map(|text| text.parse().unwrap());
    let schema = Some(Arc::new(Schema::new(fields.to_vec())));
    let options = SourceOptions { schema, json, threads, piece_bytes, ..SourceOptions::default() };
    let mut times = Vec::new();
    for _ in 0..runs {
        let start = Instant::now();
        let mut source = open(&[path], &options).unwrap();
        let (mut rows, mut sum) = (0, 0.0);
        while let Some(batch) = source.next_batch().unwrap() {
            rows += batch.num_rows();
            sum += batch.columns().iter().map(|c| c.as_primitive::<Float64Type>().values()[0]).sum::<f64>();
        }
        let seconds = start.elapsed().as_secs_f64();
        times.push(seconds);
        let (rate, each) = (bytes as f64 / seconds / 1e9, seconds * 1e9 / rows as f64);
        println!("{rows} rows, {bytes} bytes, {threads} threads: {rate:.3} GB/s, {each:.1} ns a row ({sum:.3})");
    }
    times.sort_by(f64::total_cmp);
    println!("best {:.3} GB/s, median {:.3} GB/s", bytes as f64 / times[0] / 1e9, bytes as f64 / times[runs / 2] / 1e9);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| arguments.get(at).map_or(default, |text| text.parse().unwrap());
    match arguments.first().map(String::as_str) {
        Some("generate") => generate(Path::new(&arguments[1]), number(2, 1_000_000), number(3, 1)),
        Some("read") => {
            let count = |at, default| usize::try_from(number(at, default)).unwrap();
            read(Path::new(&arguments[1]), count(2, 1), count(3, 5));
        }
        _ => eprintln!("generate FILE PAIRS [SEED] | read FILE [THREADS] [RUNS]"),
    }
}
