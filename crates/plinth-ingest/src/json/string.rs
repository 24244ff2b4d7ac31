//! What is between the quotes of a string.

use super::flaw::Flaw;

/// Whether a string is spelled as what it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escapes {
    None,
    Some,
}

/// Checks the inside of a string, which starts at byte `start` of the text.
pub(crate) fn escapes(inner: &str, start: usize) -> Result<Escapes, Flaw> {
    let bytes = inner.as_bytes();
    // One pass without a branch; most strings have nothing to look at.
    let special = bytes.iter().fold(false, |special, byte| special | (*byte == b'\\') | (*byte < 0x20));
    if !special {
        return Ok(Escapes::None);
    }
    let flaw = |at: usize, what| Err(Flaw { at: start + at, what });
    let mut at = 0;
    while let Some(found) = bytes.get(at..).and_then(|rest| rest.iter().position(|b| matches!(b, b'\\' | 0..0x20))) {
        at += found;
        match (bytes.get(at), bytes.get(at + 1)) {
            (Some(b'\\'), Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't')) => at += 2,
            (Some(b'\\'), Some(b'u')) => match code_point(bytes, at) {
                Some((_, end)) => at = end,
                None => return flaw(at, "a \\u escape that is no character"),
            },
            (Some(b'\\'), _) => return flaw(at, "an unknown escape in a string"),
            _ => return flaw(at, "a control character in a string"),
        }
    }
    // Without a backslash there would have been a flaw.
    Ok(Escapes::Some)
}

/// The character of the `\u` escape (or the pair of them) at `at`, and where it ends. Half a pair is none.
pub(crate) fn code_point(bytes: &[u8], at: usize) -> Option<(char, usize)> {
    let unit = |at: usize| -> Option<u32> {
        let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | char::from(*digit).to_digit(16)?))
    };
    let first = unit(at)?;
    if !(0xd800..0xdc00).contains(&first) {
        return Some((char::from_u32(first)?, at + 6));
    }
    let second = unit(at + 6).filter(|second| (0xdc00..0xe000).contains(second))?;
    Some((char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00))?, at + 12))
}

/// What the checked inside of a string stands for, in `out`, which it replaces.
pub(crate) fn unescape<'a>(inner: &str, out: &'a mut String) -> &'a str {
    out.clear();
    out.reserve(inner.len());
    let mut rest = inner;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        out.push_str(rest.get(..at).unwrap_or_default());
        let (character, taken) = match rest.as_bytes().get(at + 1) {
            Some(b'u') => code_point(rest.as_bytes(), at).unwrap_or(('\u{fffd}', at + 2)),
            Some(b'b') => ('\u{8}', at + 2),
            Some(b'f') => ('\u{c}', at + 2),
            Some(b'n') => ('\n', at + 2),
            Some(b'r') => ('\r', at + 2),
            Some(b't') => ('\t', at + 2),
            Some(other) => (char::from(*other), at + 2),
            None => ('\\', at + 1),
        };
        out.push(character);
        rest = rest.get(taken..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests;
