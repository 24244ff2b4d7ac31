//! How the memory an import may use is divided.

use plinth_format::WriterOptions;

/// Least memory that is any use.
pub(super) const LEAST: u64 = 64 << 20;

/// The shares of an import's memory, in bytes.
///
/// While rows come in, the writer holds a row group, as much again while it encodes it, and dictionaries with room to
/// grow; the reader holds rows ahead. At the end it holds the dictionaries twice, in the order they came and sorted. A sort
/// gathers rows before the writer has any, and merges them while it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shares {
    /// Rows that wait for the writer.
    pub(super) ahead: u64,
    /// Rows that a sort gathers.
    pub(super) gather: u64,
    /// Rows that a sort merges.
    pub(super) merge: u64,
    row_group: u64,
    dictionary: u64,
    dictionaries: u64,
}

impl Shares {
    /// Divides so many bytes.
    pub(super) fn of(memory: u64) -> Self {
        let memory = memory.max(LEAST);
        let writer = WriterOptions::default();
        let size = |bytes: usize| bytes as u64;
        Self {
            ahead: (memory / 8).min(1 << 30),
            gather: memory / 2,
            merge: (memory / 8).min(1 << 30),
            // What changes the bytes of a file is the same wherever there is enough for it: from 1 GiB on.
            row_group: writer.row_group_bytes.min(memory / 8),
            dictionary: size(writer.dictionary_bytes).min(memory / 16),
            dictionaries: size(writer.dictionary_total_bytes).min(memory / 8 * 3),
        }
    }

    /// A writer's part.
    pub(super) fn apply(&self, options: WriterOptions) -> WriterOptions {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        WriterOptions {
            row_group_bytes: self.row_group,
            dictionary_bytes: size(self.dictionary),
            dictionary_total_bytes: size(self.dictionaries),
            ..options
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_a_gigabyte_on_memory_does_not_change_files() {
        let options = |memory| Shares::of(memory).apply(WriterOptions::default());
        let default = WriterOptions::default();
        for memory in [1 << 30, 3 << 30, 1 << 40] {
            let options = options(memory);
            assert_eq!(options.row_group_bytes, default.row_group_bytes);
            assert_eq!(options.dictionary_bytes, default.dictionary_bytes);
            assert_eq!(options.dictionary_total_bytes, default.dictionary_total_bytes);
        }
        assert!(options(256 << 20).dictionary_total_bytes < default.dictionary_total_bytes);
    }

    #[test]
    fn the_shares_fit_together() {
        for memory in [LEAST, 512 << 20, 1 << 30, 64 << 30] {
            let shares = Shares::of(memory);
            assert!(2 * shares.row_group + shares.dictionaries * 5 / 4 + shares.merge.max(shares.ahead) <= memory);
            assert!(2 * shares.dictionaries <= memory && shares.gather + 2 * shares.ahead <= memory);
        }
    }
}
