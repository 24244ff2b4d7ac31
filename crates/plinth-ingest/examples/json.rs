//! The reference document, `{"pairs":[{"x0":..,"y0":..,"x1":..,"y1":..},...]}`, made and read: pairs of points on a sphere, in
//! degrees.
//!
//! `cargo run --release -p plinth-ingest --example json -- generate FILE PAIRS [SEED] [uniform|clustered]` writes `FILE` (a
//! pair a line if its name ends in `.ndjson`) and beside it `FILE.expected`: the mean of the great-circle distances and a
//! digest of each column, told from the numbers as they are spelled.
//!
//! `... -- read FILE [THREADS] [RUNS]` reads it into four columns and adds them up; prints a line of JSON with the same
//! figures and the seconds of each run. The mean and the digests are of one more run that no time is taken of.
#![allow(clippy::unwrap_used, clippy::cast_precision_loss, reason = "an example that measures")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_schema::{DataType, Field, Schema};
use plinth_core::random::Random;
use plinth_ingest::{JsonOptions, SourceOptions, open};

const COLUMNS: [&str; 4] = ["x0", "y0", "x1", "y1"];

/// Kilometres.
const RADIUS: f64 = 6372.8;

/// A number from -1 to 1.
fn signed(random: &mut Random) -> f64 {
    random.fraction() * 2.0 - 1.0
}

/// Where pairs are: anywhere, or one point of each near one of a few places and the other near another.
struct Places {
    random: Random,
    clusters: Vec<[f64; 2]>,
}

impl Places {
    fn new(seed: u64, clustered: bool) -> Self {
        let mut random = Random(seed);
        let places = if clustered { 64 } else { 0 };
        let clusters = (0..places).map(|_| [signed(&mut random) * 150.0, signed(&mut random) * 70.0]).collect();
        Self { random, clusters }
    }

    fn point(&mut self) -> [f64; 2] {
        let (x, y) = (signed(&mut self.random), signed(&mut self.random));
        match self.clusters.len() as u64 {
            0 => [x * 180.0, y * 90.0],
            places => {
                let [at_x, at_y] = self.clusters[usize::try_from(self.random.next_u64() % places).unwrap()];
                [at_x + x * 20.0, at_y + y * 15.0]
            }
        }
    }
}

/// What columns hold, whichever reader made them.
#[derive(Default)]
struct Told {
    rows: u64,
    /// The sum of all distances and what its last bits lack (Neumaier).
    distance: [f64; 2],
    /// Per column the sum of each value's bits times twice its place plus one.
    digests: [u64; 4],
}

impl Told {
    fn add(&mut self, pair: [f64; 4]) {
        for (digest, value) in self.digests.iter_mut().zip(pair) {
            *digest = digest.wrapping_add(value.to_bits().wrapping_mul(2 * self.rows + 1));
        }
        self.rows += 1;
        let ([sum, rest], next) = (self.distance, haversine(pair));
        let total = sum + next;
        let lost = if sum.abs() >= next.abs() { (sum - total) + next } else { (next - total) + sum };
        self.distance = [total, rest + lost];
    }

    fn batch(&mut self, batch: &RecordBatch) {
        let columns: [&[f64]; 4] = std::array::from_fn(|at| values(batch, at));
        (0..batch.num_rows()).for_each(|row| self.add(columns.map(|column| column[row])));
    }

    fn json(&self) -> String {
        let mean = (self.distance[0] + self.distance[1]) / self.rows as f64;
        format!("\"rows\":{},\"mean\":{mean:?},\"digests\":{:?}", self.rows, self.digests)
    }
}

fn haversine([x0, y0, x1, y1]: [f64; 4]) -> f64 {
    let half = |from: f64, to: f64| ((to - from).to_radians() / 2.0).sin();
    let square = half(y0, y1).powi(2) + y0.to_radians().cos() * y1.to_radians().cos() * half(x0, x1).powi(2);
    2.0 * RADIUS * square.min(1.0).sqrt().asin()
}

fn values(batch: &RecordBatch, at: usize) -> &[f64] {
    batch.column(at).as_primitive::<Float64Type>().values()
}

fn is_lines(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "ndjson")
}

fn generate(path: &Path, pairs: u64, seed: u64, clustered: bool) {
    let lines = is_lines(path);
    let (mut places, mut told) = (Places::new(seed, clustered), Told::default());
    let mut out = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    if !lines {
        out.write_all(b"{\"pairs\":[\n").unwrap();
    }
    for at in 0..pairs {
        let ([x0, y0], [x1, y1]) = (places.point(), places.point());
        let spelled = [x0, y0, x1, y1].map(|value| format!("{value:.16}"));
        let end = if lines || at + 1 == pairs { "\n" } else { ",\n" };
        let [x0, y0, x1, y1] = &spelled;
        write!(out, r#"{{"x0":{x0},"y0":{y0},"x1":{x1},"y1":{y1}}}{end}"#).unwrap();
        told.add(spelled.map(|spelled| spelled.parse().unwrap()));
    }
    if !lines {
        out.write_all(b"]}\n").unwrap();
    }
    out.flush().unwrap();
    let mut beside = PathBuf::from(path).into_os_string();
    beside.push(".expected");
    std::fs::write(beside, format!("{{{}}}\n", told.json())).unwrap();
}

fn read(path: &Path, threads: usize, runs: usize) {
    let fields = COLUMNS.map(|name| Field::new(name, DataType::Float64, true));
    let json = JsonOptions { root: (!is_lines(path)).then(|| "pairs".to_owned()), ..JsonOptions::default() };
    let chunk_bytes = std::env::var("PIECE_BYTES").ok().map(|text| text.parse().unwrap());
    let schema = Some(Arc::new(Schema::new(fields.to_vec())));
    let options = SourceOptions { schema, json, threads, chunk_bytes, ..SourceOptions::default() };
    let (mut seconds, mut told, mut means) = (Vec::new(), Told::default(), Vec::new());
    for run in 0..=runs {
        let (start, mut rows, mut sums) = (Instant::now(), 0, [0.0; 4]);
        let mut source = open(&[path], &options).unwrap();
        while let Some(batch) = source.next_batch().unwrap() {
            rows += batch.num_rows();
            for (at, sum) in sums.iter_mut().enumerate() {
                *sum += values(&batch, at).iter().sum::<f64>();
            }
            if run == 0 {
                told.batch(&batch);
            }
        }
        if run > 0 {
            seconds.push(start.elapsed().as_secs_f64());
        }
        means = sums.map(|sum| sum / rows as f64).to_vec();
    }
    println!("{{{},\"means\":{means:?},\"seconds\":{seconds:?}}}", told.json());
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| arguments.get(at).map_or(default, |text| text.parse().unwrap());
    match arguments.first().map(String::as_str) {
        Some("generate") => {
            let clustered = arguments.get(4).is_some_and(|how| how == "clustered");
            generate(Path::new(&arguments[1]), number(2, 1_000_000), number(3, 1), clustered);
        }
        Some("read") => {
            let count = |at, default| usize::try_from(number(at, default)).unwrap();
            read(Path::new(&arguments[1]), count(2, 1), count(3, 5));
        }
        _ => eprintln!("generate FILE PAIRS [SEED] [uniform|clustered] | read FILE [THREADS] [RUNS]"),
    }
}
