//! Values that are given to the parameters of statements.

use std::collections::BTreeMap;

use datafusion::common::ScalarValue;

/// By the names of parameters, without the `$`.
pub(crate) type Values = BTreeMap<String, Given>;

#[derive(Clone, Debug)]
pub(crate) enum Given {
    /// What a user typed, which becomes what its place asks for.
    Text(String),
    /// A value of a program, which has its type.
    Value(ScalarValue),
}

impl PartialEq for Given {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => one == other,
            // Values of points in time are equal whatever their zones.
            (Self::Value(one), Self::Value(other)) => one == other && one.data_type() == other.data_type(),
            _ => false,
        }
    }
}
