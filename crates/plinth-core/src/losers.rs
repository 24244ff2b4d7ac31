//! A tree of losers: the smallest of many heads, with one comparison a level when it moves on (Knuth, "The Art of Computer
//! Programming", volume 3, 5.4.1).

use std::cmp::Ordering;

/// A tournament among a fixed number of players. Its owner says how they compare.
#[derive(Debug)]
pub struct Losers {
    /// `tree[0]` is the winner; every other node holds who lost there.
    tree: Vec<usize>,
    players: usize,
}

impl Losers {
    /// Plays the whole tournament; `compare` never says that two players are equal.
    pub fn new(players: usize, compare: impl Fn(usize, usize) -> Ordering) -> Self {
        let mut this = Self { tree: vec![usize::MAX; players.max(1)], players };
        for player in (0..players).rev() {
            this.enter(player, &compare);
        }
        this
    }

    /// The smallest player, if there are any.
    #[inline]
    pub fn winner(&self) -> Option<usize> {
        self.tree.first().copied().filter(|&winner| winner < self.players)
    }

    /// Plays the winner's games again after its value changed.
    pub fn replay(&mut self, compare: impl Fn(usize, usize) -> Ordering) {
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

    /// Lets a player enter an unfinished tournament: at the first node where no other waits, it waits.
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
mod tests;
