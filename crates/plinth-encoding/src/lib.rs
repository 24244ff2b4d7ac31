//! Values to and from bytes, predicates on encoded data, and the dictionary.

pub mod column;
pub mod dictionary;
pub mod error;
pub mod expr;
pub mod test;

pub use column::{Column, Mask, Physical, Values};
pub use error::{EncodingError, Result};
pub use test::{Bounds, IntSet, Test, Verdict};
