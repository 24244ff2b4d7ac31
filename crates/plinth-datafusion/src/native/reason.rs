//! Why an operator of a plan is not an own one.

use datafusion_common::Result;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::aggregates::{AggregateExec, AggregateMode};

use super::plan::Plan;

/// Why the groups of a plan's node are the engine's; none of a node that makes no groups, or is the first of two that do.
pub(crate) fn left_to_the_engine(plan: &dyn ExecutionPlan) -> Result<Option<&'static str>> {
    let Some(last) = plan.downcast_ref::<AggregateExec>() else { return Ok(None) };
    let of_rows = match last.mode() {
        AggregateMode::Single | AggregateMode::SinglePartitioned => Some(last),
        AggregateMode::Final | AggregateMode::FinalPartitioned => first(last),
        _ => return Ok(None),
    };
    let reason = of_rows.map(Plan::over).transpose()?.and_then(Result::err);
    Ok(Some(reason.unwrap_or("not a partial and a final aggregate")))
}

/// The aggregate whose states another one merges.
fn first(last: &AggregateExec) -> Option<&AggregateExec> {
    let mut below = last.input();
    loop {
        if let Some(first) = below.downcast_ref::<AggregateExec>() {
            return (*first.mode() == AggregateMode::Partial).then_some(first);
        }
        let &[input] = below.children().as_slice() else { return None };
        below = input;
    }
}
