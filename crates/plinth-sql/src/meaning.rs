//! What SQL means, where the engine below answers otherwise: rules of our own, before its optimizer sees a plan.
//!
//! docs/design/sql-exactness.md lists what is mended here, and what is refused.

mod access;
mod alone;
mod any;
mod as_text;
mod bound;
mod by_length;
mod bytes;
mod clauses;
mod concatenation;
mod dates;
mod dialect;
mod expressions;
mod extremes;
mod finer;
mod fractions;
mod functions;
mod grouping_sets;
mod guards;
mod intervals;
mod list_order;
mod lists;
mod maps;
mod marks;
mod maybe;
mod multisets;
mod narrower;
mod nearest;
mod nested;
mod once;
mod operators;
mod quantified;
mod quantiles;
mod recursion;
mod regression;
mod rows;
mod same_names;
mod scaled;
mod times;
mod unnesting;
mod values;
mod windows;
mod years;
mod zeros;
mod zones;

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::ScalarUDF;
use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_optimizer::PhysicalOptimizerRule;

pub(crate) use any::function_of as function_of_any;
pub(crate) use clauses::{keep_clauses, of_aggregates};
pub(crate) use dialect::PlinthDialect;
pub(crate) use fractions::whole as whole_interval;
pub(crate) use maps::MAP;
pub(crate) use same_names::filters_by_column;
pub(crate) use values::APART;
pub(crate) use windows::resolve_windows;
pub(crate) use zones::AT_ZONE;

/// Rules for plans whose types have been told.
pub(crate) fn rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    vec![
        Arc::new(rows::Rows),
        Arc::new(bound::Bound),
        Arc::new(expressions::Expressions),
        Arc::new(multisets::Multisets),
        Arc::new(by_length::ByLength),
        Arc::new(quantified::Quantified),
        Arc::new(alone::Alone),
        Arc::new(recursion::OnceInFrom),
    ]
}

/// Rules for plans before types are made to meet, given which names of scans are those of functions.
pub(crate) fn first_rules(is_function: fn(&str) -> bool) -> [Arc<dyn AnalyzerRule + Send + Sync>; 2] {
    [Arc::new(functions::CallsApart(is_function)), Arc::new(by_length::ByLength)]
}

/// Planners of expressions, before those of the engine.
pub(crate) fn planners() -> Vec<Arc<dyn ExprPlanner>> {
    vec![
        Arc::new(access::Letters),
        Arc::new(operators::OfIntegers),
        Arc::new(times::TimesOfUnits),
        Arc::new(years::Extract),
        Arc::new(scaled::Scaled),
    ]
}

/// A rule for plans before any other looks at them.
pub(crate) fn grouping_rule() -> Arc<dyn PhysicalOptimizerRule + Send + Sync> {
    Arc::new(grouping_sets::Unknown)
}

/// A rule for plans that are about to run.
pub(crate) fn recursion_rule() -> Arc<dyn PhysicalOptimizerRule + Send + Sync> {
    Arc::new(recursion::OneByOne)
}

/// Functions that plans have and no statement can name: who is sent a plan finds them by the names that they have in it.
pub fn functions_of_plans() -> Vec<ScalarUDF> {
    let mut functions = vec![lists::itself(0), once::within(), intervals::length(), maybe::function()];
    functions.extend([unnesting::single_function(), scaled::times(), scaled::divided(), as_text::function()]);
    functions.extend(nested::comparisons());
    functions
}

/// Whether a function is one of [`functions_of_plans`].
pub fn is_of_plans(function: &ScalarUDF) -> bool {
    lists::is_itself(function) || functions_of_plans().iter().any(|known| known == function)
}

/// Functions and operators that take the place of others.
pub(crate) fn register(state: &mut SessionState) -> Result<()> {
    state.register_expr_planner(Arc::new(dates::DatesAndHours))?;
    state.register_udf(Arc::new(maps::function()))?;
    state.register_udf(Arc::new(values::apart()))?;
    state.register_udf(Arc::new(years::function()))?;
    state.register_udf(Arc::new(zones::function()))?;
    if let Some(text) = state.scalar_functions().get("concat").map(Arc::clone) {
        state.register_udf(Arc::new(concatenation::function(text)))?;
    }
    for function in any::functions().chain(list_order::functions()) {
        state.register_udf(Arc::new(function))?;
    }
    for function in extremes::functions().into_iter().chain([regression::function(), quantiles::function()]) {
        state.register_udaf(Arc::new(function))?;
    }
    Ok(())
}
