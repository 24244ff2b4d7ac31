//! The left side of a join: gathered once, for all partitions of the right one.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arrow_array::{RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_schema::{FieldRef, SchemaRef};
use arrow_select::take::take;
use datafusion_common::{DataFusionError, Result, internal_datafusion_err, internal_err};
use datafusion_common_runtime::JoinSet;
use datafusion_execution::TaskContext;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::joins::HashJoinExec;
use datafusion_physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder};
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use plinth_core::sync::lock;
use plinth_exec::ExecError;
use plinth_exec::join::{CONSUMER, Table};
use plinth_exec::vector::{Coded, Vector};
use plinth_io::{MemoryBudget, Reservation};

use super::asked::Asked;
use super::outgrown::Merging;
use super::table::Making;
use super::{Join, column};
use crate::error::{from_exec, from_join};
use crate::evaluated::Memos;
use crate::native::condition;
use crate::native::input::{Input, Source};
use crate::profile::spawn_blocking;

/// Rows up to which one thread makes all of the table.
const ALONE: usize = 1 << 15;

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

/// The left side: gathered, or too large for that.
pub(super) enum Side {
    Gathered(Box<Left>),
    /// The join by another way, in as many partitions as it has.
    Merged(Arc<dyn ExecutionPlan>),
}

impl Side {
    /// What was gathered.
    pub(super) fn gathered(&self) -> Result<&Left> {
        match self {
            Self::Gathered(left) => Ok(left),
            Self::Merged(_) => internal_err!("a side that was not gathered is looked up in"),
        }
    }
}

type Shareable = Result<Arc<Side>, Arc<DataFusionError>>;

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
        engine: &HashJoinExec,
        merging: Merging,
        metrics: ExecutionPlanMetricsSet,
        budget: &Arc<MemoryBudget>,
        context: &Arc<TaskContext>,
    ) -> Result<Self> {
        let (memos, partitions) = (Arc::new(Memos::new(budget)), merging.partitions());
        // Sides that are gathered one above the other have a half, a quarter, and so on: something is left for the rest.
        let gathered: u64 =
            budget.usage().iter().filter(|usage| *usage.consumer == *CONSUMER).map(|usage| usage.used).sum();
        let work = Work {
            join: Arc::clone(join),
            merging,
            input: Input::of_any_parts(engine.left(), &memos)?,
            memos: Arc::clone(&memos),
            budget: Arc::clone(budget),
            most: budget.limit().saturating_sub(gathered) / 2,
            context: Arc::clone(context),
            memory: Mutex::new(budget.open(CONSUMER)),
            metrics,
        };
        let gathering = async move { Arc::new(work).gather().await.map(Arc::new).map_err(Arc::new) };
        let right = Input::new(engine.right(), &memos)?;
        Ok(Self { left: gathering.boxed().shared(), right, memos, running: AtomicUsize::new(partitions) })
    }

    /// The left side, once it is gathered.
    pub(super) async fn left(&self) -> Result<Arc<Side>> {
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
    merging: Merging,
    input: Input,
    memos: Arc<Memos>,
    budget: Arc<MemoryBudget>,
    /// Bytes that the side may take.
    most: u64,
    context: Arc<TaskContext>,
    memory: Mutex<Reservation>,
    metrics: ExecutionPlanMetricsSet,
}

/// Rows, and their keys.
pub(super) struct Piece {
    pub(super) keys: Vec<Vector>,
    pub(super) rows: RecordBatch,
}

impl Work {
    async fn gather(self: Arc<Self>) -> Result<Side> {
        let (mut tasks, full) = (JoinSet::new(), Arc::new(AtomicBool::new(false)));
        for partition in 0..self.input.partitions() {
            let (work, full, source) =
                (Arc::clone(&self), Arc::clone(&full), self.input.rows(partition, &self.context)?);
            tasks.spawn(async move { work.read(source, &full).await });
        }
        let (mut pieces, mut rest) = (Vec::new(), Vec::new());
        while let Some(read) = tasks.join_next().await {
            let (read, left) = read.map_err(from_join)??;
            pieces.extend(read);
            rest.extend(left);
        }
        let pieces = Arc::new(pieces);
        let left = if rest.is_empty() { self.left(&pieces).await? } else { None };
        let join = &self.join;
        let Some(mut left) = left else {
            MetricBuilder::new(&self.metrics).global_counter("sides_outgrown").add(1);
            for filter in join.filter.iter().chain(join.asked.as_ref().map(Asked::filter)) {
                filter.mark_complete();
            }
            let pieces =
                Arc::into_inner(pieces).ok_or_else(|| internal_datafusion_err!("rows are kept for no table"))?;
            let plan = self.merging.plan(pieces, rest, &self.metrics, &self.context).await?;
            *lock(&self.memory) = self.budget.open(CONSUMER);
            return Ok(Side::Merged(plan));
        };
        drop(pieces);
        {
            let mut memory = lock(&self.memory);
            let half = memory.bytes() / 2;
            memory.shrink(half);
            left.memory = std::mem::replace(&mut *memory, self.budget.open(CONSUMER));
        }
        if let Some(filter) = &join.filter {
            let (exprs, memory) = (&join.filtered, &mut left.memory);
            let exprs = exprs.iter().enumerate();
            filter.update(condition::of_keys(&left.table, exprs, &join.types, &join.right_schema, memory)?)?;
            filter.mark_complete();
        }
        if let Some(asked) = &join.asked {
            asked.answer(&left.table, &join.types, &mut left.memory)?;
        }
        Ok(Side::Gathered(Box::new(left)))
    }

    /// The rows of a partition, and what is left of it once the side has no more room.
    async fn read(&self, mut source: Source, full: &AtomicBool) -> Result<(Vec<Piece>, Option<Source>)> {
        let join = &self.join;
        let mut pieces = Vec::new();
        while let Some((count, columns)) = source.next().await? {
            let keys = join.left.iter().map(|key| key.evaluate(&columns, count, &self.memos));
            let keys = keys.collect::<Result<Vec<_>>>()?;
            let rows = batch(&join.left_schema, &columns, count)?;
            let bytes = rows.columns().iter().map(|column| column.to_data().get_slice_memory_size().unwrap_or(0));
            // And once more while pieces become one.
            let bytes = 2 * bytes.sum::<usize>() as u64;
            let taken = {
                let mut memory = lock(&self.memory);
                memory.bytes() + bytes <= self.most && memory.try_grow(bytes).is_ok()
            };
            pieces.push(Piece { keys, rows });
            if !taken {
                full.store(true, Ordering::Relaxed);
            }
            if full.load(Ordering::Relaxed) {
                return Ok((pieces, Some(source)));
            }
            tokio::task::consume_budget().await;
        }
        Ok((pieces, None))
    }

    /// The table and, side by side with it, the columns. None if there is no memory for them.
    async fn left(&self, pieces: &Arc<Vec<Piece>>) -> Result<Option<Left>> {
        let count: usize = pieces.iter().map(|piece| piece.rows.num_rows()).sum();
        let threads = if count < ALONE { 1 } else { self.context.session_config().target_partitions() };
        let making = Making::new(&self.join, &self.input, count, threads, &self.budget)?;
        let fields = self.join.left_schema.fields();
        let (table, columns) = if threads == 1 {
            let columns = fields.iter().enumerate().map(|(at, field)| column::joined(pieces, at, field.data_type()));
            (making.table(pieces).await, columns.collect::<Result<Vec<_>>>()?)
        } else {
            let column = |(at, field): (usize, &FieldRef)| {
                let (pieces, field) = (Arc::clone(pieces), Arc::clone(field));
                spawn_blocking(move || column::joined(&pieces, at, field.data_type()))
            };
            let waiting: Vec<_> = fields.iter().enumerate().map(column).collect();
            let table = making.table(pieces).await;
            let mut columns = Vec::with_capacity(waiting.len());
            for column in waiting {
                columns.push(column.await.map_err(from_join)??);
            }
            (table, columns)
        };
        let words = if self.join.needs_left_at_end() { count.div_ceil(64) } else { 0 };
        let table = match table {
            Ok(table) if lock(&self.memory).try_grow(2 * 8 * words as u64).is_ok() => table,
            Err(error) if !matches!(error, ExecError::Memory(_)) => return Err(from_exec(error)),
            _ => return Ok(None),
        };
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let rows = RecordBatch::try_new_with_options(Arc::clone(&self.join.left_schema), columns, &options)?;
        let (coded, memory) = (rows.columns().iter().map(column::coded).collect(), self.budget.open(CONSUMER));
        Ok(Some(Left { table, rows, coded, visited: (0..words).map(|_| AtomicU64::new(0)).collect(), memory }))
    }
}

/// The values of some rows.
pub(super) fn batch(schema: &SchemaRef, columns: &[Vector], rows: usize) -> Result<RecordBatch> {
    let arrays = columns.iter().map(|column| column.array().map_err(from_exec)).collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?)
}
