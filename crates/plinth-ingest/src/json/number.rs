//! JSON's numbers: their grammar, and doubles and integers straight from the bytes.

use super::flaw::Flaw;
use crate::values::digits::{exact, leading_digits, value_of};

/// Checks the number that starts at `start` and says where it ends.
pub(crate) fn number_end(bytes: &[u8], start: usize) -> Result<usize, Flaw> {
    let digits = |at: usize| -> Result<usize, Flaw> {
        let count = bytes.get(at..).unwrap_or_default().iter().take_while(|b| b.is_ascii_digit()).count();
        if count == 0 { Err(Flaw { at, what: "expected a digit" }) } else { Ok(at + count) }
    };
    let mut at = start + usize::from(bytes.get(start) == Some(&b'-'));
    let zero = bytes.get(at) == Some(&b'0');
    let end = digits(at)?;
    if zero && end > at + 1 {
        return Err(Flaw { at, what: "a number with a leading zero" });
    }
    at = end;
    if bytes.get(at) == Some(&b'.') {
        at = digits(at + 1)?;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at = digits(at + 1 + usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-'))))?;
    }
    Ok(at)
}

/// The integer that starts at `start`, and where it ends; `None` for what has to be looked at again: other numbers, minus
/// zero, integers of more than 18 digits.
#[inline(always)]
pub(crate) fn integer(bytes: &[u8], start: usize) -> Option<(i64, usize)> {
    let negative = bytes.get(start) == Some(&b'-');
    let first = start + usize::from(negative);
    let (mut at, mut value) = (first, 0_i64);
    while let Some(digit) = digit(bytes, at) {
        // Nineteen digits may be wrong here; they are not taken below.
        value = value.wrapping_mul(10).wrapping_add(i64::from(digit));
        at += 1;
    }
    let count = at - first;
    let plain = !matches!(bytes.get(at), Some(b'.' | b'e' | b'E'));
    let zero = bytes.get(first) == Some(&b'0');
    if !plain || count == 0 || count > 18 || (zero && (count > 1 || negative)) {
        return None;
    }
    Some((if negative { -value } else { value }, at))
}

/// A number as a double, and what it is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Float {
    pub(crate) value: f64,
    /// The first byte after it.
    pub(crate) end: usize,
    /// Whether it has neither a point nor an exponent and more digits than a double holds for sure.
    pub(crate) long_integer: bool,
}

/// The double nearest to the number that starts at `start`.
#[inline(always)]
pub(crate) fn float(text: &str, start: usize) -> Result<Float, Flaw> {
    let bytes = text.as_bytes();
    let negative = bytes.get(start) == Some(&b'-');
    let first = start + usize::from(negative);
    let (mut at, mut digits) = (first, 0_u64);
    run_of_digits(bytes, &mut at, &mut digits);
    let whole = at - first;
    let zero = bytes.get(first) == Some(&b'0');
    if (whole == 0) | ((whole > 1) & zero) {
        return number_end(bytes, start).and(Err(Flaw { at: first, what: "expected a digit" }));
    }
    let (mut count, mut exponent) = (whole, 0_i64);
    let mut plain = true;
    if bytes.get(at) == Some(&b'.') {
        plain = false;
        at += 1;
        let point = at;
        run_of_digits(bytes, &mut at, &mut digits);
        let fraction = at - point;
        if fraction == 0 {
            return Err(Flaw { at, what: "expected a digit" });
        }
        count += fraction;
        exponent = -i64::try_from(fraction).unwrap_or(i64::MAX);
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        plain = false;
        let end = number_end(bytes, start)?;
        let power = text.get(at + 1..end).map(str::parse::<i32>);
        exponent += power.and_then(Result::ok).map_or(i64::from(i32::MAX), i64::from);
        at = end;
    }
    let value = if count <= 19 { exact(digits, exponent, negative) } else { None };
    let value = match value {
        Some(value) => value,
        None => slow(text, start, at)?,
    };
    Ok(Float { value, end: at, long_integer: plain && digits_beyond_double(digits, count) })
}

/// Takes the digits at `at`, if there are any.
#[inline(always)]
fn run_of_digits(bytes: &[u8], at: &mut usize, digits: &mut u64) {
    while let Some(word) = bytes.get(*at..).and_then(|rest| rest.first_chunk()).map(|word| u64::from_le_bytes(*word))
        && leading_digits(word) == 8
    {
        *digits = digits.wrapping_mul(100_000_000).wrapping_add(value_of(word));
        *at += 8;
    }
    while let Some(digit) = digit(bytes, *at) {
        *digits = digits.wrapping_mul(10).wrapping_add(u64::from(digit));
        *at += 1;
    }
}

#[inline(always)]
fn digits_beyond_double(digits: u64, count: usize) -> bool {
    count > 19 || digits > 1 << 53
}

#[cold]
#[inline(never)]
fn slow(text: &str, start: usize, end: usize) -> Result<f64, Flaw> {
    let number = text.get(start..end).and_then(|number| number.parse().ok());
    number.ok_or(Flaw { at: start, what: "expected a number" })
}

#[inline(always)]
fn digit(bytes: &[u8], at: usize) -> Option<u8> {
    let digit = bytes.get(at)?.wrapping_sub(b'0');
    (digit < 10).then_some(digit)
}

#[cfg(test)]
mod tests;
