//! Errors as DuckDB reports them, and the border that no panic crosses.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use duckdb_neo::Error;
use duckdb_neo::error::DuckDBError;
use plinth_format::FormatError;
use plinth_rowstore::TableError;

/// What a callback answers.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Runs a callback. A panic becomes an error that says so: DuckDB would take one for a broken database and refuse all that follows.
///
/// # Errors
/// As `work`, or if it panics.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let what = format!("internal error in Plinth: {}; please report it", said(&*panic));
        Err(error(DuckDBError::QueryExecutor, what))
    })
}

fn said(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text,
        _ => "it stopped without a word",
    }
}

/// An error of a kind.
pub(crate) fn error(code: DuckDBError, message: impl Into<String>) -> Error {
    Error { code, message: message.into() }
}

/// What the user asked for and can't have.
pub(crate) fn refused(message: impl Into<String>) -> Error {
    Error::invalid_input(message)
}

/// What the library reports, said in DuckDB's terms.
pub(crate) fn of_format(failed: FormatError) -> Error {
    let code = match &failed {
        FormatError::Io(e) if e.is_not_found() => DuckDBError::IoFileNotFound,
        FormatError::Io(_) => DuckDBError::IoReadFailure,
        FormatError::Memory(_) => DuckDBError::ResourceOutOfMemory,
        FormatError::Cancelled => DuckDBError::RuntimeInterrupt,
        FormatError::Unsupported { .. } => DuckDBError::TypeInvalid,
        FormatError::InvalidArgument(_) | FormatError::Function(_) => DuckDBError::InputInvalid,
        FormatError::Corrupt { .. } | FormatError::Version { .. } => DuckDBError::IoGeneral,
        _ => DuckDBError::QueryExecutor,
    };
    let hint = match &failed {
        FormatError::Memory(_) => "; SET plinth_memory gives scans more",
        _ => "",
    };
    error(code, format!("{failed}{hint}"))
}

/// As [`of_format`], of writable tables.
pub(crate) fn of_table(failed: TableError) -> Error {
    match failed {
        TableError::Format(failed) => of_format(failed),
        other => error(DuckDBError::IoGeneral, other.to_string()),
    }
}

/// What Arrow refuses, which it does for no file of ours.
pub(crate) fn of_arrow(failed: impl std::fmt::Display) -> Error {
    error(DuckDBError::QueryExecutor, format!("internal error in Plinth: {failed}; please report it"))
}
