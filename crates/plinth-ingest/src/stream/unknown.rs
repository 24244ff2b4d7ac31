//! Keys without a column.

use std::collections::BTreeMap;

/// Keys that are counted one by one; others are counted together.
const UNKNOWN_KEYS: usize = 1_000;

/// Keys that the types lack, and how often they were met.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnknownKeys {
    counts: BTreeMap<String, u64>,
}

impl UnknownKeys {
    /// Counts a key.
    pub(crate) fn add(&mut self, name: String, count: u64) {
        let room = self.counts.len() < UNKNOWN_KEYS || self.counts.contains_key(&name);
        *self.counts.entry(if room { name } else { "\u{2026}".to_owned() }).or_default() += count;
    }

    /// Takes another's counts too.
    pub(crate) fn unite(&mut self, other: Self) {
        other.counts.into_iter().for_each(|(name, count)| self.add(name, count));
    }

    /// How often each was met; beyond a thousand, others are counted together.
    pub(crate) fn counts(&self) -> &BTreeMap<String, u64> {
        &self.counts
    }
}
