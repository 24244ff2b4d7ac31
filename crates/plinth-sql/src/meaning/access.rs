//! Letters of texts by their places, as elements of lists: `'hello'[1:3]`; and values of maps by keys that are lists, of which the
//! engine takes the first item for the key, or panics.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result};
use datafusion::functions_nested::expr_fn::array_element;
use datafusion::functions_nested::map_extract::map_extract_udf;
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
        if let GetFieldAccess::ListIndex { key } = &field_access
            && expr.get_type(schema).is_ok_and(|of| matches!(of, DataType::Map(..)))
            && key.get_type(schema).is_ok_and(|of| of.is_list())
        {
            // A list of the one value, or of none.
            let found = ScalarFunction::new_udf(map_extract_udf(), vec![expr, (**key).clone()]);
            return Ok(PlannerResult::Planned(array_element(Expr::ScalarFunction(found), lit(1_i64))));
        }
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
