//! Properties of the mechanisms that all crates share.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, missing_docs)]

mod key;
mod sort;
mod wire;
