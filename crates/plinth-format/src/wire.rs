//! Metadata bytes: `plinth_core::wire`, written by one builder.

pub(crate) use plinth_core::wire::{Reader as WireReader, checksum};
use plinth_core::wire::{put_bytes, put_signed_128, put_varint_128};

use crate::error::{FormatError, Result};

/// Writes metadata.
#[derive(Debug, Default)]
pub(crate) struct WireWriter {
    bytes: Vec<u8>,
}

impl WireWriter {
    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// What others write.
    pub(crate) fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn varint(&mut self, value: impl Into<u128>) {
        put_varint_128(&mut self.bytes, value.into());
    }

    /// A length or count.
    pub(crate) fn len(&mut self, value: usize) {
        self.varint(value as u64);
    }

    pub(crate) fn signed(&mut self, value: i128) {
        put_signed_128(&mut self.bytes, value);
    }

    pub(crate) fn bytes(&mut self, value: &[u8]) {
        put_bytes(&mut self.bytes, value);
    }
}

/// Checks bytes read from storage.
pub(crate) fn verify(file: &str, place: &dyn std::fmt::Display, bytes: &[u8], expected: u64) -> Result<()> {
    if checksum(bytes) == expected {
        return Ok(());
    }
    let what = format!("{place}: the checksum does not match: the file is damaged; restore it from where it came");
    Err(FormatError::Corrupt { file: file.to_owned(), what })
}
