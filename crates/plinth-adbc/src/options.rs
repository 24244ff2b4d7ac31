//! Options of databases, connections and statements.

use crate::error::{Failure, Result};

/// The value of an option.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Bytes(Vec<u8>),
    Int(i64),
    Double(f64),
}

impl Value {
    /// The value as a text.
    pub(crate) fn text(&self, key: &str) -> Result<String> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::Int(number) => Ok(number.to_string()),
            Self::Double(number) => Ok(number.to_string()),
            Self::Bytes(bytes) => String::from_utf8(bytes.clone())
                .map_err(|_| Failure::argument(format!("{key}: the bytes are no UTF-8; give a text"))),
        }
    }

    /// The value as a switch: `true` or `false`.
    pub(crate) fn switch(&self, key: &str) -> Result<bool> {
        match self.text(key)?.as_str() {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            other => Err(Failure::argument(format!("{key} is {other:?}; give true or false"))),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::from(if truth { "true" } else { "false" })
    }
}

/// What has options.
pub(crate) trait Options {
    /// Sets one.
    fn set(&self, key: &str, value: &Value) -> Result<()>;

    /// The value of one.
    fn get(&self, key: &str) -> Result<Value>;
}

/// An option that can't be set.
pub(crate) fn unknown(of: &str, key: &str, known: &[&str]) -> Failure {
    Failure::not_implemented(format!("{key}: no such option of a {of}; there are {}", known.join(", ")))
}

/// An option that has no value.
pub(crate) fn missing(of: &str, key: &str) -> Failure {
    Failure::not_found(format!("{key}: the {of} has no such option, or it has no value"))
}
