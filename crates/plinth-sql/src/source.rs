//! Options of foreign files as users write them: the same words in SQL and on a command line.

use std::path::{Path, PathBuf};

use arrow_schema::SchemaRef;
use plinth_ingest::{Mark, Misfits, Rejects, Sample, Unknown};
use plinth_io::regular;

use crate::error::{Result, SqlError};
use crate::types::declared;

/// Bytes that a file with columns and their types may have.
const SCHEMA: u64 = 16 << 20;

/// What becomes of text that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// The first bad record ends the import.
    Fail,
    /// Bad records are left out and written to a file.
    Skip,
    /// Values that a given type does not hold become NULL; what is broken is as with the others.
    Null,
}

impl OnError {
    /// By its word.
    ///
    /// # Errors
    /// What is expected, if it is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "fail" => Ok(Self::Fail),
            "skip" => Ok(Self::Skip),
            "null" => Ok(Self::Null),
            _ => Err("fail, skip or null is expected".to_owned()),
        }
    }
}

/// What becomes of keys that the columns lack, by its word.
pub(crate) fn parse_unknown(text: &str) -> Result<Unknown, String> {
    match text.to_ascii_lowercase().as_str() {
        "error" => Ok(Unknown::Error),
        "report" => Ok(Unknown::Report),
        "extra" => Ok(Unknown::Extra),
        _ => Err("error, report or extra is expected".to_owned()),
    }
}

/// What follows from `on_error`, the file for bad records, and how many there may be.
///
/// # Errors
/// If they exclude each other, or one needs another.
pub fn rejects(on_error: Option<OnError>, to: Option<PathBuf>, max: Option<u64>) -> Result<(Rejects, Misfits)> {
    let rejects = match (to, on_error) {
        (None, Some(OnError::Skip)) => {
            return Err(SqlError::new("on-error is skip: name the file for bad records with rejects"));
        }
        (None, _) if max.is_some() => {
            return Err(SqlError::new("max-rejects: name the file for bad records with rejects"));
        }
        (Some(_), Some(OnError::Fail)) => {
            return Err(SqlError::new("on-error is fail: no bad record is left for the file of rejects"));
        }
        (Some(to), _) => Rejects::Collect { to, max },
        (None, _) => Rejects::Error,
    };
    Ok((rejects, if on_error == Some(OnError::Null) { Misfits::Null } else { Misfits::Reject }))
}

/// How many rows types are inferred from: a number, or `all`.
///
/// # Errors
/// What is expected, if it is neither.
pub fn parse_sample(text: &str) -> Result<Sample, String> {
    match text.parse() {
        _ if text == "all" => Ok(Sample::Everything),
        Ok(0) | Err(_) => Err("a number of rows or \"all\" is expected".to_owned()),
        Ok(rows) => Ok(Sample::Rows(rows)),
    }
}

/// An ASCII character, or `\t`.
///
/// # Errors
/// What is expected, if it is neither.
pub fn parse_character(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        _ if text == "\\t" => Ok(b'\t'),
        [character] if !matches!(character, b'\n' | b'\r') => Ok(*character),
        _ => Err("one ASCII character is expected, or \\t".to_owned()),
    }
}

/// A character that quotes or escapes, or `none`.
///
/// # Errors
/// What is expected, if it is neither.
pub fn parse_mark(text: &str) -> Result<Mark, String> {
    if text == "none" { Ok(Mark::None) } else { parse_character(text).map(Mark::Byte) }
}

/// Columns and types as in CREATE TABLE; a name of a file stands for what it holds.
///
/// # Errors
/// If they are not columns and types, or the file can't be read.
pub fn parse_schema(text: &str) -> Result<SchemaRef> {
    match Path::new(text).is_file() {
        true => parse_columns(&regular::read_text(text, SCHEMA).map_err(SqlError::new)?),
        false => parse_columns(text),
    }
}

/// Columns and types as in CREATE TABLE, as they stand.
pub(crate) fn parse_columns(text: &str) -> Result<SchemaRef> {
    let fail =
        |what: &str| SqlError::new(format!("{what}; columns and types are expected, such as \"id BIGINT, name TEXT\""));
    let columns = text.trim().trim_end_matches(';').trim();
    // In parentheses or not.
    let columns = columns.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')).unwrap_or(columns);
    let schema = declared(columns).map_err(|e| match e.into() {
        SqlError::Message(_, what) => fail(&what),
        other => other,
    })?;
    if schema.fields().is_empty() {
        return Err(fail("no columns"));
    }
    Ok(schema)
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, TimeUnit};

    use super::*;

    #[test]
    fn columns_are_as_in_create_table() {
        let schema = parse_schema(
            "(id BIGINT NOT NULL, \"Name\" TEXT, at TIMESTAMP WITH TIME ZONE, d DECIMAL(10, 2), tags INT[])",
        )
        .unwrap();
        let types: Vec<_> =
            schema.fields().iter().map(|f| (f.name().as_str(), f.data_type().clone(), f.is_nullable())).collect();
        assert_eq!(types[0], ("id", DataType::Int64, false));
        assert_eq!(types[1], ("Name", DataType::Utf8View, true));
        assert_eq!(types[2], ("at", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true));
        assert_eq!(types[3], ("d", DataType::Decimal128(10, 2), true));
        assert!(matches!(types[4].1, DataType::List(_)));
    }

    #[test]
    fn what_is_no_schema_is_said() {
        for text in ["", "id", "id BIGINT, id TEXT", "id NONSENSE", "id INT) STORED AS CSV LOCATION 'x'; --"] {
            let Err(SqlError::Message(_, what)) = parse_schema(text) else { panic!("{text}") };
            assert!(what.contains("; columns and types are expected") && !what.contains('\n'), "{what}");
        }
    }
}
