//! The program from outside: what it prints, how it exits, what it leaves behind.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    reason = "tests"
)]

mod cli;
#[cfg(unix)]
mod cluster;
mod common;
#[cfg(unix)]
mod copies;
#[cfg(unix)]
mod docs;
mod duckdb;
mod far;
mod files;
mod foreign;
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
mod forged;
mod habits;
mod ignored;
mod lookup;
mod meaning;
#[cfg(target_os = "linux")]
mod memory;
mod messages;
mod objects;
#[cfg(target_os = "linux")]
mod paths;
#[cfg(target_os = "linux")]
mod probe;
mod profile;
mod program;
mod read;
#[cfg(unix)]
mod shell;
mod slt;
mod sql;
