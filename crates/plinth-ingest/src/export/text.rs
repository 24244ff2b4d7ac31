//! Batches to CSV and NDJSON.

use std::fmt::Write;
use std::num::NonZero;
use std::sync::Arc;
use std::thread;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait, RecordBatch, StringViewArray};
use arrow_buffer::NullBuffer;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};

use super::output::Compressed;
use super::plain::{plain, unwritable};
use super::sink::BatchSink;
use super::{CsvStyle, SinkOptions, TimeStyle};
use crate::error::{IngestError, Result};
use crate::values::json_string::json_string;

/// Bytes of text gathered before they are written.
const GATHER: usize = 1 << 20;

/// What some programs begin files with, which readers drop.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// How Arrow ends a date that it shows as a moment.
const MIDNIGHT: &[u8] = b"T00:00:00";

/// Fewest values that are worth a thread.
const WORTH_A_THREAD: usize = 1 << 14;

/// How rows are written.
#[derive(Clone, Debug)]
pub(super) enum Style {
    Csv(Csv),
    Ndjson,
}

/// How fields of CSV are written.
#[derive(Clone, Debug)]
pub(super) struct Csv {
    delimiter: u8,
    header: bool,
    null: String,
    quote: u8,
    escape: u8,
}

impl Style {
    /// CSV with what separates its fields if nothing is said.
    pub(super) fn csv(style: &CsvStyle, delimiter: u8) -> Result<Self> {
        let CsvStyle { delimiter: given, header, ref null, quote, escape } = *style;
        let (delimiter, escape) = (given.unwrap_or(delimiter), escape.unwrap_or(quote));
        let refused = |what: &str| Err(IngestError::Option { what: what.to_owned() });
        if !delimiter.is_ascii() || delimiter == quote || matches!(delimiter, b'\n' | b'\r' | 0) {
            return refused("the delimiter has to be an ASCII character, not a quote or a line end");
        }
        if [quote, escape].iter().any(|byte| !byte.is_ascii() || matches!(byte, b'\n' | b'\r' | 0)) {
            return refused("the quote and what is before one have to be ASCII characters, no line ends");
        }
        if null.bytes().any(|byte| byte == delimiter || byte == quote || matches!(byte, b'\n' | b'\r')) {
            return refused("what stands for null can't have the delimiter, a quote or a line end in it");
        }
        Ok(Self::Csv(Csv { delimiter, header, null: null.clone(), quote, escape }))
    }
}

impl Csv {
    /// Puts a field that is not null, and was written from `start` on, in quotes where it is empty or could be taken for something else.
    fn quote(&self, to: &mut Vec<u8>, start: usize) {
        let field = to.get(start..).unwrap_or_default();
        // All bytes are looked at, for many at a time are faster than some one by one.
        let special = |b: &u8| (*b == self.delimiter) | (*b == self.quote) | matches!(b, b'"' | b'\n' | b'\r');
        let is_plain = !field.iter().fold(false, |found, byte| found | special(byte));
        if is_plain && !field.is_empty() && !field.starts_with(BYTE_ORDER_MARK) && field != self.null.as_bytes() {
            return;
        }
        let field = to.split_off(start);
        to.push(self.quote);
        for byte in field {
            if byte == self.quote || byte == self.escape {
                to.push(self.escape);
            }
            to.push(byte);
        }
        to.push(self.quote);
    }
}

/// Takes what a formatter writes.
struct Text<'a>(&'a mut Vec<u8>);

impl Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// Writes rows as text.
pub(super) struct TextSink {
    /// In the types that are written.
    schema: SchemaRef,
    output: Compressed,
    style: Style,
    times: TimeStyle,
    threads: usize,
    buffer: Vec<u8>,
}

impl TextSink {
    pub(super) fn new(output: Compressed, schema: &SchemaRef, style: Style, options: &SinkOptions) -> Result<Self> {
        let mut buffer = Vec::new();
        if let Style::Csv(csv) = &style
            && csv.header
        {
            for (at, field) in schema.fields().iter().enumerate() {
                if at > 0 {
                    buffer.push(csv.delimiter);
                }
                let start = buffer.len();
                buffer.extend_from_slice(field.name().as_bytes());
                csv.quote(&mut buffer, start);
            }
            buffer.push(b'\n');
        }
        let field = |f: &FieldRef| Field::new(f.name(), written(f.data_type()), f.is_nullable());
        let schema = Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()));
        let threads = options.threads.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZero::get);
        Ok(Self { schema, output, style, times: options.times.clone(), threads, buffer })
    }

    /// The text of rows, each part of them by a thread of its own.
    fn rows(&mut self, batch: &RecordBatch) -> Result<()> {
        let values = batch.num_rows().saturating_mul(batch.num_columns());
        let parts = (values / WORTH_A_THREAD).clamp(1, self.threads);
        let each = batch.num_rows().div_ceil(parts).max(1);
        let part = |at: usize| {
            let start = (at * each).min(batch.num_rows());
            batch.slice(start, each.min(batch.num_rows() - start))
        };
        let (first, others) = (part(0), (1..parts).map(part).collect::<Vec<_>>());
        let lines = Lines { schema: &self.schema, style: &self.style, times: &self.times };
        let buffer = &mut self.buffer;
        let others = thread::scope(|scope| {
            let others: Vec<_> = others
                .iter()
                .map(|part| {
                    scope.spawn(move || {
                        let mut text = Vec::new();
                        lines.write(part, &mut text).map(|()| text)
                    })
                })
                .collect();
            lines.write(&first, buffer)?;
            let stopped = || IngestError::Internal { what: "a thread that writes rows has stopped" };
            others.into_iter().map(|thread| thread.join().map_err(|_| stopped())?).collect::<Result<Vec<_>>>()
        })?;
        for text in others {
            self.buffer.extend_from_slice(&text);
        }
        if self.buffer.len() >= GATHER {
            self.output.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }
}

/// How the lines of rows are written.
#[derive(Clone, Copy)]
struct Lines<'a> {
    schema: &'a SchemaRef,
    style: &'a Style,
    times: &'a TimeStyle,
}

impl Lines<'_> {
    fn write(self, batch: &RecordBatch, to: &mut Vec<u8>) -> Result<()> {
        let mut columns = Vec::with_capacity(batch.num_columns());
        for (field, array) in self.schema.fields().iter().zip(batch.columns()) {
            let values = Values::new(array, self.times).map_err(|e| unwritable(field.name(), &e))?;
            let mut key = Vec::new();
            json_string(&mut key, field.name());
            columns.push((field, key, values));
        }
        for row in 0..batch.num_rows() {
            match self.style {
                Style::Csv(csv) => {
                    for (at, (field, _, values)) in columns.iter().enumerate() {
                        if at > 0 {
                            to.push(csv.delimiter);
                        }
                        values.csv(row, to, csv).map_err(|e| unwritable(field.name(), &e))?;
                    }
                }
                Style::Ndjson => {
                    to.push(b'{');
                    for (at, (field, key, values)) in columns.iter().enumerate() {
                        if at > 0 {
                            to.push(b',');
                        }
                        to.extend_from_slice(key);
                        to.push(b':');
                        values.json(row, to).map_err(|e| unwritable(field.name(), &e))?;
                    }
                    to.push(b'}');
                }
            }
            to.push(b'\n');
        }
        Ok(())
    }
}

impl BatchSink for TextSink {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let batch = plain(batch, &self.schema)?;
        self.rows(&batch)
    }

    fn finish(mut self: Box<Self>) -> Result<u64> {
        self.output.write_all(&self.buffer)?;
        self.output.complete()
    }
}

/// The type in which values are written: text and lists of one kind, instants in UTC, durations as numbers.
fn written(data_type: &DataType) -> DataType {
    let field = |f: &FieldRef| Arc::new(f.as_ref().clone().with_data_type(written(f.data_type())));
    match data_type {
        DataType::Timestamp(unit, Some(_)) => DataType::Timestamp(*unit, Some("+00:00".into())),
        DataType::Duration(_) => DataType::Int64,
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Dictionary(_, values) => written(values),
        DataType::RunEndEncoded(_, values) => written(values.data_type()),
        DataType::List(item) | DataType::ListView(item) => DataType::List(field(item)),
        DataType::LargeList(item) | DataType::LargeListView(item) => DataType::LargeList(field(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(field(item), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
        DataType::Map(entries, sorted) => DataType::Map(field(entries), *sorted),
        other => other.clone(),
    }
}

/// An array that is written value by value.
struct Values<'a> {
    array: &'a dyn Array,
    /// Which values are none: those of an array of the type null, too, which has no buffer that says so.
    nulls: Option<NullBuffer>,
    kind: Kind<'a>,
}

enum Kind<'a> {
    Text(&'a StringViewArray),
    /// `bare` in JSON are those that need no quotes.
    Shown {
        formatter: ArrayFormatter<'a>,
        bare: bool,
    },
    List(Box<Values<'a>>),
    /// With the keys as JSON has them.
    Struct(Vec<(Vec<u8>, Values<'a>)>),
    Map {
        keys: Box<Values<'a>>,
        values: Box<Values<'a>>,
    },
}

impl<'a> Values<'a> {
    fn new(array: &'a dyn Array, times: &'a TimeStyle) -> Result<Self, ArrowError> {
        let inner = |array: &'a ArrayRef| Ok::<_, ArrowError>(Box::new(Self::new(array.as_ref(), times)?));
        let kind = match array.data_type() {
            DataType::Utf8View => Kind::Text(array.as_string_view()),
            DataType::List(_) => Kind::List(inner(array.as_list::<i32>().values())?),
            DataType::LargeList(_) => Kind::List(inner(array.as_list::<i64>().values())?),
            DataType::FixedSizeList(..) => Kind::List(inner(array.as_fixed_size_list().values())?),
            DataType::Struct(fields) => {
                let members = fields.iter().zip(array.as_struct().columns()).map(|(field, column)| {
                    let mut key = Vec::new();
                    json_string(&mut key, field.name());
                    Ok((key, Self::new(column.as_ref(), times)?))
                });
                Kind::Struct(members.collect::<Result<_, ArrowError>>()?)
            }
            DataType::Map(..) => {
                let map = array.as_map();
                Kind::Map { keys: inner(map.keys())?, values: inner(map.values())? }
            }
            data_type => {
                let bare = data_type.is_numeric() || matches!(data_type, DataType::Boolean);
                let options = FormatOptions::new()
                    .with_display_error(false)
                    .with_date_format(times.date.as_deref())
                    .with_time_format(times.time.as_deref())
                    .with_timestamp_format(times.timestamp.as_deref())
                    .with_timestamp_tz_format(times.timestamp.as_deref());
                Kind::Shown { formatter: ArrayFormatter::try_new(array, &options)?, bare }
            }
        };
        Ok(Self { array, nulls: array.logical_nulls(), kind })
    }

    fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Writes a scalar that is not null.
    fn text(&self, row: usize, to: &mut Vec<u8>) -> Result<(), ArrowError> {
        match &self.kind {
            Kind::Text(texts) => to.extend_from_slice(texts.value(row).as_bytes()),
            Kind::Shown { formatter, .. } => {
                formatter.value(row).write(&mut Text(to))?;
                // A date, though Arrow shows it as a moment.
                if *self.array.data_type() == DataType::Date64 && to.ends_with(MIDNIGHT) {
                    to.truncate(to.len() - MIDNIGHT.len());
                }
            }
            _ => return Err(ArrowError::SchemaError("nested values have no place here".to_owned())),
        }
        Ok(())
    }

    fn csv(&self, row: usize, to: &mut Vec<u8>, csv: &Csv) -> Result<(), ArrowError> {
        if self.is_null(row) {
            to.extend_from_slice(csv.null.as_bytes());
            return Ok(());
        }
        let start = to.len();
        self.text(row, to)?;
        csv.quote(to, start);
        Ok(())
    }

    /// Writes a scalar that is not null as JSON: as a string, or a number that needs no quotes.
    fn json_scalar(&self, row: usize, to: &mut Vec<u8>, bare: bool) -> Result<(), ArrowError> {
        if let Kind::Text(texts) = &self.kind {
            json_string(to, texts.value(row));
            return Ok(());
        }
        let start = to.len();
        self.text(row, to)?;
        let text = to.get(start..).unwrap_or_default();
        // NaN and the infinities are no JSON.
        let is_number = !matches!(text.strip_prefix(b"-").unwrap_or(text), [b'N' | b'i', ..]);
        if !bare || !is_number {
            let text = to.split_off(start);
            json_string(to, &String::from_utf8_lossy(&text));
        }
        Ok(())
    }

    fn json(&self, row: usize, to: &mut Vec<u8>) -> Result<(), ArrowError> {
        if self.is_null(row) {
            to.extend_from_slice(b"null");
            return Ok(());
        }
        match &self.kind {
            Kind::Text(_) => self.json_scalar(row, to, false)?,
            Kind::Shown { bare, .. } => self.json_scalar(row, to, *bare)?,
            Kind::List(items) => {
                to.push(b'[');
                for (at, item) in range(self.array, row)?.enumerate() {
                    if at > 0 {
                        to.push(b',');
                    }
                    items.json(item, to)?;
                }
                to.push(b']');
            }
            Kind::Struct(members) => {
                to.push(b'{');
                for (at, (key, values)) in members.iter().enumerate() {
                    if at > 0 {
                        to.push(b',');
                    }
                    to.extend_from_slice(key);
                    to.push(b':');
                    values.json(row, to)?;
                }
                to.push(b'}');
            }
            Kind::Map { keys, values } => {
                to.push(b'{');
                for (at, entry) in range(self.array, row)?.enumerate() {
                    if at > 0 {
                        to.push(b',');
                    }
                    keys.json_scalar(entry, to, false)?;
                    to.push(b':');
                    values.json(entry, to)?;
                }
                to.push(b'}');
            }
        }
        Ok(())
    }
}

/// Where the elements of a list or map are among all elements.
fn range(array: &dyn Array, row: usize) -> Result<std::ops::Range<usize>, ArrowError> {
    fn bounds<O: OffsetSizeTrait>(offsets: &[O], row: usize) -> Option<std::ops::Range<usize>> {
        Some(offsets.get(row)?.as_usize()..offsets.get(row + 1)?.as_usize())
    }
    let found = match array.data_type() {
        DataType::List(_) => bounds(array.as_list::<i32>().offsets(), row),
        DataType::Map(..) => bounds(array.as_map().offsets(), row),
        DataType::LargeList(_) => bounds(array.as_list::<i64>().offsets(), row),
        DataType::FixedSizeList(_, size) => usize::try_from(*size).ok().and_then(|size| {
            let start = usize::try_from(array.as_fixed_size_list().value_offset(row)).ok()?;
            Some(start..start + size)
        }),
        _ => None,
    };
    found.ok_or_else(|| ArrowError::SchemaError(format!("internal error: no elements of {}", array.data_type())))
}
