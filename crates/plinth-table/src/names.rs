//! The names of a table's files, whose order is the order of its rows.
//!
//! Appended files are numbered: `000001.plinth`, `000002.plinth`. What replaces several has the name of their range,
//! `000001-000003.plinth`, and stands where they stood. Names are ordered by what is before `.plinth`, so that a name comes
//! before all that it begins. Names that others gave are taken as they are: what is appended after `june.plinth` is
//! `june-000001.plinth`.

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::path::Path;

use crate::EXTENSION;

/// Digits of a file's number.
const DIGITS: usize = 6;

/// Whether a file of this name belongs to the table: it ends in `.plinth` and is not hidden (by a dot or an underscore).
pub(crate) fn is_visible(name: &OsStr) -> bool {
    !matches!(name.as_encoded_bytes().first(), None | Some(b'.' | b'_'))
        && Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case(EXTENSION))
}

/// The order of files in a table.
pub(crate) fn order(a: &OsStr, b: &OsStr) -> Ordering {
    let stem = |name: &OsStr| Path::new(name).file_stem().map(|stem| stem.as_encoded_bytes().to_vec());
    stem(a).cmp(&stem(b)).then_with(|| a.cmp(b))
}

/// The name of the file that comes after all others, of which `last` is the last.
pub(crate) fn next(last: Option<&OsStr>) -> String {
    let Some(last) = last else { return file(&number(1)) };
    let last = stem(last);
    let successor = match Range::parse(&last) {
        Some(range) => Some(number(range.to.saturating_add(1))),
        // One of several that follow a name that others gave.
        None => last.len().checked_sub(DIGITS + 1).and_then(|at| last.split_at_checked(at)).and_then(|(base, tail)| {
            let tail = parse_number(tail.strip_prefix('-')?)?;
            Some(format!("{base}-{}", number(tail.saturating_add(1))))
        }),
    };
    match successor {
        // A number that needs another digit would come before the last.
        Some(name) if name > last => file(&name),
        _ => file(&format!("{last}-{}", number(1))),
    }
}

/// Names for a file that replaces all from `first` to `last`, of which the first that is not taken and comes before
/// `following` will do.
pub(crate) fn replacement<'a>(first: &str, last: &str) -> impl Iterator<Item = String> + use<'a> {
    let (first, last) = (stem(OsStr::new(first)), stem(OsStr::new(last)));
    let range = Range::parse(&first).zip(Range::parse(&last)).filter(|(a, b)| a.from < b.to);
    let range = range.map(|(a, b)| file(&format!("{}-{}", number(a.from), number(b.to))));
    // A letter comes after every digit, so the first name may lead past what follows; the last one's never does.
    let after = move |base: String| (1..1000).map(move |i| file(&format!("{base}-c{i}")));
    range.into_iter().chain(after(first)).chain(after(last))
}

fn stem(name: &OsStr) -> String {
    Path::new(name).file_stem().unwrap_or(name).to_string_lossy().into_owned()
}

fn file(stem: &str) -> String {
    format!("{stem}.{EXTENSION}")
}

fn number(n: u64) -> String {
    format!("{n:0DIGITS$}")
}

/// A number as [`number`] writes it.
fn parse_number(text: &str) -> Option<u64> {
    (text.len() == DIGITS && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

/// The appended files that a file holds the rows of.
struct Range {
    from: u64,
    to: u64,
}

impl Range {
    fn parse(stem: &str) -> Option<Self> {
        if let Some(n) = parse_number(stem) {
            return Some(Self { from: n, to: n });
        }
        let (from, to) = stem.split_once('-')?;
        let (from, to) = (parse_number(from)?, parse_number(to)?);
        (from < to).then_some(Self { from, to })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(name: &str) -> String {
        let next = next(Some(OsStr::new(name)));
        assert_eq!(order(OsStr::new(name), OsStr::new(&next)), Ordering::Less, "{name} {next}");
        next
    }

    #[test]
    fn the_next_name_comes_after_the_last() {
        assert_eq!(next(None), "000001.plinth");
        for (last, expected) in [
            ("000001.plinth", "000002.plinth"),
            ("000009.plinth", "000010.plinth"),
            ("000001-000003.plinth", "000004.plinth"),
            ("999999.plinth", "999999-000001.plinth"),
            ("999999-000001.plinth", "999999-000002.plinth"),
            ("000001-999999.plinth", "1000000.plinth"),
            ("1000000.plinth", "1000000-000001.plinth"),
            ("999999-999999.plinth", "999999-999999-000001.plinth"),
            ("june.plinth", "june-000001.plinth"),
            ("june-000001.plinth", "june-000002.plinth"),
            ("2024-05-01.plinth", "2024-05-01-000001.plinth"),
            ("part-00007.plinth", "part-00007-000001.plinth"),
            ("größe.PLINTH", "größe-000001.plinth"),
            ("x-c1.plinth", "x-c1-000001.plinth"),
        ] {
            assert_eq!(after(last), expected);
        }
        let mut name = "999998.plinth".to_owned();
        for _ in 0..5 {
            name = after(&name);
        }
    }

    #[test]
    fn a_replacement_stands_where_the_replaced_stood() {
        let first = |a, b| replacement(a, b).next().unwrap();
        assert_eq!(first("000001.plinth", "000003.plinth"), "000001-000003.plinth");
        assert_eq!(first("000001-000003.plinth", "000004.plinth"), "000001-000004.plinth");
        assert_eq!(first("000004.plinth", "000005-000008.plinth"), "000004-000008.plinth");
        assert_eq!(first("june.plinth", "june-000002.plinth"), "june-c1.plinth");
        assert_eq!(first("000001.plinth", "june.plinth"), "000001-c1.plinth");
        for (a, b, next) in [("000001.plinth", "000003.plinth", "000004.plinth"), ("a.plinth", "b.plinth", "c.plinth")]
        {
            let name = first(a, b);
            assert_eq!(order(OsStr::new(a), OsStr::new(&name)), Ordering::Less);
            assert_eq!(order(OsStr::new(&name), OsStr::new(next)), Ordering::Less);
        }
    }

    #[test]
    fn hidden_and_other_files_are_none_of_the_tables() {
        for name in [".000001.plinth", "_x.plinth", "x.parquet", "plinth", ".plinth-lock", ""] {
            assert!(!is_visible(OsStr::new(name)), "{name}");
        }
        assert!(is_visible(OsStr::new("x.plinth")) && is_visible(OsStr::new("x.PLINTH")));
    }
}
