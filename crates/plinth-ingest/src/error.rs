//! What can go wrong while reading foreign files.

use std::path::Path;
use std::sync::Arc;

use crate::format::FileFormat;

/// A failure to find, open, unite or read input files: what, where, and what to do.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum IngestError {
    /// An input is not there.
    #[error("{path}: no such file or directory")]
    NotFound {
        /// The input.
        path: String,
    },
    /// A directory holds nothing to import.
    #[error("nothing to import in {directory}")]
    NothingIn {
        /// The directory.
        directory: String,
    },
    /// A pattern matches nothing.
    #[error("{pattern}: the pattern matches no file")]
    NoMatch {
        /// The pattern.
        pattern: String,
    },
    /// A pattern is not one.
    #[error("{pattern}: not a pattern: {reason}")]
    BadPattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No reader of such files.
    #[error("{path}: can't import {}; known: {known}", if extension.is_empty() { "a file without an extension".to_owned() } else { format!(".{extension} files") })]
    UnknownExtension {
        /// The input.
        path: String,
        /// Its extension, without the dot.
        extension: String,
        /// The extensions that are known.
        known: String,
    },
    /// The operating system refused.
    #[error("{path}: cannot {action}: {source}")]
    Os {
        /// The file.
        path: String,
        /// What was being done.
        action: &'static str,
        /// The reason.
        source: Arc<std::io::Error>,
    },
    /// The file is not what its name says, or damaged.
    #[error("{path}: {what}")]
    Damaged {
        /// The file.
        path: String,
        /// What is wrong with it.
        what: String,
    },
    /// Two files disagree about a column.
    #[error(
        "column {column:?} is {first_type} in {first} but {second_type} in {second}: import them apart or convert one"
    )]
    Conflict {
        /// The column.
        column: String,
        /// Its type in the first file.
        first_type: String,
        /// The first file.
        first: String,
        /// Its type in the second file.
        second_type: String,
        /// The second file.
        second: String,
    },
    /// A file names two columns alike.
    #[error("{path}: column {column:?} occurs twice{advice}")]
    DuplicateColumn {
        /// The file.
        path: String,
        /// The column.
        column: String,
        /// What to do about it, after a semicolon, where that is known.
        advice: &'static str,
    },
    /// A value does not fit the type it is to become.
    #[error("{path}: column {column:?}: {what}")]
    Value {
        /// The file.
        path: String,
        /// The column.
        column: String,
        /// Which value, and what to do.
        what: String,
    },
    /// Nothing says what an input holds.
    #[error("{path}: can't tell what it holds; say it with --format parquet, csv, tsv or ndjson")]
    UnknownFormat {
        /// The input.
        path: String,
    },
    /// Inputs of several formats.
    #[error("{first} is {first_format} but {second} is {second_format}: import one format at a time, or say --format")]
    MixedFormats {
        /// The first file.
        first: String,
        /// Its format.
        first_format: FileFormat,
        /// The file that differs.
        second: String,
        /// Its format.
        second_format: FileFormat,
    },
    /// An option that makes no sense.
    #[error("{what}")]
    Option {
        /// Which, and why.
        what: String,
    },
    /// No input has a column of the schema that was given.
    #[error("column {column:?} of the schema is in no input file")]
    MissingColumn {
        /// The column.
        column: String,
    },
    /// An input has a column that the schema lacks.
    #[error("{path}: column {column:?} is not in the schema; add it, or leave such columns out with --ignore-extra")]
    ExtraColumn {
        /// The file.
        path: String,
        /// The column.
        column: String,
    },
    /// A record that can't be read, or a value that does not fit the type that was given.
    #[error("{0}")]
    Record(Box<BadRecord>),
    /// A record that does not fit the schema inferred from a sample. Reading once more with a schema inferred from
    /// everything will succeed.
    #[error("{0}, which is not what the sample of rows looks like; infer the schema from everything or give one")]
    Surprise(Box<BadRecord>),
    /// More records were rejected than agreed.
    #[error("more than {max} bad records; the last: {last}")]
    TooManyRejects {
        /// How many were agreed.
        max: u64,
        /// The one that was too many.
        last: Box<BadRecord>,
    },
    /// A value or type that a format can't hold.
    #[error("column {column:?}: {what}")]
    Unwritable {
        /// The column.
        column: String,
        /// Why, and what to do.
        what: String,
    },
    /// The reader or the writer is in a state that cannot be.
    #[error("internal error: {what}; please report it")]
    Internal {
        /// The state.
        what: &'static str,
    },
    /// Output could not be written.
    #[error("{0}")]
    Io(#[from] plinth_io::IoError),
}

/// The result of this crate's operations.
pub type Result<T, E = IngestError> = std::result::Result<T, E>;

impl IngestError {
    /// An operating-system error at a path.
    pub(crate) fn os(path: &Path, action: &'static str, source: std::io::Error) -> Self {
        if source.kind() == std::io::ErrorKind::NotFound {
            return Self::NotFound { path: path.display().to_string() };
        }
        Self::Os { path: path.display().to_string(), action, source: Arc::new(source) }
    }

    /// A thread that could not be started.
    pub(crate) fn thread(source: std::io::Error) -> Self {
        Self::os(Path::new("reader"), "start a thread", source)
    }

    /// A state that cannot be.
    #[cold]
    pub(crate) fn internal(what: &'static str) -> Self {
        Self::Internal { what }
    }

    /// A damaged file.
    pub(crate) fn damaged(path: &Path, what: impl Into<String>) -> Self {
        Self::Damaged { path: path.display().to_string(), what: what.into() }
    }
}

/// A record of a text file that can't be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRecord {
    /// The file.
    pub path: String,
    /// The line it starts in, counted from one.
    pub line: u64,
    /// Where it starts, in bytes of the uncompressed file.
    pub offset: u64,
    /// The column, where one is to blame; fields of structs after a dot.
    pub column: Option<String>,
    /// What is wrong.
    pub reason: String,
    /// The record, or its beginning where it is long.
    pub raw: Vec<u8>,
    /// Its length in bytes (at least, where it was too large to read).
    pub len: u64,
}

impl std::fmt::Display for BadRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: line {} (byte {}): ", self.path, self.line, self.offset)?;
        if let Some(column) = &self.column {
            write!(f, "column {column:?}: ")?;
        }
        write!(f, "{}{}", self.reason, before(&self.raw))
    }
}

/// The beginning of some bytes after a colon, as a message ends; nothing where there are none.
pub(crate) fn before(raw: &[u8]) -> String {
    let shown = excerpt(raw);
    if shown.is_empty() { shown } else { format!(": {shown}") }
}

/// The beginning of some bytes on one line.
pub(crate) fn excerpt(raw: &[u8]) -> String {
    const CHARACTERS: usize = 80;
    let head = raw.get(..raw.len().min(CHARACTERS * 4)).unwrap_or_default();
    let text = String::from_utf8_lossy(head);
    let text = text.trim_end();
    let mut line = text.chars().take(CHARACTERS).flat_map(char::escape_debug).collect::<String>();
    // Quotes are read better as they are.
    line = line.replace("\\\"", "\"").replace("\\'", "'");
    if text.chars().nth(CHARACTERS).is_some() {
        line.push('\u{2026}');
    }
    line
}
