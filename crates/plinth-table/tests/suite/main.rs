//! What users of the crate may rely on.

#![allow(clippy::unwrap_used, clippy::panic, clippy::cast_possible_truncation, missing_docs, reason = "tests")]

mod append;
mod data;
mod folder_attack;
