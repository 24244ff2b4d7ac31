//! Merging runs, and handing over what comes out.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering as Memory};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use plinth_core::key::{HEAD, head};
use plinth_core::losers::Losers;
use plinth_io::Spool;
use plinth_profile::{Stage, scope};

use super::keys::{Keys, Place, rest};
use super::run::{Chunk, Run, RunWriter, chunk_bytes, collect_side_by_side, encode, fan_in};
use super::{Shared, fail};
use crate::error::{FormatError, Result};
use crate::writer::weigh;

/// Batches that wait for the consumer.
const AHEAD: usize = 2;

/// Rows of a batch, at most.
const BATCH_ROWS: usize = 16_384;

/// The sorted rows, batch by batch. Dropped early, it stops and joins the thread that merges.
#[derive(Debug)]
pub struct SortedRows {
    schema: SchemaRef,
    batches: Option<Receiver<Result<RecordBatch>>>,
    thread: Option<JoinHandle<()>>,
    abandoned: Arc<AtomicBool>,
}

impl SortedRows {
    pub(super) fn start(shared: Arc<Shared>, runs: Vec<Run>, spool: Spool) -> Result<Self> {
        let (give, batches) = sync_channel(AHEAD);
        let (schema, abandoned) = (Arc::clone(&shared.schema), Arc::clone(&shared.abandoned));
        let thread = std::thread::Builder::new()
            .name("plinth-merge".to_owned())
            .spawn(move || {
                let _sort = shared.profiler.scope(Stage::Sort);
                if let Err(e) = merge_all(&shared, runs, spool, &give) {
                    // There is no receiver left for the reason if this fails.
                    let _ = give.send(Err(e));
                }
            })
            .map_err(|e| fail(format!("cannot start a thread: {e}")))?;
        Ok(Self { schema, batches: Some(batches), thread: Some(thread), abandoned })
    }

    /// The types of the batches: text and binaries have offsets where the input had views, and no dictionaries.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

impl Iterator for SortedRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let _join = scope(Stage::Join);
        if let Ok(batch) = self.batches.as_ref()?.recv() {
            return Some(batch);
        }
        self.batches = None;
        // Whatever the thread could say it has said, but for a panic.
        let panicked = self.thread.take().is_some_and(|thread| thread.join().is_err());
        panicked.then(|| Err(fail("the thread that merges runs died")))
    }
}

impl Drop for SortedRows {
    fn drop(&mut self) {
        // Wherever the thread is: between chunks it looks, and its next batch finds no receiver.
        self.abandoned.store(true, Memory::Relaxed);
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Merges neighbouring runs into longer ones until the rest can be merged at once, and gives that away.
fn merge_all(
    shared: &Shared,
    mut runs: Vec<Run>,
    mut spool: Spool,
    give: &SyncSender<Result<RecordBatch>>,
) -> Result<()> {
    let fan_in = fan_in(&shared.options);
    while runs.len() > fan_in {
        let mut longer = Vec::new();
        let mut onto = Spool::new(&shared.options.folder);
        let mut waiting = runs.into_iter().peekable();
        while waiting.peek().is_some() {
            let mut merge = Merge::new(shared, &spool, waiting.by_ref().take(fan_in).collect())?;
            let mut writer = RunWriter::new(shared, &mut onto);
            while let Some(batch) = merge.next(chunk_bytes(&shared.options))? {
                writer.write(encode(&batch)?)?;
            }
            longer.push(writer.finish());
        }
        // The old scratch file goes with the assignment.
        (runs, spool) = (longer, onto);
    }
    let batch_bytes = (shared.options.merge_bytes / 16).max(1 << 10);
    let mut merge = Merge::new(shared, &spool, runs)?;
    while let Some(batch) = merge.next(batch_bytes)? {
        let _join = scope(Stage::Join);
        if give.send(Ok(batch)).is_err() {
            return Err(FormatError::Cancelled);
        }
    }
    Ok(())
}

/// A run being read.
struct Cursor {
    rest: std::vec::IntoIter<Chunk>,
    keys: Keys,
    /// Which of the chunks in use, and which of its rows.
    chunk: usize,
    row: usize,
    head: u64,
    /// Bytes a row of the chunk takes, about.
    row_bytes: u64,
    /// Whether heads are all there is of this chunk's keys.
    short: bool,
    done: bool,
}

struct Merge<'a> {
    shared: &'a Shared,
    spool: &'a Spool,
    cursors: Vec<Cursor>,
    losers: Losers,
    /// Chunks that rows of the batch under way come from; the current one of each run among them.
    chunks: Vec<RecordBatch>,
}

impl<'a> Merge<'a> {
    fn new(shared: &'a Shared, spool: &'a Spool, runs: Vec<Run>) -> Result<Self> {
        let mut this =
            Self { shared, spool, cursors: Vec::new(), losers: Losers::new(0, |a, b| a.cmp(&b)), chunks: Vec::new() };
        for run in runs {
            let keys = shared.ranking.keys(&RecordBatch::new_empty(Arc::clone(&shared.schema)))?;
            this.cursors.push(Cursor {
                rest: run.chunks,
                keys,
                chunk: 0,
                row: 0,
                head: 0,
                row_bytes: 1,
                short: true,
                done: false,
            });
            this.load(this.cursors.len() - 1)?;
        }
        this.losers = Losers::new(this.cursors.len(), |a, b| compare(&this.cursors, a, b));
        Ok(this)
    }

    /// Goes on to the next chunk of a run that has rows.
    fn load(&mut self, run: usize) -> Result<()> {
        let Some(cursor) = self.cursors.get_mut(run) else { return Ok(()) };
        cursor.row = 0;
        loop {
            let Some(chunk) = cursor.rest.next() else {
                cursor.done = true;
                return Ok(());
            };
            let batch = chunk.read(self.shared, self.spool)?;
            if batch.num_rows() == 0 {
                continue;
            }
            let bytes: u64 = batch.columns().iter().map(|column| weigh(column, 0..batch.num_rows())).sum();
            cursor.row_bytes = bytes / batch.num_rows() as u64;
            cursor.keys = self.shared.ranking.keys(&batch)?;
            cursor.head = head(cursor.keys.key(0), 0);
            cursor.short = cursor.keys.covered(0);
            cursor.chunk = self.chunks.len();
            self.chunks.push(batch);
            return Ok(());
        }
    }

    /// The next rows, about so many bytes of them; `None` after the last.
    fn next(&mut self, bytes: u64) -> Result<Option<RecordBatch>> {
        self.shared.check_cancelled()?;
        // What no run is at any more was all handed over.
        let mut kept = Vec::with_capacity(self.cursors.len());
        for cursor in self.cursors.iter_mut().filter(|cursor| !cursor.done) {
            kept.push(self.chunks[cursor.chunk].clone());
            cursor.chunk = kept.len() - 1;
        }
        self.chunks = kept;
        // As wide as the rows of the widest chunk at hand.
        let row_bytes = self.cursors.iter().filter(|cursor| !cursor.done).map(|cursor| cursor.row_bytes).max();
        let rows = usize::try_from(bytes / row_bytes.unwrap_or(1).max(1)).unwrap_or(usize::MAX).clamp(1, BATCH_ROWS);
        // Memory holds a second chunk of each run beside the first, no more.
        let most_chunks = self.chunks.len() * 2 + 1;
        let mut places: Vec<Place> = Vec::with_capacity(rows);
        while places.len() < rows && self.chunks.len() < most_chunks {
            let Some(winner) = self.losers.winner() else { break };
            let Some(cursor) = self.cursors.get_mut(winner).filter(|cursor| !cursor.done) else { break };
            places.push((cursor.chunk, cursor.row));
            cursor.row += 1;
            if cursor.row < cursor.keys.len() {
                cursor.head = head(cursor.keys.key(cursor.row), 0);
            } else {
                self.load(winner)?;
            }
            self.losers.replay(|a, b| compare(&self.cursors, a, b));
        }
        if places.is_empty() {
            return Ok(None);
        }
        let chunks: Vec<&RecordBatch> = self.chunks.iter().collect();
        collect_side_by_side(self.shared, &chunks, &places).map(Some)
    }
}

/// Which of two runs has the smaller row, of equals the earlier run; runs that are over come last.
fn compare(cursors: &[Cursor], a: usize, b: usize) -> Ordering {
    let (x, y) = (&cursors[a], &cursors[b]);
    let rows = match (x.done, y.done) {
        (false, false) => x.head.cmp(&y.head).then_with(|| match x.short && y.short {
            true => Ordering::Equal,
            false => rest(x.keys.key(x.row), y.keys.key(y.row), HEAD),
        }),
        (x, y) => x.cmp(&y),
    };
    rows.then(a.cmp(&b))
}
