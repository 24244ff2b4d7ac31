//! Dictionaries for tests.

use arrow_array::cast::AsArray;
use arrow_array::{StringViewArray, UInt32Array};
use arrow_select::take::take;

use super::*;

/// Values by their places.
#[derive(Debug)]
pub(crate) struct Listed(pub(crate) StringViewArray);

impl Coded for Listed {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn identity(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn is_ordered(&self) -> bool {
        self.0.iter().is_sorted()
    }

    fn values(&self, codes: &[u32], nulls: Option<&NullBuffer>) -> Result<ArrayRef> {
        Ok(take(&self.0, &UInt32Array::new(codes.to_vec().into(), nulls.cloned()), None)?)
    }
}

/// A dictionary of some values.
pub(crate) fn listed<'a>(values: impl IntoIterator<Item = &'a str>) -> Arc<dyn Coded> {
    Arc::new(Listed(StringViewArray::from_iter_values(values)))
}

/// Rows that hold codes, or null.
pub(crate) fn coded(rows: &[Option<u32>], dictionary: &Arc<dyn Coded>) -> Vector {
    // What a null row holds must not matter.
    let ids = rows.iter().map(|code| code.unwrap_or(u32::MAX)).collect();
    let nulls = rows.contains(&None).then(|| rows.iter().map(Option::is_some).collect());
    Vector::Codes { ids, nulls, dictionary: Arc::clone(dictionary) }
}

/// What the rows of a text vector hold.
pub(crate) fn texts(vector: &Vector) -> Vec<Option<String>> {
    let array = vector.array().unwrap();
    array.as_string_view().iter().map(|value| value.map(str::to_owned)).collect()
}
