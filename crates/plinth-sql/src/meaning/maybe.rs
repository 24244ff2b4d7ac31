//! The value of a subquery that may find no row, which is NULL then, also of a column that has none.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, Projection, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Subquery, Volatility,
};

/// A value as one that may be NULL.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Maybe {
    signature: Signature,
}

pub(super) fn function() -> ScalarUDF {
    ScalarUDF::from(Maybe { signature: Signature::any(1, Volatility::Immutable) })
}

/// A subquery with a column that may be NULL, if it has another.
pub(super) fn nullable(subquery: &Subquery) -> Result<Option<Subquery>> {
    let plan = &subquery.subquery;
    let [field] = plan.schema().fields().as_ref() else { return Ok(None) };
    if field.is_nullable() {
        return Ok(None);
    }
    let of = |value: Expr| Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function()), vec![value]));
    let plan = match plan.as_ref() {
        LogicalPlan::Projection(Projection { expr, input, .. }) => {
            let name = field.name().clone();
            let values = expr.iter().map(|value| of(value.clone().unalias()).alias(name.clone())).collect();
            LogicalPlan::Projection(Projection::try_new(values, Arc::clone(input))?)
        }
        other => {
            let columns = other.schema().columns().into_iter();
            let values = columns.map(|column| of(Expr::Column(column.clone())).alias(column.name));
            LogicalPlanBuilder::from(other.clone()).project(values.collect::<Vec<_>>())?.build()?
        }
    };
    Ok(Some(subquery.with_plan(Arc::new(plan))))
}

impl ScalarUDFImpl for Maybe {
    fn name(&self) -> &'static str {
        "plinth_maybe"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let [one] = arguments else { return internal_err!("plinth_maybe: of one value") };
        Ok(one.clone())
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let [one] = arguments.arg_fields else { return internal_err!("plinth_maybe: of one value") };
        Ok(Arc::new(one.as_ref().clone().with_nullable(true)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = arguments.args.as_slice() else { return internal_err!("plinth_maybe: of one value") };
        Ok(value.clone())
    }
}
