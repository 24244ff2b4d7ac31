//! A random table and what its rows may be.

use super::model::Rows;
use super::value::{KINDS, Kind, Random, Value, order_all};

/// An index, or a constraint that is one.
pub(super) struct Unique {
    pub(super) name: String,
    pub(super) columns: Vec<usize>,
    pub(super) unique: bool,
}

/// A table: its columns and whether they may be NULL.
pub(super) struct Table {
    pub(super) columns: Vec<(Kind, bool)>,
    pub(super) key: Vec<usize>,
    pub(super) indexes: Vec<Unique>,
}

impl Unique {
    /// Whether rows may be there together. Those with a NULL may.
    pub(super) fn allows(&self, rows: &Rows) -> bool {
        !self.unique || are_different(rows, &self.columns)
    }
}

fn are_different(rows: &Rows, columns: &[usize]) -> bool {
    let keys = rows.0.iter().map(|row| columns.iter().map(|i| row[*i].clone()).collect::<Vec<_>>());
    let mut keys: Vec<Vec<Value>> = keys.filter(|key| !key.contains(&Value::Null)).collect();
    keys.sort_by(|a, b| order_all(a, b));
    keys.array_windows().all(|[a, b]| a != b)
}

impl Table {
    pub(super) fn random(random: &mut Random) -> Self {
        let count = random.below(5) + 2;
        let columns = (0..count).map(|_| (KINDS[random.below(KINDS.len())], random.below(4) > 0)).collect();
        let mut table = Self { columns, key: Vec::new(), indexes: Vec::new() };
        if random.below(4) > 0
            && let Some(key) = table.some_columns(random)
        {
            for column in &key {
                table.columns[*column].1 = false;
            }
            table.key = key;
        }
        if random.below(3) == 0
            && let Some(columns) = table.some_columns(random)
            && columns != table.key
        {
            let names: Vec<String> = columns.iter().map(|i| table.name(*i)).collect();
            table.indexes.push(Unique { name: format!("t_{}_key", names.join("_")), columns, unique: true });
        }
        table
    }

    /// One to three columns that can be indexed, in any order.
    pub(super) fn some_columns(&self, random: &mut Random) -> Option<Vec<usize>> {
        let mut able: Vec<usize> = (0..self.columns.len()).filter(|i| self.columns[*i].0.is_indexed()).collect();
        let mut columns = Vec::new();
        for _ in 0..=random.below(3) {
            if able.is_empty() {
                break;
            }
            columns.push(able.swap_remove(random.below(able.len())));
        }
        (!columns.is_empty()).then_some(columns)
    }

    pub(super) fn name(&self, column: usize) -> String {
        format!("c{column}")
    }

    pub(super) fn create(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        for (i, (kind, nullable)) in self.columns.iter().enumerate() {
            parts.push(format!("{} {}{}", self.name(i), kind.sql(), if *nullable { "" } else { " NOT NULL" }));
        }
        let names = |columns: &[usize]| columns.iter().map(|i| self.name(*i)).collect::<Vec<_>>().join(", ");
        if !self.key.is_empty() {
            parts.push(format!("PRIMARY KEY ({})", names(&self.key)));
        }
        parts.extend(self.indexes.iter().map(|index| format!("UNIQUE ({})", names(&index.columns))));
        format!("CREATE TABLE t ({})", parts.join(", "))
    }

    /// A row that may lack what it must have, rarely.
    pub(super) fn row(&self, random: &mut Random) -> Vec<Value> {
        let careless = random.below(60) == 0;
        let value = |(kind, nullable): &(Kind, bool)| match *nullable || careless {
            true => kind.value(random),
            false => kind.value_there(random),
        };
        self.columns.iter().map(value).collect()
    }

    pub(super) fn key_of(&self, row: &[Value]) -> Vec<Value> {
        self.key.iter().map(|i| row[*i].clone()).collect()
    }

    /// Whether a row has no value where it must have one.
    pub(super) fn lacks(&self, row: &[Value]) -> bool {
        row.iter().zip(&self.columns).any(|(value, (_, nullable))| *value == Value::Null && !nullable)
    }

    /// Whether rows may be the table's.
    pub(super) fn allows(&self, rows: &Rows) -> bool {
        !rows.0.iter().any(|row| self.lacks(row))
            && (self.key.is_empty() || are_different(rows, &self.key))
            && self.indexes.iter().all(|index| index.allows(rows))
    }
}
