//! Where fields and records of CSV end.
//!
//! A quote opens a field only where the field starts; elsewhere it is a character like any other. As long as every quote that
//! would open one does stand there, what is between quotes is their parity, as in JSON; the first that does not is gone to
//! byte by byte, which is rare.

use super::dialect::Dialect;
use super::{BLOCK, Kernel, Level};

/// What ends in a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ends {
    /// The bytes after fields: delimiters and line ends outside of quotes.
    pub(crate) fields: u64,
    /// Of these the line ends.
    pub(crate) records: u64,
    /// Whether there may be text behind a closing quote.
    pub(crate) odd: bool,
}

/// Goes through text from the start of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldScan {
    pub(super) level: Level,
    dialect: Dialect,
    before: Before,
}

/// What is known of the byte before a block; each a bit at the lowest place.
#[derive(Clone, Copy, Debug)]
struct Before {
    /// All ones within quotes.
    quoted: u64,
    /// It separates fields, so that a quote may follow that opens one.
    separates: u64,
    /// It is a closing quote.
    closes: u64,
    /// It is a carriage return after a closing quote.
    returns: u64,
    /// It takes away what the next byte means.
    escapes: u64,
}

const START: Before = Before { quoted: 0, separates: 1, closes: 0, returns: 0, escapes: 0 };

/// Where the bytes of a dialect are.
#[derive(Clone, Copy)]
struct Marks {
    quotes: u64,
    delimiters: u64,
    ends: u64,
    returns: u64,
    escapes: u64,
}

impl FieldScan {
    pub(crate) fn new(level: Level, dialect: Dialect) -> Self {
        Self { level, dialect, before: START }
    }

    /// Starts afresh, at the start of a record.
    pub(crate) fn restart(&mut self) {
        self.before = START;
    }

    /// Whether what comes last in a text is in quotes that are not closed, or is not the end of what was closed.
    pub(crate) fn is_unsound(&self) -> bool {
        self.before.quoted | self.before.returns != 0
    }
}

#[inline(always)]
pub(super) fn run<K: Kernel>(
    scan: &mut FieldScan,
    bytes: &[u8],
    from: usize,
    last: bool,
    mut each: impl FnMut(usize, Ends) -> bool,
) -> usize {
    let mut at = from;
    // On the stack: a state behind a reference would be written back block by block.
    let (dialect, mut before) = (scan.dialect, scan.before);
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let ends = match rest.first_chunk::<BLOCK>() {
            Some(block) => block_ends::<K>(&mut before, dialect, block, u64::MAX),
            None if last && !rest.is_empty() => {
                let mut block = [0; BLOCK];
                block.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
                block_ends::<K>(&mut before, dialect, &block, (1 << rest.len()) - 1)
            }
            None => break,
        };
        let end = (at + BLOCK).min(bytes.len());
        let more = each(at, ends);
        at = end;
        if !more {
            break;
        }
    }
    scan.before = before;
    at
}

/// What ends in a block of which the bytes `valid` are there.
#[inline(always)]
fn block_ends<K: Kernel>(before: &mut Before, dialect: Dialect, block: &[u8; BLOCK], valid: u64) -> Ends {
    let Some(quote) = dialect.quote else {
        let [delimiters, ends] = K::equal(block, [dialect.delimiter, dialect.line_end]);
        return Ends { fields: (delimiters | ends) & valid, records: ends & valid, odd: false };
    };
    let escape = dialect.escape.unwrap_or(quote);
    let [quotes, delimiters, ends, returns, escapes] =
        K::equal(block, [quote, dialect.delimiter, dialect.line_end, b'\r', escape]);
    let (quotes, delimiters, ends) = (quotes & valid, delimiters & valid, ends & valid);
    let marks = Marks {
        quotes,
        delimiters,
        ends,
        returns: if dialect.line_end == b'\r' { 0 } else { returns & valid },
        escapes: if dialect.escape.is_some() { escapes & valid } else { 0 },
    };
    if (quotes | marks.escapes | before.closes | before.returns | before.escapes) == 0 {
        let outside = !before.quoted;
        let fields = (delimiters | ends) & outside;
        before.separates = fields >> 63;
        return Ends { fields, records: ends & outside, odd: false };
    }
    by_parity::<K>(before, &marks, valid).unwrap_or_else(|| by_byte(before, &marks))
}

/// What ends in a block if each quote opens a field, closes one, or is one of two.
#[inline(always)]
fn by_parity<K: Kernel>(before: &mut Before, marks: &Marks, valid: u64) -> Option<Ends> {
    if marks.escapes | before.escapes != 0 {
        return None;
    }
    let inside = K::parity(marks.quotes) ^ before.quoted;
    let separators = (marks.delimiters | marks.ends) & !inside;
    let closes = marks.quotes & !inside;
    let behind = closes << 1 | before.closes;
    let may_open = separators << 1 | before.separates | behind;
    if marks.quotes & inside & !may_open != 0 {
        return None;
    }
    let odd = is_odd(marks, behind, before.returns, valid);
    *before = Before {
        quoted: if inside >> 63 == 1 { u64::MAX } else { 0 },
        separates: separators >> 63,
        closes: closes >> 63,
        returns: (marks.returns & behind) >> 63,
        escapes: 0,
    };
    Some(Ends { fields: separators, records: marks.ends & !inside, odd })
}

/// Whether anything else than the end of the field, or another quote, is `behind` a closing quote.
#[inline(always)]
fn is_odd(marks: &Marks, behind: u64, returns_before: u64, valid: u64) -> bool {
    let fine = marks.delimiters | marks.ends | marks.returns | marks.quotes;
    let line_feed_due = (marks.returns & behind) << 1 | returns_before;
    (behind & !fine & valid) | (line_feed_due & !marks.ends) != 0
}

/// The same whatever the quotes are, one byte that means something after the other.
#[cold]
fn by_byte(before: &mut Before, marks: &Marks) -> Ends {
    let Before { mut quoted, separates, closes, escapes, .. } = *before;
    let separators = marks.delimiters | marks.ends;
    let (mut fields, mut closing, mut escaping) = (0, 0, 0);
    // The places at which a quote opens a field, and those that an escape takes the meaning from.
    let (mut opening, mut escaped) = (separates | closes, escapes);
    let mut rest = marks.quotes | separators | marks.escapes;
    while rest != 0 {
        let bit = rest & rest.wrapping_neg();
        rest &= rest.wrapping_sub(1);
        if quoted == 0 {
            if separators & bit != 0 {
                fields |= bit;
                opening |= bit << 1;
            } else if marks.quotes & opening & bit != 0 {
                quoted = u64::MAX;
            }
        } else if escaped & bit == 0 {
            if marks.escapes & bit != 0 {
                escaping |= bit;
                escaped |= bit << 1;
            } else if marks.quotes & bit != 0 {
                quoted = 0;
                closing |= bit;
                // Another one at once means that both are one.
                opening |= bit << 1;
            }
        }
    }
    *before = Before { quoted, separates: fields >> 63, closes: closing >> 63, returns: 0, escapes: escaping >> 63 };
    Ends { fields, records: fields & marks.ends, odd: true }
}
