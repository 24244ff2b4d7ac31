//! Sorted words in other dictionaries: bytes, and the time from a word to its rank and back.
//!
//!     cargo run --release -- WORDS        a file of sorted, distinct words, one a line
//!
//! Times are of 200,000 words in random order: the quickest and the median of seven runs.

use std::hint::black_box;
use std::time::Instant;

use fst::{IntoStreamer, Streamer};

fn time(what: &str, count: usize, mut run: impl FnMut() -> usize) {
    let mut times: Vec<f64> = (0..7)
        .map(|_| {
            let start = Instant::now();
            black_box(run());
            start.elapsed().as_nanos() as f64 / count as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("  {what} {:.1} ns, median {:.1}", times[0], times[times.len() / 2]);
}

fn main() {
    let path = std::env::args().nth(1).expect("a file of words");
    let text = std::fs::read_to_string(path).expect("a file of text");
    let words: Vec<&str> = text.lines().collect();
    assert!(words.is_sorted() && !words.is_empty(), "the words are not sorted, or there are none");
    let mut state = 88_172_645_463_325_252_u64;
    let asked: Vec<usize> = (0..200_000)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % words.len() as u64).expect("a place among the words")
        })
        .collect();

    let mut builder = fst::MapBuilder::memory();
    for (rank, word) in words.iter().enumerate() {
        builder.insert(word, rank as u64).expect("words in order");
    }
    let map = fst::Map::new(builder.into_inner().expect("a finished map")).expect("a map");
    println!("fst: {} bytes", map.as_fst().size());
    assert!(asked.iter().all(|&rank| map.get(words[rank]) == Some(rank as u64)));
    time("value to code", asked.len(), || asked.iter().filter_map(|&rank| map.get(words[rank])).count());
    let prefix = |rank: usize| {
        let start = &words[rank].as_bytes()[..words[rank].len().min(3)];
        let mut end = start.to_vec();
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        let first = |bound: &[u8]| map.range().ge(bound).into_stream().next().map_or(0, |(_, rank)| rank as usize);
        first(start) + first(&end)
    };
    time("prefix to interval", asked.len() / 20, || asked.iter().step_by(20).map(|&rank| prefix(rank)).sum());

    for bucket in [8, 16, 32] {
        let set = fcsd::Set::with_bucket_size(&words, bucket).expect("words in order");
        println!("fcsd, buckets of {bucket}: {} bytes", set.size_in_bytes());
        let mut locator = set.locator();
        assert!(asked.iter().all(|&rank| locator.run(words[rank]) == Some(rank)));
        time("value to code", asked.len(), || asked.iter().filter_map(|&rank| locator.run(words[rank])).count());
        let mut decoder = set.decoder();
        assert!(asked.iter().all(|&rank| decoder.run(rank) == words[rank].as_bytes()));
        time("code to value", asked.len(), || asked.iter().map(|&rank| decoder.run(rank).len()).sum());
    }
}
