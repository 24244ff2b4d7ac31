//! What can go wrong between values and bytes.

use std::sync::Arc;

/// A failure to encode, decode or evaluate. The file layer adds where it happened.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EncodingError {
    /// The bytes are not what an encoder of this version could have written.
    #[error("corrupt data: {0}")]
    Corrupt(String),
    /// The caller asked for something that does not fit the values it gave.
    #[error("invalid argument: {0}")]
    InvalidArgument(String),
    /// A function evaluated over the values failed on a value that a surviving row holds.
    #[error("{0}")]
    Function(String),
    /// Bytes that decoding needed could not be had; the error of their source.
    #[error(transparent)]
    Fetch(Arc<dyn std::error::Error + Send + Sync>),
}

impl EncodingError {
    /// Shorthand for [`EncodingError::Corrupt`].
    pub fn corrupt(what: impl Into<String>) -> Self {
        Self::Corrupt(what.into())
    }

    /// Shorthand for [`EncodingError::InvalidArgument`].
    pub fn invalid(what: impl Into<String>) -> Self {
        Self::InvalidArgument(what.into())
    }
}

impl From<plinth_core::wire::WireError> for EncodingError {
    fn from(error: plinth_core::wire::WireError) -> Self {
        Self::corrupt(error.to_string())
    }
}

/// The result of this crate's operations.
pub type Result<T, E = EncodingError> = std::result::Result<T, E>;
