//! Joins by sorting and merging in the place of joins by hashing.

use std::sync::Arc;

use arrow_schema::{Schema, SortOptions};
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_common::{JoinSide, JoinType, NullEquality, Result, internal_datafusion_err};
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::joins::SortMergeJoinExec;
use datafusion_physical_plan::joins::utils::{JoinFilter, JoinOn};

/// The join of two sides whose rows will be in the order of their keys.
///
/// # Errors
/// If keys have no order, or the condition reads columns that there are not.
pub fn merge_join(
    left: Arc<dyn ExecutionPlan>,
    right: Arc<dyn ExecutionPlan>,
    on: JoinOn,
    condition: Option<&JoinFilter>,
    kind: JoinType,
    nulls: NullEquality,
) -> Result<SortMergeJoinExec> {
    let options = vec![SortOptions::default(); on.len()];
    let condition = condition.map(left_first).transpose()?;
    SortMergeJoinExec::try_new(left, right, on, condition, kind, options, nulls)
}

/// A condition whose columns of the left side come before those of the right one: the engine's merge hands them over so, whatever the condition
/// says. A join whose sides were swapped has them the other way.
fn left_first(condition: &JoinFilter) -> Result<JoinFilter> {
    let columns = condition.column_indices();
    let mut order: Vec<usize> = (0..columns.len()).collect();
    order.sort_by_key(|at| columns.get(*at).is_none_or(|column| column.side != JoinSide::Left));
    let none = || internal_datafusion_err!("a join's condition reads a column that is none");
    let expression = Arc::clone(condition.expression()).transform_up(|expr| {
        let Some(column) = expr.downcast_ref::<Column>() else { return Ok(Transformed::no(expr)) };
        let at = order.iter().position(|at| *at == column.index()).ok_or_else(none)?;
        Ok(Transformed::yes(Arc::new(Column::new(column.name(), at))))
    });
    let fields = order.iter().map(|at| condition.schema().fields().get(*at).cloned().ok_or_else(none));
    let schema = Schema::new(fields.collect::<Result<Vec<_>>>()?);
    let columns = order.iter().map(|at| columns.get(*at).cloned().ok_or_else(none)).collect::<Result<Vec<_>>>()?;
    Ok(JoinFilter::new(expression.data()?, columns, Arc::new(schema)))
}
