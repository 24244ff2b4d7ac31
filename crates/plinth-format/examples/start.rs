//! What it takes to begin a scan for one value: half as many distinct words as rows, indexed, each question a scan of its own.
//!
//!     cargo run --release -p plinth-format --example start -- [ROWS] [FOLDER]
#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "an example that measures"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use plinth_core::random::Random;
use plinth_encoding::expr::col;
use plinth_format::{Access, File, ScanBuilder, Writer, WriterOptions};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let rows: u64 = arguments.next().map_or(2_000_000, |text| text.parse().unwrap());
    let folder = arguments.next().unwrap_or_else(|| std::env::temp_dir().display().to_string());
    let path = std::path::Path::new(&folder).join("start.plinth");
    let mut random = Random(1);
    let words: Vec<String> = (0..rows).map(|row| format!("{:05x}{row}", random.below(1 << 20))).collect();
    let batch = |from: usize| {
        let here = &words[from..words.len().min(from + (1 << 17))];
        let text: ArrayRef = Arc::new(StringViewArray::from_iter_values(here));
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values((0_i64..).take(here.len())));
        RecordBatch::try_from_iter([("w", text), ("n", numbers)]).unwrap()
    };
    let options = WriterOptions { replace: true, index: vec!["w".to_owned()], ..WriterOptions::default() };
    let mut writer = Writer::create(&path, &batch(0).schema(), options).unwrap();
    // Twice the same, so that a dictionary pays.
    for _ in 0..2 {
        (0..words.len()).step_by(1 << 17).for_each(|from| writer.write(&batch(from)).unwrap());
    }
    writer.finish().unwrap();
    let file = File::open(&path).unwrap();
    println!("{} rows, {} row groups, {} bytes", file.num_rows(), file.row_groups().len(), file.byte_len());
    let asked: Vec<&str> = (0..20_000).map(|_| words[random.below(rows) as usize].as_str()).collect();
    let scan = |word: &str| file.scan().select(["n"]).filter(col("w").eq(word));
    type Ask<'a> = Box<dyn Fn(&str) -> usize + 'a>;
    let dictionary = file.column("w").unwrap().dictionary().unwrap();
    let build = |scan: ScanBuilder| scan.build().unwrap();
    let ways: [(&str, Ask<'_>); 6] = [
        ("value to code", Box::new(|word| dictionary.equals(word).unwrap().codes().len() as usize)),
        ("value to rows", Box::new(|word| dictionary.equals(word).unwrap().rows().unwrap().into_vec().unwrap().len())),
        ("scan, access path", Box::new(|word| usize::from(scan(word).access_path().unwrap().is_some()))),
        ("scan of nothing, build", Box::new(|word| build(scan(word).row_groups(0..0)).schema().fields().len())),
        ("scan, build", Box::new(|word| build(scan(word).access(Access::Postings)).schema().fields().len())),
        ("scan, rows", Box::new(|word| build(scan(word)).map(|batch| batch.unwrap().num_rows()).sum())),
    ];
    for (what, ask) in &ways {
        let mut times: Vec<f64> = asked
            .chunks(2000)
            .map(|asked| {
                let start = Instant::now();
                asked.iter().for_each(|word| {
                    black_box(ask(word));
                });
                start.elapsed().as_nanos() as f64 / asked.len() as f64 / 1e3
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!("{what:<24} {:>8.2} µs, median {:>8.2}", times[0], times[times.len() / 2]);
    }
    std::fs::remove_file(&path).unwrap();
}
