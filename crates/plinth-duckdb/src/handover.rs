//! Batches of Arrow's as chunks of DuckDB's. Where both lay values out alike, vectors point into our buffers and keep them as long as
//! they live; what differs (bits to booleans, views to strings) DuckDB converts.
#![allow(unsafe_code)]

use std::mem::transmute;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::{Array, RecordBatch, StructArray};
use arrow_schema::{Schema, SchemaRef};
use duckdb_neo::arrow::{ArrowArray, ArrowExporter, ArrowImporter, ArrowSchema};
use duckdb_neo::connection::Context;
use duckdb_neo::data_chunk::{DataChunk, DataChunkRef};
use duckdb_neo::logical_type::LogicalType;
use duckdb_neo::value::Value;
use duckdb_neo::{AsRaw, ffi};

use crate::failure::{Result, of_arrow, refused};

/// Rows of a chunk.
pub(crate) const CHUNK_ROWS: usize = 2048;

/// The types that DuckDB has for the columns of a schema.
///
/// # Errors
/// If it has none for one of them; the column is named.
pub(crate) fn types(context: &Context, schema: &Schema) -> Result<Vec<LogicalType>> {
    let of = |schema: &Schema| -> Result<Vec<LogicalType>> {
        let known = ArrowImporter::new(context, exported(schema)?, None)?.schema()?;
        (0..schema.fields().len()).map(|at| known.field_type(at)).collect()
    };
    let refusal = match of(schema) {
        Err(refusal) if !schema.fields().is_empty() => refusal,
        known => return known,
    };
    for field in schema.fields() {
        if let Err(alone) = of(&Schema::new(vec![Arc::clone(field)])) {
            let (name, data_type, why) = (field.name(), field.data_type(), alone.message);
            return Err(refused(format!("column {name:?}: DuckDB has no type for {data_type}: {why}")));
        }
    }
    Err(refusal)
}

fn exported(schema: &Schema) -> Result<ArrowSchema> {
    let exported = FFI_ArrowSchema::try_from(schema).map_err(of_arrow)?;
    // SAFETY: both are the structure of the C data interface, whose owner moves here.
    Ok(unsafe { ArrowSchema::from_raw(transmute::<FFI_ArrowSchema, ffi::ArrowSchema>(exported)) })
}

/// What turns the batches of one scan into chunks.
#[derive(Default)]
pub(crate) struct Handover {
    /// With the schema of the last batch. None of a scan of no stored columns, of which only rows are counted.
    importer: Option<(SchemaRef, ArrowImporter<'static>)>,
    /// Rows that wait where there is no importer.
    waiting: usize,
}

// SAFETY: DuckDB uses the state of a thread on one thread at a time, and the importer has no thread of its own.
unsafe impl Send for Handover {}

impl Handover {
    /// Takes the next batch, once [`Handover::next`] has nothing left of the last one.
    ///
    /// # Errors
    /// If DuckDB refuses it.
    pub(crate) fn give(&mut self, context: &Context, batch: RecordBatch) -> Result<()> {
        if batch.num_columns() == 0 {
            self.waiting = batch.num_rows();
            return Ok(());
        }
        let known = self.importer.take().filter(|(schema, _)| **schema == *batch.schema());
        let (schema, mut importer) = match known {
            Some(known) => known,
            None => (batch.schema(), importer(context, &batch.schema())?),
        };
        let array = FFI_ArrowArray::new(&StructArray::from(batch).to_data());
        // SAFETY: both are the structure of the C data interface, whose owner moves here.
        let array = unsafe { ArrowArray::from_raw(transmute::<FFI_ArrowArray, ffi::ArrowArray>(array)) };
        importer.append_consumed(array, true)?;
        self.importer = Some((schema, importer));
        Ok(())
    }

    /// Rows of the next chunk, with it unless there are no columns; `None` once the batch is used up.
    ///
    /// # Errors
    /// If DuckDB can't convert a value.
    pub(crate) fn next(&mut self) -> Result<Option<Rows>> {
        let Some((_, importer)) = &mut self.importer else {
            let rows = self.waiting.min(CHUNK_ROWS);
            self.waiting -= rows;
            return Ok((rows > 0).then_some(Rows { rows, vectors: Vec::new(), _chunk: None }));
        };
        let Some(chunk) = importer.next_chunk()? else { return Ok(None) };
        Ok(Some(Rows { rows: chunk.row_count()?, vectors: vectors(&chunk)?, _chunk: Some(chunk) }))
    }
}

fn importer(context: &Context, schema: &Schema) -> Result<ArrowImporter<'static>> {
    let importer = ArrowImporter::new(context, exported(schema)?, Some(CHUNK_ROWS))?;
    // SAFETY: a connection has one context throughout, and the states of a scan's threads go before it does ("a bind-time importer works
    // from the matching exec callback" are the words of DuckDB's interface).
    Ok(unsafe { transmute::<ArrowImporter<'_>, ArrowImporter<'static>>(importer) })
}

/// Rows on their way.
pub(crate) struct Rows {
    pub(crate) rows: usize,
    vectors: Vec<ffi::duckdb_v2_vector_handle>,
    /// What the vectors are part of.
    _chunk: Option<DataChunk<'static>>,
}

/// What a vector of the output gets.
pub(crate) enum Filled<'a> {
    /// A column of the chunk.
    Column(usize),
    /// One value in all rows.
    Constant(&'a Value),
}

impl Rows {
    /// Puts the rows into the output: each of its vectors refers to one of the chunk, which stays alive as long, or has one value in all rows.
    ///
    /// # Errors
    /// If the types differ, or there is no such column.
    pub(crate) fn fill<'a>(&self, output: &DataChunkRef<'_>, filled: impl Iterator<Item = Filled<'a>>) -> Result<()> {
        let to = vectors(output)?;
        for (vector, what) in to.into_iter().zip(filled) {
            match what {
                Filled::Column(at) => {
                    let source =
                        *self.vectors.get(at).ok_or_else(|| of_arrow(format!("a chunk has no column {at}")))?;
                    // SAFETY: both vectors are alive; the reference counts what it points to.
                    check(|failed| unsafe { ffi::duckdb_v2_vector_reference(vector, source, failed) })?;
                }
                Filled::Constant(value) => {
                    // SAFETY: the vector and the value are alive, and the value is copied.
                    check(|failed| unsafe {
                        ffi::duckdb_v2_vector_make_constant(vector, value.get_raw(), self.rows as u64, failed)
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Where the values of a flat column lie, for tests of what points where.
    pub(crate) fn address(&self, column: usize) -> Option<usize> {
        let vector = *self.vectors.get(column)?;
        let mut view = std::mem::MaybeUninit::<ffi::duckdb_v2_vector_view>::uninit();
        // SAFETY: the vector is alive, and the view is written before the call succeeds.
        let view = unsafe {
            check(|failed| ffi::duckdb_v2_vector_get_view(vector, view.as_mut_ptr(), failed)).ok()?;
            view.assume_init()
        };
        Some(view.data.addr())
    }
}

/// The vectors of a chunk.
fn vectors(chunk: &DataChunkRef<'_>) -> Result<Vec<ffi::duckdb_v2_vector_handle>> {
    // SAFETY: the handle is used while the chunk is borrowed.
    let handle = unsafe { chunk.get_raw() };
    let of = |at: usize| {
        let mut vector = std::ptr::null_mut();
        // SAFETY: the chunk is alive and has so many vectors.
        check(|failed| unsafe { ffi::duckdb_v2_data_chunk_get_vector(handle, at as u64, &raw mut vector, failed) })?;
        Ok(vector)
    };
    (0..chunk.col_count()).map(of).collect()
}

/// Calls DuckDB and takes over the error it may leave.
fn check(call: impl FnOnce(*mut ffi::duckdb_v2_error_info_handle) -> ffi::DUCKDB_V2_ERROR) -> Result<()> {
    let mut failed: ffi::duckdb_v2_error_info_handle = std::ptr::null_mut();
    let code = call(&raw mut failed);
    if code == ffi::DUCKDB_V2_ERROR::DUCKDB_V2_ERROR_NONE {
        return Ok(());
    }
    let mut text = ffi::duckdb_v2_str::default();
    let mut message = String::new();
    if !failed.is_null() {
        // SAFETY: the error is ours until it is destroyed, and its text with it.
        unsafe {
            if ffi::duckdb_v2_error_info_get_text(failed, &raw mut text) == ffi::DUCKDB_V2_ERROR::DUCKDB_V2_ERROR_NONE
                && !text.ptr.is_null()
            {
                let bytes = std::slice::from_raw_parts(text.ptr.cast::<u8>(), usize::try_from(text.len).unwrap_or(0));
                message = String::from_utf8_lossy(bytes).into_owned();
            }
            ffi::duckdb_v2_error_info_destroy(&raw mut failed);
        }
    }
    Err(crate::failure::error(duckdb_neo::error::DuckDBError::QueryExecutor, message))
}

/// Rows that DuckDB hands over, as batches.
pub(crate) struct Taken<'a> {
    exporter: ArrowExporter<'a>,
    schema: Schema,
}

impl<'a> Taken<'a> {
    /// For chunks of these columns.
    ///
    /// # Errors
    /// If Arrow has no type for one.
    pub(crate) fn new(context: &'a Context, columns: &[(&str, LogicalType)]) -> Result<Self> {
        let exporter = ArrowExporter::new(context, columns, Some(CHUNK_ROWS * 32))?;
        // SAFETY: both are the structure of the C data interface, whose owner moves here.
        let schema = unsafe { transmute::<ffi::ArrowSchema, FFI_ArrowSchema>(exporter.schema()?.into_raw()) };
        let schema = Schema::try_from(&schema).map_err(of_arrow)?;
        Ok(Self { exporter, schema })
    }

    /// The columns as Arrow has them.
    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Takes a chunk; batches that are full go to `take`.
    ///
    /// # Errors
    /// If a value has no counterpart, or `take` fails.
    pub(crate) fn append(
        &mut self,
        chunk: &DataChunkRef<'_>,
        take: impl FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        self.exporter.append(chunk, false)?;
        self.drain(take)
    }

    /// Gives the rows that are left.
    ///
    /// # Errors
    /// As [`Taken::append`].
    pub(crate) fn finish(mut self, take: impl FnMut(RecordBatch) -> Result<()>) -> Result<()> {
        self.exporter.flush()?;
        self.drain(take)
    }

    fn drain(&mut self, mut take: impl FnMut(RecordBatch) -> Result<()>) -> Result<()> {
        while let Some(array) = self.exporter.next_array()? {
            // SAFETY: as above; DuckDB made the array for the schema that it made with it.
            let data = unsafe {
                let array = transmute::<ffi::ArrowArray, FFI_ArrowArray>(array.into_raw());
                arrow_array::ffi::from_ffi_and_data_type(
                    array,
                    arrow_schema::DataType::Struct(self.schema.fields().clone()),
                )
            };
            take(RecordBatch::from(StructArray::from(data.map_err(of_arrow)?)))?;
        }
        Ok(())
    }
}
