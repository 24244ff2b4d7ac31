//! Workers within the test, asked by sessions whose answers must be those of one process.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod answers;
mod data;
mod harness;
mod promises;
mod security;
