//! The codes of PostgreSQL for what went wrong, by which its drivers choose an exception.

use tonic::{Code, Status};

/// How sentences begin, or what they hold behind `...`, and their codes. The first that fits is told.
const SENTENCES: &[(&str, &str)] = &[
    ("SQL: ", "42601"),
    ("no table ", "42P01"),
    ("table ...doesn't exist", "42P01"),
    ("no column ", "42703"),
    ("... may be one of several tables", "42702"),
    ("no function ", "42883"),
    ("no type ", "42704"),
    ("no schema ", "3F000"),
    ("CREATE TABLE ...already exists", "42P07"),
    ("CREATE VIEW ...already exists", "42P07"),
    ("no statement ...was prepared", "26000"),
    ("...can't be NULL", "23502"),
    ("...CHECK (...does not hold", "23514"),
    ("...division by zero", "22012"),
    ("...is out of range", "22003"),
    ("'... is no ", "22P02"),
];

/// The code of a failure.
pub(super) fn of(status: &Status) -> &'static str {
    let by_kind = match status.code() {
        Code::InvalidArgument => "42000",
        Code::AlreadyExists => "23505",
        Code::Unimplemented => "0A000",
        Code::PermissionDenied => "42501",
        Code::Aborted => "40001",
        Code::Cancelled | Code::DeadlineExceeded => "57014",
        Code::ResourceExhausted => "53000",
        Code::Unavailable => "57P01",
        Code::NotFound => "26000",
        _ => "XX000",
    };
    if !matches!(status.code(), Code::InvalidArgument | Code::AlreadyExists) {
        return by_kind;
    }
    let found = SENTENCES.iter().find(|(sentence, _)| fits(status.message(), sentence));
    found.map_or(by_kind, |(_, code)| *code)
}

/// Whether a text has the parts of a sentence one after the other, the first at its beginning.
fn fits(text: &str, sentence: &str) -> bool {
    let mut parts = sentence.split("...");
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    for part in parts {
        let Some((_, behind)) = rest.split_once(part) else { return false };
        rest = behind;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_have_the_codes_of_postgres() {
        for (code, sentence, expected) in [
            (Code::InvalidArgument, "no table \"t\"; SHOW TABLES lists what there is", "42P01"),
            (Code::InvalidArgument, "table 't' doesn't exist", "42P01"),
            (Code::InvalidArgument, "SQL: Expected: an SQL statement, found: selec", "42601"),
            (Code::InvalidArgument, "INSERT INTO t: column \"b\" can't be NULL", "23502"),
            (Code::AlreadyExists, "INSERT INTO t: CHECK (a > 0) does not hold where a is -1", "23514"),
            (Code::AlreadyExists, "t: there is a row with the key 1", "23505"),
            (Code::InvalidArgument, "division by zero", "22012"),
            (Code::InvalidArgument, "something else", "42000"),
            (Code::Aborted, "no table", "40001"),
        ] {
            assert_eq!(of(&Status::new(code, sentence)), expected, "{sentence}");
        }
    }
}
