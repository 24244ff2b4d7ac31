//! Types that the writer of a Parquet file told of beside it.

use arrow_ipc::root_as_message;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parquet::arrow::ARROW_SCHEMA_META_KEY;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ParquetMetaData;

/// Checks the types that the writer told of, of which the `parquet` crate panics at integers that Arrow does not have. What it can
/// say itself of a schema that is damaged is left to it.
///
/// # Errors
/// If a column is of such integers; with its name.
pub fn check_types(metadata: &ParquetMetaData) -> Result<()> {
    let pairs = metadata.file_metadata().key_value_metadata().into_iter().flatten();
    let told = pairs.filter(|pair| pair.key == ARROW_SCHEMA_META_KEY).find_map(|pair| pair.value.as_ref());
    let Some(bytes) = told.and_then(|told| STANDARD.decode(told).ok()) else { return Ok(()) };
    // Behind a mark and a length, but in files of old writers.
    let message = match bytes.split_at_checked(8) {
        Some((head, rest)) if head.starts_with(&[u8::MAX; 4]) && !rest.is_empty() => rest,
        _ => bytes.as_slice(),
    };
    let Ok(message) = root_as_message(message) else { return Ok(()) };
    let fields = message.header_as_schema().and_then(|schema| schema.fields());
    for field in fields.into_iter().flatten() {
        if let Some(bits) = odd_integer(field, 0) {
            let name = field.name().unwrap_or_default();
            let what = format!("column {name:?} is of integers of {bits} bits, which can't be read; write decimals");
            return Err(ParquetError::General(what));
        }
    }
    Ok(())
}

/// The bits of integers that Arrow does not have, in a field or within it.
fn odd_integer(field: arrow_ipc::Field<'_>, depth: usize) -> Option<i32> {
    if let Some(integer) = field.type_as_int() {
        return Some(integer.bitWidth()).filter(|bits| ![8, 16, 32, 64].contains(bits));
    }
    // Deeper ones are refused where they are read.
    let inner = field.children().filter(|_| depth < 64)?;
    inner.iter().find_map(|field| odd_integer(field, depth + 1))
}
