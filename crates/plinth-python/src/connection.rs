//! Connections, for Python.

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion_ffi::table_provider::FFI_TableProvider;
use plinth_adbc::c_data::export;
use plinth_adbc::number_places;
use plinth_core::units::parse_bytes;
use plinth_sql::{ObjectStoresOptions, Params, SessionOptions, SqlError, Statement, parse};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::data::{PythonTable, codec_of, read};
use crate::error::{Failure, InterfaceError, ProgrammingError};
use crate::inner::{Inner, Source};
use crate::rows::Rows;
use crate::variables::{is_table, names_of};

/// A session: SQL over files, over tables that can be written to, and over data of Python.
#[pyclass(frozen, module = "plinth._native")]
#[derive(Debug)]
pub(crate) struct Connection(Arc<Inner>);

/// Memory as bytes, or as a text such as "4GB".
#[derive(FromPyObject)]
enum Memory {
    Bytes(u64),
    Text(String),
}

#[pymethods]
impl Connection {
    #[new]
    #[pyo3(signature = (db=None, memory=None, threads=None))]
    fn new(py: Python<'_>, db: Option<PathBuf>, memory: Option<Memory>, threads: Option<usize>) -> PyResult<Self> {
        let objects = ObjectStoresOptions::of_user();
        let mut options = SessionOptions { db, objects, ..SessionOptions::default() };
        match memory {
            Some(Memory::Bytes(bytes)) => options.memory = bytes,
            Some(Memory::Text(text)) => {
                options.memory = parse_bytes(&text).map_err(|e| InterfaceError::new_err(format!("memory: {e}")))?;
            }
            None => {}
        }
        match threads {
            Some(0) => return Err(InterfaceError::new_err("threads: at least one is needed")),
            Some(threads) => options.threads = threads,
            None => {}
        }
        Ok(Self(py.detach(|| Inner::open(options)).map_err(opening)?))
    }

    /// Runs statements, and all but the last to their ends. `variables` is called with names that are no tables, and returns the
    /// object that a name stands for, or None.
    #[pyo3(signature = (sql, params=None, variables=None))]
    fn start(
        &self,
        py: Python<'_>,
        sql: &str,
        params: Option<&Bound<'_, PyAny>>,
        variables: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Rows> {
        self.0.session()?;
        let (values, given) = crate::params::params(params)?;
        let mut statements = py.detach(|| parse(sql)).map_err(Failure::from)?;
        let places: Vec<usize> = statements.iter_mut().map(number_places).collect();
        if let [wanted] = places.as_slice()
            && *wanted > 0
            && *wanted != given
        {
            let what = format!("the statement has {wanted} places for values, and {given} were given");
            return Err(ProgrammingError::new_err(what));
        }
        let Some(last) = statements.pop() else { return Err(ProgrammingError::new_err("no statement")) };
        for statement in statements {
            let rows = self.begin(py, statement, values.clone(), variables)?;
            py.detach(|| {
                let running = rows.open()?;
                while running.next()?.is_some() {}
                Ok::<_, Failure>(())
            })?;
        }
        Ok(Rows::new(self.begin(py, last, values, variables)?))
    }

    /// Makes an object known by a name, as a table that statements read.
    fn register(&self, py: Python<'_>, name: &str, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let session = self.0.session()?;
        let table: Arc<dyn TableProvider> = Arc::new(PythonTable::new(name, object)?);
        let done = py.detach(|| session.context().register_table(quoted(name), table).map_err(SqlError::from));
        done.map_err(Failure::from)?;
        Ok(())
    }

    /// Forgets a name; whether there was one.
    fn unregister(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        let session = self.0.session()?;
        let done = py.detach(|| session.context().deregister_table(quoted(name)).map_err(SqlError::from));
        Ok(done.map_err(Failure::from)?.is_some())
    }

    /// The names of tables that need no path.
    fn tables(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let session = self.0.session()?;
        Ok(py.detach(|| session.table_names()))
    }

    /// What is selected from by a name or a path in SQL, as a capsule for a session of the package `datafusion`.
    fn provider<'py>(
        &self,
        py: Python<'py>,
        what: &str,
        session: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let codec = codec_of(session)?;
        let (provider, handle) = py.detach(|| self.0.provider(what))?;
        let provider = FFI_TableProvider::new_with_ffi_codec(Arc::new(provider), true, Some(handle), codec);
        PyCapsule::new_with_value(py, provider, c"datafusion_table_provider")
    }

    /// The columns of the key of a table; none if it has none.
    fn key(&self, py: Python<'_>, name: &str) -> PyResult<Vec<String>> {
        Ok(py.detach(|| self.0.key(name))?)
    }

    /// Whether a transaction is open.
    #[getter]
    fn in_transaction(&self) -> PyResult<bool> {
        Ok(self.0.session()?.in_transaction())
    }

    /// Rows read, rows there are as far as known, and bytes read by the statement that was planned last.
    fn progress(&self, py: Python<'_>) -> PyResult<Option<(u64, Option<u64>, u64)>> {
        let session = self.0.session()?;
        Ok(py.detach(|| session.progress()).map(|done| (done.rows, done.of_rows, done.bytes)))
    }

    /// Asks all that runs to stop.
    fn interrupt(&self, py: Python<'_>) {
        py.detach(|| self.0.interrupt());
    }

    /// Ends all that runs, and lets go of files and threads.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }

    #[getter]
    fn closed(&self) -> bool {
        !self.0.is_open()
    }
}

impl Connection {
    fn begin(
        &self,
        py: Python<'_>,
        mut statement: Statement,
        values: Params,
        variables: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Arc<Source>> {
        let mut tables: Vec<(String, Arc<dyn TableProvider>)> = Vec::new();
        if let Some(variables) = variables {
            let session = self.0.session()?;
            let mut names = names_of(&mut statement);
            py.detach(|| names.retain(|name| !is_table(&session, name)));
            for name in names {
                let object = variables.call1((&name,))?;
                if !object.is_none() {
                    tables.push((name.clone(), Arc::new(PythonTable::new(&name, &object)?)));
                }
            }
        }
        Ok(py.detach(|| Source::new(&self.0, statement, values, tables))?)
    }
}

/// A name as a reference to a table that has these letters.
fn quoted(name: &str) -> datafusion::common::TableReference {
    datafusion::common::TableReference::bare(name)
}

/// A session that can't be opened: its folder is to blame, not a statement.
fn opening(failure: Failure) -> PyErr {
    match failure {
        Failure::Statement(error) => crate::error::OperationalError::new_err(error.to_string()),
        other => other.into(),
    }
}

/// A stream of an object once more, as a capsule: for those that take no object.
#[pyfunction]
pub(crate) fn restream<'py>(py: Python<'py>, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyCapsule>> {
    let mut reader = read(object)?;
    let stream = export(reader.schema(), Box::new(move || reader.next()));
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}
