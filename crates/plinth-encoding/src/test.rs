//! A comparison compiled against a physical type: what a block, a dictionary or a zone map can be asked.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use arrow_buffer::BooleanBuffer;

use crate::column::Physical;
use crate::error::{EncodingError, Result};
use crate::expr::{CompareOp, Scalar};

/// A set of values of one physical type. A comparison holds for a value if the set contains it; nulls are never asked.
#[derive(Clone, Debug)]
pub enum Test {
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
    /// Booleans: whether `false` and whether `true` is in the set.
    Bools {
        /// Whether `false` is.
        holds_false: bool,
        /// Whether `true` is.
        holds_true: bool,
    },
    /// Everything that is not in the set.
    Not(Box<Test>),
}

/// A set of integers.
#[derive(Clone, Debug)]
pub enum IntSet {
    /// Sorted, without repeats.
    Sorted(Vec<i128>),
    /// Bit `i` says whether `i` is a member: the form a predicate over a dictionary takes.
    Bits(BooleanBuffer),
}

/// What a zone map says about a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds for no value of the zone.
    None,
    /// It holds for every value of the zone.
    All,
    /// It may hold for some.
    Some,
}

/// The smallest and largest value of a zone. They bound the values and need not occur among them.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    /// No value is smaller.
    pub min: Scalar,
    /// No value is larger.
    pub max: Scalar,
}

/// Byte strings that are looked for one by one.
const FEW: usize = 8;

impl IntSet {
    /// Whether `value` is a member.
    pub fn contains(&self, value: i128) -> bool {
        match self {
            Self::Sorted(values) => values.binary_search(&value).is_ok(),
            Self::Bits(bits) => usize::try_from(value).is_ok_and(|i| i < bits.len() && bits.value(i)),
        }
    }

    /// Whether any member lies in `lo..=hi`.
    fn meets(&self, lo: i128, hi: i128) -> bool {
        match self {
            Self::Sorted(values) => {
                let at = values.partition_point(|&v| v < lo);
                values.get(at).is_some_and(|&v| v <= hi)
            }
            Self::Bits(bits) => {
                let from = usize::try_from(lo.max(0)).unwrap_or(usize::MAX).min(bits.len());
                let to = usize::try_from(hi.saturating_add(1).max(0)).unwrap_or(usize::MAX).min(bits.len());
                from < to && bits.slice(from, to - from).set_indices().next().is_some()
            }
        }
    }
}

impl Test {
    /// The test that no value passes, for any physical type.
    pub fn nothing() -> Self {
        Self::IntRange { lo: 1, hi: 0 }
    }

    /// The test that the codes pass whose bit is set: a range if they are adjacent, which is cheaper to ask.
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

    /// The test for what passes both of two ranges; none if one of them is no range.
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
                let mut set = collect(physical, values, |value| match value {
                    &Scalar::Int(value) => Some(value),
                    _ => None,
                })?;
                set.sort_unstable();
                set.dedup();
                Ok(Self::IntSet(Arc::new(IntSet::Sorted(set))))
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
            Self::Not(inner) => !inner.holds_bytes(value),
            _ => false,
        }
    }

    /// The byte strings in the set, if they are few. (What is not in a set may be any.)
    pub(crate) fn few_bytes(&self) -> Option<&[Arc<[u8]>]> {
        match self {
            Self::BytesRange { lo: Bound::Included(lo), hi: Bound::Included(hi) } if lo == hi => {
                Some(std::slice::from_ref(lo))
            }
            Self::BytesSet(set) if set.len() <= FEW => Some(set),
            _ => None,
        }
    }

    /// Their lengths.
    pub(crate) fn byte_lengths(&self) -> Option<Vec<u32>> {
        let lengths = self.few_bytes()?.iter().map(|value| u32::try_from(value.len()).ok());
        let lengths: BTreeSet<u32> = lengths.collect::<Option<_>>()?;
        Some(lengths.into_iter().collect())
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

    /// What the bounds of a zone say, about its values that are not null.
    pub fn verdict(&self, bounds: &Bounds) -> Verdict {
        match (self, &bounds.min, &bounds.max) {
            (Self::Not(inner), _, _) => match inner.verdict(bounds) {
                Verdict::None => Verdict::All,
                Verdict::All => Verdict::None,
                Verdict::Some => Verdict::Some,
            },
            (Self::IntRange { lo, hi }, Scalar::Int(min), Scalar::Int(max)) => {
                verdict(lo <= min && max <= hi, lo <= hi && lo <= max && min <= hi)
            }
            (Self::IntSet(set), &Scalar::Int(min), &Scalar::Int(max)) => {
                verdict(min == max && set.contains(min), set.meets(min, max))
            }
            (Self::FloatRange { lo, hi }, Scalar::Float(min), Scalar::Float(max)) => verdict(
                self.holds_float(*min) && self.holds_float(*max),
                above(lo, |bound| max.total_cmp(bound)) && below(hi, |bound| min.total_cmp(bound)),
            ),
            (Self::FloatSet(set), Scalar::Float(min), Scalar::Float(max)) => {
                let at = set.partition_point(|v| v.total_cmp(min).is_lt());
                verdict(
                    min.total_cmp(max).is_eq() && self.holds_float(*min),
                    set.get(at).is_some_and(|v| v.total_cmp(max).is_le()),
                )
            }
            (Self::BytesRange { lo, hi }, Scalar::Bytes(min), Scalar::Bytes(max)) => verdict(
                self.holds_bytes(min) && self.holds_bytes(max),
                above(lo, |bound| max.cmp(bound)) && below(hi, |bound| min.cmp(bound)),
            ),
            (Self::BytesSet(set), Scalar::Bytes(min), Scalar::Bytes(max)) => {
                let at = set.partition_point(|v| v < min);
                verdict(min == max && self.holds_bytes(min), set.get(at).is_some_and(|v| v <= max))
            }
            (Self::Bools { .. }, &Scalar::Bool(min), &Scalar::Bool(max)) => {
                let (at_min, at_max) = (self.holds_bool(min), self.holds_bool(max));
                verdict(at_min && at_max, at_min || at_max)
            }
            _ => Verdict::Some,
        }
    }
}

fn widened(place: usize) -> i128 {
    i128::try_from(place).unwrap_or(i128::MAX)
}

fn verdict(all: bool, some: bool) -> Verdict {
    match (all, some) {
        (true, _) => Verdict::All,
        (false, true) => Verdict::Some,
        (false, false) => Verdict::None,
    }
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn op() -> impl Strategy<Value = CompareOp> {
        use CompareOp::{Eq, Gt, GtEq, Lt, LtEq};
        prop::sample::select(vec![Eq, Lt, LtEq, Gt, GtEq])
    }

    proptest! {
        #[test]
        fn two_ranges_are_one_where_they_overlap(ops in (op(), op()), bounds in (0_u8..5, 0_u8..5)) {
            let both = |physical, of: &dyn Fn(u8) -> Scalar| {
                let one = Test::compare(physical, ops.0, &of(bounds.0)).unwrap();
                let other = Test::compare(physical, ops.1, &of(bounds.1)).unwrap();
                (one.of_both(&other), one, other)
            };
            let (joined, one, other) = both(Physical::Int { width: 4, signed: true }, &|n| Scalar::Int(n.into()));
            let joined = joined.unwrap();
            for n in -1..6 {
                prop_assert_eq!(joined.holds_int(n), one.holds_int(n) && other.holds_int(n));
            }
            let (joined, one, other) = both(Physical::Bytes { utf8: true }, &|n| Scalar::Bytes([b'a', n].as_slice().into()));
            let values = (0..6).flat_map(|n| [vec![b'a', n], vec![b'a', n, 0]]).chain([vec![], vec![b'b']]);
            for value in values {
                let holds = one.holds_bytes(&value) && other.holds_bytes(&value);
                prop_assert_eq!(joined.as_ref().is_some_and(|joined| joined.holds_bytes(&value)), holds);
            }
            let (joined, one, other) = both(Physical::Float { width: 8 }, &|n| Scalar::Float(n.into()));
            for value in [-1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0, 3.5, 4.0, 9.0, f64::NAN] {
                let holds = one.holds_float(value) && other.holds_float(value);
                prop_assert_eq!(joined.as_ref().is_some_and(|joined| joined.holds_float(value)), holds);
            }
        }
    }
}
