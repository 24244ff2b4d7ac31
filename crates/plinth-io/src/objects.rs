//! Objects of stores that are not file systems, named by URLs.
//!
//! Crates that read files know no network: where a path is a URL they ask the [`Objects`] that came with their options.

use std::any::Any;
use std::fmt::Debug;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use crate::descriptors::Identity;
use crate::engine::Io;
use crate::error::{IoError, Result};
use crate::source::Source;

/// Schemes of URLs that name objects.
const SCHEMES: [&str; 11] = ["s3", "s3a", "s3n", "gs", "gcs", "az", "azure", "abfs", "abfss", "http", "https"];

/// An object as a store told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Where it is.
    pub url: String,
    /// Its bytes, and what tells it from another that takes its name.
    pub identity: Identity,
    /// The store's own name for these bytes, by which it is asked that no others come in their place.
    pub tag: Option<String>,
}

/// Which bytes of an object are meant, as its store names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// Its entity tag.
    pub tag: Option<String>,
    /// Its generation, in stores that number these.
    pub generation: Option<String>,
}

/// Object stores: what can be found in them, read and written.
///
/// All calls wait for the network, unless they say otherwise.
pub trait Objects: Any + Send + Sync + Debug {
    /// What a URL names, in the order of names: one object; those below a prefix that ends in `/`; those that a pattern
    /// (`*`, `?`, `[...]`, `**`) matches.
    ///
    /// # Errors
    /// If there is no such object, or the store does not answer or refuses; of a prefix or a pattern, none is no error.
    fn find(&self, url: &str) -> Result<Vec<Object>>;

    /// An object to be read at positions. Does not wait.
    ///
    /// # Errors
    /// If its store can't be reached with what is known of it.
    fn open(&self, object: &Object, io: &Io) -> Result<Arc<dyn Source>>;

    /// An object to be read from its beginning; some of what follows is fetched ahead.
    ///
    /// # Errors
    /// As [`Objects::open`].
    fn stream(&self, object: &Object) -> Result<Box<dyn Read + Send>>;

    /// Makes an object of a file of this machine: whole, or not at all.
    ///
    /// # Errors
    /// If there is an object of that name and it is not to be replaced; if the store refuses or does not answer.
    fn upload(&self, file: &Path, url: &str, replace: bool) -> Result<()>;

    /// The whole of a small object and which bytes these are. None if there is no such object.
    ///
    /// # Errors
    /// If it has more than `most` bytes; if the store does not answer or refuses.
    fn get(&self, url: &str, most: u64) -> Result<Option<(Vec<u8>, Version)>>;

    /// Puts a small object in the place of a version of it, or where there is none if no version is given. None if the store has another, which
    /// may be this very object: an answer that was lost is asked for once more.
    ///
    /// # Errors
    /// If the store does not answer or refuses, or can't put objects on a condition.
    fn put_if(&self, url: &str, bytes: Vec<u8>, instead_of: Option<&Version>) -> Result<Option<Version>>;

    /// Takes an object away, if it is there.
    ///
    /// # Errors
    /// If the store does not answer or refuses.
    fn remove(&self, url: &str) -> Result<()>;
}

/// Whether a path is the URL of an object.
pub fn is_url(path: impl AsRef<Path>) -> bool {
    path.as_ref().to_str().is_some_and(|text| {
        let scheme = text.split_once("://").map(|(scheme, _)| scheme);
        scheme.is_some_and(|scheme| SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known)))
    })
}

/// Whether a URL is a pattern.
pub fn is_pattern(url: &str) -> bool {
    url.contains(['*', '?', '['])
}

/// The one object that a path names, if the path is a URL.
///
/// # Errors
/// If there is no such object, or none can be reached from here.
pub fn one(objects: Option<&Arc<dyn Objects>>, path: impl AsRef<Path>) -> Result<Option<Object>> {
    let path = path.as_ref();
    let Some(url) = path.to_str().filter(|_| is_url(path)) else { return Ok(None) };
    let objects = given(objects, path)?;
    match <[Object; 1]>::try_from(objects.find(url)?) {
        Ok([object]) => Ok(Some(object)),
        Err(found) => {
            let what = format!("it names {} objects, and one is wanted", found.len());
            Err(IoError::os(path, "open", std::io::Error::new(std::io::ErrorKind::InvalidInput, what)))
        }
    }
}

/// The stores that were given.
///
/// # Errors
/// If none were: the path is a URL, and whatever was called reads local files only.
pub fn given<'a>(objects: Option<&'a Arc<dyn Objects>>, path: &Path) -> Result<&'a Arc<dyn Objects>> {
    objects.ok_or_else(|| {
        let what = "it is in an object store, and only files of this machine can be used here; copy it first";
        IoError::os(path, "open", std::io::Error::new(std::io::ErrorKind::Unsupported, what))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_told_from_paths() {
        for url in ["s3://b/k", "S3A://b", "gs://b/*.parquet", "https://h/x.csv", "abfss://c@a.dfs.core.windows.net/x"]
        {
            assert!(is_url(url), "{url}");
        }
        for path in ["", "s3", "s3:/b/k", "file:///x", "data/s3://x", "://", "memory://x", "a.plinth"] {
            assert!(!is_url(path), "{path}");
        }
    }

    #[test]
    fn without_stores_a_url_is_an_error_that_names_it() {
        let error = one(None, "s3://bucket/x.plinth").unwrap_err().to_string();
        assert!(error.starts_with("s3://bucket/x.plinth: cannot open"), "{error}");
        assert!(one(None, "x.plinth").unwrap().is_none());
    }
}
