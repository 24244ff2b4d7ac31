//! Pieces as the numbers of their tokens.

use super::Longest;
use super::search::{LANES, Layout, Search};

/// The numbers of the tokens of some pieces.
#[derive(Default)]
pub(super) struct Cut {
    layout: Layout,
    /// Of each piece from where it is laid out on: there are no more than it has bytes.
    numbers: Vec<u16>,
    /// Where the numbers of each end.
    ends: Vec<usize>,
}

impl Cut {
    /// Cuts these pieces instead of those before.
    pub(super) fn cut(&mut self, longest: &Longest, pieces: &[&[u8]]) {
        self.layout.lay(pieces);
        let Layout { padded, places } = &self.layout;
        self.numbers.resize(padded.len(), 0);
        self.ends.clear();
        self.ends.extend(places.iter().map(|&(start, _)| start));
        let mut waiting = places.iter().zip(&mut self.ends).filter(|(place, _)| place.0 < place.1);
        let mut next = || waiting.next().map(|(&place, end)| (Search::begin(place, longest, padded), end));
        let mut lanes: Vec<(Search, &mut usize)> = (0..LANES).map_while(|_| next()).collect();
        while !lanes.is_empty() {
            lanes.retain_mut(|lane| {
                let (search, end) = lane;
                if let Some((number, _)) = search.step(longest, padded) {
                    if let Some(slot) = self.numbers.get_mut(**end) {
                        *slot = number;
                    }
                    **end += 1;
                }
                !search.is_over() || next().map(|another| *lane = another).is_some()
            });
        }
    }

    /// The numbers of each piece.
    pub(super) fn pieces(&self) -> impl Iterator<Item = &[u16]> {
        let places = self.layout.places.iter().zip(&self.ends);
        places.map(|(&(start, _), &end)| self.numbers.get(start..end).unwrap_or(&[]))
    }
}
