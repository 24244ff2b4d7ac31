//! Whichever way a file is read, a scan gives the same; values that need no decoding are not copied.

use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringViewArray};
use arrow_buffer::Buffer;
use plinth_encoding::Effort;
use plinth_encoding::expr::col;
use plinth_format::{File, OpenOptions, Scan, WriterOptions};
use plinth_io::sim::settled;
use plinth_io::{Io, IoMode, IoOptions, LocalFile, MemoryBudget, Reading, Request, Source};

use crate::data::{assert_same, read_all, small, wide_batch, write};

const MODES: [IoMode; 4] = [IoMode::Auto, IoMode::Uring, IoMode::Direct, IoMode::Cached];

fn io(mode: IoMode, memory: u64) -> Io {
    Io::new(&MemoryBudget::new(memory), IoOptions { mode, request_bytes: 64 << 10, ..IoOptions::default() })
}

/// Wakes a thread.
struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn poll_all(mut scan: Scan) -> Vec<RecordBatch> {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let context = Context::from_waker(&waker);
    let mut batches = Vec::new();
    loop {
        match scan.poll_batch(context.waker()) {
            Poll::Ready(Some(batch)) => batches.push(batch.unwrap()),
            Poll::Ready(None) => return batches,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn every_way_of_reading_and_asking_gives_the_same_rows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.plinth");
    let written = write(&path, &wide_batch(5, 6_000, 10), WriterOptions { row_group_rows: 2_500, ..small() });
    std::fs::File::open(&path).unwrap().sync_all().unwrap();
    let expected = read_all(written.scan().build().unwrap());
    for mode in MODES {
        // With little memory there is hardly any look-ahead.
        for memory in [1 << 20, 64 << 20] {
            let io = io(mode, memory);
            let file = File::open_with(&path, &OpenOptions { io: io.clone(), ..OpenOptions::default() }).unwrap();
            assert_same(&read_all(file.scan().build().unwrap()), &expected);
            let batches = poll_all(file.scan().build().unwrap());
            assert_same(&arrow_select::concat::concat_batches(&batches[0].schema(), &batches).unwrap(), &expected);
            // Dropped at any point.
            for batches in 0..4 {
                let mut scan = file.scan().batch_rows(700).build().unwrap();
                (0..batches).for_each(|_| drop(scan.next().unwrap().unwrap()));
            }
            let limited = read_all(file.scan().limit(777).build().unwrap());
            assert_same(&limited, &expected.slice(0, 777));
            drop(batches);
            settled(&io);
        }
    }
}

/// A table whose values lie in the file as they do in memory.
fn plain(path: &std::path::Path, rows: i64) -> File {
    let ints: ArrayRef = Arc::new(Int64Array::from_iter_values((0..rows).map(|i| i * 7919 % 104_729)));
    let floats: ArrayRef = Arc::new(Float64Array::from_iter((0..rows).map(|i| (i % 5 > 0).then_some(i as f64 / 3.0))));
    let text: ArrayRef =
        Arc::new(StringViewArray::from_iter_values((0..rows).map(|i| format!("a value of some length, {i}"))));
    let batch = RecordBatch::try_from_iter([("i", ints), ("f", floats), ("s", text)]).unwrap();
    let file = write(path, &batch, WriterOptions { effort: Effort::Plain, replace: true, ..WriterOptions::default() });
    std::fs::File::open(path).unwrap().sync_all().unwrap();
    file
}

/// Remembers where the bytes it read lie.
#[derive(Debug)]
struct Watched(LocalFile, Mutex<Vec<Range<usize>>>);

impl Source for Watched {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn byte_len(&self) -> u64 {
        self.0.byte_len()
    }

    fn read(&self, ranges: &[Range<u64>]) -> plinth_io::Result<Vec<Buffer>> {
        self.0.read(ranges)
    }

    fn start(&self, request: &Request<'_>) -> plinth_io::Result<Option<Reading>> {
        let Some(reading) = self.0.start(request)? else { return Ok(None) };
        let buffers = reading.wait()?;
        let memory = |buffer: &Buffer| buffer.as_ptr() as usize..buffer.as_ptr() as usize + buffer.len();
        self.1.lock().unwrap().extend(buffers.iter().map(memory));
        Ok(Some(Reading::ready(buffers)))
    }

    fn io(&self) -> Option<&Io> {
        self.0.io()
    }
}

#[test]
fn values_that_need_no_decoding_stay_where_they_were_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.plinth");
    plain(&path, 50_000);
    for mode in MODES {
        let io = io(mode, 256 << 20);
        let source = Arc::new(Watched(LocalFile::open_with(&path, &io).unwrap(), Mutex::default()));
        let file =
            File::from_source_with(Arc::clone(&source) as _, &OpenOptions { io: io.clone(), ..OpenOptions::default() })
                .unwrap();
        let batches: Vec<RecordBatch> = file.scan().build().unwrap().map(Result::unwrap).collect();
        let read = source.1.lock().unwrap().clone();
        let is_read = |buffer: &Buffer| read.iter().any(|memory| memory.contains(&(buffer.as_ptr() as usize)));
        for batch in &batches {
            for column in batch.columns() {
                let data = column.to_data();
                // Views are made anew (they say where in which buffer); what they point into is not.
                let values = if column.data_type().is_primitive() { 0 } else { 1 };
                assert!(data.buffers()[values..].iter().all(is_read), "{mode:?} {:?}", column.data_type());
            }
        }
        // On loan to the holder of the batches alone.
        assert!(io.counters().extent_bytes > 0 && io.counters().held_bytes == 0);
        drop(batches);
        settled(&io);
    }
}

#[test]
fn a_consumer_that_keeps_everything_gets_copies_before_the_memory_of_reads_runs_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.plinth");
    let rows = 1_500_000;
    plain(&path, rows);
    for mode in MODES {
        // A quarter of it is for reads, and the table is sixty-four times as large as that.
        let io = io(mode, 4 << 20);
        let file = File::open_with(&path, &OpenOptions { io: io.clone(), ..OpenOptions::default() }).unwrap();
        assert!(file.byte_len() > 64 << 20);
        let batches: Vec<RecordBatch> =
            file.scan().filter(col("i").gt_eq(0)).build().unwrap().map(Result::unwrap).collect();
        let counters = io.counters();
        assert!(counters.mapped_bytes <= 16 << 20, "{counters:?}");
        let mut expected = (0..rows).map(|i| i * 7919 % 104_729);
        for batch in &batches {
            assert!(
                batch.column(0).as_primitive::<Int64Type>().values().iter().eq(expected
                    .by_ref()
                    .take(batch.num_rows())
                    .collect::<Vec<_>>()
                    .iter())
            );
        }
        assert!(expected.next().is_none());
        drop(batches);
        settled(&io);
    }
}

#[test]
fn blocks_are_kept_when_they_are_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.plinth");
    plain(&path, 50_000);
    let io = io(IoMode::Uring, 64 << 20);
    let file = File::open_with(&path, &OpenOptions { io: io.clone(), ..OpenOptions::default() }).unwrap();
    let expected = read_all(file.scan().build().unwrap());
    assert_eq!(io.counters().kept_bytes, 0, "read once");
    assert_same(&read_all(file.scan().build().unwrap()), &expected);
    let kept = io.counters();
    assert!(kept.kept_bytes > 2 << 20 && kept.kept_hits == 0, "{kept:?}");
    assert_same(&read_all(file.scan().build().unwrap()), &expected);
    let again = io.counters();
    assert!(again.kept_hits > 0 && again.direct_bytes == kept.direct_bytes, "{again:?}");
    drop(file);
    assert_eq!(io.counters().kept_bytes, 0, "forgotten with its file");
    // What the page cache has is kept where there is room for it.
    for (memory, room) in [(64 << 20, true), (2 << 20, false)] {
        let io = self::io(IoMode::Auto, memory);
        let file = File::open_with(&path, &OpenOptions { io: io.clone(), ..OpenOptions::default() }).unwrap();
        (0..3).for_each(|_| assert_same(&read_all(file.scan().build().unwrap()), &expected));
        let kept = io.counters();
        assert_eq!(kept.kept_bytes > 2 << 20 && kept.kept_hits > 0, room, "{kept:?}");
        assert!(kept.kept_bytes <= memory / 2, "{kept:?}");
        drop(file);
        assert_eq!(io.counters().kept_bytes, 0, "forgotten with its file");
    }
}
