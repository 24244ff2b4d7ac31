//! Records to columns.

use std::ops::Range;

use arrow_array::ArrayRef;
use arrow_array::builder::StringViewBuilder;
use arrow_schema::{ArrowError, Field, Fields, SchemaRef};

use super::flaw::Flaw;
use super::members::Members;
use super::node::LEVELS;
use super::record::EXTRA;
use super::record::{Path, Record, Rules};
use super::template::Runs;
use super::tokenizer::{Kind, Tokenizer};
use crate::options::Unknown;
use crate::stream::fault::Fault;
use crate::stream::unknown::UnknownKeys;
use crate::values::types::width;

/// Values that the lists and maps of one record may hold at least, counted as [`width`] does. A list of empty objects is
/// short as text, however many fields each of them has as a struct.
const RECORD_VALUES: usize = 64 << 20;

/// Collects records.
pub(crate) struct Rows {
    members: Members,
    rules: Rules,
    /// The place of the column for what the other columns lack, and its values.
    extra: Option<(usize, StringViewBuilder)>,
    extra_text: String,
    rows: usize,
    /// Values that the lists and maps of a record may hold. Lists of plain values fit whatever records may be as text.
    most: usize,
    /// Values in the lists and maps of these rows.
    listed: usize,
    unknown: UnknownKeys,
}

impl Rows {
    /// For records of so many bytes. Or the name of the column whose type can't be read from text.
    pub(crate) fn new(schema: &SchemaRef, rules: Rules, record: usize) -> Result<Self, String> {
        // Even nulls of such a type would be too large.
        if let Some(field) = schema.fields().iter().find(|f| width(f.data_type()) > RECORD_VALUES) {
            return Err(field.name().clone());
        }
        let extra = match rules.unknown {
            Unknown::Extra => schema.fields().iter().position(|field| field.name() == EXTRA),
            _ => None,
        };
        let others = schema.fields().iter().enumerate().filter(|(at, _)| extra != Some(*at));
        let fields: Fields = others.map(|(_, field)| std::sync::Arc::clone(field)).collect();
        let members = Members::new(&fields, rules.given, LEVELS)?;
        let extra = extra.map(|at| (at, StringViewBuilder::new()));
        let most = record.max(RECORD_VALUES);
        let (extra_text, unknown) = (String::new(), UnknownKeys::default());
        Ok(Self { members, rules, extra, extra_text, rows: 0, most, listed: 0, unknown })
    }

    /// Rows since the last batch.
    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// Values in the lists and maps of the rows since the last batch.
    pub(crate) fn listed(&self) -> usize {
        self.listed
    }

    /// Takes a record. Appends a row unless the record is no object, whether it is sound or not.
    pub(crate) fn push(&mut self, tokens: &mut Tokenizer<'_>) -> Result<Option<Fault>, Flaw> {
        let object = tokens.kind()? == Kind::Object;
        if !object && !self.rules.bare {
            tokens.skip()?;
            return Ok(Some(Fault { column: Vec::new(), why: "not a JSON object".into(), misfit: false }));
        }
        self.rows += 1;
        let mut record = Record::new(self.rules, self.most, &mut self.unknown, &mut self.extra_text);
        let taken = match object {
            true => self.members.push(tokens, &mut record, Path::default()),
            false => self.members.push_only(tokens, &mut record),
        };
        self.listed += self.most - record.room();
        if let Some((_, extra)) = &mut self.extra {
            match record.extra() {
                "" => extra.append_null(),
                text if extra.try_append_value(text).is_ok() => {}
                _ => {
                    extra.append_null();
                    record.fault("its unknown keys are longer than text may be", false);
                }
            }
        }
        let fault = record.into_fault();
        if taken.is_err() {
            self.members.settle(self.rows);
        }
        taken.map(|_| fault)
    }

    /// Takes records that are spelled as the one that was taken last, where that can be told at a glance: at most `most`. Says how
    /// many, and where the next starts.
    pub(crate) fn push_run(
        &mut self,
        runs: &mut Runs,
        text: &[u8],
        record: Range<usize>,
        limit: usize,
        most: usize,
    ) -> (usize, usize) {
        if self.extra.is_some() {
            return (0, record.end);
        }
        let taken = runs.take(&mut self.members, text, record, limit, most);
        self.rows += taken.0;
        taken
    }

    /// Whether there was any record that could have columns.
    pub(crate) fn any(&self) -> bool {
        self.members.any()
    }

    /// Per column, whether any record had it. Records without a key have the column of those that are no objects: it is what
    /// inference makes of them.
    pub(crate) fn seen(&self) -> Vec<bool> {
        let keyless = self.rules.bare && self.members.any_empty();
        let mut seen: Vec<bool> = self.members.seen().map(|seen| seen || keyless).collect();
        if let Some((at, _)) = &self.extra {
            seen.insert((*at).min(seen.len()), true);
        }
        seen
    }

    /// The columns of the rows since the last batch.
    pub(crate) fn finish(&mut self) -> Result<Vec<ArrayRef>, ArrowError> {
        (self.rows, self.listed) = (0, 0);
        let mut columns = self.members.finish()?.1;
        if let Some((at, extra)) = &mut self.extra {
            columns.insert((*at).min(columns.len()), std::sync::Arc::new(extra.finish()));
        }
        Ok(columns)
    }

    /// The keys that the columns lack, met since this was asked last.
    pub(crate) fn take_unknown(&mut self) -> UnknownKeys {
        std::mem::take(&mut self.unknown)
    }
}

/// The column for keys that the others lack.
pub(crate) fn extra_field() -> Field {
    Field::new(EXTRA, arrow_schema::DataType::Utf8View, true)
}

#[cfg(test)]
mod tests;
