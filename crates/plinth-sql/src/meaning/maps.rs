//! `map(keys, values)` of lists that are as long as each other, row by row: the engine looks at the sum of all rows, so that values
//! would become those of another row's keys.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_schema::DataType;
use datafusion::arrow::compute::nullif;
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::functions_nested::map::map_udf;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature};
use plinth_datafusion::sql_type_name;

/// What `map(keys, values)` is called: `map` alone may be the engine's of keys and values in turn, as `MAP {key: value}` is.
pub(crate) const MAP: &str = "plinth_map";

/// The function.
pub(super) fn function() -> ScalarUDF {
    ScalarUDF::from(Paired { inner: map_udf() })
}

/// The engine's function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Paired {
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for Paired {
    fn name(&self) -> &'static str {
        MAP
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let is_list = |data_type: &&DataType| {
            matches!(
                data_type,
                DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) | DataType::Null
            )
        };
        match types.iter().find(|data_type| !is_list(data_type)) {
            Some(other) => plan_err!("map: takes a list of keys and a list of values, not {}", sql_type_name(other)),
            None if types.iter().any(DataType::is_null) => Ok(DataType::Null),
            None => self.inner.inner().return_type(types),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if args.return_field.data_type().is_null() {
            return Ok(ColumnarValue::Scalar(ScalarValue::Null));
        }
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [keys, values] = arrays.as_slice() else { return self.inner.invoke_with_args(args) };
        // Of no keys, or no values, there is no map.
        let none: BooleanArray = (0..keys.len()).map(|row| Some(keys.is_null(row) || values.is_null(row))).collect();
        let mut lengths = lengths(keys).into_iter().zip(lengths(values)).zip(none.values());
        if let Some(((keys, values), _)) = lengths.find(|((keys, values), none)| !none && keys != values) {
            return exec_err!("map: {keys} keys and {values} values in one row; each key needs a value");
        }
        if none.true_count() == 0 {
            return self.inner.invoke_with_args(args);
        }
        if args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_))) {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from(args.return_field.data_type())?));
        }
        let lists = vec![ColumnarValue::Array(nullif(keys, &none)?), ColumnarValue::Array(nullif(values, &none)?)];
        self.inner.invoke_with_args(ScalarFunctionArgs { args: lists, ..args })
    }
}

/// How many items each list has; NULL has none.
fn lengths(lists: &ArrayRef) -> Vec<usize> {
    let of = |row: usize, len: usize| if lists.is_null(row) { 0 } else { len };
    let rows = 0..lists.len();
    match lists.data_type() {
        DataType::List(_) => rows.map(|row| of(row, lists.as_list::<i32>().value(row).len())).collect(),
        DataType::LargeList(_) => rows.map(|row| of(row, lists.as_list::<i64>().value(row).len())).collect(),
        DataType::FixedSizeList(_, len) => rows.map(|row| of(row, usize::try_from(*len).unwrap_or(0))).collect(),
        _ => Vec::new(),
    }
}
