//! Parquet files as one stream of batches.

mod decode;
mod file;
mod footer;
mod pages;
mod stored;
mod told;
mod union;

pub(crate) use file::ParquetFile;
pub use footer::value_schema;
pub use pages::checked_pages;
pub use stored::{as_meant, as_stored, check_places, has_arrow_schema};
pub(crate) use stored::{as_written, written};
pub use told::check_types;
pub use union::check_names;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{FieldRef, Schema, SchemaRef};

use crate::batch_source::{BatchSource, Position, Totals};
use crate::error::{IngestError, Result};
use crate::options::ParquetOptions;
use crate::stream::ahead::Ahead;
use crate::values::types::given_schema;
use decode::{Decoder, Plan, Task};
use footer::Footer;
use union::Union;

/// Some Parquet files, read one after the other: row groups decoded ahead by a few threads, rows in file order.
///
/// Text comes as `Utf8View`, binaries as `BinaryView`; where a row group stores a top-level text or binary column wholly
/// through a dictionary, its batches hold `Dictionary(Int32, ..)` arrays that share one array of values, so that a
/// consumer can treat each value once.
pub struct ParquetSource {
    schema: SchemaRef,
    totals: Totals,
    position: Position,
    /// The files, and which of them the last batch is of.
    plans: Arc<[Plan]>,
    at: Option<usize>,
    ahead: Ahead<(RecordBatch, u64, usize), IngestError>,
}

impl std::fmt::Debug for ParquetSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParquetSource").field("schema", &self.schema).field("totals", &self.totals).finish()
    }
}

impl ParquetSource {
    /// Reads every footer, unites the schemas and starts to decode.
    ///
    /// # Errors
    /// If a file is not Parquet or damaged, or two files disagree about a column's type.
    pub fn open(files: &[PathBuf], options: &ParquetOptions) -> Result<Self> {
        Self::open_files(files.iter().cloned().map(ParquetFile::new).collect(), options)
    }

    pub(crate) fn open_files(files: Vec<ParquetFile>, options: &ParquetOptions) -> Result<Self> {
        let mut union = Union::default();
        let mut footers: Vec<Footer> = Vec::with_capacity(files.len());
        for file in files {
            let mut footer = Footer::read(file, options.binary_as_text)?;
            match &options.schema {
                Some(schema) => check_columns(schema, &footer, options.ignore_extra)?,
                None => union.add(&footer.file.path, &footer.schema)?,
            }
            // Thousands of files of one kind share one schema.
            if let Some(last) = footers.last().filter(|last| last.schema == footer.schema) {
                footer.schema = Arc::clone(&last.schema);
            }
            footers.push(footer);
        }
        let schema = match &options.schema {
            Some(schema) => given_schema(schema),
            None => Arc::new(union.finish()),
        };
        let missing = |field: &&FieldRef| footers.iter().all(|f| f.schema.index_of(field.name()).is_err());
        if let Some(field) = schema.fields().iter().find(missing).filter(|_| !footers.is_empty()) {
            return Err(IngestError::MissingColumn { column: field.name().clone() });
        }
        let totals = Totals {
            rows: Some(footers.iter().flat_map(|f| &f.row_groups).map(|g| g.rows).sum()),
            bytes: Some(footers.iter().map(|f| f.bytes).sum()),
            files: footers.len() as u64,
        };
        let mut tasks = Vec::new();
        let mut columns: Option<(SchemaRef, Arc<[Option<usize>]>)> = None;
        let mut plans = Vec::with_capacity(footers.len());
        for (file, footer) in footers.into_iter().enumerate() {
            let mapping = match &columns {
                Some((of, mapping)) if Arc::ptr_eq(of, &footer.schema) => Arc::clone(mapping),
                _ => positions(&schema, &footer.schema),
            };
            columns = Some((Arc::clone(&footer.schema), Arc::clone(&mapping)));
            for (row_group, group) in footer.row_groups.iter().enumerate() {
                tasks.push(Task { file, row_group, rows: group.rows, bytes: group.bytes });
            }
            plans.push(Plan { file: footer.file, columns: mapping, meaning: footer.schema });
        }
        let threads = options.threads.clamp(1, 64);
        let (tasks, plans): (Arc<[Task]>, Arc<[Plan]>) = (tasks.into(), plans.into());
        let workers = (0..threads)
            .map(|_| Decoder::new(Arc::clone(&tasks), Arc::clone(&plans), Arc::clone(&schema), options.clone()))
            .collect();
        let ahead =
            Ahead::start((0..tasks.len()).map(Ok), options.ahead_bytes, workers).map_err(IngestError::thread)?;
        Ok(Self { schema, totals, position: Position::default(), plans, at: None, ahead })
    }
}

/// Whether a schema that was given has all columns of a file, each of which has its own name.
fn check_columns(schema: &Schema, footer: &Footer, ignore_extra: bool) -> Result<()> {
    check_names(&footer.file.path, &footer.schema)?;
    let path = || footer.file.path.display().to_string();
    match footer.schema.fields().iter().find(|field| schema.index_of(field.name()).is_err()) {
        Some(extra) if !ignore_extra => Err(IngestError::ExtraColumn { path: path(), column: extra.name().clone() }),
        _ => Ok(()),
    }
}

/// Where each united column is in a file.
fn positions(united: &Schema, file: &Schema) -> Arc<[Option<usize>]> {
    united.fields().iter().map(|field| file.index_of(field.name()).ok()).collect()
}

impl BatchSource for ParquetSource {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        match self.ahead.next()? {
            Some((batch, bytes, file)) => {
                self.at = Some(file);
                self.position.rows += batch.num_rows() as u64;
                self.position.bytes += bytes;
                Ok(Some(batch))
            }
            None => {
                self.position.bytes = self.totals.bytes.unwrap_or(self.position.bytes);
                Ok(None)
            }
        }
    }

    fn totals(&self) -> Totals {
        self.totals
    }

    fn position(&self) -> Position {
        self.position
    }

    fn path(&self) -> Option<&Path> {
        self.plans.get(self.at?).map(|plan| plan.file.path.as_path())
    }
}
