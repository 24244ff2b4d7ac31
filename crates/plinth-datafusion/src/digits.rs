//! Decimals that leave their type: the engine reckons with 128 bits, which hold numbers of 39 digits that no DECIMAL has.
//!
//! Within a statement such a number is exact. Where it leaves the statement, to be shown or kept, it is an error: it would be printed
//! without its last digit.

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Decimal256Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType};
use datafusion_common::{Result, exec_err};

/// The first number of 39 digits.
const BEYOND: i128 = 10_i128.pow(38);

/// Rows whose decimals have the digits that their types have.
///
/// # Errors
/// If a decimal has more.
pub fn within_digits(batch: RecordBatch) -> Result<RecordBatch> {
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        let is_within = match column.data_type() {
            // Of fewer digits the result of an operation has a type for all its results.
            DataType::Decimal128(DECIMAL128_MAX_PRECISION, _) => {
                let decimals = column.as_primitive::<Decimal128Type>();
                let beyond = |value: i128| value <= -BEYOND || value >= BEYOND;
                let any = decimals.values().iter().fold(false, |any, &value| any | beyond(value));
                !any || decimals.iter().flatten().all(|value| !beyond(value))
            }
            DataType::Decimal256(DECIMAL256_MAX_PRECISION, _) => {
                let decimals = column.as_primitive::<Decimal256Type>();
                decimals.validate_decimal_precision(DECIMAL256_MAX_PRECISION).is_ok()
            }
            _ => true,
        };
        if !is_within {
            let (name, data_type) = (field.name(), crate::sql_type_name(column.data_type()));
            return exec_err!(
                "column {name:?}: a number has more digits than {data_type}; cast to DOUBLE, or to fewer places"
            );
        }
    }
    Ok(batch)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Decimal128Array};

    use super::*;

    #[test]
    fn numbers_of_39_digits_are_refused_and_nulls_are_not() {
        let batch = |values: Vec<Option<i128>>, nulls: bool| {
            let mut decimals = Decimal128Array::from(values).with_precision_and_scale(38, 2).unwrap();
            if nulls {
                let none = arrow_buffer::NullBuffer::new_null(decimals.len());
                decimals = Decimal128Array::new(decimals.values().clone(), Some(none))
                    .with_precision_and_scale(38, 2)
                    .unwrap();
            }
            RecordBatch::try_from_iter([("d", Arc::new(decimals) as ArrayRef)]).unwrap()
        };
        assert!(within_digits(batch(vec![Some(BEYOND - 1), None, Some(1 - BEYOND)], false)).is_ok());
        for beyond in [BEYOND, -BEYOND, i128::MAX, i128::MIN] {
            let error = within_digits(batch(vec![Some(1), Some(beyond)], false)).unwrap_err().to_string();
            assert!(error.contains("DECIMAL(38") && error.contains("\"d\""), "{error}");
            assert!(within_digits(batch(vec![Some(beyond)], true)).is_ok());
        }
    }
}
