//! The line editor: history, colours, completion, statements of several lines.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;

use datafusion::common::TableReference;
use plinth_sql::Session;
use rustyline::completion::{Completer, Pair};
use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{Behavior, ColorMode, CompletionType, Config, Context, Helper};

use super::complete::{Names, complete};
use super::text::{highlight, split};
use crate::error::{Failure, Result};
use crate::sql;

/// Entries of the history.
const HISTORY: usize = 10_000;

/// What the user did.
pub(super) enum Typed {
    Text(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, perhaps within a statement.
    End {
        within: bool,
    },
}

/// Reads from a terminal.
pub(super) struct Editor {
    inner: rustyline::Editor<Assistant, FileHistory>,
    session: Arc<Session>,
    history: Option<PathBuf>,
}

/// Two prompts: one without colours, one with.
type Prompt = (&'static str, &'static str);

/// Where a statement begins, and where it goes on.
const PROMPT: Prompt = ("plinth> ", "\x1b[1mplinth>\x1b[0m ");
const CONTINUED: Prompt = ("     -> ", "\x1b[2m     ->\x1b[0m ");

impl Editor {
    pub(super) fn new(session: &Arc<Session>) -> Result<Self> {
        let mut inner = line_editor(session)?;
        let history = history_file();
        if let Some(path) = history.as_ref().filter(|path| can_be_kept(path).is_ok()) {
            // The first time there is none.
            let _ = inner.load_history(path);
        }
        Ok(Self { inner, session: Arc::clone(session), history })
    }

    /// Reads statements or a command, over as many lines as they take.
    pub(super) fn read(&mut self) -> Result<Typed> {
        let mut text = String::new();
        loop {
            if let Some(assistant) = self.inner.helper_mut() {
                assistant.begin(&text);
            }
            let prompt = if text.is_empty() { PROMPT } else { CONTINUED };
            match self.inner.readline(&prompt) {
                Ok(line) => text.push_str(&line),
                Err(ReadlineError::Interrupted) => return Ok(Typed::Interrupted),
                Err(ReadlineError::Eof) => return Ok(Typed::End { within: !text.is_empty() }),
                Err(e) => return Err(Failure::new(format!("can't read from the terminal: {e}"))),
            }
            if split(&text).complete {
                return Ok(Typed::Text(text));
            }
            text.push('\n');
        }
    }

    /// Forgets what was typed behind the line that was read last.
    pub(super) fn forget_typed(&mut self) -> Result {
        let mut fresh = line_editor(&self.session)?;
        std::mem::swap(fresh.history_mut(), self.inner.history_mut());
        self.inner = fresh;
        Ok(())
    }

    /// Remembers what was typed. Returns why that was in vain, the first time it was.
    pub(super) fn remember(&mut self, text: &str) -> Option<String> {
        if plinth_sql::holds_secret(text) {
            return None;
        }
        let _ = self.inner.add_history_entry(text);
        let path = self.history.take()?;
        let kept = can_be_kept(&path)
            .and_then(|()| keep(&mut self.inner, &path).map_err(|e| Failure::new(format!("{}: {e}", path.display()))));
        match kept {
            Ok(()) => {
                self.history = Some(path);
                None
            }
            Err(e) => Some(format!("the history is not kept: {e}")),
        }
    }
}

fn line_editor(session: &Arc<Session>) -> Result<rustyline::Editor<Assistant, FileHistory>> {
    let terminal = std::io::stdout().is_terminal();
    let colours = terminal && sql::colours();
    let failed = |e: ReadlineError| Failure::new(format!("can't read from the terminal: {e}"));
    let config = Config::builder()
        .max_history_size(HISTORY)
        .map_err(failed)?
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        .color_mode(if colours { ColorMode::Enabled } else { ColorMode::Disabled })
        // Rows go to standard output; what is typed does not.
        .behavior(if terminal { Behavior::Stdio } else { Behavior::PreferTerm })
        .build();
    let mut inner = rustyline::Editor::with_config(config).map_err(failed)?;
    inner.set_auto_add_history(false);
    inner.set_helper(Some(Assistant::new(session)));
    Ok(inner)
}

fn keep(editor: &mut rustyline::Editor<Assistant, FileHistory>, path: &Path) -> Result<(), ReadlineError> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    // Other shells write to the same file.
    editor.append_history(path)
}

/// `PLINTH_HISTORY`, where an empty one means none; else a file in the user's folder for such things.
fn history_file() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if std::env::var_os("PLINTH_HISTORY").is_some() {
        return set("PLINTH_HISTORY");
    }
    let state = set("XDG_STATE_HOME").or_else(|| Some(std::env::home_dir()?.join(".local/state")))?;
    Some(state.join("plinth").join("history"))
}

/// A history in a file. To open anything else might take for ever.
fn can_be_kept(path: &Path) -> Result {
    plinth_io::regular::check(path).map_err(Failure::new)
}

/// Helps while the user types.
struct Assistant {
    catalogue: Catalogue,
    /// The lines of the statement before the one that is typed.
    before: String,
}

/// The session's names, looked up once a statement.
struct Catalogue {
    session: Arc<Session>,
    functions: Vec<String>,
    tables: Mutex<Option<Vec<String>>>,
    columns: Mutex<HashMap<String, Option<Vec<String>>>>,
}

impl Assistant {
    fn new(session: &Arc<Session>) -> Self {
        let state = session.context().state();
        let mut functions: Vec<String> = state.scalar_functions().keys().cloned().collect();
        functions.extend(state.aggregate_functions().keys().cloned());
        functions.extend(state.window_functions().keys().cloned());
        functions.extend(state.table_functions().keys().cloned());
        functions.sort();
        functions.dedup();
        let session = Arc::clone(session);
        let catalogue = Catalogue { session, functions, tables: Mutex::default(), columns: Mutex::default() };
        Self { catalogue, before: String::new() }
    }

    /// A line is about to be typed behind these.
    fn begin(&mut self, before: &str) {
        before.clone_into(&mut self.before);
        self.catalogue.tables = Mutex::default();
        self.catalogue.columns = Mutex::default();
    }
}

impl Names for Catalogue {
    fn tables(&self) -> Vec<String> {
        let Ok(mut tables) = self.tables.lock() else { return Vec::new() };
        tables.get_or_insert_with(|| self.session.table_names()).clone()
    }

    fn columns(&self, table: &str) -> Option<Vec<String>> {
        let mut columns = self.columns.lock().ok()?;
        columns.entry(table.to_owned()).or_insert_with(|| columns_of(&self.session, table)).clone()
    }

    fn functions(&self) -> Vec<String> {
        self.functions.clone()
    }
}

fn columns_of(session: &Session, table: &str) -> Option<Vec<String>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let table = runtime.block_on(session.context().table_provider(TableReference::bare(table))).ok()?;
    Some(table.schema().fields().iter().map(|field| field.name().clone()).collect())
}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(&self, line: &str, cursor: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (whole, before) = (format!("{}{line}", self.before), self.before.len());
        let (start, found) = complete(&whole, before + cursor, &self.catalogue);
        // A name that began on an earlier line stays as it is.
        Ok(start.checked_sub(before).map_or((cursor, Vec::new()), |start| (start, found)))
    }
}

impl Highlighter for Assistant {
    fn highlight<'l>(&self, line: &'l str, _cursor: usize) -> Cow<'l, str> {
        Cow::Owned(highlight(&format!("{}{line}", self.before), self.before.len()))
    }

    fn highlight_char(&self, _line: &str, _cursor: usize, kind: CmdKind) -> bool {
        // A character may open or close a quote, and change the colour of all that follows.
        kind != CmdKind::MoveCursor
    }
}

impl Validator for Assistant {}

impl Hinter for Assistant {
    type Hint = String;
}

impl Helper for Assistant {}
