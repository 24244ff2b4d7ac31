//! Open files, kept so that a footer is read once and not once for every byte range.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use datafusion_common::Result;
use datafusion_datasource::PartitionedFile;
use object_store::ObjectMeta;
use plinth_format::{File, OpenOptions};

use crate::error::from_format;
use crate::location;

/// Files opened by location, shared by a format and the sources it makes. An entry is replaced when the file's size or
/// time of change is not what the listing says.
#[derive(Debug, Default)]
pub(crate) struct Handles {
    options: OpenOptions,
    files: Mutex<HashMap<PathBuf, Entry>>,
}

#[derive(Debug)]
struct Entry {
    size: u64,
    modified: i64,
    file: File,
}

impl Handles {
    /// No files yet, to be opened with these options.
    pub(crate) fn new(options: OpenOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// The open file behind a part of a plan: the one that travels with it, or one opened here by its location (a plan
    /// that was serialised has lost its handles).
    pub(crate) fn open(&self, part: &PartitionedFile) -> Result<File> {
        match part.extension::<File>() {
            Some(file) => Ok(file.clone()),
            None => self.open_object(&part.object_meta),
        }
    }

    /// As [`Handles::open`], if that takes no I/O.
    pub(crate) fn opened(&self, part: &PartitionedFile) -> Option<File> {
        part.extension::<File>()
            .cloned()
            .or_else(|| self.find(&location::to_path(&part.object_meta.location), &part.object_meta))
    }

    /// The open file of an object of the local store.
    pub(crate) fn open_object(&self, object: &ObjectMeta) -> Result<File> {
        let path = location::to_path(&object.location);
        if let Some(file) = self.find(&path, object) {
            return Ok(file);
        }
        let file = File::open_with(&path, &self.options).map_err(from_format)?;
        let entry = Entry { size: object.size, modified: modified(object), file: file.clone() };
        self.files.lock().unwrap_or_else(PoisonError::into_inner).insert(path, entry);
        Ok(file)
    }

    fn find(&self, path: &PathBuf, object: &ObjectMeta) -> Option<File> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = files.get(path)?;
        (entry.size == object.size && entry.modified == modified(object)).then(|| entry.file.clone())
    }
}

fn modified(object: &ObjectMeta) -> i64 {
    object.last_modified.timestamp_micros()
}
