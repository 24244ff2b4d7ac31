//! The bytes that mean something in CSV.

/// What separates, encloses and ends fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) delimiter: u8,
    pub(crate) quote: Option<u8>,
    /// What takes the meaning from a quote, or from itself, within quotes.
    pub(crate) escape: Option<u8>,
    /// The last byte of a line end.
    pub(crate) line_end: u8,
}
