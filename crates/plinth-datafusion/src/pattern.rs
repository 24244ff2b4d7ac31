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

/// What text has to contain for a LIKE pattern, if that is all it asks: a text between two `%`.
pub(crate) fn contained(pattern: &str) -> Option<String> {
    match shape(pattern.strip_prefix('%')?)? {
        Shape::StartsWith(text) => Some(text),
        Shape::Equals(_) => None,
    }
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
mod tests;
