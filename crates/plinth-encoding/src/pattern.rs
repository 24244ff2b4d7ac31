//! Patterns of texts with anything between them, as LIKE has them.

use std::sync::Arc;

use memchr::memmem::Finder;

/// A pattern of texts with anything between them: how a value begins, what is within, one after the other, and how it ends. Bytes
/// answer it, since no character of UTF-8 begins within another. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Pattern(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    prefix: Vec<u8>,
    /// None of no bytes.
    within: Vec<Finder<'static>>,
    suffix: Vec<u8>,
}

impl Pattern {
    /// Of values that begin with `prefix`, have each of `within` behind the one before, and end with `suffix` behind all; no two
    /// of them share bytes.
    #[must_use]
    pub fn new<'a>(prefix: &[u8], within: impl IntoIterator<Item = &'a [u8]>, suffix: &[u8]) -> Self {
        let within = within.into_iter().filter(|part| !part.is_empty());
        let within = within.map(|part| Finder::new(part).into_owned()).collect();
        Self(Arc::new(Parts { prefix: prefix.into(), within, suffix: suffix.into() }))
    }

    /// Of values that contain these bytes.
    #[must_use]
    pub fn containing(bytes: &[u8]) -> Self {
        Self::new(&[], [bytes], &[])
    }

    /// How values begin.
    #[must_use]
    pub fn prefix(&self) -> &[u8] {
        &self.0.prefix
    }

    /// What is within values, one after the other; none of no bytes.
    pub fn within(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.0.within.iter().map(Finder::needle)
    }

    /// How values end.
    #[must_use]
    pub fn suffix(&self) -> &[u8] {
        &self.0.suffix
    }

    /// Whether a value is of this pattern.
    #[must_use]
    pub fn matches(&self, value: &[u8]) -> bool {
        let Parts { prefix, within, suffix } = &*self.0;
        let mut rest = value;
        // Comparing no bytes is a call nevertheless, and was most of the time of `LIKE '%text%'` over a dictionary.
        if !prefix.is_empty() {
            let Some(behind) = rest.strip_prefix(&**prefix) else { return false };
            rest = behind;
        }
        if !suffix.is_empty() {
            let Some(before) = rest.strip_suffix(&**suffix) else { return false };
            rest = before;
        }
        within.iter().all(|part| {
            // The first place leaves the most for the parts behind it.
            let behind = part.find(rest).and_then(|at| rest.get(at + part.needle().len()..));
            rest = behind.unwrap_or_default();
            behind.is_some()
        })
    }

    /// The longest part within, to be looked for first.
    pub(crate) fn needle(&self) -> Option<&Finder<'static>> {
        self.0.within.iter().max_by_key(|part| part.needle().len())
    }

    /// Whether a value that contains the part within is of this pattern, whatever else it has.
    pub(crate) fn only_contains(&self) -> bool {
        self.0.within.len() == 1 && self.0.prefix.is_empty() && self.0.suffix.is_empty()
    }

    /// The longest bytes that each value contains.
    pub(crate) fn contained(&self) -> &[u8] {
        let ends = [self.prefix(), self.suffix()];
        self.within().chain(ends).max_by_key(|part| part.len()).unwrap_or_default()
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.prefix() == other.prefix() && self.suffix() == other.suffix() && self.within().eq(other.within())
    }
}

impl Eq for Pattern {}

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
            let parts: Vec<&[u8]> = pattern.split('%').map(str::as_bytes).collect();
            let [prefix, within @ .., suffix] = &*parts else { unreachable!() };
            let compiled = Pattern::new(prefix, within.iter().copied(), suffix);
            for text in &texts {
                let expected = naive(pattern.as_bytes(), text.as_bytes());
                assert_eq!(compiled.matches(text.as_bytes()), expected, "{text} LIKE {pattern}");
            }
        }
    }
}
