//! The Plinth file: writer, reader, scan.
//!
//! A file is row groups of column chunks of blocks; a block of some thousand rows is the unit of decoding, zone maps,
//! checksums and random access. FORMAT.md specifies it byte by byte.

mod access;
mod answers;
mod assemble;
mod bounds;
mod codec;
mod conformance;
mod details;
mod error;
mod file;
mod footer;
mod groups;
pub mod lookup;
mod meta;
mod report;
pub mod scan;
mod shred;
pub mod sort;
mod sorted;
mod statistics;
mod types;
mod verify;
mod wire;
mod writer;

pub use access::Access;
pub use bounds::RowGroupBound;
pub use codec::RowCodec;
pub use error::{FormatError, Result};
pub use file::{File, OpenOptions, RowGroup};
pub use report::{ColumnReport, EncodingReport, FileReport};
pub use scan::{
    AccessPath, AdaptiveStats, Chunk, CodeValues, ColumnTotal, ConjunctReport, DynamicFilter, PushdownMode, Scan,
    ScanBuilder, ScanColumn, ScanMetrics, TotalOf, Totals,
};
pub use statistics::{ColumnDetails, ColumnStatistics, Exactness};
pub use writer::{Charge, FileSummary, Writer, WriterOptions};
