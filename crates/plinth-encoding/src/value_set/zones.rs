//! The answers of a set of values for the values of a zone, of which the bounds are known.

use crate::expr::Scalar;
use crate::value_set::{IntSet, ValueSet, above, below};
use crate::zone_map::{Bounds, ZoneMapResult};

impl IntSet {
    /// Whether any member lies in `lo..=hi`.
    fn meets(&self, lo: i128, hi: i128) -> bool {
        match self {
            Self::Listed(values) => {
                let at = values.partition_point(|&v| v < lo);
                values.get(at).is_some_and(|&v| v <= hi)
            }
            Self::Bits(bits) => {
                let from = usize::try_from(lo.max(0)).unwrap_or(usize::MAX).min(bits.len());
                let to = usize::try_from(hi.saturating_add(1).max(0)).unwrap_or(usize::MAX).min(bits.len());
                from < to && bits.slice(from, to - from).set_indices().next().is_some()
            }
            Self::Keys(keys) => {
                let within = |value: i128| i64::try_from(value.clamp(i64::MIN.into(), i64::MAX.into()));
                let (Ok(from), Ok(to)) = (within(lo), within(hi)) else { return true };
                lo <= i64::MAX.into() && hi >= i64::MIN.into() && keys.meets(from, to)
            }
        }
    }
}

impl IntSet {
    /// Whether all integers of `lo..=hi` are known to be members.
    fn covers(&self, lo: i128, hi: i128) -> bool {
        let all = match (self, i64::try_from(lo), i64::try_from(hi)) {
            (Self::Keys(keys), Ok(lo), Ok(hi)) => keys.covers(lo, hi),
            _ => false,
        };
        all || lo == hi && self.contains(lo)
    }
}

impl ValueSet {
    /// The answers that a zone with these bounds can have, for its values that are not null.
    pub fn zone_map_result(&self, bounds: &Bounds) -> ZoneMapResult {
        match (self, &bounds.min, &bounds.max) {
            (Self::Not(inner), _, _) => inner.zone_map_result(bounds).negated(),
            (Self::IntRange { lo, hi }, Scalar::Int(min), Scalar::Int(max)) => {
                ZoneMapResult::of_members(lo <= min && max <= hi, lo <= hi && lo <= max && min <= hi)
            }
            (Self::IntSet(set), &Scalar::Int(min), &Scalar::Int(max)) => {
                ZoneMapResult::of_members(set.covers(min, max), set.meets(min, max))
            }
            (Self::FloatRange { lo, hi }, Scalar::Float(min), Scalar::Float(max)) => ZoneMapResult::of_members(
                self.holds_float(*min) && self.holds_float(*max),
                above(lo, |bound| max.total_cmp(bound)) && below(hi, |bound| min.total_cmp(bound)),
            ),
            (Self::FloatSet(set), Scalar::Float(min), Scalar::Float(max)) => {
                let at = set.partition_point(|v| v.total_cmp(min).is_lt());
                ZoneMapResult::of_members(
                    min.total_cmp(max).is_eq() && self.holds_float(*min),
                    set.get(at).is_some_and(|v| v.total_cmp(max).is_le()),
                )
            }
            (Self::BytesRange { lo, hi }, Scalar::Bytes(min), Scalar::Bytes(max)) => ZoneMapResult::of_members(
                self.holds_bytes(min) && self.holds_bytes(max),
                above(lo, |bound| max.cmp(bound)) && below(hi, |bound| min.cmp(bound)),
            ),
            (Self::BytesSet(set), Scalar::Bytes(min), Scalar::Bytes(max)) => {
                let at = set.partition_point(|v| v < min);
                ZoneMapResult::of_members(min == max && self.holds_bytes(min), set.get(at).is_some_and(|v| v <= max))
            }
            (Self::Bools { .. }, &Scalar::Bool(min), &Scalar::Bool(max)) => {
                let (at_min, at_max) = (self.holds_bool(min), self.holds_bool(max));
                ZoneMapResult::of_members(at_min && at_max, at_min || at_max)
            }
            _ => ZoneMapResult::of_members(false, true),
        }
    }
}
