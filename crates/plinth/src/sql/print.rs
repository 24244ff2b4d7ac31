//! Rows to standard output.

use std::cell::Cell;
use std::io::{BufWriter, Stdout, Write};
use std::rc::Rc;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use datafusion::arrow::csv;
use datafusion::arrow::json;
use datafusion::arrow::util::pretty::pretty_format_batches_with_options;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;

use crate::cli::Format;
use crate::error::Result;
use crate::units;

/// Rows an aligned table shows: their widths must be known before the first is printed.
const TABLE_ROWS: usize = 10_000;

/// Prints the rows of statement after statement.
pub(crate) struct Printer {
    format: Format,
    out: BufWriter<Pipe>,
    broken: Rc<Cell<bool>>,
}

/// Standard output that remembers that nobody reads it: the writers above turn its errors into text.
struct Pipe {
    out: Stdout,
    broken: Rc<Cell<bool>>,
}

impl Pipe {
    fn note<T>(&self, result: std::io::Result<T>) -> std::io::Result<T> {
        if result.as_ref().is_err_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe) {
            self.broken.set(true);
        }
        result
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let result = self.out.write(bytes);
        self.note(result)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let result = self.out.flush();
        self.note(result)
    }
}

impl Printer {
    pub(crate) fn new(format: Format) -> Self {
        let broken = Rc::new(Cell::new(false));
        let pipe = Pipe { out: std::io::stdout(), broken: Rc::clone(&broken) };
        Self { format, out: BufWriter::with_capacity(1 << 16, pipe), broken }
    }

    /// Whether whoever read the output went away.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.get()
    }

    /// Prints all rows as they come (a table: when they are all there). Returns how many came.
    pub(crate) async fn print(&mut self, mut stream: SendableRecordBatchStream) -> Result<u64> {
        let schema = stream.schema();
        if schema.fields().is_empty() {
            // Statements without rows.
            while let Some(batch) = stream.next().await {
                batch?;
            }
            return Ok(0);
        }
        match self.format {
            Format::Table => self.print_table(stream).await,
            Format::Csv => {
                let mut rows = 0;
                let mut writer = csv::WriterBuilder::new().with_header(true).build(&mut self.out);
                // The header is due even where no row follows.
                writer.write(&flatten(&RecordBatch::new_empty(schema), is_flat)?)?;
                while let Some(batch) = stream.next().await {
                    let batch = batch?;
                    rows += batch.num_rows() as u64;
                    writer.write(&flatten(&batch, is_flat)?)?;
                }
                Ok(rows)
            }
            Format::Json => {
                let mut rows = 0;
                let builder = json::WriterBuilder::new().with_explicit_nulls(true);
                let mut writer = builder.build::<_, json::writer::LineDelimited>(&mut self.out);
                while let Some(batch) = stream.next().await {
                    let batch = batch?;
                    rows += batch.num_rows() as u64;
                    writer.write(&flatten(&batch, is_json)?)?;
                }
                writer.finish()?;
                Ok(rows)
            }
        }
    }

    async fn print_table(&mut self, mut stream: SendableRecordBatchStream) -> Result<u64> {
        let schema = stream.schema();
        let mut batches = vec![RecordBatch::new_empty(schema)];
        let mut rows = 0;
        let mut more = false;
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            let room = TABLE_ROWS - rows;
            more = batch.num_rows() > room;
            let batch = batch.slice(0, batch.num_rows().min(room));
            rows += batch.num_rows();
            batches.push(batch);
            if more {
                break;
            }
        }
        let options = FormatOptions::new().with_null("NULL").with_display_error(true);
        writeln!(self.out, "{}", pretty_format_batches_with_options(&batches, &options)?)?;
        if more {
            self.out.flush()?;
            eprintln!(
                "only the first {} rows are shown; --format csv or json prints all",
                units::count(TABLE_ROWS as u64)
            );
        }
        Ok(rows as u64)
    }

    /// Writes what is left.
    pub(crate) fn finish(&mut self) -> Result {
        Ok(self.out.flush()?)
    }
}

/// Types that CSV can hold in a cell.
fn is_flat(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_flat(values),
        DataType::Union(..) | DataType::RunEndEncoded(..) => false,
        other => !other.is_nested(),
    }
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

/// Columns that the format has no form for, as the text a table would show.
fn flatten(batch: &RecordBatch, fits: fn(&DataType) -> bool) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema();
    if schema.fields().iter().all(|f| fits(f.data_type())) {
        return Ok(batch.clone());
    }
    let mut fields = Vec::with_capacity(schema.fields().len());
    let mut columns = Vec::with_capacity(schema.fields().len());
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        if fits(field.data_type()) {
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
