//! A file of a table as it was listed, of this machine or of a store.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;

use plinth_format::Result;
use plinth_io::{Identity, IoError, Object, Objects, objects};

/// A file of a table as it was listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Where it is.
    pub path: PathBuf,
    /// Which file that was.
    pub identity: Identity,
    /// As its store told of it, if its path is a URL.
    pub object: Option<Object>,
}

impl Listed {
    /// These files as they are now; those whose paths are URLs in the stores that are given.
    ///
    /// # Errors
    /// If one is not there or is none.
    pub fn all(paths: impl IntoIterator<Item = PathBuf>, stores: Option<&Arc<dyn Objects>>) -> Result<Vec<Self>> {
        let one = |path: PathBuf| {
            if let Some(object) = objects::one(stores, &path)? {
                return Ok(Self::of_object(object));
            }
            plinth_io::regular::check(&path)?;
            let gone = IoError::os(&path, "open", std::io::ErrorKind::NotFound.into());
            Self::of(path)?.ok_or_else(|| gone.into())
        };
        paths.into_iter().map(one).collect()
    }

    /// An object that a store told of.
    pub fn of_object(object: Object) -> Self {
        Self { path: PathBuf::from(&object.url), identity: object.identity, object: Some(object) }
    }

    /// `None` if it is no file.
    pub(crate) fn of(path: PathBuf) -> Result<Option<Self>> {
        let metadata = std::fs::metadata(&path).map_err(|e| IoError::os(&path, "open", e))?;
        Ok(metadata.is_file().then(|| Self { path, identity: Identity::of(&metadata), object: None }))
    }

    /// Its name in the folder.
    pub fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }
}
