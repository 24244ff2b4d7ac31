//! The keys of one side of a join, as scans of the other side are asked for them.
//!
//! Where the range of the keys allows, a bit tells of each number whether it is a key. Else a blocked Bloom filter does: each key sets four bits of
//! one word, so that a look-up is one load and one comparison; a number that is no key passes about once in a hundred times, and more seldom where keys
//! are few. Such a set holds more than the keys: it may drop rows that have no partner, and must not be negated.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "differences of keys are below 64 bits, and hashes are cut"
)]

use arrow_buffer::BooleanBuffer;

use crate::bits::Words;

/// Bits of the range that a bitmap may take for each key.
const SPARSE: u64 = 64;

/// Bits that a bitmap may take however few keys there are: they lie in a core's second cache, where asking it is still faster than a Bloom
/// filter in the first.
const SMALL: u64 = 1 << 23;

/// Bits of a Bloom filter for each key.
const BITS: usize = 16;

/// Words that a Bloom filter of few keys has nevertheless: they lie in a core's first cache, and hardly any number passes that is no key.
/// What passes would be decoded, in nearly each block if it is one row in a hundred.
const FEW: usize = 1 << 11;

/// A set of integers of 64 bits.
#[derive(Clone, Debug)]
pub struct KeySet {
    least: i64,
    greatest: i64,
    /// Whether all numbers between them are keys, as far as that is known.
    full: bool,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    /// Bit `i` tells of the least number plus `i`.
    Bitmap(BooleanBuffer),
    /// Words of a Bloom filter.
    Bloom(Vec<u64>),
}

/// The word of a key and the bits that it has there.
#[inline(always)]
fn place(key: i64, words: usize) -> (usize, u64) {
    // The halves of a product, folded: one multiplication reaches all bits.
    let product = u128::from(key.cast_unsigned() ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
    let hash = (product >> 64) as u64 ^ product as u64;
    let word = ((hash >> 32) * words as u64) >> 32;
    let bit = |from: u32| 1_u64 << (hash >> from & 63);
    (word as usize, bit(0) | bit(6) | bit(12) | bit(18))
}

impl KeySet {
    /// The set of some keys; none if there is no key.
    pub fn of(keys: &[i64]) -> Option<Self> {
        Self::within(keys, (keys.len() as u64).saturating_mul(SPARSE).max(SMALL), FEW)
    }

    /// The same in little memory, however many are asked about: a bitmap only where it takes a few words for each key.
    pub fn dense(keys: &[i64]) -> Option<Self> {
        Self::within(keys, (keys.len() as u64).saturating_mul(SPARSE), 0)
    }

    /// A bitmap of at most so many bits, or a filter of at least so many words.
    fn within(keys: &[i64], most: u64, least_words: usize) -> Option<Self> {
        let (least, greatest) = (*keys.iter().min()?, *keys.iter().max()?);
        let span = greatest.wrapping_sub(least).cast_unsigned();
        let mut full = false;
        let form = if span < most {
            let len = span as usize + 1;
            let mut bits = Words::zeros(len);
            for key in keys {
                bits.put(key.wrapping_sub(least).cast_unsigned() as usize, true);
            }
            let bits = bits.finish();
            full = bits.count_set_bits() == len;
            Form::Bitmap(bits)
        } else {
            let mut words = vec![0_u64; (keys.len() * BITS).div_ceil(64).max(least_words)];
            for &key in keys {
                let (at, bits) = place(key, words.len());
                words[at] |= bits;
            }
            Form::Bloom(words)
        };
        Some(Self { least, greatest, full, form })
    }

    /// The bytes that a set of so many keys takes at most.
    pub fn most_bytes(keys: usize) -> u64 {
        (keys as u64).saturating_mul(SPARSE).max(SMALL) / 8
    }

    /// Whether it holds the keys and nothing else.
    pub fn is_exact(&self) -> bool {
        matches!(self.form, Form::Bitmap(_))
    }

    /// The least and the greatest key.
    pub fn bounds(&self) -> (i64, i64) {
        (self.least, self.greatest)
    }

    /// Whether a number is in it: true of each key.
    #[inline(always)]
    pub fn contains(&self, value: i64) -> bool {
        match &self.form {
            Form::Bitmap(bits) => {
                let at = value.wrapping_sub(self.least).cast_unsigned() as usize;
                bits.values().get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1)
            }
            Form::Bloom(words) => {
                let (at, bits) = place(value, words.len());
                words.get(at).is_some_and(|word| word & bits == bits)
            }
        }
    }

    /// If a bitmap tells, the least key and a bit for each number from that on.
    pub(crate) fn bitmap(&self) -> Option<(i64, &BooleanBuffer)> {
        match &self.form {
            Form::Bitmap(bits) => Some((self.least, bits)),
            Form::Bloom(_) => None,
        }
    }

    /// Whether all numbers between two, both included, are known to be keys.
    pub fn covers(&self, from: i64, to: i64) -> bool {
        self.full && self.least <= from && to <= self.greatest
    }

    /// Whether any number between two, both included, may be in it.
    pub fn meets(&self, from: i64, to: i64) -> bool {
        let (from, to) = (from.max(self.least), to.min(self.greatest));
        if from > to {
            return false;
        }
        match &self.form {
            Form::Bitmap(bits) => {
                let place = |value: i64| value.wrapping_sub(self.least).cast_unsigned() as usize;
                bits.slice(place(from), place(to) - place(from) + 1).has_true()
            }
            // A few are asked one by one.
            Form::Bloom(_) => to.wrapping_sub(from).cast_unsigned() >= 64 || (from..=to).any(|key| self.contains(key)),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn key() -> impl Strategy<Value = i64> {
        prop_oneof![6 => -200_i64..200, 2 => -3_000_000_i64..3_000_000, 1 => any::<i64>(), 1 => Just(i64::MIN), 1 => Just(i64::MAX)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn no_key_is_missed_and_bitmaps_are_exact(
            keys in prop::collection::vec(prop_oneof![key(), -100_i64..100], 1..300),
            narrow: bool,
            crowded: bool,
            asked in prop::collection::vec((key(), key()), 50),
        ) {
            let modulus = if narrow { 5000 } else { i64::MAX };
            let keys: Vec<i64> = keys.iter().map(|key| key % if crowded { 100 } else { modulus }).collect();
            let (set, model) = (KeySet::of(&keys).unwrap(), keys.iter().copied().collect::<HashSet<i64>>());
            prop_assert!(keys.iter().all(|key| set.contains(*key)));
            let (least, greatest) = (*keys.iter().min().unwrap(), *keys.iter().max().unwrap());
            prop_assert_eq!(set.bounds(), (least, greatest));
            prop_assert!(!narrow && !crowded || set.is_exact());
            for (one, other) in asked {
                let (from, to) = (one.min(other), one.max(other));
                let meets = model.iter().any(|key| (from..=to).contains(key));
                prop_assert!(set.meets(from, to) || !meets, "{from} to {to}");
                let full = greatest.abs_diff(least) == model.len() as u64 - 1;
                prop_assert_eq!(set.covers(from, to), set.is_exact() && full && least <= from && to <= greatest);
                if set.is_exact() {
                    prop_assert_eq!(set.contains(one), model.contains(&one));
                    prop_assert_eq!(set.meets(from, to), meets, "{} to {}", from, to);
                }
            }
        }
    }

    #[test]
    fn few_numbers_pass_that_are_no_keys() {
        let spread = |at: i64| at.wrapping_mul(0x1234_5678_9abc_def1);
        let keys: Vec<i64> = (0..100_000).map(spread).collect();
        let set = KeySet::of(&keys).unwrap();
        assert!(!set.is_exact());
        let passed = (100_000..200_000).filter(|at| set.contains(spread(*at))).count();
        assert!(passed < 2000, "{passed} of 100,000 passed");
        let few = KeySet::of(&keys[..600]).unwrap();
        let passed = (100_000..1_100_000).filter(|at| few.contains(spread(*at))).count();
        assert!(passed < 100, "{passed} of a million passed");
    }

    #[test]
    fn no_keys_are_no_set() {
        assert!(KeySet::of(&[]).is_none());
    }
}
