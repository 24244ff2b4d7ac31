//! Plinth as a driver of ADBC, the database interface of Arrow (<https://arrow.apache.org/adbc/>, revision 1.1.0), and Arrow's C data
//! interface.
//!
//! A program loads the shared library that this crate is part of (the module of the Python package, or one of its own: `cargo rustc
//! --release --package plinth-adbc --crate-type cdylib`) and calls [`AdbcDriverInit`], which fills in the functions of `entry`.

mod abi;
mod bound;
pub mod c_data;
mod connection;
mod database;
mod entry;
mod error;
mod guard;
mod info;
mod ingest;
mod objects;
mod options;
mod places;
mod run;
mod shared;
mod statement;
mod tables;

pub use abi::{AdbcDriver, AdbcError};
pub use bound::{nulls, params_of};
pub use connection::{changes, is_query};
pub use entry::{AdbcDriverInit, PlinthDriverInit};
pub use places::{number_places, visit};
pub use shared::tables_of;
pub use tables::{changed, creation, insertion, missing_column, quoted};
