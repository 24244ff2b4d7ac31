//! A running aggregate: a task for each partition of the input, and the groups that come of them.
//!
//! The tasks begin when the first of the output's partitions is asked for rows, and end when all of these are gone. Where memory is refused, a
//! task passes its groups on to the [fallback](super::fallback); from then on all groups of all tasks take that way.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use datafusion_common::{DataFusionError, Result, internal_datafusion_err};
use datafusion_common_runtime::JoinSet;
use datafusion_execution::TaskContext;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::aggregates::AggregateExec;
use datafusion_physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use plinth_core::sync::lock;
use plinth_exec::ExecError;
use plinth_exec::domains::Domains;
use plinth_exec::grouping::{Division, Firsts, Grouping, Merge, Top};
use plinth_io::{MemoryBudget, Reservation};
use tokio::sync::{mpsc, watch};

use super::fallback::{States, fallback};
use super::input::{Input, Rows, Source};
use super::ordered::{Ordered, Progress, parted};
use super::plan::{Meanings, Plan};
use crate::error::{from_exec, from_join};
use crate::evaluated::Memos;

/// Rows of a batch of states.
const STATES: usize = 8192;

/// Of the memory, in sixteenths, what is kept for groups that have to give way: the shares of the threads, and what becomes of the
/// groups, which begins while text that all threads share is held.
const ROOM: u64 = SHARES + 1;
/// Of these the shares of the threads.
const SHARES: u64 = 2;

/// What is to be run.
pub(super) struct Work {
    pub(super) plan: Plan,
    pub(super) input: Input,
    pub(super) memos: Arc<Memos>,
    /// The engine's aggregate, for groups that do not fit.
    pub(super) last: AggregateExec,
    pub(super) context: Arc<TaskContext>,
    pub(super) budget: Arc<MemoryBudget>,
    /// What numbers of text meant in queries before.
    pub(super) domains: Arc<Domains>,
    /// Partitions of the output.
    pub(super) partitions: usize,
    /// Whether groups may leave before all rows are read: all of them are wanted.
    pub(super) all: bool,
    pub(super) metrics: ExecutionPlanMetricsSet,
}

/// How far it is.
#[derive(Clone)]
enum Phase {
    /// Rows are read.
    Reading,
    /// The groups are there.
    Grouped(Arc<Groups>),
    /// Memory was refused: the plan gives the result.
    GivingWay(Arc<dyn ExecutionPlan>),
    Failed(Arc<DataFusionError>),
}

/// The groups, which the output's partitions take part by part.
pub(super) struct Groups {
    kept: Kept,
    next: AtomicUsize,
}

enum Kept {
    /// Of one thread.
    Sole(Mutex<Option<Box<Grouping>>>),
    /// Of several.
    Several(Box<Merge>, Mutex<Gathering>),
}

/// The first groups of the parts that were merged, until it is known which are the first of all.
struct Gathering {
    firsts: Option<Box<Firsts>>,
    /// Parts that are not merged yet.
    parts: usize,
}

/// What a partition of the output takes.
pub(super) enum Part {
    /// Groups, and those that are wanted.
    Groups(Box<Grouping>, Vec<u32>),
    /// Keys and results, one array a column.
    Values(Vec<ArrayRef>),
}

/// More first groups than this of a part leave at once.
const FIRSTS: usize = 1024;

/// Where the result is.
pub(super) enum Outcome {
    Groups(Arc<Groups>),
    Plan(Arc<dyn ExecutionPlan>),
}

/// Groups that are complete.
pub(super) type Complete = Arc<tokio::sync::Mutex<mpsc::Receiver<Box<Grouping>>>>;

/// A running aggregate.
pub(super) struct Running {
    phase: watch::Receiver<Phase>,
    /// Where groups come that leave before the others.
    complete: Option<Complete>,
    /// Ends with the last partition of the output.
    _tasks: JoinSet<()>,
}

/// Memory of a thread whose groups give way again and again: a small share, so that most of it is for what becomes of them.
struct Own {
    budget: Arc<MemoryBudget>,
    /// The same, in the budget of all.
    _counted: Reservation,
}

impl Own {
    fn new(all: &Arc<MemoryBudget>, threads: usize) -> Self {
        let bytes = all.limit() / 16 * SHARES / threads.max(1) as u64;
        let mut counted = all.open("groups that give way");
        counted.charge(bytes);
        Self { budget: MemoryBudget::new(bytes), _counted: counted }
    }
}

/// A thread's groups, and its memory where they give way.
struct Tables {
    grouping: Grouping,
    own: Option<Own>,
}

impl Tables {
    fn of(grouping: Grouping) -> Self {
        Self { grouping, own: None }
    }
}

/// How groups leave before all rows are read.
#[derive(Clone)]
struct Early {
    /// The key by which rows are ordered.
    ordered: Ordered,
    /// Where groups go that are complete.
    complete: mpsc::Sender<Box<Grouping>>,
    /// How many do.
    count: Count,
}

/// What the tasks share.
struct Shared {
    work: Work,
    /// Gone once groups give way.
    meanings: Mutex<Option<Meanings>>,
    phase: watch::Sender<Phase>,
    /// Where groups go that give way.
    states: OnceLock<States>,
    /// One at a time decides that.
    giving_way: Mutex<()>,
    /// Kept for the first of these, which come while all memory is taken.
    room: Mutex<Option<Reservation>>,
    /// If groups leave before all rows are read; gone once the tasks have it.
    early: Option<Early>,
}

impl Running {
    /// Starts the tasks.
    pub(super) fn start(work: Work) -> Result<Self> {
        let meanings = Mutex::new(Some(work.plan.meanings(&work.input, &work.budget, Some(&work.domains))?));
        let (phase, receiver) = watch::channel(Phase::Reading);
        let sources = (0..work.input.partitions()).map(|partition| work.input.rows(partition, &work.context));
        let sources = sources.collect::<Result<Vec<_>>>()?;
        let room = Mutex::new(work.budget.reserve("groups that give way", work.budget.limit() / 16 * ROOM).ok());
        let giving_way = Mutex::new(());
        let ordered = if work.all { Ordered::of(&work.plan, &work.input)? } else { None };
        let (sender, complete) = mpsc::channel(work.partitions.max(1));
        let complete = ordered.is_some().then(|| Arc::new(tokio::sync::Mutex::new(complete)));
        let early = ordered.map(|ordered| {
            let count = MetricBuilder::new(&work.metrics).global_counter("groups_complete_early");
            Early { ordered, complete: sender, count }
        });
        let shared = Shared { work, meanings, phase, states: OnceLock::new(), giving_way, room, early };
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { shared.run(sources).await });
        Ok(Self { phase: receiver, complete, _tasks: tasks })
    }

    /// Groups that leave before all rows are read, if there are such.
    pub(super) fn complete(&self) -> Option<Complete> {
        self.complete.clone()
    }

    /// Waits until the result can be read.
    pub(super) async fn outcome(&self) -> Result<Outcome> {
        let mut phase = self.phase.clone();
        let ended = |_| internal_datafusion_err!("an aggregate ended without a result");
        let phase = phase.wait_for(|phase| !matches!(phase, Phase::Reading)).await.map_err(ended)?;
        match &*phase {
            Phase::Grouped(groups) => Ok(Outcome::Groups(Arc::clone(groups))),
            Phase::GivingWay(plan) => Ok(Outcome::Plan(Arc::clone(plan))),
            Phase::Failed(error) => Err(DataFusionError::Shared(Arc::clone(error))),
            Phase::Reading => Err(internal_datafusion_err!("an aggregate that reads has a result")),
        }
    }
}

impl Shared {
    async fn run(mut self, sources: Vec<Source>) {
        let early = self.early.take();
        let shared = Arc::new(self);
        let ended = match shared.gather(sources, early).await {
            Ok(groupings) => shared.finish(groupings).await,
            Err(error) => Err(error),
        };
        if let Err(error) = ended {
            let Self { states, phase, .. } = &*shared;
            match states.get() {
                // Those who read the states have the error then.
                Some(states) => drop(states.send(Err(error)).await),
                None => drop(phase.send(Phase::Failed(Arc::new(error)))),
            }
        }
    }

    /// The groups of each source.
    async fn gather(self: &Arc<Self>, sources: Vec<Source>, early: Option<Early>) -> Result<Vec<Grouping>> {
        let mut tasks = JoinSet::new();
        for source in sources {
            let (shared, early) = (Arc::clone(self), early.clone());
            tasks.spawn(async move {
                match early {
                    Some(early) => shared.group_in_order(source, &early).await,
                    None => shared.group(source).await.map(|grouping| vec![grouping]),
                }
            });
        }
        // Those who wait for groups that are complete are told that no more come.
        drop(early);
        let mut groupings = Vec::new();
        while let Some(grouping) = tasks.join_next().await {
            groupings.extend(grouping.map_err(from_join)??);
        }
        Ok(groupings)
    }

    /// Groups the rows of a source that come in the order of their key.
    async fn group_in_order(&self, mut source: Source, early: &Early) -> Result<Vec<Grouping>> {
        let ordered = &early.ordered;
        let (meanings, mut progress) = (self.meanings()?, Progress::new(ordered));
        let fresh = |from: i64| {
            let meanings = meanings.of_few(ordered.key, ordered.range(from));
            Ok::<_, DataFusionError>(Tables::of(self.work.plan.grouping(&meanings, &self.work.budget)?))
        };
        let mut tables = fresh(0)?;
        let mut kept = Vec::new();
        while let Some(rows) = source.next().await? {
            let step = progress.step(&rows, source.piece())?;
            if step.begins {
                kept.push(self.last(std::mem::replace(&mut tables, fresh(step.from)?)).await?);
            }
            let Some(cut) = step.cut else {
                tables = self.push(tables, &rows).await?;
                continue;
            };
            let (before, rows) = parted(&rows, cut.at);
            let full = self.push(tables, &before).await?;
            tables = fresh(cut.key)?;
            if cut.kept || full.own.is_some() {
                kept.push(self.last(full).await?);
            } else {
                early.count.add(full.grouping.len());
                if early.complete.send(Box::new(full.grouping)).await.is_err() {
                    return Err(internal_datafusion_err!("groups are read no more"));
                }
            }
            tables = self.push(tables, &rows).await?;
        }
        kept.push(self.last(tables).await?);
        Ok(kept)
    }

    /// Groups the rows of a source.
    async fn group(&self, mut source: Source) -> Result<Grouping> {
        let Work { plan, budget, .. } = &self.work;
        let mut tables = Tables::of(plan.grouping(&self.meanings()?, budget)?);
        while let Some(rows) = source.next().await? {
            tables = self.push(tables, &rows).await?;
        }
        self.last(tables).await
    }

    /// Groups rows with those there are.
    async fn push(&self, tables: Tables, rows: &Rows) -> Result<Tables> {
        let Work { plan, budget, input, memos, partitions, .. } = &self.work;
        let Tables { mut grouping, mut own } = tables;
        let chunk = plan.chunk(rows, memos)?;
        let gives_way = own.is_none() && self.states.get().is_some();
        let mut pushed = if gives_way { None } else { Some(grouping.push(&chunk)) };
        if matches!(pushed, None | Some(Err(ExecError::Memory(_)))) {
            self.give_way(grouping).await?;
            // Numbers of text are the thread's own from now on: those that all share would have to be kept.
            let share = own.get_or_insert_with(|| Own::new(budget, *partitions));
            grouping = plan.grouping(&plan.meanings(input, &share.budget, None)?, &share.budget)?;
            pushed = Some(grouping.push(&chunk));
            if matches!(pushed, Some(Err(ExecError::Memory(_)))) && rows.0 > 1 {
                // Where a share is too small for all rows at once, half of them may do.
                drop(chunk);
                let (first, second) = parted(rows, rows.0 / 2);
                grouping = plan.grouping(&plan.meanings(input, &share.budget, None)?, &share.budget)?;
                let tables = Box::pin(self.push(Tables { grouping, own }, &first)).await?;
                return Box::pin(self.push(tables, &second)).await;
            }
        }
        pushed.transpose().map_err(from_exec)?;
        tokio::task::consume_budget().await;
        Ok(Tables { grouping, own })
    }

    /// The groups of a thread once no more rows come.
    async fn last(&self, tables: Tables) -> Result<Grouping> {
        let Work { plan, budget, input, .. } = &self.work;
        let Tables { mut grouping, own } = tables;
        if let Some(own) = own {
            // What it holds is counted there.
            self.give_way(grouping).await?;
            grouping = plan.grouping(&plan.meanings(input, budget, None)?, budget)?;
            drop(own);
        }
        Ok(grouping)
    }

    /// What the numbers of keys mean as long as all threads share them.
    fn meanings(&self) -> Result<Meanings> {
        match lock(&self.meanings).as_ref() {
            Some(meanings) => Ok(meanings.clone()),
            None => self.work.plan.meanings(&self.work.input, &self.work.budget, None),
        }
    }

    /// Passes all groups on as states.
    async fn give_way(&self, mut grouping: Grouping) -> Result<()> {
        let states = self.states()?;
        let schema = self.work.last.input().schema();
        for groups in grouping.all().chunks(STATES) {
            let batch = batch_of(&schema, grouping.partial(groups).map_err(from_exec)?)?;
            if states.send(Ok(batch)).await.is_err() {
                return Err(internal_datafusion_err!("the states of groups are read no more"));
            }
        }
        Ok(())
    }

    /// Where states go; the first to ask has the output's partitions look there.
    fn states(&self) -> Result<&States> {
        let _one = lock(&self.giving_way);
        if let Some(states) = self.states.get() {
            return Ok(states);
        }
        let (states, plan) = fallback(&self.work.last, self.work.partitions)?;
        let states = self.states.get_or_init(|| states);
        *lock(&self.meanings) = None;
        *lock(&self.room) = None;
        self.work.memos.give_way();
        self.phase.send_replace(Phase::GivingWay(plan));
        Ok(states)
    }

    async fn finish(&self, mut groupings: Vec<Grouping>) -> Result<()> {
        *lock(&self.room) = None;
        let refused = match self.states.get() {
            Some(_) => true,
            None => !self.merges_within(&groupings),
        };
        if refused {
            for grouping in groupings.into_iter().filter(|grouping| !grouping.is_empty()) {
                self.give_way(grouping).await?;
            }
            return Ok(());
        }
        let first = groupings.pop();
        groupings.retain(|grouping| !grouping.is_empty());
        groupings.extend(first.filter(|first| groupings.is_empty() || !first.is_empty()));
        let kept = if groupings.len() == 1 {
            Kept::Sole(Mutex::new(groupings.pop().map(Box::new)))
        } else {
            let merge = divided(groupings).await?;
            let gathering = Gathering { firsts: None, parts: merge.parts() };
            Kept::Several(Box::new(merge), Mutex::new(gathering))
        };
        self.phase.send_replace(Phase::Grouped(Arc::new(Groups { kept, next: AtomicUsize::new(0) })));
        Ok(())
    }

    /// Whether there is memory to merge: each partition of the output merges a part at a time.
    fn merges_within(&self, groupings: &[Grouping]) -> bool {
        let more = Grouping::merging(groupings, self.work.partitions);
        groupings.len() < 2 || self.work.budget.check("group by", more).is_ok()
    }
}

impl Groups {
    /// The next part, of which those groups are wanted that can be among the first. None if all are taken.
    pub(super) fn next(&self, top: Option<&Top>) -> Result<Option<Part>> {
        loop {
            let part = self.next.fetch_add(1, Ordering::Relaxed);
            let (mut grouping, gathering) = match &self.kept {
                Kept::Sole(grouping) => match lock(grouping).take() {
                    Some(grouping) => (grouping, None),
                    None => return Ok(None),
                },
                Kept::Several(merge, gathering) if part < merge.parts() => {
                    let merged = merge.merged(part).map_err(from_exec)?;
                    (Box::new(merged), (merge.parts() > 1).then_some((merge, gathering)))
                }
                Kept::Several(_, gathering) => return lock(gathering).first(top),
            };
            let Some(top) = top else {
                let all = grouping.all();
                return Ok(Some(Part::Groups(grouping, all)));
            };
            let groups = grouping.top(top).map_err(from_exec)?;
            // Where there is no order, any groups will do.
            let Some((merge, gathering)) = gathering.filter(|_| !top.by.is_empty()) else {
                return Ok(Some(Part::Groups(grouping, groups)));
            };
            let mut gathering = lock(gathering);
            if groups.len() <= FIRSTS {
                let firsts = gathering.firsts.get_or_insert_with(|| Box::new(merge.firsts()));
                firsts.take(*grouping, &groups).map_err(from_exec)?;
                gathering.parts -= 1;
            } else {
                gathering.parts -= 1;
                return Ok(Some(Part::Groups(grouping, groups)));
            }
        }
    }
}

impl Gathering {
    /// The first of all parts, once the last of these is merged: the partition that did it comes back for them.
    fn first(&mut self, top: Option<&Top>) -> Result<Option<Part>> {
        let firsts = if self.parts == 0 { self.firsts.take() } else { None };
        let values = firsts.zip(top).map(|(firsts, top)| firsts.values(top).map(Part::Values));
        values.transpose().map_err(from_exec)
    }
}

/// Divides the groups of several threads, side by side.
async fn divided(groupings: Vec<Grouping>) -> Result<Merge> {
    let division = Arc::new(Division::new(&groupings).map_err(from_exec)?);
    let mut tasks = JoinSet::new();
    for grouping in groupings {
        let division = Arc::clone(&division);
        tasks.spawn(async move { division.divide(grouping) });
    }
    let mut sources = Vec::new();
    while let Some(divided) = tasks.join_next().await {
        sources.push(divided.map_err(from_join)?.map_err(from_exec)?);
    }
    let division = Arc::into_inner(division);
    Ok(Merge::new(division.ok_or_else(|| internal_datafusion_err!("groups are still being divided"))?, sources))
}

/// A batch of arrays; there may be none.
pub(super) fn batch_of(schema: &SchemaRef, arrays: Vec<ArrayRef>) -> Result<RecordBatch> {
    let rows = arrays.first().map_or(1, |array| array.len());
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?)
}
