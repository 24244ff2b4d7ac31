//! What operators exchange: columns of some rows, of which some are still codes.

use std::fmt::Debug;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Decimal128Array, UInt32Array};
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow_select::take::take;

use crate::error::{ExecError, Result};

/// The values that codes stand for.
///
/// Where one dictionary codes all rows of a column, operators rely on the order of its codes: it is that of the values.
pub trait Coded: Debug + Send + Sync {
    /// How many there are; codes are below it.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same number for the same values, as long as they live.
    fn identity(&self) -> usize;

    /// Whether of two codes the lesser has the lesser value.
    fn is_ordered(&self) -> bool;

    /// The values of some codes; null rows may hold any code.
    ///
    /// # Errors
    /// If a code is no value's, or the values can't be had.
    fn values(&self, codes: &[u32], nulls: Option<&NullBuffer>) -> Result<ArrayRef>;

    /// The codes of the values of an array; null rows have any. Only of those that operators [rely on](Self::is_ordered).
    ///
    /// # Errors
    /// If a value has no code, or they can't be had.
    fn codes(&self, _: &ArrayRef) -> Result<Vec<u32>> {
        Err(ExecError::internal("codes are asked of values that have none"))
    }

    /// The same for a moment: what is kept of the array may keep all values there are.
    ///
    /// # Errors
    /// As [`Coded::values`].
    fn lent(&self, codes: &[u32], nulls: Option<&NullBuffer>) -> Result<ArrayRef> {
        self.values(codes, nulls)
    }
}

/// One column of some rows.
#[derive(Clone, Debug)]
pub enum Vector {
    /// Values.
    Array(ArrayRef),
    /// Codes of values: equal codes of one dictionary are equal values.
    Codes {
        /// One a row; anything where the row is null.
        ids: ScalarBuffer<u32>,
        /// Which rows are null.
        nulls: Option<NullBuffer>,
        /// What the codes mean.
        dictionary: Arc<dyn Coded>,
    },
    /// Decimals of 128 bits that all fit 64.
    Narrow(Narrow),
}

/// Decimals of 128 bits that all fit 64.
#[derive(Clone, Debug)]
pub struct Narrow {
    /// Unscaled, one a row; anything where the row is null.
    pub values: ScalarBuffer<i64>,
    /// Which rows are null.
    pub nulls: Option<NullBuffer>,
    /// Digits.
    pub precision: u8,
    /// Digits behind the point.
    pub scale: i8,
}

impl Narrow {
    /// The values in 128 bits.
    ///
    /// # Errors
    /// If there are no decimals of such a precision and scale.
    pub fn array(&self) -> Result<ArrayRef> {
        let values = self.values.iter().map(|value| i128::from(*value)).collect();
        let values = Decimal128Array::try_new(values, self.nulls.clone())?;
        Ok(Arc::new(values.with_precision_and_scale(self.precision, self.scale)?))
    }

    /// Some rows.
    #[must_use]
    pub fn rows(&self, rows: &[u32]) -> Self {
        let value = |row: &u32| self.values.get(*row as usize).copied().unwrap_or_default();
        Self { values: rows.iter().map(value).collect(), nulls: nulls_of(self.nulls.as_ref(), rows), ..*self }
    }
}

/// Which of some rows are null; none if no row is.
pub fn nulls_of(nulls: Option<&NullBuffer>, rows: &[u32]) -> Option<NullBuffer> {
    let nulls = nulls.filter(|nulls| nulls.null_count() > 0)?;
    let is_valid = |at: usize| rows.get(at).is_some_and(|row| nulls.is_valid(*row as usize));
    Some(NullBuffer::new(BooleanBuffer::collect_bool(rows.len(), is_valid)))
}

impl Vector {
    /// Rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Array(array) => array.len(),
            Self::Codes { ids, .. } => ids.len(),
            Self::Narrow(decimals) => decimals.values.len(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Which rows are null; none if all hold a value.
    pub fn nulls(&self) -> Option<NullBuffer> {
        let nulls = match self {
            Self::Array(array) => array.logical_nulls(),
            Self::Codes { nulls, .. } => nulls.clone(),
            Self::Narrow(decimals) => decimals.nulls.clone(),
        };
        nulls.filter(|nulls| nulls.null_count() > 0)
    }

    /// The values.
    ///
    /// # Errors
    /// If a code has none.
    pub fn array(&self) -> Result<ArrayRef> {
        match self {
            Self::Array(array) => Ok(Arc::clone(array)),
            Self::Codes { ids, nulls, dictionary } => dictionary.values(ids, nulls.as_ref()),
            Self::Narrow(decimals) => decimals.array(),
        }
    }

    /// Some rows, by their numbers; what are codes stay codes.
    ///
    /// # Errors
    /// If values of their type can't be gathered.
    pub fn rows(&self, rows: &UInt32Array) -> Result<Self> {
        Ok(match self {
            Self::Array(array) => Self::Array(take(array, rows, None)?),
            Self::Codes { ids, nulls, dictionary } => {
                let id = |row: &u32| ids.get(*row as usize).copied().unwrap_or_default();
                let ids = rows.values().iter().map(id).collect();
                let nulls = nulls_of(nulls.as_ref(), rows.values());
                Self::Codes { ids, nulls, dictionary: Arc::clone(dictionary) }
            }
            Self::Narrow(decimals) => Self::Narrow(decimals.rows(rows.values())),
        })
    }

    /// Rows that lie side by side, from one on.
    #[must_use]
    pub fn slice(&self, from: usize, len: usize) -> Self {
        let some = |nulls: &Option<NullBuffer>| nulls.as_ref().map(|nulls| nulls.slice(from, len));
        match self {
            Self::Array(array) => Self::Array(array.slice(from, len)),
            Self::Codes { ids, nulls, dictionary } => {
                Self::Codes { ids: ids.slice(from, len), nulls: some(nulls), dictionary: Arc::clone(dictionary) }
            }
            Self::Narrow(decimals) => {
                let values = decimals.values.slice(from, len);
                Self::Narrow(Narrow { values, nulls: some(&decimals.nulls), ..*decimals })
            }
        }
    }

    /// The values, of which nothing is kept.
    ///
    /// # Errors
    /// If a code has none.
    pub fn lent(&self) -> Result<ArrayRef> {
        match self {
            Self::Array(array) => Ok(Arc::clone(array)),
            Self::Codes { ids, nulls, dictionary } => dictionary.lent(ids, nulls.as_ref()),
            Self::Narrow(decimals) => decimals.array(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
pub(crate) mod samples;
