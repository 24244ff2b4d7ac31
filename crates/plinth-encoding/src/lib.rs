//! Values to and from bytes, predicates on encoded data, and the dictionary.

pub mod column;
pub mod error;
pub mod expr;

pub use column::{Column, Mask, Physical, Values};
pub use error::{EncodingError, Result};
