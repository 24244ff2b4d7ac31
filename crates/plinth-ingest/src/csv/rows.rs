//! Records of fields to arrays, column by column.
//!
//! Of the records of a window the first field of each is taken, then the second of each, and so on: what is to be done with a
//! value is decided once a column, and the loop over its values is short.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::types::{Date32Type, Float64Type, Int64Type};
use arrow_array::{ArrayRef, PrimitiveArray};
use arrow_buffer::NullBufferBuilder;
use arrow_schema::{DataType, SchemaRef};

use super::numbers::{Numbers, usual_integer};
use super::records::{Records, Row, Window};
use crate::stream::fault::Fault;
use crate::values::digits::usual_float;
use crate::values::number::{Why, float, whole_number};
use crate::values::scalar::taken;
use crate::values::scalar::{ColumnBuilder, column_builder, date32, fitted};
use crate::values::time;

/// Collects records.
pub(super) struct Rows {
    columns: Vec<Collected>,
    /// What stands for null, and how numbers are written.
    nulls: Vec<String>,
    /// Whether nothing else than nothing stands for null.
    plain: bool,
    numbers: Numbers,
    given: bool,
    rows: usize,
}

struct Collected {
    name: String,
    nullable: bool,
    number: bool,
    values: Values,
}

/// The values of a column. Those of types that are met often are taken straight from the bytes.
enum Values {
    Integers(Vec<i64>, NullBufferBuilder),
    Floats(Vec<f64>, NullBufferBuilder),
    Dates(Vec<i32>, NullBufferBuilder),
    Texts(StringViewBuilder),
    Others(Box<dyn ColumnBuilder>),
}

impl Rows {
    /// Or the name of the column whose type can't be read from text.
    pub(super) fn new(schema: &SchemaRef, given: bool, nulls: Vec<String>, numbers: Numbers) -> Result<Self, String> {
        let collected = |field: &arrow_schema::FieldRef| {
            let valid = || NullBufferBuilder::new(0);
            let values = match field.data_type() {
                DataType::Int64 => Values::Integers(Vec::new(), valid()),
                DataType::Float64 => Values::Floats(Vec::new(), valid()),
                DataType::Date32 => Values::Dates(Vec::new(), valid()),
                DataType::Utf8View => Values::Texts(StringViewBuilder::with_capacity(0)),
                other => Values::Others(column_builder(other, given).ok_or_else(|| field.name().clone())?),
            };
            let (name, nullable) = (field.name().clone(), field.is_nullable());
            Ok::<_, String>(Collected { name, nullable, number: field.data_type().is_numeric(), values })
        };
        let columns = schema.fields().iter().map(collected).collect::<Result<_, _>>()?;
        let plain = matches!(nulls.as_slice(), [null] if null.is_empty());
        Ok(Self { columns, nulls, plain, numbers, given, rows: 0 })
    }

    /// Rows since the last batch.
    pub(super) fn len(&self) -> usize {
        self.rows
    }

    /// Appends the rows of a window; `columns` says where each field goes. Gives the rows that something is wrong with, in order.
    pub(super) fn push(
        &mut self,
        records: &Records<'_>,
        window: &Window,
        columns: &[Option<usize>],
    ) -> Vec<(usize, Fault)> {
        let rows = window.rows.len();
        self.rows += rows;
        let mut faults = Vec::new();
        for (field, at) in columns.iter().enumerate() {
            let Some(column) = at.and_then(|at| self.columns.get_mut(at)) else { continue };
            let cells = Cells { records, window, field, nulls: &self.nulls, plain: self.plain, given: self.given };
            let numbers = if column.number { self.numbers } else { Numbers::default() };
            column.take(&cells, numbers, &mut faults);
        }
        for (at, column) in self.columns.iter_mut().enumerate() {
            if columns.contains(&Some(at)) {
                continue;
            }
            (0..rows).for_each(|_| column.values.push_null());
            if !column.nullable {
                faults.extend((0..rows).map(|row| (row, column.fault("missing, where a value is needed"))));
            }
        }
        // Of each row the first: the sort is a stable one.
        faults.sort_by_key(|(row, _)| *row);
        faults.dedup_by_key(|(row, _)| *row);
        faults
    }

    /// The columns of the rows since the last batch.
    pub(super) fn finish(&mut self) -> Vec<ArrayRef> {
        self.rows = 0;
        self.columns.iter_mut().map(|column| column.values.finish()).collect()
    }
}

/// A field of all rows of a window.
struct Cells<'a> {
    records: &'a Records<'a>,
    window: &'a Window,
    field: usize,
    nulls: &'a [String],
    plain: bool,
    given: bool,
}

impl Collected {
    #[cold]
    fn fault(&self, why: impl Into<Why>) -> Fault {
        Fault { column: vec![self.name.clone()], why: why.into(), misfit: true }
    }

    /// Takes a field of all rows.
    fn take(&mut self, cells: &Cells<'_>, numbers: Numbers, faults: &mut Vec<(usize, Fault)>) {
        let bytes = cells.records.bytes();
        let quick = cells.plain && numbers.is_plain();
        for (at, row) in cells.window.rows.iter().copied().enumerate() {
            let range = cells.window.field(row, cells.field);
            let taken = quick
                && match &mut self.values {
                    Values::Integers(values, valid) => keep(values, valid, usual_integer(bytes, &range)),
                    Values::Floats(values, valid) => {
                        let found = usual_float(bytes, range.start).filter(|(_, end)| *end == range.end);
                        keep(values, valid, found.map(|(value, _)| value))
                    }
                    Values::Dates(values, valid) => keep(values, valid, time::usual_date(bytes, &range)),
                    Values::Texts(values) => {
                        let plain = !range.is_empty() && !cells.records.is_quoted(&range);
                        plain && values.try_append_value(cells.records.spelled(range)).is_ok()
                    }
                    Values::Others(_) => false,
                };
            if !taken && let Err(why) = self.values.push(cells, row, numbers, self.nullable) {
                faults.push((at, self.fault(why)));
            }
        }
    }
}

/// Appends a value if there is one.
#[inline(always)]
fn keep<T>(values: &mut Vec<T>, valid: &mut NullBufferBuilder, value: Option<T>) -> bool {
    let Some(value) = value else { return false };
    values.push(value);
    valid.append_non_null();
    true
}

impl Values {
    /// Takes any field; a null where it is refused.
    #[inline(never)]
    fn push(&mut self, cells: &Cells<'_>, row: Row, numbers: Numbers, nullable: bool) -> Result<(), Why> {
        let field = cells.records.value(cells.window.field(row, cells.field));
        let null = !field.quoted && cells.nulls.iter().any(|null| *null == field.text);
        let mut plain = String::new();
        let text = match numbers.plain(&field.text, &mut plain) {
            Some(text) => Ok(text),
            None => Err(Why::from("not a number as --thousands and --decimal have them")),
        };
        let taken = if null { None } else { Some(text.and_then(|text| self.push_text(text, cells.given))) };
        match taken {
            Some(Ok(())) => Ok(()),
            // Where nothing is no spelling of the type, it is no value.
            Some(Err(why)) if !field.text.is_empty() => {
                self.push_null();
                Err(why)
            }
            _ => {
                self.push_null();
                if nullable { Ok(()) } else { Err("no value, where a value is needed".into()) }
            }
        }
    }

    fn push_text(&mut self, text: &str, given: bool) -> Result<(), Why> {
        let trimmed = if given { text.trim_ascii() } else { text };
        let valid = match self {
            Self::Integers(values, valid) => {
                values.push(whole_number::<Int64Type>(trimmed, given)?);
                valid
            }
            Self::Floats(values, valid) => {
                values.push(float(trimmed, given)?);
                valid
            }
            Self::Dates(values, valid) => {
                values.push(date32(trimmed)?);
                valid
            }
            Self::Texts(values) => {
                return values.try_append_value(text).map_err(|_| Cow::from("longer than text may be"));
            }
            Self::Others(column) => return column.push(text),
        };
        valid.append_non_null();
        Ok(())
    }

    fn push_null(&mut self) {
        match self {
            Self::Integers(values, valid) => {
                values.push(0);
                valid.append_null();
            }
            Self::Floats(values, valid) => {
                values.push(0.0);
                valid.append_null();
            }
            Self::Dates(values, valid) => {
                values.push(0);
                valid.append_null();
            }
            Self::Texts(values) => values.append_null(),
            Self::Others(column) => column.push_null(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Integers(values, valid) => Arc::new(PrimitiveArray::<Int64Type>::new(taken(values), valid.finish())),
            Self::Floats(values, valid) => Arc::new(PrimitiveArray::<Float64Type>::new(taken(values), valid.finish())),
            Self::Dates(values, valid) => Arc::new(PrimitiveArray::<Date32Type>::new(taken(values), valid.finish())),
            Self::Texts(values) => fitted(values.finish()),
            Self::Others(column) => column.finish(),
        }
    }
}
