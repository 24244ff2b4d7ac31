//! What users of the crate may rely on.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "tests")]

mod append;
mod data;
mod store;
