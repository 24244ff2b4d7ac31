//! Objects of stores, for the commands that open files themselves: with what the environment says, and nothing kept on the drive.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use plinth_format::{File, OpenOptions};
use plinth_io::Objects;
use plinth_io::objects::{is_pattern, is_url};
use plinth_objects::{ObjectStores, ObjectStoresOptions};
use plinth_profile::StoreTraffic;
use plinth_rowstore::unasked_segments;

use crate::error::{Failure, Result};

/// The stores.
pub(crate) fn stores() -> Arc<dyn Objects> {
    Arc::clone(known()) as _
}

fn known() -> &'static Arc<ObjectStores> {
    static STORES: OnceLock<Arc<ObjectStores>> = OnceLock::new();
    STORES.get_or_init(|| Arc::new(ObjectStores::new(ObjectStoresOptions::default())))
}

/// What this process asked of stores so far, but for statements of SQL; none if nothing.
pub(crate) fn traffic() -> Option<StoreTraffic> {
    plinth_sql::of_stores(known().traffic())
}

/// How Plinth files are opened that may be objects.
pub(crate) fn options() -> OpenOptions {
    OpenOptions { objects: Some(stores()), ..OpenOptions::default() }
}

/// Opens a Plinth file of this machine or of a store.
pub(crate) fn open(path: &Path) -> Result<File> {
    Ok(File::open_with(path, &options())?)
}

/// Refuses the URL of an object where a path of this machine is needed.
pub(crate) fn local(path: &Path) -> Result {
    if is_url(path) {
        let path = path.display();
        let what = "this can't be in an object store; name a path of this machine";
        return Err(Failure::new(format!("{path}: {what}")));
    }
    Ok(())
}

/// The Plinth files that a URL names if it names several. None if it is the URL of one, or a path of this machine.
pub(crate) fn several(path: &Path) -> Result<Option<Vec<PathBuf>>> {
    let Some(url) = path.to_str().filter(|url| is_url(url) && (url.ends_with('/') || is_pattern(url))) else {
        return Ok(None);
    };
    let found = stores().find(url).map_err(Failure::new)?;
    if let Some(what) = unasked_segments(url, found.iter().map(|object| &object.url).filter(|_| is_pattern(url))) {
        return Err(Failure::new(what));
    }
    let found = plinth_table::current(found, Some(url), &stores())?;
    let found = found.into_iter().map(|object| PathBuf::from(object.url));
    let files: Vec<PathBuf> = found.filter(|path| path.extension().is_some_and(|e| e == "plinth")).collect();
    if files.is_empty() {
        return Err(Failure::new(format!("{url}: no object here ends in .plinth")));
    }
    Ok(Some(files))
}
