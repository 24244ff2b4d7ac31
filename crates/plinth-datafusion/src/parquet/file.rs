//! An open Parquet file, and its errors.

use std::sync::Arc;

use arrow_schema::{Schema, TimeUnit};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use plinth_format::FormatError;
use plinth_io::{IoError, Source};

use super::resolved::Resolved;

/// An open file.
#[derive(Clone, Debug)]
pub(crate) struct ParquetFile {
    pub(super) source: Arc<dyn Source>,
    pub(super) metadata: Arc<ParquetMetaData>,
    /// What its columns are read as.
    pub(super) schema: Arc<Schema>,
}

impl ParquetFile {
    pub(super) fn fail(&self, column: &Resolved, group: usize) -> impl Fn(ParquetError) -> FormatError + use<> {
        let (file, path) = (self.source.name().to_owned(), column.path.clone());
        move |error| match error {
            ParquetError::External(inner) if inner.is::<IoError>() => match inner.downcast::<IoError>() {
                Ok(error) => FormatError::Io(*error),
                Err(error) => FormatError::Corrupt { file: file.clone(), what: error.to_string() },
            },
            error => {
                let what = format!("column {:?}, row group {group}: {}", path.to_string(), one_line(&error));
                FormatError::Corrupt { file: file.clone(), what }
            }
        }
    }
}

/// A library's message without line breaks and without the name it starts with.
pub(super) fn one_line(error: &ParquetError) -> String {
    let text = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    text.strip_prefix("Parquet error: ").unwrap_or(&text).to_owned()
}

/// A unit of time by the name it has in options.
pub(super) fn time_unit(name: &str) -> Option<TimeUnit> {
    Some(match name.to_ascii_lowercase().as_str() {
        "ns" => TimeUnit::Nanosecond,
        "us" => TimeUnit::Microsecond,
        "ms" => TimeUnit::Millisecond,
        "s" => TimeUnit::Second,
        _ => return None,
    })
}
