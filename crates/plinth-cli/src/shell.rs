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

use plinth_sql::{Params, Session, SqlError, Statement, parse};
use unicode_width::UnicodeWidthStr;

use crate::cli::{Format, SqlArgs};
use crate::error::{Failure, Result};
use crate::output::Output;
use crate::profile::Profiling;
use crate::session::block_on;
use crate::sql::gather::Limits;
use crate::sql::grid::{Paint, cut};
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
    let session = Arc::new(Session::new(&options)?);
    let device = || args.io.device(args.db.as_deref()).map_err(Failure::new);
    let terminal = std::io::stdout().is_terminal();
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
        paint: Paint { on: std::io::stderr().is_terminal() && sql::colours() },
        session,
    };
    if let Some(path) = &args.output {
        shell.redirect(Some(path))?;
    }
    interrupt::listen_in_shell()?;
    let mut editor = Editor::new(&shell.session)?;
    let version = env!("CARGO_PKG_VERSION");
    screen::say(format_args!("Plinth {version}: statements end with a semicolon, \\? lists commands, \\q leaves"));
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
                    Err(failure) => shell.complain(&failure),
                }
            }
            Typed::Interrupted => {
                if interrupted {
                    screen::say("Ctrl-D or \\q leaves");
                }
                interrupted = true;
            }
            Typed::End => break,
        }
    }
    shell.redirect(None)
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
        let statements = match parse(sql) {
            Ok(statements) => statements,
            // Of several lines, and painted: every part of it is spelled out already.
            Err(SqlError::Message(_, message)) => return Err(Failure::Message(self.point(sql, &message))),
            Err(other) => return Err(other.into()),
        };
        for statement in statements {
            self.statement(statement)?;
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
            let rows = printing.await?.rows;
            Ok((rows, started.elapsed()))
        });
        drop(running);
        let profile = self.session.profiled(&profiler);
        let result = result.and_then(|done| self.printer.flush().map(|()| done));
        match result {
            Ok((rows, elapsed)) => {
                let done = rows.map_or("done".to_owned(), |rows| units::counted(rows, "row"));
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
            Command::Timing(to) => self.timing = say("timing", to.unwrap_or(!self.timing)),
            Command::Vertical(to) => self.vertical = say("one value a line", to.unwrap_or(!self.vertical)),
            Command::Pager(to) => self.pager = say("pager", to.unwrap_or(!self.pager)),
            Command::Output(path) => self.redirect(path.as_deref())?,
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
    fn redirect(&mut self, path: Option<&Path>) -> Result {
        let out = match path {
            Some(path) => {
                crate::output::check_name(path)?;
                Output::file(path)?
            }
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

    /// A parser's message with the line it is about, and a mark below the place.
    fn point(&self, sql: &str, message: &str) -> String {
        let Some((message, line, column)) = text::take_place(message) else { return message.to_owned() };
        let Some(line) = line.checked_sub(1).and_then(|at| sql.lines().nth(at)) else { return message };
        let width = terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0));
        let (line, mark) = point_at(line, column, width.saturating_sub(2));
        format!("{message}\n  {line}\n  {}", self.paint.style("31", &mark))
    }
}

/// A line cut to a width around a column (from 1), and what marks that column below it.
fn point_at(line: &str, column: usize, width: usize) -> (String, String) {
    let clean: Vec<char> = line.chars().map(|c| if screen::is_plain(c) { c } else { ' ' }).collect();
    let at = column.saturating_sub(1).min(clean.len());
    // As much before the place as leaves room for some of what follows.
    let mut from = at;
    let width_of = |from: usize, to: usize| clean.get(from..to).unwrap_or_default().iter().collect::<String>().width();
    while from > 0 && width_of(from - 1, at) <= width * 2 / 3 {
        from -= 1;
    }
    let shown: String = clean.get(from..).unwrap_or_default().iter().collect();
    (cut(&shown, width), format!("{}^", " ".repeat(width_of(from, at))))
}

fn say(what: &str, on: bool) -> bool {
    screen::say(format_args!("{what} {}", if on { "on" } else { "off" }));
    on
}

fn name_of(format: Format) -> String {
    use clap::ValueEnum;
    format.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_stands_below_its_place() {
        assert_eq!(point_at("SELEC 1", 1, 80), ("SELEC 1".to_owned(), "^".to_owned()));
        assert_eq!(point_at("a\t名 b", 5, 80), ("a 名 b".to_owned(), "     ^".to_owned()));
        assert_eq!(point_at("ab", 9, 80), ("ab".to_owned(), "  ^".to_owned()));
        let (line, mark) = point_at(&"x".repeat(500), 250, 30);
        assert_eq!((line.width(), mark.len()), (30, 21));
        for width in 0..4 {
            let (line, _) = point_at("名前", 2, width);
            assert!(line.width() <= width);
        }
    }
}
