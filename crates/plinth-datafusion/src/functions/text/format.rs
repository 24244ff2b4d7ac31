//! `printf('%05.2f', x)` and `format('{:05.2f}', x)`.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::DataType;
use datafusion_common::{DataFusionError, Result, exec_err};

/// A value that is put into a format.
#[derive(Debug)]
pub(super) enum Value {
    Int(i64),
    Float(f64),
    Text(String),
}

/// The texts of formats and what is to be put into them, row by row. NULL makes NULL.
pub(super) fn texts(args: &[ArrayRef], of: fn(&str, &[Value]) -> Result<String>) -> Result<ArrayRef> {
    let [formats, values @ ..] = args else { return exec_err!("a format is expected") };
    let formats = arrow_cast::cast(formats, &DataType::Utf8)?;
    let formats = formats.as_string::<i32>();
    let mut out = StringBuilder::new();
    for row in 0..formats.len() {
        if formats.is_null(row) || values.iter().any(|value| value.data_type().is_null() || value.is_null(row)) {
            out.append_null();
            continue;
        }
        let values = values.iter().map(|array| value(array, row)).collect::<Result<Vec<_>>>()?;
        out.append_value(of(formats.value(row), &values)?);
    }
    Ok(Arc::new(out.finish()))
}

fn value(array: &ArrayRef, row: usize) -> Result<Value> {
    let one = array.slice(row, 1);
    Ok(match array.data_type() {
        DataType::UInt64 => Value::Text(text(&one)?),
        of if of.is_integer() => {
            Value::Int(arrow_cast::cast(&one, &DataType::Int64)?.as_primitive::<Int64Type>().value(0))
        }
        of if of.is_floating() || of.is_decimal() => {
            Value::Float(arrow_cast::cast(&one, &DataType::Float64)?.as_primitive::<Float64Type>().value(0))
        }
        _ => Value::Text(text(&one)?),
    })
}

fn text(one: &ArrayRef) -> Result<String> {
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(one.as_ref(), &options)?;
    formatter.value(0).try_to_string().map_err(DataFusionError::from)
}

/// Where a value is when it is filled up with blanks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Left,
    Middle,
    Right,
}

/// How one value is written.
#[derive(Debug, Default)]
struct Form {
    side: Option<Side>,
    plus: bool,
    zeros: bool,
    width: usize,
    precision: Option<usize>,
    kind: Option<char>,
}

/// Most letters that a value is filled up to.
const WIDEST: usize = 1000;

impl Form {
    /// `-05.2f`
    fn parse(text: &str) -> Option<Self> {
        let mut form = Self::default();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            match first {
                '-' | '<' => form.side = Some(Side::Left),
                '>' => form.side = Some(Side::Right),
                '^' => form.side = Some(Side::Middle),
                '+' => form.plus = true,
                '0' => form.zeros = true,
                _ => break,
            }
            rest = rest.get(1..)?;
        }
        let digits = |rest: &str| rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        let (width, behind) = rest.split_at(digits(rest));
        form.width = if width.is_empty() { 0 } else { width.parse().ok()? };
        rest = behind;
        if let Some(behind) = rest.strip_prefix('.') {
            let (precision, behind) = behind.split_at(digits(behind));
            form.precision = Some(if precision.is_empty() { 0 } else { precision.parse().ok()? });
            rest = behind;
        }
        let mut letters = rest.trim_start_matches(['l', 'h']).chars();
        form.kind = letters.next();
        let fits = form.width <= WIDEST && form.precision.is_none_or(|precision| precision <= WIDEST);
        (letters.next().is_none() && fits).then_some(form)
    }

    /// A value; between braces texts are on the left, numbers have their sign, and doubles a point.
    fn write(&self, value: &Value, in_braces: bool) -> Option<String> {
        let signed = |text: String| if self.plus && !text.starts_with('-') { format!("+{text}") } else { text };
        let bits = |value: i64, digits: fn(u64) -> String| match in_braces && value < 0 {
            true => format!("-{}", digits(value.unsigned_abs())),
            false => digits(value.cast_unsigned()),
        };
        let (number, text) = match (self.kind, value) {
            (None | Some('d' | 'i' | 'u'), Value::Int(value)) => (true, signed(value.to_string())),
            (None, Value::Float(value)) if self.precision.is_none() => {
                (true, signed(if in_braces { with_point(*value) } else { value.to_string() }))
            }
            (Some('x'), Value::Int(value)) => (true, bits(*value, |bits| format!("{bits:x}"))),
            (Some('X'), Value::Int(value)) => (true, bits(*value, |bits| format!("{bits:X}"))),
            (Some('o'), Value::Int(value)) => (true, bits(*value, |bits| format!("{bits:o}"))),
            (Some('b'), Value::Int(value)) => (true, bits(*value, |bits| format!("{bits:b}"))),
            (Some('c'), Value::Int(value)) => (false, char::from_u32(u32::try_from(*value).ok()?)?.to_string()),
            (Some('f' | 'F'), Value::Float(value)) => {
                (true, signed(format!("{value:.*}", self.precision.unwrap_or(6))))
            }
            (Some('e'), Value::Float(value)) => (true, signed(exponent(*value, self.precision.unwrap_or(6)))),
            (Some('s') | None, Value::Text(text)) => {
                (false, text.chars().take(self.precision.unwrap_or(usize::MAX)).collect())
            }
            _ => return None,
        };
        let missing = self.width.saturating_sub(text.chars().count());
        let blanks = " ".repeat(missing);
        let side = self.side.unwrap_or(if in_braces && !number { Side::Left } else { Side::Right });
        Some(if side == Side::Left {
            format!("{text}{blanks}")
        } else if side == Side::Middle {
            let (before, behind) = blanks.split_at(missing / 2);
            format!("{before}{text}{behind}")
        } else if self.zeros && number {
            let (sign, digits) = match text.strip_prefix(['-', '+']) {
                Some(digits) => (text.get(..1).unwrap_or_default(), digits),
                None => ("", text.as_str()),
            };
            format!("{sign}{}{digits}", "0".repeat(missing))
        } else {
            format!("{blanks}{text}")
        })
    }
}

/// `1.500000e+02`
fn exponent(value: f64, precision: usize) -> String {
    with_two_digits(&format!("{value:.precision$e}"))
}

/// The shortest text of a double: `1.0`, `0.1`, `1e+20`.
fn with_point(value: f64) -> String {
    let is_plain = value == 0.0 || !value.is_finite() || (1e-4..1e16).contains(&value.abs());
    if is_plain { format!("{value:?}").to_lowercase() } else { with_two_digits(&format!("{value:e}")) }
}

/// `1e20` with its power in two digits and with its sign.
fn with_two_digits(text: &str) -> String {
    match text.split_once('e') {
        Some((digits, power)) => {
            let (sign, power) = power.strip_prefix('-').map_or(('+', power), |power| ('-', power));
            format!("{digits}e{sign}{power:0>2}")
        }
        None => text.to_owned(),
    }
}

/// `%d`, `%5.2f`, `%s`, `%%`.
pub(super) fn printf(format: &str, values: &[Value]) -> Result<String> {
    let (mut out, mut rest, mut values) = (String::new(), format, values.iter());
    while let Some((before, behind)) = rest.split_once('%') {
        out.push_str(before);
        if let Some(behind) = behind.strip_prefix('%') {
            out.push('%');
            rest = behind;
            continue;
        }
        let end = behind.find(|letter: char| letter.is_ascii_alphabetic() && !matches!(letter, 'l' | 'h'));
        let Some(end) = end else { return exec_err!("printf: {format:?}: a letter is expected behind %") };
        let (form, behind) = behind.split_at(end + 1);
        let Some(value) = values.next() else { return exec_err!("printf: {format:?}: more values are expected") };
        let written = Form::parse(form).filter(|form| form.kind.is_some()).and_then(|form| form.write(value, false));
        match written {
            Some(text) => out.push_str(&text),
            None => return exec_err!("printf: %{form} does not take {value:?}"),
        }
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

/// `{}`, `{:5.2f}`, `{0}`, `{{`.
pub(super) fn braces(format: &str, values: &[Value]) -> Result<String> {
    let (mut out, mut rest, mut next) = (String::new(), format, 0);
    while let Some(at) = rest.find(['{', '}']) {
        let (before, behind) = rest.split_at(at);
        out.push_str(before);
        if behind.starts_with("{{") || behind.starts_with("}}") {
            out.push_str(behind.get(..1).unwrap_or_default());
            rest = behind.get(2..).unwrap_or_default();
            continue;
        }
        let place = behind.strip_prefix('{').and_then(|place| place.split_once('}'));
        let Some((place, behind)) = place else { return exec_err!("format: {format:?}: braces come in pairs") };
        let (which, form) = place.split_once(':').unwrap_or((place, ""));
        let which = if which.is_empty() {
            next += 1;
            next - 1
        } else {
            which.parse().or_else(|_| exec_err!("format: {{{place}}}: a number is expected"))?
        };
        let Some(value) = values.get(which) else { return exec_err!("format: {format:?}: more values are expected") };
        match Form::parse(form).and_then(|form| form.write(value, true)) {
            Some(text) => out.push_str(&text),
            None => return exec_err!("format: {{{place}}} does not take {value:?}"),
        }
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}
