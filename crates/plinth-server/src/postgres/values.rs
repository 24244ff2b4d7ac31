//! Values that are bound, in text or in the bytes of PostgreSQL's types; and settings of its sessions that hold here anyway.

use std::fmt::Write;
use std::str::from_utf8;

use arrow_pg::datatypes::into_pg_type;
use arrow_schema::{DataType, TimeUnit};
use bytes::Bytes;
use datafusion::common::ScalarValue;
use datafusion::sql::sqlparser::ast;
use pgwire::api::Type;
use pgwire::api::portal::{Format, Portal};
use pgwire::error::PgWireResult;
use plinth_sql::{Params, Statement as Parsed};

use super::answers::error;

/// Days and microseconds from 1970 to 2000, where PostgreSQL's time begins.
const DAYS: i32 = 10_957;
const MICROS: i64 = DAYS as i64 * 86_400_000_000;

/// A NUMERIC, as long as its value is not there.
pub(super) const NUMBER: DataType = DataType::Decimal128(38, 10);

/// The types that a client says of its values.
pub(super) fn data_types(types: &[Option<Type>]) -> Vec<Option<DataType>> {
    types.iter().map(|given| given.as_ref().and_then(data_type)).collect()
}

fn data_type(of: &Type) -> Option<DataType> {
    Some(match *of {
        Type::BOOL => DataType::Boolean,
        Type::INT2 => DataType::Int16,
        Type::INT4 => DataType::Int32,
        Type::INT8 => DataType::Int64,
        Type::FLOAT4 => DataType::Float32,
        Type::FLOAT8 => DataType::Float64,
        Type::DATE => DataType::Date32,
        Type::TIMESTAMP => DataType::Timestamp(TimeUnit::Microsecond, None),
        Type::TIMESTAMPTZ => DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())),
        Type::TIME => DataType::Time64(TimeUnit::Microsecond),
        Type::BYTEA => DataType::Binary,
        Type::VARCHAR | Type::BPCHAR | Type::NAME => DataType::Utf8,
        Type::NUMERIC => NUMBER,
        // Clients say TEXT where they do not know.
        _ => return None,
    })
}

/// The values of a portal.
pub(super) fn of_portal<S>(portal: &Portal<S>, types: &[Option<DataType>]) -> PgWireResult<Params> {
    let given = &portal.parameters;
    if given.len() != types.len() {
        let what = format!("the statement has {} places for values, and {} were bound", types.len(), given.len());
        return Err(error("08P01", &what));
    }
    let is_binary = |at: usize| match &portal.parameter_format {
        Format::UnifiedText => false,
        Format::UnifiedBinary => true,
        Format::Individual(formats) => formats.get(at) == Some(&1),
    };
    let values = given.iter().zip(types).enumerate().map(|(at, (bytes, known))| {
        let told = portal.statement.parameter_types.get(at).and_then(Option::as_ref);
        let value = match bytes {
            None => known.as_ref().map_or(Ok(ScalarValue::Null), |known| {
                ScalarValue::try_from(known).map_err(|e| error("22000", &e.to_string()))
            })?,
            Some(bytes) if is_binary(at) => of_bytes(bytes, told, known.as_ref(), at)?,
            Some(bytes) if told == Some(&Type::NUMERIC) => of_number(bytes, known.as_ref(), at)?,
            Some(bytes) => of_text(bytes, known.as_ref().or(told.and_then(data_type).as_ref()), at)?,
        };
        Ok(((at + 1).to_string(), value))
    });
    Ok(Params::of_values(values.collect::<PgWireResult<Vec<_>>>()?))
}

fn wrong(at: usize, what: &str) -> pgwire::error::PgWireError {
    error("22P02", &format!("the value of ${}: {what}", at + 1))
}

fn of_text(bytes: &Bytes, to: Option<&DataType>, at: usize) -> PgWireResult<ScalarValue> {
    let text = from_utf8(bytes).map_err(|_| wrong(at, "is no UTF-8"))?;
    match to {
        None | Some(DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) => {
            Ok(ScalarValue::Utf8(Some(text.to_owned())))
        }
        Some(DataType::Boolean) => match text.to_ascii_lowercase().as_str() {
            "t" | "true" | "on" | "yes" | "y" | "1" => Ok(ScalarValue::Boolean(Some(true))),
            "f" | "false" | "off" | "no" | "n" | "0" => Ok(ScalarValue::Boolean(Some(false))),
            _ => Err(wrong(at, &format!("{text:?} is no BOOLEAN"))),
        },
        Some(DataType::Binary | DataType::LargeBinary | DataType::BinaryView) => {
            let digits =
                text.strip_prefix("\\x").ok_or_else(|| wrong(at, "bytes are written \\x and hexadecimal digits"))?;
            unhexed(digits)
                .map(|bytes| ScalarValue::Binary(Some(bytes)))
                .ok_or_else(|| wrong(at, "is no hexadecimal number"))
        }
        Some(DataType::Decimal128(..)) => of_number(bytes, to, at),
        Some(to) => ScalarValue::try_from_string(text.to_owned(), to)
            .map_err(|_| wrong(at, &format!("{text:?} is no {}", name_of(to)))),
    }
}

/// Digits, as a type that is known where that holds all of them, else as a decimal that does: what is compared with a column is not
/// rounded to its places.
fn of_number(bytes: &Bytes, known: Option<&DataType>, at: usize) -> PgWireResult<ScalarValue> {
    let text = from_utf8(bytes).map_err(|_| wrong(at, "is no UTF-8"))?;
    let Some((value, places)) = digits(text) else {
        return match known {
            Some(of) if of.is_floating() => of_text(bytes, known, at),
            _ => Err(wrong(at, &format!("{text:?} is no NUMERIC of up to 38 digits"))),
        };
    };
    match known {
        Some(DataType::Decimal128(_, scale)) if i16::from(*scale) < i16::from(places) => {}
        Some(DataType::Decimal128(..)) => {
            if let Some(value) = known.and_then(|known| ScalarValue::try_from_string(text.to_owned(), known).ok()) {
                return Ok(value);
            }
        }
        Some(of) if of.is_integer() && places > 0 => {}
        Some(of) if of.is_integer() => {
            if let Ok(value) = of_text(bytes, known, at) {
                return Ok(value);
            }
        }
        Some(of) if of.is_numeric() => return of_text(bytes, known, at),
        _ => {}
    }
    let scale = i8::try_from(places).map_err(|_| wrong(at, "has too many digits"))?;
    Ok(ScalarValue::Decimal128(Some(value), 38, scale))
}

/// A number in digits, with a point and a power of ten where there are some: all its digits, and how many are behind the point.
fn digits(text: &str) -> Option<(i128, u8)> {
    let (mantissa, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => (-1, mantissa),
        None => (1, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let places = i32::try_from(fraction.len()).ok()? - power.parse::<i32>().ok().filter(|power| power.abs() < 1000)?;
    let zeros = usize::try_from(-places.min(0)).ok()?;
    let all = all.trim_start_matches('0').to_owned() + &"0".repeat(zeros);
    let places = u8::try_from(places.max(0)).ok().filter(|places| *places <= 38)?;
    if all.len() > 38 {
        return None;
    }
    let value = if all.is_empty() { 0 } else { all.parse::<i128>().ok()? };
    Some((sign * value, places))
}

fn name_of(to: &DataType) -> String {
    into_pg_type(to).map_or_else(|_| to.to_string(), |of| of.name().to_uppercase())
}

fn unhexed(digits: &str) -> Option<Vec<u8>> {
    if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
        return None;
    }
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()).collect()
}

fn of_bytes(bytes: &Bytes, told: Option<&Type>, known: Option<&DataType>, at: usize) -> PgWireResult<ScalarValue> {
    let short = || wrong(at, "has another number of bytes than its type");
    let four = || bytes.as_ref().try_into().map(i32::from_be_bytes).map_err(|_| short());
    let eight = || bytes.as_ref().try_into().map(i64::from_be_bytes).map_err(|_| short());
    let of_known = known.and_then(|known| into_pg_type(known).ok());
    let of = told.cloned().filter(|told| *told != Type::UNKNOWN).or(of_known).unwrap_or(Type::TEXT);
    Ok(match of {
        Type::BOOL => ScalarValue::Boolean(Some(bytes.as_ref() == [1])),
        Type::INT2 => {
            let two = bytes.as_ref().try_into().map(i16::from_be_bytes).map_err(|_| short())?;
            ScalarValue::Int16(Some(two))
        }
        Type::INT4 => ScalarValue::Int32(Some(four()?)),
        Type::INT8 => ScalarValue::Int64(Some(eight()?)),
        Type::FLOAT4 => ScalarValue::Float32(Some(f32::from_bits(four()?.cast_unsigned()))),
        Type::FLOAT8 => ScalarValue::Float64(Some(f64::from_bits(eight()?.cast_unsigned()))),
        Type::BYTEA => ScalarValue::Binary(Some(bytes.to_vec())),
        Type::DATE => {
            let days = four()?.checked_add(DAYS).ok_or_else(|| wrong(at, "is out of the range of dates"))?;
            ScalarValue::Date32(Some(days))
        }
        Type::TIME => ScalarValue::Time64Microsecond(Some(eight()?)),
        Type::TIMESTAMP | Type::TIMESTAMPTZ => {
            let micros = eight()?.checked_add(MICROS).ok_or_else(|| wrong(at, "is out of the range of time stamps"))?;
            let zone = (of == Type::TIMESTAMPTZ).then(|| "+00:00".into());
            ScalarValue::TimestampMicrosecond(Some(micros), zone)
        }
        Type::UUID => {
            let digits: [u8; 16] = bytes.as_ref().try_into().map_err(|_| short())?;
            let hex = crate::random::hex(&digits);
            let parts = [(0, 8), (8, 12), (12, 16), (16, 20), (20, 32)];
            let parts: Vec<&str> = parts.into_iter().filter_map(|(from, to)| hex.get(from..to)).collect();
            ScalarValue::Utf8(Some(parts.join("-")))
        }
        Type::NUMERIC => {
            let text = numeric(bytes).ok_or_else(|| wrong(at, "is no NUMERIC"))?;
            return of_number(&Bytes::from(text), known, at);
        }
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN | Type::JSON => {
            return of_text(bytes, known, at);
        }
        other => return Err(wrong(at, &format!("bytes of the type {other} are not known here; bind it as text"))),
    })
}

/// A NUMERIC in decimal digits: groups of four, and where the first stands.
fn numeric(bytes: &Bytes) -> Option<String> {
    let word = |at: usize| bytes.get(2 * at..2 * at + 2).and_then(|two| two.try_into().ok()).map(u16::from_be_bytes);
    let (count, weight, sign, scale) = (word(0)?, word(1)?.cast_signed(), word(2)?, word(3)?);
    if bytes.len() != 8 + 2 * usize::from(count) || weight.unsigned_abs() > 64 || scale > 1000 {
        return None;
    }
    let group = |place: i32| {
        let at = i32::from(weight).checked_sub(place)?;
        if at < 0 || at >= i32::from(count) {
            Some(0)
        } else {
            word(4 + usize::try_from(at).ok()?).filter(|group| *group < 10_000)
        }
    };
    let mut out = match sign {
        0x0000 => String::new(),
        0x4000 => "-".to_owned(),
        // No number, and the infinities.
        _ => return None,
    };
    let mut whole = String::new();
    for place in (0..=i32::from(weight).max(0)).rev() {
        write!(whole, "{:04}", group(place)?).ok()?;
    }
    let whole = whole.trim_start_matches('0');
    out.push_str(if whole.is_empty() { "0" } else { whole });
    if scale > 0 {
        let mut fraction = String::new();
        for place in 1..=i32::from(scale.div_ceil(4)) {
            write!(fraction, "{:04}", group(-place)?).ok()?;
        }
        fraction.truncate(usize::from(scale));
        out.push('.');
        out.push_str(&fraction);
    }
    Some(out)
}

/// What drivers set when they connect, if a statement does that: whether it is so here.
pub(super) fn settled(statement: &Parsed) -> Option<PgWireResult<()>> {
    let Parsed::Statement(inner) = statement else { return None };
    // There are no cursors but portals, which end with their transaction.
    if matches!(inner.as_ref(), ast::Statement::Close { cursor: ast::CloseCursor::All }) {
        return Some(Ok(()));
    }
    let ast::Statement::Set(ast::Set::SingleAssignment { variable, values, .. }) = inner.as_ref() else { return None };
    let name = variable.to_string().to_ascii_lowercase();
    let value = values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let value = value.trim_matches(['\'', '"']).to_ascii_lowercase();
    let holds = match name.as_str() {
        "client_encoding" => matches!(value.as_str(), "utf8" | "utf-8" | "unicode"),
        "standard_conforming_strings" => matches!(value.as_str(), "on" | "true"),
        "datestyle" => value.starts_with("iso"),
        "intervalstyle" => value == "postgres",
        // Floats have as many digits as tell them apart.
        "extra_float_digits" => matches!(value.as_str(), "1" | "2" | "3"),
        // There is nothing that shows the name of a program, and no messages but errors.
        "application_name" | "client_min_messages" => true,
        _ => return None,
    };
    Some(match holds {
        true => Ok(()),
        false => Err(error("0A000", &format!("SET {name} = {value}: not supported here"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[u16]) -> Bytes {
        words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<_>>().into()
    }

    #[test]
    fn numerics_are_their_digits() {
        for (words, text) in [
            (vec![0, 0, 0, 0], Some("0")),
            (vec![1, 0, 0, 0, 7], Some("7")),
            (vec![2, 1, 0x4000, 0, 1, 2345], Some("-12345")),
            (vec![2, 0, 0, 2, 12, 3400], Some("12.34")),
            (vec![1, 0xffff, 0, 4, 5], Some("0.0005")),
            (vec![1, 0xfffe, 0, 8, 5], Some("0.00000005")),
            (vec![1, 2, 0, 1, 3], Some("300000000.0")),
            (vec![0, 0, 0xc000, 0], None),
            (vec![2, 0, 0, 0, 1], None),
            (vec![1, 0, 0, 0, 10_000], None),
        ] {
            assert_eq!(numeric(&bytes(&words)).as_deref(), text, "{words:?}");
        }
    }

    /// What is bound keeps its digits, whatever the places of the column that it is beside.
    #[test]
    fn numbers_are_not_rounded_to_what_they_are_compared_with() {
        let of = |text: &'static str, known: Option<DataType>| {
            of_number(&Bytes::from_static(text.as_bytes()), known.as_ref(), 0).map_err(|e| e.to_string())
        };
        let price = || Some(DataType::Decimal128(10, 2));
        let decimal = |value, precision, scale| Ok(ScalarValue::Decimal128(Some(value), precision, scale));
        assert_eq!(of("1.005", price()), decimal(1005, 38, 3));
        assert_eq!(of("-2.504", price()), decimal(-2504, 38, 3));
        assert_eq!(of("2.5", price()), decimal(250, 10, 2));
        assert_eq!(of("123456789012", price()), decimal(123_456_789_012, 38, 0));
        assert_eq!(of("1E-12", None), decimal(1, 38, 12));
        assert_eq!(of("1.5e3", None), decimal(1500, 38, 0));
        assert_eq!(of("0.000", None), decimal(0, 38, 3));
        assert_eq!(of("7", Some(DataType::Int64)), Ok(ScalarValue::Int64(Some(7))));
        assert_eq!(of("1.5", Some(DataType::Int64)), decimal(15, 38, 1));
        assert_eq!(of("0.5", Some(DataType::Float64)), Ok(ScalarValue::Float64(Some(0.5))));
        for text in ["", "-", ".", "1.2.3", "x", "1e", "1e99999", "123456789012345678901234567890123456789", "1e-39"] {
            assert!(of(text, price()).is_err(), "{text}");
        }
    }
}
