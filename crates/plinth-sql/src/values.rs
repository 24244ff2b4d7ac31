//! Values that are given to the parameters of statements.

use std::collections::BTreeMap;

use datafusion::common::ScalarValue;

/// By the names of parameters, without the `$`.
pub(crate) type Values = BTreeMap<String, Given>;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Given {
    /// What a user typed, which becomes what its place asks for.
    Text(String),
    /// A value of a program, which has its type.
    Value(ScalarValue),
}
