//! Object store locations of local files, and back.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion_common::{DataFusionError, Result};
use datafusion_datasource::ListingTableUrl;
use object_store::ObjectStore;
use object_store::path::Path as Location;

/// A store that is not the local file system.
pub(crate) type Remote = Option<Arc<dyn ObjectStore>>;

/// The file a location of the `file://` store means. A location is the decoded path without its leading separator, so
/// spaces and letters of any script stand as they are.
pub(crate) fn to_path(location: &Location) -> PathBuf {
    if cfg!(windows) { PathBuf::from(location.as_ref()) } else { Path::new("/").join(location.as_ref()) }
}

/// The location of a local file.
pub(crate) fn from_path(path: &Path) -> Location {
    let absolute = path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_path_buf());
    // Names that a location can't hold (not UTF-8, for one) come out escaped: good enough to show, and the open handle
    // that travels with the location is what is read.
    Location::from_absolute_path(&absolute).unwrap_or_else(|_| Location::from(absolute.to_string_lossy().into_owned()))
}

/// The local path of a URL, or an error that says which schemes work.
pub(crate) fn of_url(url: &ListingTableUrl) -> Result<PathBuf> {
    check_scheme(url.scheme(), url.as_str())?;
    Ok(to_path(url.prefix()))
}

/// The store, if it is not the local file system. A store does not say what it is but in its name.
pub(crate) fn remote(store: &Arc<dyn ObjectStore>) -> Remote {
    (!store.to_string().contains("LocalFileSystem")).then(|| Arc::clone(store))
}

/// Refuses what is not on the local file system.
pub(crate) fn check_scheme(scheme: &str, url: &str) -> Result<()> {
    if scheme == "file" {
        return Ok(());
    }
    Err(DataFusionError::NotImplemented(format!(
        "{url}: files are written to, and named by path on, the local file system only, not {scheme}://; register the store and \
         create an external table to read from it"
    )))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
