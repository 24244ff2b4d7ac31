//! How foreign files are read, as the command line says it.

use arrow_schema::SchemaRef;
use plinth_ingest::{CsvOptions, FileFormat, JsonOptions, SourceOptions, Unknown};
use plinth_sql::{parse_schema, rejects};

use crate::cli::{ForeignFormat, OnError, SourceArgs, UnknownKeys};
use crate::error::{Failure, Result};
use crate::objects;

impl SourceArgs {
    /// The options, but for what belongs to threads and memory.
    pub(crate) fn options(&self) -> Result<SourceOptions> {
        let default = CsvOptions::default();
        let csv = CsvOptions {
            delimiter: self.delimiter,
            header: match (self.header, self.no_header) {
                (_, true) => Some(false),
                (header, false) => header.then_some(true),
            },
            quote: self.quote.unwrap_or(default.quote),
            escape: self.escape.unwrap_or(default.escape),
            nulls: if self.null.is_empty() { default.nulls } else { self.null.clone() },
            thousands: self.thousands,
            decimal: self.decimal.unwrap_or(default.decimal),
        };
        let (rejects, misfits) = rejects(self.on_error.map(Into::into), self.rejects.clone(), self.max_rejects)?;
        let default = SourceOptions::default();
        Ok(SourceOptions {
            format: self.format.map(Into::into),
            schema: self.schema.as_deref().map(schema).transpose()?,
            ignore_extra: self.ignore_extra,
            hive: !self.no_hive,
            sample: self.sample.unwrap_or(default.sample),
            binary_as_text: self.binary_as_text,
            csv,
            json: JsonOptions {
                root: self.root.clone(),
                unknown: self.unknown.map_or(default.json.unknown, Into::into),
                ..default.json
            },
            rejects,
            misfits,
            objects: Some(objects::stores()),
            record_bytes: self
                .max_record
                .map_or(default.record_bytes, |most| usize::try_from(most).unwrap_or(usize::MAX)),
            ..default
        })
    }
}

/// Columns and types of `--schema`.
fn schema(text: &str) -> Result<SchemaRef> {
    parse_schema(text).map_err(|e| Failure::new(format!("--schema: {e}")))
}

impl From<OnError> for plinth_sql::OnError {
    fn from(on_error: OnError) -> Self {
        match on_error {
            OnError::Fail => Self::Fail,
            OnError::Skip => Self::Skip,
            OnError::Null => Self::Null,
        }
    }
}

impl From<UnknownKeys> for Unknown {
    fn from(unknown: UnknownKeys) -> Self {
        match unknown {
            UnknownKeys::Error => Self::Error,
            UnknownKeys::Report => Self::Report,
            UnknownKeys::Extra => Self::Extra,
        }
    }
}

impl From<ForeignFormat> for FileFormat {
    fn from(format: ForeignFormat) -> Self {
        match format {
            ForeignFormat::Parquet => Self::Parquet,
            ForeignFormat::Csv => Self::Csv,
            ForeignFormat::Tsv => Self::Tsv,
            ForeignFormat::Ndjson => Self::Ndjson,
        }
    }
}
