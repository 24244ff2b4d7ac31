//! Values of one file's type as the table's.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, ListArray, MapArray, StructArray, new_null_array};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType};
use plinth_format::{FormatError, Result};

/// An array as one of the type that its table has ([`crate::SchemaUnion`] says which types that can be). Where only what
/// may be null differs, no values are copied.
///
/// # Errors
/// If the types do not meet: nothing is converted that would lose a value.
pub fn widen(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let from = array.data_type();
    if from == to {
        return Ok(Arc::clone(array));
    }
    let mismatch = || FormatError::InvalidArgument(format!("values of type {from} can't be read as {to}"));
    Ok(match (from, to) {
        (DataType::Null, _) => new_null_array(to, array.len()),
        (DataType::Struct(have), DataType::Struct(want)) => {
            let array = array.as_struct();
            if have.iter().any(|field| want.find(field.name()).is_none()) {
                return Err(mismatch());
            }
            let columns = want
                .iter()
                .map(|field| match array.column_by_name(field.name()) {
                    Some(column) => widen(column, field.data_type()),
                    None => Ok(new_null_array(field.data_type(), array.len())),
                })
                .collect::<Result<Vec<_>>>()?;
            let nulls = array.nulls().cloned();
            if columns.is_empty() {
                Arc::new(StructArray::new_empty_fields(array.len(), nulls))
            } else {
                Arc::new(StructArray::try_new(want.clone(), columns, nulls).map_err(failed)?)
            }
        }
        (DataType::List(_), DataType::List(item)) => {
            let array = array.as_list::<i32>();
            let values = widen(array.values(), item.data_type())?;
            let list = ListArray::try_new(Arc::clone(item), array.offsets().clone(), values, array.nulls().cloned());
            Arc::new(list.map_err(failed)?)
        }
        (DataType::FixedSizeList(_, n), DataType::FixedSizeList(item, m)) if n == m => {
            let array = array.as_fixed_size_list();
            let values = widen(array.values(), item.data_type())?;
            let (item, nulls, len) = (Arc::clone(item), array.nulls().cloned(), array.len());
            Arc::new(FixedSizeListArray::try_new_with_length(item, *m, values, nulls, len).map_err(failed)?)
        }
        (DataType::Map(_, _), DataType::Map(entries, sorted)) => {
            let array = array.as_map();
            let DataType::Struct(fields) = entries.data_type() else { return Err(mismatch()) };
            // By position: what keys and values are called differs between writers.
            let columns = array
                .entries()
                .columns()
                .iter()
                .zip(fields)
                .map(|(column, field)| widen(column, field.data_type()))
                .collect::<Result<Vec<_>>>()?;
            let inner = StructArray::try_new(fields.clone(), columns, array.entries().nulls().cloned());
            let (offsets, nulls) = (array.offsets().clone(), array.nulls().cloned());
            let map = MapArray::try_new(Arc::clone(entries), offsets, inner.map_err(failed)?, nulls, *sorted);
            Arc::new(map.map_err(failed)?)
        }
        _ if crate::can_widen(from, to) => {
            let options = CastOptions { safe: false, ..CastOptions::default() };
            cast_with_options(array, to, &options).map_err(failed)?
        }
        _ => return Err(mismatch()),
    })
}

fn failed(error: ArrowError) -> FormatError {
    FormatError::InvalidArgument(format!("a column can't be read as its table's type: {error}"))
}
