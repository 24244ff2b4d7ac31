//! Kinds of failures, by their causes.

use arrow_schema::ArrowError;
use datafusion::error::DataFusionError;
use parquet::errors::ParquetError;
use plinth_format::FormatError;
use plinth_ingest::IngestError;
use plinth_io::IoError;
use plinth_rowstore::TableError;

use super::{ErrorKind, SqlError, engine};

/// That of an error of the engine.
pub(super) fn of(error: &DataFusionError) -> ErrorKind {
    match error {
        DataFusionError::Collection(errors) => errors.first().map_or(ErrorKind::Execution, of),
        DataFusionError::Diagnostic(_, inner) | DataFusionError::Context(_, inner) => of(inner),
        DataFusionError::Shared(inner) => of(inner),
        DataFusionError::SQL(..) | DataFusionError::Plan(_) | DataFusionError::SchemaError(..) => ErrorKind::Statement,
        DataFusionError::Configuration(_) => ErrorKind::Statement,
        DataFusionError::NotImplemented(_) => ErrorKind::NotSupported,
        DataFusionError::Internal(what) if engine::is_of_types(what) => ErrorKind::Statement,
        DataFusionError::Internal(_) => ErrorKind::Internal,
        DataFusionError::ResourcesExhausted(_) | DataFusionError::IoError(_) | DataFusionError::ParquetError(_) => {
            ErrorKind::Operation
        }
        DataFusionError::ArrowError(error, _) => of_arrow(error),
        DataFusionError::External(error) => external(error.as_ref()),
        _ => ErrorKind::Execution,
    }
}

/// That of an error of arrays.
pub(super) fn of_arrow(error: &ArrowError) -> ErrorKind {
    match error {
        ArrowError::ExternalError(inner) => external(inner.as_ref()),
        ArrowError::DivideByZero
        | ArrowError::ArithmeticOverflow(_)
        | ArrowError::CastError(_)
        | ArrowError::ParseError(_)
        | ArrowError::ComputeError(_)
        | ArrowError::InvalidArgumentError(_) => ErrorKind::Data,
        ArrowError::IoError(..) | ArrowError::MemoryError(_) | ArrowError::OffsetOverflowError(_) => {
            ErrorKind::Operation
        }
        ArrowError::NotYetImplemented(_) => ErrorKind::NotSupported,
        _ => ErrorKind::Execution,
    }
}

fn external(error: &(dyn std::error::Error + Send + Sync + 'static)) -> ErrorKind {
    if let Some(error) = error.downcast_ref::<DataFusionError>() {
        return of(error.find_root());
    }
    if let Some(SqlError::Message(kind, _)) = error.downcast_ref() {
        return *kind;
    }
    if let Some(error) = error.downcast_ref::<ArrowError>() {
        return of_arrow(error);
    }
    match error.downcast_ref() {
        Some(TableError::Duplicate { .. } | TableError::NotUnique { .. }) => return ErrorKind::Constraint,
        Some(_) => return ErrorKind::Operation,
        None => {}
    }
    let operation = error.is::<FormatError>()
        || error.is::<IngestError>()
        || error.is::<IoError>()
        || error.is::<std::io::Error>()
        || error.is::<ParquetError>();
    if operation { ErrorKind::Operation } else { ErrorKind::Execution }
}
