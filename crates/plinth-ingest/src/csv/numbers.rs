//! Numbers as people write them: with separators between thousands, with another sign for the point.

use std::ops::Range;

use crate::values::digits::{leading_digits, value_of};
use crate::values::number::form;

/// How numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// What may stand between groups of three digits.
    pub(crate) thousands: Option<u8>,
    /// What the fraction comes after.
    pub(crate) decimal: u8,
}

impl Default for Numbers {
    fn default() -> Self {
        Self { thousands: None, decimal: b'.' }
    }
}

impl Numbers {
    /// Whether numbers are written as programs do.
    pub(crate) fn is_plain(self) -> bool {
        self == Self::default()
    }

    /// A text as programs would write it, if it is a number: without separators, with a point. Other text stays as it is. `None` if
    /// it is a number to programs but not as numbers are written here.
    pub(crate) fn plain<'a>(self, text: &'a str, out: &'a mut String) -> Option<&'a str> {
        if self.is_plain() {
            return Some(text);
        }
        let number = self.rewrite(text, out).is_some() && form(out).is_some();
        match (number, form(text)) {
            (true, _) => Some(out),
            (false, None) => Some(text),
            (false, Some(_)) => None,
        }
    }

    /// Separators stand between all groups of three digits before the point, or between none.
    fn rewrite(self, text: &str, out: &mut String) -> Option<()> {
        let sign = usize::from(text.starts_with('-'));
        let end = text.bytes().position(|byte| byte == self.decimal || matches!(byte, b'e' | b'E'));
        let (whole, rest) = (text.get(sign..end.unwrap_or(text.len()))?, text.get(end.unwrap_or(text.len())..)?);
        out.clear();
        out.push_str(text.get(..sign)?);
        for (at, group) in whole.split(|c| self.thousands.is_some_and(|byte| c == char::from(byte))).enumerate() {
            let separated = whole.len() > group.len();
            let sound = !separated || if at == 0 { (1..=3).contains(&group.len()) } else { group.len() == 3 };
            if !sound || !group.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            out.push_str(group);
        }
        if let Some(fraction) = rest.strip_prefix(char::from(self.decimal)) {
            out.push('.');
            // What is a separator elsewhere makes no number of it, nor does a second point.
            let odd = fraction.bytes().any(|byte| byte == b'.' || Some(byte) == self.thousands);
            out.push_str(if odd { return None } else { fraction });
        } else {
            out.push_str(rest);
        }
        Some(())
    }
}

/// The integer in a range, if it is spelled as most are: up to sixteen digits, maybe after a minus. `None` says nothing about it.
#[inline(always)]
pub(super) fn usual_integer(bytes: &[u8], range: &Range<usize>) -> Option<i64> {
    let negative = bytes.get(range.start) == Some(&b'-');
    let start = range.start + usize::from(negative);
    let count = range.end.wrapping_sub(start);
    let word = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let first = word(start)?;
    let zero = first & 0xff == u64::from(b'0');
    if (count.wrapping_sub(1) > 15) | (zero & ((count > 1) | negative)) {
        return None;
    }
    let mut value = 0;
    let (mut last, mut left) = (first, count);
    if count > 8 {
        if leading_digits(first) < 8 {
            return None;
        }
        value = value_of(first);
        (last, left) = (word(start + 8)?, count - 8);
    }
    if leading_digits(last) < left {
        return None;
    }
    let power = TENS.get(left).copied().unwrap_or(1);
    let value = i64::try_from(value * power + value_of(last << (64 - 8 * left))).ok()?;
    Some(if negative { -value } else { value })
}

const TENS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

#[cfg(test)]
mod tests;
