//! A folder of Plinth files as one table.
//!
//! The rows of a table are those of the files of its folder, in the order of their names. A file is never changed: rows are
//! added with a further file ([`Appender`]), and many small files become a large one of the same rows ([`compact`]). The
//! columns of the files are united by name ([`SchemaUnion`]), and where their types differ, the table has the type that
//! holds the values of all ([`widen`]).
//!
//! Any number of processes may read a folder while others append to it and one compacts it.

mod append;
mod compact;
mod far;
mod folder;
mod handover;
mod journal;
mod listed;
mod lock;
mod manifest;
mod names;
mod rows;
mod scratch;
mod sealed;
mod union;
mod upload;
mod widen;

pub use append::{Appended, Appender};
pub use compact::{CompactOptions, CompactProgress, CompactSummary, compact};
pub use far::current;
pub use folder::{Snapshot, TableFile, TableFolder};
pub use handover::Handover;
pub use listed::Listed;
pub use plinth_format::{FormatError, Result};
pub use plinth_io::Identity;
pub use rows::read;
pub use union::{SchemaUnion, can_widen};
pub use upload::{CompleteObject, ObjectWriter};
pub use widen::widen;

/// How the names of Plinth files end, without the dot.
pub const EXTENSION: &str = "plinth";
