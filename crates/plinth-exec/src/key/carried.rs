//! Columns that the key of a group determines: their numbers lie beside it, unpacked, and are read for the first row of each group alone.

mod texts;

use std::sync::Arc;

use arrow_array::{ArrayRef, UInt32Array};
use arrow_buffer::NullBuffer;
use plinth_io::MemoryBudget;

use self::texts::Texts;
use super::{Keys, Meaning, Place as Where};
use crate::error::Result;
use crate::key::mark_nulls;
use crate::rows::{Rows, StatesRead};
use crate::vector::Vector;

/// Columns that are carried at most: a bit of a word tells of each whether it is null.
const MOST: usize = 64;

/// The word whose bits tell of nulls.
const NULLS: usize = 0;

/// Where the numbers of a carried column lie among a group's states.
#[derive(Clone, Debug)]
pub(super) struct Place {
    word: usize,
    bit: usize,
    /// Of byte strings the values that the numbers name.
    texts: Option<Arc<Texts>>,
}

/// Words that are given to carried columns.
#[derive(Debug, Default)]
pub(super) struct Words {
    columns: usize,
    words: usize,
}

impl Words {
    /// Words for one more column; none if there are too many columns.
    pub(super) fn place(&mut self, meaning: &Meaning, budget: &Arc<MemoryBudget>) -> Option<Place> {
        if self.columns == MOST {
            return None;
        }
        let texts = match meaning {
            Meaning::Domain(domain) => Texts::of(domain.data_type(), budget).map(Arc::new),
            Meaning::Numbers(..) | Meaning::Codes(_) => None,
        };
        let place = Place { word: self.words.max(NULLS + 1), bit: self.columns, texts };
        (self.columns, self.words) = (self.columns + 1, place.word + meaning.width());
        Some(place)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.words
    }
}

impl Place {
    /// The values of some groups; numbers as those of a meaning.
    pub(super) fn values(&self, meaning: &Meaning, states: &StatesRead<'_>, groups: &[u32]) -> Result<ArrayRef> {
        let number = |word| groups.iter().map(|&group| states.word(group, word).cast_signed()).collect();
        let numbers: Vec<Vec<i64>> = (self.word..self.word + meaning.width()).map(number).collect();
        let valid: Vec<bool> = groups.iter().map(|&group| states.word(group, NULLS) >> self.bit & 1 == 0).collect();
        let nulls = valid.contains(&false).then(|| NullBuffer::from(valid));
        match (&self.texts, numbers.as_slice()) {
            (Some(texts), [numbers, ..]) => texts.values(numbers, nulls),
            _ => meaning.values(&numbers, nulls),
        }
    }

    /// The numbers of some values.
    fn read(&self, meaning: &Meaning, column: &Vector, into: &mut [Vec<i64>]) -> Result<()> {
        match (&self.texts, into) {
            (Some(texts), [into, ..]) => texts.numbers(column, into),
            (_, into) => meaning.read(column, into),
        }
    }
}

impl Keys {
    /// Keeps the values of carried columns for the groups from a number on, each of the first of its rows; `groups` has the group of each row.
    ///
    /// # Errors
    /// If a value can't be had, or there is no memory to number it.
    pub(crate) fn carry(&self, columns: &[Vector], groups: &[u32], from: usize, rows: &mut Rows) -> Result<()> {
        if self.carried == 0 || rows.len() == from {
            return Ok(());
        }
        // Groups are numbered as they come.
        let mut firsts = Vec::with_capacity(rows.len() - from);
        for (row, group) in (0_u32..).zip(groups) {
            if *group as usize == from + firsts.len() {
                firsts.push(row);
            }
        }
        let firsts = UInt32Array::from(firsts);
        let mut nulls = vec![0_u64; firsts.len()];
        let (mut numbers, mut null) = (Vec::new(), Vec::new());
        let first = u32::try_from(from).unwrap_or(u32::MAX);
        for ((meaning, place), column) in self.meanings.iter().zip(&self.places).zip(columns) {
            let Where::Carried(place) = place else { continue };
            let column = column.rows(&firsts)?;
            numbers.resize_with(meaning.width().max(numbers.len()), Vec::new);
            place.read(meaning, &column, &mut numbers[..meaning.width()])?;
            mark_nulls(column.nulls().as_ref(), firsts.len(), &mut null);
            nulls.iter_mut().zip(&null).for_each(|(bits, null)| *bits |= null.cast_unsigned() << place.bit);
            let mut states = rows.states();
            for (word, numbers) in (place.word..).zip(&numbers[..meaning.width()]) {
                (first..).zip(numbers).for_each(|(group, number)| states.set(group, word, number.cast_unsigned()));
            }
        }
        let mut states = rows.states();
        (first..).zip(&nulls).for_each(|(group, bits)| states.set(group, NULLS, *bits));
        Ok(())
    }

    /// Takes the values of carried columns over for the groups from a number on: those of other rows' groups, by the states of these, that were
    /// found to be `targets`.
    pub(crate) fn carry_over(
        &self,
        (source, groups): (StatesRead<'_>, impl Iterator<Item = u32>),
        targets: &[u32],
        from: usize,
        rows: &mut Rows,
    ) {
        if self.carried == 0 || rows.len() == from {
            return;
        }
        let mut next = from;
        let mut states = rows.states();
        for (group, target) in groups.zip(targets) {
            if *target as usize == next {
                next += 1;
                (0..self.carried).for_each(|word| states.set(*target, word, source.word(group, word)));
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
