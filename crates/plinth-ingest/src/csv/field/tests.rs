#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use crate::bits::Level;
use crate::bits::fields::FieldScan;
use proptest::prelude::*;

type Parsed = Result<Vec<(String, bool)>, ()>;

/// One character after the other: each record, and its fields unless it is broken.
fn naive(text: &str, dialect: Dialect) -> Vec<(String, Parsed)> {
    #[derive(PartialEq, Clone, Copy)]
    enum At {
        Start,
        Plain,
        Quoted,
        Closed,
        Broken,
    }
    let (delimiter, line_end) = (char::from(dialect.delimiter), char::from(dialect.line_end));
    let (quote, escape) = (dialect.quote.map(char::from), dialect.escape.map(char::from));
    let mut records = Vec::new();
    let (mut raw, mut fields, mut field) = (String::new(), vec![], String::new());
    let (mut at, mut quoted, mut broken) = (At::Start, false, false);
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        raw.push(c);
        let before_feed = c == '\r' && line_end == '\n' && characters.peek() == Some(&'\n');
        if at != At::Quoted && (c == line_end || before_feed) {
            if before_feed {
                raw.push(characters.next().unwrap());
            }
            fields.push((std::mem::take(&mut field), quoted));
            let fields = std::mem::take(&mut fields);
            records.push((std::mem::take(&mut raw), if broken { Err(()) } else { Ok(fields) }));
            (at, quoted, broken) = (At::Start, false, false);
            continue;
        }
        let next = characters.peek().copied();
        match at {
            At::Quoted if Some(c) == escape && (next == quote || next == escape) => {
                raw.push(characters.next().unwrap());
                field.extend(next);
            }
            At::Quoted if Some(c) == quote && next == quote => {
                raw.push(characters.next().unwrap());
                field.extend(next);
            }
            At::Quoted if Some(c) == quote => at = At::Closed,
            At::Quoted => field.push(c),
            _ if c == delimiter => {
                fields.push((std::mem::take(&mut field), quoted));
                (at, quoted) = (At::Start, false);
            }
            At::Start if Some(c) == quote => (at, quoted) = (At::Quoted, true),
            At::Closed => (at, broken) = (At::Broken, true),
            At::Start => {
                at = At::Plain;
                field.push(c);
            }
            At::Plain | At::Broken => field.push(c),
        }
    }
    if !raw.is_empty() {
        fields.push((field, quoted));
        records.push((raw, if broken || at == At::Quoted { Err(()) } else { Ok(fields) }));
    }
    records
}

/// The same by where fields end.
fn scanned(text: &str, dialect: Dialect, level: Level, cuts: &[usize]) -> Vec<(String, Parsed)> {
    let bytes = text.as_bytes();
    let mut scan = FieldScan::new(level, dialect);
    let (mut ends, mut odd, mut at) = (Vec::new(), false, 0);
    for cut in cuts.iter().copied().chain([bytes.len()]) {
        at = scan.run(&bytes[..cut], at, cut == bytes.len(), |at, found| {
            odd |= found.odd;
            ends.extend(
                (0..64).filter(|bit| found.fields >> bit & 1 == 1).map(|bit| (at + bit, found.records >> bit & 1 == 1)),
            );
            true
        });
    }
    assert_eq!(at, bytes.len());
    if ends.last().map_or(0, |(end, record)| if *record { end + 1 } else { 0 }) < bytes.len() {
        ends.push((bytes.len(), true));
    }
    let (mut records, mut fields, mut start, mut first) = (Vec::new(), Vec::new(), 0, 0);
    for (end, record) in ends {
        let whole = &text[first..(end + 1).min(bytes.len())];
        let content = if record { without_line_end(whole.as_bytes(), dialect).len() + first } else { end };
        fields.push(
            dialect
                .field(&text[start..content.max(start)])
                .map(|field| (field.text.into_owned(), field.quoted))
                .map_err(|_| ()),
        );
        start = end + 1;
        if record {
            records.push((whole.to_owned(), std::mem::take(&mut fields).into_iter().collect()));
            first = start;
        }
    }
    let broken = records.iter().any(|(_, fields): &(_, Parsed)| fields.is_err());
    assert!(odd || scan.is_unsound() || !broken, "what is broken is noticed: {text:?}");
    records
}

fn dialects() -> impl Strategy<Value = Dialect> {
    let quote = prop::sample::select(vec![Some(b'"'), Some(b'\''), None]);
    let escape = prop::sample::select(vec![None, Some(b'\\')]);
    (prop::sample::select(b",;".to_vec()), quote, escape, prop::sample::select(b"\n\n\r".to_vec())).prop_map(
        |(delimiter, quote, escape, line_end)| Dialect {
            delimiter,
            quote,
            escape: escape.filter(|_| quote.is_some()),
            line_end,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn records_and_fields_are_those_of_a_naive_reader_however_the_bytes_come(
        text in prop_oneof![
            "[a\",\r\n é]{0,40}", "[a\"',;\r\n\\\\]{0,200}", "((\"([a,\n]|\"\"){0,9}\"|[a-z]{0,9}),){0,40}",
            "(([a-z]{0,20}|\"[a-z,\r\n]{0,70}\")[,\r]?[\n]?){0,30}",
        ],
        dialect in dialects(),
        mut cuts in prop::collection::vec(0_usize..200, 0..4),
    ) {
        cuts.retain(|cut| *cut < text.len());
        cuts.sort_unstable();
        let expected = naive(&text, dialect);
        for level in Level::all() {
            prop_assert_eq!(&scanned(&text, dialect, level, &cuts), &expected, "{:?}", level);
        }
    }

    #[test]
    fn the_first_end_and_the_last_are_those_of_all(text in "[a\",\n]{0,150}", step in 1_usize..90) {
        let dialect = Dialect { delimiter: b',', quote: Some(b'"'), escape: None, line_end: b'\n' };
        let ends: Vec<usize> = naive(&text, dialect).iter().scan(0, |end, (raw, _)| { *end += raw.len(); Some(*end) }).collect();
        let closed: Vec<usize> = match ends.split_last() {
            Some((_, rest)) if !text.ends_with('\n') || naive(&text, dialect).last().unwrap().1.is_err() && FieldScan::new(Level::Scalar, dialect).last(text.as_bytes(), 0, true).0 != Some(text.len()) => rest.to_vec(),
            _ => ends,
        };
        for level in Level::all() {
            let mut scan = FieldScan::new(level, dialect);
            prop_assert_eq!(scan.first(text.as_bytes(), 0, true).ok(), closed.first().copied());
            let mut scan = FieldScan::new(level, dialect);
            let (mut end, mut at, mut until) = (None, 0, 0);
            while until < text.len() {
                until = (until + step).min(text.len());
                let (found, scanned) = scan.last(&text.as_bytes()[..until], at, until == text.len());
                end = found.or(end);
                at = scanned;
            }
            prop_assert_eq!(end, closed.last().copied());
        }
    }
}

#[test]
fn fields_stand_for_what_they_say() {
    let rfc = Dialect { delimiter: b',', quote: Some(b'"'), escape: None, line_end: b'\n' };
    let escaped = Dialect { escape: Some(b'\\'), ..rfc };
    let none = Dialect { quote: None, ..rfc };
    for (dialect, field, expected) in [
        (rfc, "a\"b", Ok("a\"b")),
        (rfc, r#""a""b""#, Ok("a\"b")),
        (rfc, r#""""#, Ok("")),
        (rfc, r#""\""#, Ok("\\")),
        (rfc, r#""a"b"#, Err(())),
        (rfc, r#""a"#, Err(())),
        (rfc, r#"""""#, Err(())),
        (escaped, r#""a\"b\\c\d""e""#, Ok(r#"a"b\c\d"e"#)),
        (escaped, r"a\b", Ok(r"a\b")),
        (escaped, r#""\""#, Err(())),
        (none, r#""a""#, Ok(r#""a""#)),
    ] {
        assert_eq!(
            dialect.field(field).map(|field| field.text.into_owned()).map_err(|_| ()),
            expected.map(str::to_owned),
            "{field}"
        );
    }
}
