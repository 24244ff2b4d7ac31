//! Rows for own operators: chunks of a scan with its codes, or batches of any other operator.

use std::collections::{HashMap, VecDeque};
use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use datafusion_common::{JoinSide, Result, internal_datafusion_err};
use datafusion_datasource::PartitionedFile;
use datafusion_datasource::file_groups::FileGroup;
use datafusion_datasource::file_scan_config::FileScanConfig;
use datafusion_datasource::source::DataSourceExec;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::Partitioning;
use datafusion_physical_plan::coop::CooperativeExec;
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::repartition::RepartitionExec;
use datafusion_physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion_physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::StreamExt;
use plinth_core::sync::lock;
use plinth_exec::vector::{Coded, Narrow, Vector};
use plinth_exec::{ExecError, Result as ExecResult};
use plinth_format::{Chunk, CodeValues, ScanColumn};
use plinth_profile::{Pause, Profiler};
use tokio::task::JoinHandle;

use super::join::{JoinExec, Probing};
use crate::error::{from_format, from_join};
use crate::evaluated::{Evaluated, Memos};
use crate::opener::{PlinthOpener, Started};
use crate::profile::{Profiled, profiled, spawn_blocking};
use crate::source::PlinthSource;
use crate::split::in_order;

/// Pieces of files that are far which a partition begins before their turn: each waits several times before its first rows.
const AHEAD: usize = 4;

/// What a plan's rows are read from.
pub(super) struct Input {
    plan: Arc<dyn ExecutionPlan>,
    kind: Kind,
    memos: Arc<Memos>,
}

enum Kind {
    /// A scan: pieces of files that no partition has taken yet, and all pieces, to ask their files.
    Scan(Arc<Mutex<VecDeque<PartitionedFile>>>, Vec<PartitionedFile>),
    /// A join, and what its sides are read from, to ask them.
    Join(Box<Input>, Box<Input>),
    /// Expressions over the rows of another plan.
    Projected(Vec<Evaluated>, Box<Input>),
    /// Batches of whatever the plan is.
    Batches,
}

/// Rows, and their columns.
pub(super) type Rows = (usize, Vec<Vector>);

impl Input {
    /// Rows of a plan; results of its expressions are kept in `memos`.
    pub(super) fn new(plan: &Arc<dyn ExecutionPlan>, memos: &Arc<Memos>) -> Result<Self> {
        let plan = beneath(plan);
        Ok(Self { plan: Arc::clone(plan), kind: Kind::of(plan, memos)?, memos: Arc::clone(memos) })
    }

    /// The same for a plan whose rows are read by all threads, however many parts they come in: what deals a scan's rows out
    /// again is passed over.
    pub(super) fn of_any_parts(plan: &Arc<dyn ExecutionPlan>, memos: &Arc<Memos>) -> Result<Self> {
        let inner = beneath(plan);
        match inner.downcast_ref::<RepartitionExec>() {
            Some(dealt)
                if matches!(dealt.partitioning(), Partitioning::RoundRobinBatch(_)) && is_scan(dealt.input()) =>
            {
                Self::new(dealt.input(), memos)
            }
            _ => Self::new(inner, memos),
        }
    }

    /// Threads that can read it side by side.
    pub(super) fn partitions(&self) -> usize {
        self.plan.output_partitioning().partition_count()
    }

    /// What is scanned.
    fn scan(&self) -> Option<(&FileScanConfig, &PlinthSource)> {
        scan(&self.plan)
    }

    /// The dictionary that all rows of a column are coded by, if there is one.
    pub(super) fn sole_dictionary(&self, column: usize) -> Result<Option<Arc<dyn Coded>>> {
        match &self.kind {
            Kind::Scan(_, parts) => {
                let Some((_, source)) = self.scan() else { return Ok(None) };
                let sole = source.sole_dictionary(parts, column)?;
                Ok(sole.map(|values| Arc::new(Codes(values)) as Arc<dyn Coded>))
            }
            // Columns of the side that is gathered come as values.
            Kind::Join(_, right) => match self.plan.downcast_ref::<JoinExec>().and_then(|join| join.origin(column)) {
                Some((JoinSide::Right, column)) => right.sole_dictionary(column),
                _ => Ok(None),
            },
            Kind::Projected(exprs, input) => match exprs.get(column) {
                Some(Evaluated::Column(column)) => input.sole_dictionary(*column),
                _ => Ok(None),
            },
            Kind::Batches => Ok(None),
        }
    }

    /// A name of a column whose rows are all codes of dictionaries, of which there are several.
    pub(super) fn coded_column(&self, column: usize) -> Result<Option<String>> {
        match &self.kind {
            Kind::Scan(_, parts) => self.scan().map_or(Ok(None), |(_, source)| source.coded_column(parts, column)),
            _ => Ok(None),
        }
    }

    /// The bounds of a column's integers, as far as they are known.
    pub(super) fn integers(&self, column: usize) -> Result<Option<(i128, i128)>> {
        match &self.kind {
            Kind::Scan(_, parts) => self.scan().map_or(Ok(None), |(_, source)| source.integers(parts, column)),
            Kind::Join(left, right) => {
                match self.plan.downcast_ref::<JoinExec>().and_then(|join| join.origin(column)) {
                    Some((JoinSide::Left, column)) => left.integers(column),
                    Some((JoinSide::Right, column)) => right.integers(column),
                    _ => Ok(None),
                }
            }
            Kind::Projected(exprs, input) => match exprs.get(column) {
                Some(Evaluated::Column(column)) => input.integers(*column),
                _ => Ok(None),
            },
            Kind::Batches => Ok(None),
        }
    }

    /// The file whose rows these are, if it tells that they come in the order of a column's integers, none of which is null; its name.
    pub(super) fn ascending(&self, column: usize) -> Result<Option<String>> {
        match &self.kind {
            Kind::Scan(_, parts) => self.scan().map_or(Ok(None), |(_, source)| source.ascending(parts, column)),
            Kind::Join(..) | Kind::Projected(..) | Kind::Batches => Ok(None),
        }
    }

    /// A column's type.
    pub(super) fn data_type(&self, column: usize) -> Option<DataType> {
        self.plan.schema().fields().get(column).map(|field| field.data_type().clone())
    }

    /// A column's name.
    pub(super) fn name(&self, column: usize) -> String {
        self.plan.schema().fields().get(column).map_or_else(|| column.to_string(), |field| field.name().clone())
    }

    /// How many different values columns of a scan have, as far as statistics tell, and how many rows there are.
    pub(super) fn distinct(&self, columns: &[Option<usize>]) -> (Vec<Option<usize>>, Option<usize>) {
        let statistics = match &self.kind {
            Kind::Scan(..) => StatisticsContext::new().compute(self.plan.as_ref(), &StatisticsArgs::new()).ok(),
            _ => None,
        };
        let Some(statistics) = statistics else { return (vec![None; columns.len()], None) };
        let of = |column: usize| statistics.column_statistics.get(column)?.distinct_count.get_value().copied();
        let columns = columns.iter().map(|column| column.and_then(of));
        (columns.collect(), statistics.num_rows.get_value().copied())
    }

    /// The rows of a partition.
    pub(super) fn rows(&self, partition: usize, context: &Arc<TaskContext>) -> Result<Source> {
        // Batches come by `execute`, which records its work itself.
        let profiled = if matches!(self.kind, Kind::Batches) { None } else { profiled(&self.plan) };
        let scope = profiled.as_ref().map(Profiled::scope);
        let from = self.from(partition, context)?;
        drop(scope);
        Ok(Source { from, profiled })
    }

    fn from(&self, partition: usize, context: &Arc<TaskContext>) -> Result<From> {
        match &self.kind {
            Kind::Scan(pieces, _) => {
                let (config, source) = self.scan().ok_or_else(|| internal_datafusion_err!("a scan that is none"))?;
                let store = context.runtime_env().object_store(&config.object_store_url)?;
                let opener = PlinthOpener { narrow: true, ..source.opener(&store, config, partition)? };
                let (left, memos) = (Arc::clone(pieces), Arc::clone(&self.memos));
                let partitions = self.partitions();
                Ok(From::Scan(Box::new(Pieces {
                    opener,
                    left,
                    partitions,
                    memos,
                    begun: VecDeque::new(),
                    number: 0,
                    now: None,
                })))
            }
            Kind::Join(..) => {
                let join = self.plan.downcast_ref::<JoinExec>();
                let join = join.ok_or_else(|| internal_datafusion_err!("a join that is none"))?;
                Ok(From::Join(Box::new(join.rows(partition, context)?)))
            }
            Kind::Projected(exprs, input) => {
                let (exprs, memos) = (exprs.clone(), Arc::clone(&self.memos));
                Ok(From::Projected { exprs, memos, rows: Box::new(input.rows(partition, context)?) })
            }
            Kind::Batches => Ok(From::Batches(self.plan.execute(partition, Arc::clone(context))?)),
        }
    }
}

impl Kind {
    fn of(plan: &Arc<dyn ExecutionPlan>, memos: &Arc<Memos>) -> Result<Self> {
        // A limit counts the rows of each part.
        if let Some((config, _)) = scan(plan).filter(|(config, _)| config.limit.is_none()) {
            let parts = in_order(config.file_groups.iter().flat_map(FileGroup::iter).cloned().collect());
            if !parts.is_empty() {
                return Ok(Self::Scan(Arc::new(Mutex::new(parts.iter().cloned().collect())), parts));
            }
        }
        if let Some(join) = plan.downcast_ref::<JoinExec>() {
            let (left, right) = join.sides();
            return Ok(Self::Join(Box::new(Input::new(left, memos)?), Box::new(Input::new(right, memos)?)));
        }
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let input = Input::new(projection.input(), memos)?;
            // Batches may as well be computed by the engine.
            if !matches!(input.kind, Self::Batches) {
                let schema = projection.input().schema();
                let exprs = projection.expr().iter().map(|expr| Evaluated::new(&expr.expr, &schema));
                return Ok(Self::Projected(exprs.collect::<Result<_>>()?, Box::new(input)));
            }
        }
        Ok(Self::Batches)
    }
}

/// What gives the rows, beneath what only lets other tasks run.
fn beneath(plan: &Arc<dyn ExecutionPlan>) -> &Arc<dyn ExecutionPlan> {
    match plan.downcast_ref::<CooperativeExec>() {
        Some(cooperative) => beneath(cooperative.input()),
        None => plan,
    }
}

fn scan(plan: &Arc<dyn ExecutionPlan>) -> Option<(&FileScanConfig, &PlinthSource)> {
    plan.downcast_ref::<DataSourceExec>()?.downcast_to_file_source()
}

fn is_scan(plan: &Arc<dyn ExecutionPlan>) -> bool {
    scan(beneath(plan)).is_some()
}

/// The rows of a partition.
pub(super) struct Source {
    from: From,
    /// What records the work, if it is recorded here.
    profiled: Option<Profiled>,
}

enum From {
    Scan(Box<Pieces>),
    Join(Box<Probing>),
    Projected { exprs: Vec<Evaluated>, memos: Arc<Memos>, rows: Box<Source> },
    Batches(SendableRecordBatchStream),
}

impl Source {
    /// The next rows. None at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Rows>> {
        let Some(profiled) = &self.profiled else { return self.from.next().await };
        let mut next = Box::pin(self.from.next());
        poll_fn(|context| {
            let scope = profiled.scope();
            let next = next.as_mut().poll(context);
            if let Poll::Ready(Ok(Some((rows, _)))) = &next {
                scope.rows(*rows as u64);
            }
            next
        })
        .await
    }

    /// The piece of a scan that the last rows were of.
    pub(super) fn piece(&self) -> usize {
        match &self.from {
            From::Scan(pieces) => pieces.number,
            From::Projected { .. } | From::Join(_) | From::Batches(_) => 0,
        }
    }
}

impl From {
    async fn next(&mut self) -> Result<Option<Rows>> {
        match self {
            Self::Scan(pieces) => pieces.next().await,
            // A join may read one, and that another.
            Self::Join(probing) => Box::pin(probing.next()).await,
            Self::Projected { exprs, memos, rows } => {
                let Some((count, columns)) = Box::pin(rows.next()).await? else { return Ok(None) };
                let columns = exprs.iter().map(|expr| expr.evaluate(&columns, count, memos));
                Ok(Some((count, columns.collect::<Result<_>>()?)))
            }
            Self::Batches(batches) => {
                let Some(batch) = batches.next().await.transpose()? else { return Ok(None) };
                let columns = batch.columns().iter().map(|column| Vector::Array(Arc::clone(column)));
                Ok(Some((batch.num_rows(), columns.collect())))
            }
        }
    }
}

/// Pieces of files, taken from those that are left for all.
pub(super) struct Pieces {
    opener: PlinthOpener,
    left: Arc<Mutex<VecDeque<PartitionedFile>>>,
    /// Who take them.
    partitions: usize,
    memos: Arc<Memos>,
    /// Pieces of files that are far, whose first reads are under way.
    begun: VecDeque<JoinHandle<Result<Option<Started>>>>,
    /// Pieces that were begun.
    number: usize,
    now: Option<Piece>,
}

/// A piece that is being scanned.
pub(super) struct Piece {
    started: Started,
    /// The output columns.
    evaluated: Vec<Evaluated>,
    /// By output column of the scan and identity of the dictionary.
    dictionaries: HashMap<(usize, usize), Arc<dyn Coded>>,
    /// While it waits for storage.
    pause: Option<Pause>,
}

impl Pieces {
    async fn next(&mut self) -> Result<Option<Rows>> {
        loop {
            if let Some(piece) = &mut self.now {
                match piece.chunk().await? {
                    Some(chunk) => return piece.rows(chunk, &self.memos).map(Some),
                    None => self.now = None,
                }
            }
            let started = match self.begun.pop_front() {
                Some(begun) => {
                    self.begin_ahead();
                    begun.await.map_err(from_join)??
                }
                None => {
                    let Some(part) = lock(&self.left).pop_front() else { return Ok(None) };
                    if self.opener.is_far(&part) {
                        self.begin_one(part);
                        continue;
                    }
                    self.opener.begin(&part)?
                }
            };
            self.number += 1;
            self.now = started.map(Piece::new).transpose()?;
        }
    }

    fn begin_one(&mut self, part: PartitionedFile) {
        let opener = self.opener.clone();
        self.begun.push_back(spawn_blocking(move || opener.begin(&part)));
    }

    /// Begins with pieces that are far before their turn, as long as there is one for each partition.
    fn begin_ahead(&mut self) {
        while self.begun.len() < AHEAD {
            let next = {
                let mut left = lock(&self.left);
                let is_spare = left.len() >= self.partitions;
                let is_far = left.front().is_some_and(|part| self.opener.is_far(part));
                if is_spare && is_far { left.pop_front() } else { None }
            };
            let Some(part) = next else { return };
            self.begin_one(part);
        }
    }
}

impl Piece {
    pub(super) fn new(started: Started) -> Result<Self> {
        let evaluated = started.projection.evaluated()?;
        Ok(Self { started, evaluated, dictionaries: HashMap::new(), pause: None })
    }

    /// The next rows that passed. None at the end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Chunk>> {
        poll_fn(|context| self.poll(context)).await.transpose()
    }

    fn poll(&mut self, context: &Context<'_>) -> Poll<Option<Result<Chunk>>> {
        self.pause = None;
        let Poll::Ready(next) = self.started.scan.poll_chunk(context.waker()) else {
            self.pause = Some(Profiler::current().pause());
            return Poll::Pending;
        };
        self.started.reporter.report();
        Poll::Ready(next.map(|chunk| chunk.map_err(from_format)))
    }

    /// The rows of a chunk, as the plan's output has them.
    pub(super) fn rows(&mut self, chunk: Chunk, memos: &Memos) -> Result<Rows> {
        let Started { scan, projection, .. } = &self.started;
        let vector = |(at, column): (usize, ScanColumn)| match column {
            ScanColumn::Arrow(array) => Ok(Vector::Array(array)),
            ScanColumn::Narrow { values, nulls } => match scan.schema().field(at).data_type() {
                DataType::Decimal128(precision, scale) => {
                    Ok(Vector::Narrow(Narrow { values, nulls, precision: *precision, scale: *scale }))
                }
                other => Err(internal_datafusion_err!("a column of {other} came as decimals")),
            },
            ScanColumn::Codes { ids, nulls, dictionary } => {
                let identity = Arc::as_ptr(&dictionary).addr();
                let known = match self.dictionaries.get(&(at, identity)) {
                    Some(known) => Arc::clone(known),
                    None => {
                        let values = scan.code_values(at, &dictionary).ok_or_else(|| {
                            datafusion_common::internal_datafusion_err!("column {at} of a scan has codes and no place")
                        })?;
                        let values: Arc<dyn Coded> = Arc::new(Codes(values));
                        self.dictionaries.insert((at, identity), Arc::clone(&values));
                        values
                    }
                };
                Ok(Vector::Codes { ids, nulls, dictionary: known })
            }
        };
        let leaves = chunk.columns.into_iter().enumerate().map(vector).collect::<Result<Vec<_>>>()?;
        let leaves = projection.typed(leaves)?;
        let columns = self.evaluated.iter().map(|expr| expr.evaluate(&leaves, chunk.rows, memos));
        Ok((chunk.rows, columns.collect::<Result<_>>()?))
    }
}

/// A file's dictionary as operators know it.
#[derive(Debug)]
struct Codes(CodeValues);

impl Coded for Codes {
    fn len(&self) -> usize {
        self.0.dictionary().len()
    }

    fn identity(&self) -> usize {
        Arc::as_ptr(self.0.dictionary()).addr()
    }

    fn is_ordered(&self) -> bool {
        true
    }

    fn codes(&self, values: &ArrayRef) -> ExecResult<Vec<u32>> {
        let bytes = arrow_cast::cast(values, &DataType::BinaryView)?;
        let (mut known, mut codes): (HashMap<&[u8], u32>, _) = (HashMap::new(), Vec::with_capacity(values.len()));
        for value in bytes.as_binary_view() {
            let code = match value.map(|value| (value, known.get(value).copied())) {
                None => 0,
                Some((_, Some(code))) => code,
                Some((value, None)) => {
                    let found = self.0.dictionary().find(value).map_err(ExecError::source)?;
                    let missing = || ExecError::internal("a value that the column's dictionary does not have");
                    let code = found.ok_or_else(missing)?;
                    known.insert(value, code);
                    code
                }
            };
            codes.push(code);
        }
        Ok(codes)
    }

    fn values(&self, codes: &[u32], nulls: Option<&NullBuffer>) -> ExecResult<ArrayRef> {
        self.0.values(codes, nulls).map_err(ExecError::source)
    }

    fn lent(&self, codes: &[u32], nulls: Option<&NullBuffer>) -> ExecResult<ArrayRef> {
        self.0.lent(codes, nulls).map_err(ExecError::source)
    }
}
