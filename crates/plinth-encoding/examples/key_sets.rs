//! Blocks of packed integers asked for the keys of a join: nanoseconds a row on one core, with the unpacking, beside a look-up of each decoded
//! value in a hash table: `cargo run --release -p plinth-encoding --example key_sets`.
#![allow(clippy::unwrap_used, clippy::cast_precision_loss, clippy::cast_possible_wrap)]

use std::collections::HashSet;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use arrow_buffer::Buffer;
use plinth_core::random::Random;
use plinth_encoding::key_set::KeySet;
use plinth_encoding::{Block, Column, EncodeOptions, Physical, ValueSet, Values, encode};

const ROWS: usize = 8192;
const BLOCKS: usize = 32;
const INT64: Physical = Physical::Int { width: 8, signed: true };

/// The median of some times, of a row.
fn median(mut run: impl FnMut() -> usize) -> (f64, usize) {
    let mut times = Vec::new();
    let mut found = 0;
    for _ in 0..31 {
        let start = Instant::now();
        found = black_box(run());
        times.push(start.elapsed().as_nanos() as f64);
    }
    times.sort_by(f64::total_cmp);
    (times[15] / (ROWS * BLOCKS) as f64, found)
}

fn main() {
    println!("{:>11} {:>10} {:<7} {:>9} {:>9} {:>9}", "range", "keys", "form", "passed", "set, ns", "hash, ns");
    let mut random = Random(3);
    for range in [1_u64 << 8, 1 << 16, 1 << 23, 1 << 32, 1 << 50] {
        let columns: Vec<Vec<i64>> =
            (0..BLOCKS).map(|_| (0..ROWS).map(|_| random.below(range) as i64).collect()).collect();
        let blocks: Vec<Block> = columns
            .iter()
            .map(|values| {
                let values = Values::Fixed(Buffer::from_vec(values.clone()));
                let (column, mut out) = (Column { len: ROWS, values, nulls: None }, Vec::new());
                encode(INT64, &column, &EncodeOptions::default(), &mut out).unwrap();
                Block::open(INT64, &Buffer::from(out.as_slice()), ROWS).unwrap()
            })
            .collect();
        for keys in [200_u64, 20_000, 1_000_000].into_iter().filter(|keys| *keys < range) {
            let keys: Vec<i64> = (0..keys).map(|_| random.below(range) as i64).collect();
            let set = Arc::new(KeySet::of(&keys).unwrap());
            let table: HashSet<i64, foldhash::fast::FixedState> = keys.iter().copied().collect();
            let asked = ValueSet::of_keys(INT64, &set).unwrap();
            let (own, passed) = median(|| {
                let answers = blocks.iter().map(|block| block.evaluate(&asked).unwrap());
                answers.map(|answers| answers.map_or(0, |answers| answers.is_true.count_set_bits())).sum()
            });
            let (hashed, members) = median(|| {
                let decoded = blocks.iter().map(|block| block.decode(None).unwrap());
                let members = |column: Column| {
                    let Values::Fixed(bytes) = &column.values else { return 0 };
                    bytes.typed_data::<i64>().iter().filter(|value| table.contains(value)).count()
                };
                decoded.map(members).sum()
            });
            assert!(if set.is_exact() { passed == members } else { passed >= members });
            let (form, share) =
                (if set.is_exact() { "bitmap" } else { "Bloom" }, passed as f64 / (ROWS * BLOCKS) as f64);
            println!("{range:>11} {:>10} {form:<7} {share:>9.6} {own:>9.2} {hashed:>9.2}", keys.len());
        }
    }
}
