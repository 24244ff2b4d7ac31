//! Failures as the user sees them: one line on standard error and an exit code.
use std::process::ExitCode;

use arrow_schema::ArrowError;
use datafusion::error::DataFusionError;
use plinth_format::FormatError;
use plinth_ingest::IngestError;
use plinth_sql::{SqlError, one_line};

use crate::screen;

/// Why a command stopped.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something went wrong: one line, and perhaps the line of the statement that it is about, with a mark below.
    Message(String),
    /// The user asked for it.
    Interrupted,
    /// The pipe that the output goes to is closed.
    BrokenPipe,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Message(what) => what,
            Self::Interrupted => "interrupted",
            Self::BrokenPipe => "the output was closed",
        })
    }
}

impl std::error::Error for Failure {}

/// The result of a command.
pub(crate) type Result<T = (), E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// A failure from what can be printed, on one line and spelled out: what it names may hold any characters.
    pub(crate) fn new(message: impl std::fmt::Display) -> Self {
        Self::Message(screen::spelled(message.to_string().trim()).into_owned())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe { Self::BrokenPipe } else { Self::new(error) }
    }
}

impl From<FormatError> for Failure {
    fn from(error: FormatError) -> Self {
        match error {
            FormatError::Cancelled => Self::Interrupted,
            other => Self::new(other),
        }
    }
}

impl From<IngestError> for Failure {
    fn from(error: IngestError) -> Self {
        match error {
            // A reader that closed its pipe has what it wanted.
            IngestError::Os { action: "write to", source, .. } if source.kind() == std::io::ErrorKind::BrokenPipe => {
                Self::BrokenPipe
            }
            other => Self::new(other),
        }
    }
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        match error {
            SqlError::Message(_, what) => Self::Message(what),
            SqlError::Interrupted => Self::Interrupted,
        }
    }
}

impl From<Failure> for SqlError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Interrupted => Self::Interrupted,
            other => Self::new(other),
        }
    }
}

impl From<ArrowError> for Failure {
    fn from(error: ArrowError) -> Self {
        match error {
            ArrowError::IoError(_, error) => error.into(),
            other => SqlError::from(other).into(),
        }
    }
}

impl From<DataFusionError> for Failure {
    fn from(error: DataFusionError) -> Self {
        SqlError::from(error).into()
    }
}

/// Panics are bugs; whatever happens, the user gets one line, and a thread whose panics are handled gets none.
pub(crate) fn quiet_panics() {
    std::panic::set_hook(Box::new(|info| {
        let thread = std::thread::current();
        if thread.name().is_some_and(|name| name.starts_with("plinth-read")) || CATCHING.with(std::cell::Cell::get) {
            return;
        }
        let place = info.location().map_or_else(String::new, |at| format!(" at {}:{}", place_of(at.file()), at.line()));
        let payload = info.payload();
        let what = payload.downcast_ref::<&str>().copied().or(payload.downcast_ref::<String>().map(String::as_str));
        let what = one_line(what.unwrap_or("unknown reason"));
        screen::say(format_args!("plinth: internal error{place}: {what}; please report it"));
    }));
}

/// A source file as it is called anywhere: of a library without where it was when this program was built.
fn place_of(file: &str) -> &str {
    file.split_once("/registry/src/").and_then(|(_, file)| file.split_once('/')).map_or(file, |(_, file)| file)
}

thread_local! {
    static CATCHING: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Runs code whose panics are caught and reported as errors further down.
pub(crate) fn catching<T>(work: impl FnOnce() -> T) -> T {
    CATCHING.with(|catching| catching.set(true));
    let result = work();
    CATCHING.with(|catching| catching.set(false));
    result
}

/// Prints a failure and says how to exit.
pub(crate) fn exit_code(result: Result) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // The reader that closed the pipe has what it wanted.
        Err(Failure::BrokenPipe) => ExitCode::SUCCESS,
        Err(Failure::Interrupted) => {
            screen::say("plinth: interrupted");
            ExitCode::from(130)
        }
        Err(Failure::Message(message)) => {
            // Spelled out already, but for the line that it may be about.
            screen::say_painted(&format!("plinth: {message}"));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests;
