//! The operator in the place of a hash join.
//!
//! The left side is gathered once, by all threads, into one table (`build`); the right side's partitions look their rows up in it (`probe`), as
//! chunks of a scan where it is one. Rows are not exchanged. A left side that has no room in memory is joined by merging (`outgrown`). What the engine knows of such a join (its schema, its estimates, which
//! filters go through it to which side) is asked of the engine's operator, which is kept.

mod asked;
mod build;
mod column;
mod outgrown;
mod probe;
mod table;

use std::fmt;
use std::sync::{Arc, Mutex};

use arrow_schema::{DataType, SchemaRef};
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion_common::{JoinSide, JoinType, NullEquality, Result, Statistics, internal_datafusion_err, internal_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::Partitioning;
use datafusion_physical_expr::expressions::DynamicFilterPhysicalExpr;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use datafusion_physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion_physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion_physical_plan::joins::utils::{ColumnIndex, JoinFilter, build_join_schema};
use datafusion_physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion_physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use futures::stream;
use plinth_core::sync::lock;
use plinth_exec::numbers::Numbers;
use plinth_io::MemoryBudget;

use self::asked::Asked;
use self::build::{Gathered, batch};
use self::outgrown::Merging;
pub(super) use self::outgrown::Rules;
pub(super) use self::probe::Probing;
use crate::config::{is_native, joins_natively};
use crate::evaluated::Evaluated;
use crate::filled::{filled, without_constants};

/// Joins rows of two sides that have equal keys.
pub(super) struct JoinExec {
    /// The engine's join that it stands for, over the same inputs.
    engine: HashJoinExec,
    join: Arc<Join>,
    /// Rows that it is expected to give, if that is known.
    estimated: Option<f64>,
    /// For the plan that takes its place if its left side has no room.
    rules: Rules,
    budget: Arc<MemoryBudget>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    run: Mutex<Run>,
}

/// What is joined how.
#[derive(Debug)]
struct Join {
    kind: JoinType,
    nulls_match: bool,
    /// The key columns of either side, and their type.
    left: Vec<Evaluated>,
    right: Vec<Evaluated>,
    types: Vec<DataType>,
    /// The condition that pairs of rows with equal keys are held against.
    condition: Option<JoinFilter>,
    /// Where the columns of the result come from.
    output: Vec<ColumnIndex>,
    schema: SchemaRef,
    left_schema: SchemaRef,
    right_schema: SchemaRef,
    /// Asked by scans of the right side once the left one is gathered.
    filter: Option<Arc<DynamicFilterPhysicalExpr>>,
    /// Its expressions: the keys of the right side.
    filtered: Vec<Arc<dyn PhysicalExpr>>,
    /// Asked by scans below groups of the right side, likewise.
    asked: Option<Asked>,
}

impl Join {
    /// Whether rows of the left side come out, or their absence, once all of the right one was seen.
    fn needs_left_at_end(&self) -> bool {
        use JoinType::{Full, Left, LeftAnti, LeftMark, LeftSemi};
        matches!(self.kind, Left | Full | LeftSemi | LeftAnti | LeftMark)
    }

    /// Whether pairs of rows come out.
    fn gives_pairs(&self) -> bool {
        matches!(self.kind, JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full)
    }

    /// Whether rows of the right side come out by whether they have a partner.
    fn gives_right(&self) -> bool {
        use JoinType::{Full, Right, RightAnti, RightMark, RightSemi};
        matches!(self.kind, Right | Full | RightSemi | RightAnti | RightMark)
    }
}

/// The run that the output's partitions belong to.
#[derive(Default)]
struct Run {
    gathered: Option<Arc<Gathered>>,
    /// Partitions that were asked for.
    taken: Vec<bool>,
}

impl JoinExec {
    /// What stands for a join of the engine's, if it can be done here.
    pub(super) fn of(
        engine: &HashJoinExec,
        estimated: Option<f64>,
        filters: bool,
        rules: &Rules,
        budget: &Arc<MemoryBudget>,
    ) -> Result<Option<Self>> {
        if !stands_for(engine)? {
            return Ok(None);
        }
        // Nothing is exchanged: its inputs are as they come.
        let mut builder = engine.builder().with_partition_mode(PartitionMode::CollectLeft).recompute_properties();
        let mut asked = None;
        if filters && let Some((asking, right)) = Asked::of(engine)? {
            builder = builder.with_new_children(vec![Arc::clone(engine.left()), right])?;
            asked = Some(asking);
        }
        let metrics = ExecutionPlanMetricsSet::new();
        Self::over(builder.build()?, asked, estimated, rules, budget, metrics).map(Some)
    }

    fn over(
        engine: HashJoinExec,
        asked: Option<Asked>,
        estimated: Option<f64>,
        rules: &Rules,
        budget: &Arc<MemoryBudget>,
        metrics: ExecutionPlanMetricsSet,
    ) -> Result<Self> {
        let (left_schema, right_schema) = (engine.left().schema(), engine.right().schema());
        let (_, columns) = build_join_schema(&left_schema, &right_schema, engine.join_type());
        let output = match &engine.projection {
            Some(projection) => {
                let column = |at: &usize| columns.get(*at).cloned();
                let chosen: Option<Vec<_>> = projection.iter().map(column).collect();
                chosen.ok_or_else(|| internal_datafusion_err!("a join's projection has columns that it has not"))?
            }
            None => columns,
        };
        let on = engine.on();
        let join = Join {
            kind: *engine.join_type(),
            nulls_match: engine.null_equality() == NullEquality::NullEqualsNull,
            left: on.iter().map(|(left, _)| Evaluated::new(left, &left_schema)).collect::<Result<_>>()?,
            right: on.iter().map(|(_, right)| Evaluated::new(right, &right_schema)).collect::<Result<_>>()?,
            types: on.iter().map(|(left, _)| left.data_type(&left_schema)).collect::<Result<_>>()?,
            condition: engine.filter().cloned(),
            output,
            schema: engine.schema(),
            left_schema,
            right_schema,
            filter: dynamic_filter(&engine)?,
            filtered: on.iter().map(|(_, right)| Arc::clone(right)).collect(),
            asked,
        };
        // Rows come in no order: the threads take the pieces of a scan from one queue.
        let mut equivalences = engine.properties().equivalence_properties().clone();
        equivalences.clear_orderings();
        let (left, right) = filled(join.kind);
        let is_filled = |at: usize| match join.output.get(at).map(|column| column.side) {
            Some(JoinSide::Left) => left,
            Some(JoinSide::Right) => right,
            _ => false,
        };
        if let Some(less) = without_constants(&equivalences, is_filled)? {
            equivalences = less;
        }
        let partitions = engine.right().output_partitioning().partition_count();
        let emission = if join.needs_left_at_end() { EmissionType::Both } else { EmissionType::Incremental };
        let properties = PlanProperties::new(
            equivalences,
            Partitioning::UnknownPartitioning(partitions),
            emission,
            Boundedness::Bounded,
        );
        Ok(Self {
            engine,
            join: Arc::new(join),
            estimated,
            rules: Arc::clone(rules),
            budget: Arc::clone(budget),
            properties: Arc::new(properties),
            metrics,
            run: Mutex::default(),
        })
    }

    /// The same with what the engine made of its operator.
    fn with(&self, engine: &dyn ExecutionPlan) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(engine) = engine.downcast_ref::<HashJoinExec>() else {
            return internal_err!("the engine made a {} of a hash join", engine.name());
        };
        let (engine, asked, metrics) = (engine.builder().build()?, self.join.asked.clone(), self.metrics.clone());
        Ok(Arc::new(Self::over(engine, asked, self.estimated, &self.rules, &self.budget, metrics)?))
    }

    /// The run that a partition belongs to.
    fn run(&self, partition: usize, context: &Arc<TaskContext>) -> Result<Arc<Gathered>> {
        let mut run = lock(&self.run);
        let partitions = self.properties.output_partitioning().partition_count();
        // A partition that is asked for again is of another run.
        let again = run.taken.get(partition).copied().unwrap_or(true);
        let gathered = match &run.gathered {
            Some(gathered) if !again => Arc::clone(gathered),
            _ => {
                run.taken = vec![false; partitions];
                let merging = Merging::of(&self.engine, partitions, &self.rules);
                let metrics = self.metrics.clone();
                Arc::new(Gathered::new(&self.join, &self.engine, merging, metrics, &self.budget, context)?)
            }
        };
        if let Some(taken) = run.taken.get_mut(partition) {
            *taken = true;
        }
        // Those who read it keep it: it ends with them.
        run.gathered = run.taken.contains(&false).then(|| Arc::clone(&gathered));
        Ok(gathered)
    }

    /// The rows of a partition, as vectors.
    pub(super) fn rows(&self, partition: usize, context: &Arc<TaskContext>) -> Result<Probing> {
        let partitions = self.properties.output_partitioning().partition_count();
        if partition >= partitions {
            return internal_err!("a join has {partitions} partitions, none of number {partition}");
        }
        let gathered = self.run(partition, context)?;
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        Ok(Probing::new(&self.join, gathered, partition, Arc::clone(context), metrics))
    }

    /// The engine's join that it stands for.
    pub(super) fn engine(&self) -> &HashJoinExec {
        &self.engine
    }

    /// The side that a column comes from, and its place there.
    pub(super) fn origin(&self, column: usize) -> Option<(JoinSide, usize)> {
        self.join.output.get(column).map(|column| (column.side, column.index))
    }

    /// What is gathered, and what is looked up in it.
    pub(super) fn sides(&self) -> (&Arc<dyn ExecutionPlan>, &Arc<dyn ExecutionPlan>) {
        (self.engine.left(), self.engine.right())
    }
}

/// Whether a join of the engine's can be done here.
fn stands_for(engine: &HashJoinExec) -> Result<bool> {
    if engine.null_aware || engine.fetch().is_some() || engine.on().is_empty() {
        return Ok(false);
    }
    let (left, right) = (engine.left().schema(), engine.right().schema());
    for (one, other) in engine.on() {
        let (one, other) = (one.data_type(&left)?, other.data_type(&right)?);
        let known = matches!(
            Numbers::of(&one),
            Some(Numbers::Bool | Numbers::Signed(_) | Numbers::Unsigned(_) | Numbers::Wide)
        );
        if !known || one != other {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a join is done by merging once its left side turns out to have no room in memory.
pub fn gives_way(engine: &HashJoinExec, config: &ConfigOptions) -> bool {
    is_native(config) && joins_natively(config) && stands_for(engine).unwrap_or(false)
}

/// What scans of a join's right side ask, if there is one that does.
fn dynamic_filter(engine: &HashJoinExec) -> Result<Option<Arc<DynamicFilterPhysicalExpr>>> {
    let filter = engine.dynamic_expressions_produced().into_iter().next();
    let known = |filter: Arc<dyn PhysicalExpr>| Arc::downcast::<DynamicFilterPhysicalExpr>(filter);
    let other = |_| internal_datafusion_err!("a join has a filter of another kind");
    filter.map(|filter| known(filter).map_err(other)).transpose()
}

impl fmt::Debug for JoinExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinExec").field("engine", &self.engine).finish_non_exhaustive()
    }
}

impl DisplayAs for JoinExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if t == DisplayFormatType::TreeRender {
            return self.engine.fmt_as(t, f);
        }
        let on: Vec<String> = self.engine.on().iter().map(|(left, right)| format!("({left}, {right})")).collect();
        write!(f, "JoinExec: join_type={:?}, on=[{}]", self.join.kind, on.join(", "))?;
        if let Some(condition) = &self.join.condition {
            write!(f, ", filter={}", condition.expression())?;
        }
        if self.engine.contains_projection() {
            let names: Vec<&str> = self.join.schema.fields().iter().map(|field| field.name().as_str()).collect();
            write!(f, ", columns=[{}]", names.join(", "))?;
        }
        if self.join.nulls_match {
            write!(f, ", NullsEqual: true")?;
        }
        self.estimated.map_or(Ok(()), |rows| write!(f, ", estimated={rows:.0}"))
    }
}

impl ExecutionPlan for JoinExec {
    fn name(&self) -> &'static str {
        "JoinExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![self.engine.left(), self.engine.right()]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let engine = self.engine.builder().recompute_properties().with_new_children(children)?.build()?;
        self.with(&engine)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let engine = self.engine.builder().reset_state().build()?;
        self.join.asked.iter().try_for_each(Asked::forget)?;
        self.with(&engine)
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.engine.apply_expressions(f)
    }

    fn dynamic_expressions_produced(&self) -> Vec<Arc<dyn PhysicalExpr>> {
        self.engine.dynamic_expressions_produced()
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (probing, schema) = (self.rows(partition, &context)?, self.schema());
        let batches = stream::try_unfold((probing, Arc::clone(&schema)), |(mut probing, schema)| async move {
            let Some((rows, columns)) = probing.next().await? else { return Ok(None) };
            Ok(Some((batch(&schema, &columns, rows)?, (probing, schema))))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        self.engine.child_stats_requests(partition)
    }

    fn statistics_from_inputs(&self, inputs: &[Arc<Statistics>], args: &StatisticsArgs) -> Result<Arc<Statistics>> {
        self.engine.statistics_from_inputs(inputs, args)
    }

    fn try_swapping_with_projection(&self, projection: &ProjectionExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(swapped) = self.engine.try_swapping_with_projection(projection)? else { return Ok(None) };
        let mut found = false;
        let swapped = swapped.transform_down(|plan| {
            if found || !plan.is::<HashJoinExec>() {
                return Ok(Transformed::no(plan));
            }
            found = true;
            self.with(plan.as_ref()).map(|plan| Transformed::new(plan, true, TreeNodeRecursion::Stop))
        });
        swapped.data().map(Some)
    }

    fn gather_filters_for_pushdown(
        &self,
        phase: FilterPushdownPhase,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterDescription> {
        self.engine.gather_filters_for_pushdown(phase, filters, config)
    }

    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        result: ChildPushdownResult,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let mut handled = self.engine.handle_child_pushdown_result(phase, result, config)?;
        if let Some(engine) = handled.updated_node.take() {
            handled.updated_node = Some(self.with(engine.as_ref())?);
        }
        Ok(handled)
    }
}
