//! Rows become segments: those in memory with segments no larger than they, and segments of which much is deleted.
//!
//! All sources are in the order of their keys, or are put in it; their rows that are there are merged to one new segment. It is
//! noted where each row went, so that what is deleted meanwhile can be deleted in the new segment.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::{RecordBatch, UInt32Array};
use arrow_schema::SchemaRef;
use arrow_select::interleave::interleave_record_batch;
use arrow_select::take::take_record_batch;
use plinth_core::key::head;
use plinth_core::losers::Losers;
use plinth_format::{Scan, Writer, WriterOptions};
use plinth_io::{Append, Storage};

use crate::delta::Delta;
use crate::engine::{GONE, Moved, Shared};
use crate::error::{Result, TableError, arrow};
use crate::key::{KeyColumns, Keys};
use crate::manifest::SegmentEntry;
use crate::segment::{KeyWriter, Live, Segment, keys_name, rows_name, seal_of};
use crate::version::Version;

/// Rows of a batch of the output.
const BATCH: usize = 8192;

/// The numbers of the segments that are merged with the rows in memory: from the smallest on as long as the next one has at
/// most twice the rows gathered so far, so that each is at least twice as large as the one before; and those of which more than
/// a quarter is deleted. Segments of `most` rows and more stay, unless that much of them is deleted.
pub(crate) fn choose(version: &Version, most: u64) -> Vec<u64> {
    let mut segments: Vec<&Live> = version.segments.iter().collect();
    segments.sort_by_key(|live| live.rows());
    let memory = |delta: &Delta| u64::from(delta.rows) - delta.deletes.count().min(u64::from(delta.rows));
    let mut gathered = version.frozen.as_ref().map_or(0, memory);
    let mut chosen = Vec::new();
    for live in segments {
        let rotten = live.deletes.count() * 4 > live.segment.entry.rows;
        if rotten || (live.rows() <= gathered * 2 && gathered + live.rows() < most) {
            gathered += live.rows();
            chosen.push(live.segment.entry.number);
        }
    }
    chosen
}

/// Rows in the order of their keys, batch by batch.
struct Run<'a> {
    batches: Box<dyn Iterator<Item = Result<RecordBatch>> + 'a>,
    /// The number that each row had in its source.
    numbers: Box<dyn Iterator<Item = u32> + 'a>,
    batch: RecordBatch,
    keys: Keys,
    at: usize,
    /// The first bytes of the key it is at.
    head: u64,
    over: bool,
}

/// Which of two runs is at the smaller key; runs that are over come last.
fn compare(runs: &[Run<'_>], a: usize, b: usize) -> Ordering {
    let (x, y) = (&runs[a], &runs[b]);
    let keys = match (x.over, y.over) {
        (false, false) => x.head.cmp(&y.head).then_with(|| x.key().cmp(y.key())),
        (x, y) => x.cmp(&y),
    };
    keys.then(a.cmp(&b))
}

impl<'a> Run<'a> {
    fn new(
        schema: &SchemaRef,
        batches: impl Iterator<Item = Result<RecordBatch>> + 'a,
        numbers: impl Iterator<Item = u32> + 'a,
    ) -> Self {
        let batch = RecordBatch::new_empty(Arc::clone(schema));
        let (batches, numbers) = (Box::new(batches), Box::new(numbers));
        Self { batches, numbers, batch, keys: Keys::default(), at: 0, head: 0, over: false }
    }

    /// The rows of a segment that are there.
    fn of_segment(live: &Live, schema: &SchemaRef) -> Result<Self> {
        let rows = u32::try_from(live.segment.entry.rows).unwrap_or(u32::MAX);
        let mut scan = live.segment.file.scan();
        if let Some(kept) = live.deletes.kept(0, rows as usize) {
            scan = scan.only_rows(kept);
        }
        let scan: Scan = scan.batches()?;
        let deletes = live.deletes.clone();
        let numbers = (0..rows).filter(move |&row| !deletes.contains(row));
        Ok(Self::new(schema, scan.map(|batch| batch.map_err(TableError::from)), numbers))
    }

    /// The rows in memory that are there.
    fn of_memory(delta: &Delta, schema: &SchemaRef) -> Result<Self> {
        let keys = delta.keys();
        let numbers = (0..delta.rows).filter(|&row| !delta.deletes.contains(row)).collect();
        Self::of_rows(&delta.whole(schema)?, keys.in_order(numbers), schema)
    }

    /// Rows of a batch, in an order.
    fn of_rows(batch: &RecordBatch, numbers: Vec<u32>, schema: &SchemaRef) -> Result<Self> {
        let sorted = take_record_batch(batch, &UInt32Array::from(numbers.clone())).map_err(arrow)?;
        let starts = (0..sorted.num_rows()).step_by(BATCH);
        let batches = starts.map(move |start| Ok(sorted.slice(start, BATCH.min(sorted.num_rows() - start))));
        Ok(Self::new(schema, batches, numbers.into_iter()))
    }

    /// Goes to the next batch if this one is done; whether it did.
    fn fill(&mut self, columns: &KeyColumns) -> Result<bool> {
        let mut moved = false;
        while self.at >= self.batch.num_rows() {
            let Some(batch) = self.batches.next().transpose()? else {
                self.over = true;
                return Ok(moved);
            };
            self.keys = columns.of(&batch)?;
            (self.batch, self.at, moved) = (batch, 0, true);
        }
        self.head = head(self.key(), 0);
        Ok(moved)
    }

    fn key(&self) -> &[u8] {
        self.keys.get(self.at)
    }
}

/// What is written, and how fast.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    pub(crate) writer: WriterOptions,
    /// Rows a second; as fast as can be without.
    pub(crate) pace: Option<u64>,
    /// Bytes of filters of all segments at most.
    pub(crate) filter_bytes: u64,
}

/// Merges segments of a version, and its frozen rows, to a new one; none if no row is there.
pub(crate) fn merge(
    shared: &Shared,
    version: &Version,
    replaced: &[u64],
    output: &Output,
) -> Result<(Option<Arc<Segment>>, Vec<Moved>)> {
    let schema = shared.codec.schema();
    let (mut runs, mut moved, mut rows) = (Vec::new(), Vec::new(), 0);
    for number in replaced {
        let live = version.segments.iter().find(|live| live.segment.entry.number == *number);
        let live = live.ok_or_else(|| TableError::invalid("a segment to be merged is gone"))?;
        runs.push(Run::of_segment(live, schema)?);
        rows += live.rows();
        moved.push(Moved { rows: vec![GONE; usize::try_from(live.segment.entry.rows).unwrap_or(usize::MAX)] });
    }
    if let Some(frozen) = &version.frozen {
        runs.push(Run::of_memory(frozen, schema)?);
        rows += u64::from(frozen.rows);
        moved.push(Moved { rows: vec![GONE; frozen.rows as usize] });
    }
    let segment = write(shared, runs, rows, &mut moved, output)?;
    Ok((segment, moved))
}

/// Writes rows that come from elsewhere as a new segment.
pub(crate) fn write_rows(
    shared: &Shared,
    batch: &RecordBatch,
    keys: &Keys,
    output: &Output,
) -> Result<Option<Arc<Segment>>> {
    let numbers = keys.in_order((0..u32::try_from(batch.num_rows()).unwrap_or(u32::MAX)).collect());
    let run = Run::of_rows(batch, numbers, shared.codec.schema())?;
    let mut moved = vec![Moved { rows: vec![GONE; batch.num_rows()] }];
    write(shared, vec![run], batch.num_rows() as u64, &mut moved, output)
}

fn write(
    shared: &Shared,
    runs: Vec<Run<'_>>,
    most: u64,
    moved: &mut [Moved],
    output: &Output,
) -> Result<Option<Arc<Segment>>> {
    let number = shared.new_file();
    let written = write_files(shared, number, runs, most, moved, output);
    if !matches!(written, Ok(Some(_))) {
        // Nothing names them. What can't be removed now, the next to open the table removes.
        let _ = shared.storage.remove(&rows_name(number));
        let _ = shared.storage.remove(&keys_name(number));
    }
    let Some(entry) = written? else { return Ok(None) };
    let Shared { storage, codec, blocks, indexes, open, .. } = shared;
    let segment = Arc::new(Segment::open(storage, entry, codec.schema(), blocks, indexes, open)?);
    if let Err(error) = shared.indexes.complete(&shared.storage, &segment) {
        segment.make_obsolete();
        return Err(error);
    }
    Ok(Some(segment))
}

fn write_files(
    shared: &Shared,
    number: u64,
    mut runs: Vec<Run<'_>>,
    most: u64,
    moved: &mut [Moved],
    output: &Output,
) -> Result<Option<SegmentEntry>> {
    let (storage, schema): (&dyn Storage, _) = (&*shared.storage, shared.codec.schema());
    let file = Append::new(storage.create(&rows_name(number))?);
    let mut writer = Writer::to_output(file, storage.scratch(), schema, output.writer.clone())?;
    let filters: u64 = shared.current().segments.iter().map(|live| live.segment.filter_bytes()).sum();
    let left = output.filter_bytes.saturating_sub(filters);
    let mut keys = KeyWriter::new(usize::try_from(most).unwrap_or(usize::MAX), left);
    let mut chunk = Chunk::default();
    let mut row = 0_u32;
    for run in &mut runs {
        run.fill(&shared.columns)?;
    }
    let mut losers = Losers::new(runs.len(), |a, b| compare(&runs, a, b));
    while let Some(i) = losers.winner() {
        let Some(run) = runs.get_mut(i).filter(|run| !run.over) else { break };
        if !keys.push(run.key()) {
            return Err(TableError::Duplicate { key: shared.columns.show(run.key()) });
        }
        chunk.push(i, run);
        let place = run.numbers.next().and_then(|old| moved.get_mut(i)?.rows.get_mut(old as usize));
        if let Some(place) = place {
            *place = row;
        }
        run.at += 1;
        row = row.checked_add(1).filter(|&row| row != GONE).ok_or_else(|| TableError::invalid("too many rows"))?;
        if chunk.rows.len() >= BATCH {
            chunk.write(&mut writer, output)?;
        }
        if run.fill(&shared.columns)? {
            chunk.forget(i);
        }
        losers.replay(|a, b| compare(&runs, a, b));
    }
    if row == 0 {
        return Ok(None);
    }
    chunk.write(&mut writer, output)?;
    let (file, rows) = writer.complete()?;
    file.finish()?;
    let (keys_len, keys_seal) = keys.finish(storage, number)?;
    let (len, seal) = seal_of(storage, number)?;
    storage.sync_names()?;
    Ok(Some(SegmentEntry { number, rows, len, seal, keys_len, keys_seal, deletes: Default::default() }))
}

/// Rows that are about to be written: which of some batches.
#[derive(Default)]
struct Chunk {
    batches: Vec<RecordBatch>,
    /// Which of the batches a run is at.
    of_run: Vec<Option<usize>>,
    rows: Vec<(usize, usize)>,
}

impl Chunk {
    /// A run has moved to another batch.
    fn forget(&mut self, run: usize) {
        if let Some(slot) = self.of_run.get_mut(run) {
            *slot = None;
        }
    }

    fn push(&mut self, i: usize, run: &Run<'_>) {
        if self.of_run.len() <= i {
            self.of_run.resize(i + 1, None);
        }
        let batches = &mut self.batches;
        let known = self.of_run.get_mut(i).map(|slot| {
            *slot.get_or_insert_with(|| {
                batches.push(run.batch.clone());
                batches.len() - 1
            })
        });
        self.rows.push((known.unwrap_or(0), run.at));
    }

    fn write(&mut self, writer: &mut Writer<Append>, output: &Output) -> Result<()> {
        let Self { batches, rows, .. } = std::mem::take(self);
        if rows.is_empty() {
            return Ok(());
        }
        let whole = batches.len() == 1 && rows.windows(2).all(|pair| pair[0].1 + 1 == pair[1].1);
        match (batches.first(), rows.first()) {
            (Some(batch), Some(&(_, first))) if whole => writer.write(&batch.slice(first, rows.len()))?,
            _ => {
                let batches: Vec<&RecordBatch> = batches.iter().collect();
                writer.write(&interleave_record_batch(&batches, &rows).map_err(arrow)?)?;
            }
        }
        if let Some(pace) = output.pace {
            std::thread::sleep(
                std::time::Duration::from_secs(rows.len() as u64) / u32::try_from(pace.max(1)).unwrap_or(u32::MAX),
            );
        }
        Ok(())
    }
}
