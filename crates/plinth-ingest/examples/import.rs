//! Times an import: foreign files to batches alone, and to a Plinth file. A text file without an extension is taken as one
//! value a line.
//!
//! `cargo run --release -p plinth-ingest --example import -- FILE [RUNS] [THREADS]`, with `ENCODE_DIR` for where to write.
#![allow(clippy::unwrap_used, clippy::cast_precision_loss, reason = "an example that measures")]

use std::path::Path;
use std::time::Instant;

use plinth_format::{Writer, WriterOptions};
use plinth_ingest::{CsvOptions, FileFormat, SourceOptions, open};
use plinth_profile::Clock;

/// Seconds that this process had a core, where the system tells.
fn busy() -> f64 {
    Clock::Machine.process_cpu().unwrap_or_default() as f64 / 1e9
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: usize| arguments.get(at).map_or(default, |text| text.parse().unwrap());
    let (path, runs, threads) = (Path::new(&arguments[0]), number(1, 3), number(2, 1));
    let mut options = SourceOptions { threads, ..SourceOptions::default() };
    if path.extension().is_none() {
        options.format = Some(FileFormat::Csv);
        options.csv = CsvOptions { delimiter: Some(b','), header: Some(false), ..CsvOptions::default() };
    }
    let folder = tempfile::tempdir_in(std::env::var("ENCODE_DIR").unwrap_or_else(|_| ".".into())).unwrap();
    let target = folder.path().join("imported.plinth");
    for _ in 0..runs {
        for written in [false, true] {
            let (start, before) = (Instant::now(), busy());
            let mut source = open(&[path], &options).unwrap();
            let writer_options = WriterOptions { threads, replace: true, ..WriterOptions::default() };
            let mut writer = Writer::create(&target, source.schema(), writer_options).unwrap();
            let mut rows = 0;
            while let Some(batch) = source.next_batch().unwrap() {
                rows += batch.num_rows();
                if written {
                    writer.write(&batch).unwrap();
                }
            }
            let (file, _) = writer.complete().unwrap();
            let (seconds, busy) = (start.elapsed().as_secs_f64(), busy() - before);
            let bytes = file.commit().unwrap();
            let each = |seconds: f64| seconds * 1e9 / rows as f64;
            let what = if written { "written" } else { "read" };
            println!("{what}: {rows} rows, {:.1} ns a row, busy {:.1}; {bytes} bytes", each(seconds), each(busy));
        }
    }
}
