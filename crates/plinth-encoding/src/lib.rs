//! Values to and from bytes, predicates on encoded data, and the dictionary.

mod answers;
pub mod bitpack;
mod bits;
pub mod block;
pub mod column;
pub mod dictionary;
mod encoding;
pub mod error;
mod evaluate;
pub mod expr;
mod floats;
mod frame;
mod ints;
pub mod key_set;
mod physical;
pub mod postings;
mod recipe;
pub mod sketch;
mod strings;
pub mod summary;
pub mod text;
pub mod value_set;
mod views;
mod wire;
pub mod zone_map;

pub use answers::{DictionaryAnswers, Mask};
pub use block::{Block, EncodeOptions, Encoded, encode, encode_like};
pub use column::{Column, Memory, Values};
pub use encoding::{DISTINCT, Effort, Encoding};
pub use error::{EncodingError, Result};
pub use evaluate::{bounds, evaluate_column};
pub use physical::Physical;
pub use recipe::Recipe;
pub use value_set::{IntSet, Needle, ValueSet};
pub use zone_map::{Bounds, ZoneMapResult};
