//! The search for the longest token that a piece goes on with, in steps: what is to be compared was asked of memory a step before,
//! so that searches of several pieces wait for it together and not one after the other.

use plinth_core::prefetch::prefetch;

use super::{Longest, PADDING, token_of};

/// Pieces that are cut at the same time.
pub(super) const LANES: usize = 8;
/// Pieces that are laid out together, and bytes of them after which there are no more.
const SIDE_BY_SIDE: usize = 1024;
const BYTES: usize = 1 << 20;

/// How many of some pieces are laid out together.
pub(super) fn side_by_side<'p>(pieces: impl IntoIterator<Item = &'p [u8]>) -> usize {
    let mut bytes = 0;
    let fits = |piece: &&[u8]| {
        let fits = bytes < BYTES;
        bytes += piece.len();
        fits
    };
    pieces.into_iter().take(SIDE_BY_SIDE).take_while(fits).count()
}

/// Pieces end to end, with zeros after each, so that there is a word wherever a piece has a byte.
#[derive(Default)]
pub(super) struct Layout {
    pub(super) padded: Vec<u8>,
    /// Where each piece begins and ends.
    pub(super) places: Vec<(usize, usize)>,
}

impl Layout {
    /// Lays out these pieces instead of those before.
    pub(super) fn lay(&mut self, pieces: &[&[u8]]) {
        self.padded.clear();
        self.places.clear();
        for piece in pieces {
            let start = self.padded.len();
            self.padded.extend_from_slice(piece);
            self.places.push((start, self.padded.len()));
            self.padded.extend_from_slice(&[0; PADDING]);
        }
    }
}

/// Where in a piece the search is, and for what.
pub(super) struct Search {
    at: usize,
    end: usize,
    /// The bytes from there on.
    word: u128,
    /// The lengths that were not looked for yet.
    lengths: u16,
    /// What is looked for, if anything, and the slot it may be in.
    len: u32,
    token: u128,
    slot: usize,
}

impl Search {
    /// Begins with the piece at a place.
    pub(super) fn begin((start, end): (usize, usize), longest: &Longest, padded: &[u8]) -> Self {
        let mut search = Self { at: start, end, word: 0, lengths: 0, len: 0, token: 0, slot: 0 };
        search.go_on(longest, padded);
        search
    }

    /// Whether the piece is cut.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.at >= self.end
    }

    /// Looks at the slot: gives the token that the piece goes on with and its length, if that is known by now, and
    /// begins to look for the next.
    #[inline]
    pub(super) fn step(&mut self, longest: &Longest, padded: &[u8]) -> Option<(u16, usize)> {
        let held = longest.slots.get(self.slot).copied().unwrap_or(0);
        let (number, len) = if self.len == 0 {
            (longest.of_byte(self.word), 1)
        } else if held == self.token {
            (longest.ids.get(self.slot).copied().unwrap_or(0), self.len as usize)
        } else if held != 0 {
            self.ask(longest, self.slot + 1);
            return None;
        } else if self.look_for_next(longest) {
            return None;
        } else {
            (longest.of_byte(self.word), 1)
        };
        self.at += len;
        self.go_on(longest, padded);
        Some((number, len))
    }

    #[inline]
    fn go_on(&mut self, longest: &Longest, padded: &[u8]) {
        let Some(word) = padded.get(self.at..).and_then(|rest| rest.first_chunk()) else { return };
        self.word = u128::from_le_bytes(*word);
        self.lengths = longest.lengths_of(self.word, self.end.saturating_sub(self.at));
        self.look_for_next(longest);
    }

    /// Begins to look for the longest token that was not looked for yet; false if there is none.
    #[inline]
    fn look_for_next(&mut self, longest: &Longest) -> bool {
        let Some(len) = self.lengths.checked_ilog2() else {
            self.len = 0;
            return false;
        };
        self.lengths ^= 1 << len;
        (self.len, self.token) = (len, token_of(self.word, len));
        self.ask(longest, longest.first_place(self.token));
        true
    }

    #[inline]
    fn ask(&mut self, longest: &Longest, slot: usize) {
        self.slot = slot & (longest.slots.len() - 1);
        if let (Some(held), Some(id)) = (longest.slots.get(self.slot), longest.ids.get(self.slot)) {
            prefetch(held);
            prefetch(id);
        }
    }
}
