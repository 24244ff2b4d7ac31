//! Own operators in the engine's plans: they take codes and narrow integers where the engine takes values.
//!
//! The rule [`NativeOperators`] replaces a pair of the engine's aggregates (partial and final) whose keys and functions it knows, whole or not
//! at all; all around it sees an ordinary operator with the same schema. Its input is read as chunks if it is a scan of Plinth files,
//! else as batches. A hash join whose keys are integers becomes one table for all
//! threads. The rule [`NativeSorts`] replaces a sort with a limit over such a scan,
//! [`ExternalSorts`] does the work of all others. The rule [`CoveredBlocks`] has aggregates without keys take what a filter leaves whole from metadata.

mod aggregate;
mod condition;
mod covered;
mod determined;
mod engine;
mod fallback;
mod fetch;
mod first;
mod input;
mod join;
mod leaf;
mod metadata;
mod ordered;
mod pieces;
mod plan;
mod reason;
mod rule;
mod run;
mod sort;
mod top;

pub use covered::CoveredBlocks;
pub use join::gives_way;
pub(crate) use reason::left_to_the_engine;
pub use rule::{NativeOperators, NativeSorts};
pub use sort::ExternalSorts;
