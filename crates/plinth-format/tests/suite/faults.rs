//! Scans on a disk that completes reads late, in any order, or never: the right answer or an error that says where, no wait
//! for nothing, nothing held afterwards.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Wake, Waker};

use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow_schema::{DataType, Field, Schema};
use plinth_encoding::expr::{Expr, Path, col};
use plinth_format::{DynamicFilter, File, FormatError, ScanBuilder, WriterOptions};
use plinth_io::sim::{Faults, SimDisk};
use plinth_io::{Io, IoOptions, MemoryBudget};

use crate::data::{Random, assert_same, small, words, write};

const NAME: &str = "t.plinth";
const ROWS: usize = 9000;

/// Steps that no scan here comes near.
const MOST: usize = 20_000;

/// Columns that are decoded, that lie in the file as they are, and that nest.
fn table() -> RecordBatch {
    let mut random = Random(5);
    let sorted: Int64Array = (0..ROWS as i64).map(|i| Some(i / 3)).collect();
    let noise: Int64Array = (0..ROWS).map(|_| (!random.chance(5)).then(|| random.next_u64() as i64)).collect();
    // Between the others, so that a scan of those is several reads.
    let padding: StringArray =
        (0..ROWS).map(|_| Some((0..12).map(|_| format!("{:x}", random.next_u64())).collect::<String>())).collect();
    let text = StringArray::from(words(&mut random, ROWS, 40, 2));
    let inner: ArrayRef = Arc::new((0..ROWS).map(|_| Some(random.below(1000) as i32)).collect::<Int32Array>());
    let list = (0..ROWS).map(|i| (i % 7 != 0).then(|| (0..i % 4).map(|j| Some(j as i32)).collect::<Vec<_>>()));
    let list = ListArray::from_iter_primitive::<arrow_array::types::Int32Type, _, _>(list);
    let field = Arc::new(Field::new("list", list.data_type().clone(), true));
    let nested = vec![(Arc::new(Field::new("x", DataType::Int32, true)), inner), (field, Arc::new(list) as ArrayRef)];
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("sorted", Arc::new(sorted)),
        ("padding", Arc::new(padding)),
        ("noise", Arc::new(noise)),
        ("text", Arc::new(text)),
        ("nested", Arc::new(StructArray::from(nested))),
    ];
    let fields: Vec<_> = columns.iter().map(|(n, a)| Field::new(*n, a.data_type().clone(), true)).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns.into_iter().map(|(_, a)| a).collect()).unwrap()
}

/// Lets fewer rows through each time it is asked. How often that is depends on when reads complete; so what passes its last
/// version must come, what passes its first may.
#[derive(Debug)]
struct Tightening(Mutex<u64>);

impl DynamicFilter for Tightening {
    fn newer_than(&self, seen: u64) -> Option<(u64, Expr)> {
        let mut version = self.0.lock().unwrap();
        *version = (*version + 1).min(20);
        (*version > seen).then(|| (*version, col("sorted").lt(3000 - 50 * *version as i64)))
    }
}

type Query = fn(&File) -> ScanBuilder;

const QUERIES: [Query; 5] = [
    |file| file.scan(),
    |file| file.scan().filter(col("text").eq("7-wörd")).filter(col("noise").gt(0)),
    |file| file.scan().select(["noise", "text"]).filter(col("sorted").gt(700)).limit(1500),
    |file| {
        let nested = ["x", "list"].map(|field| Path::column("nested").child(field));
        file.scan().project(nested.to_vec()).filter(col("sorted").gt_eq(300)).batch_rows(1000)
    },
    // Nothing of it depends on when it is asked.
    |file| {
        let constant = Tightening(Mutex::new(20));
        file.scan().select(["sorted", "noise"]).dynamic_filter(Arc::new(constant))
    },
];

struct Bed {
    disk: SimDisk,
    io: Io,
    expected: Vec<RecordBatch>,
    bytes: Vec<u8>,
}

impl Bed {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        let file = write(&path, &table(), WriterOptions { row_group_rows: 400, block_rows: 100, ..small() });
        let expected = QUERIES.map(|query| crate::data::read_all(query(&file).build().unwrap()));
        let bytes = std::fs::read(&path).unwrap();
        let (disk, io) = disk(0, 64 << 20, &bytes);
        Self { disk, io, expected: expected.into(), bytes }
    }

    /// Another disk with the same file.
    fn seeded(&mut self, seed: u64, memory: u64) {
        (self.disk, self.io) = disk(seed, memory, &self.bytes);
    }

    fn open(&self) -> Result<File, FormatError> {
        File::from_source(Arc::new(self.disk.open(NAME).unwrap()))
    }

    fn is_right(&self, query: usize, batches: &[RecordBatch]) {
        let expected = &self.expected[query];
        let found = arrow_select::concat::concat_batches(expected.schema_ref(), batches).unwrap();
        assert_same(&found, expected);
    }

    /// Once what was given up is gone, too.
    fn is_clean(&self) {
        for _ in 0..MOST {
            if !self.disk.step() {
                break;
            }
        }
        let (disk, io) = (self.disk.counters(), self.io.counters());
        assert_eq!((disk.under_way, io.extent_bytes, io.held_bytes), (0, 0, 0));
    }
}

fn disk(seed: u64, memory: u64, bytes: &[u8]) -> (SimDisk, Io) {
    let io = Io::new(&MemoryBudget::new(memory), IoOptions::default());
    let disk = SimDisk::new(seed, &io);
    disk.write(NAME, 0, bytes).unwrap();
    (disk, io)
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// How a scan ended.
#[derive(Debug)]
enum End {
    Complete(Vec<RecordBatch>),
    Failed(FormatError),
    Dropped,
}

/// Runs a query, taking the disk one step further whenever the scan waits, until it ends or so many steps were taken.
/// `each` is called before each step. Returns the number of steps as well.
fn drive(bed: &Bed, query: usize, seed: u64, steps: usize, mut each: impl FnMut(usize)) -> (End, usize) {
    let (flag, mut random) = (Arc::new(Flag::default()), Random(seed));
    let waker = Waker::from(Arc::clone(&flag));
    let scan = bed.open().and_then(|file| QUERIES[query](&file).build());
    let mut scan = match scan {
        Ok(scan) => scan,
        Err(e) => return (End::Failed(e), 0),
    };
    let (mut batches, mut taken) = (Vec::new(), 0);
    loop {
        match scan.poll_batch(&waker) {
            Poll::Ready(Some(Ok(batch))) => batches.push(batch),
            Poll::Ready(None) => {
                assert!(matches!(scan.poll_batch(&waker), Poll::Ready(None)), "it stays at its end");
                return (End::Complete(batches), taken);
            }
            Poll::Ready(Some(Err(e))) => {
                assert!(matches!(scan.poll_batch(&waker), Poll::Ready(None)), "after an error nothing comes");
                return (End::Failed(e), taken);
            }
            Poll::Pending => loop {
                if taken == steps {
                    return (End::Dropped, taken);
                }
                each(taken);
                taken += 1;
                assert!(taken < MOST, "it goes on for ever");
                let moved = bed.disk.step();
                // Woken, or just asked again.
                if flag.0.swap(false, Ordering::SeqCst) || random.chance(10) {
                    break;
                }
                assert!(moved, "it waits, but nothing is under way");
            },
        }
    }
}

/// Reads come late, in pieces and in any order; some at once.
fn slow(at_once: u64) -> Faults {
    Faults { at_once, short: 30, busy: 20, ..Faults::default() }
}

#[test]
fn the_order_in_which_reads_complete_changes_no_result() {
    let mut bed = Bed::new();
    for query in 0..QUERIES.len() {
        let mut lengths = BTreeSet::new();
        for seed in 0..24 {
            // With plenty of memory, and with too little to read ahead.
            bed.seeded(seed, if seed % 3 == 0 { 4 << 20 } else { 256 << 20 });
            bed.disk.set_faults(slow([0, 40, 90][seed as usize % 3]));
            match drive(&bed, query, seed, usize::MAX, |_| ()) {
                (End::Complete(batches), steps) => {
                    bed.is_right(query, &batches);
                    lengths.insert(steps);
                }
                other => panic!("{other:?}"),
            }
            bed.is_clean();
        }
        assert!(lengths.len() > 5, "they did not all go the same way");
    }
}

#[test]
fn a_filter_that_tightens_meanwhile_loses_no_row_that_passes_its_last_version() {
    let mut bed = Bed::new();
    for seed in 0..10 {
        bed.seeded(seed, 64 << 20);
        bed.disk.set_faults(slow(20));
        let background = bed.disk.in_background().unwrap();
        let file = bed.open().unwrap();
        let filter = Arc::new(Tightening(Mutex::new(0)));
        let scan = file.scan().select(["sorted"]).dynamic_filter(filter).build().unwrap();
        let found: Vec<i64> = scan
            .flat_map(|batch| {
                let batch = batch.unwrap();
                let sorted = arrow_array::cast::AsArray::as_primitive::<arrow_array::types::Int64Type>(batch.column(0));
                sorted.values().to_vec()
            })
            .collect();
        assert_eq!(found.iter().filter(|&&value| value < 2000).count(), 6000);
        assert!(found.iter().all(|&value| value < 2950));
        drop(background);
        bed.is_clean();
    }
}

#[test]
fn a_scan_dropped_at_any_step_leaves_nothing_behind() {
    let mut bed = Bed::new();
    for query in 0..QUERIES.len() {
        for at_once in [0, 50] {
            let mut step = 0;
            loop {
                bed.seeded(7, 256 << 20);
                bed.disk.set_faults(slow(at_once));
                let (end, _) = drive(&bed, query, 7, step, |_| ());
                let complete = match end {
                    End::Complete(batches) => {
                        bed.is_right(query, &batches);
                        true
                    }
                    End::Dropped => false,
                    End::Failed(e) => panic!("{e}"),
                };
                bed.is_clean();
                if complete {
                    break;
                }
                step += 1;
            }
            assert!(step > 3, "{step}");
        }
    }
}

/// An error says which file, and where in it.
fn says_where(error: &FormatError, reason: &str) {
    let text = error.to_string();
    assert!(text.contains(NAME) && text.contains(reason), "{text}");
    let place = text.split_once(" at ").and_then(|(_, rest)| rest.trim_start_matches("offset ").chars().next());
    assert!(place.is_some_and(|digit| digit.is_ascii_digit()) && !text.contains('\n'), "{text}");
}

#[test]
fn whichever_read_fails_the_error_says_where() {
    let mut bed = Bed::new();
    for query in 0..QUERIES.len() {
        for vanishes in [false, true] {
            let (mut operation, mut failures) = (1, 0);
            loop {
                bed.seeded(3, 256 << 20);
                let fails = Some(operation);
                let (failing, vanishing) = if vanishes { (None, fails) } else { (fails, None) };
                bed.disk.set_faults(Faults { failing, vanishing, ..slow(25) });
                let (end, _) = drive(&bed, query, 3, usize::MAX, |_| ());
                let reached = bed.disk.counters().operations > operation;
                match end {
                    End::Complete(batches) => bed.is_right(query, &batches),
                    End::Failed(error) => {
                        says_where(&error, if vanishes { "the device is gone" } else { "input/output error" });
                        failures += 1;
                    }
                    End::Dropped => unreachable!(),
                }
                bed.is_clean();
                if !reached {
                    break;
                }
                operation += 1;
            }
            assert!(failures > 3, "{failures} of {operation}");
        }
    }
}

#[test]
fn a_file_cut_short_at_any_step_is_an_error_or_makes_no_difference() {
    let mut bed = Bed::new();
    let len = bed.bytes.len();
    for query in 0..QUERIES.len() {
        let (mut cut_at, mut failures) = (0, 0);
        loop {
            bed.seeded(11, 256 << 20);
            bed.disk.set_faults(slow(0));
            let (disk, to) = (bed.disk.clone(), len / 8 * (cut_at % 8));
            let cut = |step| {
                if step == cut_at {
                    disk.set_len(NAME, to).unwrap()
                }
            };
            let (end, steps) = drive(&bed, query, 11, usize::MAX, cut);
            match end {
                End::Complete(batches) => bed.is_right(query, &batches),
                End::Failed(error) => {
                    says_where(&error, "cut short");
                    failures += 1;
                }
                End::Dropped => unreachable!(),
            }
            bed.is_clean();
            if steps <= cut_at {
                break;
            }
            cut_at += 1;
        }
        assert!(failures > 0);
    }
}

#[test]
fn an_early_limit_gives_back_what_was_read_ahead_while_the_scan_lives_on() {
    let mut bed = Bed::new();
    bed.seeded(1, 256 << 20);
    bed.disk.set_faults(slow(0));
    let background = bed.disk.in_background().unwrap();
    let file = bed.open().unwrap();
    let mut scan = file.scan().filter(col("noise").gt(0)).limit(3000).build().unwrap();
    assert_eq!(scan.by_ref().map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 3000);
    drop(background);
    bed.is_clean();
    assert!(scan.next().is_none());
}
