//! The end of the file: the footer with schema, row groups and the directory of streams, and the tail that finds it.

use plinth_encoding::{DISTINCT, EncodingError};

use plinth_core::wire::WireError;

use crate::error::{FormatError, Result};
use crate::meta::{BLOCK_ENTRY, Section};
use crate::types::Tree;
use crate::wire::{WireReader, WireWriter, checksum};

/// The first eight bytes of every file.
pub(crate) const HEADER_MAGIC: [u8; 8] = *b"PLINTH\r\n";

/// The last eight bytes of every file.
pub(crate) const TAIL_MAGIC: [u8; 8] = *b"\nplinth\0";

/// Files of this version are read for ever; those of version 0, which changed from one release to the next, are not.
pub(crate) const VERSION: u32 = 1;

/// The features of the format that a file may need its reader to know, one bit each. What a reader may do without takes no bit,
/// for it stands where readers leave alone what they do not know.
pub(crate) const FEATURES: u32 = TOKENS | DISTINCT;

/// Dictionaries in tokens.
pub(crate) const TOKENS: u32 = 1;

/// Bytes before the first block.
pub(crate) const HEADER_LEN: u64 = 64;

/// Bytes of the tail: footer offset (8), footer length (4), footer checksum (8), file length (8), version (4),
/// features (4), checksum of these (8), magic (8).
pub(crate) const TAIL_LEN: usize = 52;

/// Most rows of a block.
pub(crate) const MOST_BLOCK_ROWS: u32 = 1 << 16;

/// Bytes of a stream's entry in the directory: offset (8), length (4), checksum (8).
const DIRECTORY_ENTRY: usize = 20;

/// What the footer holds.
#[derive(Clone, Debug)]
pub(crate) struct Footer {
    pub(crate) tree: Tree,
    pub(crate) block_rows: u32,
    /// Rows of each row group.
    pub(crate) row_groups: Vec<u64>,
    /// The metadata section of each stream.
    pub(crate) streams: Vec<Section>,
}

impl Footer {
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = WireWriter::default();
        self.tree.write(&mut out);
        out.u32(self.block_rows);
        out.len(self.row_groups.len());
        self.row_groups.iter().for_each(|&rows| out.varint(rows));
        for section in &self.streams {
            out.u64(section.offset);
            out.u32(section.len);
            out.u64(section.checksum);
        }
        out.finish()
    }

    pub(crate) fn read(bytes: &[u8], file_len: u64) -> plinth_encoding::Result<Self> {
        let wire = &mut WireReader::new(bytes);
        let tree = Tree::read(wire)?;
        let block_rows = wire.u32()?;
        if block_rows == 0 || block_rows > MOST_BLOCK_ROWS {
            return Err(EncodingError::corrupt(format!("blocks of {block_rows} rows")));
        }
        let row_groups = (0..wire.count(1)?).map(|_| wire.varint()).collect::<Result<Vec<_>, WireError>>()?;
        if row_groups
            .iter()
            .try_fold(0u64, |sum, &rows| sum.checked_add(rows))
            .is_none_or(|sum| i64::try_from(sum).is_err())
        {
            return Err(EncodingError::corrupt("more rows than can be counted"));
        }
        if tree.streams().checked_mul(DIRECTORY_ENTRY) != Some(wire.left()) {
            return Err(EncodingError::corrupt("the directory of streams has the wrong size"));
        }
        let streams = (0..tree.streams())
            .map(|_| {
                let section = Section { offset: wire.u64()?, len: wire.u32()?, checksum: wire.u64()? };
                if section.offset.checked_add(u64::from(section.len)).is_none_or(|end| end > file_len) {
                    return Err(EncodingError::corrupt("a stream's metadata lies beyond the end of the file"));
                }
                Ok(section)
            })
            .collect::<plinth_encoding::Result<Vec<_>>>()?;
        wire.finish()?;
        // Every block has an entry in its stream's metadata: rows that no bytes stand for would make a scan count without end.
        let blocks = row_groups.iter().fold(0, |sum: u64, rows| sum.saturating_add(rows.div_ceil(block_rows.into())));
        let room = streams.iter().map(|section| u64::from(section.len) / BLOCK_ENTRY).min().unwrap_or(0);
        if blocks > room {
            return Err(EncodingError::corrupt("more rows than the columns have blocks for"));
        }
        Ok(Self { tree, block_rows, row_groups, streams })
    }
}

/// The tail of a file whose footer was written at `footer`, and which needs these features.
pub(crate) fn write_tail(footer: &Section, features: u32) -> Vec<u8> {
    let mut out = WireWriter::default();
    out.u64(footer.offset);
    out.u32(footer.len);
    out.u64(footer.checksum);
    out.u64(footer.offset + u64::from(footer.len) + TAIL_LEN as u64);
    out.u32(VERSION);
    out.u32(features);
    let mut bytes = out.finish();
    bytes.extend_from_slice(&checksum(&bytes).to_le_bytes());
    bytes.extend_from_slice(&TAIL_MAGIC);
    bytes
}

/// Finds the footer, and what features the file says it needs, from the last bytes of a file.
pub(crate) fn read_tail(file: &str, tail: &[u8], file_len: u64) -> Result<(Section, u32)> {
    let corrupt = |what: &str| FormatError::Corrupt { file: file.to_owned(), what: what.to_owned() };
    if tail.len() != TAIL_LEN || !tail.ends_with(&TAIL_MAGIC) {
        return Err(corrupt("not a Plinth file, or one that was cut short (its last bytes are not a Plinth tail)"));
    }
    let wire = &mut WireReader::new(tail);
    let fields = (|| {
        let footer = Section { offset: wire.u64()?, len: wire.u32()?, checksum: wire.u64()? };
        Ok::<_, EncodingError>((footer, wire.u64()?, wire.u32()?, wire.u32()?, wire.u64()?))
    })();
    let (footer, written_len, version, features, sum) = fields.map_err(|e| FormatError::at(file, "tail", e))?;
    if checksum(&tail[..TAIL_LEN - 16]) != sum {
        return Err(corrupt("the tail's checksum does not match: the file is damaged; restore it from where it came"));
    }
    if version > VERSION {
        let what =
            format!("written by a newer Plinth (format version {version}, this one reads {VERSION}); update Plinth");
        return Err(FormatError::Version { file: file.to_owned(), what });
    }
    if version < VERSION {
        let what = "written by a Plinth from before version 1 of the format, which has changed since; import the data again, or \
                    export it to Parquet with the Plinth that wrote it, and import that";
        return Err(FormatError::Version { file: file.to_owned(), what: what.to_owned() });
    }
    let unknown: Vec<String> =
        (0..u32::BITS).filter(|bit| (features & !FEATURES) >> bit & 1 == 1).map(|bit| bit.to_string()).collect();
    if !unknown.is_empty() {
        let what = format!(
            "needs features of the format that this Plinth does not know ({}); update Plinth",
            unknown.join(", ")
        );
        return Err(FormatError::Version { file: file.to_owned(), what });
    }
    let end = footer.offset.checked_add(u64::from(footer.len)).and_then(|end| end.checked_add(TAIL_LEN as u64));
    if written_len != file_len || end != Some(file_len) {
        return Err(corrupt(&format!("the file has {file_len} bytes, but was written with {written_len}")));
    }
    Ok((footer, features))
}
