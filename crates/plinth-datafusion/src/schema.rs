//! One schema for many files.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, GenericListArray, MapArray, OffsetSizeTrait, StructArray};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use datafusion_common::{DataFusionError, Result};
use plinth_format::File;

/// The schema of a table over these files: their columns united by name, in order of first appearance. A column is
/// nullable if it is in any file, or missing from one. Types must agree, except for what may be null.
///
/// # Errors
/// If two files disagree about a column's type; both are named.
pub(crate) fn unite(files: &[File]) -> Result<SchemaRef> {
    let Some((first, rest)) = files.split_first() else { return Ok(Arc::new(Schema::empty())) };
    if rest.iter().all(|file| file.schema().fields() == first.schema().fields()) {
        return Ok(Arc::clone(first.schema()));
    }
    struct Column<'a> {
        field: Field,
        origin: &'a File,
        files: usize,
    }
    let mut columns: Vec<Column<'_>> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for file in files {
        for field in file.schema().fields() {
            let Some(&at) = places.get(field.name()) else {
                places.insert(field.name().clone(), columns.len());
                columns.push(Column { field: field.as_ref().clone(), origin: file, files: 1 });
                continue;
            };
            let Some(column) = columns.get_mut(at) else { continue };
            let Some(united) = unite_fields(&column.field, field) else {
                return Err(DataFusionError::Plan(format!(
                    "column {:?} is {} in {} but {} in {}: the files of a table must agree; rewrite one of them with a cast",
                    field.name(),
                    column.field.data_type(),
                    column.origin.name(),
                    field.data_type(),
                    file.name(),
                )));
            };
            column.field = united;
            column.files += 1;
        }
    }
    let fields: Vec<Field> = columns
        .into_iter()
        .map(|column| {
            let nullable = column.field.is_nullable() || column.files < files.len();
            column.field.with_nullable(nullable)
        })
        .collect();
    Ok(Arc::new(Schema::new_with_metadata(fields, first.schema().metadata().clone())))
}

fn unite_fields(a: &Field, b: &Field) -> Option<Field> {
    if a.name() != b.name() {
        return None;
    }
    let data_type = unite_types(a.data_type(), b.data_type())?;
    Some(a.clone().with_data_type(data_type).with_nullable(a.is_nullable() || b.is_nullable()))
}

fn unite_types(a: &DataType, b: &DataType) -> Option<DataType> {
    let item = |a: &FieldRef, b: &FieldRef| unite_fields(a, b).map(Arc::new);
    Some(match (a, b) {
        _ if a == b => a.clone(),
        (DataType::Struct(a), DataType::Struct(b)) if a.len() == b.len() => {
            DataType::Struct(a.iter().zip(b).map(|(a, b)| item(a, b)).collect::<Option<Fields>>()?)
        }
        (DataType::List(a), DataType::List(b)) => DataType::List(item(a, b)?),
        (DataType::LargeList(a), DataType::LargeList(b)) => DataType::LargeList(item(a, b)?),
        (DataType::FixedSizeList(a, n), DataType::FixedSizeList(b, m)) if n == m => {
            DataType::FixedSizeList(item(a, b)?, *n)
        }
        (DataType::Map(a, x), DataType::Map(b, y)) if x == y => DataType::Map(item(a, b)?, *x),
        _ => return None,
    })
}

/// An array of one file's type as the table's, which differs at most in what may be null. No values are copied.
///
/// # Errors
/// If the types differ in more than that.
pub(crate) fn retype(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    Ok(match (array.data_type(), to) {
        (DataType::Struct(_), DataType::Struct(fields)) if array.as_struct().num_columns() == fields.len() => {
            let array = array.as_struct();
            let children = array
                .columns()
                .iter()
                .zip(fields)
                .map(|(c, f)| retype(c, f.data_type()))
                .collect::<Result<Vec<_>>>()?;
            if children.is_empty() {
                Arc::new(StructArray::new_empty_fields(array.len(), array.nulls().cloned()))
            } else {
                Arc::new(StructArray::try_new(fields.clone(), children, array.nulls().cloned())?)
            }
        }
        (DataType::List(_), DataType::List(item)) => retype_list(array.as_list::<i32>(), item)?,
        (DataType::LargeList(_), DataType::LargeList(item)) => retype_list(array.as_list::<i64>(), item)?,
        (DataType::FixedSizeList(_, _), DataType::FixedSizeList(item, width)) => {
            let array = array.as_fixed_size_list();
            let values = retype(array.values(), item.data_type())?;
            Arc::new(FixedSizeListArray::try_new(Arc::clone(item), *width, values, array.nulls().cloned())?)
        }
        (DataType::Map(_, _), DataType::Map(entries, sorted)) => {
            let array = array.as_map();
            let inner: ArrayRef = Arc::new(array.entries().clone());
            let inner = retype(&inner, entries.data_type())?;
            let inner = inner.as_struct().clone();
            let (offsets, nulls) = (array.offsets().clone(), array.nulls().cloned());
            Arc::new(MapArray::try_new(Arc::clone(entries), offsets, inner, nulls, *sorted)?)
        }
        (from, _) => {
            return Err(DataFusionError::Internal(format!("a scan gave {from} where the table's schema says {to}")));
        }
    })
}

fn retype_list<O: OffsetSizeTrait>(array: &GenericListArray<O>, item: &FieldRef) -> Result<ArrayRef> {
    let values = retype(array.values(), item.data_type())?;
    let (offsets, nulls) = (array.offsets().clone(), array.nulls().cloned());
    Ok(Arc::new(GenericListArray::try_new(Arc::clone(item), offsets, values, nulls)?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use arrow_array::Int32Array;
    use arrow_buffer::OffsetBuffer;

    fn nested(nullable: bool) -> DataType {
        let leaf = Field::new("a", DataType::Int32, nullable);
        DataType::List(Arc::new(Field::new("item", DataType::Struct(vec![leaf].into()), nullable)))
    }

    #[test]
    fn types_unite_in_what_may_be_null_and_nothing_else() {
        assert_eq!(unite_types(&nested(false), &nested(true)), Some(nested(true)));
        assert_eq!(unite_types(&nested(true), &nested(false)), Some(nested(true)));
        assert_eq!(unite_types(&nested(false), &DataType::Int32), None);
        assert_eq!(unite_types(&DataType::Int32, &DataType::Int64), None);
    }

    #[test]
    fn an_array_takes_the_type_of_the_table() {
        let DataType::List(item) = nested(false) else { unreachable!() };
        let DataType::Struct(fields) = item.data_type().clone() else { unreachable!() };
        let leaves: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
        let items: ArrayRef = Arc::new(StructArray::try_new(fields, vec![leaves], None).unwrap());
        let offsets = OffsetBuffer::new(vec![0, 2, 3].into());
        let list: ArrayRef = Arc::new(GenericListArray::<i32>::try_new(item, offsets, items, None).unwrap());
        let retyped = retype(&list, &nested(true)).unwrap();
        assert_eq!(retyped.data_type(), &nested(true));
        assert_eq!(retyped.len(), 2);
        assert!(retype(&list, &DataType::Int32).is_err());
    }
}
