//! LIKE patterns that are a comparison in disguise.

use std::sync::Arc;

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
    let compare =
        |op, value: &[u8]| Expr::Compare { column: column.clone(), op, value: Scalar::Bytes(Arc::from(value)) };
    Some(match shape(pattern)? {
        Shape::Equals(text) => compare(CompareOp::Eq, text.as_bytes()),
        Shape::StartsWith(prefix) => {
            let from = compare(CompareOp::GtEq, prefix.as_bytes());
            match after_prefix(prefix.as_bytes()) {
                Some(end) => Expr::And(vec![from, compare(CompareOp::Lt, &end)]),
                None => from,
            }
        }
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

/// The smallest byte string greater than all that start with `prefix`; `None` if there is none.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&b| b != u8::MAX)?;
    let mut end = prefix.get(..=last)?.to_vec();
    if let Some(byte) = end.last_mut() {
        *byte += 1;
    }
    Some(end)
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

    #[test]
    fn the_end_of_a_prefix_is_tight() {
        assert_eq!(after_prefix(b"abc"), Some(b"abd".to_vec()));
        assert_eq!(after_prefix(&[1, 255, 255]), Some(vec![2]));
        assert_eq!(after_prefix(&[255]), None);
        assert_eq!(after_prefix(b""), None);
    }
}
