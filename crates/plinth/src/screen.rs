//! The one place where text meets a terminal. Names, values and messages may hold characters that move the cursor, change
//! colours or turn the direction of writing; what a terminal gets has these spelled out, so that they do nothing but be seen.
//!
//! Files and pipes get rows exactly as they are. Messages are lines for people wherever they go, and spelled out everywhere.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{IsTerminal, Stderr, Stdout, Write};

/// Whether a character can be shown as it is. Besides control characters, marks of bidirectional text, line separators
/// and the byte order mark can't.
pub(crate) fn is_plain(c: char) -> bool {
    let invisible = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    !(c.is_control() || invisible)
}

/// Adds a character, or how it is written where it can't be shown.
pub(crate) fn spell(shown: &mut String, c: char) {
    match c {
        '\n' => shown.push_str("\\n"),
        '\r' => shown.push_str("\\r"),
        '\t' => shown.push_str("\\t"),
        c if is_plain(c) => shown.push(c),
        c => shown.extend(c.escape_unicode()),
    }
}

/// A text on one line, with all that can't be shown spelled out.
pub(crate) fn spelled(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    text.chars().for_each(|c| spell(&mut shown, c));
    Cow::Owned(shown)
}

/// Adds lines of text with all that can't be shown spelled out, but for the ends of the lines and tabs.
pub(crate) fn spell_lines(shown: &mut String, text: &str) {
    for c in text.chars() {
        if matches!(c, '\n' | '\t') { shown.push(c) } else { spell(shown, c) }
    }
}

/// Says something to the user, on a line of standard error.
pub(crate) fn say(line: impl Display) {
    let line = line.to_string();
    // A closed standard error is no reason to fail.
    let _ = writeln!(std::io::stderr(), "{}", spelled(&line));
}

/// As [`say`], a line that was made of spelled out text and the program's own colours.
pub(crate) fn say_painted(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Standard output for lines of text.
pub(crate) fn stdout() -> Clean<Stdout> {
    let out = std::io::stdout();
    Clean::new(out.is_terminal(), out)
}

/// Standard error for text of several lines.
pub(crate) fn stderr() -> Clean<Stderr> {
    let out = std::io::stderr();
    Clean::new(out.is_terminal(), out)
}

/// A writer that spells out what a terminal must not get.
#[derive(Debug)]
pub(crate) struct Clean<W> {
    out: W,
    terminal: bool,
    /// The beginning of a character whose end has not come.
    begun: Vec<u8>,
}

impl<W: Write> Clean<W> {
    /// Passes everything on as it is unless it goes to a terminal.
    pub(crate) fn new(terminal: bool, out: W) -> Self {
        Self { out, terminal, begun: Vec::new() }
    }
}

impl<W: Write> Write for Clean<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if !self.terminal {
            return self.out.write(bytes);
        }
        self.begun.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.begun) {
            Err(e) if e.error_len().is_none() => e.valid_up_to(),
            _ => self.begun.len(),
        };
        let rest = self.begun.split_off(whole);
        let mut shown = String::with_capacity(whole);
        spell_lines(&mut shown, &String::from_utf8_lossy(&self.begun));
        self.begun = rest;
        self.out.write_all(shown.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_can_not_be_shown_is_spelled_out() {
        assert_eq!(spelled("a\u{1b}[31m\n\u{9b}\u{202e}é"), "a\\u{1b}[31m\\n\\u{9b}\\u{202e}é");
        assert!(matches!(spelled("plain é 名"), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn nothing_reaches_a_terminal_that_does_more_than_be_seen(
            pieces in proptest::collection::vec("[a\u{1b}\u{7}\u{8}\r\n\té\u{9b}\u{202e}名]{0,9}", 0..9), cut in 0usize..40,
        ) {
            let text = pieces.concat();
            let cut = cut.min(text.len());
            let write = |terminal| {
                let mut out = Vec::new();
                let mut clean = Clean::new(terminal, &mut out);
                // Characters come in parts, too.
                clean.write_all(&text.as_bytes()[..cut]).unwrap();
                clean.write_all(&text.as_bytes()[cut..]).unwrap();
                String::from_utf8(out).unwrap()
            };
            prop_assert_eq!(&write(false), &text);
            let shown = write(true);
            prop_assert!(shown.chars().all(|c| is_plain(c) || c == '\n' || c == '\t'), "{:?}", shown);
            let mut expected = String::new();
            spell_lines(&mut expected, &text);
            prop_assert_eq!(shown, expected);
        }
    }
}
