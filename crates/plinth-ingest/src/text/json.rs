//! JSON, strictly as RFC 8259 has it: a check of a whole text, and a cursor over checked text.

use std::borrow::Cow;

use memchr::memchr2;

/// How deep values may be nested.
pub(crate) const DEPTH: usize = 128;

/// What is wrong with a text, and at which byte.
type Flaw = (usize, &'static str);

/// Checks that a text is one JSON value and nothing else.
pub(crate) fn check(text: &str) -> Result<(), Flaw> {
    let bytes = text.as_bytes();
    let mut open: Vec<u8> = Vec::new();
    let mut at = space(bytes, 0);
    'value: loop {
        match bytes.get(at) {
            None => return Err((at, "the JSON ends too early")),
            Some(&bracket @ (b'{' | b'[')) => {
                if open.len() == DEPTH {
                    return Err((at, "nested too deep"));
                }
                at = space(bytes, at + 1);
                let close = if bracket == b'{' { b'}' } else { b']' };
                if bytes.get(at) != Some(&close) {
                    open.push(close);
                    if close == b'}' {
                        at = key(text, at)?;
                    }
                    continue 'value;
                }
                at += 1;
            }
            Some(b'"') => at = string(text, at)?,
            Some(b'-' | b'0'..=b'9') => at = number(bytes, at)?,
            Some(_) => at = literal(bytes, at)?,
        }
        // A value is over: what may follow depends on what it is in.
        loop {
            at = space(bytes, at);
            match (open.last(), bytes.get(at)) {
                (None, None) => return Ok(()),
                (None, Some(_)) => return Err((at, "something after the JSON value")),
                (Some(_), None) => return Err((at, "the JSON ends too early")),
                (Some(close), Some(byte)) if close == byte => {
                    open.pop();
                    at += 1;
                }
                (Some(close), Some(b',')) => {
                    at = space(bytes, at + 1);
                    if *close == b'}' {
                        at = key(text, at)?;
                    }
                    continue 'value;
                }
                (Some(b'}'), Some(_)) => return Err((at, "expected a comma or }")),
                (Some(_), Some(_)) => return Err((at, "expected a comma or ]")),
            }
        }
    }
}

fn space(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r')).count()
}

fn key(text: &str, at: usize) -> Result<usize, Flaw> {
    let bytes = text.as_bytes();
    if bytes.get(at) != Some(&b'"') {
        return Err((at, "expected a key in quotes"));
    }
    let at = space(bytes, string(text, at)?);
    if bytes.get(at) != Some(&b':') {
        return Err((at, "expected a colon"));
    }
    Ok(space(bytes, at + 1))
}

fn literal(bytes: &[u8], at: usize) -> Result<usize, Flaw> {
    let rest = bytes.get(at..).unwrap_or_default();
    for word in ["true", "false", "null"] {
        if rest.starts_with(word.as_bytes()) {
            return Ok(at + word.len());
        }
    }
    Err((at, "expected a JSON value"))
}

fn number(bytes: &[u8], start: usize) -> Result<usize, Flaw> {
    let digits = |at: usize| -> Result<usize, Flaw> {
        let count = bytes.get(at..).unwrap_or_default().iter().take_while(|b| b.is_ascii_digit()).count();
        if count == 0 { Err((at, "expected a digit")) } else { Ok(at + count) }
    };
    let mut at = start + usize::from(bytes.get(start) == Some(&b'-'));
    let zero = bytes.get(at) == Some(&b'0');
    let end = digits(at)?;
    if zero && end > at + 1 {
        return Err((at, "a number with a leading zero"));
    }
    at = end;
    if bytes.get(at) == Some(&b'.') {
        at = digits(at + 1)?;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at = digits(at + 1 + usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-'))))?;
    }
    Ok(at)
}

/// Checks the string that starts at `start` and says where it ends.
fn string(text: &str, start: usize) -> Result<usize, Flaw> {
    let bytes = text.as_bytes();
    let mut at = start + 1;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(plain) = rest.iter().position(|b| matches!(b, b'"' | b'\\' | 0..0x20)) else {
            return Err((start, "a string that is never closed"));
        };
        at += plain;
        match (bytes.get(at), bytes.get(at + 1)) {
            (Some(b'"'), _) => return Ok(at + 1),
            (Some(b'\\'), Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't')) => at += 2,
            (Some(b'\\'), Some(b'u')) => {
                at = code_point(text, at).ok_or((at, "a \\u escape that is no character"))?.1;
            }
            (Some(b'\\'), _) => return Err((at, "an unknown escape in a string")),
            _ => return Err((at, "a control character in a string")),
        }
    }
}

/// The character of the `\u` escape (or the pair of them) at `at`, and where it ends.
fn code_point(text: &str, at: usize) -> Option<(char, usize)> {
    let unit = |at: usize| -> Option<u32> {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
    };
    let first = unit(at)?;
    if !(0xd800..0xdc00).contains(&first) {
        return Some((char::from_u32(first)?, at + 6));
    }
    let second = unit(at + 6).filter(|second| (0xdc00..0xe000).contains(second))?;
    Some((char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00))?, at + 12))
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

/// Walks over text that passed [`check`]. On other text it ends early or takes nonsense, but never fails.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn peek(&mut self) -> Option<u8> {
        self.at = space(self.text.as_bytes(), self.at);
        self.text.as_bytes().get(self.at).copied()
    }

    fn between(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }

    /// What the next value is.
    pub(crate) fn kind(&mut self) -> Kind {
        match self.peek() {
            Some(b'"') => Kind::String,
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'-' | b'0'..=b'9') => Kind::Number,
            _ => Kind::Null,
        }
    }

    /// Takes any value and gives it as it is spelled.
    pub(crate) fn raw(&mut self) -> &'a str {
        let bytes = self.text.as_bytes();
        let first = self.peek();
        let start = self.at;
        match first {
            Some(b'"') => self.at = string_end(bytes, self.at),
            Some(b'{' | b'[') => {
                let mut depth = 0usize;
                while let Some(byte) = bytes.get(self.at) {
                    match byte {
                        b'"' => {
                            self.at = string_end(bytes, self.at);
                            continue;
                        }
                        b'{' | b'[' => depth += 1,
                        b'}' | b']' => depth = depth.saturating_sub(1),
                        _ => {}
                    }
                    self.at += 1;
                    if depth == 0 {
                        break;
                    }
                }
            }
            _ => {
                let rest = bytes.get(self.at..).unwrap_or_default();
                let ends = |b: &u8| matches!(b, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
                self.at += rest.iter().position(ends).unwrap_or(rest.len());
            }
        }
        self.between(start, self.at)
    }

    /// Takes a string and gives what it stands for.
    pub(crate) fn string(&mut self) -> Cow<'a, str> {
        let raw = self.raw();
        let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
        if inner.contains('\\') { Cow::Owned(unescape(inner)) } else { Cow::Borrowed(inner) }
    }

    /// Takes an object; `member` has to take each value.
    pub(crate) fn members(&mut self, mut member: impl FnMut(Cow<'a, str>, &mut Self)) {
        let _ = self.peek();
        self.at += 1;
        while self.peek() == Some(b'"') {
            let key = self.string();
            // The colon.
            let _ = self.peek();
            self.at += 1;
            member(key, self);
            if self.peek() == Some(b',') {
                self.at += 1;
            }
        }
        self.at += 1;
    }

    /// Takes an array; `element` has to take each value.
    pub(crate) fn elements(&mut self, mut element: impl FnMut(&mut Self)) {
        let _ = self.peek();
        self.at += 1;
        while !matches!(self.peek(), None | Some(b']' | b'}')) {
            let before = self.at;
            element(self);
            if self.peek() == Some(b',') || self.at == before {
                self.at += 1;
            }
        }
        self.at += 1;
    }
}

/// Where the string that starts at `start` ends.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found;
        if bytes.get(at) == Some(&b'"') {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

fn unescape(inner: &str) -> String {
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        out.push_str(rest.get(..at).unwrap_or_default());
        let (character, taken) = match rest.as_bytes().get(at + 1) {
            Some(b'u') => code_point(rest, at).map_or(('\u{fffd}', at + 2), |(c, end)| (c, end)),
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
mod tests {
    use super::*;

    #[test]
    fn strict() {
        for good in ["1", " [ ] ", "{}", r#"{"a":[1,-0.5e+3,"\ud83d\ude00\n"],"b":{"c":null}}"#, "true", "-0"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "[1 2]",
            r#"{,"a":1}"#,
            r#"{"a":1,}"#,
            "[1,]",
            "01",
            "1.",
            "-",
            ".5",
            "+1",
            "1e",
            "\"\t\"",
            r#""\ud800""#,
            r#""\x""#,
            "tru",
            "nul",
            "1 1",
            "[",
            "\"",
            r#"{"a" 1}"#,
            "{1:2}",
            "NaN",
            r#"{"a":}"#,
            "[1}",
            r#""\u12"#,
            "[\"a",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
        assert!(check(&format!("{}{}", "[".repeat(DEPTH), "]".repeat(DEPTH))).is_ok());
        assert_eq!(check(&"[".repeat(100_000)), Err((DEPTH, "nested too deep")));
    }

    #[test]
    fn a_cursor_gives_what_is_there() {
        let mut cursor = Cursor::new(r#" { "a\u00e9" : [1, "x\"]", {"y":[]}] , "b":true}"#);
        let mut got = Vec::new();
        cursor.members(|key, value| match value.kind() {
            Kind::Array => value.elements(|e| got.push(format!("{key}={}", e.raw()))),
            kind => got.push(format!("{key}={} {kind:?}", value.raw())),
        });
        assert_eq!(got, ["a\u{e9}=1", r#"aé="x\"]""#, r#"aé={"y":[]}"#, "b=true Bool"]);
        assert_eq!(Cursor::new(r#""\ud83d\ude00\/\\\t""#).string(), "\u{1f600}/\\\t");
    }
}
