//! `COPY ... TO` in formats of others: what was there stays until all rows are written, and nothing is left of a statement that fails.
//!
//! CSV and JSON are written as an export writes them. Parquet and folders of partitions are written by the engine, into a folder that is
//! hidden until they are complete: its writers complete a file even when its rows end with an error. A file of an object store is made
//! on this machine, and sent.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch, UInt64Array};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use datafusion::arrow::compute::take_record_batch;
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::dataframe::DataFrame;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::dml::CopyTo;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, lit, when};
use futures::StreamExt;
use plinth_datafusion::within_digits;
use plinth_ingest::export::{BatchSink, Compressed, SinkOptions, to_file};
use plinth_ingest::{Compression, FileFormat};
use plinth_io::objects::is_url;
use plinth_io::{TEMPORARY_SUFFIX, sync_folder};
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::Session;
use crate::error::SqlError;
use crate::rows::blocking;

/// What folders of partitions call the rows whose key is NULL, in Hive and all that follow it.
const NULL_KEY: &str = "__HIVE_DEFAULT_PARTITION__";

/// Most files of partitions that are open at once.
const MOST_OPEN: usize = 500;

/// Batches that wait for the writer.
const AHEAD: usize = 2;

/// Where rows go in the end.
enum Place {
    /// To a file, or a folder of partitions, of this machine.
    Here(PathBuf),
    /// To an object of a store.
    There(String),
}

impl Session {
    /// Writes the rows of a query in a format of others; `None` if it is of Plinth, or a folder of partitions in a store, which are the
    /// engine's to write.
    pub(crate) async fn copy_to(&self, copy: &CopyTo) -> Result<Option<u64>> {
        let format = copy.file_type.get_ext();
        let text = match format.as_str() {
            "csv" => Some(FileFormat::Csv),
            "json" => Some(FileFormat::Ndjson),
            "parquet" | "arrow" => None,
            _ => return Ok(None),
        };
        let place = match copy.output_url.strip_prefix("file://") {
            None if is_url(&copy.output_url) => Place::There(copy.output_url.clone()),
            path => Place::Here(PathBuf::from(path.unwrap_or(&copy.output_url))),
        };
        let parted = !copy.partition_by.is_empty();
        if parted && matches!(place, Place::There(_)) {
            return Ok(None);
        }
        let input = with_distinct_names(copy.input.as_ref().clone())?;
        let staged = match &place {
            Place::Here(path) => Staged::beside(path, parted)?,
            Place::There(_) => Staged::in_scratch()?,
        };
        let made = staged.path(&format, parted);
        let input = if parted { with_null_keys(input, &copy.partition_by)? } else { input };
        let rows = match text {
            Some(format) => {
                let options = SinkOptions {
                    format: Some(format),
                    threads: NonZero::new(self.threads),
                    ..text_options(&copy.output_url, format, &copy.options)?
                };
                let frame = DataFrame::new(self.state_for_writing(), input);
                let rows = frame.execute_stream().await?;
                let keys: Vec<usize> =
                    copy.partition_by.iter().map(|key| rows.schema().index_of(key)).collect::<Result<_, _>>()?;
                let files = match parted {
                    true => Files::Parts(Box::new(Parts::new(made.clone(), &rows.schema(), keys, options)?)),
                    false => Files::One(to_file(&made, &rows.schema(), &options).map_err(ingest)?),
                };
                write_text(rows, files).await?
            }
            None => {
                let output_url = url::Url::from_file_path(&made).map_err(|()| unnamed(&made))?.to_string();
                let copy = CopyTo { input: Arc::new(input), output_url, ..copy.clone() };
                self.written_by_engine(copy).await?
            }
        };
        match place {
            Place::Here(path) => blocking(move || staged.put(&made, &path, parted)).await?,
            Place::There(url) => {
                let objects = Arc::clone(&self.objects);
                let send = move || plinth_io::Objects::upload(objects.as_ref(), &made, &url, true);
                blocking(move || send().map_err(|e| DataFusionError::External(Box::new(e)))).await?;
            }
        }
        Ok(Some(rows))
    }

    async fn written_by_engine(&self, copy: CopyTo) -> Result<u64> {
        let frame = DataFrame::new(self.state_for_writing(), LogicalPlan::Copy(copy));
        let mut counts = frame.execute_stream().await?;
        let mut rows = 0;
        while let Some(batch) = counts.next().await {
            let batch = batch?;
            for column in batch.columns().iter().take(1) {
                for row in 0..column.len() {
                    if let ScalarValue::UInt64(Some(count)) = ScalarValue::try_from_array(column, row)? {
                        rows += count;
                    }
                }
            }
        }
        Ok(rows)
    }
}

/// A folder in which a file is made.
struct Staged(TempDir);

impl Staged {
    /// On the same file system as what it is to become.
    fn beside(path: &Path, parted: bool) -> Result<Self> {
        if path.is_dir() && !parted {
            return exec_err!("{}: is a folder; name the file that is to be written", path.display());
        }
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        // A link is resolved, for the engine is told a URL.
        let parent = parent.canonicalize().map_err(|e| named(parent, &e))?;
        let made = tempfile::Builder::new().prefix(".copy-").suffix(TEMPORARY_SUFFIX).tempdir_in(&parent);
        Ok(Self(made.map_err(|e| named(&parent, &e))?))
    }

    fn in_scratch() -> Result<Self> {
        Ok(Self(tempfile::Builder::new().prefix("plinth-copy-").tempdir()?))
    }

    /// What is made: with the ending of its format, by which the engine tells a file from a folder.
    fn path(&self, format: &str, parted: bool) -> PathBuf {
        self.0.path().join(if parted { "parts".to_owned() } else { format!("rows.{format}") })
    }

    /// Puts what is complete into its place.
    fn put(self, made: &Path, path: &Path, parted: bool) -> Result<()> {
        if parted {
            // Of no rows there are no partitions; and an empty folder may be there.
            std::fs::create_dir_all(made).map_err(|e| named(path, &e))?;
            match std::fs::remove_dir(path) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(named(path, &e)),
                _ => {}
            }
        } else {
            std::fs::File::open(made).and_then(|file| file.sync_all()).map_err(|e| named(path, &e))?;
        }
        std::fs::rename(made, path).map_err(|e| named(path, &e))?;
        let folder = self.0.path().parent().map(Path::to_path_buf);
        drop(self);
        match folder {
            Some(folder) => sync_folder(folder).map_err(|e| DataFusionError::External(Box::new(e))),
            None => Ok(()),
        }
    }
}

fn named(path: &Path, error: &std::io::Error) -> DataFusionError {
    SqlError::new(format!("{}: cannot write: {error}", path.display())).into()
}

fn unnamed(path: &Path) -> DataFusionError {
    DataFusionError::Internal(format!("{}: is no absolute path", path.display()))
}

fn ingest(error: plinth_ingest::IngestError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// The files that rows go to.
enum Files {
    One(Box<dyn BatchSink>),
    Parts(Box<Parts>),
}

impl Files {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match self {
            Self::One(sink) => sink.write(batch).map_err(ingest),
            Self::Parts(parts) => parts.write(batch),
        }
    }

    fn finish(self) -> Result<()> {
        match self {
            Self::One(sink) => sink.finish().map(drop).map_err(ingest),
            Self::Parts(parts) => parts.finish(),
        }
    }
}

/// A folder with a folder for each value of the keys.
struct Parts {
    folder: PathBuf,
    /// The columns that are no keys.
    columns: Vec<usize>,
    schema: SchemaRef,
    keys: Vec<(usize, String)>,
    options: SinkOptions,
    open: HashMap<String, Box<dyn BatchSink>>,
    /// How often all files were closed, for there were too many.
    turns: usize,
}

impl Parts {
    fn new(folder: PathBuf, schema: &SchemaRef, keys: Vec<usize>, options: SinkOptions) -> Result<Self> {
        let columns: Vec<usize> = (0..schema.fields().len()).filter(|column| !keys.contains(column)).collect();
        if columns.is_empty() {
            return exec_err!("COPY: PARTITION_BY all columns: one is to be left that files have");
        }
        let named = keys.into_iter().map(|key| (key, schema.field(key).name().clone())).collect();
        let inner = Arc::new(schema.project(&columns)?);
        Ok(Self { folder, columns, schema: inner, keys: named, options, open: HashMap::new(), turns: 0 })
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut rows: HashMap<String, Vec<u64>> = HashMap::new();
        for row in 0..batch.num_rows() {
            let mut path = String::new();
            for (column, name) in &self.keys {
                let value = batch.column(*column).as_string::<i32>().value(row);
                let _ = write!(path, "{}={}/", escaped(name), escaped(value));
            }
            rows.entry(path).or_default().push(row as u64);
        }
        let inner = batch.project(&self.columns)?;
        for (path, rows) in rows {
            let part = take_record_batch(&inner, &UInt64Array::from(rows))?;
            if self.open.len() >= MOST_OPEN && !self.open.contains_key(&path) {
                self.close()?;
                self.turns += 1;
            }
            let sink = match self.open.entry(path) {
                Entry::Occupied(open) => open.into_mut(),
                Entry::Vacant(place) => {
                    let folder = self.folder.join(place.key());
                    std::fs::create_dir_all(&folder).map_err(|e| named(&folder, &e))?;
                    let ending = match self.options.format {
                        Some(FileFormat::Csv) => "csv",
                        _ => "json",
                    };
                    let packed = match self.options.compression {
                        Some(Compressed::With(compression)) => format!(".{}", compression.extension()),
                        _ => String::new(),
                    };
                    let file = folder.join(format!("data_{}.{ending}{packed}", self.turns));
                    place.insert(to_file(file, &self.schema, &self.options).map_err(ingest)?)
                }
            };
            sink.write(&part).map_err(ingest)?;
        }
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        self.open.drain().try_for_each(|(_, sink)| sink.finish().map(drop).map_err(ingest))
    }

    fn finish(mut self) -> Result<()> {
        self.close()
    }
}

/// A key or a value as a part of a path, with the letters escaped that Hive escapes.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\u{0}'..='\u{1f}'
            | '\u{7f}'
            | '"'
            | '#'
            | '%'
            | '\''
            | '*'
            | '/'
            | ':'
            | '='
            | '?'
            | '\\'
            | '{'
            | '['
            | ']'
            | '^' => {
                let _ = write!(out, "%{:02X}", u32::from(letter));
            }
            _ => out.push(letter),
        }
    }
    out
}

/// Writes rows as text, on a thread that may block.
async fn write_text(mut rows: SendableRecordBatchStream, mut files: Files) -> Result<u64> {
    let (sender, mut batches) = mpsc::channel::<Option<RecordBatch>>(AHEAD);
    let write = blocking(move || {
        let mut written = 0_u64;
        while let Some(message) = batches.blocking_recv() {
            let Some(batch) = message else {
                files.finish()?;
                return Ok(written);
            };
            files.write(&batch)?;
            written += batch.num_rows() as u64;
        }
        exec_err!("the rows ended before their end")
    });
    let read = async move {
        while let Some(batch) = rows.next().await {
            // Who takes no more has failed, and says so.
            if sender.send(Some(within_digits(batch?)?)).await.is_err() {
                return Ok(());
            }
        }
        let _ = sender.send(None).await;
        Ok::<_, DataFusionError>(())
    };
    let (read, written) = futures::join!(read, write);
    read.and(written)
}

/// A query whose columns have names of their own: `a`, `a_1`. A reader of the file would find one of two of a name.
fn with_distinct_names(input: LogicalPlan) -> Result<LogicalPlan> {
    let names: Vec<String> = input.schema().fields().iter().map(|field| field.name().clone()).collect();
    let distinct = distinct(&names);
    if names == distinct {
        return Ok(input);
    }
    let columns = input.schema().columns().into_iter().zip(distinct);
    let columns: Vec<Expr> = columns.map(|(column, name)| Expr::Column(column).alias(name)).collect();
    LogicalPlanBuilder::from(input).project(columns)?.build()
}

/// Names of which none occurs twice.
fn distinct(names: &[String]) -> Vec<String> {
    let mut taken: HashSet<String> = names.iter().cloned().collect();
    let mut seen = HashSet::new();
    let free = |name: &String| {
        if seen.insert(name.clone()) {
            return name.clone();
        }
        let further = (1_u64..).map(|at| format!("{name}_{at}")).find(|other| taken.insert(other.clone()));
        further.unwrap_or_default()
    };
    names.iter().map(free).collect()
}

/// Rows under names that a file or an object can have: `a`, `a_1` where several columns are called `a`, of which a reader would find one.
///
/// # Errors
/// If the batch is of no use to a schema of other names, which can't be.
pub fn with_names_of_their_own(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema();
    let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
    let told = distinct(&names);
    if names == told {
        return Ok(batch.clone());
    }
    let fields = schema.fields().iter().zip(told).map(|(field, name)| field.as_ref().clone().with_name(name));
    let schema = Schema::new_with_metadata(fields.collect::<Vec<Field>>(), schema.metadata().clone());
    RecordBatch::try_new(Arc::new(schema), batch.columns().to_vec())
}

/// A query whose keys of partitions are text, also where they are NULL: the engine takes the value that lies below a NULL.
fn with_null_keys(input: LogicalPlan, keys: &[String]) -> Result<LogicalPlan> {
    let columns = input.schema().columns().into_iter().map(|column| {
        let name = column.name.clone();
        let value = Expr::Column(column);
        if !keys.contains(&name) {
            return Ok(value);
        }
        let text = cast(value.clone(), arrow_schema::DataType::Utf8);
        Ok(when(value.is_null(), lit(NULL_KEY)).otherwise(text)?.alias(name))
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    LogicalPlanBuilder::from(input).project(columns)?.build()
}

/// How text is written, by the options of a statement.
fn text_options(path: &str, format: FileFormat, options: &HashMap<String, String>) -> Result<SinkOptions> {
    let mut sink = SinkOptions { replace: true, compression: Some(by_name(path)), ..SinkOptions::default() };
    for (key, value) in options {
        let name = key.strip_prefix("format.").unwrap_or(key).to_ascii_lowercase();
        let letter = || match value.as_bytes() {
            [byte] => Ok(*byte),
            _ => exec_err!("COPY: {name} is {value:?}: one ASCII letter is expected"),
        };
        let truth = || match value.to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => exec_err!("COPY: {name} is {value:?}: true or false is expected"),
        };
        match (name.as_str(), format) {
            ("has_header" | "header", FileFormat::Csv) => sink.csv.header = truth()?,
            ("delimiter", FileFormat::Csv) => sink.csv.delimiter = Some(letter()?),
            ("quote", FileFormat::Csv) => sink.csv.quote = letter()?,
            ("escape", FileFormat::Csv) => sink.csv.escape = Some(letter()?),
            ("null_value", FileFormat::Csv) => sink.csv.null.clone_from(value),
            ("date_format", FileFormat::Csv) => sink.times.date = Some(value.clone()),
            ("time_format", FileFormat::Csv) => sink.times.time = Some(value.clone()),
            ("timestamp_format" | "timestamp_tz_format", FileFormat::Csv) => sink.times.timestamp = Some(value.clone()),
            ("compression", _) => sink.compression = Some(compression(value)?),
            _ => return exec_err!("COPY: {key} is no option of {format}"),
        }
    }
    Ok(sink)
}

/// The compression that a name says.
fn by_name(path: &str) -> Compressed {
    let ending = Path::new(path).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    Compression::ALL
        .into_iter()
        .find(|compression| compression.extension().eq_ignore_ascii_case(ending))
        .map_or(Compressed::Plain, Compressed::With)
}

fn compression(name: &str) -> Result<Compressed> {
    Ok(Compressed::With(match name.to_ascii_lowercase().as_str() {
        "none" | "uncompressed" => return Ok(Compressed::Plain),
        "gzip" | "gz" => Compression::Gzip,
        "zstd" | "zst" => Compression::Zstd,
        "lz4" => Compression::Lz4,
        "bzip2" | "bz2" => Compression::Bzip2,
        other => {
            return exec_err!("COPY: COMPRESSION {other}: text is compressed by gzip, zstd, lz4, bzip2 or not (none)");
        }
    }))
}
