//! `concat` of lists: one list of all their items. The engine joins their texts.

use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::functions_nested::concat::array_concat_udf;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use plinth_datafusion::sql_type_name;

/// `concat` of the engine, which is to be that of text, and that of lists.
pub(super) fn function(text: Arc<ScalarUDF>) -> ScalarUDF {
    Joined { text, lists: array_concat_udf(), signature: Signature::user_defined(Volatility::Immutable) }.into()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Joined {
    text: Arc<ScalarUDF>,
    lists: Arc<ScalarUDF>,
    signature: Signature,
}

fn is_list(data_type: &DataType) -> bool {
    matches!(data_type, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..))
}

impl Joined {
    fn of(&self, types: &[DataType]) -> &ScalarUDF {
        if types.iter().any(is_list) { &self.lists } else { &self.text }
    }
}

impl ScalarUDFImpl for Joined {
    fn name(&self) -> &'static str {
        "concat"
    }

    fn aliases(&self) -> &[String] {
        self.text.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        if let (Some(list), Some(other)) =
            (types.iter().find(|of| is_list(of)), types.iter().find(|of| !is_list(of) && !of.is_null()))
        {
            let (list, other) = (sql_type_name(list), sql_type_name(other));
            return plan_err!(
                "concat: {list} beside {other}; write [value] for a list of it, or array_to_string(list, ', ') for text"
            );
        }
        let Some(list) = types.iter().find(|of| is_list(of)) else { return self.text.coerce_types(types) };
        // NULL is no list, and is left out.
        let lists: Vec<DataType> =
            types.iter().map(|of| if of.is_null() { list.clone() } else { of.clone() }).collect();
        self.lists.coerce_types(&lists)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.of(types).return_type(types)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let mut types = args.iter().map(|arg| info.get_data_type(arg)).collect::<Result<Vec<_>>>()?.into_iter();
        if types.any(|of| is_list(&of)) {
            Ok(ExprSimplifyResult::Original(args))
        } else {
            self.text.simplify(args, info)
        }
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.text.documentation()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let types: Vec<DataType> = args.args.iter().map(ColumnarValue::data_type).collect();
        self.of(&types).invoke_with_args(args)
    }
}
