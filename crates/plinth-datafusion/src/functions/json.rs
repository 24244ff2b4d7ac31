//! JSON in text: `->`, `->>`, `json_extract`, `to_json` and others.
//!
//! What is taken out of a document is a part of its text, so that a number keeps its digits, without the blanks between its signs.

mod path;
mod write;

use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Int64Builder, ListBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field};
use datafusion_common::{Result, exec_err};
use datafusion_expr::{ScalarUDF, Signature, TypeSignature, Volatility};
use serde::de::IgnoredAny;

use super::simple::Simple;
use path::Path;

/// The functions.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let text = |count| Signature::exact(vec![DataType::Utf8; count], Volatility::Immutable);
    let place = || {
        let with = |path| TypeSignature::Exact(vec![DataType::Utf8, path]);
        // The first that the arguments can be made: numbers can be made texts, but no text a number.
        Signature::one_of(vec![with(DataType::Int64), with(DataType::Utf8)], Volatility::Immutable)
    };
    let one_or_two = || {
        let texts = |count| TypeSignature::Exact(vec![DataType::Utf8; count]);
        Signature::one_of(vec![texts(1), texts(2)], Volatility::Immutable)
    };
    let utf8 = |_: &[DataType]| Ok(DataType::Utf8);
    let int = |_: &[DataType]| Ok(DataType::Int64);
    vec![
        Simple::new("json_extract", place(), utf8, |args| extract(args, false)).or("json_extract_path").udf(),
        Simple::new("json_extract_string", place(), utf8, |args| extract(args, true))
            .or("json_extract_path_text")
            .udf(),
        Simple::new("json_valid", text(1), |_| Ok(DataType::Boolean), valid).udf(),
        Simple::new("json", text(1), utf8, minified).or("json_minify").udf(),
        Simple::new("plinth_json", Signature::any(1, Volatility::Immutable), utf8, checked).udf(),
        Simple::new("to_json", Signature::any(1, Volatility::Immutable), utf8, write::to_json).or("json_quote").udf(),
        Simple::new("json_array_length", one_or_two(), int, array_length).udf(),
        Simple::new("json_type", one_or_two(), utf8, types).or("json_typeof").udf(),
        Simple::new("json_keys", one_or_two(), |_| Ok(texts()), keys).udf(),
        Simple::new("json_exists", text(2), |_| Ok(DataType::Boolean), exists).udf(),
    ]
}

fn texts() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)))
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

fn check(text: &str) -> Result<()> {
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) => Ok(()),
        Err(error) => exec_err!("not JSON: {error}: {}", text.chars().take(80).collect::<String>()),
    }
}

/// The document of a row and, of all rows or of this, the path in it.
fn part(args: &[ArrayRef], row: usize) -> Result<Option<&str>> {
    let [documents, rest @ ..] = args else { return exec_err!("JSON: takes a text") };
    let documents = documents.as_string::<i32>();
    if documents.is_null(row) {
        return Ok(None);
    }
    let document = documents.value(row);
    check(document)?;
    let Some(paths) = rest.first() else { return Ok(Some(document.trim())) };
    if paths.is_null(row) {
        return Ok(None);
    }
    let path = match paths.data_type() {
        DataType::Int64 => Path::index(paths.as_primitive::<arrow_array::types::Int64Type>().value(row)),
        _ => Path::parse(paths.as_string::<i32>().value(row))?,
    };
    Ok(path.find(document))
}

fn rows(args: &[ArrayRef]) -> usize {
    args.first().map_or(0, |array| array.len())
}

fn extract(args: &[ArrayRef], as_text: bool) -> Result<ArrayRef> {
    let mut out = StringBuilder::new();
    for row in 0..rows(args) {
        match part(args, row)? {
            None => out.append_null(),
            Some("null") if as_text => out.append_null(),
            Some(found) if as_text && found.starts_with('"') => {
                let text: String = serde_json::from_str(found).or_else(|error| exec_err!("not JSON: {error}"))?;
                out.append_value(text);
            }
            Some(found) => out.append_value(path::without_blanks(found)),
        }
    }
    Ok(Arc::new(out.finish()))
}

fn valid(args: &[ArrayRef]) -> Result<ArrayRef> {
    let mut out = BooleanBuilder::new();
    for text in args.iter().flat_map(|array| array.as_string::<i32>()) {
        out.append_option(text.map(is_json));
    }
    Ok(Arc::new(out.finish()))
}

fn exists(args: &[ArrayRef]) -> Result<ArrayRef> {
    let mut out = BooleanBuilder::new();
    for row in 0..rows(args) {
        let null = args.iter().any(|array| array.is_null(row));
        out.append_option(if null { None } else { Some(part(args, row)?.is_some()) });
    }
    Ok(Arc::new(out.finish()))
}

fn minified(args: &[ArrayRef]) -> Result<ArrayRef> {
    let mut out = StringBuilder::new();
    for row in 0..rows(args) {
        out.append_option(part(args, row)?.map(path::without_blanks));
    }
    Ok(Arc::new(out.finish()))
}

/// What a cast to JSON does: text stays as it is, if it is JSON; other values become it.
fn checked(args: &[ArrayRef]) -> Result<ArrayRef> {
    let [value] = args else { return exec_err!("a cast to JSON: takes one value") };
    if !value.data_type().is_string() {
        return write::to_json(args);
    }
    let value = arrow_cast::cast(value, &DataType::Utf8)?;
    value.as_string::<i32>().iter().flatten().try_for_each(check)?;
    Ok(value)
}

fn array_length(args: &[ArrayRef]) -> Result<ArrayRef> {
    let mut out = Int64Builder::new();
    for row in 0..rows(args) {
        let count = |found: &str| i64::try_from(path::elements(found).count()).unwrap_or(i64::MAX);
        out.append_option(part(args, row)?.map(|found| if found.starts_with('[') { count(found) } else { 0 }));
    }
    Ok(Arc::new(out.finish()))
}

/// The name of what a value is.
pub(super) fn type_of(value: &str) -> &'static str {
    match value.as_bytes().first() {
        Some(b'{') => "OBJECT",
        Some(b'[') => "ARRAY",
        Some(b'"') => "VARCHAR",
        Some(b't' | b'f') => "BOOLEAN",
        Some(b'n') => "NULL",
        _ if value.contains(['.', 'e', 'E']) => "DOUBLE",
        Some(b'-') => "BIGINT",
        _ => "UBIGINT",
    }
}

fn types(args: &[ArrayRef]) -> Result<ArrayRef> {
    let mut out = StringBuilder::new();
    for row in 0..rows(args) {
        out.append_option(part(args, row)?.map(type_of));
    }
    Ok(Arc::new(out.finish()))
}

fn keys(args: &[ArrayRef]) -> Result<ArrayRef> {
    let mut out = ListBuilder::new(StringBuilder::new());
    for row in 0..rows(args) {
        match part(args, row)? {
            None => out.append_null(),
            Some(found) => {
                if found.starts_with('{') {
                    for (key, _) in path::members(found) {
                        out.values().append_value(key);
                    }
                }
                out.append(true);
            }
        }
    }
    Ok(Arc::new(out.finish()))
}

/// A row of `json_each`: the key, the value and its type.
pub type JsonMember = (String, String, &'static str);

/// The members of an object, or the elements of an array by their numbers.
///
/// # Errors
/// If a text is no JSON.
pub fn json_members(text: &str) -> Result<Vec<JsonMember>> {
    check(text)?;
    let text = text.trim();
    let row = |key: String, value: &str| (key, path::without_blanks(value), type_of(value));
    Ok(match text.as_bytes().first() {
        Some(b'{') => path::members(text).map(|(key, value)| row(key, value)).collect(),
        Some(b'[') => path::elements(text).enumerate().map(|(at, value)| row(at.to_string(), value)).collect(),
        _ => vec![row(String::new(), text)],
    })
}

/// A text in quotes.
fn quoted(out: &mut String, text: &str) {
    match serde_json::to_string(text) {
        Ok(text) => out.push_str(&text),
        // Writing into memory does not fail.
        Err(error) => {
            let _ = write!(out, "\"{error}\"");
        }
    }
}
