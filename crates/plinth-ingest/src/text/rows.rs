//! Records of fields to arrays.

use arrow_array::ArrayRef;
use arrow_schema::SchemaRef;

use super::csv::Field;
use super::scalar::{Column, column};
use crate::json::Fault;

/// Collects records.
pub(super) struct Rows {
    columns: Vec<Collected>,
    rows: usize,
    /// Records ever.
    records: u64,
}

struct Collected {
    name: String,
    nullable: bool,
    values: Box<dyn Column>,
    /// The last record, counted from one, that had it.
    seen: u64,
}

impl Rows {
    /// Or the name of the column whose type can't be read from text.
    pub(super) fn new(schema: &SchemaRef, given: bool) -> Result<Self, String> {
        let column = |field: &arrow_schema::FieldRef| {
            let values = column(field.data_type(), given).ok_or_else(|| field.name().clone())?;
            Ok::<_, String>(Collected { name: field.name().clone(), nullable: field.is_nullable(), values, seen: 0 })
        };
        Ok(Self { columns: schema.fields().iter().map(column).collect::<Result<_, _>>()?, rows: 0, records: 0 })
    }

    /// Rows since the last batch.
    pub(super) fn len(&self) -> usize {
        self.rows
    }

    /// Appends a row of fields; `columns` says where each field goes.
    pub(super) fn push<'a>(
        &mut self,
        fields: impl Iterator<Item = Field<'a>>,
        columns: &[Option<usize>],
        nulls: &[String],
    ) -> Option<Fault> {
        self.rows += 1;
        self.records += 1;
        let mut first = None;
        let mut fault = |column: &Collected, why| {
            first.get_or_insert_with(|| Fault { column: vec![column.name.clone()], why, misfit: true });
        };
        for (field, at) in fields.zip(columns) {
            let Some(column) = at.and_then(|at| self.columns.get_mut(at)) else { continue };
            column.seen = self.records;
            let null = !field.quoted && nulls.iter().any(|null| null == field.text);
            match if null { None } else { Some(column.values.push(field.text)) } {
                Some(Ok(())) => {}
                // Where nothing is no spelling of the type, it is no value.
                Some(Err(why)) if !field.text.is_empty() => {
                    column.values.push_null();
                    fault(column, why);
                }
                _ => {
                    column.values.push_null();
                    if !column.nullable {
                        fault(column, "no value, where a value is needed".into());
                    }
                }
            }
        }
        for column in self.columns.iter_mut().filter(|column| column.seen != self.records) {
            column.values.push_null();
            if !column.nullable {
                fault(column, "missing, where a value is needed".into());
            }
        }
        first
    }

    /// The columns of the rows since the last batch.
    pub(super) fn finish(&mut self) -> Vec<ArrayRef> {
        self.rows = 0;
        self.columns.iter_mut().map(|column| column.values.finish()).collect()
    }
}
