//! What arguments may say.

use std::path::PathBuf;

use plinth_format::sort::SortKey;

/// The folder of a database: not what other programs call one in memory.
pub(crate) fn check_folder(folder: PathBuf) -> Result<PathBuf, String> {
    if folder.as_os_str() == ":memory:" {
        return Err("a folder is expected; without --db tables are in memory".to_owned());
    }
    Ok(folder)
}

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

/// A column's name and the path to its values; a name alone is the path, too.
pub(crate) fn parse_path(text: &str) -> Result<(String, String), String> {
    let (name, path) = text.split_once('=').unwrap_or((text, text));
    if name.is_empty() || path.is_empty() {
        return Err("NAME=PATH is expected, such as city=$.address.city".to_owned());
    }
    Ok((name.to_owned(), path.to_owned()))
}
