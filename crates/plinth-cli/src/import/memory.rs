//! How the memory an import may use is divided.

/// Least memory that is any use.
pub(super) const LEAST: u64 = 64 << 20;

/// The shares of an import's memory, in bytes.
///
/// While rows come in, the writer works and the reader holds rows ahead. A sort gathers rows before the writer has any, and
/// merges them while it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shares {
    /// Rows that wait for the writer.
    pub(super) ahead: u64,
    /// Rows that a sort gathers.
    pub(super) gather: u64,
    /// Rows that a sort merges.
    pub(super) merge: u64,
    /// The writer's.
    pub(super) writer: u64,
}

impl Shares {
    /// Divides so many bytes.
    pub(super) fn of(memory: u64) -> Self {
        let memory = memory.max(LEAST);
        Self {
            ahead: (memory / 8).min(1 << 30),
            gather: memory / 2,
            merge: (memory / 8).min(1 << 30),
            // What changes the bytes of a file is the same wherever there is enough for it: from 1 GiB on.
            writer: memory / 4 * 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plinth_format::WriterOptions;

    #[test]
    fn from_a_gigabyte_on_memory_does_not_change_files() {
        let options = |memory| WriterOptions::default().within(Shares::of(memory).writer, 1);
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
            assert!(shares.writer + shares.merge.max(shares.ahead) <= memory);
            assert!(shares.gather + 2 * shares.ahead <= memory);
        }
    }
}
