//! Rows in one of the formats.

use std::io::Write;
use std::sync::{Arc, Mutex};

use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use datafusion::arrow::json;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use plinth_core::sync::lock;
use plinth_ingest::FileFormat;
use plinth_ingest::export::{SinkOptions, to_writer};
use plinth_sql::with_names_of_their_own;

use super::gather::{Gather, Limits};
use super::grid::{Grid, Paint};
use super::pager;
use super::shown::shown;
use super::text::Lines;
use crate::cli::Format;
use crate::error::{Failure, Result};
use crate::output::Output;
use crate::{interrupt, screen, units};

/// How tables look.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    /// The width of the screen, if there is one to fit.
    pub(crate) width: Option<usize>,
    pub(crate) limits: Limits,
    pub(crate) paint: Paint,
    /// One value a line.
    pub(crate) vertical: bool,
    /// A pager, for what has more lines than the screen.
    pub(crate) pager: Option<(String, usize)>,
    /// How to see what is left out.
    pub(crate) hint: &'static str,
}

/// Prints the rows of statement after statement.
pub(crate) struct Printer {
    format: Format,
    out: Output,
    /// A result was written; a file of Parquet or Arrow holds no second.
    written: bool,
    /// Of the last result something was written, and not all.
    partial: bool,
}

/// Called before the first row is printed, to clear the way.
pub(crate) type Clear<'a> = &'a (dyn Fn() + Sync);

impl Printer {
    pub(crate) fn new(format: Format, out: Output) -> Self {
        Self { format, out, written: false, partial: false }
    }

    /// Prints in another format from now on.
    pub(crate) fn set_format(&mut self, format: Format) {
        self.format = format;
    }

    /// Whether people read what is printed.
    pub(crate) fn is_table(&self) -> bool {
        self.format == Format::Table
    }

    /// Prints a table that was made for this, and lines below it.
    pub(crate) fn show(&mut self, grid: &Grid, below: &[String], look: &Look) -> Result {
        self.out.begin()?;
        let (mut lines, _) = grid.table(look.width, look.paint);
        lines.extend(below.iter().map(|line| look.paint.style("2", line)));
        self.written = true;
        if let Some((command, height)) = &look.pager
            && self.out.is_stdout()
            && lines.len() + 2 > *height
        {
            self.out.flush()?;
            if pager::show(command, &lines) {
                return Ok(());
            }
        }
        for line in &lines {
            self.out.painted(line)?;
        }
        self.flush()
    }

    /// Where the rows go.
    pub(crate) fn output(&self) -> &Output {
        &self.out
    }

    /// Whether a part of a result was written, and the rest was not.
    pub(crate) fn is_partial(&self) -> bool {
        self.partial
    }

    /// Prints all rows as they come (a table: when it is known which are shown), and hands them over. Returns how many
    /// came, None for a statement that has none to give.
    ///
    /// # Errors
    /// If the statement fails, of which no row is printed later then; if rows were printed before, the error says so.
    pub(crate) async fn print(
        &mut self,
        stream: SendableRecordBatchStream,
        look: &Look,
        clear: Clear<'_>,
    ) -> Result<Option<u64>> {
        self.out.begin()?;
        let before = self.written;
        let result = self.print_rows(stream, look, clear).await;
        let result = result.and_then(|rows| self.flush().map(|()| rows));
        let Err(failure) = result else { return result };
        let begun = self.out.forget();
        self.written = before || begun;
        Err(match failure {
            Failure::Message(what) if begun => {
                Failure::Message(format!("{what}; the rows above are not the whole result"))
            }
            other => other,
        })
    }

    async fn print_rows(
        &mut self,
        mut stream: SendableRecordBatchStream,
        look: &Look,
        clear: Clear<'_>,
    ) -> Result<Option<u64>> {
        let schema = stream.schema();
        if schema.fields().is_empty() {
            // Statements without rows.
            while let Some(batch) = stream.next().await {
                batch?;
            }
            return Ok(None);
        }
        let to_stdout = self.out.is_stdout();
        let clear = || {
            if to_stdout {
                clear();
            }
        };
        let mut rows = 0;
        if self.format == Format::Table {
            let mut gather = Gather::new(look.limits);
            while !gather.is_full()
                && let Some(batch) = next(&mut stream).await?
            {
                gather.push(&batch);
            }
            drop(stream);
            clear();
            (self.written, self.partial) = (true, true);
            let rows = self.table(gather, &schema, look)?;
            self.partial = false;
            return Ok(Some(rows));
        }
        // Nothing is printed of what fails before its first row.
        let mut batch = next(&mut stream).await?;
        clear();
        match self.format {
            Format::Parquet if self.written => {
                return Err(Failure::new("a Parquet file holds one result; write the next to another"));
            }
            Format::Arrow if self.written => {
                return Err(Failure::new("a stream of Arrow's holds one result; write the next to another"));
            }
            _ => {}
        }
        (self.written, self.partial) = (true, true);
        match self.format {
            Format::Table => {}
            Format::Csv | Format::Tsv | Format::Markdown => {
                let lines = match self.format {
                    Format::Csv => Lines::Separated(','),
                    Format::Tsv => Lines::Separated('\t'),
                    _ => Lines::Markdown,
                };
                lines.head(&mut self.out, &schema)?;
                while let Some(some) = batch {
                    rows += some.num_rows() as u64;
                    lines.rows(&mut self.out, &shown(&some)?)?;
                    batch = next(&mut stream).await?;
                }
            }
            Format::Json => {
                let builder = json::WriterBuilder::new().with_explicit_nulls(true);
                let mut writer = builder.build::<_, json::writer::LineDelimited>(WholeLines::new(&mut self.out));
                while let Some(some) = batch {
                    rows += some.num_rows() as u64;
                    writer.write(&flatten(&shown(&with_names_of_their_own(&some)?)?)?)?;
                    batch = next(&mut stream).await?;
                }
                writer.finish()?;
            }
            Format::Parquet => {
                let held = Held::default();
                let schema = with_names_of_their_own(&RecordBatch::new_empty(Arc::clone(&schema)))?.schema();
                let mut sink = to_writer(held.clone(), &schema, FileFormat::Parquet, None, &SinkOptions::default())?;
                while let Some(some) = batch {
                    rows += some.num_rows() as u64;
                    sink.write(&with_names_of_their_own(&some)?)?;
                    self.out.write_all(&held.take())?;
                    batch = next(&mut stream).await?;
                }
                sink.finish()?;
                self.out.write_all(&held.take())?;
            }
            Format::Arrow => {
                let mut writer = StreamWriter::try_new(&mut self.out, &schema)?;
                while let Some(some) = batch {
                    rows += some.num_rows() as u64;
                    writer.write(&some)?;
                    batch = next(&mut stream).await?;
                }
                writer.finish()?;
            }
        }
        self.partial = false;
        Ok(Some(rows))
    }

    fn table(&mut self, gather: Gather, schema: &Arc<Schema>, look: &Look) -> Result<u64> {
        let rows = gather.rows();
        let pipe = look.limits.last == 0;
        let limit = if look.vertical { None } else { look.width };
        let mut grid = gather.grid(schema, limit)?;
        // Where nothing follows the gap a line on standard error tells of it.
        let gap = if pipe { grid.gap.take() } else { None };
        let (mut lines, columns) =
            if look.vertical { (grid.vertical(look.width, look.paint), 0) } else { grid.table(look.width, look.paint) };
        let mut note = String::new();
        if columns > 0 {
            note = format!("… {} more; {}", units::counted(columns as u64, "column"), look.hint);
        } else if grid.gap.is_some() {
            note = format!("… {}", look.hint);
        }
        if !note.is_empty() {
            let note = look.width.map_or(note.clone(), |width| super::grid::cut(&note, width));
            lines.push(look.paint.style("2", &note));
        }
        if let Some((command, height)) = &look.pager
            && self.out.is_stdout()
            && lines.len() + 2 > *height
        {
            self.out.flush()?;
            if pager::show(command, &lines) {
                return Ok(rows);
            }
        }
        for line in &lines {
            self.out.painted(line)?;
        }
        if let Some((shown, _)) = gap {
            self.out.flush()?;
            let shown_rows = units::counted(shown as u64, "row");
            screen::say(format_args!("only the first {shown_rows} are shown; --format csv or json prints all"));
            return Ok(shown as u64);
        }
        Ok(rows)
    }

    /// Hands over what was written so far.
    pub(crate) fn flush(&mut self) -> Result {
        Ok(self.out.flush()?)
    }

    /// Writes what is left.
    pub(crate) fn finish(self) -> Result {
        self.out.finish()
    }
}

/// What an export wrote and was not handed on yet.
#[derive(Clone, Default)]
struct Held(Arc<Mutex<Vec<u8>>>);

impl Held {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *lock(&self.0))
    }
}

impl Write for Held {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        lock(&self.0).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Hands on lines once they end, however they come.
struct WholeLines<'o> {
    out: &'o mut Output,
    begun: Vec<u8>,
}

impl<'o> WholeLines<'o> {
    fn new(out: &'o mut Output) -> Self {
        Self { out, begun: Vec::new() }
    }
}

impl Write for WholeLines<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.begun.extend_from_slice(bytes);
        if let Some(last) = self.begun.iter().rposition(|&byte| byte == b'\n') {
            let rest = self.begun.split_off(last + 1);
            self.out.write_all(&self.begun)?;
            self.begun = rest;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

/// The next rows, unless the user asked to stop: a result that comes faster than it is printed leaves no other moment.
async fn next(stream: &mut SendableRecordBatchStream) -> Result<Option<RecordBatch>> {
    interrupt::check()?;
    Ok(stream.next().await.transpose()?)
}

/// Types that the JSON writer knows.
fn is_json(data_type: &DataType) -> bool {
    match data_type {
        DataType::Union(..) => false,
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => {
                let text = |t: &DataType| matches!(t, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
                fields.first().is_some_and(|key| text(key.data_type()))
                    && fields.get(1).is_none_or(|value| is_json(value.data_type()))
            }
            _ => false,
        },
        DataType::Struct(fields) => fields.iter().all(|f| is_json(f.data_type())),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => is_json(item.data_type()),
        DataType::Dictionary(_, values) => is_json(values),
        _ => true,
    }
}

/// Columns that JSON has no form for, as the text a table would show.
fn flatten(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema();
    if schema.fields().iter().all(|f| is_json(f.data_type())) {
        return Ok(batch.clone());
    }
    let mut fields = Vec::with_capacity(schema.fields().len());
    let mut columns = Vec::with_capacity(schema.fields().len());
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        if is_json(field.data_type()) {
            fields.push(Arc::clone(field));
            columns.push(Arc::clone(column));
        } else {
            fields.push(Arc::new(Field::new(field.name(), DataType::Utf8, true)));
            columns.push(to_text(column)?);
        }
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

fn to_text(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let options = FormatOptions::new().with_null("null");
    let formatter = ArrayFormatter::try_new(column, &options)?;
    let nulls = column.logical_nulls();
    let texts: StringArray = (0..column.len())
        .map(|row| {
            let null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
            if null { Ok(None) } else { formatter.value(row).try_to_string().map(Some) }
        })
        .collect::<Result<_, _>>()?;
    Ok(Arc::new(texts))
}
