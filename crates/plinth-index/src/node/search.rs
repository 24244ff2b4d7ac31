//! Finding a key among sorted ones, without branches that depend on the keys.

use std::hint::select_unpredictable;

/// The first of `[from, to)` that is not `below`, which holds for some first ones; a page's keys may change meanwhile, and
/// then it is any of them.
#[inline]
pub(crate) fn partition(from: usize, to: usize, below: impl Fn(usize) -> bool) -> usize {
    let (mut base, mut len) = (from, to.saturating_sub(from));
    if len == 0 {
        return from;
    }
    while len > 1 {
        let half = len / 2;
        base = select_unpredictable(below(base + half - 1), base + half, base);
        len -= half;
    }
    base + usize::from(below(base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partition_finds_the_first() {
        for from in 0..3 {
            for to in from..70 {
                for first in from..=to {
                    assert_eq!(partition(from, to, |at| at < first), first);
                }
            }
        }
        assert_eq!(partition(5, 3, |_| true), 5);
    }
}
