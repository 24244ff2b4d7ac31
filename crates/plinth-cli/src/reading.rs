//! How foreign files are read, as the command line says it.

use std::path::Path;

use arrow_schema::SchemaRef;
use plinth_ingest::{CsvOptions, FileFormat, JsonOptions, Meant, SourceOptions, Unknown};
use plinth_sql::{parse_schema, rejects};

use crate::cli::{ForeignFormat, OnError, SourceArgs, UnknownKeys};
use crate::error::{Failure, Result};
use crate::objects;

/// The formats that options are of.
const JSON: &[FileFormat] = &[FileFormat::Ndjson];
const SEPARATED: &[FileFormat] = &[FileFormat::Csv, FileFormat::Tsv];
const TEXT: &[FileFormat] = &[FileFormat::Csv, FileFormat::Tsv, FileFormat::Ndjson];
const PARQUET: &[FileFormat] = &[FileFormat::Parquet];

/// `--columns` of an import.
pub(crate) const COLUMNS: Meant = Meant { option: "--columns", formats: JSON };

impl SourceArgs {
    /// What was said that not all formats have.
    fn meant(&self) -> Vec<Meant> {
        let all = [
            ("--root", JSON, self.root.is_some()),
            ("--unknown", JSON, self.unknown.is_some()),
            ("--delimiter", SEPARATED, self.delimiter.is_some()),
            ("--quote", SEPARATED, self.quote.is_some()),
            ("--escape", SEPARATED, self.escape.is_some()),
            ("--header", SEPARATED, self.header),
            ("--no-header", SEPARATED, self.no_header),
            ("--thousands", SEPARATED, self.thousands.is_some()),
            ("--decimal", SEPARATED, self.decimal.is_some()),
            ("--null", SEPARATED, !self.null.is_empty()),
            ("--sample", TEXT, self.sample.is_some()),
            ("--max-record", TEXT, self.max_record.is_some()),
            ("--rejects", TEXT, self.rejects.is_some()),
            ("--on-error", TEXT, self.on_error.is_some()),
            ("--binary-as-text", PARQUET, self.binary_as_text),
        ];
        let said = all.into_iter().filter(|(.., said)| *said);
        said.map(|(option, formats, _)| Meant { option, formats }).collect()
    }

    /// An error if anything was said of inputs that say all of it themselves.
    pub(crate) fn refuse(&self, input: &Path) -> Result {
        let all =
            [("--format", self.format.is_some()), ("--schema", self.schema.is_some()), ("--no-hive", self.no_hive)];
        let others = all.into_iter().filter(|(_, said)| *said).map(|(option, _)| option);
        match self.meant().into_iter().map(|meant| meant.option).chain(others).next() {
            None => Ok(()),
            Some(option) => Err(Failure::new(format!(
                "{option}: is an option of foreign files that are read, and {} is Plinth's",
                input.display()
            ))),
        }
    }

    /// The options, but for what belongs to threads and memory.
    pub(crate) fn options(&self) -> Result<SourceOptions> {
        let default = CsvOptions::default();
        let csv = CsvOptions {
            names: Vec::new(),
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
            meant: self.meant(),
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
