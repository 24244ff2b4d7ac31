//! How foreign files are read.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use plinth_core::simd::Level;
use plinth_io::Objects;

use crate::format::FileFormat;

/// How to read foreign files.
#[derive(Clone, Debug)]
pub struct SourceOptions {
    /// The format, whatever the extensions.
    pub format: Option<FileFormat>,
    /// The columns to read, by name; values become these types exactly or not at all. Without one, the files (or a sample
    /// of them) say what there is.
    pub schema: Option<SchemaRef>,
    /// What the schema is some columns of, or was inferred as.
    pub whole: Option<Whole>,
    /// With a schema: pass over columns of the input that it lacks, which otherwise are an error.
    pub ignore_extra: bool,
    /// Whether names of folders below the inputs are columns (`year=2024`), behind those of the files: texts, or of the types that the
    /// schema gives them. Options of a library read files alone.
    pub hive: bool,
    /// What to infer the schema of text from.
    pub sample: Sample,
    /// Threads that decode ahead of the consumer (at least one is used).
    pub threads: usize,
    /// Bytes of decoded batches that may wait for the consumer.
    pub ahead_bytes: usize,
    /// Read binary columns of Parquet as text; a value that is not UTF-8 is an error.
    pub binary_as_text: bool,
    /// How CSV and TSV are written.
    pub csv: CsvOptions,
    /// How JSON is arranged.
    pub json: JsonOptions,
    /// What becomes of records that can't be read.
    pub rejects: Rejects,
    /// What becomes of values that the type that was given does not hold.
    pub misfits: Misfits,
    /// The most bytes a record of text may have.
    pub record_bytes: usize,
    /// Where standard input is kept if it has to be read twice.
    pub spill: PathBuf,
    /// Options that were said, by the names that messages give them, and the formats that have them. Inputs of another format are
    /// an error: nothing that was said is ignored.
    pub meant: Vec<Meant>,
    /// Files that are about to be written, beside that of rejects: none of them may be an input.
    pub written: Vec<PathBuf>,
    /// What inputs that are URLs are looked for in; without, such an input is an error.
    pub objects: Option<Arc<dyn Objects>>,
    /// Bytes of text decoded at a time; for tests.
    #[doc(hidden)]
    pub chunk_bytes: Option<usize>,
    /// How the bytes of text are looked at; for tests.
    #[doc(hidden)]
    pub level: Option<Level>,
}

impl Default for SourceOptions {
    fn default() -> Self {
        Self {
            format: None,
            schema: None,
            whole: None,
            ignore_extra: false,
            hive: false,
            sample: Sample::Rows(20_000),
            threads: 1,
            ahead_bytes: 64 << 20,
            binary_as_text: false,
            csv: CsvOptions::default(),
            json: JsonOptions::default(),
            rejects: Rejects::Error,
            misfits: Misfits::Reject,
            record_bytes: 64 << 20,
            spill: PathBuf::from("."),
            meant: Vec::new(),
            written: Vec::new(),
            objects: None,
            chunk_bytes: None,
            level: None,
        }
    }
}

/// All columns of inputs of which a schema names some. By all of them it is told how a file is written.
#[derive(Clone, Debug)]
pub struct Whole {
    /// Of the columns.
    pub names: Arc<HashSet<String>>,
    /// Whether they were inferred of the same inputs: files are told apart, and values are judged, as they were then.
    pub inferred: bool,
}

/// An option that was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meant {
    /// As it was said.
    pub option: &'static str,
    /// The formats that have it.
    pub formats: &'static [FileFormat],
}

/// What a schema is inferred from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sample {
    /// About so many rows, the first of each file. A later row that does not fit is [`IngestError::Surprise`](crate::IngestError::Surprise).
    Rows(u64),
    /// All rows; the files are read twice.
    Everything,
}

/// How CSV and TSV are written. What is not said is told from each file's beginning.
#[derive(Clone, Debug)]
pub struct CsvOptions {
    /// What separates fields. If nothing is said: a comma for CSV and a tab for TSV, or one of comma, tab, semicolon, bar, caret,
    /// tilde and two control characters that, unlike it, makes records of equally many fields.
    pub delimiter: Option<u8>,
    /// Whether the first record names the columns; otherwise they are `column1`, `column2` and so on. If nothing is said it does,
    /// unless columns of numbers, dates or truth values begin with one, or there is but one record and not all of it is text.
    pub header: Option<bool>,
    /// What the first columns of files without a header are called.
    pub names: Vec<String>,
    /// What encloses fields. If it is told from the file: `"`, or `'` where that keeps fields together or encloses all values of a
    /// column, or nothing where more fields begin with a quote than end with one.
    pub quote: Mark,
    /// What a quote comes after within quotes, beside another quote. If it is told from the file: nothing, or a backslash where
    /// only so records have equally many fields.
    pub escape: Mark,
    /// The unquoted fields that stand for null. A field that is empty is null anyway where its type has no empty value.
    pub nulls: Vec<String>,
    /// What may stand between groups of three digits of a number.
    pub thousands: Option<u8>,
    /// What the fraction of a number comes after.
    pub decimal: u8,
}

impl Default for CsvOptions {
    fn default() -> Self {
        Self {
            delimiter: None,
            header: None,
            names: Vec::new(),
            quote: Mark::Sniffed,
            escape: Mark::Sniffed,
            nulls: vec![String::new()],
            thousands: None,
            decimal: b'.',
        }
    }
}

/// A character with a meaning in CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Told from the file.
    Sniffed,
    /// There is none.
    None,
    /// This one.
    Byte(u8),
}

impl Mark {
    /// The one that was said.
    pub(crate) fn byte(self) -> Option<u8> {
        match self {
            Self::Byte(byte) => Some(byte),
            Self::Sniffed | Self::None => None,
        }
    }
}

/// How JSON is arranged, and what is done about its keys.
///
/// It is read as RFC 8259 has it and no other way: no comments, no trailing commas, no NaN, no control characters in strings,
/// no half of a surrogate pair (which is no character), no bytes that are not UTF-8. A key that occurs twice in an object
/// makes it a bad record where the object is a row or a struct; in a map both are entries; in JSON that is taken as text, or
/// passed over, it is not looked for. A byte order mark is passed over.
#[derive(Clone, Debug)]
pub struct JsonOptions {
    /// The path to the array whose elements are rows: `a.b`, a JSON Pointer (`/a/b`) or a JSONPath (`$.a.b[*]`, `$.a[*].b`);
    /// nothing at all is the whole document. A value that is no array is one row. Without a path, a file that starts with `[`
    /// is an array of rows, unless another value follows that array; else there is a row a line, or, where the first line holds more than one value or less, values
    /// one after the other. Rows that are no objects have one column, `value`, as have
    /// rows of which none has a key.
    pub root: Option<String>,
    /// What becomes of keys that the columns lack.
    pub unknown: Unknown,
    /// How deep a record's values may be nested.
    pub depth: usize,
    /// The columns' names and the paths to their values within a row, as [`Self::root`] has them but through objects only. Without,
    /// the columns are the keys of the rows.
    pub columns: Vec<(String, String)>,
    /// Whether values that are left out are checked as strictly as the rest. Otherwise only their quotes and brackets count.
    pub validate: bool,
}

impl Default for JsonOptions {
    fn default() -> Self {
        Self { root: None, unknown: Unknown::Error, depth: 1_024, columns: Vec::new(), validate: true }
    }
}

/// What becomes of keys that the columns lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// They make a bad record, or a surprise where the schema was inferred.
    Error,
    /// They are passed over and counted: [`BatchSource::unknown_keys`](crate::BatchSource::unknown_keys).
    Report,
    /// They become a JSON object in a column `_extra`, with the names of structs and a dot before nested ones.
    Extra,
}

/// What becomes of values that the type that was given does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfits {
    /// Their records are bad ones.
    Reject,
    /// They become nulls; their records are kept, counted as bad, and written down where bad records are.
    Null,
}

/// What becomes of records that can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejects {
    /// The first is an error.
    Error,
    /// They are left out, counted, and written down as NDJSON.
    Collect {
        /// The file they go to; emptied first.
        to: PathBuf,
        /// How many there may be.
        max: Option<u64>,
    },
}

/// How to read Parquet.
#[derive(Clone, Debug)]
pub struct ParquetOptions {
    /// Threads that decode ahead of the consumer (at least one is used).
    pub threads: usize,
    /// Bytes of decoded batches that may wait for the consumer.
    pub ahead_bytes: usize,
    /// Read binary columns as text; a value that is not UTF-8 is an error.
    pub binary_as_text: bool,
    /// The columns to read, by name; values become these types exactly or not at all.
    pub schema: Option<SchemaRef>,
    /// With a schema: pass over columns that it lacks, which otherwise are an error.
    pub ignore_extra: bool,
}

impl Default for ParquetOptions {
    fn default() -> Self {
        Self { threads: 1, ahead_bytes: 64 << 20, binary_as_text: false, schema: None, ignore_extra: false }
    }
}
