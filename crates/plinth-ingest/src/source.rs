//! Inputs to a source of batches: what is named, of which format it is, which reader takes it, and imports that begin again.

pub mod inputs;
mod open;
mod partitions;
mod restart;

pub use open::{open, open_with};
pub use restart::{Attempt, import};
