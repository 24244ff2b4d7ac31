//! A tree of losers: the smallest of many heads, with one comparison a level when it moves on.

use std::cmp::Ordering;

/// A tournament among a fixed number of players. Whoever owns it says how they compare.
#[derive(Debug)]
pub(super) struct Losers {
    /// `tree[0]` is the winner; every other node holds who lost there.
    tree: Vec<usize>,
    players: usize,
}

impl Losers {
    /// Plays the whole tournament; `compare` never says that two players are equal.
    pub(super) fn new(players: usize, compare: impl Fn(usize, usize) -> Ordering) -> Self {
        let mut this = Self { tree: vec![usize::MAX; players.max(1)], players };
        for player in (0..players).rev() {
            this.enter(player, &compare);
        }
        this
    }

    /// The smallest player, if there are any.
    pub(super) fn winner(&self) -> Option<usize> {
        self.tree.first().copied().filter(|&winner| winner < self.players)
    }

    /// Plays the winner's games again after its value changed.
    pub(super) fn replay(&mut self, compare: impl Fn(usize, usize) -> Ordering) {
        if let Some(mut winner) = self.winner() {
            let mut node = (winner + self.players) / 2;
            while node > 0 {
                if compare(self.tree[node], winner) == Ordering::Less {
                    std::mem::swap(&mut self.tree[node], &mut winner);
                }
                node /= 2;
            }
            self.tree[0] = winner;
        }
    }

    /// Lets a player enter an unfinished tournament: at the first node nobody waits at, it waits.
    fn enter(&mut self, player: usize, compare: &impl Fn(usize, usize) -> Ordering) {
        let mut winner = player;
        let mut node = (player + self.players) / 2;
        while node > 0 {
            if self.tree[node] == usize::MAX {
                self.tree[node] = winner;
                return;
            }
            if compare(self.tree[node], winner) == Ordering::Less {
                std::mem::swap(&mut self.tree[node], &mut winner);
            }
            node /= 2;
        }
        self.tree[0] = winner;
    }
}

#[cfg(test)]
mod tests {
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
}
