//! The operator in the place of a partial and a final aggregate.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex};

use arrow_schema::SchemaRef;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{Result, internal_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::expressions::DynamicFilterPhysicalExpr;
use datafusion_physical_expr::{EquivalenceProperties, Partitioning};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use datafusion_physical_plan::aggregates::AggregateExec;
use datafusion_physical_plan::execution_plan::{Boundedness, CardinalityEffect, EmissionType};
use datafusion_physical_plan::filter_pushdown::{ChildFilterDescription, FilterDescription, FilterPushdownPhase};
use datafusion_physical_plan::limit::LimitStream;
use datafusion_physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use futures::stream::{self, StreamExt, TryStreamExt};
use plinth_core::sync::lock;
use plinth_exec::domains::Domains;
use plinth_exec::grouping::{Column, Grouping, Top};

use super::input::Input;
use super::plan::Plan;
use super::run::{Outcome, Part, Running, Work, batch_of};
use crate::error::from_exec;
use crate::evaluated::Memos;

/// Groups rows and computes aggregates of each group.
pub(super) struct GroupExec {
    plan: Plan,
    /// The engine's pair that it stands for.
    last: AggregateExec,
    partial: AggregateExec,
    input: Arc<dyn ExecutionPlan>,
    /// The groups that are wanted, if not all.
    top: Option<Top>,
    /// What a join above asks of the rows that it reads.
    asked: Option<Arc<dyn PhysicalExpr>>,
    domains: Arc<Domains>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    running: Mutex<Run>,
}

/// The run that the output's partitions belong to.
#[derive(Default)]
struct Run {
    running: Option<Arc<OnFirstUse>>,
    /// Partitions that were asked for.
    taken: Vec<bool>,
}

/// A run that starts when its first rows are asked for.
struct OnFirstUse {
    work: Mutex<Option<Work>>,
    running: tokio::sync::OnceCell<Running>,
}

impl OnFirstUse {
    async fn outcome(&self) -> Result<Outcome> {
        self.running().await?.outcome().await
    }

    async fn running(&self) -> Result<&Running> {
        let start = || async {
            match lock(&self.work).take() {
                Some(work) => Running::start(work),
                None => internal_err!("an aggregate that failed to start is asked for rows"),
            }
        };
        self.running.get_or_try_init(start).await
    }
}

impl GroupExec {
    pub(super) fn new(plan: Plan, last: AggregateExec, partial: AggregateExec, domains: Arc<Domains>) -> Self {
        let input = Arc::clone(partial.input());
        let properties = properties(&last, &partial, &input);
        let (metrics, running) = (ExecutionPlanMetricsSet::new(), Mutex::default());
        Self { plan, last, partial, input, top: None, asked: None, domains, properties, metrics, running }
    }

    /// The same groups, of which only the first of an order are wanted.
    pub(super) fn with_top(&self, top: Option<Top>) -> Self {
        Self { top, ..self.over(Arc::clone(&self.input)) }
    }

    /// The same over another input.
    fn over(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self {
            plan: self.plan.clone(),
            last: self.last.clone(),
            partial: self.partial.clone(),
            properties: properties(&self.last, &self.partial, &input),
            input,
            top: self.top.clone(),
            asked: self.asked.clone(),
            domains: Arc::clone(&self.domains),
            metrics: self.metrics.clone(),
            running: Mutex::default(),
        }
    }

    /// The same groups, of whose rows a filter of keys may leave some out; none if that would change which groups are the first.
    pub(super) fn asked(&self, filter: &Arc<DynamicFilterPhysicalExpr>) -> Option<Self> {
        let filter = Arc::clone(filter) as Arc<dyn PhysicalExpr>;
        self.top.is_none().then(|| Self { asked: Some(filter), ..self.over(Arc::clone(&self.input)) })
    }

    /// What a key is of the rows that it reads.
    pub(super) fn key(&self, at: usize) -> Option<&Arc<dyn PhysicalExpr>> {
        self.partial.group_expr().expr().get(at).map(|(expr, _)| expr)
    }

    /// Key columns.
    pub(super) fn keys(&self) -> usize {
        self.partial.group_expr().expr().len()
    }

    /// The column of its input whose distinct values its rows are, if they are that alone.
    pub(super) fn distinct_values_of(&self) -> Option<(usize, &Arc<dyn ExecutionPlan>)> {
        self.plan.sole_key().filter(|_| self.top.is_none()).map(|column| (column, &self.input))
    }

    /// The run that a partition belongs to.
    fn run(&self, partition: usize, context: &Arc<TaskContext>) -> Result<Arc<OnFirstUse>> {
        let mut run = lock(&self.running);
        let partitions = self.properties.output_partitioning().partition_count();
        // A partition that is asked for again is of another run.
        let again = run.taken.get(partition).copied().unwrap_or(true);
        let running = match &run.running {
            Some(running) if !again => Arc::clone(running),
            _ => {
                let memos = Arc::new(Memos::new(self.domains.budget()));
                let work = Work {
                    plan: self.plan.clone(),
                    input: Input::new(&self.input, &memos)?,
                    memos,
                    last: self.last.clone(),
                    context: Arc::clone(context),
                    budget: Arc::clone(self.domains.budget()),
                    domains: Arc::clone(&self.domains),
                    partitions,
                    all: self.top.is_none(),
                    metrics: self.metrics.clone(),
                };
                run.taken = vec![false; partitions];
                Arc::new(OnFirstUse { work: Mutex::new(Some(work)), running: tokio::sync::OnceCell::new() })
            }
        };
        if let Some(taken) = run.taken.get_mut(partition) {
            *taken = true;
        }
        // Those who read it keep it: it ends with them.
        run.running = run.taken.contains(&false).then(|| Arc::clone(&running));
        Ok(running)
    }
}

/// Groups come in no order and in as many partitions as the input; without keys there is one group.
fn properties(last: &AggregateExec, partial: &AggregateExec, input: &Arc<dyn ExecutionPlan>) -> Arc<PlanProperties> {
    let partitions =
        if partial.group_expr().expr().is_empty() { 1 } else { input.output_partitioning().partition_count() };
    Arc::new(PlanProperties::new(
        EquivalenceProperties::new(last.schema()),
        Partitioning::UnknownPartitioning(partitions),
        EmissionType::Final,
        Boundedness::Bounded,
    ))
}

impl fmt::Debug for GroupExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupExec").field("plan", &self.plan).field("input", &self.input).finish_non_exhaustive()
    }
}

impl DisplayAs for GroupExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<String> =
            self.partial.group_expr().expr().iter().map(|(expr, name)| named(&expr.to_string(), name)).collect();
        let aggregates: Vec<&str> = self.last.aggr_expr().iter().map(|function| function.name()).collect();
        let separator = if t == DisplayFormatType::TreeRender { "\n" } else { ", " };
        if t != DisplayFormatType::TreeRender {
            write!(f, "GroupExec: ")?;
        }
        write!(f, "keys=[{}]", keys.join(", "))?;
        let determined = keys.iter().zip(self.plan.determined()).filter(|(_, determined)| **determined);
        let determined: Vec<&str> = determined.map(|(key, _)| key.as_str()).collect();
        if !determined.is_empty() {
            write!(f, "{separator}determined=[{}]", determined.join(", "))?;
        }
        write!(f, "{separator}aggregates=[{}]", aggregates.join(", "))?;
        let Some(top) = &self.top else { return Ok(()) };
        if top.by.is_empty() {
            return write!(f, "{separator}any={}", top.count);
        }
        let schema = self.schema();
        let by = top.by.iter().map(|(column, order)| {
            let at = match column {
                Column::Key(at) => *at,
                Column::Aggregate(at) => self.keys() + at,
            };
            format!("{}{}", schema.field(at).name(), if order.descending { " DESC" } else { "" })
        });
        write!(f, "{separator}first={} by [{}]", top.count, by.collect::<Vec<_>>().join(", "))
    }
}

fn named(expr: &str, name: &str) -> String {
    if expr.split('@').next() == Some(name) { name.to_owned() } else { format!("{expr} as {name}") }
}

impl ExecutionPlan for GroupExec {
    fn name(&self) -> &'static str {
        "GroupExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match <[_; 1]>::try_from(children) {
            Ok([input]) => Ok(Arc::new(self.over(input))),
            Err(children) => internal_err!("an aggregate has one input, not {}", children.len()),
        }
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(self.over(Arc::clone(&self.input))))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.partial.apply_expressions(f)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let partitions = self.properties.output_partitioning().partition_count();
        if partition >= partitions {
            return internal_err!("an aggregate has {partitions} partitions, none of number {partition}");
        }
        let run = self.run(partition, &context)?;
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let output = Output {
            schema: self.schema(),
            top: self.top.clone(),
            batch: context.session_config().batch_size(),
            left: self.top.as_ref().and_then(|top| top.by.is_empty().then_some(top.count)),
        };
        let schema = self.schema();
        let batches = stream::once(async move { output.batches(&run, partition, context, metrics).await });
        let batches = batches.flat_map(|batches| match batches {
            Ok(batches) => batches,
            Err(error) => stream::once(async { Err(error) }).boxed(),
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::LowerEqual
    }

    /// A limit without an order takes any groups.
    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        let any = self.top.as_ref().is_none_or(|top| top.by.is_empty());
        let count = limit.filter(|_| any)?;
        Some(Arc::new(self.with_top(Some(Top { by: Vec::new(), whole: true, count }))))
    }

    fn fetch(&self) -> Option<usize> {
        self.top.as_ref().and_then(|top| top.by.is_empty().then_some(top.count))
    }

    /// A filter of keys decides which groups there are, not what becomes of them.
    fn gather_filters_for_pushdown(
        &self,
        phase: FilterPushdownPhase,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        _: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let keys: HashSet<usize> = (0..self.keys()).collect();
        // Without keys there is a group also where there is no row.
        let child = if keys.is_empty() || self.top.is_some() {
            ChildFilterDescription::all_unsupported(&filters)
        } else {
            ChildFilterDescription::from_child_with_allowed_indices(&filters, keys, &self.input)?
        };
        let asked = self.asked.iter().filter(|_| phase == FilterPushdownPhase::Post && self.top.is_none());
        let child = child.with_self_filters(asked.cloned().collect());
        Ok(FilterDescription::new().with_child(child))
    }
}

type Batches = stream::BoxStream<'static, Result<arrow_array::RecordBatch>>;

/// How groups leave a partition.
struct Output {
    schema: SchemaRef,
    top: Option<Top>,
    /// Rows of a batch.
    batch: usize,
    /// Groups that may still come, if any will do.
    left: Option<usize>,
}

/// A part of the groups that is on its way out.
struct Leaving {
    grouping: Box<Grouping>,
    groups: Vec<u32>,
    at: usize,
}

impl Leaving {
    /// The next groups, at most so many. None at the end.
    fn next(&mut self, most: usize, schema: &SchemaRef) -> Result<Option<arrow_array::RecordBatch>> {
        let until = self.groups.len().min(self.at.saturating_add(most));
        let some = self.groups.get(self.at..until).filter(|some| !some.is_empty());
        let batch = some.map(|some| batch_of(schema, self.grouping.values(some).map_err(from_exec)?));
        self.at = until;
        batch.transpose()
    }
}

impl Output {
    /// The groups that leave before all rows are read, and the others: both at a time, for the tasks may wait until either are taken.
    async fn batches(
        self,
        run: &Arc<OnFirstUse>,
        partition: usize,
        context: Arc<TaskContext>,
        metrics: BaselineMetrics,
    ) -> Result<Batches> {
        let Some(complete) = run.running().await?.complete() else {
            return self.rest(run, partition, context, metrics).await;
        };
        let (schema, most, counted) = (Arc::clone(&self.schema), self.batch, metrics.clone());
        let begun = (complete, None::<Leaving>, Arc::clone(run));
        let early = stream::try_unfold(begun, move |(complete, mut leaving, run)| {
            let (schema, counted) = (Arc::clone(&schema), counted.clone());
            async move {
                loop {
                    if let Some(part) = &mut leaving
                        && let Some(batch) = part.next(most, &schema)?
                    {
                        counted.record_output(batch.num_rows());
                        return Ok(Some((batch, (complete, leaving, run))));
                    }
                    let Some(grouping) = complete.lock().await.recv().await else { return Ok(None) };
                    let groups = grouping.all();
                    leaving = Some(Leaving { grouping, groups, at: 0 });
                }
            }
        });
        let run = Arc::clone(run);
        let rest = stream::once(async move { self.rest(&run, partition, context, metrics).await }).try_flatten();
        Ok(stream::select(early, rest).boxed())
    }

    async fn rest(
        mut self,
        run: &Arc<OnFirstUse>,
        partition: usize,
        context: Arc<TaskContext>,
        metrics: BaselineMetrics,
    ) -> Result<Batches> {
        let groups = match run.outcome().await? {
            Outcome::Groups(groups) => groups,
            Outcome::Plan(plan) => {
                if partition >= plan.output_partitioning().partition_count() {
                    return Ok(stream::empty().boxed());
                }
                let (run, schema) = (Arc::clone(run), Arc::clone(&self.schema));
                let mut rows = plan.execute(partition, context)?;
                // The plan has all groups, and nothing further out looks at how many.
                if self.left.is_some() {
                    let uncounted = BaselineMetrics::new(&ExecutionPlanMetricsSet::new(), partition);
                    rows = Box::pin(LimitStream::new(rows, 0, self.left, uncounted));
                }
                // The tasks live as long as their groups are wanted.
                return Ok(rows
                    .map(move |batch| {
                        let (_run, batch) = (&run, batch?);
                        metrics.record_output(batch.num_rows());
                        Ok(batch.with_schema(Arc::clone(&schema))?)
                    })
                    .boxed());
            }
        };
        let mut leaving: Option<Leaving> = None;
        let next = move || -> Result<Option<arrow_array::RecordBatch>> {
            let _timer = metrics.elapsed_compute().timer();
            loop {
                if self.left == Some(0) {
                    return Ok(None);
                }
                let Some(part) = &mut leaving else {
                    match groups.next(self.top.as_ref())? {
                        Some(Part::Groups(grouping, groups)) => leaving = Some(Leaving { grouping, groups, at: 0 }),
                        Some(Part::Values(arrays)) => {
                            let batch = batch_of(&self.schema, arrays)?;
                            metrics.record_output(batch.num_rows());
                            return Ok(Some(batch));
                        }
                        None => return Ok(None),
                    }
                    continue;
                };
                let Some(batch) = part.next(self.batch.min(self.left.unwrap_or(usize::MAX)), &self.schema)? else {
                    leaving = None;
                    continue;
                };
                self.left = self.left.map(|left| left - batch.num_rows());
                metrics.record_output(batch.num_rows());
                return Ok(Some(batch));
            }
        };
        let run = Arc::clone(run);
        let mut next = Some(next);
        Ok(stream::poll_fn(move |_| {
            let _run = &run;
            let batch = next.as_mut().and_then(|next| next().transpose());
            if !matches!(batch, Some(Ok(_))) {
                next = None;
            }
            std::task::Poll::Ready(batch)
        })
        .boxed())
    }
}
