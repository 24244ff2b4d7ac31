//! Several numbers packed into few words, each in as many bits as its range takes.
//!
//! Ranges are learned from the values: a layout starts with what is expected, and becomes a wider one when a number lies outside.
//! A range then grows to a power of two, so that this happens a few dozen times at most, however many rows there are.

use crate::words::{Word, read};

/// One number of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    /// The least and the greatest number that fit, once there was one.
    range: Option<(i64, i64)>,
    bits: u32,
    word: usize,
    shift: u32,
    /// The field that tells whether this one is null, if there is one.
    null: Option<usize>,
}

/// Where each number of a key lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    fields: Vec<Field>,
    words: usize,
}

/// A field whose numbers do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beyond(pub usize);

impl Layout {
    /// A layout of fields without a range; `nulls` names the field that tells whether a field is null.
    pub fn new(nulls: &[Option<usize>]) -> Self {
        let field = |(at, &null): (usize, &Option<usize>)| {
            // What tells of nulls is zero until there is one.
            let range = nulls.contains(&Some(at)).then_some((0, 0));
            Field { range, bits: 0, word: 0, shift: 0, null }
        };
        Self { fields: nulls.iter().enumerate().map(field).collect(), words: 1 }
    }

    /// Words of a key: one at least.
    pub fn words(&self) -> usize {
        self.words
    }

    /// Numbers of a key.
    pub fn fields(&self) -> usize {
        self.fields.len()
    }

    /// Bits of a key that has one word.
    pub fn bits(&self) -> Option<u32> {
        (self.words == 1).then(|| self.fields.iter().map(|field| field.bits).sum())
    }

    /// The number a field has where its value is null.
    pub fn base(&self, field: usize) -> i64 {
        self.fields[field].range.map_or(0, |(min, _)| min)
    }

    /// The field that tells whether one is null.
    pub fn null_of(&self, field: usize) -> Option<usize> {
        self.fields[field].null
    }

    /// A layout whose field has room for numbers between two, whatever it had before.
    #[must_use]
    pub fn with_range(&self, field: usize, least: i64, greatest: i64) -> Self {
        let mut other = self.clone();
        (other.fields[field].range, other.fields[field].bits) = (None, 0);
        other.widened(field, least, greatest)
    }

    /// Whether a field has room for numbers between two.
    pub fn holds(&self, field: usize, least: i64, greatest: i64) -> bool {
        self.fields[field].range.is_some_and(|(min, max)| min <= least && greatest <= max)
    }

    /// Whether a field takes all bits that keys have.
    pub fn is_sole(&self, field: usize) -> bool {
        let others = self.fields.iter().enumerate().filter(|(at, _)| *at != field);
        self.fields[field].range.is_some() && others.map(|(_, field)| field.bits).all(|bits| bits == 0)
    }

    /// A layout whose field has room for numbers between two, and for about as many more.
    #[must_use]
    pub fn widened(&self, field: usize, least: i64, greatest: i64) -> Self {
        let mut wider = self.clone();
        let changed = &mut wider.fields[field];
        let (min, max) = changed.range.map_or((least, greatest), |(min, max)| (min.min(least), max.max(greatest)));
        let bits = bits_of(min, max);
        let room = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
        // Where it grew downwards the spare room is below. From a multiple of it on, if that has room for all: so the ranges that threads learn become
        // the same, and what is merged need not move.
        let downwards = changed.range.is_some_and(|(before, _)| min < before);
        let aligned = (bits < 63).then(|| min & !room.cast_signed()).filter(|from| max.abs_diff(*from) <= room);
        let range = if let Some(from) = aligned {
            (from, from.saturating_add_unsigned(room))
        } else if downwards {
            let below = max.saturating_sub_unsigned(room);
            (below, below.saturating_add_unsigned(room))
        } else {
            let above = min.saturating_add_unsigned(room);
            (above.saturating_sub_unsigned(room), above)
        };
        (changed.range, changed.bits) = (Some(range), bits);
        wider.arrange();
        wider
    }

    /// Gives each field a place in the first word with room.
    fn arrange(&mut self) {
        let mut used: Vec<u32> = vec![0];
        for field in &mut self.fields {
            let word = match used.iter().position(|&used| used + field.bits <= 64) {
                Some(word) => word,
                None => {
                    used.push(0);
                    used.len() - 1
                }
            };
            (field.word, field.shift) = (word, used[word]);
            used[word] += field.bits;
        }
        self.words = used.len();
    }

    /// Packs rows of numbers, one column a field, into one column a word.
    ///
    /// # Errors
    /// If a number lies outside the range of its field; what was packed is then of no use.
    pub fn pack(&self, numbers: &[Vec<i64>], rows: usize, into: &mut Vec<Vec<u64>>) -> Result<(), Beyond> {
        into.resize_with(self.words.max(into.len()), Vec::new);
        for word in into.iter_mut() {
            word.clear();
            word.resize(rows, 0);
        }
        for (at, (field, numbers)) in self.fields.iter().zip(numbers).enumerate() {
            let (base, mut beyond) = (self.base(at), 0);
            let word = into.get_mut(field.word).map_or(&mut [][..], Vec::as_mut_slice);
            for (word, number) in word.iter_mut().zip(numbers) {
                let offset = number.wrapping_sub(base).cast_unsigned();
                beyond |= offset;
                *word |= offset.wrapping_shl(field.shift);
            }
            if field.bits < 64 && (beyond >> field.bits != 0 || field.range.is_none() && !numbers.is_empty()) {
                return Err(Beyond(at));
            }
        }
        Ok(())
    }

    /// Packs rows as [`Layout::pack`] does, and tells which hold a number that lies outside: no key of this layout equals theirs.
    pub fn pack_within(&self, numbers: &[Vec<i64>], rows: usize, into: &mut Vec<Vec<u64>>, outside: &mut Vec<bool>) {
        outside.clear();
        outside.resize(rows, false);
        into.resize_with(self.words.max(into.len()), Vec::new);
        for word in into.iter_mut() {
            word.clear();
            word.resize(rows, 0);
        }
        for (at, (field, numbers)) in self.fields.iter().zip(numbers).enumerate() {
            let base = self.base(at);
            let limit = if field.bits == 64 { u64::MAX } else { (1 << field.bits) - 1 };
            let none = field.range.is_none();
            let word = into.get_mut(field.word).map_or(&mut [][..], Vec::as_mut_slice);
            for ((word, outside), number) in word.iter_mut().zip(outside.iter_mut()).zip(numbers) {
                let offset = number.wrapping_sub(base).cast_unsigned();
                let beyond = none || offset > limit;
                *outside |= beyond;
                *word |= if beyond { 0 } else { offset.wrapping_shl(field.shift) };
            }
        }
    }

    /// A number of a packed key.
    pub fn unpack(&self, key: &[Word], field: usize) -> i64 {
        let base = self.base(field);
        let field = &self.fields[field];
        let mask = if field.bits == 64 { u64::MAX } else { (1 << field.bits) - 1 };
        let offset = key.get(field.word).map_or(0, |word| read(word).wrapping_shr(field.shift)) & mask;
        base.wrapping_add_unsigned(offset)
    }

    /// Packs a key anew that `from` packed and whose numbers fit.
    pub fn repack(&self, from: &Self, key: &[Word], into: &mut [u64]) {
        into.fill(0);
        for (at, field) in self.fields.iter().enumerate() {
            let is_null = field.null.is_some_and(|null| from.unpack(key, null) != 0);
            // A null has the base, wherever that is.
            let number = if is_null { self.base(at) } else { from.unpack(key, at) };
            let offset = number.wrapping_sub(self.base(at)).cast_unsigned();
            if let Some(word) = into.get_mut(field.word) {
                *word |= offset.wrapping_shl(field.shift);
            }
        }
    }

    /// A layout for all that two layouts of the same fields have room for.
    #[must_use]
    pub fn of_both(&self, other: &Self) -> Self {
        let mut both = self.clone();
        for (at, field) in other.fields.iter().enumerate() {
            if let Some((min, max)) = field.range
                && both.fields[at].range != field.range
            {
                both = both.widened(at, min, max);
            }
        }
        both
    }
}

/// Bits of the difference of two numbers.
fn bits_of(min: i64, max: i64) -> u32 {
    64 - max.wrapping_sub(min).cast_unsigned().leading_zeros()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
