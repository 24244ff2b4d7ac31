//! The loser tree merges as a sort does.

use super::*;

#[test]
fn it_merges_any_number_of_lists() {
    for lists in 0..20_usize {
        let lists: Vec<Vec<usize>> =
            (0..lists).map(|i| (0..i * 7 % 5).map(|j| j * (i + 3) % 11 + j * 4).collect()).collect();
        let mut lists: Vec<Vec<usize>> = lists;
        lists.iter_mut().for_each(|list| list.sort_unstable());
        let mut expected: Vec<usize> = lists.concat();
        expected.sort_unstable();
        let mut at = vec![0; lists.len()];
        let compare = |at: &[usize], a: usize, b: usize| match (lists[a].get(at[a]), lists[b].get(at[b])) {
            (Some(x), Some(y)) => x.cmp(y).then(a.cmp(&b)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => a.cmp(&b),
        };
        let mut losers = Losers::new(lists.len(), |a, b| compare(&at, a, b));
        let mut merged = Vec::new();
        while let Some(winner) = losers.winner() {
            let Some(&value) = lists[winner].get(at[winner]) else { break };
            merged.push(value);
            at[winner] += 1;
            losers.replay(|a, b| compare(&at, a, b));
        }
        assert_eq!(merged, expected);
    }
}
