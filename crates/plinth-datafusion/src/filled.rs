//! Columns that an outer join fills up with NULL: what was constant in them is so no longer.
//!
//! The engine keeps constants of that side (`(SELECT * FROM o WHERE st = 'paid')`) and leaves them out of the orders of sorts and windows above the join.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion_common::{JoinType, Result, Statistics, internal_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::utils::collect_columns;
use datafusion_physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion_physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion_physical_plan::statistics::StatisticsArgs;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use datafusion_session::PhysicalOptimizerRule;

/// Whether a join fills up columns of its left side and of its right side.
pub(crate) fn filled(kind: JoinType) -> (bool, bool) {
    match kind {
        JoinType::Left => (false, true),
        JoinType::Right => (true, false),
        JoinType::Full => (true, true),
        _ => (false, false),
    }
}

/// What is known of rows without the constants among some columns; `None` if there are none.
pub(crate) fn without_constants(
    known: &EquivalenceProperties,
    is_filled: impl Fn(usize) -> bool,
) -> Result<Option<EquivalenceProperties>> {
    let touches = |expr: &Arc<dyn PhysicalExpr>| collect_columns(expr).iter().any(|column| is_filled(column.index()));
    let constants = known.constants();
    if !constants.iter().any(|constant| touches(&constant.expr)) {
        return Ok(None);
    }
    let orderings = known.oeq_class().iter().cloned();
    let mut left = EquivalenceProperties::new_with_orderings(Arc::clone(known.schema()), orderings)
        .with_constraints(known.constraints().clone());
    for class in known.eq_group().iter() {
        // A literal among equal values is what makes them constant.
        let is_kept =
            |member: &&Arc<dyn PhysicalExpr>| !collect_columns(member).is_empty() || !class.iter().any(touches);
        let mut members = class.iter().filter(is_kept);
        let Some(first) = members.next() else { continue };
        for other in members {
            left.add_equal_conditions(Arc::clone(first), Arc::clone(other))?;
        }
    }
    left.add_constants(constants.into_iter().filter(|constant| !touches(&constant.expr)))?;
    Ok(Some(left))
}

/// Puts a [`FilledExec`] above each join of the engine that needs it.
#[derive(Debug)]
pub struct FilledSides;

impl PhysicalOptimizerRule for FilledSides {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let Some(columns) = filled_columns(&plan) else { return Ok(Transformed::no(plan)) };
            Ok(match FilledExec::over(&plan, columns)? {
                Some(over) => Transformed::yes(Arc::new(over)),
                None => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "filled_sides"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The columns of a join of the engine that it fills up, by their numbers.
fn filled_columns(plan: &Arc<dyn ExecutionPlan>) -> Option<HashSet<usize>> {
    let (kind, projection) = if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        (*join.join_type(), join.projection.as_ref().map(|columns| columns.to_vec()))
    } else if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
        (*join.join_type(), join.projection().as_ref().map(|columns| columns.to_vec()))
    } else if let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() {
        (join.join_type(), None)
    } else {
        return None;
    };
    let (left, right) = filled(kind);
    if !left && !right {
        return None;
    }
    let width = plan.children().first()?.schema().fields().len();
    let columns = projection.unwrap_or_else(|| (0..plan.schema().fields().len()).collect());
    let is_filled = |column: &usize| if *column < width { left } else { right };
    Some(columns.iter().enumerate().filter(|(_, column)| is_filled(column)).map(|(at, _)| at).collect())
}

/// The rows of an outer join, of which less is known than it says.
#[derive(Debug)]
struct FilledExec {
    input: Arc<dyn ExecutionPlan>,
    columns: Arc<HashSet<usize>>,
    properties: Arc<PlanProperties>,
}

impl FilledExec {
    fn over(input: &Arc<dyn ExecutionPlan>, columns: HashSet<usize>) -> Result<Option<Self>> {
        let known = input.equivalence_properties();
        let Some(known) = without_constants(known, |column| columns.contains(&column))? else { return Ok(None) };
        Ok(Some(Self::with(input, Arc::new(columns), known)))
    }

    fn with(input: &Arc<dyn ExecutionPlan>, columns: Arc<HashSet<usize>>, mut known: EquivalenceProperties) -> Self {
        known.clear_orderings();
        let properties = input.properties();
        let properties = PlanProperties::new(
            known,
            properties.output_partitioning().clone(),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Self { input: Arc::clone(input), columns, properties: Arc::new(properties) }
    }
}

impl DisplayAs for FilledExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ExecutionPlan for FilledExec {
    fn name(&self) -> &'static str {
        "FilledExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    // A sort that goes below would leave columns out again.
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] = children.as_slice() else {
            return internal_err!("the rows of one join are filled up, not of {}", children.len());
        };
        let known = input.equivalence_properties();
        let less = without_constants(known, |column| self.columns.contains(&column))?;
        let known = less.unwrap_or_else(|| known.clone());
        Ok(Arc::new(Self::with(input, Arc::clone(&self.columns), known)))
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn statistics_from_inputs(&self, inputs: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        match inputs {
            [of_input] => Ok(Arc::clone(of_input)),
            _ => internal_err!("the rows of one join are filled up, not of {}", inputs.len()),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}
