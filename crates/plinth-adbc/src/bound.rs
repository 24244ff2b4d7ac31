//! Values that were bound to a statement, and data for a table.

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use datafusion::common::ScalarValue;
use plinth_sql::{Params, SqlError};

use crate::c_data::Reader;
use crate::error::{Failure, Result};

/// Rows of values that were bound.
#[derive(Debug)]
pub(crate) enum Bound {
    Rows(RecordBatch),
    Stream(Reader),
}

impl Bound {
    pub(crate) fn schema(&self) -> SchemaRef {
        match self {
            Self::Rows(batch) => batch.schema(),
            Self::Stream(reader) => reader.schema(),
        }
    }

    /// Whether there may be more than one row.
    pub(crate) fn is_many(&self) -> bool {
        !matches!(self, Self::Rows(batch) if batch.num_rows() < 2)
    }
}

/// Rows of values, one after the other.
pub(crate) struct Values {
    batch: Option<RecordBatch>,
    row: usize,
    reader: Option<Reader>,
}

impl Values {
    pub(crate) fn new(bound: Bound) -> Self {
        match bound {
            Bound::Rows(batch) => Self { batch: Some(batch), row: 0, reader: None },
            Bound::Stream(reader) => Self { batch: None, row: 0, reader: Some(reader) },
        }
    }

    /// The values of the next row.
    pub(crate) fn next(&mut self) -> Result<Option<Params>> {
        loop {
            if let Some(batch) = &self.batch
                && self.row < batch.num_rows()
            {
                self.row += 1;
                return Ok(Some(params_of(batch, self.row - 1)?));
            }
            let Some(reader) = &mut self.reader else { return Ok(None) };
            (self.batch, self.row) = (reader.next().map_err(Failure::data)?, 0);
            if self.batch.is_none() {
                return Ok(None);
            }
        }
    }
}

/// A row of values: by their places, and by the names of their columns.
///
/// # Errors
/// If a value is of a type that SQL has none for.
pub fn params_of(batch: &RecordBatch, row: usize) -> Result<Params, SqlError> {
    let mut values = Vec::new();
    for (at, (field, column)) in batch.schema().fields().iter().zip(batch.columns()).enumerate() {
        let value = ScalarValue::try_from_array(column, row)?;
        named(&mut values, at, field.name(), value);
    }
    Ok(Params::of_values(values))
}

fn named(values: &mut Vec<(String, ScalarValue)>, at: usize, name: &str, value: ScalarValue) {
    // A column named by a number would take another's place.
    if name.starts_with(|letter: char| letter.is_alphabetic() || letter == '_') {
        values.push((name.to_owned(), value.clone()));
    }
    values.push(((at + 1).to_string(), value));
}

/// Values of columns that have no row: NULL of their types.
///
/// # Errors
/// As [`params_of`].
pub fn nulls(schema: &Schema) -> Result<Params, SqlError> {
    let mut values = Vec::new();
    for (at, field) in schema.fields().iter().enumerate() {
        named(&mut values, at, field.name(), ScalarValue::try_from(field.data_type())?);
    }
    Ok(Params::of_values(values))
}
