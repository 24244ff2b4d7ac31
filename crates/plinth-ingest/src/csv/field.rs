//! CSV as RFC 4180 has it, and as others write it: what its bytes mean, and what a field stands for.
//!
//! A quote opens a field only where the field starts; elsewhere it is a character like any other. Within quotes a quote is
//! written twice, or after the dialect's escape, and delimiters and line ends are text. A record ends with LF or CR LF, or with
//! CR where no line ends otherwise.

use std::borrow::Cow;

use memchr::memchr2;

use crate::bits::Level;
use crate::bits::dialect::Dialect;
use crate::bits::fields::FieldScan;

const UNCLOSED: &str = "a quoted field that is never closed (if quotes mean nothing here, say --quote none)";
const TEXT_BEHIND: &str = "text after the closing quote of a field (if quotes mean nothing here, say --quote none)";

/// A record without its line end.
pub(crate) fn without_line_end(record: &[u8], dialect: Dialect) -> &[u8] {
    match record.strip_suffix(&[dialect.line_end]) {
        Some(record) if dialect.line_end == b'\n' => record.strip_suffix(b"\r").unwrap_or(record),
        Some(record) => record,
        None => record,
    }
}

/// A field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    pub(crate) text: Cow<'a, str>,
    pub(crate) quoted: bool,
}

impl Dialect {
    /// What a field stands for, as it is between its delimiters.
    pub(crate) fn field<'a>(&self, field: &'a str) -> Result<Field<'a>, &'static str> {
        let Some(quote) = self.quote else { return Ok(Field { text: field.into(), quoted: false }) };
        let Some(inner) = field.strip_prefix(char::from(quote)) else {
            return Ok(Field { text: field.into(), quoted: false });
        };
        let bytes = inner.as_bytes();
        let escape = self.escape.unwrap_or(quote);
        let mut text = String::new();
        // What is before `kept` is in the text already.
        let (mut at, mut kept) = (0, 0);
        let mut keep = |kept: usize, end: usize| text.push_str(inner.get(kept..end).unwrap_or_default());
        loop {
            let found = memchr2(quote, escape, bytes.get(at..).unwrap_or_default());
            at += found.ok_or(UNCLOSED)?;
            let next = bytes.get(at + 1).copied();
            let doubled = next == Some(quote);
            if bytes.get(at) == Some(&quote) && !doubled {
                break;
            }
            if doubled || next == self.escape {
                // Of the two the second is meant.
                keep(kept, at);
                kept = at + 1;
            }
            at += 2;
        }
        if at + 1 < bytes.len() {
            return Err(TEXT_BEHIND);
        }
        if kept == 0 {
            return Ok(Field { text: inner.get(..at).unwrap_or_default().into(), quoted: true });
        }
        keep(kept, at);
        Ok(Field { text: text.into(), quoted: true })
    }
}

/// The fields of a record, as they are written.
pub(super) fn fields(record: &str, dialect: Dialect, level: Level) -> Vec<&str> {
    let (mut fields, mut start) = (Vec::new(), 0);
    FieldScan::new(level, dialect).run(record.as_bytes(), 0, true, |at, ends| {
        let mut rest = ends.fields;
        while rest != 0 {
            let end = at + rest.trailing_zeros() as usize;
            fields.push(record.get(start..end).unwrap_or_default());
            start = end + 1;
            rest &= rest - 1;
        }
        true
    });
    fields.push(record.get(start..).unwrap_or_default());
    fields
}

#[cfg(test)]
mod tests;
