//! A predicate on one column: on values, and on indices once the dictionary was asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use arrow_array::{Array, ArrayRef, BooleanArray, UInt32Array, new_null_array};
use arrow_buffer::BooleanBuffer;
use arrow_schema::DataType;
use arrow_select::filter::filter;
use plinth_encoding::expr::{CompareOp, Function, Scalar};
use plinth_encoding::{Column, Mask, Physical, Test, Values, evaluate_column};
use plinth_format::scan::source::{ColumnId, LeafExpr, Ran};
use plinth_format::{FormatError, Result};

use super::arrays::{column, gather, physical};
use super::resolved::Resolved;

/// A prepared predicate.
#[derive(Debug)]
pub(crate) struct Predicate {
    /// Tells it from others.
    pub(super) id: usize,
    pub(super) column: ColumnId,
    path: String,
    kind: Kind,
    /// If it is true only for some of these.
    needles: Option<Vec<Scalar>>,
}

#[derive(Debug)]
enum Kind {
    Test(Physical, Test),
    IsNull,
    Function(Function, DataType),
}

/// What a predicate answered for the values of a chunk's dictionary, or how far it is from being worth asking.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// Rows that were answered one by one.
    rows: usize,
    truth: Option<Truth>,
    /// It fails for some value, so rows have to be asked.
    failed: bool,
}

#[derive(Debug)]
struct Truth {
    is_true: Members,
    is_null: Option<Members>,
    of_null: Option<bool>,
}

/// Some indices of a dictionary.
#[derive(Debug)]
enum Members {
    /// Those in a range, or those outside of it.
    Range(Test),
    /// By index: bytes are looked up faster than bits.
    Table(Vec<bool>),
}

/// Rows of a page of indices.
pub(super) struct Asked<'a> {
    pub(super) indices: &'a UInt32Array,
    pub(super) dictionary: &'a ArrayRef,
    pub(super) selected: &'a BooleanBuffer,
}

fn next_id() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Relaxed)
}

impl Predicate {
    pub(super) fn new(column: ColumnId, resolved: &Resolved, leaf: &LeafExpr) -> Result<Self> {
        let path = resolved.path.to_string();
        let fail = |what: String| FormatError::InvalidArgument(format!("column {path:?}: {what}"));
        let comparable = || {
            let physical = physical(&resolved.data_type).filter(|_| resolved.is_flat);
            physical.ok_or_else(|| fail(format!("a {} can't be compared with a constant", resolved.data_type)))
        };
        let (kind, needles) = match leaf {
            LeafExpr::Compare(op, value) => {
                let physical = comparable()?;
                let test = Test::compare(physical, *op, value).map_err(|e| fail(e.to_string()))?;
                (Kind::Test(physical, test), (*op == CompareOp::Eq).then(|| vec![value.clone()]))
            }
            LeafExpr::In(values) => {
                let physical = comparable()?;
                let test = Test::any_of(physical, values).map_err(|e| fail(e.to_string()))?;
                (Kind::Test(physical, test), Some(values.clone()))
            }
            LeafExpr::IsNull => (Kind::IsNull, None),
            LeafExpr::Function(function) => (Kind::Function(function.clone(), resolved.data_type.clone()), None),
        };
        Ok(Self { id: next_id(), column, path, kind, needles })
    }

    /// One for two ranges of the same column.
    pub(super) fn both(&self, other: &Self) -> Option<Self> {
        match (&self.kind, &other.kind) {
            (Kind::Test(physical, one), Kind::Test(_, two)) if self.column == other.column => Some(Self {
                id: next_id(),
                column: self.column,
                path: self.path.clone(),
                kind: Kind::Test(*physical, one.of_both(two)?),
                needles: self.needles.clone().or_else(|| other.needles.clone()),
            }),
            _ => None,
        }
    }

    /// What zone maps are asked: a test (`Some(None)` for being null), or nothing.
    pub(super) fn zone_test(&self) -> Option<Option<&Test>> {
        match &self.kind {
            Kind::Test(_, test) => Some(Some(test)),
            Kind::IsNull => Some(None),
            Kind::Function(..) => None,
        }
    }

    /// Where it runs when values are asked.
    pub(super) fn ran(&self) -> Ran {
        if matches!(self.kind, Kind::Function(..)) { Ran::Residual } else { Ran::Decoded }
    }

    /// The values one of which a row must have for the predicate to be true.
    pub(super) fn needles(&self) -> Option<&[Scalar]> {
        self.needles.as_deref()
    }

    fn wrong(&self, what: impl std::fmt::Display) -> FormatError {
        FormatError::InvalidArgument(format!("column {:?}: {what}", self.path))
    }

    /// The answers for rows whose values are there; for those outside `selected` any.
    pub(super) fn on_values(&self, values: &ArrayRef, selected: &BooleanBuffer) -> Result<Mask> {
        let answers = match &self.kind {
            Kind::IsNull => return Ok(Mask { is_true: nulls_of(values), is_null: None }),
            Kind::Test(physical, test) => {
                let column = column(values).ok_or_else(|| self.wrong(format!("unexpected {}", values.data_type())))?;
                return evaluate_column(*physical, &column, test).map_err(|e| self.wrong(e));
            }
            Kind::Function(function, _) => {
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
    pub(super) fn on_indices(&self, asked: &Asked<'_>, answers: &mut Answers) -> Result<Option<Mask>> {
        let Asked { indices, dictionary, selected } = *asked;
        if matches!(self.kind, Kind::IsNull) {
            let is_true =
                indices.nulls().map_or_else(|| BooleanBuffer::new_unset(indices.len()), |nulls| !nulls.inner());
            return Ok(Some(Mask { is_true, is_null: None }));
        }
        if answers.truth.is_none() && !answers.failed {
            // A large dictionary is asked once so many rows were that it would have paid.
            let rows = selected.count_set_bits();
            let is_cheap = matches!(self.kind, Kind::Test(..));
            if !is_cheap && dictionary.len() > 2 * (answers.rows + rows) {
                answers.rows += rows;
                return Ok(None);
            }
            answers.truth = self.truth(dictionary)?;
            answers.failed = answers.truth.is_none();
        }
        answers.truth.as_ref().map(|truth| truth.of(indices)).transpose()
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
    fn truth(&self, dictionary: &ArrayRef) -> Result<Option<Truth>> {
        let of_null = match &self.kind {
            Kind::Function(function, data_type) => match function.call(&[new_null_array(data_type, 1)], 1) {
                Ok(answer) => answer.is_valid(0).then(|| answer.value(0)),
                Err(_) => return Ok(None),
            },
            _ => None,
        };
        match self.on_values(dictionary, &BooleanBuffer::new_set(dictionary.len())) {
            Ok(Mask { is_true, is_null }) => Ok(Some(Truth {
                is_true: Members::new(&is_true),
                is_null: is_null.as_ref().map(Members::new),
                of_null,
            })),
            Err(FormatError::Function(_)) => Ok(None),
            Err(other) => Err(other),
        }
    }
}

impl Truth {
    fn of(&self, indices: &UInt32Array) -> Result<Mask> {
        let (mut is_true, mut is_null) = (self.is_true.of(indices)?, None);
        if let Some(unknown) = &self.is_null {
            is_null = Some(unknown.of(indices)?);
        }
        if let Some(valid) = indices.nulls().filter(|nulls| nulls.null_count() > 0) {
            let nulls = !valid.inner();
            is_true = &is_true & valid.inner();
            is_null = is_null.map(|unknown| &unknown & valid.inner());
            match self.of_null {
                Some(true) => is_true = &is_true | &nulls,
                Some(false) => {}
                None => is_null = Some(is_null.map_or_else(|| nulls.clone(), |known| &known | &nulls)),
            }
        }
        Ok(Mask { is_true, is_null })
    }
}

impl Members {
    fn new(bits: &BooleanBuffer) -> Self {
        let is_range = |test: &Test| matches!(test, Test::IntRange { .. });
        let (inside, outside) = (Test::of_codes(bits.clone()), Test::of_codes(!bits));
        match (is_range(&inside), is_range(&outside)) {
            (true, _) => Self::Range(inside),
            (_, true) => Self::Range(Test::Not(Box::new(outside))),
            _ => Self::Table(bits.iter().collect()),
        }
    }

    fn of(&self, indices: &UInt32Array) -> Result<BooleanBuffer> {
        match self {
            Self::Range(test) => {
                let values = Values::Fixed(indices.values().inner().clone());
                let column = Column { len: indices.len(), values, nulls: None };
                let mask = evaluate_column(Physical::CODES, &column, test);
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
