//! How foreign files are read, as the command line says it.

use std::path::Path;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::FutureExt;
use plinth_ingest::{CsvOptions, FileFormat, JsonOptions, Mark, Misfits, Rejects, SourceOptions, Unknown};
use plinth_io::regular;

use crate::cli::{ForeignFormat, OnError, Quote, SourceArgs, UnknownKeys};
use crate::error::{Failure, Result};

/// Bytes that a file with columns and their types may have.
const SCHEMA: u64 = 16 << 20;

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
            quote: mark(self.quote),
            escape: mark(self.escape),
            nulls: if self.null.is_empty() { default.nulls } else { self.null.clone() },
            thousands: self.thousands,
            decimal: self.decimal.unwrap_or(default.decimal),
        };
        if self.on_error == Some(OnError::Skip) && self.rejects.is_none() {
            return Err(Failure::new("--on-error skip: say with --rejects FILE where bad records go"));
        }
        let rejects = match &self.rejects {
            Some(_) if self.on_error == Some(OnError::Fail) => {
                return Err(Failure::new("--on-error fail leaves nothing for --rejects"));
            }
            Some(to) => Rejects::Collect { to: to.clone(), max: self.max_rejects },
            None => Rejects::Error,
        };
        let default = SourceOptions::default();
        Ok(SourceOptions {
            format: self.format.map(Into::into),
            schema: self.schema.as_deref().map(parse_schema).transpose()?,
            ignore_extra: self.ignore_extra,
            sample: self.sample.unwrap_or(default.sample),
            binary_as_text: self.binary_as_text,
            csv,
            json: JsonOptions {
                root: self.root.clone(),
                unknown: self.unknown.map_or(default.json.unknown, Into::into),
                columns: self.columns.clone(),
                validate: !self.unchecked,
                ..default.json
            },
            rejects,
            misfits: if self.on_error == Some(OnError::Null) { Misfits::Null } else { Misfits::Reject },
            record_bytes: self
                .max_record
                .map_or(default.record_bytes, |most| usize::try_from(most).unwrap_or(usize::MAX)),
            ..default
        })
    }
}

/// What was said of a character.
fn mark(told: Option<Quote>) -> Mark {
    match told {
        None => Mark::Sniffed,
        Some(Quote(None)) => Mark::None,
        Some(Quote(Some(byte))) => Mark::Byte(byte),
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

/// Columns and types as in CREATE TABLE; a name of a file stands for what it holds.
fn parse_schema(text: &str) -> Result<SchemaRef> {
    let fail = |what: &str| {
        Failure::new(format!("--schema: {what}; columns and types are expected, such as \"id BIGINT, name TEXT\""))
    };
    let columns = if Path::new(text).is_file() {
        regular::read_text(text, SCHEMA).map_err(|e| Failure::new(format!("--schema {e}")))?
    } else {
        text.to_owned()
    };
    let columns = columns.trim().trim_end_matches(';').trim();
    // In parentheses or not.
    let columns = columns.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')).unwrap_or(columns);
    // What TIMESTAMP WITH TIME ZONE means.
    let config = SessionConfig::new().set_str("datafusion.execution.time_zone", "UTC");
    let statement = format!("CREATE EXTERNAL TABLE t ({columns}\n) STORED AS CSV LOCATION 'none'");
    // It looks no table up, so there is nothing to wait for.
    let state = SessionContext::new_with_config(config).state();
    let plan = state.create_logical_plan(&statement).now_or_never().ok_or_else(|| fail("not columns"))?;
    let plan = plan.map_err(|e| match e.into() {
        Failure::Message(what) => fail(&what),
        other => other,
    })?;
    let LogicalPlan::Ddl(DdlStatement::CreateExternalTable(table)) = plan else { return Err(fail("not columns")) };
    if table.schema.fields().is_empty() {
        return Err(fail("no columns"));
    }
    Ok(Arc::clone(table.schema.inner()))
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
        assert_eq!(types[2], ("at", DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())), true));
        assert_eq!(types[3], ("d", DataType::Decimal128(10, 2), true));
        assert!(matches!(types[4].1, DataType::List(_)));
    }

    #[test]
    fn what_is_no_schema_is_said() {
        for text in ["", "id", "id BIGINT, id TEXT", "id NONSENSE", "id INT) STORED AS CSV LOCATION 'x'; --"] {
            let Err(Failure::Message(what)) = parse_schema(text) else { panic!("{text}") };
            assert!(what.starts_with("--schema: ") && !what.contains('\n'), "{what}");
        }
    }
}
