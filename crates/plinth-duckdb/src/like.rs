//! LIKE patterns and their relatives as functions of a text column, asked once of each value of a dictionary.

use std::any::Any;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray};
use memchr::memmem;
use plinth_encoding::expr::{ColumnFunction, Expr, Function, Path};

/// A pattern of texts with anything between them. Bytes answer it: no character of UTF-8 begins within another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// At its start; empty if anything may be there.
    prefix: Vec<u8>,
    /// One after the other.
    within: Vec<Vec<u8>>,
    /// At its end.
    suffix: Vec<u8>,
}

impl Pattern {
    /// That a text contains another.
    pub(crate) fn contains(text: &str) -> Self {
        Self { prefix: Vec::new(), within: vec![text.into()], suffix: Vec::new() }
    }

    /// That it ends so.
    pub(crate) fn ends_with(text: &str) -> Self {
        Self { prefix: Vec::new(), within: Vec::new(), suffix: text.into() }
    }

    /// A pattern of LIKE with at least one `%`; `None` if it has a wildcard of one character.
    pub(crate) fn like(pattern: &str) -> Option<Self> {
        if pattern.contains(['_', '\\']) {
            return None;
        }
        let (prefix, rest) = pattern.split_once('%')?;
        let (within, suffix) = rest.rsplit_once('%').unwrap_or(("", rest));
        let within = within.split('%').filter(|part| !part.is_empty()).map(|part| part.as_bytes().to_vec()).collect();
        Some(Self { prefix: prefix.into(), within, suffix: suffix.into() })
    }

    /// The predicate that a column matches it.
    pub(crate) fn of(self, column: Path) -> Expr {
        if self.within.is_empty() && self.suffix.is_empty() && !self.prefix.is_empty() {
            return Expr::starts_with(&column, &self.prefix);
        }
        Expr::Function(Function { columns: vec![column], function: Arc::new(self) })
    }

    fn matches(&self, text: &[u8]) -> bool {
        let Some(rest) = text.strip_prefix(&*self.prefix) else { return false };
        let Some(mut rest) = rest.strip_suffix(&*self.suffix) else { return false };
        self.within.iter().all(|part| match memmem::find(rest, part) {
            Some(at) => {
                rest = &rest[at + part.len()..];
                true
            }
            None => false,
        })
    }
}

impl ColumnFunction for Pattern {
    fn name(&self) -> String {
        let part = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let within: Vec<String> = self.within.iter().map(|bytes| part(bytes)).collect();
        format!("LIKE {}%{}%{}", part(&self.prefix), within.join("%"), part(&self.suffix))
    }

    fn evaluate(&self, columns: &[ArrayRef]) -> Result<BooleanArray, String> {
        let [column] = columns else { return Err(format!("LIKE of {} columns", columns.len())) };
        let text = column.as_string_view_opt().ok_or_else(|| format!("LIKE of {}", column.data_type()))?;
        Ok(text.iter().map(|value| value.map(|value| self.matches(value.as_bytes()))).collect())
    }

    fn contained(&self) -> Option<Vec<u8>> {
        match &*self.within {
            [only] if self.prefix.is_empty() && self.suffix.is_empty() => Some(only.clone()),
            _ => None,
        }
    }

    fn same_as(&self, other: &dyn ColumnFunction) -> bool {
        (other as &dyn Any).downcast_ref::<Self>() == Some(self)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    /// What LIKE means, by trying every split.
    fn naive(pattern: &[u8], text: &[u8]) -> bool {
        match pattern {
            [] => text.is_empty(),
            [b'%', rest @ ..] => (0..=text.len()).any(|at| naive(rest, &text[at..])),
            [byte, rest @ ..] => text.first() == Some(byte) && naive(rest, &text[1..]),
        }
    }

    #[test]
    fn patterns_match_as_a_naive_matcher_says() {
        let texts: Vec<String> = (0..4_u32.pow(5))
            .map(|n| (0..5).map(|at| ['a', 'b', 'c', 'ü'][n as usize / 4_usize.pow(at) % 4]).collect())
            .chain(["".into(), "a".into(), "ab".into(), "aba".into()])
            .collect();
        for pattern in
            ["%", "a%", "%a", "%ab%", "a%b", "a%a", "ab%ba", "%a%b%c%", "%%a%%", "a%b%a", "ü%", "%ü%ü", "abc%abc"]
        {
            let compiled = Pattern::like(pattern).unwrap();
            for text in &texts {
                assert_eq!(
                    compiled.matches(text.as_bytes()),
                    naive(pattern.as_bytes(), text.as_bytes()),
                    "{text} LIKE {pattern}"
                );
            }
        }
        assert!(Pattern::like("a_%").is_none() && Pattern::like("abc").is_none() && Pattern::like("a\\%%").is_none());
    }
}
