//! The reference document of the suite `json`, read into four columns by other parsers.
//!
//!     cargo run --release -- WAY FILE [RUNS]
//!
//! `WAY` is `arrow-json` (of a file of lines), `serde-json` (streamed) or `simdjson` (of a document). What is printed is what the example
//! `json` of plinth-ingest prints of its runs, but for the mean of the distances.

use std::ffi::CString;
use std::fs::File;
use std::io::BufReader;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_schema::{DataType, Field, Schema};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

const NAMES: [&str; 4] = ["x0", "y0", "x1", "y1"];

/// Bytes read at a time.
const BUFFER: usize = 1 << 20;

type Columns = [Vec<f64>; 4];
type Failure = Box<dyn std::error::Error>;

#[derive(serde::Deserialize)]
struct Pair {
    x0: f64,
    y0: f64,
    x1: f64,
    y1: f64,
}

fn push(columns: &mut Columns, pair: Pair) {
    for (column, value) in columns.iter_mut().zip([pair.x0, pair.y0, pair.x1, pair.y1]) {
        column.push(value);
    }
}

/// The array of pairs, pair by pair.
struct Pairs<'a>(&'a mut Columns);

impl<'de> DeserializeSeed<'de> for Pairs<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Pairs<'_> {
    type Value = ();
    fn expecting(&self, to: &mut std::fmt::Formatter) -> std::fmt::Result {
        to.write_str("pairs")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut pairs: A) -> Result<(), A::Error> {
        while let Some(pair) = pairs.next_element()? {
            push(self.0, pair);
        }
        Ok(())
    }
}

/// The object around them.
struct Document<'a>(&'a mut Columns);

impl<'de> Visitor<'de> for Document<'_> {
    type Value = ();
    fn expecting(&self, to: &mut std::fmt::Formatter) -> std::fmt::Result {
        to.write_str("an object of pairs")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(key) = members.next_key::<String>()? {
            match key.as_str() {
                "pairs" => members.next_value_seed(Pairs(self.0))?,
                _ => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

fn by_serde_json(path: &str, columns: &mut Columns) -> Result<(), Failure> {
    let reader = BufReader::with_capacity(BUFFER, File::open(path)?);
    if path.ends_with(".ndjson") {
        for pair in serde_json::Deserializer::from_reader(reader).into_iter::<Pair>() {
            push(columns, pair?);
        }
    } else {
        serde_json::Deserializer::from_reader(reader).deserialize_map(Document(columns))?;
    }
    Ok(())
}

/// Batches are added up as they come and are not kept, as the example `json` does.
fn by_arrow_json(path: &str, each: &mut dyn FnMut([&[f64]; 4])) -> Result<(), Failure> {
    let schema = Arc::new(Schema::new(NAMES.map(|name| Field::new(name, DataType::Float64, true)).to_vec()));
    let file = BufReader::with_capacity(BUFFER, File::open(path)?);
    for batch in arrow_json::ReaderBuilder::new(schema).with_batch_size(8192).build(file)? {
        let batch = batch?;
        each(std::array::from_fn(|at| batch.column(at).as_primitive::<Float64Type>().values().as_ref()));
    }
    Ok(())
}

unsafe extern "C" {
    fn ondemand_pairs(path: *const std::ffi::c_char, columns: *const *mut f64, room: usize) -> i64;
}

/// How many pairs there are; the columns are longer.
fn by_simdjson(path: &str, columns: &mut Columns, room: usize) -> Result<usize, Failure> {
    let to: [*mut f64; 4] = std::array::from_fn(|at| {
        columns[at].resize(room, 0.0);
        columns[at].as_mut_ptr()
    });
    let path = CString::new(path)?;
    // SAFETY: the columns have so much room, and no other thread touches them.
    let rows = unsafe { ondemand_pairs(path.as_ptr(), to.as_ptr(), room) };
    usize::try_from(rows).map_err(|_| "no document of so many pairs".into())
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [way, path, ..] = arguments.as_slice() else { return Err("WAY FILE [RUNS]".into()) };
    let runs: usize = arguments.get(2).map_or(Ok(5), |runs| runs.parse())?;
    // No pair is shorter.
    let room = usize::try_from(std::fs::metadata(path)?.len())? / 64 + 1;
    // Its memory is used again.
    let mut columns = Columns::default();
    let (mut seconds, mut digests, mut rows, mut sums) = (Vec::new(), [0_u64; 4], 0, [0.0; 4]);
    for run in 0..=runs {
        let start = Instant::now();
        (rows, sums) = (0_usize, [0.0; 4]);
        let mut each = |columns: [&[f64]; 4]| {
            for (at, column) in columns.into_iter().enumerate() {
                sums[at] += column.iter().sum::<f64>();
                for (row, value) in column.iter().enumerate().filter(|_| run == 0) {
                    let place = 2 * (rows + row) as u64 + 1;
                    digests[at] = digests[at].wrapping_add(value.to_bits().wrapping_mul(place));
                }
            }
            rows += columns[0].len();
        };
        match way.as_str() {
            "arrow-json" => by_arrow_json(path, &mut each)?,
            "serde-json" => {
                columns.iter_mut().for_each(Vec::clear);
                by_serde_json(path, &mut columns)?;
                each(std::array::from_fn(|at| columns[at].as_slice()));
            }
            "simdjson" => {
                let rows = by_simdjson(path, &mut columns, room)?;
                each(std::array::from_fn(|at| &columns[at][..rows]));
            }
            _ => return Err("arrow-json, serde-json or simdjson".into()),
        }
        if run > 0 {
            seconds.push(start.elapsed().as_secs_f64());
        }
    }
    let means = sums.map(|sum| sum / rows as f64);
    println!("{{\"rows\":{rows},\"digests\":{digests:?},\"means\":{means:?},\"seconds\":{seconds:?}}}");
    Ok(())
}
