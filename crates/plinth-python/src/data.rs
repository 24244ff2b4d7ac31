//! Data of Python as tables: whatever gives its rows as a stream of Arrow's, without a copy.

use std::fmt;
use std::sync::{Arc, Mutex};

use arrow_schema::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, Result as EngineResult};
use datafusion::datasource::TableType;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion_ffi::proto::logical_extension_codec::FFI_LogicalExtensionCodec;
use futures::future::BoxFuture;
use plinth_adbc::c_data::{CSchema, CStream, Reader};
use plinth_core::sync::lock;
use plinth_sql::{ErrorKind, SqlError, with_null_keys};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::{Failure, InterfaceError, ProgrammingError};

/// Batches that wait for the query.
const WAITING: usize = 2;

/// The method of Arrow's PyCapsule interface.
const STREAM: &str = "__arrow_c_stream__";

/// Rows of an object, from their beginning.
pub(crate) fn read(object: &Bound<'_, PyAny>) -> PyResult<Reader> {
    let capsule = object.call_method0(STREAM)?;
    let capsule = capsule.cast::<PyCapsule>()?;
    let reader = Reader::new(stream_of(capsule)?);
    reader.map_err(|what| InterfaceError::new_err(format!("{}: {what}", type_name(object))))
}

/// Moves a stream out of its capsule, which is left with a released one.
#[allow(unsafe_code)]
fn stream_of(capsule: &Bound<'_, PyCapsule>) -> PyResult<CStream> {
    let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<CStream>();
    // SAFETY: a capsule of this name holds a stream, released or not, and only this thread has the interpreter.
    Ok(unsafe { std::ptr::replace(stream.as_ptr(), CStream::empty()) })
}

/// The schema of a capsule, which keeps it.
#[allow(unsafe_code)]
pub(crate) fn schema_of(capsule: &Bound<'_, PyCapsule>) -> PyResult<Schema> {
    let schema = capsule.pointer_checked(Some(c"arrow_schema"))?.cast::<CSchema>();
    // SAFETY: a capsule of this name holds a schema, released or not, and only this thread has the interpreter.
    let schema = unsafe { schema.as_ref() };
    Ok(schema.to_schema().map_err(Failure::Data)?)
}

/// How a session of the package `datafusion` writes expressions that it hands over.
#[allow(unsafe_code)]
pub(crate) fn codec_of(session: &Bound<'_, PyAny>) -> PyResult<FFI_LogicalExtensionCodec> {
    let capsule = session.call_method0("__datafusion_logical_extension_codec__")?;
    let codec = capsule.cast::<PyCapsule>()?.pointer_checked(Some(c"datafusion_logical_extension_codec"))?;
    // SAFETY: a capsule of this name holds a codec, and only this thread has the interpreter.
    Ok(unsafe { codec.cast::<FFI_LogicalExtensionCodec>().as_ref() }.clone())
}

fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "an object".to_owned(), |name| name.to_string())
}

/// An object as a table.
pub(crate) struct PythonTable(Arc<Shared>);

struct Shared {
    name: String,
    object: Py<PyAny>,
    schema: SchemaRef,
    /// The stream that told the columns, for the first scan of all of them.
    first: Mutex<Option<Reader>>,
    /// Whether the object gives its rows once.
    once: bool,
    /// Whether the object can be asked for some of its columns.
    selects: bool,
}

impl fmt::Debug for PythonTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonTable").field("name", &self.0.name).finish_non_exhaustive()
    }
}

impl PythonTable {
    /// An object that a statement names. One that has `_plinth_select` is asked for the columns that a scan wants.
    pub(crate) fn new(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if !object.hasattr(STREAM)? {
            let what = type_name(object);
            return Err(ProgrammingError::new_err(format!(
                "{name} is a variable of type {what}, which gives no Arrow data ({STREAM})"
            )));
        }
        let reader = read(object)?;
        let (schema, once) = (reader.schema(), object.hasattr("read_next_batch")?);
        let selects = object.hasattr("_plinth_select")?;
        let (name, object, first) = (name.to_owned(), object.clone().unbind(), Mutex::new(Some(reader)));
        Ok(Self(Arc::new(Shared { name, object, schema, first, once, selects })))
    }
}

impl Shared {
    /// A stream with the columns of a scan.
    fn open(&self, columns: Option<&[String]>) -> EngineResult<Reader> {
        let first = lock(&self.first).take();
        if let (Some(first), None) = (first, columns) {
            return Ok(first);
        }
        let failed = |what: String| SqlError::of(ErrorKind::Execution, format!("{}: {what}", self.name)).into();
        let opened = Python::try_attach(|py| -> PyResult<Reader> {
            let object = self.object.bind(py);
            match columns {
                Some(columns) => read(&object.call_method1("_plinth_select", (columns.to_vec(),))?),
                None => read(object),
            }
        });
        match opened {
            Some(reader) => reader.map_err(|e| failed(e.to_string())),
            None => Err(failed("the interpreter is shutting down".to_owned())),
        }
    }
}

impl TableProvider for PythonTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.0.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    // `async_trait`'s signature, written out as in the crates below.
    fn scan<'a: 'e, 'b: 'e, 'c: 'e, 'd: 'e, 'e>(
        &'a self,
        _: &'b dyn Session,
        projection: Option<&'c Vec<usize>>,
        _: &'d [Expr],
        limit: Option<usize>,
    ) -> BoxFuture<'e, EngineResult<Arc<dyn ExecutionPlan>>> {
        let plan = (|| {
            let all = projection.is_none_or(|columns| columns.len() == self.0.schema.fields().len());
            // What can't be asked for some gives all, of which some are passed on.
            let asked = projection.filter(|columns| self.0.selects && !all && !columns.is_empty());
            let (schema, columns, passed) = match asked {
                Some(columns) => {
                    let schema = Arc::new(self.0.schema.project(columns)?);
                    let names = schema.fields().iter().map(|field| field.name().clone()).collect();
                    (schema, Some(names), None)
                }
                None => (Arc::clone(&self.0.schema), None, projection),
            };
            let part = Part { table: Arc::clone(&self.0), schema: Arc::clone(&schema), columns };
            let plan = StreamingTableExec::try_new(schema, vec![Arc::new(part)], passed, [], false, limit)?;
            Ok(Arc::new(plan) as Arc<dyn ExecutionPlan>)
        })();
        Box::pin(std::future::ready(plan))
    }
}

/// What a scan reads.
struct Part {
    table: Arc<Shared>,
    schema: SchemaRef,
    columns: Option<Vec<String>>,
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("name", &self.table.name).field("columns", &self.columns).finish_non_exhaustive()
    }
}

impl PartitionStream for Part {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut stream = RecordBatchReceiverStream::builder(Arc::clone(&self.schema), WAITING);
        let (rows, table, columns, schema) =
            (stream.tx(), Arc::clone(&self.table), self.columns.clone(), Arc::clone(&self.schema));
        // Its producer may wait, for the interpreter as well.
        stream.spawn_blocking(move || {
            let failed = |what: String| -> DataFusionError {
                SqlError::of(ErrorKind::Execution, format!("{}: {what}", table.name)).into()
            };
            let spent = table.once && lock(&table.first).is_none();
            if spent {
                return Err(failed(
                    "gives its rows once, and a statement has read them; make a table of it".to_owned(),
                ));
            }
            let mut reader = table.open(columns.as_deref())?;
            if reader.schema().fields() != schema.fields() {
                return Err(failed("has other columns than when the statement was planned".to_owned()));
            }
            while let Some(batch) = reader.next().map_err(failed)? {
                let batch = with_null_keys(batch.with_schema(Arc::clone(&schema))?)?;
                if rows.blocking_send(Ok(batch)).is_err() {
                    break;
                }
            }
            Ok(())
        });
        stream.build()
    }
}
