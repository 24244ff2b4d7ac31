//! A set of values of one physical type: what a comparison with constants becomes, and what a block, a dictionary or a zone
//! map is asked.

mod listed;
mod zones;

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use arrow_buffer::BooleanBuffer;

use crate::error::{EncodingError, Result};
use crate::expr::{CompareOp, Scalar};
use crate::key_set::KeySet;
use crate::pattern::Pattern;
use crate::physical::{Physical, wide_value};
pub use listed::Listed;

/// A set of values of one physical type. A comparison holds for a value if the set contains it; nulls are never asked.
#[derive(Clone, Debug)]
pub enum ValueSet {
    /// Integers and 16-byte decimals from `lo` to `hi`, both included; empty when `lo > hi`.
    IntRange {
        /// The smallest.
        lo: i128,
        /// The largest.
        hi: i128,
    },
    /// Integers in a set.
    IntSet(Arc<IntSet>),
    /// Floats between two bounds in total order.
    FloatRange {
        /// The lower bound.
        lo: Bound<f64>,
        /// The upper bound.
        hi: Bound<f64>,
    },
    /// Floats equal in total order to one of these, which are sorted.
    FloatSet(Arc<[f64]>),
    /// Byte strings between two bounds.
    BytesRange {
        /// The lower bound.
        lo: Bound<Arc<[u8]>>,
        /// The upper bound.
        hi: Bound<Arc<[u8]>>,
    },
    /// Byte strings equal to one of these, which are sorted.
    BytesSet(Arc<[Arc<[u8]>]>),
    /// Byte strings of a pattern.
    BytesLike(Pattern),
    /// Booleans: whether `false` and whether `true` is in the set.
    Bools {
        /// Whether `false` is.
        holds_false: bool,
        /// Whether `true` is.
        holds_true: bool,
    },
    /// Everything that is not in the set.
    Not(Box<ValueSet>),
}

/// A set of integers.
#[derive(Clone, Debug)]
pub enum IntSet {
    /// Integers in a list.
    Listed(Listed),
    /// Bit `i` says whether `i` is a member: the form a predicate over a dictionary takes.
    Bits(BooleanBuffer),
    /// The keys of a join's other side, and perhaps a few others.
    Keys(Arc<KeySet>),
}

/// Byte strings that are looked for one by one.
const FEW_BYTES: usize = 8;

impl IntSet {
    /// Whether `value` is a member.
    pub fn contains(&self, value: i128) -> bool {
        match self {
            Self::Listed(values) => values.has(value),
            Self::Bits(bits) => usize::try_from(value).is_ok_and(|i| i < bits.len() && bits.value(i)),
            Self::Keys(keys) => i64::try_from(value).is_ok_and(|value| keys.contains(value)),
        }
    }

    /// Its smallest and largest member, if it has all between them.
    pub(crate) fn as_range(&self) -> Option<(i128, i128)> {
        let Self::Listed(values) = self else { return None };
        let (lo, hi) = (*values.first()?, *values.last()?);
        hi.checked_sub(lo).is_some_and(|span| span < widened(values.len())).then_some((lo, hi))
    }
}

impl ValueSet {
    /// The empty set, of any physical type.
    pub fn nothing() -> Self {
        Self::IntRange { lo: 1, hi: 0 }
    }

    /// The codes whose bit is set: a range if they are adjacent, which is cheaper to ask.
    pub fn of_codes(bits: BooleanBuffer) -> Self {
        let mut runs = bits.set_slices();
        match (runs.next(), runs.next()) {
            (None, _) => Self::nothing(),
            (Some((from, to)), None) => Self::IntRange { lo: widened(from), hi: widened(to) - 1 },
            _ => Self::IntSet(Arc::new(IntSet::Bits(bits))),
        }
    }

    /// Compiles `column op value`.
    ///
    /// # Errors
    /// If the constant is not of the column's kind.
    pub fn compare(physical: Physical, op: CompareOp, value: &Scalar) -> Result<Self> {
        if op == CompareOp::NotEq {
            return Ok(Self::Not(Box::new(Self::compare(physical, CompareOp::Eq, value)?)));
        }
        Ok(match (physical, value) {
            (Physical::Bool, &Scalar::Bool(value)) => {
                let holds = |candidate: bool| ordering_fits(op, candidate.cmp(&value));
                Self::Bools { holds_false: holds(false), holds_true: holds(true) }
            }
            (Physical::Int { .. } | Physical::Wide { .. }, &Scalar::Int(value)) => match op {
                CompareOp::Lt if value == i128::MIN => Self::nothing(),
                CompareOp::Gt if value == i128::MAX => Self::nothing(),
                CompareOp::Lt => Self::IntRange { lo: i128::MIN, hi: value - 1 },
                CompareOp::LtEq => Self::IntRange { lo: i128::MIN, hi: value },
                CompareOp::Gt => Self::IntRange { lo: value + 1, hi: i128::MAX },
                CompareOp::GtEq => Self::IntRange { lo: value, hi: i128::MAX },
                CompareOp::Eq | CompareOp::NotEq => Self::IntRange { lo: value, hi: value },
            },
            (Physical::Float { .. }, &Scalar::Float(value)) => {
                let (lo, hi) = bounds_of(op, value);
                Self::FloatRange { lo, hi }
            }
            (Physical::Fixed { .. } | Physical::Bytes { .. }, Scalar::Bytes(value)) => {
                let (lo, hi) = bounds_of(op, Arc::clone(value));
                Self::BytesRange { lo, hi }
            }
            _ => return Err(mismatch(physical, value)),
        })
    }

    /// The values that two ranges have in common; none if one of them is no range.
    pub fn of_both(&self, other: &Self) -> Option<Self> {
        Some(match (self, other) {
            (Self::IntRange { lo: one_lo, hi: one_hi }, Self::IntRange { lo, hi }) => {
                Self::IntRange { lo: *one_lo.max(lo), hi: *one_hi.min(hi) }
            }
            (Self::FloatRange { lo: one_lo, hi: one_hi }, Self::FloatRange { lo, hi }) => {
                let (lo, hi) = narrowed((one_lo, one_hi), (lo, hi), f64::total_cmp)?;
                Self::FloatRange { lo, hi }
            }
            (Self::BytesRange { lo: one_lo, hi: one_hi }, Self::BytesRange { lo, hi }) => {
                let (lo, hi) = narrowed((one_lo, one_hi), (lo, hi), Ord::cmp)?;
                Self::BytesRange { lo, hi }
            }
            _ => return None,
        })
    }

    /// Compiles `column IN (values)`.
    ///
    /// # Errors
    /// If a constant is not of the column's kind.
    pub fn any_of(physical: Physical, values: &[Scalar]) -> Result<Self> {
        if let [value] = values {
            return Self::compare(physical, CompareOp::Eq, value);
        }
        match physical {
            Physical::Bool => {
                let mut held = [false; 2];
                for value in values {
                    let &Scalar::Bool(value) = value else { return Err(mismatch(physical, value)) };
                    held[usize::from(value)] = true;
                }
                Ok(Self::Bools { holds_false: held[0], holds_true: held[1] })
            }
            Physical::Int { .. } | Physical::Wide { .. } => {
                let set = collect(physical, values, |value| match value {
                    &Scalar::Int(value) => Some(value),
                    _ => None,
                })?;
                Ok(Self::IntSet(Arc::new(IntSet::Listed(set.into()))))
            }
            Physical::Float { .. } => {
                let mut set = collect(physical, values, |value| match value {
                    &Scalar::Float(value) => Some(value),
                    _ => None,
                })?;
                set.sort_unstable_by(f64::total_cmp);
                Ok(Self::FloatSet(set.into()))
            }
            Physical::Fixed { .. } | Physical::Bytes { .. } => {
                let mut set = collect(physical, values, |value| match value {
                    Scalar::Bytes(value) => Some(Arc::clone(value)),
                    _ => None,
                })?;
                set.sort_unstable();
                set.dedup();
                Ok(Self::BytesSet(set.into()))
            }
        }
    }

    /// Compiles that a column is among keys.
    ///
    /// # Errors
    /// If the column's values are no integers.
    pub fn of_keys(physical: Physical, keys: &Arc<KeySet>) -> Result<Self> {
        match physical {
            Physical::Int { .. } | Physical::Wide { .. } => Ok(Self::IntSet(Arc::new(IntSet::Keys(Arc::clone(keys))))),
            _ => Err(mismatch(physical, &Scalar::from(keys.bounds().0))),
        }
    }

    /// Whether an integer is in the set.
    pub fn holds_int(&self, value: i128) -> bool {
        match self {
            Self::IntRange { lo, hi } => (*lo..=*hi).contains(&value),
            Self::IntSet(set) => set.contains(value),
            Self::Not(inner) => !inner.holds_int(value),
            _ => false,
        }
    }

    /// Whether a float is in the set.
    pub fn holds_float(&self, value: f64) -> bool {
        match self {
            Self::FloatRange { lo, hi } => {
                above(lo, |bound| value.total_cmp(bound)) && below(hi, |bound| value.total_cmp(bound))
            }
            Self::FloatSet(set) => set.binary_search_by(|member| member.total_cmp(&value)).is_ok(),
            Self::Not(inner) => !inner.holds_float(value),
            _ => false,
        }
    }

    /// Whether a byte string is in the set.
    pub fn holds_bytes(&self, value: &[u8]) -> bool {
        match self {
            Self::BytesRange { lo, hi } => above(lo, |bound| value.cmp(bound)) && below(hi, |bound| value.cmp(bound)),
            Self::BytesSet(set) => set.binary_search_by(|member| (**member).cmp(value)).is_ok(),
            Self::BytesLike(pattern) => pattern.matches(value),
            Self::Not(inner) => !inner.holds_bytes(value),
            _ => false,
        }
    }

    /// Whether an integer of 16 or 32 bytes is in the set; one beyond 128 bits compares as the nearest that is not.
    pub(crate) fn holds_wide(&self, bytes: &[u8]) -> bool {
        let (set, negated) = self.stripped();
        let holds = match wide_value(bytes) {
            Some(value) => set.holds_int(value),
            None => match set {
                Self::IntRange { lo, hi } if bytes.last().is_some_and(|&top| top >= 0x80) => {
                    *lo == i128::MIN && lo <= hi
                }
                Self::IntRange { lo, hi } => *hi == i128::MAX && lo <= hi,
                _ => false,
            },
        };
        holds != negated
    }

    /// Whether values of a physical type can be in it. Values of others are not, and are in its negation.
    pub(crate) fn is_of(&self, physical: Physical) -> bool {
        match self {
            Self::IntRange { .. } | Self::IntSet(_) => matches!(physical, Physical::Int { .. } | Physical::Wide { .. }),
            Self::FloatRange { .. } | Self::FloatSet(_) => matches!(physical, Physical::Float { .. }),
            Self::BytesRange { .. } | Self::BytesSet(_) | Self::BytesLike(_) => {
                matches!(physical, Physical::Fixed { .. } | Physical::Bytes { .. })
            }
            Self::Bools { .. } => physical == Physical::Bool,
            Self::Not(inner) => inner.is_of(physical),
        }
    }

    /// The set without its negations; whether they are odd in number.
    pub(crate) fn stripped(&self) -> (&Self, bool) {
        let (mut set, mut negated) = (self, false);
        while let Self::Not(inner) = set {
            (set, negated) = (inner, !negated);
        }
        (set, negated)
    }

    /// The members, if the set lists them; those of a negation may be any.
    pub fn members(&self) -> Option<Vec<Scalar>> {
        match self {
            Self::IntRange { lo, hi } if lo == hi => Some(vec![Scalar::Int(*lo)]),
            Self::IntSet(set) => match &**set {
                IntSet::Listed(values) => Some(values.iter().map(|&value| Scalar::Int(value)).collect()),
                IntSet::Bits(_) | IntSet::Keys(_) => None,
            },
            Self::FloatRange { lo: Bound::Included(lo), hi: Bound::Included(hi) } if lo.total_cmp(hi).is_eq() => {
                Some(vec![Scalar::Float(*lo)])
            }
            Self::FloatSet(values) => Some(values.iter().map(|&value| Scalar::Float(value)).collect()),
            Self::BytesRange { lo: Bound::Included(lo), hi: Bound::Included(hi) } if lo == hi => {
                Some(vec![Scalar::Bytes(Arc::clone(lo))])
            }
            Self::BytesSet(values) => Some(values.iter().cloned().map(Scalar::Bytes).collect()),
            _ => None,
        }
    }

    /// How many integers the set lists, if it lists some.
    pub fn listed_integers(&self) -> Option<usize> {
        match self {
            Self::IntRange { lo, hi } if lo == hi => Some(1),
            Self::IntSet(set) => match &**set {
                IntSet::Listed(values) => Some(values.len()),
                IntSet::Bits(_) | IntSet::Keys(_) => None,
            },
            _ => None,
        }
    }

    /// The byte strings in the set, if they are few. (What is not in a set may be any.)
    pub(crate) fn few_bytes(&self) -> Option<&[Arc<[u8]>]> {
        match self {
            Self::BytesRange { lo: Bound::Included(lo), hi: Bound::Included(hi) } if lo == hi => {
                Some(std::slice::from_ref(lo))
            }
            Self::BytesSet(set) if set.len() <= FEW_BYTES => Some(set),
            _ => None,
        }
    }

    /// Their lengths.
    pub(crate) fn byte_lengths(&self) -> Option<Vec<u32>> {
        let lengths = self.few_bytes()?.iter().map(|value| u32::try_from(value.len()).ok());
        let lengths: BTreeSet<u32> = lengths.collect::<Option<_>>()?;
        Some(lengths.into_iter().collect())
    }

    /// Bytes, one at least, that each byte string in the set contains. (What is not in a set may be any.)
    pub(crate) fn contained(&self) -> Option<&[u8]> {
        let bytes = match self {
            Self::BytesLike(pattern) => pattern.contained(),
            Self::BytesRange { lo: Bound::Included(lo), hi: Bound::Included(hi) } if lo == hi => lo,
            Self::BytesRange {
                lo: Bound::Included(lo) | Bound::Excluded(lo),
                hi: hi @ (Bound::Included(end) | Bound::Excluded(end)),
            } => {
                let shared = lo.iter().zip(&**end).take_while(|(a, b)| a == b).count();
                // All that begin with some bytes, as `Expr::starts_with` has it: the end's last byte is one more.
                let (next, last) = (lo.get(shared), end.get(shared));
                let tight = matches!(hi, Bound::Excluded(_)) && end.len() == shared + 1;
                let one_more = next.zip(last).is_some_and(|(&next, &last)| next.checked_add(1) == Some(last));
                lo.get(..shared + usize::from(tight && one_more))?
            }
            Self::BytesSet(set) => match &**set {
                [value] => value,
                _ => return None,
            },
            _ => return None,
        };
        (!bytes.is_empty()).then_some(bytes)
    }

    /// Whether a boolean is in the set.
    pub fn holds_bool(&self, value: bool) -> bool {
        match self {
            Self::Bools { holds_false, holds_true } => {
                if value {
                    *holds_true
                } else {
                    *holds_false
                }
            }
            Self::Not(inner) => !inner.holds_bool(value),
            _ => false,
        }
    }
}

fn widened(place: usize) -> i128 {
    i128::try_from(place).unwrap_or(i128::MAX)
}

fn ordering_fits(op: CompareOp, ordering: Ordering) -> bool {
    match op {
        CompareOp::Eq => ordering.is_eq(),
        CompareOp::NotEq => ordering.is_ne(),
        CompareOp::Lt => ordering.is_lt(),
        CompareOp::LtEq => ordering.is_le(),
        CompareOp::Gt => ordering.is_gt(),
        CompareOp::GtEq => ordering.is_ge(),
    }
}

fn bounds_of<T: Clone>(op: CompareOp, value: T) -> (Bound<T>, Bound<T>) {
    match op {
        CompareOp::Lt => (Bound::Unbounded, Bound::Excluded(value)),
        CompareOp::LtEq => (Bound::Unbounded, Bound::Included(value)),
        CompareOp::Gt => (Bound::Excluded(value), Bound::Unbounded),
        CompareOp::GtEq => (Bound::Included(value), Bound::Unbounded),
        CompareOp::Eq | CompareOp::NotEq => (Bound::Included(value.clone()), Bound::Included(value)),
    }
}

/// Where two ranges overlap; none if they don't.
fn narrowed<T: Clone>(
    (one_lo, one_hi): (&Bound<T>, &Bound<T>),
    (lo, hi): (&Bound<T>, &Bound<T>),
    compare: impl Fn(&T, &T) -> Ordering,
) -> Option<(Bound<T>, Bound<T>)> {
    let narrower = |one: &Bound<T>, other: &Bound<T>, wins: Ordering| match (value_of(one), value_of(other)) {
        (None, _) => other.clone(),
        (_, None) => one.clone(),
        (Some(a), Some(b)) => match compare(a, b) {
            Ordering::Equal if matches!(one, Bound::Excluded(_)) => one.clone(),
            order if order == wins => one.clone(),
            _ => other.clone(),
        },
    };
    let (lo, hi) = (narrower(one_lo, lo, Ordering::Greater), narrower(one_hi, hi, Ordering::Less));
    let overlap = match (value_of(&lo), value_of(&hi)) {
        (Some(from), Some(to)) => match compare(from, to) {
            Ordering::Less => true,
            Ordering::Equal => matches!((&lo, &hi), (Bound::Included(_), Bound::Included(_))),
            Ordering::Greater => false,
        },
        _ => true,
    };
    overlap.then_some((lo, hi))
}

fn value_of<T>(bound: &Bound<T>) -> Option<&T> {
    match bound {
        Bound::Unbounded => None,
        Bound::Included(value) | Bound::Excluded(value) => Some(value),
    }
}

fn above<T>(lo: &Bound<T>, compare: impl Fn(&T) -> Ordering) -> bool {
    match lo {
        Bound::Unbounded => true,
        Bound::Included(bound) => compare(bound).is_ge(),
        Bound::Excluded(bound) => compare(bound).is_gt(),
    }
}

fn below<T>(hi: &Bound<T>, compare: impl Fn(&T) -> Ordering) -> bool {
    match hi {
        Bound::Unbounded => true,
        Bound::Included(bound) => compare(bound).is_le(),
        Bound::Excluded(bound) => compare(bound).is_lt(),
    }
}

fn collect<T>(physical: Physical, values: &[Scalar], pick: impl Fn(&Scalar) -> Option<T>) -> Result<Vec<T>> {
    values.iter().map(|value| pick(value).ok_or_else(|| mismatch(physical, value))).collect()
}

fn mismatch(physical: Physical, value: &Scalar) -> EncodingError {
    EncodingError::invalid(format!("cannot compare a column of {physical:?} with {value:?}"))
}

#[cfg(test)]
mod tests;
