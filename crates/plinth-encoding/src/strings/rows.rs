//! Sets asked of strings as they lie in a heap, end to end.

use arrow_buffer::BooleanBuffer;

use crate::bitpack::VECTOR;
use crate::bits::Words;
use crate::ints::{Wanted, is_wanted};
use crate::pattern::Pattern;
use crate::value_set::ValueSet;

/// Which strings are in a set; none of vectors that are not wanted, which the heap does not hold. The lengths of the others must
/// add up to the heap's.
pub(super) fn evaluate(set: &ValueSet, lengths: &[u32], heap: &[u8], wanted: Wanted<'_>) -> BooleanBuffer {
    let mut hits = Words::zeros(lengths.len());
    let mut from = 0;
    for (i, lengths) in lengths.chunks(VECTOR).enumerate().filter(|(i, _)| is_wanted(wanted, *i)) {
        let to = from + lengths.iter().map(|&len| len as usize).sum::<usize>();
        let strings = Strings { lengths, heap: heap.get(from..to).unwrap_or_default() };
        let mut hit = |row| hits.put(i * VECTOR + row, true);
        match (set, set.few_bytes()) {
            (ValueSet::BytesLike(pattern), _) => strings.like(pattern, &mut hit),
            (_, Some(few)) => strings.each(|value| few.iter().any(|one| **one == *value), &mut hit),
            _ => strings.each(|value| set.holds_bytes(value), &mut hit),
        }
        from = to;
    }
    hits.finish()
}

/// The strings of a vector.
struct Strings<'h> {
    lengths: &'h [u32],
    heap: &'h [u8],
}

impl Strings<'_> {
    /// Tells of those a test holds for.
    #[inline(always)]
    fn each(&self, holds: impl Fn(&[u8]) -> bool, hit: &mut impl FnMut(usize)) {
        let mut rest = self.heap;
        for (row, &len) in self.lengths.iter().enumerate() {
            let Some((value, tail)) = rest.split_at_checked(len as usize) else { return };
            rest = tail;
            if holds(value) {
                hit(row);
            }
        }
    }

    /// Tells of those of a pattern: the heap is searched for one part of it as if it were one string.
    fn like(&self, pattern: &Pattern, hit: &mut impl FnMut(usize)) {
        let Some(needle) = pattern.needle() else { return self.each(|value| pattern.matches(value), hit) };
        let only = pattern.only_contains();
        let mut rows = self.lengths.iter().enumerate();
        let mut from = 0;
        while let Some(found) = self.heap.get(from..).and_then(|rest| needle.find(rest)) {
            let found = from + found;
            // The string in which it begins. If it ends in another, so does all that begins behind it in this one.
            let Some((row, start)) = rows.by_ref().find_map(|(row, &len)| {
                let start = from;
                from += len as usize;
                (from > found).then_some((row, start))
            }) else {
                return;
            };
            let holds = || only || self.heap.get(start..from).is_some_and(|value| pattern.matches(value));
            if found + needle.needle().len() <= from && holds() {
                hit(row);
            }
        }
    }
}
