//! The left side of a join: gathered once, for all partitions of the right one.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arrow_array::{RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_schema::{FieldRef, SchemaRef};
use arrow_select::take::take;
use datafusion_common::{DataFusionError, Result};
use datafusion_common_runtime::JoinSet;
use datafusion_execution::TaskContext;
use datafusion_physical_plan::ExecutionPlan;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use plinth_core::sync::lock;
use plinth_exec::join::{Builder, Table};
use plinth_exec::key::{Bounds, Meaning};
use plinth_exec::vector::{Coded, Vector};
use plinth_io::{MemoryBudget, Reservation};

use super::{Join, column};
use crate::error::{from_exec, from_join};
use crate::evaluated::Memos;
use crate::native::condition;
use crate::native::input::{Input, Source};
use crate::native::plan::range;
use crate::profile::spawn_blocking;

/// Rows up to which one thread makes all of the table.
const ALONE: usize = 1 << 15;

/// Who asks for memory.
const CONSUMER: &str = "hash join (build side)";

/// The left side, gathered.
pub(super) struct Left {
    pub(super) table: Table,
    /// Its rows, by their numbers.
    pub(super) rows: RecordBatch,
    /// Of columns of byte strings their values, by the numbers of rows.
    coded: Vec<Option<Arc<dyn Coded>>>,
    /// Of each row a bit: whether it has a partner. Kept if rows of this side come out at the end.
    visited: Vec<AtomicU64>,
    memory: Reservation,
}

impl Left {
    /// Notes that a row has a partner.
    pub(super) fn visit(&self, row: u32) {
        if let Some(word) = self.visited.get(row as usize / 64) {
            let bit = 1 << (row % 64);
            // Mostly it is known, and a word that is only read stays in all caches.
            if word.load(Ordering::Relaxed) & bit == 0 {
                word.fetch_or(bit, Ordering::Relaxed);
            }
        }
    }

    /// Some rows of a column: byte strings by the numbers of rows, which what comes next looks at once each.
    pub(super) fn column(&self, column: usize, rows: &UInt32Array) -> Result<Vector> {
        let array = self.rows.column(column);
        match self.coded.get(column).and_then(Option::as_ref) {
            Some(dictionary) => Ok(column::numbered(array, dictionary, rows)),
            None => Ok(Vector::Array(take(array, rows, None)?)),
        }
    }

    /// Whether a row has a partner.
    pub(super) fn is_visited(&self, row: usize) -> bool {
        self.visited.get(row / 64).is_some_and(|word| word.load(Ordering::Relaxed) >> (row % 64) & 1 == 1)
    }
}

type Shareable = Result<Arc<Left>, Arc<DataFusionError>>;

/// The left side, from when its rows are first asked for; and the right one, which is read from then on.
pub(super) struct Gathered {
    left: Shared<BoxFuture<'static, Shareable>>,
    pub(super) right: Input,
    pub(super) memos: Arc<Memos>,
    /// Partitions of the right side that have not ended.
    running: AtomicUsize,
}

impl Gathered {
    pub(super) fn new(
        join: &Arc<Join>,
        left: &Arc<dyn ExecutionPlan>,
        right: &Arc<dyn ExecutionPlan>,
        budget: &Arc<MemoryBudget>,
        context: &Arc<TaskContext>,
        partitions: usize,
    ) -> Result<Self> {
        let memos = Arc::new(Memos::new(budget));
        let work = Work {
            join: Arc::clone(join),
            input: Input::of_any_parts(left, &memos)?,
            memos: Arc::clone(&memos),
            budget: Arc::clone(budget),
            context: Arc::clone(context),
            memory: Mutex::new(budget.open(CONSUMER)),
        };
        let gathering = async move { Arc::new(work).gather().await.map(Arc::new).map_err(Arc::new) };
        let right = Input::new(right, &memos)?;
        Ok(Self { left: gathering.boxed().shared(), right, memos, running: AtomicUsize::new(partitions) })
    }

    /// The left side, once it is gathered.
    pub(super) async fn left(&self) -> Result<Arc<Left>> {
        self.left.clone().await.map_err(DataFusionError::Shared)
    }

    /// Notes that a partition of the right side has ended; whether it was the last.
    pub(super) fn ends(&self) -> bool {
        self.running.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

/// What is gathered.
struct Work {
    join: Arc<Join>,
    input: Input,
    memos: Arc<Memos>,
    budget: Arc<MemoryBudget>,
    context: Arc<TaskContext>,
    memory: Mutex<Reservation>,
}

/// Rows, and their keys.
pub(super) struct Piece {
    keys: Vec<Vector>,
    pub(super) rows: RecordBatch,
}

impl Work {
    async fn gather(self: Arc<Self>) -> Result<Left> {
        let mut tasks = JoinSet::new();
        for partition in 0..self.input.partitions() {
            let (work, source) = (Arc::clone(&self), self.input.rows(partition, &self.context)?);
            tasks.spawn(async move { work.read(source).await });
        }
        let mut pieces = Vec::new();
        while let Some(read) = tasks.join_next().await {
            pieces.extend(read.map_err(from_join)??);
        }
        let mut left = self.left(pieces).await?;
        let join = &self.join;
        if let Some(filter) = &join.filter {
            let (exprs, memory) = (&join.filtered, &mut left.memory);
            let exprs = exprs.iter().enumerate();
            filter.update(condition::of_keys(&left.table, exprs, &join.types, &join.right_schema, memory)?)?;
            filter.mark_complete();
        }
        if let Some(asked) = &join.asked {
            asked.answer(&left.table, &join.types, &mut left.memory)?;
        }
        Ok(left)
    }

    /// The rows of a partition.
    async fn read(&self, mut source: Source) -> Result<Vec<Piece>> {
        let join = &self.join;
        let mut pieces = Vec::new();
        while let Some((count, columns)) = source.next().await? {
            let keys = join.left.iter().map(|key| key.evaluate(&columns, count, &self.memos));
            let keys = keys.collect::<Result<Vec<_>>>()?;
            let rows = batch(&join.left_schema, &columns, count)?;
            let bytes = rows.columns().iter().map(|column| column.to_data().get_slice_memory_size().unwrap_or(0));
            let bytes: usize = bytes.sum();
            // And once more while pieces become one.
            lock(&self.memory).try_grow(2 * bytes as u64).map_err(|error| from_exec(error.into()))?;
            pieces.push(Piece { keys, rows });
            tokio::task::consume_budget().await;
        }
        Ok(pieces)
    }

    /// The table and, side by side with it, the columns.
    async fn left(self: &Arc<Self>, pieces: Vec<Piece>) -> Result<Left> {
        let count: usize = pieces.iter().map(|piece| piece.rows.num_rows()).sum();
        let (pieces, fields) = (Arc::new(pieces), self.join.left_schema.fields());
        let (table, columns) = if count < ALONE {
            let columns = fields.iter().enumerate().map(|(at, field)| column::joined(&pieces, at, field.data_type()));
            (self.table(&pieces, count)?, columns.collect::<Result<Vec<_>>>()?)
        } else {
            let (work, of_table) = (Arc::clone(self), Arc::clone(&pieces));
            let table = spawn_blocking(move || work.table(&of_table, count));
            let column = |(at, field): (usize, &FieldRef)| {
                let (pieces, field) = (Arc::clone(&pieces), Arc::clone(field));
                spawn_blocking(move || column::joined(&pieces, at, field.data_type()))
            };
            let waiting: Vec<_> = fields.iter().enumerate().map(column).collect();
            let mut columns = Vec::with_capacity(waiting.len());
            for column in waiting {
                columns.push(column.await.map_err(from_join)??);
            }
            (table.await.map_err(from_join)??, columns)
        };
        drop(pieces);
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let rows = RecordBatch::try_new_with_options(Arc::clone(&self.join.left_schema), columns, &options)?;
        let words = if self.join.needs_left_at_end() { count.div_ceil(64) } else { 0 };
        let mut memory = std::mem::replace(&mut *lock(&self.memory), self.budget.open(CONSUMER));
        memory.shrink(memory.bytes() / 2);
        memory.try_grow(8 * words as u64).map_err(|error| from_exec(error.into()))?;
        let coded = rows.columns().iter().map(column::coded).collect();
        Ok(Left { table, rows, coded, visited: (0..words).map(|_| AtomicU64::new(0)).collect(), memory })
    }

    fn table(&self, pieces: &[Piece], count: usize) -> Result<Table> {
        let join = &self.join;
        let meaning = |data_type| {
            let meaning = Meaning::of(data_type, &self.budget);
            meaning.ok_or_else(|| datafusion_common::internal_datafusion_err!("values of {data_type} are no keys"))
        };
        let meanings = join.types.iter().map(meaning).collect::<Result<Vec<_>>>()?;
        let ranges = join.left.iter().zip(&meanings).map(|(key, meaning)| range(key, meaning, &self.input));
        let ranges = ranges.collect::<Result<Vec<Bounds>>>()?;
        let mut builder = Builder::new(meanings, &ranges, join.nulls_match, count, &self.budget);
        for piece in pieces {
            builder.push(&piece.keys, piece.rows.num_rows()).map_err(from_exec)?;
        }
        builder.finish().map_err(from_exec)
    }
}

/// The values of some rows.
pub(super) fn batch(schema: &SchemaRef, columns: &[Vector], rows: usize) -> Result<RecordBatch> {
    let arrays = columns.iter().map(|column| column.array().map_err(from_exec)).collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?)
}
