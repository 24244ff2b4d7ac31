//! Plinth files inside DuckDB: an extension that DuckDB loads.
//!
//! `FROM 'hits.plinth'` and `read_plinth(...)` scan files, folders and writable tables, `COPY ... TO 'x.plinth'` writes a file. DuckDB
//! plans and executes; what is here is the reader: columns that a query asks for, filters that can be answered on encoded blocks, row
//! groups that threads take from one queue. Values reach DuckDB's vectors without a copy where the two lay them out alike
//! ([`handover`]); the C interface of DuckDB 2 ("v2") is reached through the crate `duckdb-neo`.
//!
//! The way of a query: [`function`] binds an argument to a [`table`] that [`places`] found, learns its [`filters`], and starts a [`scan`]
//! whose batches [`shape`] gives the types that DuckDB has.

mod buffers;
mod codes;
mod copy;
mod copy_from;
mod entry;
mod failure;
mod filters;
mod function;
mod handover;
mod keys;
mod like;
mod memory_file;
mod places;
mod planned;
mod replacement;
mod scan;
mod settings;
mod shape;
mod shelf;
mod table;
