//! What becomes of a join whose left side has no room in memory: the engine's join by sorting and merging, which can spill.
//!
//! No row of the right side was looked up by then. Rows of the left side that were gathered are written to scratch files: sorts need the memory.

use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion_common::config::ConfigOptions;
use datafusion_common::{JoinType, NullEquality, Result, internal_datafusion_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr::{LexOrdering, Partitioning, PhysicalSortExpr};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use datafusion_physical_plan::joins::HashJoinExec;
use datafusion_physical_plan::joins::utils::{JoinFilter, JoinOn};
use datafusion_physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion_physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion_physical_plan::repartition::RepartitionExec;
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::spill::SpillManager;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion_session::PhysicalOptimizerRule;
use futures::{StreamExt, stream};
use plinth_core::sync::lock;

use super::build::{Piece, batch};
use crate::error::from_join;
use crate::merging::merge_join;
use crate::native::input::Source;
use crate::native::leaf::LeafExec;
use crate::profile::spawn_blocking;

/// What a join by merging is made of.
pub(super) struct Merging {
    left_schema: SchemaRef,
    right: Arc<dyn ExecutionPlan>,
    on: JoinOn,
    condition: Option<JoinFilter>,
    kind: JoinType,
    nulls: NullEquality,
    /// Of the columns of both sides those that are wanted.
    projection: Option<Vec<usize>>,
    partitions: usize,
    rules: Rules,
}

/// Rules for sorts of plans that are made while a query runs.
pub(in crate::native) type Rules = Arc<[Arc<dyn PhysicalOptimizerRule + Send + Sync>]>;

impl Merging {
    /// The same join as one by hashing, in so many partitions.
    pub(super) fn of(join: &HashJoinExec, partitions: usize, rules: &Rules) -> Self {
        Self {
            rules: Arc::clone(rules),
            left_schema: join.left().schema(),
            right: Arc::clone(join.right()),
            on: join.on().to_vec(),
            condition: join.filter().cloned(),
            kind: *join.join_type(),
            nulls: join.null_equality(),
            projection: join.projection.as_ref().map(|projection| projection.to_vec()),
            partitions,
        }
    }

    /// Partitions of the join.
    pub(super) fn partitions(&self) -> usize {
        self.partitions
    }

    /// The join with a left side of which some pieces were gathered and the rest is still to be read.
    pub(super) async fn plan(
        &self,
        pieces: Vec<Piece>,
        rest: Vec<Source>,
        metrics: &ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let spills = SpillMetrics::new(metrics, 0);
        let spills = SpillManager::new(context.runtime_env(), spills, Arc::clone(&self.left_schema));
        let parts = rest.len().max(1);
        let write = move || spilled(&spills, pieces, parts);
        let spilled = spawn_blocking(write).await.map_err(from_join)??;
        let (left, right) = self.on.iter().map(|(left, right)| (Arc::clone(left), Arc::clone(right))).unzip();
        let config = context.session_config().options();
        let left = self.sorted(rows(&self.left_schema, spilled, rest), left, config)?;
        let plan = Arc::clone(&self.right);
        let partitions = plan.output_partitioning().partition_count();
        let rows = LeafExec::new("RowsExec", &plan.schema(), partitions, move |at, context| plan.execute(at, context));
        let right = self.sorted(rows, right, config)?;
        let condition = self.condition.as_ref();
        let join = merge_join(left, right, self.on.clone(), condition, self.kind, self.nulls)?;
        let Some(projection) = &self.projection else { return Ok(Arc::new(join)) };
        let schema = join.schema();
        let column = |at: &usize| {
            let field = schema.fields().get(*at);
            let field = field.ok_or_else(|| internal_datafusion_err!("a join has no column {at}"))?;
            let column = Column::new(field.name(), *at);
            Ok(ProjectionExpr { expr: Arc::new(column), alias: field.name().clone() })
        };
        let exprs = projection.iter().map(column).collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(ProjectionExec::try_new(exprs, Arc::new(join))?))
    }

    /// Rows by their keys: each key in one partition, and in order there.
    fn sorted(
        &self,
        rows: LeafExec,
        keys: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let order = LexOrdering::new(keys.iter().map(|key| PhysicalSortExpr::new_default(Arc::clone(key))));
        let order = order.ok_or_else(|| internal_datafusion_err!("a join without keys"))?;
        let dealt = RepartitionExec::try_new(Arc::new(rows), Partitioning::Hash(keys, self.partitions))?;
        let sort = SortExec::new(order, Arc::new(dealt)).with_preserve_partitioning(true);
        self.rules.iter().try_fold(Arc::new(sort) as Arc<dyn ExecutionPlan>, |plan, rule| rule.optimize(plan, config))
    }
}

/// Pieces in so many scratch files, as they are read again.
fn spilled(spills: &SpillManager, pieces: Vec<Piece>, parts: usize) -> Result<Vec<SendableRecordBatchStream>> {
    let mut files = Vec::new();
    for _ in 0..parts {
        files.push(spills.create_in_progress_file("rows of a join")?);
    }
    for (at, piece) in pieces.into_iter().enumerate() {
        if let Some(file) = files.get_mut(at % parts) {
            file.append_batch(&piece.rows)?;
        }
    }
    let mut streams = Vec::new();
    for mut file in files {
        if let Some(file) = file.finish()? {
            streams.push(spills.read_spill_as_stream(file, None)?);
        }
    }
    Ok(streams)
}

/// The rows of a partition of a side that has no room: those that were gathered, and the rest. None once they are taken.
#[derive(Default)]
struct Rows {
    gathered: Option<SendableRecordBatchStream>,
    rest: Option<Source>,
}

/// The rows of a side that has no room.
fn rows(schema: &SchemaRef, gathered: Vec<SendableRecordBatchStream>, rest: Vec<Source>) -> LeafExec {
    let partitions = rest.len().max(gathered.len()).max(1);
    let (mut gathered, mut rest) = (gathered.into_iter(), rest.into_iter());
    let parts = (0..partitions).map(|_| Rows { gathered: gathered.next(), rest: rest.next() });
    let (parts, given) = (Mutex::new(parts.collect::<Vec<_>>()), Arc::clone(schema));
    LeafExec::new("RowsExec", schema, partitions, move |partition, _| {
        let rows = lock(&parts).get_mut(partition).map(std::mem::take).unwrap_or_default();
        let batches = stream::try_unfold((rows, Arc::clone(&given)), |(mut rows, schema)| async move {
            Ok(rows.next(&schema).await?.map(|batch| (batch, (rows, schema))))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&given), batches)))
    })
}

impl Rows {
    async fn next(&mut self, schema: &SchemaRef) -> Result<Option<RecordBatch>> {
        if let Some(gathered) = &mut self.gathered
            && let Some(batch) = gathered.next().await.transpose()?
        {
            return Ok(Some(batch));
        }
        self.gathered = None;
        let Some(rest) = &mut self.rest else { return Ok(None) };
        let Some((count, columns)) = rest.next().await? else { return Ok(None) };
        batch(schema, &columns, count).map(Some)
    }
}
