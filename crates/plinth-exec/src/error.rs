//! What can go wrong while rows are grouped, joined and sorted.

use arrow_schema::ArrowError;
use plinth_io::{IoError, OutOfMemory};

/// An error of execution.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// There is no memory for more groups. Nothing was changed: the same rows may be given again once there is room.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
    /// Arrays could not be made.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    /// A scratch file could not be written or read.
    #[error(transparent)]
    Io(#[from] IoError),
    /// What supplies values, or a function of the engine, failed.
    #[error(transparent)]
    Source(Box<dyn std::error::Error + Send + Sync>),
    /// A state that cannot be.
    #[error("internal error: {0}; please report it")]
    Internal(String),
}

/// A result of execution.
pub type Result<T, E = ExecError> = std::result::Result<T, E>;

impl ExecError {
    /// A state that cannot be.
    pub fn internal(what: impl Into<String>) -> Self {
        Self::Internal(what.into())
    }

    /// An error of what supplies values.
    pub fn source(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Source(error.into())
    }
}
