//! Names in FROM that are paths: `FROM 'hits.plinth'`, `FROM 'folder'`.

use duckdb_neo::ToValue;
use duckdb_neo::connection::Context;
use duckdb_neo::extension::Extension;
use duckdb_neo::qualified_name::QualifiedName;
use duckdb_neo::replacement_scan::{
    ReplacementHandle, ReplacementScanBuilder, ReplacementScanCallbacks, ReplacementType,
};

use crate::failure::{Result, guarded};
use crate::{function, places};

struct ByPath;

impl ReplacementScanCallbacks for ByPath {
    fn scan(&self, context: &Context, name: &QualifiedName, handle: ReplacementHandle<'_>) -> Result<()> {
        guarded(|| {
            // A name with a catalog or a schema is no path.
            let [path] = &name.parts()?[..] else { return Ok(()) };
            if !places::is_ours(path) {
                return Ok(());
            }
            handle.set_reference(ReplacementType::Table(QualifiedName::from_parts(&[function::SCAN])?))?;
            handle.add_parameter_with_name(function::PATH, path.value(context)?)?;
            match std::path::Path::new(path).file_stem().and_then(|stem| stem.to_str()) {
                Some(stem) if !stem.contains('*') => handle.set_alias(stem),
                _ => Ok(()),
            }
        })
    }
}

/// Makes paths known to FROM.
///
/// # Errors
/// If DuckDB refuses.
pub(crate) fn register(extension: &Extension) -> Result<()> {
    ReplacementScanBuilder::new(ByPath).register(extension)
}
