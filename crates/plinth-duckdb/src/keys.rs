//! Columns that the names of folders give: `year=2024/month=01`, as Hive names partitions.

use std::path::{Component, Path};

use arrow_array::types::Date32Type;
use arrow_cast::parse::Parser;
use plinth_encoding::expr::{CompareOp, Expr, Scalar};

/// How folders name that there is no value.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// The type of a key's column: the narrowest that all of its values read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyType {
    BigInt,
    Date,
    Varchar,
}

/// A key, and its value for each file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) key_type: KeyType,
    /// None is NULL.
    pub(crate) values: Vec<Option<String>>,
}

/// The keys that every one of some files has, in the order of the first's folders. Names that differ in case are one.
pub(crate) fn of<'a>(files: impl Iterator<Item = &'a Path> + Clone, typed: bool) -> Vec<Key> {
    let Some(first) = files.clone().next() else { return Vec::new() };
    let mut keys = Vec::new();
    for (name, _) in pairs(first) {
        let value_of =
            |path: &Path| pairs(path).find(|(other, _)| other.eq_ignore_ascii_case(&name)).map(|(_, value)| value);
        let Some(values) = files.clone().map(value_of).collect::<Option<Vec<_>>>() else { continue };
        let values: Vec<Option<String>> = values.into_iter().map(|value| (value != NULL).then_some(value)).collect();
        let all = |read: fn(&str) -> bool| typed && values.iter().flatten().all(|value| read(value));
        let key_type = if all(|value| whole_number(value).is_some()) {
            KeyType::BigInt
        } else if all(is_date) {
            KeyType::Date
        } else {
            KeyType::Varchar
        };
        keys.push(Key { name, key_type, values });
    }
    keys
}

/// `key=value` for each folder of a path that is named so.
fn pairs(path: &Path) -> impl Iterator<Item = (String, String)> {
    let folders = path.parent().into_iter().flat_map(Path::components);
    folders.filter_map(|part| match part {
        Component::Normal(name) => {
            let (key, value) = name.to_str()?.split_once('=')?;
            (!key.is_empty()).then(|| (unescaped(key), unescaped(value)))
        }
        _ => None,
    })
}

/// Hive writes what a name can't hold as `%` and two hexadecimal digits.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        let escaped = after.get(..2).filter(|_| *byte == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(decoded) => {
                bytes.push(decoded);
                rest = &after[2..];
            }
            None => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

fn whole_number(text: &str) -> Option<i64> {
    // Zeros may lead, as in the numbers of months; a plus sign is part of a name.
    let number: i64 = text.parse().ok()?;
    (number.to_string() == text || text.bytes().all(|byte| byte.is_ascii_digit())).then_some(number)
}

/// `2024-02-29`, of a day that there is.
fn is_date(text: &str) -> bool {
    days(text).is_some()
}

/// Days since 1970.
fn days(text: &str) -> Option<i32> {
    let is_digit = |at: usize, byte: u8| if at == 4 || at == 7 { byte == b'-' } else { byte.is_ascii_digit() };
    let is_one = text.len() == 10 && text.bytes().enumerate().all(|(at, byte)| is_digit(at, byte));
    is_one.then(|| Date32Type::parse(text)).flatten()
}

impl Key {
    /// The value for a file as scans compare it.
    fn scalar(&self, file: usize) -> Option<Scalar> {
        let value = self.values.get(file)?.as_ref()?;
        Some(match self.key_type {
            KeyType::BigInt => Scalar::from(whole_number(value)?),
            KeyType::Date => Scalar::from(i64::from(days(value)?)),
            KeyType::Varchar => Scalar::from(value.as_str()),
        })
    }
}

/// Whether a predicate over nothing but keys holds for a file; unknown counts as false.
pub(crate) fn holds(predicate: &Expr, keys: &[Key], file: usize) -> bool {
    truth(predicate, keys, file) == Some(true)
}

fn truth(predicate: &Expr, keys: &[Key], file: usize) -> Option<bool> {
    let value = |path: &plinth_encoding::expr::Path| {
        keys.iter().find(|key| path.parts() == [key.name.as_str()]).and_then(|key| key.scalar(file))
    };
    match predicate {
        Expr::Literal(known) => *known,
        Expr::Compare { column, op, value: other } => compare(&value(column)?, *op, other),
        Expr::In { column, values } => {
            let value = value(column)?;
            Some(values.iter().any(|other| compare(&value, CompareOp::Eq, other) == Some(true)))
        }
        Expr::IsNull(column) => Some(value(column).is_none()),
        Expr::Not(inner) => truth(inner, keys, file).map(|known| !known),
        Expr::And(all) => decided(all, keys, file, false),
        Expr::Or(any) => decided(any, keys, file, true),
        Expr::Keys { .. } | Expr::Function(_) => None,
    }
}

/// What one of some predicates decides by being `deciding`; unknown if one of the others is, else the opposite.
fn decided(predicates: &[Expr], keys: &[Key], file: usize, deciding: bool) -> Option<bool> {
    let mut result = Some(!deciding);
    for predicate in predicates {
        match truth(predicate, keys, file) {
            Some(known) if known == deciding => return Some(deciding),
            None => result = None,
            Some(_) => {}
        }
    }
    result
}

fn compare(left: &Scalar, op: CompareOp, right: &Scalar) -> Option<bool> {
    let order = match (left, right) {
        (Scalar::Int(left), Scalar::Int(right)) => left.cmp(right),
        (Scalar::Bytes(left), Scalar::Bytes(right)) => left.cmp(right),
        _ => return None,
    };
    Some(match op {
        CompareOp::Eq => order.is_eq(),
        CompareOp::NotEq => order.is_ne(),
        CompareOp::Lt => order.is_lt(),
        CompareOp::LtEq => order.is_le(),
        CompareOp::Gt => order.is_gt(),
        CompareOp::GtEq => order.is_ge(),
    })
}

/// Whether [`holds`] can tell of a predicate over keys.
pub(crate) fn is_simple(predicate: &Expr) -> bool {
    match predicate {
        Expr::Literal(_) | Expr::Compare { .. } | Expr::In { .. } | Expr::IsNull(_) => true,
        Expr::Not(inner) => is_simple(inner),
        Expr::And(all) | Expr::Or(all) => all.iter().all(is_simple),
        Expr::Keys { .. } | Expr::Function(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use plinth_encoding::expr::col;

    use super::*;

    fn keys_of(paths: &[&str]) -> Vec<Key> {
        of(paths.iter().map(Path::new), true)
    }

    #[test]
    fn folders_give_keys_and_types() {
        let keys = keys_of(&["t/year=2024/day=2024-02-29/k=a%2Fb/x.plinth", "t/day=1969-12-31/Year=7/k=1/y.plinth"]);
        let found: Vec<_> = keys.iter().map(|key| (key.name.as_str(), key.key_type)).collect();
        assert_eq!(found, [("year", KeyType::BigInt), ("day", KeyType::Date), ("k", KeyType::Varchar)]);
        assert_eq!(keys[2].values, [Some("a/b".to_owned()), Some("1".to_owned())]);
        assert_eq!(keys_of(&["t/a=1/x.plinth", "t/b=1/x.plinth"]), []);
        assert_eq!(keys_of(&["t/a=__HIVE_DEFAULT_PARTITION__/x.plinth"])[0].values, [None]);
        assert_eq!(keys_of(&["t/a=2023-02-29/x.plinth"])[0].key_type, KeyType::Varchar);
        assert_eq!(keys_of(&["a=1.plinth"]), []);
    }

    #[test]
    fn days_are_counted_from_1970() {
        for (date, count) in [("1970-01-01", 0), ("1969-12-31", -1), ("2000-03-01", 11_017), ("2024-02-29", 19_782)] {
            assert_eq!(days(date), Some(count), "{date}");
        }
        for bad in ["2023-02-29", "2024-13-01", "2024-00-01", "24-01-01", "2024-1-01", "+024-01-01", "x"] {
            assert_eq!(days(bad), None, "{bad}");
        }
    }

    #[test]
    fn predicates_over_keys_know_null() {
        let keys = keys_of(&["a=1/x.plinth", "a=__HIVE_DEFAULT_PARTITION__/x.plinth", "a=5/x.plinth"]);
        let kept = |predicate: &Expr| (0..3).filter(|&file| holds(predicate, &keys, file)).collect::<Vec<_>>();
        assert_eq!(kept(&col("a").gt(2)), [2]);
        assert_eq!(kept(&Expr::Not(Box::new(col("a").gt(2)))), [0]);
        assert_eq!(kept(&col("a").is_null()), [1]);
        assert_eq!(kept(&Expr::Or(vec![col("a").is_null(), col("a").eq(1)])), [0, 1]);
        assert_eq!(kept(&col("a").is_in([Scalar::Int(5), Scalar::Int(6)])), [2]);
    }
}
