//! Which rows of a part of the table are not there any more.
//!
//! A bitmap in tiles of 8,192 rows, shared between versions of the table: who deletes a row copies its tile and the list of
//! tiles, unless no other version has them. So a version never changes under those who read it.

use std::sync::Arc;

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};

/// Rows of a tile.
pub(crate) const TILE: u32 = 8192;

const WORDS: usize = TILE as usize / 64;

type Tile = [u64; WORDS];

/// The rows that were deleted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deletes {
    /// Of rows beyond the last tile none is.
    tiles: Arc<Vec<Option<Arc<Tile>>>>,
    count: u64,
}

fn split(row: u32) -> (usize, usize, u64) {
    ((row / TILE) as usize, ((row % TILE) / 64) as usize, 1 << (row % 64))
}

impl Deletes {
    /// All of so many rows.
    pub(crate) fn all(rows: u32) -> Self {
        let full = Arc::new([u64::MAX; WORDS]);
        let mut tiles: Vec<_> = (0..rows / TILE).map(|_| Some(Arc::clone(&full))).collect();
        let mut last = [0; WORDS];
        for row in 0..rows % TILE {
            let (_, word, bit) = split(row);
            if let Some(word) = last.get_mut(word) {
                *word |= bit;
            }
        }
        tiles.push(Some(Arc::new(last)));
        Self { tiles: Arc::new(tiles), count: u64::from(rows) }
    }

    pub(crate) fn contains(&self, row: u32) -> bool {
        let (tile, word, bit) = split(row);
        let tile = self.tiles.get(tile).and_then(Option::as_ref);
        tile.and_then(|tile| tile.get(word)).is_some_and(|word| word & bit != 0)
    }

    /// Deletes a row; false if it was deleted before.
    pub(crate) fn insert(&mut self, row: u32) -> bool {
        if self.contains(row) {
            return false;
        }
        let (tile, word, bit) = split(row);
        let tiles = Arc::make_mut(&mut self.tiles);
        if tiles.len() <= tile {
            tiles.resize(tile + 1, None);
        }
        if let Some(slot) = tiles.get_mut(tile) {
            let words = Arc::make_mut(slot.get_or_insert_with(|| Arc::new([0; WORDS])));
            if let Some(word) = words.get_mut(word) {
                *word |= bit;
            }
        }
        self.count += 1;
        true
    }

    /// How many.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// All rows, in order.
    pub(crate) fn rows(&self) -> impl Iterator<Item = u32> {
        self.since(&EMPTY)
    }

    /// The rows that were deleted since an earlier version, in order.
    pub(crate) fn since<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = u32> + 'a {
        self.tiles.iter().enumerate().flat_map(move |(i, tile)| {
            let before = before.tiles.get(i).and_then(Option::as_ref);
            let changed = tile.as_ref().filter(|tile| before.is_none_or(|before| !Arc::ptr_eq(before, tile)));
            let first = u32::try_from(i).unwrap_or(u32::MAX).saturating_mul(TILE);
            let words = changed.into_iter().flat_map(|tile| tile.iter().enumerate());
            words.flat_map(move |(w, &word)| {
                let known = before.and_then(|before| before.get(w)).copied().unwrap_or(0);
                let first = first + u32::try_from(w * 64).unwrap_or(0);
                bits(word & !known).map(move |bit| first + bit)
            })
        })
    }

    /// The rows of a range that are there, one bit each; `None` if all are.
    pub(crate) fn kept(&self, from: u32, rows: usize) -> Option<BooleanBuffer> {
        if self.count == 0 {
            return None;
        }
        let mut kept = BooleanBufferBuilder::new(rows);
        kept.append_n(rows, true);
        let mut any = false;
        let end = u64::from(from) + rows as u64;
        let first = (from / TILE) as usize;
        for (i, tile) in self.tiles.iter().enumerate().skip(first).take(rows / TILE as usize + 2) {
            let Some(tile) = tile else { continue };
            let start = i as u64 * u64::from(TILE);
            for (w, &word) in tile.iter().enumerate().filter(|(_, word)| **word != 0) {
                for bit in bits(word) {
                    let row = start + (w * 64) as u64 + u64::from(bit);
                    if row >= u64::from(from) && row < end {
                        kept.set_bit(usize::try_from(row - u64::from(from)).unwrap_or(0), false);
                        any = true;
                    }
                }
            }
        }
        any.then(|| kept.finish())
    }
}

static EMPTY: std::sync::LazyLock<Deletes> = std::sync::LazyLock::new(Deletes::default);

fn bits(mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros())?;
        word &= word - 1;
        Some(bit)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_set_whose_versions_do_not_change(first in prop::collection::vec(0_u32..40_000, 0..50),
                                                    second in prop::collection::vec(0_u32..40_000, 0..50),
                                                    from in 0_u32..30_000, rows in 0_usize..12_000) {
            let mut deletes = Deletes::default();
            let mut model = BTreeSet::new();
            for &row in &first {
                prop_assert_eq!(deletes.insert(row), model.insert(row));
            }
            let (before, known) = (deletes.clone(), model.clone());
            for &row in &second {
                prop_assert_eq!(deletes.insert(row), model.insert(row));
            }
            prop_assert_eq!(deletes.rows().collect::<BTreeSet<_>>(), model.clone());
            prop_assert_eq!(before.rows().collect::<BTreeSet<_>>(), known.clone());
            prop_assert_eq!(deletes.count(), model.len() as u64);
            let since: Vec<u32> = deletes.since(&before).collect();
            prop_assert_eq!(since, model.difference(&known).copied().collect::<Vec<_>>());
            let all = Deletes::all(from);
            prop_assert_eq!(all.count(), u64::from(from));
            prop_assert!(all.rows().eq(0..from) && !all.contains(from));
            prop_assert!(all.since(&Deletes::default()).eq(0..from));
            let kept = deletes.kept(from, rows);
            for i in 0..rows {
                let row = from + u32::try_from(i).unwrap();
                prop_assert_eq!(kept.as_ref().is_none_or(|kept| kept.value(i)), !model.contains(&row));
            }
        }
    }
}
