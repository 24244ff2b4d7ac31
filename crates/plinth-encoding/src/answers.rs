//! The answers of a predicate: for the rows of a block, and for the values of a dictionary.

use arrow_array::{Array, BooleanArray};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};

use crate::bits;
use crate::value_set::ValueSet;

/// The answer of a predicate for each row of a block, in SQL's three values.
#[derive(Clone, Debug)]
pub struct Mask {
    /// Set where the predicate is true. Never set where it is unknown.
    pub is_true: BooleanBuffer,
    /// Set where the predicate is unknown (NULL); absent when it nowhere is.
    pub is_null: Option<BooleanBuffer>,
}

impl Mask {
    /// The answers of a function.
    #[must_use]
    pub fn of(answers: &BooleanArray) -> Self {
        match answers.nulls().filter(|nulls| nulls.null_count() > 0) {
            Some(nulls) => Self { is_true: answers.values() & nulls.inner(), is_null: Some(!nulls.inner()) },
            None => Self { is_true: answers.values().clone(), is_null: None },
        }
    }

    /// Answers for the rows `under` as answers for all: the others are neither true nor unknown.
    #[must_use]
    pub fn spread(self, under: &BooleanBuffer) -> Self {
        if self.is_true.len() == under.len() {
            return self;
        }
        let spread = |answers: &BooleanBuffer| bits::expand_bits(answers, under);
        Self { is_true: spread(&self.is_true), is_null: self.is_null.as_ref().map(spread) }
    }

    /// The answers for the rows of one part after the other.
    #[must_use]
    pub fn concat(parts: &[Self]) -> Self {
        let rows = parts.iter().map(|part| part.is_true.len()).sum();
        let mut is_true = BooleanBufferBuilder::new(rows);
        let mut is_null = parts.iter().any(|part| part.is_null.is_some()).then(|| BooleanBufferBuilder::new(rows));
        for part in parts {
            is_true.append_buffer(&part.is_true);
            match (&mut is_null, &part.is_null) {
                (Some(all), Some(nulls)) => all.append_buffer(nulls),
                (Some(all), None) => all.append_n(part.is_true.len(), false),
                (None, _) => {}
            }
        }
        Self { is_true: is_true.finish(), is_null: is_null.map(|mut all| all.finish()) }
    }
}

/// The answers of a predicate for the values of a dictionary and for null. `S` is how a set of codes is kept.
#[derive(Debug)]
pub struct DictionaryAnswers<S = ValueSet> {
    /// The codes of values for which it is true.
    pub is_true: S,
    /// The codes of values for which it is unknown; absent if there are none.
    pub is_null: Option<S>,
    /// The answer for null.
    pub of_null: Option<bool>,
}

impl<S> DictionaryAnswers<S> {
    /// From the answers for each value in the order of the codes.
    pub fn new(values: Mask, of_null: Option<bool>, codes: impl Fn(BooleanBuffer) -> S) -> Self {
        Self { is_true: codes(values.is_true), is_null: values.is_null.map(codes), of_null }
    }

    /// The answers for rows. Given is which rows hold a code of [`DictionaryAnswers::is_true`], null rows being unknown, and
    /// which hold one of [`DictionaryAnswers::is_null`].
    pub fn merge(&self, rows: Mask, mut unknown: Option<BooleanBuffer>) -> Mask {
        let Mask { mut is_true, is_null: nulls } = rows;
        if let Some(nulls) = nulls {
            match self.of_null {
                Some(true) => is_true = &is_true | &nulls,
                Some(false) => {}
                None => unknown = Some(unknown.map_or_else(|| nulls.clone(), |known| &known | &nulls)),
            }
        }
        Mask { is_true, is_null: unknown }
    }
}
