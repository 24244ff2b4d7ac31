//! `x = ANY(list)` and its like of lists, by the logic of three values: of a NULL in the list it is not known whether it fits.
//!
//! The engine asks whether the list has the value, which is true or false.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, UInt64Array};
use arrow_cast::cast;
use arrow_schema::{DataType, Field};
use datafusion::arrow::compute::take;
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, internal_err, plan_err};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{
    ColumnarValue, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use plinth_datafusion::sql_type_name;

use super::{intervals, nested};

/// Comparisons, and what `x op ANY(list)` of them is called.
const ANY: [(Operator, &str); 6] = [
    (Operator::Eq, "plinth_eq_any"),
    (Operator::NotEq, "plinth_ne_any"),
    (Operator::Lt, "plinth_lt_any"),
    (Operator::LtEq, "plinth_le_any"),
    (Operator::Gt, "plinth_gt_any"),
    (Operator::GtEq, "plinth_ge_any"),
];

/// The functions.
pub(super) fn functions() -> impl Iterator<Item = ScalarUDF> {
    ANY.into_iter().map(|(op, name)| Any { op, name, signature: Signature::user_defined(Volatility::Immutable) }.into())
}

/// The function of a comparison by its sign.
pub(crate) fn function_of(op: &str) -> Option<&'static str> {
    ANY.iter().find(|(known, _)| known.to_string() == op || (op == "<>" && *known == Operator::NotEq)).map(|(_, n)| *n)
}

/// `x op ANY(list)`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Any {
    op: Operator,
    name: &'static str,
    signature: Signature,
}

impl ScalarUDFImpl for Any {
    fn name(&self) -> &'static str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [value, list] = types else { return plan_err!("ANY, ALL: of a value and a list") };
        let item = match list {
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => item.data_type(),
            DataType::Null => &DataType::Null,
            other => return plan_err!("ANY, ALL: take a list or a subquery, not {}", sql_type_name(other)),
        };
        let Some(common) = comparison_coercion(value, item) else {
            let (value, item) = (sql_type_name(value), sql_type_name(item));
            return plan_err!("ANY, ALL: {value} can't be compared with {item}");
        };
        let item = Arc::new(Field::new_list_field(common.clone(), true));
        let list =
            if matches!(list, DataType::LargeList(_)) { DataType::LargeList(item) } else { DataType::List(item) };
        Ok(vec![common, list])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let arrays = args.args.into_iter().map(|arg| arg.into_array(rows)).collect::<Result<Vec<_>>>()?;
        let [values, lists] = arrays.as_slice() else { return internal_err!("ANY: of a value and a list") };
        let result = any(self.op, values, lists)?;
        Ok(match constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?),
            false => ColumnarValue::Array(Arc::new(result)),
        })
    }
}

fn any(op: Operator, values: &ArrayRef, lists: &ArrayRef) -> Result<BooleanArray> {
    let (items, ends) = items(lists)?;
    // Each value beside all items of its list.
    let mut rows = Vec::with_capacity(items.len());
    for (row, &(from, to)) in ends.iter().enumerate() {
        rows.resize(rows.len() + (to - from), row as u64);
    }
    let begin = ends.first().map_or(0, |&(from, _)| from);
    let items = items.slice(begin, rows.len());
    let beside = take(values, &UInt64Array::from(rows), None)?;
    let fits = match items.data_type() {
        DataType::Null => BooleanArray::new_null(items.len()),
        DataType::Interval(_) => nested::compare(op, &intervals::lengths(&beside)?, &intervals::lengths(&items)?)?,
        _ => nested::compare(op, &with_one_zero(&beside)?, &with_one_zero(&items)?)?,
    };
    let of_list = |(row, &(from, to)): (usize, &(usize, usize))| {
        if lists.is_null(row) {
            return None;
        }
        let items = from - begin..to - begin;
        if items.clone().any(|item| fits.is_valid(item) && fits.value(item)) {
            return Some(true);
        }
        if items.into_iter().any(|item| fits.is_null(item)) { None } else { Some(false) }
    };
    Ok(ends.iter().enumerate().map(of_list).collect())
}

/// All items, and where those of each list are among them: one behind the other.
fn items(lists: &ArrayRef) -> Result<(ArrayRef, Vec<(usize, usize)>)> {
    let place = |end: i64| usize::try_from(end).map_err(|_| exec_datafusion_err!("a list that begins at {end}"));
    let (items, offsets) = match lists.data_type() {
        DataType::List(_) => {
            let lists = lists.as_list::<i32>();
            (lists.values(), lists.offsets().iter().map(|&end| place(end.into())).collect::<Result<Vec<_>>>()?)
        }
        DataType::LargeList(_) => {
            let lists = lists.as_list::<i64>();
            (lists.values(), lists.offsets().iter().map(|&end| place(end)).collect::<Result<Vec<_>>>()?)
        }
        other => return internal_err!("ANY: {other} is no list"),
    };
    Ok((Arc::clone(items), offsets.windows(2).filter_map(|ends| Some((*ends.first()?, *ends.last()?))).collect()))
}

/// Floats whose zero has no sign: `=` takes both for one.
fn with_one_zero(values: &ArrayRef) -> Result<ArrayRef> {
    use arrow_array::types::{Float32Type, Float64Type};
    Ok(match values.data_type() {
        DataType::Float64 => {
            Arc::new(values.as_primitive::<Float64Type>().unary::<_, Float64Type>(|float| float + 0.0))
        }
        DataType::Float32 => {
            Arc::new(values.as_primitive::<Float32Type>().unary::<_, Float32Type>(|float| float + 0.0))
        }
        DataType::Float16 => with_one_zero(&cast(values, &DataType::Float32)?)?,
        _ => Arc::clone(values),
    })
}
