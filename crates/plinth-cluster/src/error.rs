//! Failures, in one sentence.

use std::fmt;

/// Why a worker can't start, or a session can't have workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterError(String);

impl ClusterError {
    pub(crate) fn new(what: impl fmt::Display) -> Self {
        Self(plinth_sql::one_line(&what.to_string()))
    }
}

impl fmt::Display for ClusterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ClusterError {}

impl From<plinth_server::ServerError> for ClusterError {
    fn from(error: plinth_server::ServerError) -> Self {
        Self::new(error)
    }
}

impl From<plinth_sql::SqlError> for ClusterError {
    fn from(error: plinth_sql::SqlError) -> Self {
        Self::new(error)
    }
}

impl From<ClusterError> for datafusion::error::DataFusionError {
    fn from(error: ClusterError) -> Self {
        Self::Execution(error.0)
    }
}
