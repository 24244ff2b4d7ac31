//! Failures: of the server in one sentence, of calls as the statuses of gRPC.

use std::fmt;

use plinth_sql::{ErrorKind, SqlError};
use tonic::{Code, Status};

/// Bytes of a message at most: it travels in a header.
const LONGEST: usize = 2048;

/// Why a server can't be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError(String);

impl ServerError {
    pub(crate) fn new(what: impl fmt::Display) -> Self {
        Self(plinth_sql::one_line(&what.to_string()))
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ServerError {}

impl From<SqlError> for ServerError {
    fn from(error: SqlError) -> Self {
        Self::new(error)
    }
}

/// What a client is told of a failure. The sentence stays what it is.
pub(crate) fn status(error: &SqlError) -> Status {
    let (kind, what) = match error {
        SqlError::Interrupted => return Status::cancelled("the statement was cancelled"),
        SqlError::Message(kind, what) => (kind, what),
    };
    let code = match kind {
        ErrorKind::Statement | ErrorKind::Data | ErrorKind::Execution => Code::InvalidArgument,
        ErrorKind::Constraint => Code::AlreadyExists,
        ErrorKind::NotSupported => Code::Unimplemented,
        ErrorKind::Denied => Code::PermissionDenied,
        ErrorKind::Operation => Code::Aborted,
        ErrorKind::Internal => Code::Internal,
    };
    Status::new(code, short(what))
}

/// The same of what can't be a user's doing.
pub(crate) fn internal(what: impl fmt::Display) -> Status {
    Status::internal(short(&plinth_sql::one_line(&what.to_string())))
}

/// A text within the length of a header.
pub(crate) fn short(text: &str) -> String {
    match text.char_indices().find(|(at, _)| *at >= LONGEST) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// An error of arrays.
pub(crate) fn arrow(error: arrow_schema::ArrowError) -> Status {
    status(&SqlError::from(error))
}

/// An error of the engine.
pub(crate) fn engine(error: datafusion::error::DataFusionError) -> Status {
    status(&SqlError::from(error))
}
