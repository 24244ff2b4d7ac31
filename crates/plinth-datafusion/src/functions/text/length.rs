//! `length` and `len`: the letters of texts, the elements of lists.

use std::sync::Arc;

use arrow_array::builder::Int64Builder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use datafusion_common::{Result, exec_err, internal_err};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use datafusion_functions::unicode::character_length;

/// The engine's function of texts, which takes a list for its text, and one of lists.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Length {
    signature: Signature,
    aliases: Vec<String>,
    of_texts: Arc<ScalarUDF>,
}

impl Default for Length {
    fn default() -> Self {
        let signature = Signature::user_defined(Volatility::Immutable);
        Self { signature, aliases: vec!["len".to_owned()], of_texts: character_length() }
    }
}

fn is_list(data_type: &DataType) -> bool {
    matches!(data_type, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..))
}

impl ScalarUDFImpl for Length {
    fn name(&self) -> &'static str {
        "length"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [of] if is_list(of) || of.is_string() => Ok(types.to_vec()),
            [_] => Ok(vec![DataType::Utf8]),
            _ => exec_err!("length: takes a text or a list"),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [of] if is_list(of) => Ok(DataType::Int64),
            _ => self.of_texts.return_type(types),
        }
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let [of] = args.as_slice() else { return internal_err!("length was given {} arguments", args.len()) };
        if is_list(&info.get_data_type(of)?) {
            return Ok(ExprSimplifyResult::Original(args));
        }
        let function = ScalarFunction::new_udf(Arc::clone(&self.of_texts), args);
        Ok(ExprSimplifyResult::Simplified(Expr::ScalarFunction(function)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [of] = args.args.as_slice() else {
            return internal_err!("length was given {} arguments", args.args.len());
        };
        if !is_list(&of.data_type()) {
            return self.of_texts.inner().invoke_with_args(args);
        }
        let rows = args.number_rows;
        Ok(ColumnarValue::Array(lengths(&of.to_array(rows)?)))
    }
}

fn lengths(lists: &ArrayRef) -> ArrayRef {
    let mut out = Int64Builder::with_capacity(lists.len());
    let whole = |list: ArrayRef| i64::try_from(list.len()).unwrap_or(i64::MAX);
    match lists.data_type() {
        DataType::LargeList(_) => lists.as_list::<i64>().iter().for_each(|list| out.append_option(list.map(whole))),
        DataType::FixedSizeList(..) => {
            lists.as_fixed_size_list().iter().for_each(|list| out.append_option(list.map(whole)));
        }
        _ => lists.as_list::<i32>().iter().for_each(|list| out.append_option(list.map(whole))),
    }
    Arc::new(out.finish())
}
