//! Values to and from bytes, predicates on encoded data, and the dictionary.

pub mod bitpack;
mod bits;
pub mod block;
pub mod column;
pub mod dictionary;
pub mod error;
mod evaluate;
pub mod expr;
mod floats;
mod ints;
pub mod postings;
mod strings;
pub mod test;
mod wire;

pub use block::{Block, Effort, EncodeOptions, Encoded, Encoding, encode, encode_like};
pub use column::{Column, Mask, Memory, Physical, Values};
pub use error::{EncodingError, Result};
pub use evaluate::{bounds, evaluate_column};
pub use test::{Bounds, IntSet, Test, Verdict};
