//! What SQL means, where the engine below answers otherwise: rules of our own, before its optimizer sees a plan.
//!
//! docs/design/sql-exactness.md lists what is mended here, and what is refused.

mod access;
mod bound;
mod clauses;
mod dates;
mod dialect;
mod expressions;
mod extremes;
mod grouping_sets;
mod intervals;
mod lists;
mod maps;
mod marks;
mod multisets;
mod nearest;
mod once;
mod quantified;
mod recursion;
mod same_names;
mod using;
mod values;
mod windows;

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_optimizer::PhysicalOptimizerRule;

pub(crate) use clauses::keep_clauses;
pub(crate) use dialect::PlinthDialect;
pub(crate) use maps::MAP;
pub(crate) use same_names::filters_by_column;
pub(crate) use using::check as check_using;
pub(crate) use windows::resolve_windows;

/// Rules for plans whose types have been told.
pub(crate) fn rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    vec![
        Arc::new(bound::Bound),
        Arc::new(expressions::Expressions),
        Arc::new(multisets::Multisets),
        Arc::new(quantified::Quantified),
    ]
}

/// Planners of expressions, before those of the engine.
pub(crate) fn planners() -> Vec<Arc<dyn ExprPlanner>> {
    vec![Arc::new(access::Letters)]
}

/// A rule for plans before any other looks at them.
pub(crate) fn grouping_rule() -> Arc<dyn PhysicalOptimizerRule + Send + Sync> {
    Arc::new(grouping_sets::Unknown)
}

/// A rule for plans that are about to run.
pub(crate) fn recursion_rule() -> Arc<dyn PhysicalOptimizerRule + Send + Sync> {
    Arc::new(recursion::OneByOne)
}

/// Functions and operators that take the place of others.
pub(crate) fn register(state: &mut SessionState) -> Result<()> {
    state.register_expr_planner(Arc::new(dates::DatesAndHours))?;
    state.register_udf(Arc::new(maps::function()))?;
    for function in extremes::functions() {
        state.register_udaf(Arc::new(function))?;
    }
    Ok(())
}
