//! One row group of one file to batches of the united schema.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::basic::{Encoding, Type as PhysicalType};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use plinth_profile::{Anchor, Stage};

use super::file::{Handle, ParquetFile};
use super::footer::{load, one_line, reader_options};
use super::pages::Group;
use super::stored::as_meant;
use crate::error::{IngestError, Result};
use crate::options::ParquetOptions;
use crate::stream::ahead::{Item, Worker};
use crate::values::scalar::strict_text;
use crate::values::types::value_type;

/// Decoded bytes a batch aims at.
const BATCH_BYTES: u64 = 8 << 20;

/// Most rows of a batch, and what the rows of large batches are a multiple of.
const BATCH_ROWS: std::ops::RangeInclusive<usize> = 64..=65_536;

/// A row group to decode.
#[derive(Debug)]
pub(super) struct Task {
    /// Which plan.
    pub(super) file: usize,
    pub(super) row_group: usize,
    pub(super) rows: u64,
    pub(super) bytes: u64,
}

/// A file and where the united columns are in it.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) file: ParquetFile,
    pub(super) columns: Arc<[Option<usize>]>,
    /// What the file's columns mean, in value types.
    pub(super) meaning: SchemaRef,
}

/// Decodes row groups on one thread. Keeps the footer of the file it is at.
pub(super) struct Decoder {
    tasks: Arc<[Task]>,
    plans: Arc<[Plan]>,
    schema: SchemaRef,
    options: ParquetOptions,
    open: Option<(usize, Handle, ArrowReaderMetadata)>,
}

impl Decoder {
    pub(super) fn new(tasks: Arc<[Task]>, plans: Arc<[Plan]>, schema: SchemaRef, options: ParquetOptions) -> Self {
        Self { tasks, plans, schema, options, open: None }
    }

    fn decode(&mut self, task: &Task, give: &mut dyn FnMut(Item<(RecordBatch, u64, usize)>) -> bool) -> Result<()> {
        let plan = self.plans.get(task.file).ok_or(IngestError::internal("a row group of Parquet has no file"))?;
        let path = &plan.file.path;
        let damaged = |e: &dyn std::fmt::Display| {
            IngestError::damaged(path, format!("row group {}: {}", task.row_group, one_line(e)))
        };
        let (file, metadata) = match &self.open {
            Some((at, file, metadata)) if *at == task.file => (file, metadata.clone()),
            _ => {
                let (file, metadata, _) = load(&plan.file)?;
                let (_, file, metadata) = self.open.insert((task.file, file, metadata));
                (&*file, metadata.clone())
            }
        };
        let file = file.try_clone().map_err(|e| IngestError::os(path, "open", e))?;
        let parquet = Arc::clone(metadata.metadata());
        let hint = read_schema(metadata.schema(), &parquet, task.row_group);
        let metadata =
            ArrowReaderMetadata::try_new(parquet, reader_options().with_schema(hint)).map_err(|e| damaged(&e))?;
        let rows = batch_rows(self.open.as_ref().map(|(.., m)| m.metadata().as_ref()), task);
        let reader = Group::new(file, Arc::clone(metadata.metadata()), task.row_group)
            .and_then(|group| group.reader(metadata.schema(), rows))
            .map_err(|e| damaged(&e))?;
        let mut adapter = Adapter::new(plan, Arc::clone(&self.schema), &self.options);
        let (mut rows, mut bytes) = (0u64, 0u64);
        for batch in reader {
            let batch = adapter.adapt(&batch.map_err(|e| damaged(&e))?)?;
            rows += batch.num_rows() as u64;
            // This batch's share of the row group's bytes in the file.
            let until = u128::from(task.bytes) * u128::from(rows.min(task.rows)) / u128::from(task.rows.max(1));
            let until = u64::try_from(until).unwrap_or(task.bytes);
            let size = memory_size(&batch);
            if !give(Item { value: (batch, until.saturating_sub(bytes), task.file), bytes: size }) {
                return Ok(());
            }
            bytes = until;
        }
        if rows != task.rows {
            return Err(damaged(&format!("{rows} rows found where the footer promises {}", task.rows)));
        }
        Ok(())
    }
}

impl Worker<usize, (RecordBatch, u64, usize), IngestError> for Decoder {
    fn anchor(&self) -> Anchor {
        Stage::Build.of("parquet")
    }

    fn run(&mut self, &task: &usize, give: &mut dyn FnMut(Item<(RecordBatch, u64, usize)>) -> bool) -> Result<()> {
        let tasks = Arc::clone(&self.tasks);
        let task = tasks.get(task).ok_or(IngestError::internal("a task of the Parquet reader has no row group"))?;
        self.decode(task, give)
    }

    fn internal(&self, what: &'static str) -> IngestError {
        IngestError::internal(what)
    }

    fn panicked(&self, task: Option<&usize>) -> IngestError {
        let task = task.and_then(|task| self.tasks.get(*task));
        let path = task.and_then(|task| self.plans.get(task.file)).map(|plan| plan.file.path.as_path());
        let row_group = task.map_or(0, |task| task.row_group);
        IngestError::damaged(
            path.unwrap_or_else(|| std::path::Path::new("input")),
            format!("row group {row_group}: the Parquet decoder gave up on damaged data"),
        )
    }
}

/// Rows of a batch: about [`BATCH_BYTES`] decoded.
fn batch_rows(metadata: Option<&ParquetMetaData>, task: &Task) -> usize {
    let group = metadata.and_then(|m| m.row_groups().get(task.row_group));
    // Dictionaries and run lengths hide how wide a row is in memory: count eight bytes a value at least.
    let stored = group.map_or(0, |g| u64::try_from(g.total_byte_size()).unwrap_or(0));
    let columns = group.map_or(1, |g| g.num_columns() as u64);
    let row = (stored / task.rows.max(1)).max(columns * 8).max(1);
    let rows = usize::try_from(BATCH_BYTES / row).unwrap_or(usize::MAX).clamp(*BATCH_ROWS.start(), *BATCH_ROWS.end());
    if rows > 8192 { rows / 8192 * 8192 } else { rows }
}

/// The types to read a row group with: as handed on, except that binaries stay binaries here (the Parquet reader does not
/// check text it was told to expect) and columns stored through dictionaries stay dictionaries.
fn read_schema(inferred: &Schema, metadata: &ParquetMetaData, row_group: usize) -> SchemaRef {
    let mut fields: Vec<Field> = inferred
        .fields()
        .iter()
        .map(|f| Field::new(f.name(), value_type(f.data_type(), false), f.is_nullable()))
        .collect();
    let columns = metadata.row_groups().get(row_group).map(|g| g.columns()).unwrap_or_default();
    let descriptor = metadata.file_metadata().schema_descr();
    for (leaf, chunk) in columns.iter().enumerate().take(descriptor.num_columns()) {
        let root = descriptor.get_column_root_idx(leaf);
        let top_level = descriptor.get_column_root(leaf).is_primitive();
        if let Some(field) = fields.get_mut(root).filter(|_| top_level && is_dictionary(chunk)) {
            let values = match field.data_type() {
                DataType::Utf8View => DataType::Utf8,
                DataType::BinaryView => DataType::Binary,
                _ => continue,
            };
            let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(values));
            *field = field.clone().with_data_type(dictionary);
        }
    }
    Arc::new(Schema::new(fields))
}

/// Whether a chunk's values all go through a dictionary, as far as the footer tells.
fn is_dictionary(chunk: &ColumnChunkMetaData) -> bool {
    if chunk.column_type() != PhysicalType::BYTE_ARRAY || chunk.dictionary_page_offset().is_none() {
        return false;
    }
    if let Some(mask) = chunk.page_encoding_stats_mask() {
        return mask.is_only(Encoding::RLE_DICTIONARY) || mask.is_only(Encoding::PLAIN_DICTIONARY);
    }
    // Old writers list the encodings of the chunk only, and PLAIN may be that of the dictionary page: believe it if the
    // chunk is small enough for codes.
    let has_codes = chunk.encodings().any(|e| matches!(e, Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY));
    has_codes && chunk.uncompressed_size() / chunk.num_values().max(1) < 6
}

/// Bytes a batch keeps in memory, a dictionary's values (shared with its neighbours) left out.
fn memory_size(batch: &RecordBatch) -> usize {
    let array_size = |array: &ArrayRef| match array.data_type() {
        DataType::Dictionary(..) => array.len() * 4,
        _ => array.get_array_memory_size(),
    };
    batch.columns().iter().map(array_size).sum()
}

/// Brings the batches of a row group into the united schema.
struct Adapter<'a> {
    plan: &'a Plan,
    schema: SchemaRef,
    options: &'a ParquetOptions,
    /// Per united column, the last dictionary's values as read and as handed on: one array for the whole chunk.
    dictionaries: Vec<Option<(ArrayRef, ArrayRef)>>,
}

impl<'a> Adapter<'a> {
    fn new(plan: &'a Plan, schema: SchemaRef, options: &'a ParquetOptions) -> Self {
        let dictionaries = vec![None; schema.fields().len()];
        Self { plan, schema, options, dictionaries }
    }

    fn adapt(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let schema = Arc::clone(&self.schema);
        let mut columns = Vec::with_capacity(schema.fields().len());
        let mut fields = Vec::with_capacity(schema.fields().len());
        for (at, field) in schema.fields().iter().enumerate() {
            let array = match self.plan.columns.get(at).copied().flatten() {
                None => new_null_array(field.data_type(), batch.num_rows()),
                Some(place) => {
                    let (array, meaning) =
                        batch.columns().get(place).zip(self.plan.meaning.fields().get(place)).ok_or_else(|| {
                            IngestError::damaged(&self.plan.file.path, "it changed while it was read")
                        })?;
                    let array =
                        as_meant(array, self.meaning(field, meaning), true).map_err(|e| self.value_error(field, &e))?;
                    self.convert(at, field, &array)?
                }
            };
            if !field.is_nullable() && array.logical_null_count() > 0 {
                return Err(self.value_error(field, &"holds nulls, where a value is needed"));
            }
            fields.push(if array.data_type() == field.data_type() {
                Arc::clone(field)
            } else {
                Arc::new(field.as_ref().clone().with_data_type(array.data_type().clone()))
            });
            columns.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
            .map_err(|e| IngestError::damaged(&self.plan.file.path, one_line(&e)))
    }

    /// What values are read as: what was given of timestamps that are stored more finely than any unit, of milliseconds that are
    /// meant as days, and of bytes that are meant as text.
    fn meaning<'t>(&self, field: &'t Field, meaning: &'t Field) -> &'t DataType {
        match (field.data_type(), meaning.data_type()) {
            (given @ DataType::Timestamp(_, None), DataType::Timestamp(..) | DataType::Date32)
            | (given @ DataType::Date64, DataType::Date32)
            | (given @ DataType::FixedSizeBinary(_), DataType::Utf8View)
                if self.options.schema.is_some() =>
            {
                given
            }
            (_, meant) => meant,
        }
    }

    fn convert(&mut self, at: usize, field: &Field, array: &ArrayRef) -> Result<ArrayRef> {
        if array.data_type() == field.data_type() {
            return Ok(Arc::clone(array));
        }
        if !matches!(array.data_type(), DataType::Dictionary(..)) {
            return self.cast(field, array);
        }
        if !matches!(field.data_type(), DataType::Utf8View | DataType::BinaryView) {
            // Dictionaries stay such for text and binaries only.
            let values = array.as_dictionary::<Int32Type>().values().data_type();
            let flat =
                cast_with_options(array, values, &CastOptions::default()).map_err(|e| self.value_error(field, &e))?;
            return self.cast(field, &flat);
        }
        let dictionary = array.as_dictionary::<Int32Type>();
        let values = dictionary.values();
        if values.is_empty() {
            // All rows are null: keys, which are not checked against an empty dictionary, must not be followed.
            return Ok(new_null_array(field.data_type(), array.len()));
        }
        let known = self.dictionaries.get(at).and_then(Option::as_ref);
        let converted = match known {
            Some((of, converted)) if of.to_data().ptr_eq(&values.to_data()) => Arc::clone(converted),
            _ => {
                let converted = self.cast(field, values)?;
                if let Some(slot) = self.dictionaries.get_mut(at) {
                    *slot = Some((Arc::clone(values), Arc::clone(&converted)));
                }
                converted
            }
        };
        DictionaryArray::<Int32Type>::try_new(dictionary.keys().clone(), converted)
            .map(|array| Arc::new(array) as ArrayRef)
            .map_err(|e| self.value_error(field, &e))
    }

    fn cast(&self, field: &Field, array: &ArrayRef) -> Result<ArrayRef> {
        let (from, to) = (array.data_type(), field.data_type());
        if from.is_null() {
            return Ok(new_null_array(to, array.len()));
        }
        let options = CastOptions { safe: false, ..CastOptions::default() };
        let plain = |array: &ArrayRef, to: &DataType| {
            cast_with_options(array, to, &options).map_err(|e| match (array.data_type(), to) {
                (DataType::Timestamp(..) | DataType::Date32, DataType::Timestamp(TimeUnit::Nanosecond, _)) => {
                    let what = "holds a moment that nanoseconds do not reach: they end in the years 1677 and 2262; \
                                give its type as TIMESTAMP(6)";
                    self.value_error(field, &what)
                }
                _ => self.value_error(field, &e),
            })
        };
        let value_type = value_type(from, self.options.binary_as_text);
        // Without a schema that was given, types only ever widen.
        if self.options.schema.is_none() || value_type == *to {
            return plain(array, to);
        }
        if value_type == DataType::Utf8View && !to.is_nested() {
            return strict_text(array, to).map_err(|e| self.value_error(field, &e));
        }
        let converted = plain(array, to)?;
        if plain(&converted, from)?.as_ref() != array.as_ref() {
            return Err(self.value_error(field, &format!("holds values of type {from} that {to} can't hold exactly")));
        }
        Ok(converted)
    }

    fn value_error(&self, field: &Field, error: &dyn std::fmt::Display) -> IngestError {
        let mut what = one_line(error);
        if self.options.binary_as_text && matches!(field.data_type(), DataType::Utf8View) && what.contains("UTF") {
            what = format!("holds bytes that are not UTF-8 ({what}); import it without --binary-as-text");
        }
        IngestError::Value { path: self.plan.file.path.display().to_string(), column: field.name().clone(), what }
    }
}
