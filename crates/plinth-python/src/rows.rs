//! The rows of a statement, for Python: fetched as tuples, or handed over as a stream of Arrow's.

use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, SchemaRef};
use datafusion::arrow::compute::{CastOptions, cast_with_options, concat_batches};
use plinth_adbc::c_data::{CSchema, export};
use plinth_core::sync::lock;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyTuple};

use crate::data::schema_of;
use crate::error::Failure;
use crate::inner::{Running, Source};
use crate::values::tuples;
use crate::wait::{raise_again, without_lock};

/// What a statement answers.
#[pyclass(frozen, module = "plinth._native")]
#[derive(Debug)]
pub(crate) struct Rows {
    source: Arc<Source>,
    fetching: Mutex<Fetching>,
}

/// Rows that are fetched one after the other.
#[derive(Debug, Default)]
struct Fetching {
    running: Option<Arc<Running>>,
    /// What is left of the last batch.
    batch: Option<RecordBatch>,
}

impl Fetching {
    /// At least one row of at most `most`, unless there is none.
    fn take(&mut self, source: &Source, most: usize) -> Result<Option<RecordBatch>, Failure> {
        let running = match &self.running {
            Some(running) => Arc::clone(running),
            None => Arc::clone(self.running.insert(source.open()?)),
        };
        loop {
            let batch = match self.batch.take() {
                Some(batch) => batch,
                None => match running.next()? {
                    Some(batch) => batch,
                    None => return Ok(None),
                },
            };
            if batch.num_rows() > most {
                self.batch = Some(batch.slice(most, batch.num_rows() - most));
                return Ok(Some(batch.slice(0, most)));
            }
            if batch.num_rows() > 0 {
                return Ok(Some(batch));
            }
        }
    }
}

impl Rows {
    pub(crate) fn new(source: Arc<Source>) -> Self {
        Self { source, fetching: Mutex::default() }
    }
}

#[pymethods]
impl Rows {
    /// Names, types as Arrow writes them, and whether there may be NULL.
    #[getter]
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let schema = self.source.schema();
        let columns = schema.fields().iter();
        PyList::new(
            py,
            columns
                .map(|field| (field.name().clone(), field.data_type().to_string(), field.is_nullable()))
                .collect::<Vec<_>>(),
        )
    }

    /// Whether the statement is a query, whose rows are made as they are asked for.
    #[getter]
    fn is_query(&self) -> bool {
        self.source.answer().is_none()
    }

    /// Rows that the statement has changed, if it is one that says so.
    #[getter]
    fn changed(&self) -> Option<u64> {
        let batch = self.source.answer()?.first()?;
        let counts = batch.column_by_name("count")?.as_primitive_opt::<UInt64Type>()?;
        (batch.num_columns() == 1 && batch.num_rows() == 1).then(|| counts.value(0))
    }

    /// The next rows as tuples: at most `most`, or all that are left.
    #[pyo3(signature = (most=None))]
    fn fetch<'py>(&self, py: Python<'py>, most: Option<usize>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let mut rows = Vec::new();
        loop {
            let left = most.map_or(usize::MAX, |most| most.saturating_sub(rows.len()));
            if left == 0 {
                return Ok(rows);
            }
            // Never both: a thread that holds this lock may need the interpreter's.
            match py.detach(|| lock(&self.fetching).take(&self.source, left))? {
                Some(batch) => rows.extend(tuples(py, &batch)?),
                None => return Ok(rows),
            }
        }
    }

    /// Runs a query from its beginning in the background: the first rows of `fetch` come sooner.
    fn start(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            let mut fetching = lock(&self.fetching);
            if fetching.running.is_none() {
                fetching.running = Some(self.source.open()?);
            }
            Ok::<_, Failure>(())
        })?;
        Ok(())
    }

    /// The same rows once more, fetched from the first.
    fn again(&self) -> Self {
        Self::new(Arc::clone(&self.source))
    }

    /// Ends the fetching of rows.
    fn close(&self, py: Python<'_>) {
        if let Some(running) = py.detach(|| std::mem::take(&mut *lock(&self.fetching))).running {
            running.cancel();
        }
    }

    /// The columns as a capsule of Arrow's.
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = CSchema::of_schema(self.source.schema()).map_err(Failure::Data)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// All rows, from the first, as a capsule of Arrow's: of the types that a schema asks for, and put together to batches of
    /// about so many rows, or as they come.
    #[pyo3(signature = (requested_schema=None, rows=1))]
    fn stream<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyCapsule>>,
        rows: usize,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = match requested_schema {
            Some(requested) => Arc::new(schema_of(requested)?),
            None => Arc::clone(self.source.schema()),
        };
        if schema.fields().len() != self.source.schema().fields().len() {
            let what = "the schema that is asked for has another number of columns than the rows";
            return Err(Failure::Data(what.to_owned()).into());
        }
        // What has no counterpart in C is told before anything runs.
        CSchema::of_schema(&schema).map_err(Failure::Data)?;
        let source = Arc::clone(&self.source);
        let mut pieces = Pieces::new(py.detach(|| source.open())?, rows);
        let given = Arc::clone(&schema);
        let next = move || {
            let next = without_lock(|| pieces.next()?.map(|batches| as_one(&batches, &given)).transpose());
            next.map_err(|failure| {
                source.fail(&failure);
                let text = failure.to_string();
                resignal(failure);
                text
            })
        };
        let stream = export(schema, Box::new(next));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// All rows, from the first, about so many at a time.
    #[pyo3(signature = (rows=1))]
    fn batches(&self, py: Python<'_>, rows: usize) -> PyResult<Batches> {
        Ok(Batches(Mutex::new(Pieces::new(py.detach(|| self.source.open())?, rows))))
    }

    /// Raises why the rows of the last stream ended, if that was an error.
    fn raise_failure(&self) -> PyResult<()> {
        self.source.take_failure().map_or(Ok(()), |failure| Err(failure.into()))
    }

    /// All batches as they are, counted: what a query costs without anything made of its rows.
    fn drain(&self, py: Python<'_>) -> PyResult<u64> {
        let rows = py.detach(|| {
            let running = self.source.open()?;
            let mut rows = 0_u64;
            while let Some(batch) = running.next()? {
                rows += batch.num_rows() as u64;
            }
            Ok::<_, Failure>(rows)
        })?;
        Ok(rows)
    }
}

/// A signal whose handler raised an exception within a call of C is to be raised by the interpreter once more.
fn resignal(failure: Failure) {
    let Failure::Python(error) = failure else { return };
    let keyboard = Python::try_attach(|py| error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py));
    if keyboard == Some(true) {
        raise_again();
    }
}

/// Batches that are handed over together: one at first, then more and more, so that the first rows come soon and what a call
/// costs is shared by many.
#[derive(Debug)]
struct Pieces {
    running: Arc<Running>,
    rows: usize,
    most: usize,
}

impl Pieces {
    fn new(running: Arc<Running>, most: usize) -> Self {
        Self { running, rows: 1, most }
    }

    fn next(&mut self) -> Result<Option<Vec<RecordBatch>>, Failure> {
        let (mut batches, mut rows) = (Vec::new(), 0);
        while rows < self.rows {
            let Some(batch) = self.running.next()? else { break };
            // Beside one without rows, another would be copied.
            if batch.num_rows() == 0 {
                continue;
            }
            rows += batch.num_rows();
            batches.push(batch);
        }
        self.rows = rows.saturating_mul(2).clamp(1, self.most.max(1));
        Ok((!batches.is_empty()).then_some(batches))
    }
}

/// Batches as one of a schema. Types that differ are cast.
fn as_one(batches: &[RecordBatch], schema: &SchemaRef) -> Result<RecordBatch, Failure> {
    let failed = |error: ArrowError| Failure::Data(error.to_string());
    let batch = match batches {
        [batch] => batch.clone(),
        several => {
            let first = several.first().map(RecordBatch::schema);
            let first = first.ok_or_else(|| Failure::Data("rows of no batch were asked for".to_owned()))?;
            concat_batches(&first, several).map_err(failed)?
        }
    };
    let columns = batch.columns().iter().zip(schema.fields()).map(|(column, field)| {
        if column.data_type() == field.data_type() {
            return Ok(Arc::clone(column));
        }
        cast_with_options(column, field.data_type(), &CastOptions { safe: false, ..CastOptions::default() })
    });
    let columns = columns.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options).map_err(failed)
}

/// Rows, which every library that knows Arrow takes as they are.
#[pyclass(frozen, module = "plinth._native")]
#[derive(Debug)]
pub(crate) struct Batch(Vec<RecordBatch>);

#[pymethods]
impl Batch {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer keep to its own schema.
        let _ = requested_schema;
        let schema = self.0.first().map(RecordBatch::schema);
        let schema = schema.ok_or_else(|| Failure::Data("there is no batch".to_owned()))?;
        let mut batches = self.0.clone().into_iter();
        let stream = export(schema, Box::new(move || Ok(batches.next())));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __len__(&self) -> usize {
        self.0.iter().map(RecordBatch::num_rows).sum()
    }
}

/// The batches of a result, one after the other.
#[pyclass(frozen, module = "plinth._native")]
#[derive(Debug)]
pub(crate) struct Batches(Mutex<Pieces>);

#[pymethods]
impl Batches {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        Ok(py.detach(|| lock(&self.0).next())?.map(Batch))
    }
}
