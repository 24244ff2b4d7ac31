//! What users of the crate may rely on.

#![allow(clippy::unwrap_used, clippy::panic, clippy::cast_possible_truncation, missing_docs, reason = "tests")]

mod append;
#[path = "../../../plinth-format/tests/suite/counting.rs"]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "that suite's")]
mod counting;
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
mod store;
