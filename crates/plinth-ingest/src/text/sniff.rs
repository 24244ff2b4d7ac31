//! How a CSV file is written, by its beginning.
//!
//! Only what nobody said is guessed, and only by evidence: another dialect than the usual one is taken where that, and not the
//! usual one, makes records of the file that all have equally many fields.

use std::collections::HashSet;
use std::sync::Arc;

use super::csv::{Dialect, without_line_end};
use super::numbers::Numbers;
use super::scalar::{boolean, form};
use super::split::fields;
use super::time;
use crate::bits::Level;
use crate::bits::fields::FieldScan;
use crate::open::{CsvOptions, Mark};

/// Delimiters that are usual.
const USUAL: [u8; 4] = *b",\t;|";

/// Those that are hardly met in text, so that they may be told from it: carets, tildes, separators of units and of headers.
const UNUSUAL: [u8; 4] = [b'^', b'~', 0x1f, 0x01];

/// Records by which a dialect is told.
const RECORDS: usize = 1_000;

/// Of ten records of a file with bad ones so many have to be alike.
const ALIKE: usize = 8;

/// What is known of a dialect.
#[derive(Clone, Debug)]
pub(crate) struct Sniffing {
    delimiter: Option<u8>,
    /// The delimiter if nothing speaks for another.
    usual: u8,
    quote: Mark,
    escape: Mark,
    header: Option<bool>,
    numbers: Numbers,
    /// The columns that are wanted, if they were given.
    names: Option<Arc<HashSet<String>>>,
}

impl Sniffing {
    /// Or why there is no such dialect.
    pub(crate) fn new(options: &CsvOptions, usual: u8, names: Option<HashSet<String>>) -> Result<Self, &'static str> {
        let CsvOptions { delimiter, quote, escape, header, thousands, decimal, .. } = options;
        let unfit = |byte: u8| !byte.is_ascii() || matches!(byte, b'\n' | b'\r' | 0);
        let quoting = if *quote == Mark::Sniffed { Some(b'"') } else { quote.byte() };
        let signs = [*delimiter, quoting, escape.byte()];
        let same = |a: Option<u8>, b: Option<u8>| a.is_some() && a == b;
        if signs.into_iter().flatten().any(unfit) || same(*delimiter, quoting) || same(*delimiter, escape.byte()) {
            return Err("delimiter and quote have to be two different ASCII characters, not line ends");
        }
        let number = |byte: u8| !byte.is_ascii_digit() && byte.is_ascii() && !matches!(byte, b'-' | b'+' | b'e' | b'E');
        if !thousands.is_none_or(number) || !number(*decimal) || *thousands == Some(*decimal) {
            return Err("the separator of thousands and the decimal point have to be two different ASCII characters");
        }
        Ok(Self {
            delimiter: *delimiter,
            usual,
            quote: *quote,
            // A quote is written twice anyway.
            escape: if same(quoting, escape.byte()) { Mark::None } else { *escape },
            header: *header,
            numbers: Numbers { thousands: *thousands, decimal: *decimal },
            names: names.map(Arc::new),
        })
    }

    /// Quotes and escapes that may be, the usual ones first.
    fn quotings(&self) -> Vec<(Option<u8>, Option<u8>)> {
        let quotes: &[Option<u8>] = match self.quote {
            Mark::Sniffed => &[Some(b'"'), Some(b'\'')],
            Mark::None => &[None],
            Mark::Byte(byte) => &[Some(byte)],
        };
        let escapes: &[Option<u8>] = match self.escape {
            Mark::Sniffed => &[None, Some(b'\\')],
            Mark::None => &[None],
            Mark::Byte(byte) => &[Some(byte)],
        };
        let with = |quote: &Option<u8>| escapes.iter().map(|escape| (*quote, quote.and(*escape))).collect::<Vec<_>>();
        let mut all: Vec<_> = quotes.iter().flat_map(with).collect();
        all.dedup();
        all
    }
}

/// The dialect of a file that begins so, and whether its first record is a header; `whole` if that is all of it.
pub(super) fn sniff(head: &[u8], whole: bool, sniffing: &Sniffing, level: Level) -> (Dialect, bool) {
    let line_end = if memchr::memchr2(b'\n', b'\r', head).is_some() && memchr::memchr(b'\n', head).is_none() {
        b'\r'
    } else {
        b'\n'
    };
    let text = String::from_utf8_lossy(head);
    let quotings = sniffing.quotings();
    let usual = sniffing.delimiter.unwrap_or(sniffing.usual);
    let (quote, escape) = quotings.first().copied().unwrap_or_default();
    let default = Dialect { delimiter: usual, quote, escape, line_end };
    let delimiters: Vec<u8> = match sniffing.delimiter {
        Some(told) => vec![told],
        None => [usual].into_iter().chain(USUAL.into_iter().filter(|byte| *byte != usual)).collect(),
    };
    let sample = |dialect| Sample { text: &text, dialect, level, whole };
    let of = |delimiters: &[u8], (quote, escape)| {
        let dialects = delimiters.iter().filter(|byte| Some(**byte) != quote && Some(**byte) != escape);
        dialects.map(|delimiter| Dialect { delimiter: *delimiter, quote, escape, line_end }).collect::<Vec<_>>()
    };
    let perfect = |delimiters: &[u8], fewest: usize| {
        quotings.iter().find_map(|quoting| {
            let dialects = of(delimiters, *quoting);
            let counted = |dialect: &Dialect| sample(*dialect).perfect(fewest).map(|fields| (fields, *dialect));
            // The usual one needs no more fields than others.
            let first = dialects.first().filter(|dialect| dialect.delimiter == usual).and_then(counted);
            first.or_else(|| {
                let mut best: Option<(usize, Dialect)> = None;
                for found in dialects.iter().filter_map(counted) {
                    if best.is_none_or(|(fields, _)| found.0 > fields) {
                        best = Some(found);
                    }
                }
                best
            })
        })
    };
    let unusual = || if sniffing.delimiter.is_some() { None } else { perfect(&UNUSUAL, 2) };
    let mostly = || {
        let mut best: Option<(usize, Dialect)> = None;
        for dialect in of(&delimiters, (quote, escape)) {
            if let Some(share) = sample(dialect).share()
                && best.is_none_or(|(most, _)| share > most)
            {
                best = Some((share, dialect));
            }
        }
        best
    };
    let found = perfect(&delimiters, 1).or_else(unusual).or_else(mostly);
    let dialect = found.map_or(default, |(_, dialect)| dialect);
    (dialect, sniffing.header.unwrap_or_else(|| sample(dialect).has_header(sniffing)))
}

/// The beginning of a file as one dialect has it.
struct Sample<'a> {
    text: &'a str,
    dialect: Dialect,
    level: Level,
    whole: bool,
}

impl Sample<'_> {
    /// The records that are complete and not blank.
    fn records(&self) -> impl Iterator<Item = &str> {
        let mut scan = FieldScan::new(self.level, self.dialect);
        let mut start = 0;
        let records = std::iter::from_fn(move || {
            let rest = self.text.get(start..).filter(|rest| !rest.is_empty())?;
            let end = match scan.first(rest.as_bytes(), 0, true) {
                Ok(end) => end,
                // Nothing is known of what is cut off.
                Err(end) => self.whole.then_some(end)?,
            };
            start += end;
            let record = without_line_end(rest.as_bytes().get(..end).unwrap_or_default(), self.dialect);
            rest.get(..record.len())
        });
        records.filter(|record| !record.is_empty()).take(RECORDS)
    }

    fn fields(&self) -> impl Iterator<Item = Vec<&str>> {
        self.records().map(|record| fields(record, self.dialect, self.level))
    }

    /// Per record how many fields it has, none if one is broken.
    fn counts(&self) -> impl Iterator<Item = usize> {
        self.fields().map(|fields| {
            let sound = fields.iter().all(|field| self.dialect.field(field).is_ok());
            if sound { fields.len() } else { 0 }
        })
    }

    /// How many fields all records have, if these are several, as are they.
    fn perfect(&self, fewest: usize) -> Option<usize> {
        let mut counts = self.counts();
        let first = counts.next().filter(|first| *first > 1)?;
        let mut records = 1;
        let alike = counts.all(|count| {
            records += 1;
            count == first
        });
        (alike && records >= fewest).then_some(first)
    }

    /// Of a thousand records how many have as many fields as the first, if these are several, and if that are most records.
    fn share(&self) -> Option<usize> {
        let counts: Vec<usize> = self.counts().collect();
        let first = counts.first().filter(|first| **first > 1)?;
        let alike = counts.iter().filter(|count| *count == first).count();
        (alike * 10 >= counts.len() * ALIKE).then_some(alike * 1_000 / counts.len())
    }

    /// Whether the first record names the columns. It does unless columns of numbers, dates and truth values begin with such.
    fn has_header(&self, sniffing: &Sniffing) -> bool {
        let mut records = self.fields();
        let Some(first) = records.next() else { return true };
        let value = |field: &str| self.dialect.field(field).map(|field| field.text.into_owned()).unwrap_or_default();
        let first: Vec<String> = first.into_iter().map(value).collect();
        if let Some(names) = &sniffing.names {
            return first.iter().any(|name| names.contains(name)) || !names.contains("column1");
        }
        // Of each column the kind of its values below, as long as they are of one.
        let mut kinds: Vec<Option<Kind>> = vec![None; first.len()];
        for record in records.filter(|record| record.len() == first.len()) {
            for (kind, field) in kinds.iter_mut().zip(record) {
                match (*kind, Kind::of(&value(field), sniffing.numbers)) {
                    (_, None) => {}
                    (None, found) => *kind = found,
                    (Some(known), Some(found)) if known == found => {}
                    _ => *kind = Some(Kind::Text),
                }
            }
        }
        let typed = || first.iter().zip(&kinds).filter(|(_, kind)| kind.is_some_and(|kind| kind != Kind::Text));
        let named = typed().any(|(name, _)| Kind::of(name, sniffing.numbers) == Some(Kind::Text));
        named || !typed().any(|(name, kind)| Kind::of(name, sniffing.numbers) == *kind)
    }
}

/// What a value looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Number,
    Bool,
    Date,
    Moment,
    Text,
}

impl Kind {
    fn of(text: &str, numbers: Numbers) -> Option<Self> {
        let mut plain = String::new();
        Some(match text {
            "" => return None,
            _ if numbers.plain(text, &mut plain).is_some_and(|text| form(text).is_some()) => Self::Number,
            _ if boolean(text).is_some() => Self::Bool,
            _ if time::date(text).is_some() => Self::Date,
            _ if time::moment(text).is_some() => Self::Moment,
            _ => Self::Text,
        })
    }
}

#[cfg(test)]
#[path = "sniff_tests.rs"]
mod tests;
