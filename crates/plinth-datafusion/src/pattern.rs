//! LIKE patterns as what scans ask of text.

use plinth_encoding::Pattern;
use plinth_encoding::expr::{CompareOp, Expr, Path, Scalar};

/// `column LIKE pattern` as comparisons of bytes, if the pattern has no wildcard but one `%` at its end.
pub(crate) fn like(column: &Path, pattern: &str) -> Option<Expr> {
    match &*parts(pattern)? {
        [text] => Some(Expr::Compare { column: column.clone(), op: CompareOp::Eq, value: Scalar::from(text.as_str()) }),
        [prefix, end] if end.is_empty() => Some(Expr::starts_with(column, prefix.as_bytes())),
        _ => None,
    }
}

/// A LIKE pattern that has no wildcard but `%`, of which it has one at least.
pub(crate) fn of_like(pattern: &str) -> Option<Pattern> {
    match &*parts(pattern)? {
        [prefix, within @ .., suffix] => {
            Some(Pattern::new(prefix.as_bytes(), within.iter().map(String::as_bytes), suffix.as_bytes()))
        }
        _ => None,
    }
}

/// The texts before, between and behind the `%` of a pattern, with Arrow's rules: a backslash makes the `%`, `_` or backslash after it
/// stand for itself. What else a backslash may mean is left to Arrow, and so is `_`.
fn parts(pattern: &str) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    let mut text = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '%' => parts.push(std::mem::take(&mut text)),
            '_' => return None,
            '\\' => match chars.next() {
                Some(c @ ('%' | '_' | '\\')) => text.push(c),
                _ => return None,
            },
            c => text.push(c),
        }
    }
    parts.push(text);
    Some(parts)
}

#[cfg(test)]
mod tests;
