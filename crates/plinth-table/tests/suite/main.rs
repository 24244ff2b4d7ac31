//! What users of the crate may rely on.

#![allow(clippy::unwrap_used, clippy::panic, clippy::cast_possible_truncation, missing_docs, reason = "tests")]

mod append;
mod data;
mod folder_attack;
#[path = "../../../plinth-format/tests/suite/forge.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "that suite's"
)]
mod forge;
