//! Filters on their way down a plan, past columns of the same name.
//!
//! The engine's operators find the columns of a filter that passes through them by name, and take the first of that name. Behind a join there
//! may be two: `SELECT a.x, b.x FROM a RIGHT JOIN b ... WHERE a.x IS NULL` asked `b.x IS NULL` of the scan of `b`.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::filter_pushdown::{ChildFilterDescription, FilterDescription, FilterPushdownPhase};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

/// The rules of the engine, of which those that push filters down leave them above columns that they would mistake.
pub(crate) fn filters_by_column(
    rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>,
) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let fenced = |rule: Arc<dyn PhysicalOptimizerRule + Send + Sync>| match rule.name().starts_with("FilterPushdown") {
        true => Arc::new(FiltersByColumn(rule)) as _,
        false => rule,
    };
    rules.into_iter().map(fenced).collect()
}

/// A rule that pushes filters down, with fences where columns of one name would be mistaken. The fences stand while it runs.
#[derive(Debug)]
struct FiltersByColumn(Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl PhysicalOptimizerRule for FiltersByColumn {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        // Only a join has columns of one name.
        if !plan.exists(|plan| Ok(plan.children().len() > 1))? {
            return self.0.optimize(plan, config);
        }
        let fenced = plan.transform_up(fence)?;
        let planned = self.0.optimize(fenced.data, config)?;
        if !fenced.transformed {
            return Ok(planned);
        }
        let open = |plan: Arc<dyn ExecutionPlan>| match plan.downcast_ref::<FenceExec>() {
            Some(fence) => Ok(Transformed::yes(Arc::clone(&fence.input))),
            None => Ok(Transformed::no(plan)),
        };
        planned.transform_up(open).data()
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

fn fence(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let mut names = HashSet::new();
    // A join knows the sides of its columns by their places, and looks for their names within a side.
    if plan.children().len() < 2 || plan.is::<UnionExec>() {
        several(&plan.schema(), &mut names);
    }
    // A projection looks for names among its own columns only.
    if !plan.is::<ProjectionExec>() {
        plan.children().iter().for_each(|child| several(&child.schema(), &mut names));
    }
    if names.is_empty() {
        return Ok(Transformed::no(plan));
    }
    Ok(Transformed::yes(Arc::new(FenceExec { input: plan, names: Arc::new(names) })))
}

/// Adds the names that more than one column has.
fn several(schema: &Schema, names: &mut HashSet<String>) {
    let mut seen = HashSet::with_capacity(schema.fields().len());
    for field in schema.fields() {
        if !seen.insert(field.name()) {
            names.insert(field.name().clone());
        }
    }
}

/// Keeps filters of columns of some names from its input.
#[derive(Debug)]
struct FenceExec {
    input: Arc<dyn ExecutionPlan>,
    names: Arc<HashSet<String>>,
}

impl DisplayAs for FenceExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ExecutionPlan for FenceExec {
    fn name(&self) -> &'static str {
        "FenceExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] = children.as_slice() else {
            return internal_err!("a fence has one input, not {}", children.len());
        };
        Ok(Arc::new(Self { input: Arc::clone(input), names: Arc::clone(&self.names) }))
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn fetch(&self) -> Option<usize> {
        self.input.fetch()
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(Arc::new(Self { input: self.input.with_fetch(limit)?, names: Arc::clone(&self.names) }))
    }

    fn gather_filters_for_pushdown(
        &self,
        _: FilterPushdownPhase,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        _: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let schema = self.schema();
        let open = |at: &usize| !self.names.contains(schema.field(*at).name());
        let open = (0..schema.fields().len()).filter(open).collect();
        let child = ChildFilterDescription::from_child_with_allowed_indices(&filters, open, &self.input)?;
        Ok(FilterDescription::new().with_child(child))
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        internal_err!("a fence of filters was left in a plan")
    }
}
