//! What holds of every way to read.
#![allow(clippy::unwrap_used, clippy::panic, clippy::single_range_in_vec_init, missing_docs, reason = "tests")]

mod engine;
mod faults;
