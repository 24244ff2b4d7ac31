//! What is wrong with a record, and where it is.

use std::borrow::Cow;

/// What is wrong with a record.
#[derive(Debug)]
pub(crate) struct Fault {
    /// The column, innermost name last.
    pub(crate) column: Vec<String>,
    pub(crate) why: Cow<'static, str>,
    /// Whether the record is sound as such but not of the types that are expected.
    pub(crate) misfit: bool,
}

/// A record's place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) line: u64,
    pub(crate) offset: u64,
    /// It, or the beginning of it.
    pub(crate) raw: &'a [u8],
    pub(crate) len: u64,
}
