//! Batches to CSV and NDJSON.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait, RecordBatch, StringViewArray};
use arrow_buffer::NullBuffer;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};

use super::output::Compressed;
use super::plain::{plain, unwritable};
use super::sink::BatchSink;
use super::{CsvStyle, TimeStyle};
use crate::error::{IngestError, Result};
use crate::values::json_string::json_string;

/// Bytes of text gathered before they are written.
const GATHER: usize = 1 << 20;

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
    /// A field that is not null: in quotes where it is empty or could be taken for something else.
    fn text(&self, to: &mut Vec<u8>, text: &str) {
        let bytes = text.as_bytes();
        let special = |b: &u8| *b == self.delimiter || *b == self.quote || matches!(b, b'"' | b'\n' | b'\r');
        if !bytes.is_empty() && !bytes.iter().any(special) && !text.starts_with('\u{feff}') && text != self.null {
            to.extend_from_slice(bytes);
            return;
        }
        to.push(self.quote);
        for byte in bytes {
            if *byte == self.quote || *byte == self.escape {
                to.push(self.escape);
            }
            to.push(*byte);
        }
        to.push(self.quote);
    }
}

/// Writes rows as text.
pub(super) struct TextSink {
    /// In the types that are written.
    schema: SchemaRef,
    output: Compressed,
    style: Style,
    times: TimeStyle,
    buffer: Vec<u8>,
}

impl TextSink {
    pub(super) fn new(output: Compressed, schema: &SchemaRef, style: Style, times: TimeStyle) -> Result<Self> {
        let mut buffer = Vec::new();
        if let Style::Csv(csv) = &style
            && csv.header
        {
            for (at, field) in schema.fields().iter().enumerate() {
                if at > 0 {
                    buffer.push(csv.delimiter);
                }
                csv.text(&mut buffer, field.name());
            }
            buffer.push(b'\n');
        }
        let field = |f: &FieldRef| Field::new(f.name(), written(f.data_type()), f.is_nullable());
        let schema = Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()));
        Ok(Self { schema, output, style, times, buffer })
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut columns = Vec::with_capacity(batch.num_columns());
        for (field, array) in self.schema.fields().iter().zip(batch.columns()) {
            let values = Values::new(array, &self.times).map_err(|e| unwritable(field.name(), &e))?;
            let mut key = Vec::new();
            json_string(&mut key, field.name());
            columns.push((field, key, values));
        }
        for row in 0..batch.num_rows() {
            match &self.style {
                Style::Csv(csv) => {
                    for (at, (field, _, values)) in columns.iter().enumerate() {
                        if at > 0 {
                            self.buffer.push(csv.delimiter);
                        }
                        values.csv(row, &mut self.buffer, csv).map_err(|e| unwritable(field.name(), &e))?;
                    }
                }
                Style::Ndjson => {
                    self.buffer.push(b'{');
                    for (at, (field, key, values)) in columns.iter().enumerate() {
                        if at > 0 {
                            self.buffer.push(b',');
                        }
                        self.buffer.extend_from_slice(key);
                        self.buffer.push(b':');
                        values.json(row, &mut self.buffer).map_err(|e| unwritable(field.name(), &e))?;
                    }
                    self.buffer.push(b'}');
                }
            }
            self.buffer.push(b'\n');
            if self.buffer.len() >= GATHER {
                self.output.write_all(&self.buffer)?;
                self.buffer.clear();
            }
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

    /// A scalar as text; `scratch` may hold it.
    fn text<'s>(&'s self, row: usize, scratch: &'s mut String) -> Result<&'s str, ArrowError> {
        match &self.kind {
            Kind::Text(texts) => Ok(texts.value(row)),
            Kind::Shown { formatter, .. } => {
                *scratch = formatter.value(row).try_to_string()?;
                match self.array.data_type() {
                    // A date, though Arrow shows it as a moment.
                    DataType::Date64 => Ok(scratch.strip_suffix("T00:00:00").unwrap_or(scratch)),
                    _ => Ok(scratch),
                }
            }
            _ => Err(ArrowError::SchemaError("nested values have no place here".to_owned())),
        }
    }

    fn csv(&self, row: usize, to: &mut Vec<u8>, csv: &Csv) -> Result<(), ArrowError> {
        match self.is_null(row) {
            true => to.extend_from_slice(csv.null.as_bytes()),
            false => csv.text(to, self.text(row, &mut String::new())?),
        }
        Ok(())
    }

    fn json(&self, row: usize, to: &mut Vec<u8>) -> Result<(), ArrowError> {
        if self.is_null(row) {
            to.extend_from_slice(b"null");
            return Ok(());
        }
        match &self.kind {
            Kind::Text(texts) => json_string(to, texts.value(row)),
            Kind::Shown { bare, .. } => {
                let mut scratch = String::new();
                let text = self.text(row, &mut scratch)?;
                // NaN and the infinities are no JSON.
                let special = text.trim_start_matches('-').starts_with(['N', 'i']);
                if *bare && !special { to.extend_from_slice(text.as_bytes()) } else { json_string(to, text) }
            }
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
                    json_string(to, keys.text(entry, &mut String::new())?);
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
