//! Own operators in the engine's plans: they take codes and narrow integers where the engine takes values.
//!
//! The rule [`NativeOperators`] replaces a pair of the engine's aggregates (partial and final) whose keys and functions it knows, whole or not
//! at all; all around it sees an ordinary operator with the same schema. Its input is read as chunks if it is a scan of Plinth files,
//! else as batches.

mod aggregate;
mod engine;
mod fallback;
mod input;
mod plan;
mod reason;
mod rule;
mod run;

pub(crate) use reason::left_to_the_engine;
pub use rule::NativeOperators;
