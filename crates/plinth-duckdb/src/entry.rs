//! Where DuckDB enters.
#![allow(unsafe_code, unreachable_pub, reason = "the macro exports a function of C")]

use std::error::Error;
use std::sync::Arc;

use duckdb_neo::duckdb_entrypoint_c_api_v2;
use duckdb_neo::extension::Extension;

use crate::shelf::Shelf;
use crate::{buffers, copy, function, replacement, settings};

/// Registers settings, functions, the format of COPY, and what names in FROM mean.
///
/// # Errors
/// If DuckDB refuses one, or something panics.
#[duckdb_entrypoint_c_api_v2(extension_name = "plinth", api_version = "v2.0.0")]
pub(crate) fn load(extension: &Extension) -> Result<(), Box<dyn Error>> {
    let shelf = Arc::<Shelf>::default();
    crate::failure::guarded(|| {
        settings::register(extension)?;
        function::register(extension, &shelf)?;
        buffers::register(extension, &shelf)?;
        copy::register(extension, &shelf)?;
        replacement::register(extension)
    })?;
    Ok(())
}
