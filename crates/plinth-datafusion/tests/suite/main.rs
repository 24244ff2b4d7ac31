//! What users of the crate may rely on.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "tests")]

mod copy;
mod data;
mod evolution;
mod folders;
mod foreign;
mod functions;
mod io;
mod model;
mod parquet;
mod paths;
mod plans;
mod queries;
mod ranges;
mod statistics;
mod stores;
mod translation;
