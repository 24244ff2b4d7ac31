//! Columns of scans as DuckDB lays them out, where a cheap step here saves a dear one there.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Decimal128Type;
use arrow_array::{Array, ArrayRef, Decimal64Array, new_null_array};
use arrow_buffer::ScalarBuffer;
use arrow_cast::cast;
use arrow_schema::{DataType, Field, FieldRef};
use duckdb_neo::error::DuckDBError;
use plinth_table::widen;

use crate::failure::{Result, error, of_arrow, of_format};

/// Most digits of decimals that DuckDB keeps in 64 bits.
const DIGITS_OF_64_BITS: u8 = 18;

/// Fewest digits of those.
const DIGITS_OF_32_BITS: u8 = 9;

/// A field as it is handed to DuckDB.
pub(crate) fn of_field(field: &FieldRef) -> FieldRef {
    let to = of_type(field.data_type());
    if &to == field.data_type() {
        Arc::clone(field)
    } else {
        Arc::new(Field::new(field.name(), to, field.is_nullable()))
    }
}

/// A type as it is handed to DuckDB: what it keeps in 64 bits is made so here, and what it has no type for is text.
fn of_type(from: &DataType) -> DataType {
    match from {
        DataType::Decimal128(digits, scale) if fits_64_bits(*digits, *scale) => DataType::Decimal64(*digits, *scale),
        other => known(other),
    }
}

/// A type, or what it holds, with text for decimals of more than 38 digits and 32 bits for floats of 16.
fn known(from: &DataType) -> DataType {
    let within = |field: &FieldRef| -> FieldRef {
        let to = known(field.data_type());
        if &to == field.data_type() { Arc::clone(field) } else { Arc::new(Field::clone(field).with_data_type(to)) }
    };
    match from {
        DataType::Decimal256(..) => DataType::Utf8View,
        DataType::Float16 => DataType::Float32,
        DataType::List(item) => DataType::List(within(item)),
        DataType::FixedSizeList(item, n) => DataType::FixedSizeList(within(item), *n),
        DataType::Map(entries, sorted) => DataType::Map(within(entries), *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(within).collect()),
        other => other.clone(),
    }
}

fn fits_64_bits(digits: u8, scale: i8) -> bool {
    digits > DIGITS_OF_32_BITS && digits <= DIGITS_OF_64_BITS && scale >= 0
}

/// The values of a column, whose type in the table is `column`'s, as [`of_field`] has it; nulls where a file lacks it.
///
/// # Errors
/// If Arrow refuses, which it does for no file of ours.
pub(crate) fn of_values(array: Option<&ArrayRef>, column: &DataType, rows: usize) -> Result<ArrayRef> {
    let to = of_type(column);
    let Some(array) = array else { return Ok(new_null_array(&to, rows)) };
    let array =
        if array.data_type() == column { Arc::clone(array) } else { widen(array, column).map_err(of_format)? };
    match (&to, array.as_primitive_opt::<Decimal128Type>()) {
        (DataType::Decimal64(digits, scale), Some(wide)) => {
            let (narrow, lost) = low_halves(wide.values());
            if lost {
                let what = format!("a decimal has more than the {digits} digits of its column");
                return Err(error(DuckDBError::IoGeneral, what));
            }
            let narrow = Decimal64Array::try_new(narrow, wide.nulls().cloned()).map_err(of_arrow)?;
            Ok(Arc::new(narrow.with_precision_and_scale(*digits, *scale).map_err(of_arrow)?))
        }
        _ if array.data_type() == &to => Ok(array),
        _ => cast(&array, &to).map_err(of_arrow),
    }
}

/// Where the values of a column lie, if its type has one width, which DuckDB's vectors can point to.
pub(crate) fn lies(array: &ArrayRef) -> Option<Range<usize>> {
    let of_one_width = array.data_type().is_primitive() && array.data_type().primitive_width().is_some();
    let data = array.to_data();
    let values = data.buffers().first().filter(|_| of_one_width)?;
    let start = values.as_ptr().addr();
    Some(start..start + values.len())
}

/// Numbers in 64 bits, and whether one of them does not fit.
#[allow(clippy::cast_possible_truncation, reason = "what was cut off is looked at")]
fn low_halves(wide: &[i128]) -> (ScalarBuffer<i64>, bool) {
    let mut lost = 0;
    let narrow = wide.iter().map(|&value| {
        let low = value as i64;
        lost |= value ^ i128::from(low);
        low
    });
    (narrow.collect(), lost != 0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use arrow_array::types::Decimal64Type;
    use arrow_array::{Decimal128Array, Int32Array};

    use super::*;

    #[test]
    fn decimals_of_up_to_18_digits_take_64_bits() {
        let wide = |digits| -> ArrayRef {
            let values = Decimal128Array::from(vec![Some(-123_456), None, Some(999_999_999_999_999)]);
            Arc::new(values.with_precision_and_scale(digits, 2).unwrap())
        };
        let narrow = of_values(Some(&wide(15)), &DataType::Decimal128(15, 2), 3).unwrap();
        assert_eq!(
            narrow.as_primitive::<Decimal64Type>().iter().collect::<Vec<_>>(),
            [Some(-123_456), None, Some(999_999_999_999_999)]
        );
        let kept = of_values(Some(&wide(19)), &DataType::Decimal128(19, 2), 3).unwrap();
        assert_eq!(kept.data_type(), &DataType::Decimal128(19, 2));
        let forged: ArrayRef = Arc::new(Decimal128Array::from(vec![1 << 64]).with_precision_and_scale(38, 2).unwrap());
        let forged = forged.to_data().into_builder().data_type(DataType::Decimal128(15, 2)).build().unwrap();
        let forged: ArrayRef = Arc::new(Decimal128Array::from(forged));
        assert!(of_values(Some(&forged), &DataType::Decimal128(15, 2), 1).is_err());
    }

    #[test]
    fn what_a_file_lacks_is_null_and_what_is_narrower_widens() {
        let lacking = of_values(None, &DataType::Int64, 2).unwrap();
        assert_eq!((lacking.len(), lacking.null_count()), (2, 2));
        let narrower: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
        let wide = of_values(Some(&narrower), &DataType::Int64, 2).unwrap();
        assert_eq!(wide.data_type(), &DataType::Int64);
    }
}
