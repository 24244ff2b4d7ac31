//! Letters of texts by their places, as elements of lists: `'hello'[1:3]`.

use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawFieldAccessExpr};
use datafusion::logical_expr::{Expr, ExprSchemable, GetFieldAccess, lit};
use plinth_datafusion::text_slice;

/// Plans `x[1]` and `x[1:3]` of texts.
#[derive(Debug)]
pub(super) struct Letters;

impl ExprPlanner for Letters {
    fn plan_field_access(
        &self,
        access: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        let RawFieldAccessExpr { field_access, expr } = access;
        if !expr.get_type(schema).is_ok_and(|of| of.is_string()) {
            return Ok(PlannerResult::Original(RawFieldAccessExpr { field_access, expr }));
        }
        let (from, to) = match field_access {
            GetFieldAccess::ListIndex { key } => ((*key).clone(), *key),
            GetFieldAccess::ListRange { start, stop, stride } if *stride == lit(1_i64) => (*start, *stop),
            field_access => return Ok(PlannerResult::Original(RawFieldAccessExpr { field_access, expr })),
        };
        let slice = ScalarFunction::new_udf(text_slice(), vec![expr, from, to]);
        Ok(PlannerResult::Planned(Expr::ScalarFunction(slice)))
    }
}
