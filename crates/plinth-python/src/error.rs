//! Failures as exceptions, by kind: those of DB-API 2.0.

use datafusion::error::DataFusionError;
use plinth_sql::{ErrorKind, SqlError};
use pyo3::exceptions::{PyException, PyWarning};
use pyo3::prelude::*;

pyo3::create_exception!(plinth, Error, PyException, "Anything that goes wrong here.");
pyo3::create_exception!(plinth, Warning, PyWarning, "Something that may not be as intended.");
pyo3::create_exception!(
    plinth,
    InterfaceError,
    Error,
    "A mistake in the use of this package: a closed connection, say."
);
pyo3::create_exception!(plinth, DatabaseError, Error, "Anything that goes wrong with a statement.");
pyo3::create_exception!(
    plinth,
    DataError,
    DatabaseError,
    "A value that can't be converted, or a computation without a result."
);
pyo3::create_exception!(
    plinth,
    OperationalError,
    DatabaseError,
    "Files that are not there, damaged or in use; too little memory; a conflict of two transactions."
);
pyo3::create_exception!(plinth, InterruptedError, OperationalError, "A statement that was asked to stop.");
pyo3::create_exception!(plinth, IntegrityError, DatabaseError, "A key that is there already.");
pyo3::create_exception!(plinth, InternalError, DatabaseError, "A mistake of the database; please report it.");
pyo3::create_exception!(
    plinth,
    ProgrammingError,
    DatabaseError,
    "A statement that is no SQL, or names what is not there."
);
pyo3::create_exception!(plinth, NotSupportedError, DatabaseError, "Something that there is not in this database.");

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A statement was refused, or failed at once.
    Statement(SqlError),
    /// Its rows ended with an error.
    Rows(SqlError),
    /// A signal's handler or another part of the interpreter raised something.
    Python(PyErr),
    /// It was asked to stop.
    Interrupted,
    /// The call itself is wrong.
    Interface(String),
    /// A value can't be handed over.
    Data(String),
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        match error {
            SqlError::Interrupted => Self::Interrupted,
            other => Self::Statement(other),
        }
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl Failure {
    /// That of a stream of rows.
    pub(crate) fn of_rows(error: DataFusionError) -> Self {
        match SqlError::from(error) {
            SqlError::Interrupted => Self::Interrupted,
            other => Self::Rows(other),
        }
    }

    /// The same once more, for whom asks later.
    pub(crate) fn again(&self) -> Self {
        match self {
            Self::Statement(error) => Self::Statement(error.clone()),
            Self::Rows(error) => Self::Rows(error.clone()),
            Self::Python(error) => {
                Python::try_attach(|py| Self::Python(error.clone_ref(py))).unwrap_or(Self::Interrupted)
            }
            Self::Interrupted => Self::Interrupted,
            Self::Interface(what) => Self::Interface(what.clone()),
            Self::Data(what) => Self::Data(what.clone()),
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Statement(error) | Self::Rows(error) => error.fmt(f),
            Self::Python(error) => error.fmt(f),
            Self::Interrupted => f.write_str("interrupted"),
            Self::Interface(what) | Self::Data(what) => f.write_str(what),
        }
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        let text = failure.to_string();
        let kind = match &failure {
            Failure::Statement(SqlError::Message(kind, _)) => match kind {
                ErrorKind::Execution => ErrorKind::Statement,
                other => *other,
            },
            Failure::Rows(SqlError::Message(kind, _)) => match kind {
                ErrorKind::Execution => ErrorKind::Data,
                other => *other,
            },
            Failure::Data(_) => ErrorKind::Data,
            Failure::Interface(_) => return InterfaceError::new_err(text),
            Failure::Python(_) => {
                let Failure::Python(error) = failure else { return InternalError::new_err(text) };
                return error;
            }
            Failure::Interrupted | Failure::Statement(_) | Failure::Rows(_) => {
                return InterruptedError::new_err("interrupted");
            }
        };
        match kind {
            ErrorKind::Statement | ErrorKind::Denied => ProgrammingError::new_err(text),
            ErrorKind::Data | ErrorKind::Execution => DataError::new_err(text),
            ErrorKind::Constraint => IntegrityError::new_err(text),
            ErrorKind::NotSupported => NotSupportedError::new_err(text),
            ErrorKind::Operation => OperationalError::new_err(text),
            ErrorKind::Internal => InternalError::new_err(text),
        }
    }
}
