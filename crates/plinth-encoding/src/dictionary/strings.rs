//! The distinct byte strings of a column that is interned.

use crate::dictionary::chunks::Chunks;
use crate::dictionary::entry::Entry;
use crate::dictionary::slots::Slots;

/// Byte strings.
#[derive(Debug, Default)]
pub(super) struct Strings {
    pub(super) slots: Slots<Entry>,
    pub(super) long: Chunks,
    pub(super) key_bytes: usize,
}
