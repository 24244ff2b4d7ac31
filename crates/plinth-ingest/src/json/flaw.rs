//! What is wrong with JSON.

/// Why values that are nested beyond the limit are refused.
pub(super) const TOO_DEEP: &str = "nested too deep";

/// What is wrong with a text, and at which byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flaw {
    pub(crate) at: usize,
    pub(crate) what: &'static str,
}
