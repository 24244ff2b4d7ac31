//! Inputs to a source of batches: what is named, of which format it is, which reader takes it, and imports that begin again.

pub mod inputs;
mod listing;
mod open;
mod partitions;
mod restart;

pub use listing::Listing;
pub use open::{open, open_listing, open_with};
pub use restart::{Attempt, import};
