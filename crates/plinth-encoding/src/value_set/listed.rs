//! Integers in a list, as `x IN (...)` has them.

use std::ops::Deref;

use crate::key_set::KeySet;

/// Integers up to which finding one in order is as fast as anything.
const FEW: usize = 8;

/// Integers in a list: sorted, without repeats. Most values that are asked for are no members, which is told without a search.
#[derive(Clone, Debug)]
pub struct Listed {
    values: Vec<i128>,
    /// A set that has all of them, and perhaps a few others.
    about: Option<KeySet>,
}

impl From<Vec<i128>> for Listed {
    fn from(mut values: Vec<i128>) -> Self {
        values.sort_unstable();
        values.dedup();
        let keys = || values.iter().map(|&value| i64::try_from(value)).collect::<Result<Vec<_>, _>>().ok();
        let about = if values.len() > FEW { keys().and_then(|keys| KeySet::dense(&keys)) } else { None };
        Self { values, about }
    }
}

impl Deref for Listed {
    type Target = [i128];

    fn deref(&self) -> &[i128] {
        &self.values
    }
}

impl Listed {
    /// Whether a value is a member.
    #[inline]
    pub fn has(&self, value: i128) -> bool {
        match &self.about {
            Some(about) => {
                i64::try_from(value).is_ok_and(|value| about.contains(value))
                    && (about.is_exact() || self.values.binary_search(&value).is_ok())
            }
            None => self.values.binary_search(&value).is_ok(),
        }
    }
}
