//! Scans of Parquet files by the executor that scans Plinth files.
//!
//! The way of a query: [`ParquetScans`], a rule of the physical optimizer, puts a [`ParquetScan`] in the place of DataFusion's
//! `ParquetSource` before filters are pushed down (`SET plinth.parquet_scan = 'datafusion'` leaves it there). Opened, a file
//! becomes a [`columns::ParquetColumns`], the executor's view of it: row groups are cut into blocks of 8,192 rows; statistics,
//! page indexes and bloom filters rule blocks out; predicates are evaluated block by block, on a dictionary's indices where
//! pages have them; the other columns are decoded for the rows that are left. No column of a block is decoded twice.
//!
//! [`ParquetTable`] is what a path in FROM becomes: the files that an import would read, and its columns.
//!
//! Columns with one value a row are read page by page (`leaf`), with random access among the rows of the pages that are in
//! memory; lists, maps and whole structs by a reader that goes forward (`nested`), as is every column of a scan without
//! predicates. Both let the `parquet` crate decode. `decodes` counts what would be decoded a second time.

mod arrays;
mod bloom;
mod chunk_bytes;
mod columns;
mod decodes;
mod fallback;
mod file;
mod footers;
mod hybrid;
mod leaf;
mod members;
mod nested;
mod opener;
mod predicate;
mod resolved;
mod rule;
mod source;
mod table;
mod zones;

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests;

pub use rule::ParquetScans;
pub use source::ParquetScan;
pub use table::ParquetTable;

/// Rows of a block.
const BLOCK_ROWS: usize = 8192;
