//! Stage two: from token to token through checked UTF-8, strictly as RFC 8259 has it.
//!
//! A [`Tokenizer`] takes values one after the other and checks what it takes, wanted or not. It never calls
//! itself: how deep values are nested is counted, not felt.
//!
//! It looks at the bytes themselves, eight at a time in strings and between tokens. To look their places up in bitmaps made
//! before took half as long again: most tokens are expected keys and numbers, which say themselves where they end.

use super::flaw::{Flaw, TOO_DEEP};
use super::number::number_end;
use super::string::{Escapes, escapes, unescape};
use crate::bits::Level;
use crate::bits::brackets::{Between, Scan, Stop};

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

/// Memory that tokenizers use one after the other.
#[derive(Debug)]
pub(crate) struct Scratch {
    /// Per open bracket of a value that is skipped, whether it is a brace.
    open: Vec<bool>,
    unescaped: String,
    depth: usize,
    /// How to pass over values by their brackets alone, where what is between need not be checked.
    unchecked: Option<Level>,
}

impl Scratch {
    /// For values nested `depth` deep at most.
    pub(crate) fn new(depth: usize) -> Self {
        Self { open: Vec::new(), unescaped: String::new(), depth, unchecked: None }
    }

    /// Has values that are skipped not checked.
    pub(crate) fn unchecked(self, level: Level) -> Self {
        Self { unchecked: Some(level), ..self }
    }
}

/// Goes through a text.
#[derive(Debug)]
pub(crate) struct Tokenizer<'a> {
    text: &'a str,
    scratch: &'a mut Scratch,
    /// Whether line feeds between values are tokens.
    lines: bool,
    depth: usize,
    /// Where to look for the next token.
    next: usize,
    /// The first byte after what was taken last.
    end: usize,
}

const ENDS_EARLY: &str = "the JSON ends too early";
const UNCLOSED: &str = "a string that is never closed";

impl<'a> Tokenizer<'a> {
    /// At the start of a text; with `lines`, line feeds between values are tokens.
    pub(crate) fn new(text: &'a str, scratch: &'a mut Scratch, lines: bool) -> Self {
        Self { text, scratch, lines, depth: 0, next: 0, end: 0 }
    }

    /// Goes on at a byte outside of strings and values.
    pub(crate) fn seek(&mut self, at: usize) {
        (self.depth, self.next, self.end) = (0, at, at);
    }

    /// Where the next token is; the text's length if there is none.
    #[inline(always)]
    pub(crate) fn at(&mut self) -> usize {
        if self.byte(self.next) <= b' ' {
            self.pass_spaces();
        }
        self.next
    }

    fn pass_spaces(&mut self) {
        let text = self.text.as_bytes();
        loop {
            match text.get(self.next) {
                // Where lines are indented there are many.
                Some(b' ') if text.get(self.next..).unwrap_or_default().starts_with(&[b' '; 8]) => self.next += 8,
                Some(b' ' | b'\t' | b'\r') => self.next += 1,
                Some(b'\n') if !self.lines => self.next += 1,
                _ => return,
            }
        }
    }

    /// The first byte of the next token; zero at the end.
    #[inline(always)]
    pub(crate) fn peek(&mut self) -> u8 {
        let at = self.at();
        self.byte(at)
    }

    #[inline(always)]
    fn byte(&self, at: usize) -> u8 {
        self.text.as_bytes().get(at).copied().unwrap_or(0)
    }

    /// The first byte after what was taken last.
    #[inline(always)]
    pub(crate) fn end(&self) -> usize {
        self.end
    }

    /// The text it goes through.
    #[inline(always)]
    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// Some of it.
    pub(crate) fn between(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }

    /// Passes over a token of one byte.
    #[inline(always)]
    pub(crate) fn pass(&mut self) {
        self.next = self.at() + 1;
        self.end = self.next;
    }

    #[cold]
    pub(crate) fn flaw(&mut self, what: &'static str) -> Flaw {
        let at = self.at();
        let ended = at >= self.text.len() || self.byte(at) == b'\n';
        Flaw { at, what: if ended { ENDS_EARLY } else { what } }
    }

    /// What the next value is, by its first byte.
    #[inline(always)]
    pub(crate) fn kind(&mut self) -> Result<Kind, Flaw> {
        Ok(match self.peek() {
            b'"' => Kind::String,
            b'-' | b'0'..=b'9' => Kind::Number,
            b'{' => Kind::Object,
            b'[' => Kind::Array,
            b't' | b'f' => Kind::Bool,
            b'n' => Kind::Null,
            _ => return Err(self.flaw("expected a JSON value")),
        })
    }

    /// Takes a number or a word, which ends at `end`.
    #[inline(always)]
    pub(crate) fn scalar(&mut self, end: usize) -> Result<(), Flaw> {
        match self.byte(end) {
            b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t' | b':' | b'{' | b'[' | b'"' => {}
            _ if end == self.text.len() => {}
            b'0'..=b'9' => return Err(Flaw { at: end, what: "a number with a leading zero" }),
            _ => return Err(Flaw { at: end, what: "expected a JSON value, or nothing more of it" }),
        }
        (self.next, self.end) = (end, end);
        Ok(())
    }

    /// Takes a number and gives it as it is spelled.
    pub(crate) fn number(&mut self) -> Result<&'a str, Flaw> {
        let start = self.at();
        let end = number_end(self.text.as_bytes(), start)?;
        self.scalar(end)?;
        Ok(self.between(start, end))
    }

    /// Takes `null`, `true` or `false`.
    pub(crate) fn word(&mut self) -> Result<&'a str, Flaw> {
        let start = self.at();
        let rest = self.text.as_bytes().get(start..).unwrap_or_default();
        let word = ["null", "true", "false"].into_iter().find(|word| rest.starts_with(word.as_bytes()));
        let end = start + word.ok_or_else(|| self.flaw("expected a JSON value"))?.len();
        self.scalar(end)?;
        Ok(self.between(start, end))
    }

    /// Takes a string and gives what is between its quotes, and what escapes there are in it.
    #[inline(always)]
    fn quoted(&mut self) -> Result<(&'a str, Escapes), Flaw> {
        let start = self.at();
        match stop(self.text.as_bytes(), start + 1) {
            (end, b'"') => {
                (self.next, self.end) = (end + 1, end + 1);
                Ok((self.between(start + 1, end), Escapes::None))
            }
            (special, _) => self.unplain(start, special),
        }
    }

    /// As [`Self::quoted`], of a string that starts at `start` and holds a byte to look at, or no end.
    #[inline(never)]
    fn unplain(&mut self, start: usize, special: usize) -> Result<(&'a str, Escapes), Flaw> {
        let bytes = self.text.as_bytes();
        let mut end = special;
        loop {
            let found = memchr::memchr2(b'"', b'\\', bytes.get(end..).unwrap_or_default());
            end += found.ok_or(Flaw { at: start, what: UNCLOSED })?;
            if bytes.get(end) == Some(&b'"') {
                break;
            }
            end += 2;
        }
        let inner = self.between(start + 1, end);
        // A string that goes beyond its line is not closed, whatever is in it.
        let escapes = escapes(inner, start + 1).map_err(|flaw| match self.lines && inner.contains('\n') {
            true => Flaw { at: start, what: UNCLOSED },
            false => flaw,
        })?;
        (self.next, self.end) = (end + 1, end + 1);
        Ok((inner, escapes))
    }

    /// Takes a string and gives what it stands for.
    #[inline(always)]
    pub(crate) fn string(&mut self) -> Result<&str, Flaw> {
        match self.quoted()? {
            (inner, Escapes::None) => Ok(inner),
            (inner, Escapes::Some) => Ok(unescape(inner, &mut self.scratch.unescaped)),
        }
    }

    /// Takes an object's key and the colon, and gives what the key stands for.
    pub(crate) fn key(&mut self) -> Result<&str, Flaw> {
        if self.peek() != b'"' {
            return Err(self.flaw("expected a key in quotes"));
        }
        let (inner, escapes) = self.quoted()?;
        if self.peek() != b':' {
            return Err(self.flaw("expected a colon"));
        }
        self.pass();
        Ok(match escapes {
            Escapes::None => inner,
            Escapes::Some => unescape(inner, &mut self.scratch.unescaped),
        })
    }

    /// Takes a key and the colon if they are spelled exactly so.
    #[inline(always)]
    pub(crate) fn expected_key(&mut self, spelled: &Spelled) -> bool {
        let at = self.at();
        let found = spelled.is_at(self.text.as_bytes(), at);
        if found {
            self.next = at + spelled.bytes.len();
        }
        found
    }

    /// Takes an opening bracket, and the closing one if it follows at once: then there is nothing in it.
    #[inline(always)]
    pub(crate) fn open(&mut self, close: u8) -> Result<bool, Flaw> {
        if self.depth == self.scratch.depth {
            return Err(self.flaw(TOO_DEEP));
        }
        self.next = self.at() + 1;
        if self.peek() == close {
            self.pass();
            return Ok(false);
        }
        self.depth += 1;
        Ok(true)
    }

    /// After a value in brackets, whether a comma says that another follows; else takes the closing bracket.
    #[inline(always)]
    pub(crate) fn more(&mut self, close: u8) -> Result<bool, Flaw> {
        match self.peek() {
            b',' => {
                self.next += 1;
                Ok(true)
            }
            byte if byte == close => {
                self.pass();
                self.depth -= 1;
                Ok(false)
            }
            _ if close == b'}' => Err(self.flaw("expected a comma or }")),
            _ => Err(self.flaw("expected a comma or ]")),
        }
    }

    /// Takes any value and gives it as it is spelled.
    pub(crate) fn raw(&mut self) -> Result<&'a str, Flaw> {
        let start = self.at();
        self.check()?;
        Ok(self.between(start, self.end))
    }

    /// Takes any value whose brackets are closed, on its line if lines are tokens.
    fn pass_over(&mut self, level: Level) -> Result<(), Flaw> {
        let start = self.at();
        let bytes = self.text.as_bytes();
        let rest = bytes.get(start..).unwrap_or_default();
        let line = if self.lines { memchr::memchr(b'\n', rest) } else { None };
        let within = bytes.get(..line.map_or(bytes.len(), |line| start + line)).unwrap_or_default();
        match Scan::new(level, Between::Nothing).next(within, start, start, true) {
            Stop::Boundary(end) => {
                (self.next, self.end) = (end, end);
                Ok(())
            }
            _ => Err(Flaw { at: within.len(), what: ENDS_EARLY }),
        }
    }

    /// Takes any value, to leave it out.
    pub(crate) fn skip(&mut self) -> Result<(), Flaw> {
        match (self.scratch.unchecked, self.kind()?) {
            (Some(level), Kind::Array | Kind::Object) => self.pass_over(level),
            _ => self.check(),
        }
    }

    /// Takes any value.
    fn check(&mut self) -> Result<(), Flaw> {
        self.scratch.open.clear();
        loop {
            match self.kind()? {
                Kind::String => {
                    self.quoted()?;
                }
                Kind::Number => {
                    self.number()?;
                }
                Kind::Null | Kind::Bool => {
                    self.word()?;
                }
                kind => {
                    let object = kind == Kind::Object;
                    if self.open(if object { b'}' } else { b']' })? {
                        self.scratch.open.push(object);
                        if object {
                            self.key()?;
                        }
                        continue;
                    }
                }
            }
            // A value is over; so may be what it is in.
            loop {
                let Some(object) = self.scratch.open.last().copied() else { return Ok(()) };
                if self.more(if object { b'}' } else { b']' })? {
                    if object {
                        self.key()?;
                    }
                    break;
                }
                self.scratch.open.pop();
            }
        }
    }
}

/// The first byte from `at` on that a string does not hold as it is: a quote, a backslash, a control character; zero at the
/// end.
#[inline(always)]
fn stop(text: &[u8], mut at: usize) -> (usize, u8) {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const TOPS: u64 = ONES << 7;
    while let Some(word) = text.get(at..).and_then(|rest| rest.first_chunk()) {
        let word = u64::from_le_bytes(*word);
        // The top bit of each byte below a limit of at most 128; right up to the first such byte.
        let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
        let same = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
        let found = (same(b'"') | same(b'\\') | below(word, 0x20)) & TOPS;
        if found != 0 {
            at += (found.trailing_zeros() / 8) as usize;
            break;
        }
        at += 8;
    }
    let rest = text.get(at..).unwrap_or_default();
    match rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)) {
        Some(found) => (at + found, rest.get(found).copied().unwrap_or(0)),
        None => (text.len(), 0),
    }
}

/// A key as it is usually spelled: in quotes, without escapes, a colon behind it.
#[derive(Clone, Debug)]
pub(crate) struct Spelled {
    bytes: Vec<u8>,
    /// The first sixteen bytes, and ones where there are any.
    head: u128,
    mask: u128,
}

impl Spelled {
    pub(crate) fn new(name: &str) -> Self {
        let bytes = [b"\"", name.as_bytes(), b"\":"].concat();
        let (mut head, mut mask) = ([0; 16], [0; 16]);
        for ((head, mask), byte) in head.iter_mut().zip(&mut mask).zip(&bytes) {
            (*head, *mask) = (*byte, u8::MAX);
        }
        let plain = name.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\');
        // A name that needs escapes is never found this way.
        let bytes = if plain { bytes } else { Vec::new() };
        Self { bytes, head: u128::from_le_bytes(head), mask: u128::from_le_bytes(mask) }
    }

    #[inline(always)]
    fn is_at(&self, text: &[u8], at: usize) -> bool {
        let rest = text.get(at..).unwrap_or_default();
        match rest.first_chunk::<16>() {
            Some(chunk) if (u128::from_le_bytes(*chunk) ^ self.head) & self.mask != 0 => false,
            Some(_) if self.bytes.len() <= 16 => !self.bytes.is_empty(),
            _ => !self.bytes.is_empty() && rest.starts_with(&self.bytes),
        }
    }
}

#[cfg(test)]
mod tests;
