//! Tables that can be written to ([`plinth_rowstore`]), for the engine.
//!
//! [`Stores`] has the tables that a session has open, and what the statement or the transaction that runs sees of each: one
//! version, however often it is named. [`StoreTable`] reads that: the ordinary scan of the segments' files, without the rows
//! that are deleted, beside the rows in memory; or, where a query asks for keys, just the rows that have them ([`point`]).

mod point;
mod stores;
mod table;

pub use stores::{OpenTables, Stores, Writing};
pub use table::StoreTable;
