//! Text to numbers and truth values, strictly, and which of them inference sees in a text.

use std::borrow::Cow;
use std::num::IntErrorKind;
use std::str::FromStr;

use arrow_array::types::ArrowPrimitiveType;

/// Why a value was refused.
pub(crate) type Why = Cow<'static, str>;

/// Integers that a double holds exactly, with all their neighbours.
pub(crate) const EXACT_IN_DOUBLE: u64 = 1 << 53;

/// A number as inference and columns with inferred types understand it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Digits, without a leading zero or plus (those tend to be codes and telephone numbers).
    Integer,
    /// With a point or an exponent.
    Float,
    /// Not a number, or an infinity.
    Special,
}

/// Whether a text is a number.
pub(crate) fn form(text: &str) -> Option<Form> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(unsigned);
    let leading_zero = whole > 1 && unsigned.starts_with('0');
    if whole == unsigned.len() && whole > 0 {
        // Minus zero is none of the integers.
        return (!leading_zero).then_some(if text == "-0" { Form::Float } else { Form::Integer });
    }
    if matches!(text, "NaN" | "inf" | "-inf" | "Infinity" | "-Infinity") {
        return Some(Form::Special);
    }
    let mut rest = unsigned.get(whole..)?;
    let mut fraction = 0;
    if let Some(after) = rest.strip_prefix('.') {
        fraction = digits(after);
        rest = after.get(fraction..)?;
    }
    if let Some(after) = rest.strip_prefix(['e', 'E']) {
        let after = after.strip_prefix(['+', '-']).unwrap_or(after);
        let exponent = digits(after);
        if exponent == 0 {
            return None;
        }
        rest = after.get(exponent..)?;
    }
    (rest.is_empty() && whole + fraction > 0 && !leading_zero).then_some(Form::Float)
}

/// A whole number of a type.
pub(crate) fn whole_number<T: ArrowPrimitiveType>(text: &str, given: bool) -> Result<T::Native, Why>
where
    T::Native: FromStr<Err = std::num::ParseIntError>,
{
    if !given && form(text) != Some(Form::Integer) {
        return Err("not a whole number".into());
    }
    text.parse().map_err(|e: std::num::ParseIntError| match e.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => {
            format!("outside the range of {}", T::DATA_TYPE).into()
        }
        // Unsigned types call a sign an invalid digit.
        _ if form(text) == Some(Form::Integer) => format!("outside the range of {}", T::DATA_TYPE).into(),
        _ => "not a whole number".into(),
    })
}

/// Why a number is refused that is too large for its type.
pub(crate) const OUTSIDE: &str = "outside the range of the type";

/// Why a whole number is refused among doubles.
pub(crate) const LONG_INTEGER: &str = "a whole number with more digits than a Float64 holds";

/// A binary floating-point type.
pub(crate) trait Float: FromStr + Copy {
    fn is_infinite(self) -> bool;
}

impl Float for f32 {
    fn is_infinite(self) -> bool {
        f32::is_infinite(self)
    }
}

impl Float for f64 {
    fn is_infinite(self) -> bool {
        f64::is_infinite(self)
    }
}

/// The nearest value of a type, as its grammar has it.
pub(crate) fn float<T: Float>(text: &str, given: bool) -> Result<T, Why> {
    if !given {
        match form(text) {
            None => return Err("not a number".into()),
            Some(Form::Integer) if !exact_in_double(text) => {
                return Err(LONG_INTEGER.into());
            }
            Some(_) => {}
        }
    }
    let value: T = text.parse().map_err(|_| "not a number")?;
    if value.is_infinite() && text.bytes().any(|b| b.is_ascii_digit()) {
        return Err(OUTSIDE.into());
    }
    Ok(value)
}

/// Whether a double holds an integer, and all smaller ones, exactly.
pub(crate) fn exact_in_double(integer: &str) -> bool {
    integer.parse::<i64>().is_ok_and(|value| value.unsigned_abs() <= EXACT_IN_DOUBLE)
}

/// The truth value that inference sees in a text.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
