//! A set of codes.

use std::ops::Range;

use crate::value_set::{IntSet, ValueSet};

/// Codes of a dictionary, as runs: increasing, apart from each other, none empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Codes(Vec<Range<u32>>);

impl Codes {
    /// All codes of a range.
    pub fn run(codes: Range<u32>) -> Self {
        Self(if codes.is_empty() { Vec::new() } else { vec![codes] })
    }

    /// The codes below `len` that a test on codes holds for ([`crate::dictionary::Dictionary::translate`] makes such).
    pub fn of(test: &ValueSet, len: u32) -> Self {
        let clip = |code: i128| u32::try_from(code.clamp(0, len.into())).unwrap_or(len);
        match test {
            ValueSet::IntRange { lo, hi } => Self::run(clip(*lo)..clip(hi.saturating_add(1))),
            ValueSet::IntSet(set) => match &**set {
                IntSet::Listed(codes) => {
                    let within = codes.iter().filter_map(|&code| u32::try_from(code).ok()).filter(|&code| code < len);
                    Self::of_runs(within.map(|code| code..code + 1))
                }
                IntSet::Keys(keys) => {
                    let among = (0..len).filter(|&code| keys.contains(code.into()));
                    Self::of_runs(among.map(|code| code..code + 1))
                }
                IntSet::Bits(bits) => {
                    Self::of_runs(bits.set_slices().map(|(from, to)| clip(from as i128)..clip(to as i128)))
                }
            },
            ValueSet::Not(inner) => Self::of(inner, len).complement(len),
            _ => Self::default(),
        }
    }

    /// Joins runs that touch.
    fn of_runs(runs: impl Iterator<Item = Range<u32>>) -> Self {
        let mut joined: Vec<Range<u32>> = Vec::new();
        for run in runs.filter(|run| !run.is_empty()) {
            match joined.last_mut() {
                Some(last) if last.end >= run.start => last.end = last.end.max(run.end),
                _ => joined.push(run),
            }
        }
        Self(joined)
    }

    fn complement(&self, len: u32) -> Self {
        let ends = self.0.iter().map(|run| run.start).chain([len]);
        let starts = [0].into_iter().chain(self.0.iter().map(|run| run.end));
        Self::of_runs(starts.zip(ends).map(|(start, end)| start..end))
    }

    /// The codes that are in both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let (mut a, mut b) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut both = Vec::new();
        while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
            both.push(x.start.max(y.start)..x.end.min(y.end));
            if x.end <= y.end {
                a.next()
            } else {
                b.next()
            };
        }
        Self::of_runs(both.into_iter())
    }

    /// The codes that are in one or both.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let mut runs: Vec<_> = self.0.iter().chain(&other.0).cloned().collect();
        runs.sort_unstable_by_key(|run| run.start);
        Self::of_runs(runs.into_iter())
    }

    /// How many.
    pub fn len(&self) -> u64 {
        self.0.iter().map(|run| u64::from(run.end - run.start)).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The runs, in order.
    pub fn runs(&self) -> &[Range<u32>] {
        &self.0
    }

    /// The codes, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().flat_map(Clone::clone)
    }
}
