//! `plinth lookup`: the values of a column that match, and the rows that hold them.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use datafusion::common::ScalarValue;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use plinth_encoding::expr::{Path as ColumnPath, Scalar};
use plinth_format::lookup::{Column, Matches};
use plinth_format::{Access, File};
use plinth_sql::SqlError;

use crate::cli::{Format, LookupArgs};
use crate::error::{Failure, Result};
use crate::session::block_on;
use crate::sql::{Output, Printer, default_format, look, refuse_binary};
use crate::{interrupt, objects, screen, units};

/// Rows printed at a time.
const BATCH: usize = 8192;

/// Runs the command.
pub(crate) fn run(args: &LookupArgs) -> Result {
    interrupt::listen()?;
    let file = open(&args.file)?;
    let column = file.column(path_of(&file, &args.column))?;
    let started = Instant::now();
    let matches = ask(args, &column)?;
    let name = args.column.as_str();
    let batches: Box<dyn Iterator<Item = Result<RecordBatch>> + Send> = match (args.rows, args.values) {
        (false, false) => {
            let counted = |count: u64| Arc::new(UInt64Array::from(vec![count])) as ArrayRef;
            let (values, rows) = (counted(matches.distinct()?), counted(matches.count()?));
            Box::new([batch(vec![("values", values), ("rows", rows)])].into_iter())
        }
        (false, true) => {
            let values = matches.values()?;
            let starts = (0..values.len().max(1)).step_by(BATCH);
            let name = name.to_owned();
            Box::new(starts.map(move |at| {
                let here = values.slice(at, BATCH.min(values.len() - at));
                batch(vec![(name.as_str(), here)])
            }))
        }
        (true, values) => rows(&file, &matches, values.then_some(name))?,
    };
    let terminal = std::io::stdout().is_terminal() && args.output.is_none();
    let format = default_format(args.format, args.output.as_deref());
    let out = match &args.output {
        Some(path) => Output::new_file(path, args.replace)?,
        None => Output::stdout(),
    };
    refuse_binary(format, &out)?;
    let mut printer = Printer::new(format, out);
    let look = look(terminal, "--format csv or json prints all");
    let printed = block_on(1, async { printer.print(stream(batches)?, &look, &|| {}).await });
    let printed = match printed {
        Err(Failure::Message(_)) if printer.output().is_broken() => return Err(Failure::BrokenPipe),
        other => other?.unwrap_or(0),
    };
    printer.finish()?;
    if terminal && format == Format::Table {
        let how = if matches.choose()? == Access::Postings { "by postings" } else { "by a scan" };
        screen::say(format_args!("{} {how} in {}", units::counted(printed, "row"), units::duration(started.elapsed())));
    }
    Ok(())
}

fn open(path: &Path) -> Result<File> {
    if path.is_dir() {
        let path = path.display();
        return Err(Failure::new(format!(
            "{path}: a folder; look up in one of its files, or ask all of them with sql"
        )));
    }
    objects::open(path)
}

/// A column by its name, or a field of a struct by names with dots between.
fn path_of(file: &File, name: &str) -> ColumnPath {
    match file.schema().index_of(name) {
        Ok(_) => ColumnPath::column(name),
        Err(_) => ColumnPath::new(name.split('.').map(str::to_owned)),
    }
}

fn ask(args: &LookupArgs, column: &Column) -> Result<Matches> {
    let dictionary = column.dictionary()?.access(args.access.into());
    Ok(match (&args.equals, &args.prefix, &args.matches) {
        (Some(text), ..) => {
            let wrong = || Failure::new(format!("column {}: {text:?} is no {}", args.column, column.data_type()));
            let value = ScalarValue::try_from_string(text.clone(), &column.data_type()).map_err(|_| wrong())?;
            match plinth_datafusion::to_plinth(&value, &column.data_type()).ok_or_else(wrong)? {
                // Both zeros, which files tell apart, are one number.
                Scalar::Float(0.0) => dictionary.range(Scalar::Float(-0.0)..=Scalar::Float(0.0))?,
                value => dictionary.equals(value)?,
            }
        }
        (_, Some(prefix), _) => dictionary.prefix(prefix)?,
        (.., Some(pattern)) => {
            let regex = regex::bytes::Regex::new(pattern).map_err(|e| {
                Failure::new(format!("--matches {pattern:?}: {}", plinth_sql::one_line(&e.to_string())))
            })?;
            dictionary.matches(move |value| regex.is_match(value))?
        }
        (None, None, None) => return Err(Failure::new("give --equals, --prefix or --matches")),
    })
}

/// The numbers of rows, with the values they hold if their column is named.
fn rows(
    file: &File,
    matches: &Matches,
    value: Option<&str>,
) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + Send>> {
    let mut numbers = matches.rows()?;
    let Some(name) = value.map(str::to_owned) else {
        let mut first = true;
        return Ok(Box::new(std::iter::from_fn(move || {
            let here: Result<Vec<u64>, _> = numbers.by_ref().take(BATCH).collect();
            let more = here.as_ref().map_or(true, |here| !here.is_empty());
            // Of no rows a batch, too: it has the names of the columns.
            (more || std::mem::take(&mut first)).then(|| {
                first = false;
                batch(vec![("row", Arc::new(UInt64Array::from(here?)) as ArrayRef)])
            })
        })));
    };
    let access = matches.choose()?;
    let scan = file.scan().project(vec![path_of(file, &name)]).filter(matches.predicate()).access(access).build()?;
    let empty = RecordBatch::new_empty(Arc::clone(scan.schema()));
    // The rows of a scan come in the order of their numbers.
    Ok(Box::new([Ok(empty)].into_iter().chain(scan).map(move |values| {
        let values = values?;
        let numbers: Vec<u64> = numbers.by_ref().take(values.num_rows()).collect::<Result<_, _>>()?;
        let columns = vec![
            ("row", Arc::new(UInt64Array::from(numbers)) as ArrayRef),
            (name.as_str(), Arc::clone(values.column(0))),
        ];
        batch(columns)
    })))
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> Result<RecordBatch> {
    Ok(RecordBatch::try_from_iter(columns)?)
}

/// Batches, of which there is at least one, as the rows of a statement.
fn stream(mut batches: Box<dyn Iterator<Item = Result<RecordBatch>> + Send>) -> Result<SendableRecordBatchStream> {
    let first = batches.next().ok_or_else(|| Failure::new("nothing was found, not even nothing"))??;
    let schema = first.schema();
    let all =
        [Ok(first)].into_iter().chain(batches).map(|batch| batch.map_err(|e| DataFusionError::from(SqlError::from(e))));
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter(all))))
}
