//! The value of a subquery that may have one row and no more.

use std::sync::Arc;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::max;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, exec_err, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// A value, and how many there are.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Single {
    signature: Signature,
}

/// The function.
pub(in crate::meaning) fn function() -> ScalarUDF {
    ScalarUDF::from(Single { signature: Signature::any(2, Volatility::Immutable) })
}

/// A value if there are no more rows than one; NULL of none.
pub(super) fn checked(value: Expr, rows: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function()), vec![value, rows]))
}

impl ScalarUDFImpl for Single {
    fn name(&self) -> &'static str {
        "plinth_single"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let [value, _] = arguments else { return internal_err!("plinth_single: of a value and a number of rows") };
        Ok(value.clone())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = arguments.number_rows;
        let Ok([value, count]) = <[ColumnarValue; 2]>::try_from(arguments.args) else {
            return internal_err!("plinth_single: of a value and a number of rows");
        };
        let count = count.into_array(rows)?;
        match max(count.as_primitive::<Int64Type>()) {
            Some(most) if most > 1 => exec_err!(
                "a subquery in the place of a value has {most} rows for a row around it; write LIMIT 1, or an aggregate such as max"
            ),
            _ => Ok(value),
        }
    }
}
