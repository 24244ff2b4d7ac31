//! Records of doubles that follow one template: the same keys in the same order with the same spaces, and nothing but other
//! numbers between.
//!
//! What is around the numbers of one sound record is learned ([`Template`]); as long as the following bytes are just that, with
//! numbers between, they are sound records too, and nothing of them needs to be looked at twice. The first record that is
//! spelled otherwise ends the run and is left to the tokenizer, which says what it is.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod kernel;

use std::ops::Range;

use super::members::Members;
use crate::bits::Level;
use kernel::{Portable, Template, take};

/// Records of a run that was worth the attempt.
const WORTH: usize = 4;

/// Records after which to try again, at most.
const PATIENCE: u32 = 1 << 12;

/// Finds runs of records that follow one template.
#[derive(Debug)]
pub(super) struct Runs {
    level: Level,
    template: Option<Template>,
    /// Records to let pass before the next attempt, and before the one after that if it fails too.
    wait: u32,
    patience: u32,
}

impl Runs {
    pub(super) fn new(level: Level) -> Self {
        Self { level, template: None, wait: 0, patience: 0 }
    }

    /// Whether an attempt may be worth it. To be asked once a record.
    #[inline(always)]
    pub(super) fn is_due(&mut self) -> bool {
        let due = self.wait == 0;
        self.wait = self.wait.saturating_sub(1);
        due
    }

    /// Appends at most `most` of the records that follow the one at `record`, which was sound and taken, its separator included.
    /// Says how many there were, and where the next starts. Records have `limit` bytes at most.
    pub(super) fn take(
        &mut self,
        members: &mut Members,
        text: &[u8],
        record: Range<usize>,
        limit: usize,
        most: usize,
    ) -> (usize, usize) {
        let mut taken = self.follow(members, text, record.end, most);
        if taken.0 == 0 {
            let spelled = text.get(record.clone()).unwrap_or_default();
            let learned = Template::learn(spelled, limit, |key| members.place(key));
            self.template = learned.filter(|template| template.fields.len() == members.count());
            taken = self.follow(members, text, record.end, most);
        }
        self.patience = if taken.0 < WORTH { (2 * self.patience + 1).min(PATIENCE) } else { 0 };
        self.wait = self.patience;
        taken
    }

    fn follow(&self, members: &mut Members, text: &[u8], at: usize, most: usize) -> (usize, usize) {
        let Some(template) = &self.template else { return (0, at) };
        let Some(columns) = members.doubles() else { return (0, at) };
        let mut columns: Vec<_> = columns.into_iter().map(Some).collect();
        let ordered = template.fields.iter().map(|(_, column)| columns.get_mut(*column)?.take());
        let Some(mut ordered) = ordered.collect::<Option<Vec<_>>>() else { return (0, at) };
        let taken = match self.level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2::take(text, at, template, most, &mut ordered),
            _ => take::<Portable>(text, at, template, most, &mut ordered),
        };
        members.appended(taken.0);
        taken
    }
}

#[cfg(test)]
mod tests;
