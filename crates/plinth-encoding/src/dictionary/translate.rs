//! From tests on values to tests on codes.

use std::ops::{Bound, Range};
use std::sync::Arc;

use arrow_buffer::BooleanBufferBuilder;

use crate::dictionary::keys::{self, Position};
use crate::dictionary::reader::{Dictionary, code};
use crate::error::Result;
use crate::evaluate::evaluate_column;
use crate::physical::Physical;
use crate::value_set::{IntSet, ValueSet};

/// Sets of fewer codes are listed, larger ones are bitmaps over all codes: unless those are this many times more.
const LISTED: usize = 8;
const SPARSE: usize = 1 << 16;

impl Dictionary {
    /// The test on codes (of [`Physical::CODES`]) that holds for a code exactly if `test` holds for its value. Only the
    /// blocks that hold the test's constants are read, unless it is what values contain.
    ///
    /// For 32-byte integers, `i128::MIN` and `i128::MAX` as bounds of a range mean that it has none on that side, which
    /// is how comparisons compile.
    ///
    /// # Errors
    /// If a block cannot be had or is damaged.
    pub fn translate(&self, test: &ValueSet) -> Result<ValueSet> {
        let is_int = matches!(self.physical, Physical::Int { .. } | Physical::Wide { .. });
        let is_float = matches!(self.physical, Physical::Float { .. });
        let is_bytes = matches!(self.physical, Physical::Bytes { .. } | Physical::Fixed { .. });
        Ok(match test {
            ValueSet::Not(inner) => ValueSet::Not(Box::new(self.translate(inner)?)),
            ValueSet::IntRange { lo, hi } if is_int && lo <= hi => range(self.int_range(*lo, *hi)?),
            ValueSet::IntSet(set) if is_int => self.int_set(set)?,
            ValueSet::FloatRange { lo, hi } if is_float => range(self.float_range(lo, hi)?),
            ValueSet::FloatSet(values) if is_float => {
                self.any_of(values.iter().filter_map(|&value| self.float(value)))?
            }
            ValueSet::BytesRange { lo, hi } if is_bytes => range(self.bytes_range(lo, hi)?),
            ValueSet::BytesSet(values) if is_bytes => self.any_of(values.iter())?,
            ValueSet::BytesLike(_) if is_bytes => self.each(test)?,
            // A test on another type holds for no value.
            _ => ValueSet::nothing(),
        })
    }

    fn end(&self) -> u32 {
        code(self.len())
    }

    fn int_range(&self, lo: i128, hi: i128) -> Result<Range<u32>> {
        let beyond = self.physical == Physical::Wide { width: 32 };
        let start = match keys::int_position(self.physical, lo) {
            Position::Below => 0,
            _ if lo == i128::MIN && beyond => 0,
            Position::Key(key) => self.lower_bound(&key)?,
            Position::Above => self.end(),
        };
        let end = match keys::int_position(self.physical, hi) {
            Position::Below => 0,
            _ if hi == i128::MAX && beyond => self.end(),
            Position::Key(key) => self.upper_bound(&key)?,
            Position::Above => self.end(),
        };
        Ok(start..end)
    }

    fn int_set(&self, set: &IntSet) -> Result<ValueSet> {
        let key = |value: i128| match keys::int_position(self.physical, value) {
            Position::Key(key) => Some(key),
            Position::Below | Position::Above => None,
        };
        match set {
            IntSet::Listed(values) => self.any_of(values.iter().filter_map(|&value| key(value))),
            IntSet::Keys(_) => self.each(&ValueSet::IntSet(Arc::new(set.clone()))),
            IntSet::Bits(bits) => self.any_of(bits.set_indices().filter_map(|i| i128::try_from(i).ok().and_then(key))),
        }
    }

    fn float(&self, value: f64) -> Option<Vec<u8>> {
        let key = keys::float_key(self.physical, value, false)?;
        // The next key up is the same unless the value is one of the type's.
        (keys::float_key(self.physical, value, true).as_ref() != Some(&key)).then_some(key)
    }

    fn float_range(&self, lo: &Bound<f64>, hi: &Bound<f64>) -> Result<Range<u32>> {
        let first = |bound: f64, beyond: bool| match keys::float_key(self.physical, bound, beyond) {
            Some(key) => self.lower_bound(&key),
            None => Ok(self.end()),
        };
        let start = match *lo {
            Bound::Unbounded => 0,
            Bound::Included(bound) => first(bound, false)?,
            Bound::Excluded(bound) => first(bound, true)?,
        };
        let end = match *hi {
            Bound::Unbounded => self.end(),
            Bound::Included(bound) => first(bound, true)?,
            Bound::Excluded(bound) => first(bound, false)?,
        };
        Ok(start..end)
    }

    fn bytes_range(&self, lo: &Bound<Arc<[u8]>>, hi: &Bound<Arc<[u8]>>) -> Result<Range<u32>> {
        let start = match lo {
            Bound::Unbounded => 0,
            Bound::Included(bound) => self.lower_bound(bound)?,
            Bound::Excluded(bound) => self.upper_bound(bound)?,
        };
        let end = match hi {
            Bound::Unbounded => self.end(),
            Bound::Included(bound) => self.upper_bound(bound)?,
            Bound::Excluded(bound) => self.lower_bound(bound)?,
        };
        Ok(start..end)
    }

    /// The test that holds for the codes of values that another holds for, which each is asked.
    fn each(&self, test: &ValueSet) -> Result<ValueSet> {
        let mut codes = BooleanBufferBuilder::new(self.len());
        let _ahead = self.prefetch(0..self.blocks());
        for block in 0..self.blocks() {
            let values = self.block_values(block)?;
            codes.append_buffer(&evaluate_column(self.physical, &values, test)?.is_true);
        }
        Ok(ValueSet::of_codes(codes.finish()))
    }

    /// The test that holds for the codes of these keys.
    fn any_of(&self, keys: impl Iterator<Item = impl AsRef<[u8]>>) -> Result<ValueSet> {
        let mut codes = self.find_all(keys)?;
        codes.sort_unstable();
        codes.dedup();
        let (Some(&first), Some(&last)) = (codes.first(), codes.last()) else { return Ok(ValueSet::nothing()) };
        if (last - first) as usize == codes.len() - 1 {
            return Ok(range(first..last + 1));
        }
        if codes.len() < LISTED || self.len() / SPARSE > codes.len() {
            let codes: Vec<i128> = codes.into_iter().map(i128::from).collect();
            return Ok(ValueSet::IntSet(Arc::new(IntSet::Listed(codes.into()))));
        }
        let mut bits = BooleanBufferBuilder::new(self.len());
        bits.append_n(self.len(), false);
        for code in codes {
            bits.set_bit(code as usize, true);
        }
        Ok(ValueSet::IntSet(Arc::new(IntSet::Bits(bits.finish()))))
    }
}

fn range(codes: Range<u32>) -> ValueSet {
    if codes.is_empty() {
        return ValueSet::nothing();
    }
    ValueSet::IntRange { lo: codes.start.into(), hi: i128::from(codes.end) - 1 }
}
