//! Text to values, one at a time and strictly: a value that its type does not hold exactly as it is spelled is refused. And the
//! types that are inferred from what was seen of a text.

pub(crate) mod decimal;
pub(crate) mod digits;
pub(crate) mod infer;
pub(crate) mod json_string;
pub(crate) mod number;
pub(crate) mod scalar;
pub(crate) mod time;
pub(crate) mod types;
