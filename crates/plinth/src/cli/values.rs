//! What arguments may say.

use plinth_format::sort::SortKey;
use plinth_ingest::Sample;

use super::Quote;

pub(crate) fn parse_param(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => {
            Ok((name.strip_prefix('$').unwrap_or(name).to_owned(), value.to_owned()))
        }
        _ => Err("NAME=VALUE is expected".to_owned()),
    }
}

pub(crate) fn parse_threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 1..=1024) => Ok(n),
        _ => Err("a number from 1 to 1024 is expected".to_owned()),
    }
}

pub(crate) fn parse_sort_key(text: &str) -> Result<SortKey, String> {
    let (column, descending) = match text.rsplit_once(':') {
        Some((column, "desc")) => (column, true),
        Some((column, "asc")) => (column, false),
        _ => (text, false),
    };
    if column.is_empty() {
        return Err("a column's name is expected".to_owned());
    }
    Ok(SortKey { column: column.to_owned(), descending })
}

pub(crate) fn parse_sample(text: &str) -> Result<Sample, String> {
    match text.parse() {
        _ if text == "all" => Ok(Sample::Everything),
        Ok(0) | Err(_) => Err("a number of rows or \"all\" is expected".to_owned()),
        Ok(rows) => Ok(Sample::Rows(rows)),
    }
}

pub(crate) fn parse_character(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        _ if text == "\\t" => Ok(b'\t'),
        [character] if !matches!(character, b'\n' | b'\r') => Ok(*character),
        _ => Err("one ASCII character is expected, or \\t".to_owned()),
    }
}

/// A column's name and the path to its values; a name alone is the path, too.
pub(crate) fn parse_path(text: &str) -> Result<(String, String), String> {
    let (name, path) = text.split_once('=').unwrap_or((text, text));
    if name.is_empty() || path.is_empty() {
        return Err("NAME=PATH is expected, such as city=$.address.city".to_owned());
    }
    Ok((name.to_owned(), path.to_owned()))
}

pub(crate) fn parse_quote(text: &str) -> Result<Quote, String> {
    if text == "none" { Ok(Quote(None)) } else { parse_character(text).map(|character| Quote(Some(character))) }
}
