//! LIKE patterns that are a comparison in disguise.

use plinth_encoding::expr::{CompareOp, Expr, Path, Scalar};

/// What a LIKE pattern asks, where bytes can answer it.
#[derive(Debug, PartialEq, Eq)]
enum Shape {
    /// The whole text.
    Equals(String),
    /// How it starts.
    StartsWith(String),
}

/// `column LIKE pattern` as comparisons of bytes, if the pattern has no wildcard but one `%` at its end.
pub(crate) fn like(column: &Path, pattern: &str) -> Option<Expr> {
    Some(match shape(pattern)? {
        Shape::Equals(text) => {
            Expr::Compare { column: column.clone(), op: CompareOp::Eq, value: Scalar::from(text.as_str()) }
        }
        Shape::StartsWith(prefix) => Expr::starts_with(column, prefix.as_bytes()),
    })
}

/// Reads a pattern with Arrow's rules: a backslash makes the `%`, `_` or backslash after it stand for itself. What else a
/// backslash may mean is left to Arrow.
fn shape(pattern: &str) -> Option<Shape> {
    let mut text = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '%' => return chars.as_str().is_empty().then_some(Shape::StartsWith(text)),
            '_' => return None,
            '\\' => match chars.next() {
                Some(c @ ('%' | '_' | '\\')) => text.push(c),
                _ => return None,
            },
            c => text.push(c),
        }
    }
    Some(Shape::Equals(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_read_with_their_escapes() {
        let equals = |text: &str| Some(Shape::Equals(text.into()));
        let starts = |text: &str| Some(Shape::StartsWith(text.into()));
        assert_eq!(shape(""), equals(""));
        assert_eq!(shape("abc"), equals("abc"));
        assert_eq!(shape("abc%"), starts("abc"));
        assert_eq!(shape("%"), starts(""));
        assert_eq!(shape(r"a\%b%"), starts("a%b"));
        assert_eq!(shape(r"a\_\\%"), starts(r"a_\"));
        assert_eq!(shape(r"100\%"), equals("100%"));
        for opaque in ["a%b", "%a", "a_", "_", "a%%", r"a\", r"a\b%"] {
            assert_eq!(shape(opaque), None, "{opaque}");
        }
    }
}
