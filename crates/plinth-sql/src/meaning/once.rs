//! `x BETWEEN low AND high` of an `x` that is another with each look at it.

use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::arrow::compute::and_kleene;
use datafusion::arrow::compute::kernels::cmp::{gt_eq, lt_eq};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::expr::{Between, ScalarFunction};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// The same as a function, whose arguments are evaluated once.
pub(super) fn between(between: Between) -> Expr {
    let Between { expr, negated, low, high } = between;
    let within = Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(self::within()), vec![*expr, *low, *high]));
    if negated { Expr::Not(Box::new(within)) } else { within }
}

pub(super) fn within() -> ScalarUDF {
    ScalarUDF::from(Within { signature: Signature::any(3, Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Within {
    signature: Signature,
}

impl ScalarUDFImpl for Within {
    fn name(&self) -> &'static str {
        "within"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let arrays = args.args.into_iter().map(|arg| arg.into_array(rows)).collect::<Result<Vec<_>>>()?;
        let [value, low, high] = arrays.as_slice() else { return internal_err!("within: of three values") };
        Ok(ColumnarValue::Array(Arc::new(and_kleene(&gt_eq(value, low)?, &lt_eq(value, high)?)?)))
    }
}
