//! Text as bytes: `\\x` and two hexadecimal digits are one, as DuckDB has it.

use std::sync::Arc;

use arrow_array::builder::BinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_cast::{CastOptions, cast, cast_with_options};
use arrow_schema::DataType;
use datafusion_common::{Result, exec_err, plan_err};
use datafusion_expr::{ScalarUDF, Signature, Volatility};

use super::simple::Simple;
use super::types::sql_type_name;

/// `CAST(x AS BLOB)`, and `TRY_CAST`.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let any = || Signature::any(1, Volatility::Immutable);
    vec![
        Simple::new("plinth_blob", any(), returns, |args| blobs(args, true)).udf(),
        Simple::new("plinth_try_blob", any(), returns, |args| blobs(args, false)).udf(),
    ]
}

/// The bytes of a text in which `\\x` and two digits are one; none if there is a backslash before anything else.
pub fn unescaped_bytes(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('\\');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.strip_prefix('x')?.split_at_checked(2)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    Some(bytes)
}

fn is_text(of: &DataType) -> bool {
    match of {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, value) => is_text(value),
        _ => false,
    }
}

fn returns(types: &[DataType]) -> Result<DataType> {
    use DataType::{Binary, BinaryView, FixedSizeBinary, LargeBinary, Null};
    match types {
        [Null | Binary | LargeBinary | BinaryView | FixedSizeBinary(_)] => Ok(Binary),
        [text] if is_text(text) => Ok(Binary),
        [other] => {
            plan_err!("{} can't become BLOB; cast to VARCHAR first for the bytes of its text", sql_type_name(other))
        }
        _ => plan_err!("a BLOB is made of one value"),
    }
}

fn blobs(args: &[ArrayRef], fails: bool) -> Result<ArrayRef> {
    let [values] = args else { return exec_err!("a BLOB is made of one value") };
    if !is_text(values.data_type()) {
        return Ok(cast_with_options(
            values,
            &DataType::Binary,
            &CastOptions { safe: false, ..CastOptions::default() },
        )?);
    }
    bytes_of_texts(values, fails)
}

/// The bytes that texts say. A text that says none is an error that tells what to write, or NULL if nothing `fails`.
///
/// # Errors
/// If a text has a backslash that is not of a byte, and that `fails`.
pub fn bytes_of_texts(texts: &ArrayRef, fails: bool) -> Result<ArrayRef> {
    let texts = cast(texts, &DataType::Utf8)?;
    let texts = texts.as_string::<i32>();
    let mut blobs = BinaryBuilder::with_capacity(texts.len(), texts.value_data().len());
    for text in texts {
        match text.map(|text| (text, unescaped_bytes(text))) {
            Some((_, Some(bytes))) => blobs.append_value(bytes),
            Some((text, None)) if fails => {
                return exec_err!(
                    "'{text}' is no BLOB: a byte is written \\x and two hexadecimal digits; \
                     arrow_cast(x, 'Binary') takes all letters as they are"
                );
            }
            _ => blobs.append_null(),
        }
    }
    Ok(Arc::new(blobs.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_by_their_digits() {
        assert_eq!(unescaped_bytes("aé"), Some("aé".as_bytes().to_vec()));
        assert_eq!(unescaped_bytes(r"\xAA\x41b\x00"), Some(vec![0xAA, 0x41, b'b', 0]));
        for bad in [r"\", r"a\b", r"\x4", r"\xG0", r"\x+1", r"\xé1"] {
            assert_eq!(unescaped_bytes(bad), None, "{bad}");
        }
    }
}
