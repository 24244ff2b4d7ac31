//! How a CSV file is written, by its beginning.
//!
//! Only what was not said is guessed, and only by evidence: another dialect than the usual one is taken where that, and not the
//! usual one, makes records of the file that all have equally many fields. Quotes that are seen to be quotes, for they keep a
//! field together or enclose a whole column, count for more than many fields: what tears them apart reads names as columns.

use std::collections::HashSet;
use std::sync::Arc;

use super::field::fields;
use super::field::without_line_end;
use super::numbers::Numbers;
use crate::bits::Level;
use crate::bits::dialect::Dialect;
use crate::bits::fields::FieldScan;
use crate::options::{CsvOptions, Mark};
use crate::values::number::{boolean, form};
use crate::values::time;

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
pub(crate) struct SniffOptions {
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

impl SniffOptions {
    /// Or why there is no such dialect.
    pub(crate) fn new(
        options: &CsvOptions,
        usual: u8,
        names: Option<Arc<HashSet<String>>>,
    ) -> Result<Self, &'static str> {
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
            names,
        })
    }

    /// Quotes and escapes that may be in a text, the usual ones first: the first is what is taken without evidence.
    fn quotings(&self, text: &[u8]) -> Vec<(Option<u8>, Option<u8>)> {
        let has = |byte: &Option<u8>| byte.is_none_or(|byte| memchr::memchr(byte, text).is_some());
        let quotes: &[Option<u8>] = match self.quote {
            Mark::Sniffed => &[Some(b'"'), Some(b'\''), None],
            Mark::None => &[None],
            Mark::Byte(byte) => &[Some(byte)],
        };
        let escapes: &[Option<u8>] = match self.escape {
            Mark::Sniffed => &[None, Some(b'\\')],
            Mark::None => &[None],
            Mark::Byte(byte) => &[Some(byte)],
        };
        let with = |quote: &Option<u8>| escapes.iter().map(|escape| (*quote, quote.and(*escape))).collect::<Vec<_>>();
        let mut all = quotes.iter().flat_map(with);
        // What does not occur makes no difference. Quotes mean nothing only where there are some.
        let first = all.next().unwrap_or_default();
        let any = has(&first.0);
        let differs = |(quote, escape): &(Option<u8>, Option<u8>)| match quote {
            Some(_) => has(quote) && has(escape),
            None => any,
        };
        let mut found: Vec<_> = std::iter::once(first).chain(all.filter(differs)).collect();
        found.dedup();
        found
    }
}

/// The dialect of a file that begins so, and whether its first record is a header; `whole` if that is all of it.
pub(super) fn sniff(head: &[u8], whole: bool, sniffing: &SniffOptions, level: Level) -> (Dialect, bool) {
    let line_end = if memchr::memchr2(b'\n', b'\r', head).is_some() && memchr::memchr(b'\n', head).is_none() {
        b'\r'
    } else {
        b'\n'
    };
    let text = String::from_utf8_lossy(head);
    let quotings = sniffing.quotings(head);
    let usual = sniffing.delimiter.unwrap_or(sniffing.usual);
    let others = USUAL
        .into_iter()
        .chain(UNUSUAL)
        .filter(|byte| sniffing.delimiter.is_none() && *byte != usual && memchr::memchr(*byte, head).is_some());
    let delimiters: Vec<u8> = std::iter::once(usual).chain(others).collect();
    let sample = |dialect| Sample { text: &text, dialect, level, whole };
    let (quote, escape) = quotings.first().copied().unwrap_or_default();
    let default = Dialect { delimiter: usual, quote, escape, line_end };
    let mut best: Option<(Merit, Dialect)> = None;
    let mut mostly: Option<(usize, Dialect)> = None;
    for (place, (quote, escape)) in quotings.iter().copied().enumerate() {
        let fit = |byte: &&u8| Some(**byte) != quote && Some(**byte) != escape;
        for delimiter in delimiters.iter().filter(fit).copied() {
            let dialect = Dialect { delimiter, quote, escape, line_end };
            let found = sample(dialect).evidence();
            let merit = found.merit(place, delimiter == usual, UNUSUAL.contains(&delimiter));
            if let Some(merit) = merit
                && best.is_none_or(|(most, _)| merit > most)
            {
                best = Some((merit, dialect));
            }
            // What is broken is told by the usual quotes, or else by none.
            if let Some(share) =
                found.share().filter(|_| !UNUSUAL.contains(&delimiter) && (place == 0 || found.odd_quotes))
                && mostly.is_none_or(|(most, of)| of.quote == quote && share > most)
            {
                mostly = Some((share, dialect));
            }
            if merit.is_some_and(|merit| merit.is_beyond_doubt(quotings.len() == 1)) {
                break;
            }
        }
        if best.is_some_and(|(merit, _)| merit.is_beyond_doubt(quotings.len() == 1)) {
            break;
        }
    }
    let found = best.map(|(_, dialect)| dialect).or(mostly.map(|(_, dialect)| dialect));
    let dialect = found.unwrap_or(default);
    (dialect, sniffing.header.unwrap_or_else(|| sample(dialect).has_header(sniffing)))
}

/// How many fields the first record has that is not blank, of a file that begins so.
pub(super) fn columns(head: &[u8], whole: bool, dialect: Dialect, level: Level) -> usize {
    let text = String::from_utf8_lossy(head);
    Sample { text: &text, dialect, level, whole }.fields().next().map_or(0, |fields| fields.len())
}

/// What a dialect makes of the beginning of a file.
#[derive(Clone, Debug, Default)]
struct Evidence {
    records: usize,
    /// Fields of the first record.
    fields: usize,
    /// Records that have as many, none of them broken.
    alike: usize,
    /// Whether the records end where the beginning does, but for less than half of it.
    finished: bool,
    /// Whether quotes keep together what would be more than a field without them.
    guards: bool,
    /// Whether all values of a column are in quotes.
    encloses: bool,
    /// Whether quotes are in fields that are not in quotes.
    strays: bool,
    /// If quotes mean nothing: whether more fields begin with one than are between two.
    odd_quotes: bool,
    quoted: bool,
}

/// How much speaks for a dialect that makes records of equally many fields, the most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Merit {
    finished: bool,
    /// Whether its quotes are seen to be quotes.
    evident: bool,
    tidy: bool,
    several: bool,
    usual_set: bool,
    quoting: std::cmp::Reverse<usize>,
    usual: bool,
    fields: usize,
}

impl Merit {
    /// Whether no other dialect can have more: `alone` if there are no other quotes.
    fn is_beyond_doubt(&self, alone: bool) -> bool {
        self.finished && self.tidy && self.several && self.usual && (self.evident || alone)
    }
}

impl Evidence {
    fn evident(&self) -> bool {
        self.guards || self.encloses
    }

    /// What speaks for the dialect, whose quotes are at that place among those that may be; nothing if records differ.
    fn merit(&self, place: usize, usual: bool, unusual: bool) -> Option<Merit> {
        let perfect = self.records > 0 && self.alike == self.records;
        let several = self.fields > 1;
        // Other quotes than the usual ones take evidence, as does that there are none, or that there is one column.
        let told = self.evident() || (several && (place == 0 || (!self.quoted && self.odd_quotes)));
        (perfect && told && (!unusual || (several && self.records > 1))).then_some(Merit {
            finished: self.finished,
            evident: self.evident(),
            tidy: !self.evident() || !self.strays,
            several,
            usual_set: !unusual,
            quoting: std::cmp::Reverse(place),
            usual,
            fields: self.fields,
        })
    }

    /// Of a thousand records how many have as many fields as the first, if these are several, and if that are most records.
    fn share(&self) -> Option<usize> {
        let most = self.fields > 1 && self.alike * 10 >= self.records * ALIKE;
        (most && self.records > 0).then(|| self.alike * 1_000 / self.records)
    }
}

/// The beginning of a file as one dialect has it.
struct Sample<'a> {
    text: &'a str,
    dialect: Dialect,
    level: Level,
    whole: bool,
}

impl Sample<'_> {
    /// The records that are complete and not blank, each with where it ends.
    fn records(&self) -> impl Iterator<Item = (&str, usize)> {
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
            Some((rest.get(..record.len())?, start))
        });
        records.filter(|(record, _)| !record.is_empty()).take(RECORDS)
    }

    fn fields(&self) -> impl Iterator<Item = Vec<&str>> {
        self.records().map(|(record, _)| fields(record, self.dialect, self.level))
    }

    /// What the dialect makes of it.
    fn evidence(&self) -> Evidence {
        let mut found = Evidence { quoted: self.dialect.quote.is_some(), ..Evidence::default() };
        // Per column, whether all values are in quotes, once there is one: the first record may be names.
        let mut enclosed: Vec<Option<bool>> = Vec::new();
        let (mut ended, mut between, mut open) = (0, 0_usize, 0_usize);
        for (record, end) in self.records() {
            ended = end;
            let fields = fields(record, self.dialect, self.level);
            if found.records == 0 {
                found.fields = fields.len();
            }
            if found.records < 2 {
                enclosed = vec![None; found.fields];
            }
            found.records += 1;
            let mut sound = true;
            for (at, field) in fields.iter().enumerate() {
                let Ok(value) = self.dialect.field(field) else {
                    sound = false;
                    break;
                };
                match self.dialect.quote {
                    Some(quote) => {
                        found.guards |= value.quoted && self.is_guarded(field);
                        found.strays |= !value.quoted && memchr::memchr(quote, field.as_bytes()).is_some();
                        if let Some(column) = enclosed.get_mut(at).filter(|_| !field.is_empty()) {
                            *column = Some(value.quoted && column.unwrap_or(true));
                        }
                    }
                    None if field.starts_with('"') && field.len() > 1 && field.ends_with('"') => between += 1,
                    None => open += usize::from(field.starts_with('"')),
                }
            }
            found.alike += usize::from(sound && fields.len() == found.fields);
        }
        found.encloses = enclosed.contains(&Some(true));
        found.odd_quotes = open > between;
        found.finished = found.records == RECORDS || self.text.len() - ended <= self.text.len() / 2;
        found
    }

    /// Whether a field in quotes holds what would end it, or a quote.
    fn is_guarded(&self, field: &str) -> bool {
        let Dialect { delimiter, quote, .. } = self.dialect;
        let inner = field.get(1..field.len().saturating_sub(1)).unwrap_or_default();
        inner.bytes().any(|byte| byte == delimiter || Some(byte) == quote || matches!(byte, b'\n' | b'\r'))
    }

    /// Whether the first record names the columns. It does unless columns of numbers, dates and truth values begin with such; the
    /// only record does if all of it could be names.
    fn has_header(&self, sniffing: &SniffOptions) -> bool {
        let mut records = self.fields().peekable();
        let Some(first) = records.next() else { return true };
        let value = |field: &str| self.dialect.field(field).map(|field| field.text.into_owned()).unwrap_or_default();
        let first: Vec<String> = first.into_iter().map(value).collect();
        if let Some(names) = &sniffing.names {
            return first.iter().any(|name| names.contains(name)) || !names.contains("column1");
        }
        if self.whole && records.peek().is_none() {
            return first.iter().all(|name| Kind::of(name, sniffing.numbers) == Some(Kind::Text));
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
mod tests;
