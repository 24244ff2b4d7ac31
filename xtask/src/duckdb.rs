//! The extension of DuckDB: the library, built and signed off.

use std::process::Command;

use crate::footer;
use crate::python::{run, target};

/// Builds the extension and says where it is. Arguments go to `cargo build`.
///
/// # Errors
/// If it can't be built, or DuckDB has no platform for this machine.
pub(crate) fn build(more: &[String]) -> Result<(), String> {
    let platform = footer::platform()?;
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    run(Command::new(cargo).args(["build", "--release", "--locked", "--package", "plinth-duckdb"]).args(more))?;
    let folder = target()?.join("release");
    let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let library = folder.join(format!("{prefix}plinth_duckdb{suffix}"));
    let bytes = std::fs::read(&library).map_err(|e| format!("{}: {e}", library.display()))?;
    let extension = folder.join("plinth.duckdb_extension");
    let signed = footer::sign_off(bytes, platform, env!("CARGO_PKG_VERSION"));
    std::fs::write(&extension, signed).map_err(|e| format!("{}: {e}", extension.display()))?;
    println!("LOAD '{}';", extension.display());
    Ok(())
}
