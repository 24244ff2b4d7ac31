//! Lists and structs as text: `[1, NULL]::TEXT` is `[1, NULL]`, as it is printed. The engine leaves nulls out.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{Array, ArrayRef};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::{Cast, ScalarFunction};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, cast,
};

/// Whether a cast makes text of values that have values.
pub(super) fn is_of_nested(expr: &Expr, to: &DataType, schema: &DFSchema) -> bool {
    to.is_string() && matches!(expr.get_type(schema), Ok(from) if from.is_nested())
}

/// What such a cast gives.
pub(super) fn shown(Cast { expr, field }: Cast) -> Transformed<Expr> {
    let text = Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function()), vec![*expr]));
    let text = if field.data_type() == &DataType::Utf8 { text } else { cast(text, field.data_type().clone()) };
    Transformed::yes(text)
}

pub(super) fn function() -> ScalarUDF {
    ScalarUDF::from(AsText { signature: Signature::any(1, Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct AsText {
    signature: Signature,
}

impl ScalarUDFImpl for AsText {
    fn name(&self) -> &'static str {
        "plinth_as_text"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [values] = arguments.args.as_slice() else { return internal_err!("plinth_as_text: of one value") };
        match values {
            ColumnarValue::Scalar(value) => {
                let text = texts(&value.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&text, 0)?))
            }
            ColumnarValue::Array(values) => texts(values).map(ColumnarValue::Array),
        }
    }
}

fn texts(values: &ArrayRef) -> Result<ArrayRef> {
    let options = FormatOptions::new().with_null("NULL").with_display_error(false);
    let formatter = ArrayFormatter::try_new(values.as_ref(), &options)?;
    let mut texts = StringBuilder::with_capacity(values.len(), 16 * values.len());
    for row in 0..values.len() {
        match values.is_null(row) {
            true => texts.append_null(),
            false => texts.append_value(formatter.value(row).try_to_string()?),
        }
    }
    Ok(Arc::new(texts.finish()))
}
