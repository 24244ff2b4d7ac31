//! What holds of every way to read.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "tests")]

mod engine;
