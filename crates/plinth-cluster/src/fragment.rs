//! A part of a plan where it runs: made again of what this worker has, and looked at as it works.
//!
//! A worker is sent operators of the engine. It runs its own rules over them, which put native operators in their places, have sorts spill
//! and hold memory to its limit. To those who sent it the part keeps its shape; what the operators in truth did is told by its root.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::execution::session_state::SessionState;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::sanity_checker::SanityCheckPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet, Time};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use datafusion_distributed::BroadcastExec;
use futures::StreamExt;
use plinth_sql::Interrupt;

use crate::whole::WholeExec;
use crate::{states, told};

type Rules = Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>;

/// Rules that change operators one by one, in the order in which they run over a part of a plan. All others look at a plan as a whole, and
/// have run where it was made.
const OF_PARTS: [&str; 10] = [
    "native_operators",
    "native_sorts",
    "native_covered",
    "FilterPushdown(Post)",
    "cut_batches",
    "windows_by_partition",
    "windows_of_text",
    "external_sorts",
    "dense_sorts",
    "guard_memory",
];

/// Rules that put in an operator that no message knows, or that has to do with this process: they are for plans that stay.
pub(crate) const OF_THE_PROCESS: [&str; 15] = [
    "native_operators",
    "native_sorts",
    "native_covered",
    "cut_batches",
    "windows_by_partition",
    "windows_of_text",
    "external_sorts",
    "dense_sorts",
    "rows_in_order",
    "digits_of_files",
    "Watch",
    "guard_memory",
    "profile_operators",
    "EnsureCooperative",
    "FilterPushdown(Post)",
];

/// What a worker makes of parts of plans.
#[derive(Clone)]
pub(crate) struct Parts {
    parts: Arc<Rules>,
    whole: Arc<Rules>,
    running: Arc<AtomicUsize>,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Parts")
    }
}

impl Parts {
    /// With the rules of a session.
    pub(crate) fn of(state: &SessionState) -> Self {
        let all: Rules = state.physical_optimizers().to_vec();
        let named = |name: &str| all.iter().find(|rule| rule.name() == name).cloned();
        let parts = OF_PARTS.iter().filter_map(|name| named(name)).collect();
        Self { parts: Arc::new(parts), whole: Arc::new(all), running: Arc::default() }
    }

    /// How many partitions of parts run.
    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// The plan that runs in the place of one that came, and hears when its query is over.
    pub(crate) fn made_of(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
        query: Option<&Interrupt>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if let Some(whole) = plan.downcast_ref::<WholeExec>() {
            let mut run = optimized(&self.whole, Arc::clone(whole.input()), config)?;
            if run.output_partitioning().partition_count() > 1 {
                run = Arc::new(CoalescePartitionsExec::new(run));
            }
            return Ok(Arc::new(PartExec::new(plan, heard(run, query)?, &self.running)));
        }
        // What divides the rows among those who ask stays where it is: it is made anew for them.
        if plan.is::<RepartitionExec>() || plan.is::<BroadcastExec>() {
            let below = plan.children().into_iter().map(|child| self.part(Arc::clone(child), config, query));
            let below = below.collect::<Result<Vec<_>>>()?;
            return plan.replace_children(below, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute));
        }
        self.part(plan, config, query)
    }

    fn part(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
        query: Option<&Interrupt>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let native = || {
            let pairs = self.parts.iter().find(|rule| rule.name() == "native_operators");
            let plan = match pairs {
                Some(pairs) => states::native(Arc::clone(&plan), pairs.as_ref(), config)?,
                None => Arc::clone(&plan),
            };
            optimized(&self.parts, plan, config)
        };
        let run = match native() {
            Ok(run) if is_same_to_all(&plan, &run, config) => run,
            // The operators of the engine stay as they came, but for those that are one for one.
            _ => {
                let rest: Rules =
                    self.parts.iter().filter(|rule| !rule.name().starts_with("native")).cloned().collect();
                optimized(&rest, Arc::clone(&plan), config)?
            }
        };
        Ok(Arc::new(PartExec::new(plan, heard(run, query)?, &self.running)))
    }
}

/// A plan whose operators hear that their query is over.
fn heard(run: Arc<dyn ExecutionPlan>, query: Option<&Interrupt>) -> Result<Arc<dyn ExecutionPlan>> {
    match query {
        Some(query) => plinth_sql::stoppable_plan(run, query),
        None => Ok(run),
    }
}

fn optimized(rules: &Rules, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
    rules.iter().try_fold(plan, |plan, rule| rule.optimize(plan, config))
}

/// Whether those above can't tell one plan from the other: the same columns and partitions, in the same order, and within it each operator gets its rows
/// as it must have them.
fn is_same_to_all(plan: &Arc<dyn ExecutionPlan>, run: &Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> bool {
    let partitions = |plan: &Arc<dyn ExecutionPlan>| plan.output_partitioning().partition_count();
    let ordered = match plan.output_ordering() {
        None => true,
        Some(order) => run.equivalence_properties().ordering_satisfy(order.iter().cloned()).unwrap_or(false),
    };
    plan.schema() == run.schema()
        && partitions(plan) == partitions(run)
        && ordered
        && SanityCheckPlan::new().optimize(Arc::clone(run), config).is_ok()
}

/// A part of a plan, which others see as it came.
struct PartExec {
    came: Arc<dyn ExecutionPlan>,
    run: Arc<dyn ExecutionPlan>,
    metrics: ExecutionPlanMetricsSet,
    running: Arc<AtomicUsize>,
}

impl PartExec {
    fn new(came: Arc<dyn ExecutionPlan>, run: Arc<dyn ExecutionPlan>, running: &Arc<AtomicUsize>) -> Self {
        Self { came, run, metrics: ExecutionPlanMetricsSet::new(), running: Arc::clone(running) }
    }
}

impl fmt::Debug for PartExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartExec").field("run", &self.run).finish_non_exhaustive()
    }
}

impl DisplayAs for PartExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.came.fmt_as(t, f)
    }
}

impl ExecutionPlan for PartExec {
    fn name(&self) -> &str {
        self.came.name()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.came.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.came.children()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        if children.len() != self.children().len() {
            return internal_err!("a part of a plan was given {} inputs", children.len());
        }
        // What is below is shown, not run.
        Ok(self)
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.came.apply_expressions(f)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let began = Instant::now();
        let wall: Time = MetricBuilder::new(&self.metrics).subset_time(told::WALL, partition);
        let rows = self.run.execute(partition, context)?;
        let schema = rows.schema();
        self.running.fetch_add(1, Ordering::Relaxed);
        let timed = Timed { began, wall, running: Arc::clone(&self.running) };
        let rows = rows.inspect(move |_| timed.until_now());
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }

    /// What all operators that run did.
    fn metrics(&self) -> Option<MetricsSet> {
        Some(told::tell(&self.run, &self.metrics.clone_inner()))
    }
}

/// The time from a partition's beginning to its last rows.
struct Timed {
    began: Instant,
    wall: Time,
    running: Arc<AtomicUsize>,
}

impl Timed {
    fn until_now(&self) {
        let so_far = usize::try_from(self.began.elapsed().as_nanos()).unwrap_or(usize::MAX);
        let more = so_far.saturating_sub(self.wall.value());
        self.wall.add_duration(std::time::Duration::from_nanos(more as u64));
    }
}

impl Drop for Timed {
    fn drop(&mut self) {
        self.until_now();
        self.running.fetch_sub(1, Ordering::Relaxed);
    }
}
