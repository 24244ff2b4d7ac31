//! What a join asks of groups on its right side: keys that are keys of these, too.
//!
//! Of `x = (SELECT min(y) FROM t WHERE t.k = k)` comes a join by the key and by the aggregate. The engine's filter is of both, which rows below the
//! groups don't have; one of the key alone is handed to what the groups are made of.

use std::sync::Arc;

use arrow_schema::{DataType, SchemaRef};
use datafusion_common::Result;
use datafusion_physical_expr::expressions::{Column, DynamicFilterPhysicalExpr, lit};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::execution_plan::replace_children_if_necessary;
use datafusion_physical_plan::joins::HashJoinExec;
use datafusion_physical_plan::projection::ProjectionExec;
use plinth_exec::join::Table;
use plinth_io::Reservation;

use crate::native::aggregate::GroupExec;
use crate::native::condition;

/// A filter of rows that groups are made of.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    filter: Arc<DynamicFilterPhysicalExpr>,
    /// The join's keys that are keys of the groups, and what these are of the rows below.
    keys: Vec<(usize, Arc<dyn PhysicalExpr>)>,
    schema: SchemaRef,
}

impl Asked {
    /// What a join can ask of its right side, and that side, which is told.
    pub(super) fn of(join: &HashJoinExec) -> Result<Option<(Self, Arc<dyn ExecutionPlan>)>> {
        let (_, right_preserved) = join.join_type().on_lr_is_preserved();
        if !right_preserved || join.null_aware {
            return Ok(None);
        }
        let column = |expr: &Arc<dyn PhysicalExpr>| expr.downcast_ref::<Column>().map(Column::index);
        told(join.right(), join.on().iter().map(|(_, right)| column(right)).collect())
    }

    /// Has the filter hold for the keys of a table.
    pub(super) fn answer(&self, table: &Table, types: &[DataType], memory: &mut Reservation) -> Result<()> {
        let keys = self.keys.iter().map(|(key, expr)| (*key, expr));
        self.filter.update(condition::of_keys(table, keys, types, &self.schema, memory)?)?;
        self.filter.mark_complete();
        Ok(())
    }

    /// The filter.
    pub(super) fn filter(&self) -> &Arc<DynamicFilterPhysicalExpr> {
        &self.filter
    }

    /// Has the filter hold for all rows, as before a run.
    pub(super) fn forget(&self) -> Result<()> {
        self.filter.update(lit(true))
    }
}

/// A plan of groups below projections, whose rows are asked for some of its columns; none if all or none of these are keys of the groups.
fn told(plan: &Arc<dyn ExecutionPlan>, columns: Vec<Option<usize>>) -> Result<Option<(Asked, Arc<dyn ExecutionPlan>)>> {
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let below = |at: usize| projection.expr().get(at)?.expr.downcast_ref::<Column>().map(Column::index);
        let below = columns.into_iter().map(|at| at.and_then(below)).collect();
        let Some((asked, input)) = told(projection.input(), below)? else { return Ok(None) };
        return Ok(Some((asked, replace_children_if_necessary(Arc::clone(plan), vec![input])?)));
    }
    let Some(group) = plan.downcast_ref::<GroupExec>() else { return Ok(None) };
    let key = |(key, column): (usize, &Option<usize>)| Some((key, Arc::clone(group.key((*column)?)?)));
    let keys: Vec<_> = columns.iter().enumerate().filter_map(key).collect();
    if keys.is_empty() || keys.len() == columns.len() {
        return Ok(None);
    }
    let exprs = keys.iter().map(|(_, expr)| Arc::clone(expr)).collect();
    let filter = Arc::new(DynamicFilterPhysicalExpr::new(exprs, lit(true)));
    let Some(group) = group.asked(&filter) else { return Ok(None) };
    let schema = group.children().first().map_or_else(|| group.schema(), |input| input.schema());
    Ok(Some((Asked { filter, keys, schema }, Arc::new(group))))
}
