//! How the blocks of a stream came to be stored, for those that follow.
//!
//! To weigh every encoding for a block takes many times as long as to write it as the one before was. A block is weighed, those after
//! it follow it, and the longer what was weighed stays the same the fewer are weighed again.

use plinth_encoding::Recipe;
use rayon::prelude::*;

use super::chunk::EncodedBlock;
use crate::error::Result;

/// Most row groups from one whose first block is weighed to the next such.
const LONGEST_PAUSE: u32 = 8;

/// What the next blocks of a stream follow. It depends on the values alone, not on threads.
#[derive(Debug, Default)]
pub(super) struct Precedent {
    recipe: Option<Recipe>,
    /// Row groups from the last one with a weighed block to the next.
    pause: u32,
    /// Those that are still to come before it.
    left: u32,
}

impl Precedent {
    /// Encodes the blocks of a row group, each as it is told: weighed, or like another. The first is weighed if it is time; of a
    /// stream's first row group it alone, for the others to follow it.
    pub(super) fn encode<B: Sync>(
        &self,
        blocks: &[B],
        encode: impl Fn(&B, Option<&Recipe>) -> Result<EncodedBlock> + Sync,
    ) -> Result<Vec<EncodedBlock>> {
        let Some(recipe) = &self.recipe else {
            let Some((first, others)) = blocks.split_first() else { return Ok(Vec::new()) };
            let first = encode(first, None)?;
            let like = first.recipe.as_ref();
            let others: Vec<EncodedBlock> =
                others.par_iter().map(|block| encode(block, like)).collect::<Result<_>>()?;
            return Ok([first].into_iter().chain(others).collect());
        };
        let like = |at: usize| if at == 0 && self.left == 0 { None } else { Some(recipe) };
        blocks.par_iter().enumerate().map(|(at, block)| encode(block, like(at))).collect()
    }

    /// Takes what became of a row group.
    pub(super) fn note(&mut self, blocks: &[EncodedBlock]) {
        let chosen = |block: &EncodedBlock| block.recipe.clone().filter(|recipe| !recipe.is_constant());
        if self.recipe.is_some() && self.left > 0 {
            self.left -= 1;
        } else if let Some(weighed) = blocks.first().and_then(chosen) {
            let same = self.recipe.as_ref().is_some_and(|recipe| recipe.is_stored_as(&weighed));
            self.pause = if same { (2 * self.pause).clamp(1, LONGEST_PAUSE) } else { 1 };
            self.left = self.pause - 1;
            self.recipe = Some(weighed);
        }
        if let Some(recipe) = &self.recipe
            && !blocks.iter().filter_map(chosen).all(|other| recipe.is_followed_by(&other))
        {
            self.left = 0;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::sync::Mutex;

    use arrow_buffer::Buffer;
    use plinth_encoding::{Column, EncodeOptions, Physical, Values};

    use super::super::chunk::encode_block;
    use super::*;

    const U32: Physical = Physical::Int { width: 4, signed: false };

    fn column(value: impl Fn(u32) -> u32) -> Column {
        let values: Vec<u32> = (0..4096).map(value).collect();
        Column { len: values.len(), values: Values::Fixed(Buffer::from_vec(values)), nulls: None }
    }

    /// Which of some row groups of three blocks have their first block weighed, and whether no other block is.
    fn weighed(precedent: &mut Precedent, groups: u32, value: impl Fn(u32) -> u32) -> (Vec<u32>, bool) {
        let (mut firsts, mut others) = (Vec::new(), false);
        let blocks: Vec<(usize, Column)> = (0..3).map(|at| (at, column(&value))).collect();
        for group in 0..groups {
            let seen = Mutex::new(Vec::new());
            let encode = |(at, column): &(usize, Column), like: Option<&Recipe>| {
                seen.lock().unwrap().push((*at, like.is_none()));
                encode_block("c", U32, column, false, &EncodeOptions::default(), like)
            };
            let encoded = precedent.encode(&blocks, encode).unwrap();
            precedent.note(&encoded);
            let seen = seen.into_inner().unwrap();
            assert_eq!(seen.len(), blocks.len());
            firsts.extend(seen.contains(&(0, true)).then_some(group));
            others |= seen.iter().any(|&(at, weighed)| at > 0 && weighed);
        }
        (firsts, others)
    }

    /// Numbers that are packed, whatever bits they have.
    fn mixed(row: u32) -> u32 {
        row.wrapping_mul(0x9e37_79b9) >> 12
    }

    #[test]
    fn blocks_that_stay_alike_are_weighed_less_and_less() {
        let mut precedent = Precedent::default();
        assert_eq!(weighed(&mut precedent, 40, mixed), (vec![0, 1, 3, 7, 15, 23, 31, 39], false));
    }

    #[test]
    fn others_are_weighed_at_once() {
        let mut precedent = Precedent::default();
        weighed(&mut precedent, 8, mixed);
        // As they were stored these do not fit; of what fits instead the next row group begins.
        assert_eq!(weighed(&mut precedent, 4, |row| row / 64 % 7 * 1000), (vec![1, 2], false));
        // Where there is nothing to choose, what was chosen before is kept.
        assert_eq!(weighed(&mut precedent, 3, |_| 5), (vec![0, 1, 2], false));
        assert_eq!(weighed(&mut precedent, 4, |row| row / 64 % 7 * 1000), (vec![0], false));
    }

    #[test]
    fn those_that_only_pack_worse_are_weighed_at_once_too() {
        let mut precedent = Precedent::default();
        weighed(&mut precedent, 16, |row| mixed(row) & 0xff);
        // The next row group begins anew, instead of those after it being written twice each.
        assert_eq!(weighed(&mut precedent, 4, |row| mixed(row) & 0x3fff), (vec![1, 2], false));
    }
}
