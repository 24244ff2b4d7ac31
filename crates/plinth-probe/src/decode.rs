//! How fast one thread decodes, by encoding, on a small sample of values that each suits.

use std::hint::black_box;
use std::time::{Duration, Instant};

use arrow_array::{Array, StringViewArray};
use arrow_buffer::{ArrowNativeType, Buffer};
use plinth_core::random::Random;
use plinth_core::units;
use plinth_encoding::{Block, Column, Effort, EncodeOptions, EncodingError, Physical, Values, encode};

/// Rows of a block.
const ROWS: usize = 8_192;

/// How fast blocks of one encoding are decoded.
#[derive(Clone, Debug)]
pub struct DecodeSpeed {
    /// The outermost encoding.
    pub encoding: &'static str,
    /// How its parts are encoded.
    pub description: String,
    /// Bytes of values a second.
    pub bytes: f64,
    /// Values a second.
    pub values: f64,
    /// How much smaller encoded values are.
    pub ratio: f64,
}

impl DecodeSpeed {
    /// Whole bytes of values a second.
    pub fn rate(&self) -> u64 {
        units::whole(self.bytes)
    }
}

const INT: Physical = Physical::Int { width: 8, signed: true };

/// Measures each encoding for its share of `time`. An encoding the samples don't lead to is left out.
///
/// # Errors
/// If a sample can't be encoded, or decoded again.
pub fn decode_speeds(time: Duration) -> Result<Vec<DecodeSpeed>, EncodingError> {
    let samples = samples();
    let share = time / u32::try_from(samples.len()).unwrap_or(1);
    let mut speeds: Vec<DecodeSpeed> = Vec::new();
    for (physical, column, effort) in samples {
        let speed = speed(physical, &column, effort, share)?;
        if !speeds.iter().any(|known| known.encoding == speed.encoding) {
            speeds.push(speed);
        }
    }
    Ok(speeds)
}

fn speed(physical: Physical, column: &Column, effort: Effort, time: Duration) -> Result<DecodeSpeed, EncodingError> {
    let mut bytes = Vec::new();
    let encoded = encode(physical, column, &EncodeOptions { effort }, &mut bytes)?;
    // Copied to where Arrow's alignment holds, as blocks in a file are.
    let bytes = Buffer::from(bytes.as_slice());
    let started = Instant::now();
    let mut rounds = 0;
    while rounds < 2 || started.elapsed() < time {
        let block = Block::open(physical, &bytes, column.len)?;
        black_box(block.decode(None)?);
        rounds += 1;
    }
    let rounds = f64::from(rounds) / started.elapsed().as_secs_f64().max(1e-9);
    let (size, stored) = (units::to_f64(column.bytes()), units::to_f64(bytes.len() as u64));
    Ok(DecodeSpeed {
        encoding: encoded.encoding.name(),
        description: Block::open(physical, &bytes, column.len)?.describe(),
        bytes: size * rounds,
        values: units::to_f64(column.len as u64) * rounds,
        ratio: size / stored.max(1.0),
    })
}

fn fixed<T: ArrowNativeType>(values: impl Iterator<Item = T>) -> Column {
    let values: Vec<T> = values.take(ROWS).collect();
    Column { len: values.len(), values: Values::Fixed(Buffer::from_vec(values)), nulls: None }
}

fn texts(values: impl Iterator<Item = String>) -> Column {
    let array = StringViewArray::from_iter_values(values.take(ROWS));
    let values = Values::Views { views: array.views().clone(), buffers: array.data_buffers().to_vec() };
    Column { len: array.len(), values, nulls: None }
}

/// Columns as tables have them, one for each encoding.
fn samples() -> Vec<(Physical, Column, Effort)> {
    let mut random = Random(1);
    let noise: Vec<u64> = std::iter::repeat_with(|| random.next_u64()).take(ROWS).collect();
    let below = |end: u64| noise.iter().map(move |noise| i64::try_from((noise >> 16) % end).unwrap_or(0));
    let counted = || (0_i64..).zip(below(1 << 20));
    let double = Physical::Float { width: 8 };
    let text = Physical::Bytes { utf8: true };
    let decimal = |cents: i64| f64::from(i32::try_from(cents).unwrap_or(0)) / 100.0;
    let words = ["scan", "block", "vector", "column", "ring", "slab", "zone", "page"];
    let word = |n: i64| words[usize::try_from(n).unwrap_or(0) % words.len()];
    let sentence = |n: i64| (0..12).map(|i| word(n >> (i + i % 3))).collect::<Vec<_>>().join(" ");
    vec![
        (INT, fixed(noise.iter().map(|noise| noise.cast_signed())), Effort::Balanced),
        (INT, fixed(below(1_000)), Effort::Balanced),
        (INT, fixed(counted().map(|(i, noise)| 1_700_000_000_000 + 250 * i + noise % 8)), Effort::Balanced),
        (INT, fixed(counted().map(|(i, _)| i / 60 % 7 * 1_000_003)), Effort::Balanced),
        (
            INT,
            fixed(noise.iter().map(|&noise| if noise % 1_000 == 0 { noise.cast_signed() } else { 7 })),
            Effort::Balanced,
        ),
        (INT, fixed(below(1 << 40).map(|n| if n % 40 == 0 { n } else { n % 16 })), Effort::Balanced),
        (double, fixed(below(1_000_000).map(decimal)), Effort::Balanced),
        (INT, fixed(below(1 << 20).map(|n| n * n % 1_000 * 1_000 + n % 10)), Effort::Compact),
        (Physical::Wide { width: 16 }, fixed(below(1 << 30).map(i128::from)), Effort::Balanced),
        (text, texts(below(200).map(|n| format!("{} {n}", word(n)))), Effort::Balanced),
        (text, texts(below(1 << 40).map(|n| format!("https://example.com/{}/{n}", word(n)))), Effort::Balanced),
        (text, texts(below(1 << 40).map(sentence)), Effort::Compact),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_samples_lead_to_most_encodings() {
        let speeds = decode_speeds(Duration::ZERO).unwrap();
        let names: Vec<&str> = speeds.iter().map(|speed| speed.encoding).collect();
        for name in ["plain", "bit-packed", "delta", "run-length", "sparse", "patched", "alp", "dictionary", "fsst"] {
            assert!(names.contains(&name), "{name} in {names:?}");
        }
        assert!(names.len() >= 11, "{names:?}");
        assert!(speeds.iter().all(|speed| speed.rate() > 0 && speed.values > 0.0), "{speeds:?}");
    }
}
