//! The promises of the file: what goes in comes out, damage is noticed, the same rows give the same bytes.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss
)]

mod conformance;
mod corruption;
mod counting;
mod data;
mod determinism;
mod faults;
mod forge;
mod format;
mod fuzz_lite;
mod hostile;
mod io;
mod lookup;
mod metadata;
mod narrow;
mod promise;
mod pushdown;
mod round_trip;
mod scans;
mod sort;
mod totals;
