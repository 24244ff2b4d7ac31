//! The engine: same bytes whichever way, nothing held afterwards.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_buffer::Buffer;
use plinth_core::random::Random;
use plinth_io::sim::settled;
use plinth_io::{Io, IoError, IoMode, IoOptions, LocalFile, MemoryBudget, Priority, Request, Source};

pub(crate) const MODES: [IoMode; 4] = [IoMode::Auto, IoMode::Uring, IoMode::Direct, IoMode::Cached];

/// Bytes that tell where they are.
pub(crate) fn contents(len: usize) -> Vec<u8> {
    (0..len).map(|i| u8::try_from((i ^ i >> 8 ^ i >> 16) & 0xff).unwrap()).collect()
}

pub(crate) fn file(dir: &Path, len: usize) -> (PathBuf, Vec<u8>) {
    let (path, bytes) = (dir.join(len.to_string()), contents(len));
    std::fs::write(&path, &bytes).unwrap();
    // Direct reads see what is on the device.
    std::fs::File::open(&path).unwrap().sync_all().unwrap();
    (path, bytes)
}

pub(crate) fn io(mode: IoMode) -> Io {
    // Small requests, so that reads are several.
    Io::new(
        &MemoryBudget::new(256 << 20),
        IoOptions { mode, request_bytes: 64 << 10, depth: 7, ..IoOptions::default() },
    )
}

pub(crate) fn read(source: &LocalFile, ranges: &[Range<u64>]) -> Result<Vec<Buffer>, IoError> {
    source.start(&Request { ranges, priority: Priority::Now, query_bytes: u64::MAX })?.unwrap().wait()
}

pub(crate) fn at(bytes: &[u8], range: &Range<u64>) -> Vec<u8> {
    bytes[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()].to_vec()
}

#[test]
fn every_way_reads_the_same_bytes_aligned_as_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random(1);
    for len in [1, 4095, 4096, 300_001, 3 << 20] {
        let (path, bytes) = file(dir.path(), len);
        for mode in MODES {
            let io = io(mode);
            let source = LocalFile::open_with(&path, &io).unwrap();
            for _ in 0..10 {
                let ranges: Vec<Range<u64>> = (0..random.below(12))
                    .map(|_| {
                        let start = random.below(len as u64);
                        start..start + random.below(len as u64 - start + 1)
                    })
                    .chain([0..len as u64, len as u64..len as u64])
                    .collect();
                let buffers = read(&source, &ranges).unwrap();
                assert_eq!(buffers.len(), ranges.len());
                for (range, buffer) in ranges.iter().zip(&buffers) {
                    assert!(buffer.as_slice() == at(&bytes, range), "{mode:?} {range:?} of {len}");
                    assert_eq!(buffer.as_ptr() as u64 % 64, range.start % 64, "{mode:?} {range:?} of {len}");
                }
            }
            settled(&io);
        }
    }
}

#[test]
fn many_readers_share_an_engine_and_its_memory() {
    let dir = tempfile::tempdir().unwrap();
    let files: Vec<(PathBuf, Vec<u8>)> = (1..5).map(|i| file(dir.path(), i * 1_000_003)).collect();
    for mode in MODES {
        let io = io(mode);
        std::thread::scope(|scope| {
            for seed in 0..8 {
                let (io, files) = (&io, &files);
                scope.spawn(move || {
                    let mut random = Random(seed);
                    let mut kept = Vec::new();
                    for _ in 0..60 {
                        let (path, bytes) = &files[random.index(4)];
                        let source = LocalFile::open_with(path, io).unwrap();
                        let start = random.below(bytes.len() as u64 - 1);
                        let range = start..(start + 1 + random.below(200_000)).min(bytes.len() as u64);
                        let ranges = [range.clone()];
                        let request = Request { ranges: &ranges, priority: Priority::Now, query_bytes: u64::MAX };
                        let reading = source.start(&request).unwrap().unwrap();
                        // Some are not waited for.
                        if random.below(4) == 0 {
                            continue;
                        }
                        let buffer = reading.wait().unwrap().remove(0);
                        assert!(buffer.as_slice() == at(bytes, &range));
                        kept.push((buffer, bytes, range));
                        if kept.len() > 5 {
                            kept.remove(0);
                        }
                    }
                    for (buffer, bytes, range) in kept {
                        assert!(buffer.as_slice() == at(bytes, &range), "not written to again while it is held");
                    }
                });
            }
        });
        let counters = settled(&io);
        assert!(counters.mapped_bytes <= 64 << 20, "{counters:?}");
    }
}

#[test]
fn reading_ahead_stops_where_memory_ends_and_what_is_needed_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bytes) = file(dir.path(), 8 << 20);
    let budget = MemoryBudget::new(16 << 20);
    let io = Io::new(&budget, IoOptions::default());
    let source = LocalFile::open_with(&path, &io).unwrap();
    let ahead = Request { ranges: &[0..1 << 20], priority: Priority::Ahead, query_bytes: 0 };
    let mut under_way = Vec::new();
    while let Some(reading) = source.start(&ahead).unwrap() {
        under_way.push(reading);
        assert!(under_way.len() <= 4, "a quarter of the budget");
    }
    let needed = Request { ranges: &[0..8 << 20], priority: Priority::Now, query_bytes: 0 };
    let buffer = source.start(&needed).unwrap().unwrap().wait().unwrap().remove(0);
    assert!(buffer.as_slice() == bytes);
    drop((buffer, under_way));
    // A budget that needs the memory gets it back.
    let all = budget.reserve("everything else", budget.left() + io.counters().mapped_bytes - (1 << 20));
    assert!(all.is_ok(), "{:?} {:?}", all, io.counters());
    assert!(budget.used() <= budget.limit());
}

#[test]
fn a_range_beyond_the_end_or_a_file_cut_short_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    for mode in MODES {
        let (path, _) = file(dir.path(), 100_000);
        let io = io(mode);
        let source = LocalFile::open_with(&path, &io).unwrap();
        assert!(matches!(read(&source, &[99_999..100_001]), Err(IoError::PastEnd { len: 100_000, .. })));
        // While it is open.
        std::fs::File::options().write(true).open(&path).unwrap().set_len(50_000).unwrap();
        let error = read(&source, &[0..10, 40_000..60_000]).unwrap_err();
        assert!(matches!(error, IoError::PastEnd { len: 50_000, offset: 40_000, .. }), "{mode:?} {error:?}");
        assert_eq!(read(&source, &[0..10]).unwrap()[0].len(), 10);
        drop(source);
        settled(&io);
    }
}

#[test]
fn an_engine_ends_with_its_last_user() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bytes) = file(dir.path(), 1 << 20);
    for mode in MODES {
        let budget = MemoryBudget::new(64 << 20);
        let io = Io::new(&budget, IoOptions { mode, ..IoOptions::default() });
        let source = LocalFile::open_with(&path, &io).unwrap();
        let buffer = read(&source, &[5..1 << 20]).unwrap().remove(0);
        drop(io);
        drop(source);
        assert_eq!(budget.used(), 0);
        assert!(buffer.as_slice() == &bytes[5..], "what was read outlives the engine");
        assert_eq!(Arc::strong_count(&budget), 1);
    }
}
