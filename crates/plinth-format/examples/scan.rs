//! Scans files without an engine above, one way of reading at a time, and says what it cost. `bench io` compares the ways.
//!
//!     cargo run --release -p plinth-format --example scan -- FILE... [--io uring] [--columns 4] [--without reuse,huge-pages]
//!
//! Prints one line of JSON. The digest is the same whichever way the files were read.
#![allow(clippy::unwrap_used, clippy::panic, reason = "an example")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use arrow_array::{Array, RecordBatch};
use arrow_buffer::Buffer;
use plinth_format::{File, OpenOptions, Scan};
use plinth_io::{Io, IoMode, IoOptions, MemoryBudget};

/// The program's.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[derive(Clone, Debug, Default)]
struct Args {
    files: Vec<PathBuf>,
    columns: Option<usize>,
    threads: usize,
    repeat: usize,
    memory: u64,
    /// Whether values are turned from the other byte order, as if they were stored so.
    swap: bool,
    /// Whether batches are looked at: one word of each cache line.
    touch: bool,
    io: IoOptions,
}

fn parse() -> Args {
    let mut args = Args { threads: 1, repeat: 1, memory: 1 << 30, ..Args::default() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap_or_else(|| panic!("{word} needs a value"));
        match word.as_str() {
            "--io" => {
                args.io.mode = match value().as_str() {
                    "auto" => IoMode::Auto,
                    "uring" => IoMode::Uring,
                    "direct" => IoMode::Direct,
                    "cached" => IoMode::Cached,
                    other => panic!("no way to read: {other}"),
                }
            }
            "--columns" => args.columns = Some(value().parse().unwrap()),
            "--threads" => args.threads = value().parse().unwrap(),
            "--repeat" => args.repeat = value().parse().unwrap(),
            "--memory" => args.memory = value().parse().unwrap(),
            "--request" => args.io.request_bytes = value().parse().unwrap(),
            "--depth" => args.io.depth = value().parse().unwrap(),
            "--swap" => args.swap = true,
            "--touch" => args.touch = true,
            "--without" => {
                for part in value().split(',').filter(|part| !part.is_empty()) {
                    match part {
                        "reuse" => args.io.fresh_buffers = true,
                        "registration" => args.io.registered = false,
                        "huge-pages" => args.io.huge_pages = false,
                        other => panic!("nothing to do without: {other}"),
                    }
                }
            }
            _ => args.files.push(word.into()),
        }
    }
    args
}

/// Adds up a word of each cache line.
fn touch(buffer: &Buffer) -> u64 {
    buffer.chunks_exact(64).map(|line| u64::from_le_bytes(line[..8].try_into().unwrap())).fold(0, u64::wrapping_add)
}

/// The bytes of values turned round, in memory of their own.
fn swapped(buffer: &Buffer, width: usize) -> Vec<u8> {
    match width {
        4 => buffer.chunks_exact(4).flat_map(|v| u32::from_be_bytes(v.try_into().unwrap()).to_le_bytes()).collect(),
        8 => buffer.chunks_exact(8).flat_map(|v| u64::from_be_bytes(v.try_into().unwrap()).to_le_bytes()).collect(),
        _ => Vec::new(),
    }
}

fn look(batch: &RecordBatch, args: &Args) -> u64 {
    let mut sum = batch.num_rows() as u64;
    for column in batch.columns() {
        let data = column.to_data();
        if args.touch {
            sum = data.buffers().iter().map(touch).fold(sum, u64::wrapping_add);
        }
        if args.swap {
            let width = column.data_type().primitive_width().unwrap_or(0);
            for buffer in data.buffers() {
                std::hint::black_box(swapped(buffer, width));
            }
        }
    }
    sum
}

/// Hundredths of a second of CPU that this process has used.
fn cpu() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    [11, 12].iter().map(|&i| fields.get(i).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0)).sum()
}

fn main() {
    let args = parse();
    let io = Io::new(&MemoryBudget::new(args.memory), args.io.clone());
    let open = OpenOptions { io: io.clone(), ..OpenOptions::default() };
    let table_bytes: u64 = args.files.iter().map(|file| file.metadata().unwrap().len()).sum();
    let (mut seconds, mut cpus, mut digests) = (Vec::new(), Vec::new(), Vec::new());
    let start = |path: &PathBuf| -> Scan {
        let file = File::open_with(path, &open).unwrap();
        let names: Vec<String> = file.schema().fields().iter().map(|field| field.name().clone()).collect();
        let names = names.iter().map(String::as_str).take(args.columns.unwrap_or(usize::MAX));
        file.scan().select(names).table_bytes(table_bytes).build().unwrap()
    };
    for _ in 0..args.repeat {
        let (begun, used, next) = (Instant::now(), cpu(), AtomicUsize::new(0));
        let work = || {
            let following = || args.files.get(next.fetch_add(1, Ordering::Relaxed)).map(start);
            let (mut sum, mut now) = (0_u64, following());
            while let Some(scan) = now {
                // Its first reads are under way while the rows of this one are looked at.
                let after = following();
                sum = scan.map(|batch| look(&batch.unwrap(), &args)).fold(sum, u64::wrapping_add);
                now = after;
            }
            sum
        };
        let digest = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..args.threads).map(|_| scope.spawn(work)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).fold(0, u64::wrapping_add)
        });
        seconds.push(begun.elapsed().as_secs_f64());
        cpus.push(cpu() - used);
        digests.push(digest);
    }
    digests.dedup();
    let counters = io.counters();
    println!(
        "{{\"seconds\": {seconds:?}, \"cpu_ticks\": {cpus:?}, \"digests\": {digests:?}, \"cached_bytes\": {}, \
         \"queued_bytes\": {}, \"direct_bytes\": {}, \"slabs\": {}, \"mapped_bytes\": {}, \"extents\": {}}}",
        counters.cached_bytes,
        counters.queued_bytes,
        counters.direct_bytes,
        counters.slabs,
        counters.mapped_bytes,
        counters.extents
    );
}
