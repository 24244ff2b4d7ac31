//! Patterns of LIKE with an escape of their own, as patterns with the one that the engine knows, `\`.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use datafusion_common::{Result, exec_err, plan_err};

/// A pattern whose escape is `\`, of one with another escape or none.
///
/// # Errors
/// If the pattern ends with its escape.
pub fn like_pattern(pattern: &str, escape: Option<char>) -> Result<String> {
    let (mut out, mut letters) = (String::with_capacity(pattern.len() + 4), pattern.chars());
    let plain = |out: &mut String, letter: char| {
        if matches!(letter, '%' | '_' | '\\') {
            out.push('\\');
        }
        out.push(letter);
    };
    while let Some(letter) = letters.next() {
        if Some(letter) == escape {
            match letters.next() {
                Some(next) => plain(&mut out, next),
                None => return plan_err!("LIKE '{pattern}': the pattern ends with its escape"),
            }
        } else if letter == '\\' {
            plain(&mut out, letter);
        } else {
            out.push(letter);
        }
    }
    Ok(out)
}

/// Patterns and their escapes, a letter or an empty text each.
pub(super) fn patterns(args: &[ArrayRef]) -> Result<ArrayRef> {
    let [patterns, escapes] = args else { return exec_err!("a pattern of LIKE: takes its escape") };
    let (patterns, escapes) = (patterns.as_string::<i32>(), escapes.as_string::<i32>());
    let mut out = StringBuilder::with_capacity(patterns.len(), 16 * patterns.len());
    for (pattern, escape) in patterns.iter().zip(escapes.iter()) {
        match (pattern, escape) {
            (Some(pattern), Some(escape)) => out.append_value(like_pattern(pattern, escape.chars().next())?),
            _ => out.append_null(),
        }
    }
    Ok(Arc::new(out.finish()))
}
