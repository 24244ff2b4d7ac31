//! Rows, and predicates that are evaluated on each.

use super::table::Table;
use super::value::{Kind, Random, Value};

/// All rows of a table.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows(pub(super) Vec<Vec<Value>>);

/// A condition, which is true, false or unknown of a row.
pub(super) enum Predicate {
    Compare(usize, &'static str, Value),
    In(usize, Vec<Value>, bool),
    Between(usize, Value, Value),
    Null(usize, bool),
    Prefix(usize, String),
    And(Vec<Predicate>),
    Or(Vec<Predicate>),
    Not(Box<Predicate>),
}

const COMPARE: [&str; 7] = ["=", "=", "<>", "<", "<=", ">", ">="];

impl Predicate {
    pub(super) fn random(table: &Table, random: &mut Random, depth: usize) -> Self {
        if depth > 0 {
            let mut parts = || (0..2).map(|_| Self::random(table, random, depth - 1)).collect::<Vec<_>>();
            let parts = parts();
            return match random.below(5) {
                0..3 => Self::And(parts),
                3 => Self::Or(parts),
                _ => Self::Not(Box::new(Self::Or(parts))),
            };
        }
        // Several columns of an index are bound together, or the first of them.
        if random.below(3) == 0
            && let Some(columns) = table.bound(random)
        {
            let value = |random: &mut Random, column: usize| table.columns[column].0.value_there(random);
            return Self::And(columns.into_iter().map(|c| Self::Compare(c, "=", value(random, c))).collect());
        }
        let column = random.below(table.columns.len());
        let kind = table.columns[column].0;
        match random.below(10) {
            0..5 => Self::Compare(column, COMPARE[random.below(COMPARE.len())], kind.value_there(random)),
            5 => Self::In(column, (0..random.below(4) + 1).map(|_| kind.value_there(random)).collect(), false),
            6 => Self::In(column, (0..random.below(4) + 1).map(|_| kind.value_there(random)).collect(), true),
            7 => Self::Between(column, kind.value_there(random), kind.value_there(random)),
            8 if kind == Kind::Text => {
                Self::Prefix(column, ["", "a", "ab", "o'", "ä", "zz"][random.below(6)].to_owned())
            }
            _ => Self::Null(column, random.below(2) == 0),
        }
    }

    pub(super) fn sql(&self, table: &Table) -> String {
        let name = |column: &usize| table.name(*column);
        let literal = |column: &usize, value: &Value| value.literal(table.columns[*column].0);
        let list = |column: &usize, values: &[Value]| {
            values.iter().map(|value| literal(column, value)).collect::<Vec<_>>().join(", ")
        };
        let joined = |parts: &[Self], with| {
            parts.iter().map(|part| format!("({})", part.sql(table))).collect::<Vec<_>>().join(with)
        };
        match self {
            Self::Compare(column, op, value) => format!("{} {op} {}", name(column), literal(column, value)),
            Self::In(column, values, false) => format!("{} IN ({})", name(column), list(column, values)),
            Self::In(column, values, true) => format!("{} NOT IN ({})", name(column), list(column, values)),
            Self::Between(column, low, high) => {
                format!("{} BETWEEN {} AND {}", name(column), literal(column, low), literal(column, high))
            }
            Self::Null(column, true) => format!("{} IS NULL", name(column)),
            Self::Null(column, false) => format!("{} IS NOT NULL", name(column)),
            Self::Prefix(column, text) => format!("{} LIKE '{}%'", name(column), text.replace('\'', "''")),
            Self::And(parts) => joined(parts, " AND "),
            Self::Or(parts) => joined(parts, " OR "),
            Self::Not(inner) => format!("NOT ({})", inner.sql(table)),
        }
    }

    pub(super) fn holds(&self, row: &[Value]) -> bool {
        self.truth(row) == Some(true)
    }

    fn truth(&self, row: &[Value]) -> Option<bool> {
        let known = |column: &usize| Some(&row[*column]).filter(|value| **value != Value::Null);
        match self {
            Self::Compare(column, op, value) => {
                let order = known(column)?.compare(value);
                Some(match *op {
                    "=" => order.is_eq(),
                    "<>" => order.is_ne(),
                    "<" => order.is_lt(),
                    "<=" => order.is_le(),
                    ">" => order.is_gt(),
                    _ => order.is_ge(),
                })
            }
            Self::In(column, values, not) => {
                let value = known(column)?;
                Some(values.iter().any(|other| value.same(other)) != *not)
            }
            Self::Between(column, low, high) => {
                let value = known(column)?;
                Some(value.compare(low).is_ge() && value.compare(high).is_le())
            }
            Self::Null(column, null) => Some(known(column).is_none() == *null),
            Self::Prefix(column, prefix) => match known(column)? {
                Value::Text(text) => Some(text.starts_with(prefix.as_str())),
                _ => None,
            },
            Self::And(parts) => combine(parts, row, false),
            Self::Or(parts) => combine(parts, row, true),
            Self::Not(inner) => inner.truth(row).map(|truth| !truth),
        }
    }
}

/// The truth of several conditions, of which one that is `decides` decides.
fn combine(parts: &[Predicate], row: &[Value], decides: bool) -> Option<bool> {
    let truths: Vec<Option<bool>> = parts.iter().map(|part| part.truth(row)).collect();
    match truths.contains(&Some(decides)) {
        true => Some(decides),
        false if truths.contains(&None) => None,
        false => Some(!decides),
    }
}

impl Table {
    /// Some columns of the key or of an index, from the first.
    fn bound(&self, random: &mut Random) -> Option<Vec<usize>> {
        let of = random.below(self.indexes.len() + 1);
        let columns = self.indexes.get(of).map_or(&self.key, |index| &index.columns);
        let count = random.below(columns.len().max(1)) + 1;
        Some(columns[..count.min(columns.len())].to_vec()).filter(|columns| !columns.is_empty())
    }
}
