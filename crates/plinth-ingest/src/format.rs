//! What a file's name or first bytes say about it.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// A kind of file that rows can be read from and written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileFormat {
    /// Parquet.
    Parquet,
    /// Text with commas (or another delimiter) between fields, RFC 4180.
    Csv,
    /// The same with tabs.
    Tsv,
    /// JSON: written as one object a line, read in whichever way rows are arranged.
    Ndjson,
}

impl FileFormat {
    /// The format that a file's name says, compressed or not.
    pub fn of_path(path: &Path) -> Option<Self> {
        of_name(path).0
    }

    /// All of them.
    pub const ALL: [Self; 4] = [Self::Parquet, Self::Csv, Self::Tsv, Self::Ndjson];

    /// The extensions of such files, without the dot; the first is the usual one.
    pub fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Parquet => &["parquet", "parq", "pq"],
            Self::Csv => &["csv"],
            Self::Tsv => &["tsv"],
            Self::Ndjson => &["ndjson", "jsonl", "json"],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Ndjson => "ndjson",
        }
    }
}

impl fmt::Display for FileFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FileFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = |format: &Self| format.extensions().iter().any(|e| e.eq_ignore_ascii_case(text));
        Self::ALL.into_iter().find(known).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("unknown format {text:?}; known: {names}")
        })
    }
}

/// How a text file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compression {
    /// gzip, of any number of members.
    Gzip,
    /// Zstandard, of any number of frames.
    Zstd,
    /// The LZ4 frame format, of any number of frames.
    Lz4,
    /// bzip2, of any number of streams.
    Bzip2,
}

impl Compression {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Gzip, Self::Zstd, Self::Lz4, Self::Bzip2];

    /// The extension that says so, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Gzip => "gz",
            Self::Zstd => "zst",
            Self::Lz4 => "lz4",
            Self::Bzip2 => "bz2",
        }
    }

    /// What the first bytes of a stream say.
    pub(crate) fn of_magic(head: &[u8]) -> Option<Self> {
        match head {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            [0x04, 0x22, 0x4d, 0x18, ..] => Some(Self::Lz4),
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, ..] => Some(Self::Bzip2),
            _ => None,
        }
    }
}

/// The format and the compression that a name's extensions stand for.
pub(crate) fn of_name(path: &Path) -> (Option<FileFormat>, Option<Compression>) {
    let is = |extension: Option<&OsStr>, known: &str| extension.is_some_and(|e| e.eq_ignore_ascii_case(known));
    let compression = Compression::ALL.into_iter().find(|c| is(path.extension(), c.extension()));
    let stem = path.file_stem().map(Path::new);
    let inner = if compression.is_some() { stem.and_then(Path::extension) } else { path.extension() };
    (FileFormat::ALL.into_iter().find(|f| f.extensions().iter().any(|known| is(inner, known))), compression)
}

/// What a file is by its first bytes, where it is none that rows are imported from, and what to do about it.
pub(crate) fn other_format(head: &[u8]) -> Option<&'static str> {
    const KNOWN: [(&[u8], &str); 7] = [
        (b"PLINTH\r\n", "is a Plinth file, which needs no import: name the file itself, ending in .plinth"),
        (b"\xff\xff\xff\xff", "is a stream of Arrow's; write it as Parquet first"),
        (b"ARROW1", "is a file of Arrow's; write it as Parquet first"),
        (b"ORC", "is an ORC file; write it as Parquet first"),
        (b"SQLite format 3\0", "is a database of SQLite; write its tables as CSV first"),
        (b"PK\x03\x04", "is a zip archive, or a spreadsheet; write its sheets as CSV first, or unpack it"),
        (b"%PDF-", "is a PDF; its tables have to be CSV first"),
    ];
    // Text may begin with these letters.
    let text = |magic: &[u8]| magic == b"ORC" && !head.contains(&0);
    KNOWN.iter().find(|(magic, _)| head.starts_with(magic) && !text(magic)).map(|(_, what)| *what)
}

/// The extensions that can be imported, for messages.
pub(crate) fn known() -> String {
    let formats = FileFormat::ALL.iter().flat_map(|f| f.extensions()).map(|e| format!(".{e}"));
    let compressions = Compression::ALL.map(|c| format!(".{}", c.extension())).join(", ");
    format!("{} (text also with {compressions})", formats.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests;
