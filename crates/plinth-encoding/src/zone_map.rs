//! The answers that a predicate can have on the rows of a zone, judged without reading them.

use crate::expr::Scalar;

/// The smallest and largest value of a zone. They bound the values and need not occur among them.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    /// No value is smaller.
    pub min: Scalar,
    /// No value is larger.
    pub max: Scalar,
}

/// The answers that a predicate can have on some rows, as far as their zone map tells: what is `false` here is ruled out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneMapResult {
    /// Some row may be true.
    pub may_be_true: bool,
    /// Some row may be false.
    pub may_be_false: bool,
    /// Some row may be unknown.
    pub may_be_null: bool,
}

impl ZoneMapResult {
    /// Nothing is ruled out.
    pub const ANYTHING: Self = Self { may_be_true: true, may_be_false: true, may_be_null: true };

    /// A constant's answer.
    pub fn of_literal(value: Option<bool>) -> Self {
        Self { may_be_true: value == Some(true), may_be_false: value == Some(false), may_be_null: value.is_none() }
    }

    /// The answers of a set of values for values that are not null: whether it has all of them, and whether some.
    pub(crate) fn of_members(all: bool, some: bool) -> Self {
        Self { may_be_true: all || some, may_be_false: !all, may_be_null: false }
    }

    /// The answers of IS NULL in a zone of which it may be known how many rows are null.
    pub fn of_is_null(nulls: Option<u64>, rows: u64) -> Self {
        Self { may_be_true: nulls != Some(0), may_be_false: nulls != Some(rows), may_be_null: false }
    }

    /// The answers for all rows of a zone, if these are the answers for its values that are not null.
    #[must_use]
    pub fn beside_nulls(self, nulls: Option<u64>, rows: u64) -> Self {
        if nulls == Some(rows) {
            return Self { may_be_true: false, may_be_false: false, may_be_null: rows > 0 };
        }
        Self { may_be_null: nulls != Some(0), ..self }
    }

    /// Whether every row is true.
    pub fn always_true(self) -> bool {
        self.may_be_true && !self.may_be_false && !self.may_be_null
    }

    /// The answers of the negation.
    #[must_use]
    pub fn negated(self) -> Self {
        Self { may_be_true: self.may_be_false, may_be_false: self.may_be_true, ..self }
    }

    /// The answers of a conjunction.
    pub fn all_of(parts: &[Self]) -> Self {
        Self {
            may_be_true: parts.iter().all(|part| part.may_be_true),
            may_be_false: parts.iter().any(|part| part.may_be_false),
            may_be_null: parts.iter().any(|part| part.may_be_null)
                && parts.iter().all(|part| part.may_be_true || part.may_be_null),
        }
    }

    /// The answers of a disjunction.
    pub fn any_of(parts: &[Self]) -> Self {
        Self {
            may_be_true: parts.iter().any(|part| part.may_be_true),
            may_be_false: parts.iter().all(|part| part.may_be_false),
            may_be_null: parts.iter().any(|part| part.may_be_null)
                && parts.iter().all(|part| part.may_be_false || part.may_be_null),
        }
    }

    /// The answers on the rows of two zones.
    #[must_use]
    pub fn on_either(self, other: Self) -> Self {
        Self {
            may_be_true: self.may_be_true || other.may_be_true,
            may_be_false: self.may_be_false || other.may_be_false,
            may_be_null: self.may_be_null || other.may_be_null,
        }
    }

    /// The answers on the rows that two zones both have.
    #[must_use]
    pub fn on_both(self, other: Self) -> Self {
        Self {
            may_be_true: self.may_be_true && other.may_be_true,
            may_be_false: self.may_be_false && other.may_be_false,
            may_be_null: self.may_be_null && other.may_be_null,
        }
    }
}
