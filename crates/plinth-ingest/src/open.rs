//! One way in for every format.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_schema::SchemaRef;

use crate::bits::Level;
use crate::columns::open_text;
use crate::error::{IngestError, Result};
use crate::format::{FileFormat, of_name};
use crate::inputs::{STDIN, expand_as};
use crate::parquet::{ParquetFile, ParquetOptions, ParquetSource};
use crate::source::BatchSource;
use crate::text::stream::{Input, Spooled};

/// How to read foreign files.
#[derive(Clone, Debug)]
pub struct SourceOptions {
    /// The format, whatever the extensions.
    pub format: Option<FileFormat>,
    /// The columns to read, by name; values become these types exactly or not at all. Without one, the files (or a sample
    /// of them) say what there is.
    pub schema: Option<SchemaRef>,
    /// With a schema: pass over columns of the input that it lacks, which otherwise are an error.
    pub ignore_extra: bool,
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
    /// Bytes of text decoded at a time; for tests.
    #[doc(hidden)]
    pub piece_bytes: Option<usize>,
    /// How the bytes of text are looked at; for tests.
    #[doc(hidden)]
    pub level: Option<Level>,
}

impl Default for SourceOptions {
    fn default() -> Self {
        Self {
            format: None,
            schema: None,
            ignore_extra: false,
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
            piece_bytes: None,
            level: None,
        }
    }
}

/// What a schema is inferred from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sample {
    /// About so many rows, the first of each file. A later row that does not fit is [`IngestError::Surprise`].
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
    /// Whether what nobody wants is checked as strictly as the rest. Otherwise of such values only quotes and brackets count.
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
    /// They are passed over and counted: [`BatchSource::unknown_keys`].
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

/// Opens files, directories, patterns, or `-` for standard input, all of one format, as one stream of batches.
///
/// # Errors
/// If an input is missing, damaged or of another format than the others, if a schema can't be inferred or does not meet
/// the files; with one line that says what, where, and what to do.
pub fn open<P: AsRef<Path>>(inputs: &[P], options: &SourceOptions) -> Result<Box<dyn BatchSource>> {
    open_with(inputs, options, std::io::stdin())
}

/// As [`open`], with something else for standard input.
///
/// # Errors
/// As [`open`].
pub fn open_with<P: AsRef<Path>>(
    inputs: &[P],
    options: &SourceOptions,
    stdin: impl Read + Send + 'static,
) -> Result<Box<dyn BatchSource>> {
    if inputs.iter().any(|input| input.as_ref() == Path::new(STDIN)) {
        if inputs.len() > 1 {
            return Err(IngestError::Option {
                what: "standard input (-) can't be read together with files".to_owned(),
            });
        }
        return open_stream(stdin, options);
    }
    let files = expand_as(inputs, options.format)?;
    if let Rejects::Collect { to, .. } = &options.rejects
        && let Ok(rejects) = to.canonicalize()
        && files.iter().any(|file| file.canonicalize().is_ok_and(|file| file == rejects))
    {
        let what = format!("{}: is an input; name another file for what is left out of it", to.display());
        return Err(IngestError::Option { what });
    }
    let format = one_format(&files, options.format)?;
    if format == FileFormat::Parquet {
        return open_parquet(files.into_iter().map(ParquetFile::new).collect(), options);
    }
    open_text(files.into_iter().map(|file| Arc::new(Input::file(file))).collect(), format, options)
}

/// The format that all files have.
fn one_format(files: &[PathBuf], told: Option<FileFormat>) -> Result<FileFormat> {
    let mut first: Option<(&Path, FileFormat)> = None;
    for path in files {
        let (format, compression) = of_name(path);
        let display = || path.display().to_string();
        let format = told.or(format).ok_or_else(|| IngestError::UnknownFormat { path: display() })?;
        if let (FileFormat::Parquet, Some(compression)) = (format, compression) {
            let what = format!("Parquet within .{} can't be read; decompress it first", compression.extension());
            return Err(IngestError::damaged(path, what));
        }
        match first {
            None => first = Some((path, format)),
            Some((other, other_format)) if other_format != format => {
                return Err(IngestError::MixedFormats {
                    first: other.display().to_string(),
                    first_format: other_format,
                    second: display(),
                    second_format: format,
                });
            }
            Some(_) => {}
        }
    }
    first.map(|(_, format)| format).ok_or_else(|| IngestError::Option { what: "no input given".to_owned() })
}

fn open_stream(mut stdin: impl Read + Send + 'static, options: &SourceOptions) -> Result<Box<dyn BatchSource>> {
    let name = Path::new("standard input");
    let mut head = Vec::new();
    stdin.by_ref().take(16).read_to_end(&mut head).map_err(|e| IngestError::os(name, "read", e))?;
    let parquet = head.starts_with(b"PAR1").then_some(FileFormat::Parquet);
    // An object opens nothing but JSON; everything else could be CSV of some kind.
    let json = (head.starts_with(b"{") || options.json.root.is_some()).then_some(FileFormat::Ndjson);
    let format = options.format.or(parquet).or(json);
    let format = format.ok_or_else(|| IngestError::UnknownFormat { path: name.display().to_string() })?;
    if format == FileFormat::Parquet {
        let spooled = Arc::new(Spooled::copy(&head, stdin, &options.spill)?);
        return open_parquet(vec![ParquetFile::spooled(name.to_path_buf(), spooled)], options);
    }
    if options.schema.is_some() {
        let input = Input::stream(head, Box::new(stdin));
        return open_text(vec![Arc::new(input)], format, options);
    }
    // It can't be read once more if a sample turns out to have been too small.
    let options = SourceOptions { sample: Sample::Everything, ..options.clone() };
    let input = Input::spooled(&head, Spooled::copy(&head, stdin, &options.spill)?);
    open_text(vec![Arc::new(input)], format, &options)
}

fn open_parquet(files: Vec<ParquetFile>, options: &SourceOptions) -> Result<Box<dyn BatchSource>> {
    let parquet = ParquetOptions {
        threads: options.threads,
        ahead_bytes: options.ahead_bytes,
        binary_as_text: options.binary_as_text,
        schema: options.schema.clone(),
        ignore_extra: options.ignore_extra,
    };
    Ok(Box::new(ParquetSource::open_files(files, &parquet)?))
}
