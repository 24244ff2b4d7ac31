//! Which parts of a file are free.
//!
//! Nothing on storage says so: free is what no page refers to, which is found out by reading the inner nodes when an index
//! is opened. A page that the last checkpoint has is never written to; what replaces it goes elsewhere, and its place is free
//! once there is a newer checkpoint. From when a checkpoint begins to write what is left to write until it is the newest, it may
//! have any page that is in use, or was since then: each write goes to a new place, and what is retired waits for the checkpoint after.

use hashbrown::HashSet;

use crate::page::{CLASSES, NUMBERS};

/// Places of pages, in units of 4,096 bytes. A page of class `c` takes `2^c` of them and starts at a multiple of that.
#[derive(Debug, Default)]
pub(crate) struct Space {
    free: [Vec<u64>; CLASSES],
    /// The first number behind all that were ever given.
    end: u64,
    /// Given since the last checkpoint: such a page may be written where it is.
    fresh: HashSet<u64>,
    /// In the last checkpoint, and not in use any more.
    retired: Vec<(usize, u64)>,
    /// A checkpoint is about to be the newest.
    switching: bool,
    /// Not in use any more since then.
    later: Vec<(usize, u64)>,
}

impl Space {
    /// All free but the units that are in use, which ascend.
    pub(crate) fn around(used: impl Iterator<Item = (u64, usize)>, first: u64) -> Self {
        let mut space = Self { end: first, ..Self::default() };
        for (number, class) in used {
            space.gap(number);
            space.end = number + (1 << class);
        }
        space
    }

    /// Frees what lies between the end and a number, which becomes the end.
    fn gap(&mut self, to: u64) {
        while self.end < to {
            let fits = |class: &usize| self.end.is_multiple_of(1 << class) && self.end + (1 << class) <= to;
            let class = (0..CLASSES).rev().find(fits).unwrap_or(0);
            self.put(class, self.end);
            self.end += 1 << class;
        }
    }

    fn put(&mut self, class: usize, number: u64) {
        if let Some(free) = self.free.get_mut(class) {
            free.push(number);
        }
    }

    /// A place for a page.
    pub(crate) fn allocate(&mut self, class: usize) -> Option<u64> {
        let number = self.free.get_mut(class)?.pop().or_else(|| self.cut(class)).or_else(|| self.extend(class))?;
        self.fresh.insert(number);
        Some(number)
    }

    /// From a larger place.
    fn cut(&mut self, class: usize) -> Option<u64> {
        let larger = (class + 1..CLASSES).find(|&larger| self.free.get(larger).is_some_and(|free| !free.is_empty()))?;
        let number = self.free.get_mut(larger)?.pop()?;
        for half in class..larger {
            self.put(half, number + (1 << half));
        }
        Some(number)
    }

    fn extend(&mut self, class: usize) -> Option<u64> {
        let number = self.end.next_multiple_of(1 << class);
        let end = number + (1 << class);
        if end > NUMBERS {
            return None;
        }
        self.gap(number);
        self.end = end;
        Some(number)
    }

    /// Whether a page may be written where it is.
    pub(crate) fn is_fresh(&self, number: u64) -> bool {
        !self.switching && self.fresh.contains(&number)
    }

    /// Nothing will refer to a place any more.
    pub(crate) fn retire(&mut self, class: usize, number: u64) {
        if self.switching {
            self.later.push((class, number));
        } else if self.fresh.remove(&number) {
            self.put(class, number);
        } else {
            self.retired.push((class, number));
        }
    }

    /// A checkpoint writes its last pages.
    pub(crate) fn switch(&mut self) {
        self.switching = true;
    }

    /// It is the newest now.
    pub(crate) fn checkpointed(&mut self) {
        self.fresh.clear();
        let later = std::mem::take(&mut self.later);
        for (class, number) in std::mem::replace(&mut self.retired, later) {
            self.put(class, number);
        }
        self.switching = false;
    }

    /// It is not, or is already.
    pub(crate) fn switched(&mut self) {
        self.switching = false;
        for (class, number) in std::mem::take(&mut self.later) {
            self.retire(class, number);
        }
    }

    /// There may be a new checkpoint, or not: no page of either is to be written to.
    pub(crate) fn freeze(&mut self) {
        self.fresh.clear();
    }

    /// Units that may be given.
    #[cfg(test)]
    pub(crate) fn free_units(&self) -> u64 {
        (0_u64..).zip(&self.free).map(|(class, free)| (free.len() as u64) << class).sum()
    }

    /// Units of the file that are, or were, in use.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// No place is given twice, none that the last checkpoint has is given, and all come back.
        #[test]
        fn places_do_not_overlap(steps in prop::collection::vec((0..6_u8, 0..CLASSES, any::<prop::sample::Index>()), 1..400)) {
            let mut space = Space::around(std::iter::empty(), 2);
            let mut used: Vec<(u64, usize)> = Vec::new();
            let mut kept: Vec<(u64, usize)> = Vec::new();
            // What a checkpoint that is not the newest yet may have.
            let mut coming: Option<Vec<(u64, usize)>> = None;
            for (step, class, pick) in steps {
                match step {
                    0 | 1 => {
                        let number = space.allocate(class).unwrap();
                        prop_assert!(number >= 2 && number.is_multiple_of(1 << class));
                        for &(other, of) in used.iter().chain(&kept).chain(coming.iter().flatten()) {
                            prop_assert!(number >= other + (1 << of) || other >= number + (1 << class));
                        }
                        prop_assert_eq!(space.is_fresh(number), coming.is_none());
                        used.push((number, class));
                        coming.as_mut().map(|coming| coming.push((number, class))).unwrap_or_default();
                    }
                    2 if !used.is_empty() => {
                        let (number, class) = used.swap_remove(pick.index(used.len()));
                        space.retire(class, number);
                    }
                    3 if coming.is_none() => {
                        space.switch();
                        coming = Some(used.clone());
                    }
                    4 => {
                        if let Some(coming) = coming.take() {
                            space.checkpointed();
                            kept = coming;
                        }
                    }
                    5 => {
                        space.switched();
                        coming = None;
                    }
                    _ => {}
                }
            }
            used.sort_unstable();
            let mut again = Space::around(used.iter().copied(), 2);
            let end = again.end();
            while let Some(number) = again.free.iter().any(|f| !f.is_empty()).then(|| again.allocate(0)).flatten() {
                prop_assert!(number < end);
                used.push((number, 0));
            }
            used.sort_unstable();
            let covered: u64 = used.iter().map(|(_, class)| 1_u64 << class).sum();
            prop_assert_eq!(covered, end - 2);
        }
    }
}
