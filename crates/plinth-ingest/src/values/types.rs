//! Types as they are handed on, and how much room their values take.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};

use crate::error::IngestError;
use crate::format::FileFormat;

/// How a type is handed on: text as `Utf8View`, binaries as `BinaryView` (as text where the user says so), dictionary-
/// and run-end-encoded types as the type of their values.
pub(crate) fn value_type(data_type: &DataType, binary_as_text: bool) -> DataType {
    let field = |f: &FieldRef| -> FieldRef {
        Arc::new(Field::new(f.name(), value_type(f.data_type(), binary_as_text), f.is_nullable()))
    };
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView if binary_as_text => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => DataType::BinaryView,
        DataType::Dictionary(_, values) => value_type(values, binary_as_text),
        DataType::RunEndEncoded(_, values) => value_type(values.data_type(), binary_as_text),
        DataType::List(item) => DataType::List(field(item)),
        DataType::LargeList(item) => DataType::LargeList(field(item)),
        DataType::ListView(item) => DataType::ListView(field(item)),
        DataType::LargeListView(item) => DataType::LargeListView(field(item)),
        DataType::FixedSizeList(item, n) => DataType::FixedSizeList(field(item), *n),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
        DataType::Map(entries, sorted) => DataType::Map(field(entries), *sorted),
        other => other.clone(),
    }
}

/// The types that a schema's values are handed on as.
pub(crate) fn given_schema(schema: &Schema) -> SchemaRef {
    let field = |f: &FieldRef| Field::new(f.name(), value_type(f.data_type(), false), f.is_nullable());
    Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()))
}

/// What it means that a column's type can't be read from text.
pub(crate) fn unreadable(schema: &Schema, column: String, format: FileFormat) -> IngestError {
    let data_type = schema.field_with_name(&column).map(|f| f.data_type().to_string()).unwrap_or_default();
    IngestError::Unwritable { column, what: format!("{format} can't hold values of type {data_type}") }
}

/// Values that one value of a type takes room for: those of structs and of lists of a fixed size are there even where they
/// are null. What is in other lists and in maps is not counted.
pub(crate) fn width(data_type: &DataType) -> usize {
    match data_type {
        DataType::Struct(fields) => fields.iter().map(|f| width(f.data_type())).fold(1, usize::saturating_add),
        DataType::FixedSizeList(item, size) => {
            width(item.data_type()).saturating_mul(usize::try_from(*size).unwrap_or(0)).saturating_add(1)
        }
        // Room for a value is some sixteen bytes.
        DataType::FixedSizeBinary(size) => 1 + usize::try_from(*size).unwrap_or(0) / 16,
        _ => 1,
    }
}

#[cfg(test)]
mod tests;
