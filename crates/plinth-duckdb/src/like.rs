//! LIKE patterns and their relatives as functions of a text column, asked once of each value of a dictionary.

use std::any::Any;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray};
use plinth_encoding::Pattern;
use plinth_encoding::expr::{ColumnFunction, Expr, Function, Path};

/// That a text is of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Like(Pattern);

impl Like {
    /// That a text contains another.
    pub(crate) fn contains(text: &str) -> Self {
        Self(Pattern::containing(text.as_bytes()))
    }

    /// That it ends so.
    pub(crate) fn ends_with(text: &str) -> Self {
        Self(Pattern::new(&[], [], text.as_bytes()))
    }

    /// A pattern of LIKE with at least one `%`; `None` if it has a wildcard of one character.
    pub(crate) fn parse(pattern: &str) -> Option<Self> {
        if pattern.contains(['_', '\\']) {
            return None;
        }
        let (prefix, rest) = pattern.split_once('%')?;
        let (within, suffix) = rest.rsplit_once('%').unwrap_or(("", rest));
        let within = within.split('%').map(str::as_bytes);
        Some(Self(Pattern::new(prefix.as_bytes(), within, suffix.as_bytes())))
    }

    /// The predicate that a column matches it.
    pub(crate) fn of(self, column: Path) -> Expr {
        let Self(pattern) = &self;
        if pattern.within().len() == 0 && pattern.suffix().is_empty() && !pattern.prefix().is_empty() {
            return Expr::starts_with(&column, pattern.prefix());
        }
        Expr::Function(Function { columns: vec![column], function: Arc::new(self) })
    }
}

impl ColumnFunction for Like {
    fn name(&self) -> String {
        let part = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let within: Vec<String> = self.0.within().map(part).collect();
        format!("LIKE {}%{}%{}", part(self.0.prefix()), within.join("%"), part(self.0.suffix()))
    }

    fn evaluate(&self, columns: &[ArrayRef]) -> Result<BooleanArray, String> {
        let [column] = columns else { return Err(format!("LIKE of {} columns", columns.len())) };
        let text = column.as_string_view_opt().ok_or_else(|| format!("LIKE of {}", column.data_type()))?;
        Ok(text.iter().map(|value| value.map(|value| self.0.matches(value.as_bytes()))).collect())
    }

    fn pattern(&self) -> Option<(Pattern, bool)> {
        Some((self.0.clone(), false))
    }

    fn same_as(&self, other: &dyn ColumnFunction) -> bool {
        (other as &dyn Any).downcast_ref::<Self>() == Some(self)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_read_as_duckdb_reads_them() {
        let pattern = |prefix: &str, within: &[&str], suffix: &str| {
            Like(Pattern::new(prefix.as_bytes(), within.iter().map(|part| part.as_bytes()), suffix.as_bytes()))
        };
        for (text, expected) in [
            ("%", pattern("", &[], "")),
            ("a%", pattern("a", &[], "")),
            ("%a", pattern("", &[], "a")),
            ("%ab%", pattern("", &["ab"], "")),
            ("%%a%%", pattern("", &["a"], "")),
            ("a%b%c%d", pattern("a", &["b", "c"], "d")),
        ] {
            assert_eq!(Like::parse(text).unwrap(), expected, "{text}");
        }
        assert!(Like::parse("a_%").is_none() && Like::parse("abc").is_none() && Like::parse("a\\%%").is_none());
    }
}
