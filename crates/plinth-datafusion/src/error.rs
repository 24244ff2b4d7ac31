//! Plinth's errors as DataFusion's.

use datafusion_common::DataFusionError;
use plinth_exec::ExecError;
use plinth_format::FormatError;
use plinth_rowstore::TableError;

/// A file's error as the engine's. A predicate's own failure stays an execution error, as the engine would have raised
/// it; the rest is passed through whole, so a caller can downcast it.
pub fn from_format(error: FormatError) -> DataFusionError {
    match error {
        FormatError::Function(message) => DataFusionError::Execution(message),
        FormatError::Memory(error) => DataFusionError::ResourcesExhausted(error.to_string()),
        other => DataFusionError::External(Box::new(other)),
    }
}

/// A task that could not be joined: it panicked, or the runtime is going away.
pub(crate) fn from_join(error: tokio::task::JoinError) -> DataFusionError {
    DataFusionError::ExecutionJoin(Box::new(error))
}

/// A table's error as the engine's.
pub fn from_table(error: TableError) -> DataFusionError {
    match error {
        TableError::Format(error) => crate::from_format(error),
        other => DataFusionError::External(Box::new(other)),
    }
}

/// An error of execution as the engine's. What the engine or a file raised comes back as it was.
pub(crate) fn from_exec(error: ExecError) -> DataFusionError {
    match error {
        ExecError::Memory(error) => DataFusionError::ResourcesExhausted(error.to_string()),
        ExecError::Arrow(error) => DataFusionError::from(error),
        ExecError::Io(error) => DataFusionError::External(Box::new(error)),
        ExecError::Internal(what) => DataFusionError::Internal(what),
        ExecError::Source(error) => match error.downcast::<DataFusionError>() {
            Ok(error) => *error,
            Err(error) => match error.downcast::<FormatError>() {
                Ok(error) => from_format(*error),
                Err(error) => DataFusionError::External(error),
            },
        },
    }
}
