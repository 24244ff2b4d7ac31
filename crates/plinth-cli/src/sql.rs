//! `plinth sql`: statements in, rows out.

pub(crate) mod caret;
mod explain;
pub(crate) mod gather;
pub(crate) mod grid;
mod open;
mod pager;
pub(crate) mod print;
mod shown;
mod stdin;
mod text;

pub(crate) use open::Opened;
pub(crate) use pager::command as pager_command;

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use plinth_io::regular;
use plinth_profile::{Profile, Profiler, Stage};
use plinth_sql::{Params, Session, SessionOptions, Statement, asks_for_tree, parse, statement_texts};

use crate::cli::{Format, SqlArgs, Timings};
use crate::error::{Failure, Result};
pub(crate) use crate::output::Output;
use crate::profile::Profiling;
use crate::progress::QueryProgress;
use crate::session::{self, block_on};
use crate::{interrupt, screen, units};
use gather::Limits;
use grid::Paint;
use print::Look;
pub(crate) use print::Printer;
use stdin::Stdin;

/// Rows a table shows on a terminal that has no pager: half of them the first, half the last.
pub(crate) const SCREEN_ROWS: usize = 40;
/// Rows a table shows elsewhere: their widths must be known before the first is printed.
const TABLE_ROWS: usize = 10_000;

/// Bytes of statements that are read at once: they are in memory several times before the first of them runs.
const STATEMENTS: u64 = 1 << 30;

/// Whether a user types the statements.
pub(crate) fn is_interactive(args: &SqlArgs) -> bool {
    args.command.is_empty() && args.file.is_none() && std::io::stdin().is_terminal()
}

/// The session that was asked for.
pub(crate) fn options(args: &SqlArgs) -> Result<SessionOptions> {
    if let Some(db) = args.db.as_deref().filter(|db| plinth_io::objects::is_url(db)) {
        let db = db.display();
        return Err(Failure::new(format!(
            "--db {db}: tables that can be written to are folders of this machine; FROM '{db}' reads a file or a folder of \
             Plinth files there, and COPY ... TO '{db}' STORED AS PLINTH adds to it"
        )));
    }
    Ok(SessionOptions {
        db: args.db.clone(),
        io: args.io.options(args.db.as_deref()).map_err(Failure::new)?,
        access: args.access.into(),
        spread: args.cluster.spread()?,
        ..session::options(args.limits.memory(), args.limits.threads())
    })
}

/// Runs the command with statements that are given.
pub(crate) fn run(args: &SqlArgs) -> Result {
    args.profile.check_place(own_files(args))?;
    let options = options(args)?;
    let mut sources = sources(&read_statements(args)?)?;
    interrupt::listen()?;
    let terminal = std::io::stdout().is_terminal() && args.output.is_none();
    let format = default_format(args.format, args.output.as_deref());
    let out = match &args.output {
        Some(path) => Output::new_file(path, args.replace)?,
        None => Output::stdout(),
    };
    let device = || args.io.device(args.db.as_deref()).map_err(Failure::new);
    let batch = Batch {
        profiling: args.profile.profiling(options.threads, device)?,
        params: Params::new(args.param.iter().cloned()),
        repeat: args.repeat,
        summary: terminal && args.timings.is_none() && format == Format::Table,
        look: look(terminal, "--format csv or json prints all"),
    };
    refuse_binary(format, &out)?;
    let mut printer = Printer::new(format, out);
    let opened = Opened::new(&options, &args.files)?;
    let reads = (args.command.is_empty() && args.file.is_none()) || args.file.as_deref().is_some_and(is_stdin);
    let stdin = Stdin::for_statements(&opened.session, sources.iter_mut().map(|source| &mut source.statement), reads)?;
    let result = block_on(options.threads, batch.run(&opened.session, &sources, &mut printer));
    let (spent, profile) = match result {
        // The writer below wraps the error of a closed pipe until it can't be told apart.
        Err(Failure::Message(_)) if printer.output().is_broken() => return Err(Failure::BrokenPipe),
        Err(failure) => {
            return Err(match &stdin {
                Some(stdin) => stdin.named(failure),
                None => failure,
            });
        }
        Ok(done) => done,
    };
    printer.finish()?;
    if let (Some(profiling), Some(profile)) = (&batch.profiling, profile) {
        profiling.show(profile)?;
    }
    if let Some(Timings::Json) = args.timings {
        screen::say(timings(&spent));
    }
    Ok(())
}

/// The files that are named on the command line.
pub(crate) fn own_files(args: &SqlArgs) -> impl Iterator<Item = &Path> {
    args.files.iter().chain(&args.output).chain(&args.file).map(std::path::PathBuf::as_path)
}

/// A statement and the text that it was written as.
struct Source {
    statement: Statement,
    text: String,
}

/// The statements of a text.
fn sources(text: &str) -> Result<Vec<Source>> {
    let statements = parse(text).map_err(|error| caret::unparsed(error, text, said()))?;
    let texts = statement_texts(text);
    let one_each = texts.len() == statements.len();
    let text_of = |at: usize| texts.get(at).copied().filter(|_| one_each).unwrap_or(text).to_owned();
    Ok(statements.into_iter().enumerate().map(|(at, statement)| Source { statement, text: text_of(at) }).collect())
}

/// The colours of what is said.
pub(crate) fn said() -> Paint {
    Paint { on: std::io::stderr().is_terminal() && colours() }
}

/// Time that a run of a statement took.
struct Spent {
    all: Duration,
    /// Until its rows were about to come.
    planned: Duration,
}

/// Statements that run one after the other, without anybody there to answer.
struct Batch {
    params: Params,
    profiling: Option<Profiling>,
    repeat: u32,
    summary: bool,
    look: Look,
}

impl Batch {
    async fn run(
        &self,
        session: &Arc<Session>,
        sources: &[Source],
        printer: &mut Printer,
    ) -> Result<(Vec<Spent>, Option<Profile>)> {
        let (mut spent, mut profile) = (Vec::new(), None);
        let last = sources.len().saturating_sub(1);
        for (at, Source { statement, text }) in sources.iter().enumerate() {
            let runs = if at == last { self.repeat } else { 1 };
            for run in 1..=runs {
                let started = Instant::now();
                let profiler = profiler(session, statement, self.profiling.as_ref());
                let printed = if run == runs {
                    print(session, statement.clone(), &self.params, &profiler, printer, &self.look).await
                } else {
                    self.run_once(session, statement.clone(), &profiler).await
                };
                let printed = printed.map_err(|failure| caret::pointed(failure, text, said()))?;
                let planned = printed.planned;
                let all = started.elapsed();
                profile = session.profiled(&profiler);
                if at == last {
                    spent.push(Spent { all, planned });
                }
                if self.summary && run == runs {
                    screen::say(format_args!("{} in {}", printed.done(), units::duration(all)));
                }
            }
        }
        if session.in_transaction() {
            return Err(Failure::new(
                "the transaction was begun and not ended: nothing of it is kept; end it with COMMIT or ROLLBACK",
            ));
        }
        Ok((spent, profile))
    }

    /// Runs a statement whose rows are not printed.
    async fn run_once(&self, session: &Arc<Session>, statement: Statement, profiler: &Profiler) -> Result<Printed> {
        let started = Instant::now();
        let mut stream = session.start(statement, &self.params, profiler).await?;
        let planned = started.elapsed();
        let mut rows = 0;
        while let Some(batch) = stream.next().await {
            rows += batch?.num_rows() as u64;
        }
        Ok(Printed { rows: Some(rows), what: "", planned })
    }
}

/// What records a statement: what the command line asks for, or the session.
pub(crate) fn profiler(session: &Session, statement: &Statement, profiling: Option<&Profiling>) -> Profiler {
    profiling.map_or_else(|| session.profiler(statement), |profiling| profiling.start(statement.to_string()))
}

/// What printing a statement's rows came to.
pub(crate) struct Printed {
    /// How many rows came or were changed, if any could.
    rows: Option<u64>,
    /// What was done to them, but for printing.
    what: &'static str,
    /// Time until they were about to.
    planned: Duration,
}

impl Printed {
    /// What was done, in words.
    pub(crate) fn done(&self) -> String {
        match self.rows {
            Some(rows) if self.what.is_empty() => units::counted(rows, "row"),
            Some(rows) => format!("{} {}", units::counted(rows, "row"), self.what),
            None => "done".to_owned(),
        }
    }
}

/// Runs a statement and prints its rows; a bar shows how far it is if it takes long. Of one that changes rows none are printed.
pub(crate) async fn print(
    session: &Arc<Session>,
    statement: Statement,
    params: &Params,
    profiler: &Profiler,
    printer: &mut Printer,
    look: &Look,
) -> Result<Printed> {
    let started = Instant::now();
    let watched = Arc::clone(session);
    let progress = QueryProgress::new(move || watched.progress());
    let changes = changes(session, &statement);
    let tree = asks_for_tree(&statement).filter(|_| printer.is_table()).map(|(query, runs)| (query.clone(), runs));
    let result = async {
        if let Some((query, runs)) = tree {
            let explained = session.explain(query, params, runs, profiler).await?;
            progress.clear();
            explain::print(&explained, printer, look)?;
            return Ok(Printed { rows: None, what: "", planned: explained.planned });
        }
        let stream = session.start(statement, params, profiler).await?;
        let planned = started.elapsed();
        let (rows, what) = match changes {
            Some(what) => (count_of(stream).await?, what),
            None => (printer.print(stream, look, &|| progress.clear()).await?, ""),
        };
        Ok(Printed { rows, what, planned })
    };
    let result = profiler.around(Stage::Output, result).await;
    session.forget_progress();
    result
}

/// What a statement does to rows whose number is all that it answers. None if its rows are to be printed.
fn changes(session: &Session, statement: &Statement) -> Option<&'static str> {
    use datafusion::sql::sqlparser::ast::{self, Statement as Sql};
    let executed = session.executed(statement);
    let statement = match executed.as_ref().unwrap_or(statement) {
        Statement::CopyTo(_) => return Some("written"),
        Statement::Statement(statement) => statement.as_ref(),
        _ => return None,
    };
    match statement {
        Sql::Insert(ast::Insert { returning: None, .. }) | Sql::CreateTable(_) | Sql::Copy { .. } => Some("written"),
        Sql::Update(ast::Update { returning: None, .. }) | Sql::Merge(ast::Merge { output: None, .. }) => {
            Some("changed")
        }
        Sql::Delete(ast::Delete { returning: None, .. }) | Sql::Truncate(_) => Some("removed"),
        _ => None,
    }
}

/// The number that a statement answers for its rows.
async fn count_of(mut stream: SendableRecordBatchStream) -> Result<Option<u64>> {
    let mut count = None;
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        if let [column] = batch.columns()
            && let Some(counts) = column.as_primitive_opt::<UInt64Type>()
        {
            count = Some(count.unwrap_or(0) + counts.iter().flatten().sum::<u64>());
        }
    }
    Ok(count)
}

/// The format asked for, else what suits the place rows go to.
pub(crate) fn default_format(asked: Option<Format>, output: Option<&Path>) -> Format {
    let elsewhere = output.is_some() || !std::io::stdout().is_terminal();
    let default = if elsewhere { Format::Csv } else { Format::Table };
    asked.or_else(|| output.and_then(crate::output::format_of)).unwrap_or(default)
}

/// How tables look on standard output, if that is a terminal, and elsewhere.
pub(crate) fn look(terminal: bool, hint: &'static str) -> Look {
    let half = SCREEN_ROWS / 2;
    let pipe = Limits { first: TABLE_ROWS, last: 0 };
    Look {
        width: if terminal { terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)) } else { None },
        limits: if terminal { Limits { first: half, last: half } } else { pipe },
        paint: Paint { on: terminal && colours() },
        vertical: false,
        pager: None,
        hint,
    }
}

/// Whether terminals are to show colours.
pub(crate) fn colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Parquet and Arrow would fill a terminal with rubbish.
pub(crate) fn refuse_binary(format: Format, out: &Output) -> Result {
    let name = match format {
        Format::Parquet => "Parquet",
        Format::Arrow => "Arrow",
        _ => return Ok(()),
    };
    if out.is_stdout() && std::io::stdout().is_terminal() {
        return Err(Failure::new(format!(
            "{name} is nothing for a terminal: give a file with --output, in the shell with \\o"
        )));
    }
    Ok(())
}

fn timings(spent: &[Spent]) -> String {
    let seconds = |of: fn(&Spent) -> Duration| spent.iter().map(|spent| of(spent).as_secs_f64()).collect::<Vec<_>>();
    serde_json::json!({ "planning": seconds(|spent| spent.planned), "seconds": seconds(|spent| spent.all) }).to_string()
}

fn read_statements(args: &SqlArgs) -> Result<String> {
    let mut parts = args.command.clone();
    if let Some(path) = &args.file {
        parts.push(read_script(path)?);
    }
    if args.command.is_empty() && args.file.is_none() {
        parts.push(regular::text_of(std::io::stdin(), "standard input", STATEMENTS).map_err(Failure::new)?);
    }
    // A part may or may not end with its semicolon, and may end in a comment.
    Ok(parts.join("\n;\n"))
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("/dev/stdin")
}

/// The statements of a file, or of something that was opened for this process: `/dev/stdin`, `<(a command)`. Any other
/// pipe might never be written to.
pub(crate) fn read_script(path: &Path) -> Result<String> {
    let opened = ["/dev/fd", "/proc/self/fd"].iter().any(|folder| path.starts_with(folder));
    if opened || is_stdin(path) {
        let file = std::fs::File::open(path).map_err(|e| Failure::new(format!("{}: {e}", path.display())))?;
        return regular::text_of(file, path, STATEMENTS).map_err(Failure::new);
    }
    regular::read_text(path, STATEMENTS).map_err(Failure::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timings_are_one_object() {
        let spent = |all, planned| Spent { all: Duration::from_millis(all), planned: Duration::from_millis(planned) };
        let text = timings(&[spent(1_500, 500), spent(250, 125)]);
        assert_eq!(text, r#"{"planning":[0.5,0.125],"seconds":[1.5,0.25]}"#);
    }
}
