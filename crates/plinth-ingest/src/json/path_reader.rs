//! The part of a document that is around its rows: checked byte by byte, in memory that grows with depth alone.
//!
//! A [`PathReader`] takes bytes in parts of any size and stops where the rows begin; it goes on where they end. It is as strict
//! as the tokenizer of the rows is.

use super::flaw::{Flaw, TOO_DEEP};
use super::path::{Root, Step};
use super::string::{code_point, unescape};

/// Bytes of a key that are kept to be compared.
const KEY: usize = 16 << 10;

/// Keys that a message names.
const KEYS: usize = 8;

/// Where a [`PathReader`] stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Halt {
    /// The bytes are used up.
    More,
    /// The first byte after the bracket that opens the rows' array.
    Rows(usize),
    /// The first byte of a value that the path leads to and that is no array.
    Value(usize),
    /// The first byte after that value.
    ValueEnd(usize),
}

/// What is expected next.
#[derive(Clone, Copy, Debug)]
enum Expect {
    /// A value; in an array just opened, maybe its end.
    Value {
        or_end: bool,
    },
    /// A key; in an object just opened, maybe its end.
    Key {
        or_end: bool,
    },
    Colon,
    /// A comma or the end of what is open.
    After,
    String {
        key: bool,
    },
    /// An escape, of which so many bytes are there.
    Escape {
        key: bool,
        count: usize,
    },
    Number(Number),
    Word(&'static [u8]),
}

/// The part of a number that was read last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Minus,
    Zero,
    Whole,
    Point,
    Fraction,
    E,
    Sign,
    Power,
}

#[derive(Debug)]
struct Frame {
    object: bool,
    /// Whether the path leads through it.
    on_path: bool,
    /// Elements before the one it is at.
    index: u64,
}

/// Goes through a document.
#[derive(Debug)]
pub(super) struct PathReader {
    root: Root,
    depth: usize,
    expect: Expect,
    frames: Vec<Frame>,
    /// The key that is being read or was read last, as it is spelled.
    key: Vec<u8>,
    escape: [u8; 12],
    utf8: Utf8,
    /// The depth of the value that the path led to, while it goes on.
    value: Option<usize>,
    found: u64,
    /// Keys that were seen where the path looked for another.
    seen: Vec<String>,
}

impl PathReader {
    pub(super) fn new(root: Root, depth: usize) -> Self {
        Self {
            root,
            depth,
            expect: Expect::Value { or_end: false },
            frames: Vec::new(),
            key: Vec::new(),
            escape: [0; 12],
            utf8: Utf8::default(),
            value: None,
            found: 0,
            seen: Vec::new(),
        }
    }

    /// Goes on at a byte.
    pub(super) fn next(&mut self, bytes: &[u8], from: usize) -> Result<Halt, Flaw> {
        let mut at = from;
        while let Some(&byte) = bytes.get(at) {
            let flaw = |what| Err(Flaw { at, what });
            match self.expect {
                Expect::String { key } if self.utf8.plain(byte) => {
                    if key && self.key.len() < KEY {
                        self.key.push(byte);
                    }
                    at += 1;
                    continue;
                }
                Expect::String { key } => {
                    match byte {
                        b'"' if self.utf8.complete() => {
                            self.expect = if key { Expect::Colon } else { Expect::After };
                            if !key && let Some(end) = self.value_over(at + 1) {
                                return Ok(end);
                            }
                        }
                        b'\\' if self.utf8.complete() => {
                            self.escape = [0; 12];
                            *self.escape.first_mut().unwrap_or(&mut 0) = byte;
                            self.expect = Expect::Escape { key, count: 1 };
                        }
                        0..0x20 => return flaw("a control character in a string"),
                        byte if self.utf8.next(byte) => {}
                        _ => return flaw("not UTF-8 text"),
                    }
                    if key && self.key.len() < KEY && !matches!(self.expect, Expect::Colon) {
                        self.key.push(byte);
                    }
                    at += 1;
                }
                Expect::Escape { key, count } => {
                    self.escape(byte, key, count).map_err(|what| Flaw { at, what })?;
                    at += 1;
                }
                Expect::Number(part) => match part.then(byte) {
                    Some(Ok(part)) => {
                        self.expect = Expect::Number(part);
                        at += 1;
                    }
                    Some(Err(what)) => return flaw(what),
                    // The byte is none of the number's.
                    None => {
                        self.expect = Expect::After;
                        if let Some(end) = self.value_over(at) {
                            return Ok(end);
                        }
                    }
                },
                Expect::Word(rest) => {
                    if rest.first() != Some(&byte) {
                        return flaw("expected a JSON value");
                    }
                    at += 1;
                    let rest = rest.get(1..).unwrap_or_default();
                    self.expect = if rest.is_empty() { Expect::After } else { Expect::Word(rest) };
                    if rest.is_empty()
                        && let Some(end) = self.value_over(at)
                    {
                        return Ok(end);
                    }
                }
                _ if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') => at += 1,
                _ => {
                    if let Some(halt) = self.token(byte, at)? {
                        return Ok(halt);
                    }
                    at += 1;
                }
            }
        }
        Ok(Halt::More)
    }

    /// A byte outside of strings and scalars.
    fn token(&mut self, byte: u8, at: usize) -> Result<Option<Halt>, Flaw> {
        let flaw = |what| Err(Flaw { at, what });
        let last = self.frames.last().map(|frame| frame.object);
        match (self.expect, byte) {
            (Expect::Value { or_end: true }, b']') | (Expect::Key { or_end: true }, b'}') => Ok(self.close(at)),
            (Expect::Value { .. }, _) => {
                if let Some(halt) = self.lead(byte, at)? {
                    return Ok(Some(halt));
                }
                self.value(byte, at)?;
                Ok(None)
            }
            (Expect::Key { .. }, b'"') => {
                self.key.clear();
                self.expect = Expect::String { key: true };
                Ok(None)
            }
            (Expect::Key { .. }, _) => flaw("expected a key in quotes"),
            (Expect::Colon, b':') => {
                self.expect = Expect::Value { or_end: false };
                Ok(None)
            }
            (Expect::Colon, _) => flaw("expected a colon"),
            (_, b',') if last.is_some() => {
                if let Some(frame) = self.frames.last_mut() {
                    frame.index += 1;
                }
                self.expect =
                    if last == Some(true) { Expect::Key { or_end: false } } else { Expect::Value { or_end: false } };
                Ok(None)
            }
            (_, b'}') if last == Some(true) => Ok(self.close(at)),
            (_, b']') if last == Some(false) => Ok(self.close(at)),
            _ => flaw(match last {
                Some(true) => "expected a comma or }",
                Some(false) => "expected a comma or ]",
                None => "something after the JSON value",
            }),
        }
    }

    /// If the path leads to the value that begins here: what that is.
    fn lead(&mut self, byte: u8, at: usize) -> Result<Option<Halt>, Flaw> {
        if self.value.is_some() || self.frames.len() != self.root.steps.len() || !self.is_on_path() {
            return Ok(None);
        }
        self.found += 1;
        if self.found > 1 && !self.root.is_pattern() {
            return Err(Flaw { at, what: "the key that leads to the rows occurs twice" });
        }
        if byte == b'[' {
            self.open(false, at)?;
            return Ok(Some(Halt::Rows(at + 1)));
        }
        self.value = Some(self.frames.len());
        self.value(byte, at)?;
        Ok(Some(Halt::Value(at)))
    }

    /// Whether the path leads through all that is open and to what comes next.
    fn is_on_path(&mut self) -> bool {
        let Some(depth) = self.frames.len().checked_sub(1) else { return true };
        let (Some(frame), Some(step)) = (self.frames.get(depth), self.root.steps.get(depth)) else { return false };
        if !frame.on_path {
            return false;
        }
        if !frame.object {
            return matches!(step, Step::Any)
                || matches!(step, Step::Index(n) | Step::Either(_, n) if *n == frame.index);
        }
        let (Step::Key(wanted) | Step::Either(wanted, _)) = step else { return false };
        if self.key.len() == KEY {
            return false;
        }
        let mut unescaped = String::new();
        let key = unescape(std::str::from_utf8(&self.key).unwrap_or_default(), &mut unescaped);
        if key != wanted && self.seen.len() < KEYS && !self.seen.iter().any(|seen| seen == key) {
            self.seen.push(key.to_owned());
        }
        key == wanted
    }

    /// Begins a value.
    fn value(&mut self, byte: u8, at: usize) -> Result<(), Flaw> {
        self.expect = match byte {
            b'{' | b'[' => return self.open(byte == b'{', at),
            b'"' => Expect::String { key: false },
            b'-' => Expect::Number(Number::Minus),
            b'0' => Expect::Number(Number::Zero),
            b'1'..=b'9' => Expect::Number(Number::Whole),
            b't' => Expect::Word(b"rue"),
            b'f' => Expect::Word(b"alse"),
            b'n' => Expect::Word(b"ull"),
            _ => return Err(Flaw { at, what: "expected a JSON value" }),
        };
        Ok(())
    }

    fn open(&mut self, object: bool, at: usize) -> Result<(), Flaw> {
        if self.frames.len() >= self.depth {
            return Err(Flaw { at, what: TOO_DEEP });
        }
        let on_path = self.value.is_none() && self.frames.len() < self.root.steps.len() && self.is_on_path();
        self.frames.push(Frame { object, on_path, index: 0 });
        self.expect = if object { Expect::Key { or_end: true } } else { Expect::Value { or_end: true } };
        Ok(())
    }

    fn close(&mut self, at: usize) -> Option<Halt> {
        self.frames.pop();
        self.expect = Expect::After;
        self.value_over(at + 1)
    }

    /// If the value that the path led to is over.
    fn value_over(&mut self, end: usize) -> Option<Halt> {
        (self.value == Some(self.frames.len())).then(|| {
            self.value = None;
            Halt::ValueEnd(end)
        })
    }

    /// The array of rows was closed.
    pub(super) fn close_rows(&mut self) {
        self.close(0);
    }

    /// One more byte of an escape.
    fn escape(&mut self, byte: u8, key: bool, count: usize) -> Result<(), &'static str> {
        const NONE: &str = "a \\u escape that is no character";
        if let Some(slot) = self.escape.get_mut(count) {
            *slot = byte;
        }
        if key && self.key.len() < KEY {
            self.key.push(byte);
        }
        let so_far = self.escape.get(..=count).unwrap_or_default();
        let done = match (count, byte) {
            (1, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => true,
            (1, b'u') => false,
            (1, _) => return Err("an unknown escape in a string"),
            (2..=5 | 8.., byte) if !byte.is_ascii_hexdigit() => return Err(NONE),
            (6, byte) if byte != b'\\' => return Err(NONE),
            (7, byte) if byte != b'u' => return Err(NONE),
            // Half a pair may become a whole one.
            (5, _) => {
                let high = matches!(so_far, [_, _, b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B', ..]);
                if !high && code_point(so_far, 0).is_none() {
                    return Err(NONE);
                }
                !high
            }
            (11.., _) if code_point(so_far, 0).is_none() => return Err(NONE),
            (11.., _) => true,
            _ => false,
        };
        self.expect = if done { Expect::String { key } } else { Expect::Escape { key, count: count + 1 } };
        Ok(())
    }

    /// The document ended.
    pub(super) fn finish(&mut self) -> Result<(), &'static str> {
        if let Expect::Number(part) = self.expect
            && part.then(b' ').is_none()
        {
            self.expect = Expect::After;
        }
        match (self.expect, self.frames.is_empty()) {
            (Expect::After, true) => Ok(()),
            _ => Err("the JSON ends too early"),
        }
    }

    /// Where the value would have ended that the path led to, at the end of the document.
    pub(super) fn is_in_value(&self) -> bool {
        self.value.is_some()
    }

    /// Whether the path led to anything; if not, the keys that were there instead.
    pub(super) fn missing(&self) -> Option<&[String]> {
        (self.found == 0 && !self.root.is_pattern()).then_some(&self.seen)
    }
}

impl Number {
    /// The part that a byte belongs to: `None` if the number is over before it, an error if it can't be.
    fn then(self, byte: u8) -> Option<Result<Self, &'static str>> {
        use Number::{E, Fraction, Minus, Point, Power, Sign, Whole, Zero};
        let part = match (self, byte) {
            (Minus, b'0') => Zero,
            (Minus | Whole, b'0'..=b'9') => Whole,
            (Zero, b'0'..=b'9') => return Some(Err("a number with a leading zero")),
            (Zero | Whole, b'.') => Point,
            (Point | Fraction, b'0'..=b'9') => Fraction,
            (Zero | Whole | Fraction, b'e' | b'E') => E,
            (E, b'+' | b'-') => Sign,
            (E | Sign | Power, b'0'..=b'9') => Power,
            (Minus | Point | E | Sign, _) => return Some(Err("expected a digit")),
            (Zero | Whole | Fraction | Power, _) => return None,
        };
        Some(Ok(part))
    }
}

/// What the bytes before say about the next byte of UTF-8.
#[derive(Clone, Copy, Debug, Default)]
struct Utf8 {
    /// Bytes of the character that are missing.
    missing: u8,
    /// What the next of them has to be at least and at most.
    least: u8,
    most: u8,
}

impl Utf8 {
    /// Whether a byte is a character of its own that needs no look.
    #[inline(always)]
    fn plain(self, byte: u8) -> bool {
        self.missing == 0 && (0x20..0x80).contains(&byte) && byte != b'"' && byte != b'\\'
    }

    fn complete(self) -> bool {
        self.missing == 0
    }

    /// Whether a byte may follow.
    fn next(&mut self, byte: u8) -> bool {
        if self.missing > 0 {
            let fits = (self.least..=self.most).contains(&byte);
            *self = Self { missing: self.missing - 1, least: 0x80, most: 0xbf };
            return fits;
        }
        let (missing, least, most) = match byte {
            0..0x80 => return true,
            0xc2..=0xdf => (1, 0x80, 0xbf),
            0xe0 => (2, 0xa0, 0xbf),
            0xed => (2, 0x80, 0x9f),
            0xe1..=0xef => (2, 0x80, 0xbf),
            0xf0 => (3, 0x90, 0xbf),
            0xf1..=0xf3 => (3, 0x80, 0xbf),
            0xf4 => (3, 0x80, 0x8f),
            _ => return false,
        };
        *self = Self { missing, least, most };
        true
    }
}

#[cfg(test)]
mod tests;
