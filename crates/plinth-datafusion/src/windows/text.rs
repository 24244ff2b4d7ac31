//! Text of the rows of one long window.
//!
//! The engine's operator for windows that need few rows at a time puts what is left of its rows together with those that come. Views
//! keep the buffers of rows that are long gone, in a list that grows with each batch: without PARTITION BY all text of a table was held.
//! Here such text goes through it as text end to end, of which copies are made.

use std::fmt;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion_common::{Result, internal_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr::utils::collect_columns;
use datafusion_physical_expr::window::{StandardWindowExpr, WindowExpr};
use datafusion_physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion_physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::windows::BoundedWindowAggExec;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use datafusion_session::PhysicalOptimizerRule;
use futures::StreamExt;

use crate::around::{Around, AroundExec};

/// Has the text of windows without PARTITION BY let go of once its rows are through.
#[derive(Debug)]
pub struct WindowsOfText;

impl PhysicalOptimizerRule for WindowsOfText {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let Some(window) = plan.downcast_ref::<BoundedWindowAggExec>() else { return Ok(Transformed::no(plan)) };
            if !takes_other_text(window) {
                return Ok(Transformed::no(plan));
            }
            Ok(Transformed::yes(AroundExec::over(plan, OfText { metrics: ExecutionPlanMetricsSet::new() })))
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "windows_of_text"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn is_view(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8View | DataType::BinaryView)
}

/// Whether a window has text, and does not care of which type it is: it is in its order or passed on.
fn takes_other_text(window: &BoundedWindowAggExec) -> bool {
    let schema = window.input().schema();
    let has_view = |expr: &Arc<dyn PhysicalExpr>| {
        let is_view = |column: &Column| schema.fields().get(column.index()).is_some_and(|it| is_view(it.data_type()));
        collect_columns(expr).iter().any(is_view)
    };
    let other = |window: &Arc<dyn WindowExpr>| {
        let of_order = window.order_by().iter().all(|key| key.expr.is::<Column>() || !has_view(&key.expr));
        // What an aggregate is filtered by is not to be seen from here.
        let filtered = !window.as_any().is::<StandardWindowExpr>() && window.name().contains("FILTER");
        window.partition_by().is_empty() && of_order && !filtered && !window.expressions().iter().any(has_view)
    };
    schema.fields().iter().any(|field| is_view(field.data_type())) && window.window_expr().iter().all(other)
}

#[derive(Clone)]
struct OfText {
    metrics: ExecutionPlanMetricsSet,
}

impl Around for OfText {
    fn execute(
        &self,
        operator: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let Some(window) = operator.downcast_ref::<BoundedWindowAggExec>() else {
            return internal_err!("{} is no window", operator.name());
        };
        let input = Arc::new(EndToEndExec::over(window.input()));
        let (exprs, mode) = (window.window_expr().to_vec(), window.input_order_mode.clone());
        let rows = BoundedWindowAggExec::try_new(exprs, input, mode, false)?.execute(partition, context)?;
        let (schema, metrics) = (operator.schema(), BaselineMetrics::new(&self.metrics, partition));
        let to = Arc::clone(&schema);
        let rows = rows.map(move |batch| of_types(&batch?, &to).record_output(&metrics));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }

    fn metrics(&self, _operator: &dyn ExecutionPlan) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// A batch with its columns as a schema has them.
fn of_types(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let column = |(column, field): (&ArrayRef, &Arc<Field>)| match column.data_type() == field.data_type() {
        true => Ok(Arc::clone(column)),
        false => cast(column, field.data_type()),
    };
    let columns = batch.columns().iter().zip(schema.fields()).map(column).collect::<Result<_, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

/// The rows of a plan, without views.
struct EndToEndExec {
    rows: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl EndToEndExec {
    fn over(rows: &Arc<dyn ExecutionPlan>) -> Self {
        let schema = rows.schema();
        let field = |field: &Arc<Field>| match field.data_type() {
            DataType::Utf8View => Arc::new(field.as_ref().clone().with_data_type(DataType::LargeUtf8)),
            DataType::BinaryView => Arc::new(field.as_ref().clone().with_data_type(DataType::LargeBinary)),
            _ => Arc::clone(field),
        };
        let fields: Vec<_> = schema.fields().iter().map(field).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        let mut orders = EquivalenceProperties::new(schema);
        orders.add_orderings(rows.equivalence_properties().oeq_class().iter().cloned());
        let properties = PlanProperties::new(
            orders,
            rows.output_partitioning().clone(),
            rows.pipeline_behavior(),
            rows.boundedness(),
        );
        Self { rows: Arc::clone(rows), properties: Arc::new(properties) }
    }
}

impl fmt::Debug for EndToEndExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EndToEndExec")
    }
}

impl DisplayAs for EndToEndExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EndToEndExec")
    }
}

impl ExecutionPlan for EndToEndExec {
    fn name(&self) -> &'static str {
        "EndToEndExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.rows]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match children.as_slice() {
            [rows] => Ok(Arc::new(Self::over(rows))),
            _ => internal_err!("rows of one plan, not of {}", children.len()),
        }
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (rows, schema) = (self.rows.execute(partition, context)?, self.schema());
        let to = Arc::clone(&schema);
        let rows = rows.map(move |batch| of_types(&batch?, &to));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}
