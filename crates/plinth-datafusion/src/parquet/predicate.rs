//! A predicate on one column: on values, and on indices once the dictionary was asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use arrow_array::{Array, ArrayRef, BooleanArray, UInt32Array, new_null_array};
use arrow_buffer::BooleanBuffer;
use arrow_select::filter::filter;
use plinth_encoding::{Column, DictionaryAnswers, Mask, Physical, ValueSet, Values, evaluate_column};
use plinth_format::scan::source::{ColumnPredicate, Ran};
use plinth_format::{FormatError, Result};

use super::arrays::{column, gather, physical};
use super::resolved::Resolved;

/// What a scan remembers of a predicate: its number, by which its answers are found.
#[derive(Debug)]
pub(crate) struct LeafState {
    pub(super) id: usize,
}

impl Default for LeafState {
    fn default() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        Self { id: NEXT.fetch_add(1, Relaxed) }
    }
}

/// What a predicate answered for the values of a chunk's dictionary, or how far it is from being worth asking.
#[derive(Debug, Default)]
pub(super) struct ChunkAnswers {
    /// Rows that were answered one by one.
    rows: usize,
    known: Option<DictionaryAnswers<Members>>,
    /// It fails for some value, so rows have to be asked.
    failed: bool,
}

/// Some indices of a dictionary.
#[derive(Debug)]
enum Members {
    /// Those in a range, or those outside of it.
    Range(ValueSet),
    /// By index: bytes are looked up faster than bits.
    Table(Vec<bool>),
}

/// Rows of a page of indices.
pub(super) struct Asked<'a> {
    pub(super) indices: &'a UInt32Array,
    pub(super) dictionary: &'a ArrayRef,
    pub(super) selected: &'a BooleanBuffer,
}

/// A predicate and the column that it is about.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) predicate: &'a ColumnPredicate,
    pub(super) column: &'a Resolved,
}

impl Question<'_> {
    /// Where it runs when values are asked.
    pub(super) fn ran(&self) -> Ran {
        if matches!(self.predicate, ColumnPredicate::Function(_)) { Ran::Residual } else { Ran::Decoded }
    }

    fn wrong(&self, what: impl std::fmt::Display) -> FormatError {
        FormatError::InvalidArgument(format!("column {:?}: {what}", self.column.path.to_string()))
    }

    /// The answers for rows whose values are there; for those outside `selected` any.
    pub(super) fn on_values(&self, values: &ArrayRef, selected: &BooleanBuffer) -> Result<Mask> {
        let answers = match self.predicate {
            ColumnPredicate::IsNull => return Ok(Mask { is_true: nulls_of(values), is_null: None }),
            ColumnPredicate::In(set) => {
                let found = physical(&self.column.data_type).zip(column(values));
                let (physical, column) =
                    found.ok_or_else(|| self.wrong(format!("unexpected {}", values.data_type())))?;
                return evaluate_column(physical, &column, set).map_err(|e| self.wrong(e));
            }
            ColumnPredicate::Function(function) => {
                // All rows at once when most are selected.
                if selected.count_set_bits() * 4 > selected.len()
                    && let Ok(answers) = function.call(std::slice::from_ref(values), values.len())
                {
                    return Ok(Mask::of(&answers));
                }
                let values = filter(values, &BooleanArray::new(selected.clone(), None)).map_err(|e| self.wrong(e))?;
                function.call(&[Arc::clone(&values)], values.len()).map_err(FormatError::Function)?
            }
        };
        Ok(Mask::of(&answers).spread(selected))
    }

    /// The answers for rows of which only the indices are there; `None` if their values are to be asked.
    pub(super) fn on_indices(&self, asked: &Asked<'_>, answers: &mut ChunkAnswers) -> Result<Option<Mask>> {
        let Asked { indices, dictionary, selected } = *asked;
        if matches!(self.predicate, ColumnPredicate::IsNull) {
            let is_true =
                indices.nulls().map_or_else(|| BooleanBuffer::new_unset(indices.len()), |nulls| !nulls.inner());
            return Ok(Some(Mask { is_true, is_null: None }));
        }
        if answers.known.is_none() && !answers.failed {
            // A large dictionary is asked once so many rows were that it would have paid.
            let rows = selected.count_set_bits();
            let is_cheap = matches!(self.predicate, ColumnPredicate::In(_));
            if !is_cheap && dictionary.len() > 2 * (answers.rows + rows) {
                answers.rows += rows;
                return Ok(None);
            }
            answers.known = self.on_dictionary(dictionary)?;
            answers.failed = answers.known.is_none();
        }
        answers.known.as_ref().map(|known| of_indices(known, indices)).transpose()
    }

    /// The answers for the selected rows by their values.
    pub(super) fn on_some_values(&self, asked: &Asked<'_>) -> Result<Mask> {
        let selection = BooleanArray::new(asked.selected.clone(), None);
        let indices = filter(asked.indices, &selection).map_err(|e| self.wrong(e))?;
        let values = gather(asked.dictionary, &indices).map_err(|e| self.wrong(e))?;
        let mask = self.on_values(&values, &BooleanBuffer::new_set(values.len()))?;
        Ok(mask.spread(asked.selected))
    }

    /// The answers for the values of a dictionary; `None` if there is none for one of them.
    fn on_dictionary(&self, dictionary: &ArrayRef) -> Result<Option<DictionaryAnswers<Members>>> {
        let of_null = match self.predicate {
            ColumnPredicate::Function(function) => match function.of_null(new_null_array(&self.column.data_type, 1)) {
                Ok(answer) => answer,
                Err(_) => return Ok(None),
            },
            _ => None,
        };
        match self.on_values(dictionary, &BooleanBuffer::new_set(dictionary.len())) {
            Ok(values) => Ok(Some(DictionaryAnswers::new(values, of_null, |codes| Members::new(&codes)))),
            Err(FormatError::Function(_)) => Ok(None),
            Err(other) => Err(other),
        }
    }
}

/// The answers for rows by their indices.
fn of_indices(known: &DictionaryAnswers<Members>, indices: &UInt32Array) -> Result<Mask> {
    let is_true = known.is_true.of(indices)?;
    let unknown = known.is_null.as_ref().map(|unknown| unknown.of(indices)).transpose()?;
    let Some(valid) = indices.nulls().filter(|nulls| nulls.null_count() > 0).map(|nulls| nulls.inner()) else {
        return Ok(known.merge(Mask { is_true, is_null: None }, unknown));
    };
    let rows = Mask { is_true: &is_true & valid, is_null: Some(!valid) };
    Ok(known.merge(rows, unknown.map(|unknown| &unknown & valid)))
}

impl Members {
    fn new(bits: &BooleanBuffer) -> Self {
        let is_range = |set: &ValueSet| matches!(set, ValueSet::IntRange { .. });
        let (inside, outside) = (ValueSet::of_codes(bits.clone()), ValueSet::of_codes(!bits));
        match (is_range(&inside), is_range(&outside)) {
            (true, _) => Self::Range(inside),
            (_, true) => Self::Range(ValueSet::Not(Box::new(outside))),
            _ => Self::Table(bits.iter().collect()),
        }
    }

    fn of(&self, indices: &UInt32Array) -> Result<BooleanBuffer> {
        match self {
            Self::Range(set) => {
                let values = Values::Fixed(indices.values().inner().clone());
                let column = Column { len: indices.len(), values, nulls: None };
                let mask = evaluate_column(Physical::CODES, &column, set);
                Ok(mask.map_err(|e| FormatError::InvalidArgument(e.to_string()))?.is_true)
            }
            Self::Table(table) => {
                let indices = indices.values();
                let is_member = |index: u32| table.get(index as usize).copied().unwrap_or(false);
                Ok(BooleanBuffer::collect_bool(indices.len(), |row| indices.get(row).is_some_and(|&i| is_member(i))))
            }
        }
    }
}

fn nulls_of(values: &ArrayRef) -> BooleanBuffer {
    match values.logical_nulls() {
        Some(nulls) => !nulls.inner(),
        None => BooleanBuffer::new_unset(values.len()),
    }
}
