//! `extract(year FROM ts) < 9999`, of a year that no timestamp of its unit has: the engine compares with NULL in its place.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::functions::datetime::date_part;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult};
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

/// `date_part`, to take the place of the engine's.
pub(super) fn function() -> ScalarUDF {
    ScalarUDF::from(DatePart { inner: date_part() })
}

/// Plans EXTRACT, for which the engine takes its own function whatever takes its place.
#[derive(Debug)]
pub(super) struct Extract;

impl ExprPlanner for Extract {
    fn plan_extract(&self, arguments: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        let call = ScalarFunction::new_udf(Arc::new(function()), arguments);
        Ok(PlannerResult::Planned(Expr::ScalarFunction(call)))
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DatePart {
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for DatePart {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.inner().return_type(types)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(arguments)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.inner.invoke_with_args(arguments)
    }

    fn simplify(&self, arguments: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.simplify(arguments, context)
    }

    fn preimage(&self, arguments: &[Expr], year: &Expr, context: &SimplifyContext) -> Result<PreimageResult> {
        Ok(match self.inner.inner().preimage(arguments, year, context)? {
            PreimageResult::Range { interval, .. } if interval.lower().is_null() || interval.upper().is_null() => {
                PreimageResult::None
            }
            other => other,
        })
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}
