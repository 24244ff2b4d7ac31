//! CSV as RFC 4180 has it: where records end, and what their fields are.
//!
//! A quote opens a field only where the field starts; elsewhere it is a character like any other. Within quotes a quote is
//! written twice, and delimiters and line ends are text. A record ends with LF or CR LF.

use memchr::{memchr, memchr2, memrchr};

/// What separates and encloses fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dialect {
    pub(crate) delimiter: u8,
    pub(crate) quote: Option<u8>,
}

/// Finds the ends of records in bytes that start with a record. Without quotes, every LF ends one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Boundaries {
    dialect: Dialect,
    /// Whether the scan is within quotes.
    pub(crate) quoted: bool,
}

impl Boundaries {
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self { dialect, quoted: false }
    }

    /// Continues at `from`: the first byte after the record's line end, or else how far the scan came. Where more bytes
    /// may follow (`last` is false), a closing quote at the end waits for what comes after it.
    pub(crate) fn next(&mut self, bytes: &[u8], from: usize, last: bool) -> Result<usize, usize> {
        let mut at = from;
        let rest = |at: usize| bytes.get(at..).unwrap_or_default();
        let Some(quote) = self.dialect.quote else {
            return memchr(b'\n', rest(at)).map(|found| at + found + 1).ok_or(bytes.len());
        };
        loop {
            if self.quoted {
                at += memchr(quote, rest(at)).ok_or(bytes.len())?;
                match bytes.get(at + 1) {
                    Some(next) if *next == quote => at += 2,
                    None if !last => return Err(at),
                    _ => {
                        self.quoted = false;
                        at += 1;
                    }
                }
            } else {
                at += memchr2(quote, b'\n', rest(at)).ok_or(bytes.len())?;
                if bytes.get(at) == Some(&b'\n') {
                    return Ok(at + 1);
                }
                let before = at.checked_sub(1).and_then(|before| bytes.get(before));
                self.quoted = before.is_none_or(|b| *b == self.dialect.delimiter || *b == b'\n');
                at += 1;
            }
        }
    }

    /// The end of the last whole record, scanning from `from`, and how far the scan came.
    pub(crate) fn last(&mut self, bytes: &[u8], from: usize, last: bool) -> (Option<usize>, usize) {
        let rest = bytes.get(from..).unwrap_or_default();
        let plain = match self.dialect.quote {
            None => true,
            Some(quote) => !self.quoted && memchr(quote, rest).is_none(),
        };
        if plain {
            let found = memrchr(b'\n', rest);
            return (found.map(|found| from + found + 1), bytes.len());
        }
        let (mut end, mut at) = (None, from);
        loop {
            match self.next(bytes, at, last) {
                Ok(next) => {
                    end = Some(next);
                    at = next;
                }
                Err(scanned) => return (end, scanned),
            }
        }
    }
}

/// A record without its line end.
pub(crate) fn without_line_end(record: &[u8]) -> &[u8] {
    record.strip_suffix(b"\r\n").or_else(|| record.strip_suffix(b"\n")).unwrap_or(record)
}

/// The fields of one record; its allocations are used again for the next.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    /// What fields with doubled quotes stand for.
    unescaped: String,
    spans: Vec<Span>,
    count: usize,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    start: usize,
    end: usize,
    quoted: bool,
    /// In `unescaped`, not in the record.
    unescaped: bool,
}

/// A field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    pub(crate) text: &'a str,
    pub(crate) quoted: bool,
}

impl Fields {
    /// Takes a record apart; of more than `most` fields the others are only counted.
    pub(crate) fn parse(&mut self, record: &str, dialect: Dialect, most: usize) -> Result<(), &'static str> {
        self.unescaped.clear();
        self.spans.clear();
        self.count = 0;
        let bytes = record.as_bytes();
        let mut at = 0;
        loop {
            if dialect.quote.is_some() && bytes.get(at).copied() == dialect.quote {
                let span = self.quoted(record, at + 1, bytes.get(at).copied().unwrap_or(b'"'))?;
                self.add(span.0, most);
                match bytes.get(span.1) {
                    None => return Ok(()),
                    Some(next) if *next == dialect.delimiter => at = span.1 + 1,
                    Some(_) => return Err("text after the closing quote of a field"),
                }
            } else {
                let found = memchr(dialect.delimiter, bytes.get(at..).unwrap_or_default());
                let end = found.map_or(bytes.len(), |found| at + found);
                self.add(Span { start: at, end, quoted: false, unescaped: false }, most);
                if found.is_none() {
                    return Ok(());
                }
                at = end + 1;
            }
        }
    }

    fn add(&mut self, span: Span, most: usize) {
        self.count += 1;
        if self.spans.len() < most {
            self.spans.push(span);
        }
    }

    /// How many fields the record that was parsed last has.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The quoted field whose text starts at `start`, and where what follows its closing quote is.
    fn quoted(&mut self, record: &str, start: usize, quote: u8) -> Result<(Span, usize), &'static str> {
        let bytes = record.as_bytes();
        let kept = self.unescaped.len();
        let (mut segment, mut doubled) = (start, false);
        let mut at = start;
        loop {
            at += memchr(quote, bytes.get(at..).unwrap_or_default()).ok_or("a quoted field that is never closed")?;
            if bytes.get(at + 1) == Some(&quote) {
                self.unescaped.push_str(record.get(segment..=at).unwrap_or_default());
                doubled = true;
                at += 2;
                segment = at;
                continue;
            }
            if !doubled {
                return Ok((Span { start, end: at, quoted: true, unescaped: false }, at + 1));
            }
            self.unescaped.push_str(record.get(segment..at).unwrap_or_default());
            return Ok((Span { start: kept, end: self.unescaped.len(), quoted: true, unescaped: true }, at + 1));
        }
    }

    /// The fields of the record that was parsed last, as many as were wanted.
    pub(crate) fn iter<'a>(&'a self, record: &'a str) -> impl ExactSizeIterator<Item = Field<'a>> {
        self.spans.iter().map(move |span| {
            let from = if span.unescaped { self.unescaped.as_str() } else { record };
            Field { text: from.get(span.start..span.end).unwrap_or_default(), quoted: span.quoted }
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RFC: Dialect = Dialect { delimiter: b',', quote: Some(b'"') };

    type Parsed = Result<Vec<(String, bool)>, ()>;

    /// One character after the other: the fields of each record, or why there are none.
    fn naive(text: &str) -> Vec<(String, Parsed)> {
        #[derive(PartialEq)]
        enum At {
            Start,
            Plain,
            Quoted,
            Closed,
            Broken,
        }
        let mut records = Vec::new();
        let (mut raw, mut fields, mut field, mut at, mut quoted) =
            (String::new(), vec![], String::new(), At::Start, false);
        let mut characters = text.chars().peekable();
        let mut broken = false;
        while let Some(c) = characters.next() {
            raw.push(c);
            let line_end = c == '\n' || (c == '\r' && characters.peek() == Some(&'\n') && at != At::Quoted);
            if at != At::Quoted && line_end {
                if c == '\r' {
                    raw.push(characters.next().unwrap());
                }
                fields.push((std::mem::take(&mut field), quoted));
                let fields = std::mem::take(&mut fields);
                records.push((std::mem::take(&mut raw), if broken { Err(()) } else { Ok(fields) }));
                (at, quoted, broken) = (At::Start, false, false);
                continue;
            }
            match (&at, c) {
                (At::Start | At::Plain | At::Closed | At::Broken, ',') => {
                    fields.push((std::mem::take(&mut field), quoted));
                    (at, quoted) = (At::Start, false);
                }
                (At::Start, '"') => (at, quoted) = (At::Quoted, true),
                (At::Quoted, '"') if characters.peek() == Some(&'"') => {
                    raw.push(characters.next().unwrap());
                    field.push('"');
                }
                (At::Quoted, '"') => at = At::Closed,
                (At::Closed, _) => (at, broken) = (At::Broken, true),
                (At::Start, c) => {
                    at = At::Plain;
                    field.push(c);
                }
                (_, c) => field.push(c),
            }
        }
        if !raw.is_empty() {
            fields.push((field, quoted));
            records.push((raw, if broken || at == At::Quoted { Err(()) } else { Ok(fields) }));
        }
        records
    }

    #[test]
    fn fields_that_are_too_many_are_counted_and_not_kept() {
        let mut fields = Fields::default();
        for (most, kept) in [(0, 0), (2, 2), (9, 5)] {
            fields.parse(r#"a,"b""b",,"d","#, RFC, most).unwrap();
            assert_eq!((fields.count(), fields.spans.len()), (5, kept));
        }
        assert!(fields.parse(r#"a,"b"c"#, RFC, 1).is_err(), "what is not kept is checked all the same");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

        #[test]
        fn records_and_fields_are_those_of_a_naive_reader(text in "[a\",\r\n é]{0,40}") {
            let mut boundaries = Boundaries::new(RFC);
            let mut fields = Fields::default();
            let (mut start, mut got) = (0, vec![]);
            while start < text.len() {
                boundaries.quoted = false;
                // The scan is one over the rest, as a piece of a file would be.
                let end = start + boundaries.next(&text.as_bytes()[start..], 0, true).unwrap_or(text.len() - start);
                let record = &text[start..end];
                let inner = std::str::from_utf8(without_line_end(record.as_bytes())).unwrap();
                let parsed = fields.parse(inner, RFC, usize::MAX).map_err(|_| ());
                let owned = |f: Field<'_>| (f.text.to_owned(), f.quoted);
                got.push((record.to_owned(), parsed.map(|()| fields.iter(inner).map(owned).collect())));
                start = end;
            }
            prop_assert_eq!(got, naive(&text));
        }

        #[test]
        fn a_scan_in_steps_finds_what_a_scan_at_once_finds(text in "[a\",\n]{0,40}", step in 1usize..7) {
            let whole = Boundaries::new(RFC).last(text.as_bytes(), 0, true).0;
            let mut boundaries = Boundaries::new(RFC);
            let (mut end, mut scanned, mut until) = (None, 0, 0);
            while until < text.len() {
                until = (until + step).min(text.len());
                let (found, at) = boundaries.last(&text.as_bytes()[..until], scanned, until == text.len());
                end = found.or(end);
                scanned = at;
            }
            prop_assert_eq!(end, whole);
        }
    }
}
