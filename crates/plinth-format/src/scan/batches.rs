//! Chunks gathered into batches of an even size.

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::concat::concat_batches;
use plinth_profile::{Stage, scope};

use super::executor::{Executor, Step};
use super::source::ColumnSource;
use crate::error::{FormatError, Result};

/// Most chunks of a batch whose rows may tighten a dynamic filter.
const PATIENCE: usize = 32;

/// Gathers rows until a batch is full, or until a chunk comes that nearly is one. Rows are copied only when several small chunks make
/// one batch.
#[derive(Debug)]
pub(super) struct Batches {
    schema: SchemaRef,
    rows: usize,
    waiting: Vec<RecordBatch>,
    waiting_rows: usize,
    /// Chunks that a batch waits for at most: of a scan with dynamic filters few at first, for it is by the first rows that
    /// these filters tighten.
    patience: usize,
}

/// How far the next batch is.
#[derive(Debug)]
pub(super) enum Next {
    Batch(RecordBatch),
    Waiting,
    End,
}

impl Batches {
    /// Of so many rows; of a scan whose filters may tighten by them, of fewer.
    pub(super) fn new(schema: SchemaRef, rows: usize, tightens: bool) -> Self {
        let patience = if tightens { 1 } else { usize::MAX };
        Self { schema, rows, waiting: Vec::new(), waiting_rows: 0, patience }
    }

    /// The next batch, unless its rows have to be waited for. After an error there are none.
    pub(super) fn next<S: ColumnSource>(&mut self, executor: &mut Executor<S>) -> Result<Next> {
        let next = self.gather(executor);
        if next.is_err() {
            executor.end();
            (self.waiting, self.waiting_rows) = (Vec::new(), 0);
        }
        next
    }

    fn gather<S: ColumnSource>(&mut self, executor: &mut Executor<S>) -> Result<Next> {
        loop {
            if self.waiting_rows >= self.rows {
                return self.emit(self.rows).map(Next::Batch);
            }
            match executor.step()? {
                Step::Chunk(chunk) => {
                    let arrays = executor.values(chunk.columns)?;
                    let before = self.waiting_rows;
                    self.waiting.push(batch(&self.schema, arrays, chunk.rows)?);
                    self.waiting_rows += chunk.rows;
                    // What is a batch already is not taken apart to fill up another: with the next it would be the same.
                    if before > 0 && self.waiting_rows > self.rows && chunk.rows > self.rows / 2 {
                        return self.emit(before).map(Next::Batch);
                    }
                    if self.waiting.len() >= self.patience && self.waiting_rows < self.rows {
                        self.patience = self.patience.saturating_mul(2).min(PATIENCE);
                        return self.emit(self.waiting_rows).map(Next::Batch);
                    }
                }
                Step::Waiting => return Ok(Next::Waiting),
                Step::End if self.waiting_rows == 0 => return Ok(Next::End),
                Step::End => return self.emit(self.waiting_rows).map(Next::Batch),
            }
        }
    }

    /// Takes `rows` rows from those that wait.
    fn emit(&mut self, rows: usize) -> Result<RecordBatch> {
        let gather = scope(Stage::Gather);
        gather.rows(rows as u64);
        let mut taken = Vec::new();
        let mut missing = rows;
        let mut rest = Vec::new();
        for batch in self.waiting.drain(..) {
            let here = batch.num_rows().min(missing);
            missing -= here;
            if here == batch.num_rows() {
                taken.push(batch);
            } else {
                if here > 0 {
                    taken.push(batch.slice(0, here));
                }
                rest.push(batch.slice(here, batch.num_rows() - here));
            }
        }
        self.waiting = rest;
        self.waiting_rows -= rows;
        match taken.as_slice() {
            [whole] => Ok(whole.clone()),
            parts => concat_batches(&self.schema, parts).map_err(|e| fail(&e)),
        }
    }
}

fn batch(schema: &SchemaRef, arrays: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), arrays, &options).map_err(|e| fail(&e))
}

/// A batch that can't be made of what was decoded: the file's metadata and blocks contradict each other.
fn fail(error: &ArrowError) -> FormatError {
    FormatError::Corrupt { file: "scan".into(), what: error.to_string() }
}
