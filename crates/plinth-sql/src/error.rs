//! Errors of statements: one line that says what, where and what to do.

mod engine;
mod kind;
mod near;

use arrow_schema::ArrowError;
use datafusion::error::DataFusionError;
use plinth_core::text::spelled;
use plinth_format::FormatError;
use plinth_ingest::IngestError;

pub use near::near_path;

/// What a failure is about: for programs, which show the message to their users.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorKind {
    /// The statement: it is no SQL, or names what is not there.
    Statement,
    /// Values: they can't be converted, or an operation on them has no result.
    Data,
    /// A key or an index that allows for no second row.
    Constraint,
    /// Something that there is not in this database.
    NotSupported,
    /// What the session may not do, whatever there is.
    Denied,
    /// Files, memory, or what others do at the same time.
    Operation,
    /// A mistake of this database.
    Internal,
    /// Any of these: a function or a statement refused to go on.
    #[default]
    Execution,
}

/// Why a statement stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SqlError {
    /// Something went wrong: one line, with all that can't be shown spelled out.
    Message(ErrorKind, String),
    /// A request to stop.
    Interrupted,
}

impl std::fmt::Display for SqlError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Message(_, what) => what,
            Self::Interrupted => "interrupted",
        })
    }
}

impl std::error::Error for SqlError {}

/// The result of a statement.
pub type Result<T = (), E = SqlError> = std::result::Result<T, E>;

impl SqlError {
    /// An error from what can be printed, on one line and spelled out: what it names may hold any characters.
    pub fn new(message: impl std::fmt::Display) -> Self {
        Self::of(ErrorKind::default(), message)
    }

    /// The same of a kind that is known.
    pub fn of(kind: ErrorKind, message: impl std::fmt::Display) -> Self {
        Self::Message(kind, spelled(message.to_string().trim()).into_owned())
    }
}

/// A message without line breaks: what libraries say is often laid out for several lines.
pub fn one_line(text: &str) -> String {
    spelled(&engine::joined(text)).into_owned()
}

impl From<std::io::Error> for SqlError {
    fn from(error: std::io::Error) -> Self {
        Self::of(ErrorKind::Operation, error)
    }
}

impl From<FormatError> for SqlError {
    fn from(error: FormatError) -> Self {
        match error {
            FormatError::Cancelled => Self::Interrupted,
            other => Self::of(ErrorKind::Operation, other),
        }
    }
}

impl From<IngestError> for SqlError {
    fn from(error: IngestError) -> Self {
        Self::of(ErrorKind::Operation, error)
    }
}

impl From<ArrowError> for SqlError {
    fn from(error: ArrowError) -> Self {
        match error {
            ArrowError::IoError(_, error) => error.into(),
            other => Self::of(kind::of_arrow(&other), engine::arrow(&other)),
        }
    }
}

impl From<DataFusionError> for SqlError {
    fn from(error: DataFusionError) -> Self {
        // A context line per layer hides the cause.
        let root = error.find_root();
        if let DataFusionError::External(ours) = root {
            if let Some(ours) = ours.downcast_ref::<Self>() {
                return ours.clone();
            }
            if matches!(ours.downcast_ref(), Some(FormatError::Cancelled)) {
                return Self::Interrupted;
            }
        }
        // SQL has no such option.
        let text = engine::sentence(root).replace("give --replace to replace it", "remove it or name another");
        Self::of(kind::of(root), text)
    }
}

/// Through the engine, which knows no errors of ours, and back by the conversion above.
impl From<SqlError> for DataFusionError {
    fn from(error: SqlError) -> Self {
        Self::External(Box::new(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_one_line_that_starts_with_the_cause() {
        assert_eq!(one_line("a.plinth: cut\n  short"), "a.plinth: cut short");
        let engine = DataFusionError::Execution("External error: Execution error: a.plinth: cut\n  short".into());
        assert!(matches!(SqlError::from(engine), SqlError::Message(_, m) if m == "a.plinth: cut short"));
        assert!(
            matches!(SqlError::new("a\nb\u{1b}.csv: gone"), SqlError::Message(_, m) if m == "a\\nb\\u{1b}.csv: gone")
        );
        let nested = DataFusionError::Plan("no such table".into()).context("while\nplanning");
        assert!(matches!(SqlError::from(nested), SqlError::Message(_, m) if m == "no such table"));
    }

    #[test]
    fn kinds_are_those_of_the_cause() {
        use plinth_rowstore::TableError;
        let kind = |error: DataFusionError| match SqlError::from(error.context("while planning")) {
            SqlError::Message(kind, _) => kind,
            SqlError::Interrupted => unreachable!("it was not asked to stop"),
        };
        let there = TableError::Duplicate { key: "1".into() };
        assert_eq!(kind(DataFusionError::Plan("no".into())), ErrorKind::Statement);
        assert_eq!(kind(DataFusionError::NotImplemented("no".into())), ErrorKind::NotSupported);
        assert_eq!(kind(DataFusionError::Internal("no".into())), ErrorKind::Internal);
        assert_eq!(kind(DataFusionError::Internal("Failed to coerce".into())), ErrorKind::Statement);
        assert_eq!(kind(DataFusionError::Execution("no".into())), ErrorKind::Execution);
        assert_eq!(kind(DataFusionError::ResourcesExhausted("no".into())), ErrorKind::Operation);
        assert_eq!(kind(ArrowError::DivideByZero.into()), ErrorKind::Data);
        assert_eq!(kind(plinth_datafusion::from_table(there)), ErrorKind::Constraint);
        assert_eq!(kind(plinth_datafusion::from_table(TableError::ReadOnly)), ErrorKind::Operation);
    }

    #[test]
    fn a_request_to_stop_is_told_as_one_by_whatever_noticed_it() {
        for error in [SqlError::Interrupted.into(), DataFusionError::External(Box::new(FormatError::Cancelled))] {
            let shared = DataFusionError::Shared(std::sync::Arc::new(DataFusionError::context(error, "joining")));
            assert!(matches!(SqlError::from(shared), SqlError::Interrupted));
        }
    }
}
