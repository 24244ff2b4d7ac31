//! Foreign files to record batches, and record batches to foreign files.
//!
//! [`open`] reads what a user names (files, directories, globs, standard input) as one stream of batches in a fixed order:
//! columns united by name, decoded ahead by a few threads. Parquet keeps text as dictionary arrays where the file stores
//! dictionaries; CSV and JSON are read strictly, by an inferred or a given schema, and lose nothing silently. JSON may be
//! lines, values one after the other, an array, or arrays within a document of any size.
//! [`import`] begins again where a row does not fit the schema that was inferred from a sample.
//! [`export`] writes batches to the same formats.
//!
//! Modules import downwards only:
//!
//! ```text
//! source  export              open: which files, which format, which reader; import: again after a surprise
//! csv  json  parquet          chunks of records to columns; none knows another
//! stream                      inputs, buffers, chunks, threads that decode ahead, batches, bad records
//! values                      one value at a time: numbers, times, scalars, types that are inferred
//! bits                        what 64 bytes at a time mean
//! options  batch_source       what callers say, and what they get
//! error  format
//! ```

mod batch_source;
mod bits;
mod csv;
mod error;
pub mod export;
mod format;
mod json;
mod options;
mod parquet;
mod source;
mod stream;
mod values;

pub use batch_source::{BatchSource, Position, Totals};
#[doc(hidden)]
pub use bits::Level;
pub use error::{BadRecord, IngestError, Result};
pub use format::{Compression, FileFormat};
pub use options::{
    CsvOptions, JsonOptions, Mark, Meant, Misfits, ParquetOptions, Rejects, Sample, SourceOptions, Unknown, Whole,
};
pub use parquet::{
    ParquetSource, as_meant, as_stored, check_names, check_places, check_types, checked_pages, has_arrow_schema,
    value_schema,
};
pub use source::{Attempt, Listing, import, inputs, open, open_listing, open_with};
