//! Functions of text: hashes, formats, splitting, lengths.

mod escapes;
mod format;
mod length;

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder, UInt64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{DataType, Field};
use datafusion_common::{DataFusionError, Result, exec_err};
use datafusion_expr::{ScalarUDF, Signature, TypeSignature, Volatility};
use md5::{Digest, Md5};
use regex::Regex;
use sha2::Sha256;

pub use escapes::like_pattern;

use super::simple::Simple;
use super::types::type_names;

/// The functions.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let texts = |count| Signature::exact(vec![DataType::Utf8; count], Volatility::Immutable);
    let bytes = || {
        // As they come: bytes that are no text can be made none.
        let of = [DataType::Utf8, DataType::Utf8View, DataType::LargeUtf8];
        let of = of.into_iter().chain([DataType::Binary, DataType::BinaryView, DataType::LargeBinary]);
        Signature::one_of(of.map(|one| TypeSignature::Exact(vec![one])).collect(), Volatility::Immutable)
    };
    let utf8 = |_: &[DataType]| Ok(DataType::Utf8);
    let list = |_: &[DataType]| Ok(DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))));
    let any = || Signature::variadic_any(Volatility::Immutable);
    vec![
        Simple::new("md5", bytes(), utf8, |args| digests(args, |bytes| hex(&Md5::digest(bytes)))).udf(),
        Simple::new("sha256", bytes(), utf8, |args| digests(args, |bytes| hex(&Sha256::digest(bytes)))).udf(),
        Simple::new("hash", any(), |_| Ok(DataType::UInt64), hash).udf(),
        Simple::new("printf", any(), utf8, |args| format::texts(args, format::printf)).udf(),
        Simple::new("format", any(), utf8, |args| format::texts(args, format::braces)).udf(),
        Simple::new("regexp_split_to_array", texts(2), list, split_by_pattern)
            .or("string_split_regex")
            .or("str_split_regex")
            .udf(),
        Simple::new("regexp_extract_all", texts(2), list, extract_all).udf(),
        length::Length::default().into(),
        Simple::new("plinth_uuid", texts(1), utf8, uuids).udf(),
        Simple::new("plinth_like_pattern", texts(2), utf8, escapes::patterns).udf(),
        Simple::new("plinth_type_name", texts(1), utf8, type_names).udf(),
    ]
}

/// The letters of a text from one place to another, both counted from 1, or from the end if they are negative.
pub fn text_slice() -> Arc<ScalarUDF> {
    let signature = Signature::exact(vec![DataType::Utf8, DataType::Int64, DataType::Int64], Volatility::Immutable);
    Arc::new(Simple::new("plinth_text_slice", signature, |_| Ok(DataType::Utf8), slices).udf())
}

fn slices(args: &[ArrayRef]) -> Result<ArrayRef> {
    let [texts, from, to] = args else { return exec_err!("a part of a text: takes two places") };
    let (texts, from, to) =
        (texts.as_string::<i32>(), from.as_primitive::<Int64Type>(), to.as_primitive::<Int64Type>());
    let mut out = StringBuilder::new();
    for row in 0..texts.len() {
        if texts.is_null(row) || from.is_null(row) || to.is_null(row) {
            out.append_null();
            continue;
        }
        let text = texts.value(row);
        let count = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        let place = |at: i64| if at < 0 { count.saturating_add(at).saturating_add(1) } else { at };
        // A single place is one letter or none.
        let single = from.value(row) == to.value(row);
        let (first, last) = (place(from.value(row)), place(to.value(row)));
        let skipped = usize::try_from(first.max(1) - 1).unwrap_or(usize::MAX);
        let taken = if single && first < 1 { 0 } else { last.saturating_sub(first.max(1)).saturating_add(1) };
        out.append_value(text.chars().skip(skipped).take(usize::try_from(taken).unwrap_or(0)).collect::<String>());
    }
    Ok(Arc::new(out.finish()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn digests(args: &[ArrayRef], of: impl Fn(&[u8]) -> String) -> Result<ArrayRef> {
    let [values] = args else { return exec_err!("a hash: takes one value") };
    let mut out = StringBuilder::new();
    let values = cast(values, &DataType::BinaryView)?;
    values.as_binary_view().iter().for_each(|value| out.append_option(value.map(&of)));
    Ok(Arc::new(out.finish()))
}

/// The hash of the texts of values, one after the other; that of NULL is one too.
fn hash(args: &[ArrayRef]) -> Result<ArrayRef> {
    if args.is_empty() {
        return exec_err!("hash: takes a value");
    }
    let options = FormatOptions::default();
    let formatters = args
        .iter()
        .map(|array| ArrayFormatter::try_new(array.as_ref(), &options))
        .collect::<std::result::Result<Vec<_>, _>>()?;
    let mut out = UInt64Builder::new();
    for row in 0..args.first().map_or(0, |array| array.len()) {
        let mut bytes = Vec::new();
        for (array, formatter) in args.iter().zip(&formatters) {
            // NULL is no text, and no text is the beginning of the next.
            bytes.push(u8::from(array.is_valid(row)));
            if array.is_valid(row) {
                let text = formatter.value(row).try_to_string().map_err(DataFusionError::from)?;
                bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
                bytes.extend_from_slice(text.as_bytes());
            }
        }
        out.append_value(twox_hash::XxHash3_64::oneshot(&bytes));
    }
    Ok(Arc::new(out.finish()))
}

fn pattern(text: &str) -> Result<Regex> {
    Regex::new(text).or_else(|error| exec_err!("{text:?} is no regular expression: {error}"))
}

/// What is done with each text and its pattern; a pattern is compiled once as long as it stays the same.
fn by_pattern(args: &[ArrayRef], mut each: impl FnMut(Option<(&str, &Regex)>)) -> Result<()> {
    let [values, patterns] = args else { return exec_err!("a pattern: takes a text and a pattern") };
    let mut compiled: Option<(String, Regex)> = None;
    for (value, wanted) in values.as_string::<i32>().iter().zip(patterns.as_string::<i32>()) {
        let (Some(value), Some(wanted)) = (value, wanted) else {
            each(None);
            continue;
        };
        if compiled.as_ref().is_none_or(|(text, _)| text != wanted) {
            compiled = Some((wanted.to_owned(), pattern(wanted)?));
        }
        if let Some((_, regex)) = &compiled {
            each(Some((value, regex)));
        }
    }
    Ok(())
}

fn split_by_pattern(args: &[ArrayRef]) -> Result<ArrayRef> {
    let mut out = ListBuilder::new(StringBuilder::new());
    by_pattern(args, |found| {
        if let Some((value, regex)) = found {
            let mut start = 0;
            // A match of nothing separates letters, and has none before the first or behind the last.
            for found in
                regex.find_iter(value).filter(|found| !found.is_empty() || (1..value.len()).contains(&found.start()))
            {
                out.values().append_value(value.get(start..found.start()).unwrap_or_default());
                start = found.end();
            }
            out.values().append_value(value.get(start..).unwrap_or_default());
        }
        out.append(found.is_some());
    })?;
    Ok(Arc::new(out.finish()))
}

fn extract_all(args: &[ArrayRef]) -> Result<ArrayRef> {
    let mut out = ListBuilder::new(StringBuilder::new());
    by_pattern(args, |found| {
        if let Some((value, regex)) = found {
            regex.find_iter(value).for_each(|part| out.values().append_value(part.as_str()));
        }
        out.append(found.is_some());
    })?;
    Ok(Arc::new(out.finish()))
}

/// UUIDs as they are written: 32 digits in five groups, in small letters.
fn uuids(args: &[ArrayRef]) -> Result<ArrayRef> {
    let [values] = args else { return exec_err!("a cast to UUID: takes one value") };
    let mut out = StringBuilder::new();
    for value in values.as_string::<i32>() {
        let Some(value) = value else {
            out.append_null();
            continue;
        };
        let inner = value.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or(value);
        let digits: String = inner.chars().filter(|letter| *letter != '-').collect();
        if digits.len() != 32 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return exec_err!("{value:?} is no UUID");
        }
        let digits = digits.to_ascii_lowercase();
        let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
        out.append_value(format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)));
    }
    Ok(Arc::new(out.finish()))
}
