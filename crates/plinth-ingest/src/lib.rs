//! Foreign files to record batches.
//!
//! [`inputs::expand`] turns what a user names (files, directories, globs) into a list of files; [`ParquetSource`] reads
//! that list as one stream of batches in a fixed order: columns united by name, row groups decoded ahead by a few threads,
//! text as dictionary arrays where the file stores dictionaries.

mod ahead;
mod error;
pub mod inputs;
mod parquet;
mod schema;
mod source;

pub use error::{IngestError, Result};
pub use parquet::{ParquetOptions, ParquetSource};
pub use source::{BatchSource, Position, Totals};
