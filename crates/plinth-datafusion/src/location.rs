//! Object store locations of local files, and back.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion_common::{DataFusionError, Result};
use datafusion_datasource::ListingTableUrl;
use object_store::path::Path as Location;
use object_store::{ObjectMeta, ObjectStore};
use plinth_io::{Identity, Io, Object, Objects, Source};
use plinth_objects::{Connected, ObjectFile, ObjectStores};

/// A store that is not the local file system.
pub(crate) type Remote = Option<Connected>;

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

/// The store, if it is not the local file system, as the session's stores know it. A store does not say what it is but in
/// its name.
pub(crate) fn remote(store: &Arc<dyn ObjectStore>, objects: Option<&Arc<dyn Objects>>) -> Remote {
    if store.to_string().contains("LocalFileSystem") {
        return None;
    }
    let any = objects.map(|objects| objects.as_ref() as &dyn Any);
    let known = any.and_then(|any| any.downcast_ref::<ObjectStores>()).and_then(|stores| stores.of_client(store));
    Some(known.unwrap_or_else(|| Connected::of(Arc::clone(store))))
}

/// An object of a store that was listed.
pub(crate) fn open(store: &Connected, object: &ObjectMeta, io: &Io) -> Arc<dyn Source> {
    let tag = object.e_tag.clone();
    let identity = Identity::of_object(object.size, object.last_modified.into(), tag.as_deref());
    let object_of_store = Object { url: store.url(&object.location), identity, tag };
    Arc::new(ObjectFile::new(store.clone(), object.location.clone(), &object_of_store, io))
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
