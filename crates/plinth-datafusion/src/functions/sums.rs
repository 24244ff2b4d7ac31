//! `list_sum(x)`: the sum of a list's elements, of the type and exactness that `sum` has for them. The engine's own adds doubles, which
//! bends whole numbers beyond 2^53 and decimals.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal128Type, Decimal256Type, DecimalType, Float64Type, Int64Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, ArrowNativeTypeOp, ListArray, PrimitiveArray};
use arrow_buffer::ArrowNativeType;
use arrow_cast::cast;
use arrow_schema::{DataType, Field};
use datafusion_common::{DataFusionError, Result, exec_err, internal_err, plan_err};
use datafusion_expr::{ScalarUDF, Signature, Volatility};

use super::simple::Simple;

/// `list_sum`, also by the engine's name of it.
pub(super) fn function() -> ScalarUDF {
    Simple::new("array_sum", Signature::any(1, Volatility::Immutable), of_list, sums).or("list_sum").udf()
}

/// The type of the sums of a list.
fn of_list(types: &[DataType]) -> Result<DataType> {
    let element = match types {
        [DataType::List(of) | DataType::LargeList(of) | DataType::FixedSizeList(of, _)] => of.data_type(),
        [DataType::Null] => &DataType::Null,
        [other] => return plan_err!("list_sum: its argument is of type {other}, which is no list"),
        _ => return plan_err!("list_sum: takes one list"),
    };
    Ok(match element {
        of if of.is_signed_integer() => DataType::Int64,
        of if of.is_unsigned_integer() => DataType::UInt64,
        of if of.is_floating() || of.is_null() => DataType::Float64,
        DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale) => {
            DataType::Decimal128(Decimal128Type::MAX_PRECISION, *scale)
        }
        DataType::Decimal256(_, scale) => DataType::Decimal256(Decimal256Type::MAX_PRECISION, *scale),
        other => return plan_err!("list_sum: its elements are of type {other}, which have no sum"),
    })
}

fn sums(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let [lists] = arguments else { return internal_err!("list_sum: takes one list") };
    let of = of_list(&[lists.data_type().clone()])?;
    let lists = cast(lists, &DataType::List(Arc::new(Field::new_list_field(of.clone(), true))))?;
    let lists = lists.as_list::<i32>();
    Ok(match of {
        DataType::Int64 => Arc::new(summed::<Int64Type>(lists)?),
        DataType::UInt64 => Arc::new(summed::<UInt64Type>(lists)?),
        DataType::Float64 => Arc::new(summed::<Float64Type>(lists)?),
        DataType::Decimal128(digits, scale) => Arc::new(decimals::<Decimal128Type>(lists, digits, scale)?),
        DataType::Decimal256(digits, scale) => Arc::new(decimals::<Decimal256Type>(lists, digits, scale)?),
        other => return internal_err!("list_sum: no sums of type {other}"),
    })
}

/// Sums of what is not NULL; NULL of a list without such elements.
fn summed<T: ArrowPrimitiveType>(lists: &ListArray) -> Result<PrimitiveArray<T>> {
    let values = lists.values().as_primitive::<T>();
    let sum = |row: usize, ends: &[i32]| -> Result<Option<T::Native>> {
        let [start, end] = ends else { return internal_err!("list_sum: a list without an end") };
        if lists.is_null(row) {
            return Ok(None);
        }
        let mut sum = None;
        for at in (start.as_usize()..end.as_usize()).filter(|at| values.is_valid(*at)) {
            let so_far = sum.unwrap_or(T::Native::ZERO);
            sum = Some(so_far.add_checked(values.value(at)).map_err(|_| overflow::<T>())?);
        }
        Ok(sum)
    };
    lists.value_offsets().windows(2).enumerate().map(|(row, ends)| sum(row, ends)).collect()
}

fn decimals<T: DecimalType>(lists: &ListArray, digits: u8, scale: i8) -> Result<PrimitiveArray<T>> {
    let sums = summed::<T>(lists)?.with_precision_and_scale(digits, scale)?;
    match sums.validate_decimal_precision(digits) {
        Ok(()) => Ok(sums),
        Err(_) => exec_err!("list_sum: a sum has more than {digits} digits"),
    }
}

fn overflow<T: ArrowPrimitiveType>() -> DataFusionError {
    DataFusionError::Execution(format!("list_sum: a sum is beyond what {} holds", T::DATA_TYPE))
}
