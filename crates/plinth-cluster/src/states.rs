//! Partial aggregates by the native operator: it makes groups to their end, which for what counts, adds up or compares is the same as the state that
//! the next stage goes on with.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::arrow::array::RecordBatch;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use futures::StreamExt;

/// Functions whose state is their result.
const OWN_STATES: [&str; 4] = ["count", "sum", "min", "max"];

/// The name of the operator; plans leave it out.
pub(crate) const NAME: &str = "StatesExec";

/// Puts the native operator where partial aggregates are that it can stand for, as the rule for pairs of aggregates has it.
pub(crate) fn native(
    plan: Arc<dyn ExecutionPlan>,
    pairs: &dyn PhysicalOptimizerRule,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let one = |node: Arc<dyn ExecutionPlan>| {
        let own = match node.downcast_ref::<AggregateExec>() {
            Some(partial) => of_partial(&node, partial, pairs, config)?,
            None => None,
        };
        Ok(own.map_or_else(|| Transformed::no(node), Transformed::yes))
    };
    plan.transform_up(one).data()
}

fn of_partial(
    node: &Arc<dyn ExecutionPlan>,
    partial: &AggregateExec,
    pairs: &dyn PhysicalOptimizerRule,
    config: &ConfigOptions,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let is_own = *partial.mode() == AggregateMode::Partial
        && !partial.group_expr().expr().is_empty()
        && partial.limit_options().is_none()
        && partial.aggr_expr().iter().all(|function| is_its_state(function));
    if !is_own {
        return Ok(None);
    }
    let last = AggregateExec::try_new(
        AggregateMode::Final,
        partial.group_expr().as_final(),
        partial.aggr_expr().to_vec(),
        partial.filter_expr().to_vec(),
        Arc::clone(node),
        partial.input_schema(),
    )?;
    let groups = pairs.optimize(Arc::new(last), config)?;
    let types = |schema: SchemaRef| schema.fields().iter().map(|field| field.data_type().clone()).collect::<Vec<_>>();
    let fits = groups.name() == "GroupExec"
        && types(groups.schema()) == types(node.schema())
        && groups.output_partitioning().partition_count() == node.output_partitioning().partition_count();
    Ok(fits.then(|| Arc::new(StatesExec::new(groups, node.schema())) as Arc<dyn ExecutionPlan>))
}

fn is_its_state(function: &AggregateFunctionExpr) -> bool {
    let is_result = || {
        let states = function.state_fields().ok()?;
        let [state] = states.as_slice() else { return None };
        Some(state.data_type() == function.field().data_type())
    };
    OWN_STATES.contains(&function.fun().name())
        && !function.is_distinct()
        && function.order_bys().is_empty()
        && is_result().unwrap_or(false)
}

/// Groups under the names that states have.
#[derive(Debug)]
struct StatesExec {
    groups: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl StatesExec {
    fn new(groups: Arc<dyn ExecutionPlan>, schema: SchemaRef) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(groups.output_partitioning().partition_count()),
            groups.properties().emission_type,
            groups.properties().boundedness,
        );
        Self { groups, properties: Arc::new(properties) }
    }
}

impl DisplayAs for StatesExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(NAME)
    }
}

impl ExecutionPlan for StatesExec {
    fn name(&self) -> &'static str {
        NAME
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.groups]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match <[_; 1]>::try_from(children) {
            Ok([groups]) => Ok(Arc::new(Self::new(groups, self.schema()))),
            Err(children) => internal_err!("states are of one aggregate, not of {}", children.len()),
        }
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (groups, schema) = (self.groups.execute(partition, context)?, self.schema());
        let renamed = Arc::clone(&schema);
        let states =
            groups.map(move |batch| Ok(RecordBatch::try_new(Arc::clone(&renamed), batch?.columns().to_vec())?));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, states)))
    }
}
