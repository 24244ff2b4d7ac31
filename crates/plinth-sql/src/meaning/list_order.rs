//! The order of the items of a list: `array_sort`, `array_min` and `array_max`, by their SQL names, too.
//!
//! The engine compares intervals month by month, takes NULL within an item for the smallest value and puts items that are NULL first.
//! Here intervals are as long as they are, NULL within an item is the largest, as in ORDER BY, and items that are NULL come last
//! unless NULLS FIRST is written, as DuckDB has it. An order that differs by row is refused: the engine takes that of the first row.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, FixedSizeListArray, LargeListArray, ListArray,
    OffsetSizeTrait, StructArray, UInt64Array, new_null_array,
};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, FieldRef, SortOptions};
use datafusion::arrow::array::{DynComparator, make_comparator};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::take;
use datafusion::common::{Result, ScalarValue, exec_err, internal_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use plinth_datafusion::sql_type_name;

use super::intervals::lengths;

/// The functions, to take the places of the engine's.
pub(super) fn functions() -> [ScalarUDF; 3] {
    let of = |what, name, aliases: &[&str]| {
        let aliases = aliases.iter().map(|alias| (*alias).to_owned()).collect();
        ScalarUDF::from(OfItems { what, name, aliases, signature: Signature::user_defined(Volatility::Immutable) })
    };
    [
        of(What::Sorted, "array_sort", &["list_sort"]),
        of(What::Least, "array_min", &["list_min"]),
        of(What::Greatest, "array_max", &["list_max"]),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum What {
    Sorted,
    Least,
    Greatest,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfItems {
    what: What,
    name: &'static str,
    aliases: Vec<String>,
    signature: Signature,
}

impl ScalarUDFImpl for OfItems {
    fn name(&self) -> &'static str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [list, orders @ ..] = types else { return plan_err!("{}: of which list?", self.name) };
        let most = if self.what == What::Sorted { 2 } else { 0 };
        if orders.len() > most {
            return plan_err!("{}: takes at most {} arguments", self.name, most + 1);
        }
        let list = match list {
            DataType::Null | DataType::List(_) | DataType::LargeList(_) => list.clone(),
            DataType::FixedSizeList(item, _) | DataType::ListView(item) => DataType::List(Arc::clone(item)),
            DataType::LargeListView(item) => DataType::LargeList(Arc::clone(item)),
            other => return plan_err!("{}: takes a list, not {}", self.name, sql_type_name(other)),
        };
        // NULL stays what it is: behind a cast it would be no constant.
        let orders = orders.iter().map(|of| if of.is_null() { DataType::Null } else { DataType::Utf8 });
        Ok(std::iter::once(list).chain(orders).collect())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(match (types.first(), self.what) {
            (Some(list), What::Sorted) => list.clone(),
            (Some(DataType::List(item) | DataType::LargeList(item)), _) => item.data_type().clone(),
            _ => DataType::Null,
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        if args.scalar_arguments.iter().skip(1).any(Option::is_none) {
            return plan_err!(
                "{}: its order is to be written, 'ASC' or 'DESC', 'NULLS FIRST' or 'NULLS LAST'; CASE chooses between two calls",
                self.name
            );
        }
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        Ok(Arc::new(Field::new(self.name, self.return_type(&types)?, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let mut args = args.args.into_iter();
        let Some(list) = args.next() else { return internal_err!("{} of nothing", self.name) };
        let constant = matches!(list, ColumnarValue::Scalar(_));
        let list = list.into_array(if constant { 1 } else { rows })?;
        let result = match Order::of(self.name, args)? {
            Some(order) => self.of(&list, order)?,
            None => new_null_array(list.data_type(), list.len()),
        };
        Ok(match constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?),
            false => ColumnarValue::Array(result),
        })
    }
}

/// How items are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Order {
    descending: bool,
    nulls_first: bool,
}

impl Order {
    /// That of the arguments behind the list; none if one is NULL.
    fn of(function: &str, args: impl Iterator<Item = ColumnarValue>) -> Result<Option<Self>> {
        let mut order = Self { descending: false, nulls_first: false };
        for (place, arg) in args.enumerate() {
            let text = match arg {
                ColumnarValue::Scalar(ScalarValue::Utf8(Some(text))) => text,
                ColumnarValue::Scalar(value) if value.is_null() => return Ok(None),
                _ => return internal_err!("{function}: an order that is no text"),
            };
            match (place, text.to_ascii_uppercase().replace('_', " ").as_str()) {
                (0, "ASC") => {}
                (0, "DESC") => order.descending = true,
                (1, "NULLS FIRST") => order.nulls_first = true,
                (1, "NULLS LAST") => {}
                (0, _) => return exec_err!("{function}: '{text}' is no order; write 'ASC' or 'DESC'"),
                _ => {
                    return exec_err!("{function}: '{text}' is no place of NULL; write 'NULLS FIRST' or 'NULLS LAST'");
                }
            }
        }
        Ok(Some(order))
    }
}

impl OfItems {
    fn of(&self, list: &ArrayRef, order: Order) -> Result<ArrayRef> {
        let (items, rows) = match list.data_type() {
            DataType::List(_) => {
                let list = list.as_list::<i32>();
                (list.values(), ranges(list.offsets()))
            }
            DataType::LargeList(_) => {
                let list = list.as_list::<i64>();
                (list.values(), ranges(list.offsets()))
            }
            _ => return Ok(new_null_array(&DataType::Null, list.len())),
        };
        if items.data_type().is_null() {
            // Each is like the others.
            return match self.what {
                What::Sorted => Ok(Arc::clone(list)),
                _ => Ok(new_null_array(&DataType::Null, list.len())),
            };
        }
        let compare = comparator(self.name, items)?;
        if self.what != What::Sorted {
            let best = |(row, (from, to)): (usize, (usize, usize))| {
                let items = (from..to).filter(|item| list.is_valid(row) && items.is_valid(*item));
                let best = match self.what {
                    What::Least => items.reduce(|best, item| if compare(item, best).is_lt() { item } else { best }),
                    _ => items.reduce(|best, item| if compare(item, best).is_gt() { item } else { best }),
                };
                best.map(|item| item as u64)
            };
            let best: UInt64Array = rows.into_iter().enumerate().map(best).collect();
            return Ok(take(items, &best, None)?);
        }
        let (mut sorted, mut lengths) = (Vec::with_capacity(items.len()), Vec::with_capacity(list.len()));
        for (row, (from, to)) in rows.into_iter().enumerate() {
            // What lies below a NULL is no value.
            let range = if list.is_valid(row) { from..to } else { 0..0 };
            lengths.push(range.len());
            let (mut known, nulls): (Vec<usize>, Vec<usize>) = range.partition(|item| items.is_valid(*item));
            known.sort_by(|a, b| if order.descending { compare(*b, *a) } else { compare(*a, *b) });
            let (first, last) = if order.nulls_first { (nulls, known) } else { (known, nulls) };
            sorted.extend(first.into_iter().chain(last).map(|item| item as u64));
        }
        let items = take(items, &UInt64Array::from(sorted), None)?;
        let nulls = list.nulls().cloned();
        Ok(match list.data_type() {
            DataType::List(item) => {
                Arc::new(ListArray::try_new(Arc::clone(item), OffsetBuffer::from_lengths(lengths), items, nulls)?)
            }
            DataType::LargeList(item) => {
                Arc::new(LargeListArray::try_new(Arc::clone(item), OffsetBuffer::from_lengths(lengths), items, nulls)?)
            }
            other => return internal_err!("{}: of {other}", self.name),
        })
    }
}

/// From which item to which each row has its own.
fn ranges<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>) -> Vec<(usize, usize)> {
    offsets.windows(2).map(|ends| (ends[0].as_usize(), ends[1].as_usize())).collect()
}

/// Compares items that are not NULL.
pub(super) fn comparator(function: &str, items: &ArrayRef) -> Result<DynComparator> {
    let keys = keys(items)?;
    match make_comparator(&keys, &keys, SortOptions { descending: false, nulls_first: false }) {
        Ok(compare) => Ok(compare),
        Err(_) => plan_err!("{function}: {} has no order", sql_type_name(items.data_type())),
    }
}

/// A float for all that are equal to it.
macro_rules! floats {
    ($values:expr, $of:ty) => {{
        type Native = <$of as ArrowPrimitiveType>::Native;
        let zero = <Native as ArrowNativeTypeOp>::ZERO;
        let key = |value: Native| match value {
            value if value.is_nan() => Native::NAN,
            value if value == zero || value == -zero => zero,
            value => value,
        };
        Arc::new($values.as_primitive::<$of>().unary::<_, $of>(key)) as ArrayRef
    }};
}

/// Values that are ordered as those of SQL are: intervals by how long they are, and each NaN and each zero as the others.
fn keys(values: &ArrayRef) -> Result<ArrayRef> {
    let field = |field: &FieldRef, of: &ArrayRef| {
        Arc::new(Field::new(field.name(), of.data_type().clone(), field.is_nullable()))
    };
    Ok(match values.data_type() {
        DataType::Interval(_) => lengths(values)?,
        DataType::Float16 => floats!(values, Float16Type),
        DataType::Float32 => floats!(values, Float32Type),
        DataType::Float64 => floats!(values, Float64Type),
        DataType::Dictionary(_, of) => keys(&cast(values, of)?)?,
        DataType::List(item) => {
            let list = values.as_list::<i32>();
            let items = keys(list.values())?;
            let nulls = list.nulls().cloned();
            Arc::new(ListArray::try_new(field(item, &items), list.offsets().clone(), items, nulls)?)
        }
        DataType::LargeList(item) => {
            let list = values.as_list::<i64>();
            let items = keys(list.values())?;
            let nulls = list.nulls().cloned();
            Arc::new(LargeListArray::try_new(field(item, &items), list.offsets().clone(), items, nulls)?)
        }
        DataType::FixedSizeList(item, size) => {
            let list = values.as_fixed_size_list();
            let items = keys(list.values())?;
            Arc::new(FixedSizeListArray::try_new(field(item, &items), *size, items, list.nulls().cloned())?)
        }
        DataType::Struct(fields) if !fields.is_empty() => {
            let of = values.as_struct();
            let columns = of.columns().iter().map(keys).collect::<Result<Vec<_>>>()?;
            let fields = fields.iter().zip(&columns).map(|(of, column)| field(of, column)).collect();
            Arc::new(StructArray::try_new(fields, columns, of.nulls().cloned())?)
        }
        _ => Arc::clone(values),
    })
}
