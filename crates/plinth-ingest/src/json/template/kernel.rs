//! One template followed through records: by any kernel.

use crate::values::digits::usual_float;

/// Numbers of a record, at most.
const FIELDS: usize = 64;

/// Bytes between two numbers, at most.
pub(super) const LITERAL: usize = 32;

/// Bytes that a number may take which is read here.
const NUMBER: usize = 32;

/// Bytes that have to follow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Literal {
    pub(super) bytes: [u8; LITERAL],
    pub(super) len: usize,
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
pub(super) struct Template {
    /// What is before each number, and the column that it belongs to.
    pub(super) fields: Vec<(Literal, usize)>,
    /// What is after the last, with the separator.
    pub(super) tail: Literal,
}

impl Template {
    /// Learned from a sound record with its separator, an object of numbers; `column` finds the column of a key.
    pub(super) fn learn(record: &[u8], limit: usize, column: impl Fn(&str) -> Option<usize>) -> Option<Self> {
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
pub(super) trait Kernel {
    fn is_at(literal: &Literal, text: &[u8], at: usize) -> bool;
    /// The double at `at` and where it ends; `None` says nothing about it.
    fn float(text: &[u8], at: usize) -> Option<(f64, usize)>;
}

/// The kernel of any machine.
pub(super) struct Portable;

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
pub(super) fn take<K: Kernel>(
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
