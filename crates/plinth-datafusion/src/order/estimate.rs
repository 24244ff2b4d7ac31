//! How many rows a plan gives, as far as statistics tell.

use std::sync::Arc;

use datafusion_common::stats::{ColumnStatistics, Precision};
use datafusion_common::{JoinType, Statistics};
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr::projection::ProjectionExpr;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::aggregates::AggregateExec;
use datafusion_physical_plan::filter::FilterExec;
use datafusion_physical_plan::joins::HashJoinExec;
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::statistics::{StatisticsArgs, StatisticsContext};

use super::graph::Joined;
use super::selectivity::{Known, number, selectivity};

/// What is known of a plan's rows.
#[derive(Clone, Debug)]
pub(super) struct Estimate {
    /// Its rows.
    pub(super) rows: f64,
    /// Rows before its filters.
    pub(super) all: f64,
    /// Of each column what it was before them.
    pub(super) columns: Vec<Known>,
}

impl Estimate {
    /// What is known of a plan's rows; none if their number is not.
    pub(super) fn of(plan: &dyn ExecutionPlan) -> Option<Self> {
        if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            let mut estimate = Self::of(filter.input().as_ref())?;
            let share = selectivity(filter.predicate(), &|column| estimate.column(column));
            estimate.rows = f64::max(estimate.rows * share, 1.0);
            if let Some(projection) = filter.projection().as_ref() {
                estimate.columns = projection.iter().map(|column| estimate.column(*column)).collect();
            }
            return Some(estimate);
        }
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let mut estimate = Self::of(projection.input().as_ref())?;
            let column = |expr: &ProjectionExpr| {
                expr.expr.downcast_ref::<Column>().map(|column| estimate.column(column.index())).unwrap_or_default()
            };
            estimate.columns = projection.expr().iter().map(column).collect();
            return Some(estimate);
        }
        if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
            return Self::of_groups(aggregate);
        }
        if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
            return match Joined::of(plan) {
                Some(joined) => Some(joined.estimate()),
                None => Self::of_join(join),
            };
        }
        Self::of_statistics(&*StatisticsContext::new().compute(plan, &StatisticsArgs::new()).ok()?)
    }

    fn of_statistics(statistics: &Statistics) -> Option<Self> {
        let rows = count(&statistics.num_rows)?;
        let columns = statistics.column_statistics.iter().map(|column| known(column, rows)).collect();
        Some(Self { rows, all: rows, columns })
    }

    /// Groups: no more than their keys have values, nor than there are rows.
    fn of_groups(aggregate: &AggregateExec) -> Option<Self> {
        let below = Self::of(aggregate.input().as_ref())?;
        let keys = aggregate.group_expr().expr();
        let key = |expr: &Arc<dyn PhysicalExpr>| {
            expr.downcast_ref::<Column>().map(|column| below.column(column.index())).unwrap_or_default()
        };
        let keys: Vec<Known> = keys.iter().map(|(expr, _)| key(expr)).collect();
        let groups: f64 = keys.iter().map(|key| key.distinct.unwrap_or(below.rows)).product();
        let rows = groups.min(below.rows).max(1.0);
        let rest = aggregate.schema().fields().len().saturating_sub(keys.len());
        let columns = keys.into_iter().chain((0..rest).map(|_| Known::default())).collect();
        Some(Self { rows, all: rows, columns })
    }

    /// A join that has no other order.
    fn of_join(join: &HashJoinExec) -> Option<Self> {
        let (left, right) = (Self::of(join.left().as_ref())?, Self::of(join.right().as_ref())?);
        let distinct = |side: &Self, expr: &dyn PhysicalExpr| {
            let known = expr.downcast_ref::<Column>().and_then(|column| side.column(column.index()).distinct);
            known.unwrap_or(side.all).max(1.0)
        };
        // The share of each side's rows that have a partner, by the key of which fewest values are on the other side.
        let (mut of_left, mut of_right, mut pairs) = (1.0_f64, 1.0_f64, left.rows * right.rows);
        for (one, other) in join.on() {
            let (a, b) = (distinct(&left, one.as_ref()), distinct(&right, other.as_ref()));
            // Filters leave some of the values.
            of_left = of_left.min(b.min(right.rows) / a);
            of_right = of_right.min(a.min(left.rows) / b);
            pairs /= a.max(b);
        }
        let condition = if join.filter().is_some() { 0.8 } else { 1.0 };
        let (matched_left, matched_right) = (left.rows * of_left * condition, right.rows * of_right * condition);
        let pairs = pairs * condition;
        let rows = match join.join_type() {
            JoinType::Inner => pairs,
            JoinType::Left => pairs.max(left.rows),
            JoinType::Right => pairs.max(right.rows),
            JoinType::Full => pairs.max(left.rows + right.rows - pairs),
            JoinType::LeftSemi => matched_left,
            JoinType::RightSemi => matched_right,
            JoinType::LeftAnti => (left.rows - matched_left).max(left.rows / 10.0),
            JoinType::RightAnti => (right.rows - matched_right).max(right.rows / 10.0),
            JoinType::LeftMark => left.rows,
            JoinType::RightMark => right.rows,
        };
        let mut columns = match join.join_type() {
            JoinType::LeftSemi | JoinType::LeftAnti => left.columns,
            JoinType::RightSemi | JoinType::RightAnti => right.columns,
            JoinType::LeftMark => left.columns.into_iter().chain([Known::default()]).collect(),
            JoinType::RightMark => right.columns.into_iter().chain([Known::default()]).collect(),
            _ => left.columns.into_iter().chain(right.columns).collect(),
        };
        if let Some(projection) = &join.projection {
            columns = projection.iter().map(|at| columns.get(*at).cloned().unwrap_or_default()).collect();
        }
        let all = match join.join_type() {
            JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => left.all,
            JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => right.all,
            _ => rows.max(1.0),
        };
        Some(Self { rows: rows.max(1.0), all, columns })
    }

    /// What is known of a column.
    pub(super) fn column(&self, column: usize) -> Known {
        self.columns.get(column).cloned().unwrap_or_default()
    }
}

fn known(column: &ColumnStatistics, rows: f64) -> Known {
    let bounds = column.min_value.get_value().zip(column.max_value.get_value());
    let bounds = bounds.and_then(|(min, max)| number(min).zip(number(max)));
    let distinct = count(&column.distinct_count).map(|distinct| distinct.min(rows).max(1.0));
    let nulls = count(&column.null_count).map_or(0.0, |nulls| nulls / rows.max(1.0));
    Known { distinct, bounds, nulls }
}

#[allow(clippy::cast_precision_loss, reason = "an estimate")]
fn count(number: &Precision<usize>) -> Option<f64> {
    number.get_value().map(|number| *number as f64)
}
