//! Tokens of two that meet often.

use plinth_core::prefetch::prefetch;

use super::search::{LANES, Layout, Search};
use super::{LONGEST, Longest};
use crate::dictionary::entry::mix;

/// Most pairs that are counted at a time.
const PAIRS: usize = 1 << 20;

/// What is counted while tokens are learned.
pub(super) struct Learner {
    layout: Layout,
    pairs: Pairs,
}

/// A piece that is learned from.
struct Lane {
    search: Search,
    /// The token before, and its length.
    before: Option<(u16, usize)>,
    /// The token after that: the pair of both is not counted yet.
    after: Option<(u16, usize)>,
}

impl Learner {
    /// For a sample of so many bytes, of which two tokens must meet so often to be made one.
    pub(super) fn new(bytes: usize, often: usize) -> Self {
        Self { layout: Layout::default(), pairs: Pairs::new(bytes / 8, often) }
    }

    /// Counts the pairs of the tokens of some pieces, and makes tokens of those that are frequent.
    pub(super) fn learn(&mut self, longest: &mut Longest, pieces: &[&[u8]]) {
        self.layout.lay(pieces);
        let Layout { padded, places } = &self.layout;
        let mut waiting = places.iter().filter(|(start, end)| start < end);
        let mut next = |longest: &Longest| {
            let place = waiting.next()?;
            Some(Lane { search: Search::begin(*place, longest, padded), before: None, after: None })
        };
        let mut lanes: Vec<Lane> = (0..LANES).map_while(|_| next(longest)).collect();
        while !lanes.is_empty() {
            lanes.retain_mut(|lane| {
                lane.count(longest, &mut self.pairs);
                if !lane.search.is_over() {
                    lane.after = lane.search.step(longest, padded);
                    lane.ask(&self.pairs);
                    return true;
                }
                next(longest).map(|another| *lane = another).is_some()
            });
        }
    }
}

impl Lane {
    /// Asks memory for what is counted of the pair that was found, for [`Lane::count`].
    #[inline]
    fn ask(&self, pairs: &Pairs) {
        if let (Some((first, _)), Some((second, _))) = (self.before, self.after) {
            pairs.ask(first, second);
        }
    }

    /// Counts the pair that was found, and makes a token of it if it is frequent: then that is the one before.
    #[inline]
    fn count(&mut self, longest: &mut Longest, pairs: &mut Pairs) {
        let Some((id, len)) = self.after.take() else { return };
        let both = self.before.filter(|&(first, held)| held + len <= LONGEST && pairs.is_frequent(first, id));
        let joined = both.and_then(|(first, held)| Some((longest.join(first, id)?, held + len)));
        self.before = Some(joined.unwrap_or((id, len)));
    }
}

fn pair_of(first: u16, second: u16) -> u32 {
    u32::from(first) << 16 | u32::from(second)
}

/// How often pairs were met: of pairs that want the same slot, the one that comes more often has it in the end.
struct Pairs {
    slots: Vec<(u32, u32)>,
    often: u32,
}

impl Pairs {
    fn new(expected: usize, often: usize) -> Self {
        let slots = expected.clamp(1024, PAIRS).next_power_of_two();
        Self { slots: vec![(0, 0); slots], often: u32::try_from(often).unwrap_or(u32::MAX) }
    }

    #[inline]
    fn place(&self, pair: u32) -> usize {
        mix(pair.into(), 0) as usize & (self.slots.len() - 1)
    }

    /// Asks memory for what is counted of a pair.
    #[inline]
    fn ask(&self, first: u16, second: u16) {
        if let Some(slot) = self.slots.get(self.place(pair_of(first, second))) {
            prefetch(slot);
        }
    }

    /// Counts a pair, and forgets it once it was met often enough.
    #[inline]
    fn is_frequent(&mut self, first: u16, second: u16) -> bool {
        let pair = pair_of(first, second);
        let at = self.place(pair);
        let Some((held, count)) = self.slots.get_mut(at) else { return false };
        if *held == pair {
            *count += 1;
        } else if *count > 1 {
            *count -= 1;
            return false;
        } else {
            (*held, *count) = (pair, 1);
        }
        let frequent = *count >= self.often;
        if frequent {
            *count = 0;
        }
        frequent
    }
}
