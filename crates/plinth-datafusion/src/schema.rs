//! One schema for many files, and their values in its terms.

use arrow_array::ArrayRef;
use arrow_schema::{DataType, SchemaRef};
use datafusion_common::Result;
use plinth_format::File;
use plinth_table::SchemaUnion;

use crate::error::from_format;

/// The schema of a table over these files.
///
/// # Errors
/// If two files disagree about a column's type; both are named.
pub(crate) fn unite(files: &[File]) -> Result<SchemaRef> {
    let mut union = SchemaUnion::new();
    for file in files {
        union.add(file.name(), file.schema()).map_err(from_format)?;
    }
    Ok(union.schema())
}

/// An array of one file's type as the table's.
///
/// # Errors
/// If the table's type does not hold the file's values.
pub(crate) fn widen(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    plinth_table::widen(array, to).map_err(from_format)
}
