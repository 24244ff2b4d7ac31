//! Memory of words, all zero at first. Much of it lies in huge pages: what random access would cost else is to find where a page is.

use std::sync::Arc;

use plinth_io::{HUGE_PAGE, MemoryBudget, Zeroed};

/// A word in memory.
pub type Word = [u8; 8];

/// Words.
pub(crate) enum Words {
    Few(Vec<Word>),
    /// In memory of its own.
    Many(Zeroed),
}

impl Words {
    /// So many words, which the caller has reserved.
    pub(crate) fn zeros(len: usize, budget: &Arc<MemoryBudget>) -> Self {
        let bytes = len * size_of::<Word>();
        match if bytes < HUGE_PAGE { None } else { Zeroed::new(bytes, budget) } {
            Some(zeroed) => Self::Many(zeroed),
            None => Self::Few(vec![[0; 8]; len]),
        }
    }

    /// Makes them more, zeros behind those that there are; the caller has reserved them.
    pub(crate) fn lengthen(&mut self, len: usize, budget: &Arc<MemoryBudget>) {
        if let Self::Many(zeroed) = self
            && zeroed.lengthen(len * size_of::<Word>())
        {
            return;
        }
        let mut longer = Self::zeros(len, budget);
        let all = self.all();
        longer.all_mut()[..all.len()].copy_from_slice(all);
        *self = longer;
    }

    #[inline]
    pub(crate) fn all(&self) -> &[Word] {
        match self {
            Self::Few(words) => words,
            Self::Many(zeroed) => zeroed.as_chunks().0,
        }
    }

    #[inline]
    pub(crate) fn all_mut(&mut self) -> &mut [Word] {
        match self {
            Self::Few(words) => words,
            Self::Many(zeroed) => zeroed.as_chunks_mut().0,
        }
    }
}

impl std::fmt::Debug for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Words").field("len", &self.all().len()).finish()
    }
}

#[inline]
pub(crate) fn read(word: &Word) -> u64 {
    u64::from_ne_bytes(*word)
}

#[inline]
pub(crate) fn write(word: &mut Word, value: u64) {
    *word = value.to_ne_bytes();
}
