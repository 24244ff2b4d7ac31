//! The native part of the Python package `plinth`: connections, and rows as Python's values or Arrow's streams. What users see is in
//! `python/plinth`.

mod calendar;
mod connection;
mod data;
mod error;
mod inner;
mod params;
mod provider;
mod rows;
mod values;
mod variables;
mod wait;

/// What drivers of ADBC are found by: the module of Python is one.
pub use plinth_adbc::{AdbcDriverInit, PlinthDriverInit};

/// The module `plinth._native`.
#[pyo3::pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::connection::{Connection, restream};
    #[pymodule_export]
    use super::error::{
        DataError, DatabaseError, Error, IntegrityError, InterfaceError, InternalError, InterruptedError,
        NotSupportedError, OperationalError, ProgrammingError, Warning,
    };
    #[pymodule_export]
    use super::rows::{Batch, Batches, Rows};

    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::wait::this_is_main();
        Ok(())
    }
}
