//! The one place where text meets a terminal. Names, values and messages may hold characters that move the cursor, change
//! colours or turn the direction of writing; what a terminal gets has these spelled out, so that they do nothing but be seen.
//!
//! Files and pipes get rows exactly as they are. Messages are lines for people wherever they go, and spelled out everywhere.

use std::fmt::Display;
use std::io::{IsTerminal, Stderr, Stdout, Write};

pub(crate) use plinth_core::text::{is_plain, spell, spelled};

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
