//! Records of doubles that follow one template: the same keys in the same order with the same spaces, and nothing but other
//! numbers between.
//!
//! What is around the numbers of one sound record is learned ([`Template`]); as long as the following bytes are just that, with
//! numbers between, they are sound records too, and nothing of them needs to be looked at twice. The first record that is
//! spelled otherwise ends the run and is left to the tokenizer, which says what it is.

#[cfg(target_arch = "x86_64")]
mod avx2;

use std::ops::Range;

use super::members::Members;
use crate::bits::Level;
use crate::values::digits::usual_float;

/// Numbers of a record, at most.
const FIELDS: usize = 64;

/// Bytes between two numbers, at most.
const LITERAL: usize = 32;

/// Bytes that a number may take which is read here.
const NUMBER: usize = 32;

/// Records of a run that was worth the attempt.
const WORTH: usize = 4;

/// Records after which to try again, at most.
const PATIENCE: u32 = 1 << 12;

/// Bytes that have to follow.
#[derive(Clone, Copy, Debug)]
struct Literal {
    bytes: [u8; LITERAL],
    len: usize,
}

impl Literal {
    fn new(text: &[u8]) -> Option<Self> {
        let mut bytes = [0; LITERAL];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        Some(Self { bytes, len: text.len() })
    }
}

/// How a record is spelled.
#[derive(Debug)]
struct Template {
    /// What is before each number, and the column that it belongs to.
    fields: Vec<(Literal, usize)>,
    /// What is after the last, with the separator.
    tail: Literal,
}

impl Template {
    /// Learned from a sound record with its separator, an object of numbers; `column` finds the column of a key.
    fn learn(record: &[u8], limit: usize, column: impl Fn(&str) -> Option<usize>) -> Option<Self> {
        let mut fields = Vec::new();
        let (mut start, mut at) = (0, 0);
        // The only string before a number is its key: what the columns lack is left to the tokenizer, which counts it.
        let mut key: Option<&[u8]> = None;
        while let Some(byte) = record.get(at) {
            match byte {
                b'"' if key.is_none() => {
                    let len = memchr::memchr2(b'"', b'\\', record.get(at + 1..)?)?;
                    key = Some(record.get(at + 1..at + 1 + len)?);
                    at += len + 2;
                }
                b'-' | b'0'..=b'9' => {
                    let literal = Literal::new(record.get(start..at)?)?;
                    fields.push((literal, column(std::str::from_utf8(key.take()?).ok()?)?));
                    let rest = record.get(at..)?;
                    at += rest.iter().position(|b| !matches!(b, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9'))?;
                    start = at;
                }
                // Nothing else is among spaces, keys and numbers.
                b'{' | b'}' | b':' | b',' | b' ' | b'\n' | b'\r' | b'\t' => at += 1,
                _ => return None,
            }
        }
        let tail = Literal::new(record.get(start..)?)?;
        let longest = fields.iter().map(|(literal, _)| literal.len + NUMBER).sum::<usize>() + LITERAL;
        (key.is_none() && fields.len() <= FIELDS && longest <= limit).then_some(Self { fields, tail })
    }
}

/// How numbers are read and literals compared.
trait Kernel {
    fn is_at(literal: &Literal, text: &[u8], at: usize) -> bool;
    /// The double at `at` and where it ends; `None` says nothing about it.
    fn float(text: &[u8], at: usize) -> Option<(f64, usize)>;
}

struct Portable;

impl Kernel for Portable {
    #[inline(always)]
    fn is_at(literal: &Literal, text: &[u8], at: usize) -> bool {
        let here = text.get(at..).unwrap_or_default();
        literal.bytes.get(..literal.len).is_some_and(|bytes| here.starts_with(bytes))
    }

    #[inline(always)]
    fn float(text: &[u8], at: usize) -> Option<(f64, usize)> {
        usual_float(text, at)
    }
}

/// Appends the numbers of the records at `at` to columns, which are in the order of the template: of at most so many records.
/// Says how many there were, and where the next one starts.
#[inline(always)]
fn take<K: Kernel>(
    text: &[u8],
    mut at: usize,
    template: &Template,
    most: usize,
    columns: &mut [&mut Vec<f64>],
) -> (usize, usize) {
    let mut row = [0.0; FIELDS];
    let mut rows = 0;
    'records: while rows < most {
        let mut here = at;
        for ((literal, _), value) in template.fields.iter().zip(&mut row) {
            if !K::is_at(literal, text, here) {
                break 'records;
            }
            let Some((number, end)) = K::float(text, here + literal.len) else { break 'records };
            (*value, here) = (number, end);
        }
        if !K::is_at(&template.tail, text, here) {
            break;
        }
        at = here + template.tail.len;
        rows += 1;
        columns.iter_mut().zip(&row).for_each(|(column, value)| column.push(*value));
    }
    (rows, at)
}

/// Finds runs of records that follow one template.
#[derive(Debug)]
pub(super) struct Runs {
    level: Level,
    template: Option<Template>,
    /// Records to let pass before the next attempt, and before the one after that if it fails too.
    wait: u32,
    patience: u32,
}

impl Runs {
    pub(super) fn new(level: Level) -> Self {
        Self { level, template: None, wait: 0, patience: 0 }
    }

    /// Whether an attempt may be worth it. To be asked once a record.
    #[inline(always)]
    pub(super) fn is_due(&mut self) -> bool {
        let due = self.wait == 0;
        self.wait = self.wait.saturating_sub(1);
        due
    }

    /// Appends at most `most` of the records that follow the one at `record`, which was sound and taken, its separator included.
    /// Says how many there were, and where the next starts. Records have `limit` bytes at most.
    pub(super) fn take(
        &mut self,
        members: &mut Members,
        text: &[u8],
        record: Range<usize>,
        limit: usize,
        most: usize,
    ) -> (usize, usize) {
        let mut taken = self.follow(members, text, record.end, most);
        if taken.0 == 0 {
            let spelled = text.get(record.clone()).unwrap_or_default();
            let learned = Template::learn(spelled, limit, |key| members.place(key));
            self.template = learned.filter(|template| template.fields.len() == members.count());
            taken = self.follow(members, text, record.end, most);
        }
        self.patience = if taken.0 < WORTH { (2 * self.patience + 1).min(PATIENCE) } else { 0 };
        self.wait = self.patience;
        taken
    }

    fn follow(&self, members: &mut Members, text: &[u8], at: usize, most: usize) -> (usize, usize) {
        let Some(template) = &self.template else { return (0, at) };
        let Some(columns) = members.doubles() else { return (0, at) };
        let mut columns: Vec<_> = columns.into_iter().map(Some).collect();
        let ordered = template.fields.iter().map(|(_, column)| columns.get_mut(*column)?.take());
        let Some(mut ordered) = ordered.collect::<Option<Vec<_>>>() else { return (0, at) };
        let taken = match self.level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2::take(text, at, template, most, &mut ordered),
            _ => take::<Portable>(text, at, template, most, &mut ordered),
        };
        members.appended(taken.0);
        taken
    }
}

#[cfg(test)]
mod tests;
