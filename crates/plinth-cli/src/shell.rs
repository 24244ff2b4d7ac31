//! `plinth sql` on a terminal: statements as they are typed, and commands that begin with a backslash.

mod command;
mod complete;
mod describe;
mod editor;
mod text;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use plinth_sql::{Params, Session, Statement, parse, statement_texts};

use crate::cli::{Format, SqlArgs};
use crate::error::{Failure, Result};
use crate::output::Output;
use crate::profile::Profiling;
use crate::session::block_on;
use crate::sql::Opened;
use crate::sql::caret;
use crate::sql::gather::Limits;
use crate::sql::grid::Paint;
use crate::sql::print::{Look, Printer};
use crate::{interrupt, screen, sql, units};
use command::Command;
use editor::{Editor, Typed};
use text::Piece;

/// Rows a pager gets: the first, and as many of the last.
const PAGER_ROWS: usize = 5_000;
/// Files that include files that include files.
const DEPTH: usize = 16;

/// Reads, runs and prints until the user leaves.
pub(crate) fn run(args: &SqlArgs) -> Result {
    let options = sql::options(args)?;
    if args.repeat > 1 || args.timings.is_some() {
        return Err(Failure::new("--repeat and --timings need statements: give them with -c or -f"));
    }
    let opened = Opened::new(&options, &args.files)?;
    let session = Arc::clone(&opened.session);
    let device = || args.io.device(args.db.as_deref()).map_err(Failure::new);
    let terminal = std::io::stdout().is_terminal();
    args.profile.check_place(sql::own_files(args))?;
    let mut shell = Shell {
        threads: options.threads,
        params: Params::new(args.param.iter().cloned()),
        profiling: args.profile.profiling(options.threads, device)?,
        format: args.format,
        file: None,
        printer: Printer::new(sql::default_format(args.format, None), Output::stdout()),
        timing: true,
        vertical: false,
        pager: terminal,
        terminal,
        // What is said goes to standard error.
        paint: sql::said(),
        session,
        folder: args.db.clone(),
    };
    if let Some(path) = &args.output {
        shell.redirect(Some(path), args.replace)?;
    }
    interrupt::listen_in_shell()?;
    let mut editor = Editor::new(&shell.session)?;
    let version = env!("CARGO_PKG_VERSION");
    screen::say(format_args!("Plinth {version}: statements end with a semicolon, \\? lists commands, \\q leaves"));
    match (&args.db, opened.names.is_empty()) {
        (_, false) => screen::say(format_args!("tables: {}", opened.names.join(", "))),
        (None, true) => screen::say("Tables are in memory; --db DIR keeps them in a folder, FROM 'path' reads a file."),
        (Some(_), true) => {}
    }
    let mut interrupted = false;
    loop {
        match editor.read()? {
            Typed::Text(text) => {
                interrupted = false;
                if text.trim().is_empty() {
                    continue;
                }
                if let Some(note) = editor.remember(text.trim_end()) {
                    screen::say(note);
                }
                match shell.take(&text, 0) {
                    Ok(Next::Go) => {}
                    Ok(Next::Leave) => break,
                    Err(Failure::BrokenPipe) => return Err(Failure::BrokenPipe),
                    Err(failure) => {
                        shell.complain(&failure);
                        if matches!(failure, Failure::Interrupted) {
                            editor.forget_typed()?;
                        }
                    }
                }
                // Others may write to its tables while nothing runs.
                if let Err(e) = shell.session.release() {
                    shell.complain(&e.into());
                }
            }
            Typed::Interrupted => {
                if interrupted {
                    screen::say("Ctrl-D or \\q leaves");
                }
                interrupted = true;
            }
            Typed::End { within } => {
                if within {
                    screen::say("the last statement has no semicolon: it was not run");
                }
                break;
            }
        }
    }
    if shell.session.in_transaction() {
        screen::say("the transaction was begun and not ended: nothing of it is kept");
    }
    shell.redirect(None, true)
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Go,
    Leave,
}

struct Shell {
    session: Arc<Session>,
    threads: usize,
    params: Params,
    profiling: Option<Profiling>,
    /// What the user asked for.
    format: Option<Format>,
    /// Where rows go, if not to the screen.
    file: Option<PathBuf>,
    printer: Printer,
    timing: bool,
    vertical: bool,
    pager: bool,
    terminal: bool,
    paint: Paint,
    /// The folder of its tables.
    folder: Option<PathBuf>,
}

impl Shell {
    /// Runs what was typed, or is in a file. What comes after a failure is not run.
    fn take(&mut self, text: &str, depth: usize) -> Result<Next> {
        for piece in text::split(text).pieces {
            let next = match piece {
                Piece::Command(command) => self.command(command, depth)?,
                Piece::Sql(sql) => self.statements(sql)?,
            };
            if next == Next::Leave {
                return Ok(next);
            }
        }
        Ok(Next::Go)
    }

    fn statements(&mut self, sql: &str) -> Result<Next> {
        // Of several lines, and painted: every part of it is spelled out already.
        let statements = parse(sql).map_err(|error| caret::unparsed(error, sql, self.paint))?;
        let texts = statement_texts(sql);
        let one_each = texts.len() == statements.len();
        for (at, statement) in statements.into_iter().enumerate() {
            let text = texts.get(at).copied().filter(|_| one_each).unwrap_or(sql);
            self.statement(statement).map_err(|failure| caret::pointed(failure, text, self.paint))?;
        }
        Ok(Next::Go)
    }

    fn statement(&mut self, statement: Statement) -> Result {
        sql::refuse_binary(self.format(), self.printer.output())?;
        let look = self.look();
        let started = Instant::now();
        let running = interrupt::statement();
        let profiler = sql::profiler(&self.session, &statement, self.profiling.as_ref());
        let printing = sql::print(&self.session, statement, &self.params, &profiler, &mut self.printer, &look);
        let result = block_on(self.threads, async {
            let printed = printing.await?;
            Ok((printed.done(), started.elapsed()))
        });
        drop(running);
        let profile = self.session.profiled(&profiler);
        let result = result.and_then(|done| self.printer.flush().map(|()| done));
        match result {
            Ok((done, elapsed)) => {
                let time = if self.timing { format!(" in {}", units::duration(elapsed)) } else { String::new() };
                screen::say_painted(&self.paint.style("2", &format!("{done}{time}")));
                match (&self.profiling, profile) {
                    (Some(profiling), Some(profile)) => profiling.show(profile),
                    _ => Ok(()),
                }
            }
            Err(_) if self.printer.output().is_broken() => Err(Failure::BrokenPipe),
            Err(failure) => {
                self.give_up_file();
                Err(failure)
            }
        }
    }

    /// A file that holds part of a result is none.
    fn give_up_file(&mut self) {
        if self.printer.is_partial()
            && let Some(path) = self.file.take()
        {
            self.printer = Printer::new(self.format(), Output::stdout());
            screen::say(format_args!("{} is not written; rows go to the screen again", path.display()));
        }
    }

    fn command(&mut self, text: &str, depth: usize) -> Result<Next> {
        match command::parse(text).map_err(Failure::new)? {
            Command::Quit => return Ok(Next::Leave),
            Command::Help => self.show(&command::help()),
            Command::Describe(name) => {
                let look = self.look();
                let session = Arc::clone(&self.session);
                let running = interrupt::statement();
                let lines = block_on(self.threads, async {
                    match &name {
                        Some(name) => describe::table(&session, name, &look).await,
                        None => describe::tables(&session, &look).await,
                    }
                });
                drop(running);
                self.show(&lines?);
            }
            Command::Databases => {
                let look = self.look();
                self.show(&describe::databases(&self.session, self.folder.as_deref(), &look));
            }
            Command::Functions(text) => self.show(&describe::functions(&self.session, text.as_deref(), &self.look())),
            Command::Schema(name) => {
                let session = Arc::clone(&self.session);
                let running = interrupt::statement();
                let lines = block_on(self.threads, async { describe::statements(&session, name.as_deref()).await });
                drop(running);
                self.show(&lines?);
            }
            Command::Timing(to) => self.timing = say("timing", to.unwrap_or(!self.timing)),
            Command::Vertical(to) => self.vertical = say("one value a line", to.unwrap_or(!self.vertical)),
            Command::Pager(to) => self.pager = say("pager", to.unwrap_or(!self.pager)),
            Command::Output(path) => self.redirect(path.as_deref(), true)?,
            Command::Include(path) => return self.include(&path, depth),
            Command::Format(None) => screen::say(format_args!("format {}", name_of(self.format()))),
            Command::Format(format) => {
                self.format = format;
                self.printer.set_format(self.format());
            }
            Command::Set(None) => {
                for (name, value) in self.params.iter() {
                    screen::say(format_args!("${name} = {value:?}"));
                }
            }
            Command::Set(Some((name, value))) => self.params.set(name, value),
            Command::Unset(name) => {
                if !self.params.unset(&name) {
                    return Err(Failure::new(format!("${name} has no value")));
                }
            }
        }
        Ok(Next::Go)
    }

    fn include(&mut self, path: &Path, depth: usize) -> Result<Next> {
        if depth >= DEPTH {
            return Err(Failure::new(format!("{}: files include each other too deeply", path.display())));
        }
        self.take(&sql::read_script(path)?, depth + 1)
    }

    /// Sends rows to a file, or back to the screen; the last file is complete then.
    fn redirect(&mut self, path: Option<&Path>, replace: bool) -> Result {
        let out = match path {
            Some(path) => Output::new_file(path, replace)?,
            None => Output::stdout(),
        };
        let last = self.file.take();
        self.file = path.map(Path::to_path_buf);
        let printer = Printer::new(self.format(), out);
        let printer = std::mem::replace(&mut self.printer, printer);
        printer.finish()?;
        if let Some(last) = last {
            screen::say(format_args!("wrote {}", last.display()));
        }
        Ok(())
    }

    fn format(&self) -> Format {
        sql::default_format(self.format, self.file.as_deref())
    }

    fn look(&self) -> Look {
        let terminal = self.terminal && self.file.is_none();
        let hint = if self.vertical { "\\f csv prints all" } else { "\\x shows all columns, \\f csv prints all" };
        let mut look = sql::look(terminal, hint);
        look.vertical = self.vertical;
        if terminal
            && self.pager
            && let Some(command) = sql::pager_command()
        {
            let height = terminal_size::terminal_size().map_or(24, |(_, height)| usize::from(height.0));
            look.pager = Some((command, height));
            look.limits = Limits { first: PAGER_ROWS, last: PAGER_ROWS };
        }
        look
    }

    /// Prints lines that are no result.
    fn show(&self, lines: &[String]) {
        // The same stream as all that is said, which may not be where rows go.
        for line in lines {
            if self.terminal {
                let _ = writeln!(std::io::stdout(), "{line}");
            } else {
                screen::say_painted(line);
            }
        }
    }

    fn complain(&self, failure: &Failure) {
        let message = match failure {
            Failure::Interrupted => "cancelled",
            Failure::Message(message) => message.as_str(),
            Failure::BrokenPipe => return,
        };
        screen::say_painted(&format!("{} {message}", self.paint.style("31", "error:")));
    }
}

fn say(what: &str, on: bool) -> bool {
    screen::say(format_args!("{what} {}", if on { "on" } else { "off" }));
    on
}

fn name_of(format: Format) -> String {
    use clap::ValueEnum;
    format.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}
