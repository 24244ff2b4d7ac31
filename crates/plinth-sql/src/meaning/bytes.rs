//! Text that becomes BLOB because of where it stands: a column that INSERT or UPDATE fills, the other side of a comparison, a row of
//! VALUES, an arm of UNION or CASE.
//!
//! The engine takes the letters as they are. Here `\x` and two hexadecimal digits are a byte, as in `CAST(x AS BLOB)`, and as DuckDB
//! has it; another backslash is an error.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, LargeListArray, ListArray};
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err, plan_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use plinth_datafusion::{bytes_of_texts, sql_type_name};

/// What is to be cast to a type, with bytes in the place of texts that become bytes. What `fails` not is NULL.
pub(super) fn of_texts(expr: Expr, schema: &DFSchema, to: &DataType, fails: bool) -> Result<Transformed<Expr>> {
    if !holds(to, is_bytes) {
        return Ok(Transformed::no(expr));
    }
    let from = expr.get_type(schema)?;
    let Some(bytes) = with_bytes(&from, to) else {
        if holds(&from, is_text) && !is_text(&from) {
            let (from, to) = (sql_type_name(&from), sql_type_name(to));
            return plan_err!("{expr}: {from} can't become {to} as a whole; cast the text in it to BLOB by itself");
        }
        return Ok(Transformed::no(expr));
    };
    if bytes == from {
        return Ok(Transformed::no(expr));
    }
    let function = ScalarUDF::from(Bytes { to: bytes, fails, signature: Signature::any(1, Volatility::Immutable) });
    Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), vec![expr]))))
}

fn is_text(of: &DataType) -> bool {
    match of {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, value) => is_text(value),
        _ => false,
    }
}

fn is_bytes(of: &DataType) -> bool {
    use DataType::{Binary, BinaryView, FixedSizeBinary, LargeBinary};
    matches!(of, Binary | LargeBinary | BinaryView | FixedSizeBinary(_))
}

/// Whether a type, or one within it, is of a kind.
fn holds(of: &DataType, kind: fn(&DataType) -> bool) -> bool {
    use DataType::{FixedSizeList, LargeList, LargeListView, List, ListView, Map, Struct};
    match of {
        List(item) | LargeList(item) | FixedSizeList(item, _) | ListView(item) | LargeListView(item) | Map(item, _) => {
            holds(item.data_type(), kind)
        }
        Struct(fields) => fields.iter().any(|field| holds(field.data_type(), kind)),
        other => kind(other),
    }
}

/// A type with bytes in the place of text that is to become bytes; none where there is text that is not reached.
fn with_bytes(from: &DataType, to: &DataType) -> Option<DataType> {
    use DataType::{FixedSizeList, LargeList, List};
    let item_of = |to: &DataType| match to {
        List(item) | LargeList(item) | FixedSizeList(item, _) => Some(item.data_type().clone()),
        _ => None,
    };
    let item = |from: &FieldRef| {
        let item = with_bytes(from.data_type(), &item_of(to)?)?;
        Some(Arc::new(Field::new(from.name(), item, true)))
    };
    Some(match from {
        text if is_text(text) && is_bytes(to) => DataType::Binary,
        List(from) => List(item(from)?),
        LargeList(from) => LargeList(item(from)?),
        FixedSizeList(from, size) => FixedSizeList(item(from)?, *size),
        other if holds(other, is_text) => return None,
        other => other.clone(),
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Bytes {
    to: DataType,
    /// Whether a text that is no BLOB is an error.
    fails: bool,
    signature: Signature,
}

impl ScalarUDFImpl for Bytes {
    fn name(&self) -> &'static str {
        "bytes_of_text"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.as_slice() {
            [ColumnarValue::Array(array)] => Ok(ColumnarValue::Array(bytes_within(array, self.fails)?)),
            [ColumnarValue::Scalar(value)] => {
                let bytes = bytes_within(&value.to_array()?, self.fails)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&bytes, 0)?))
            }
            _ => internal_err!("the bytes of one text"),
        }
    }
}

/// The bytes of texts, and of those in lists.
fn bytes_within(values: &ArrayRef, fails: bool) -> Result<ArrayRef> {
    let field = |of: &ArrayRef, item: &FieldRef| Arc::new(Field::new(item.name(), of.data_type().clone(), true));
    Ok(match values.data_type() {
        text if is_text(text) => bytes_of_texts(values, fails)?,
        DataType::List(item) => {
            let list = values.as_list::<i32>();
            let items = bytes_within(list.values(), fails)?;
            let nulls = list.nulls().cloned();
            Arc::new(ListArray::try_new(field(&items, item), list.offsets().clone(), items, nulls)?)
        }
        DataType::LargeList(item) => {
            let list = values.as_list::<i64>();
            let items = bytes_within(list.values(), fails)?;
            let nulls = list.nulls().cloned();
            Arc::new(LargeListArray::try_new(field(&items, item), list.offsets().clone(), items, nulls)?)
        }
        DataType::FixedSizeList(item, size) => {
            let list = values.as_fixed_size_list();
            let items = bytes_within(list.values(), fails)?;
            Arc::new(FixedSizeListArray::try_new(field(&items, item), *size, items, list.nulls().cloned())?)
        }
        _ => Arc::clone(values),
    })
}
