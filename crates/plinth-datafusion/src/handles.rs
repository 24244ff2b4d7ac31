//! Open files, kept so that a footer is read once and not once for every byte range.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use datafusion_common::Result;
use datafusion_datasource::PartitionedFile;
use object_store::ObjectMeta;
use object_store::path::Path as Location;
use plinth_core::sync::lock;
use plinth_format::{File, OpenOptions};

use crate::error::from_format;
use crate::location::{self, Remote};

/// Files opened by location, shared by a format and the sources it makes. An entry is replaced when the file's size or
/// time of change is not what the listing says.
#[derive(Debug, Default)]
pub(crate) struct Handles {
    options: OpenOptions,
    files: Mutex<HashMap<Location, Vec<Entry>>>,
}

#[derive(Debug)]
struct Entry {
    store: Remote,
    size: u64,
    modified: i64,
    tag: Option<String>,
    file: File,
}

impl Entry {
    fn is_of(&self, store: &Remote) -> bool {
        match (&self.store, store) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one.client(), other.client()),
            _ => false,
        }
    }

    fn is_current(&self, object: &ObjectMeta) -> bool {
        self.size == object.size && self.modified == object.last_modified.timestamp_micros() && self.tag == object.e_tag
    }
}

impl Handles {
    /// How files are opened.
    pub(crate) fn options(&self) -> &OpenOptions {
        &self.options
    }

    /// No files yet, to be opened with these options.
    pub(crate) fn new(options: OpenOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// The open file behind a part of a plan: the one that travels with it, or one opened here by its location (a plan
    /// that was serialised has lost its handles).
    pub(crate) fn open(&self, store: &Remote, part: &PartitionedFile) -> Result<File> {
        match part.extension::<File>() {
            Some(file) => Ok(file.clone()),
            None => self.open_object(store, &part.object_meta),
        }
    }

    /// Any of the open files, of the local file system.
    pub(crate) fn any_local(&self) -> Option<File> {
        let files = self.files();
        let mut local = files.values().flatten().filter(|entry| entry.store.is_none());
        local.next().map(|entry| entry.file.clone())
    }

    /// As [`Handles::open`], if that takes no I/O.
    pub(crate) fn opened(&self, part: &PartitionedFile) -> Option<File> {
        let known = || {
            let files = self.files();
            let entries = files.get(&part.object_meta.location)?;
            entries.iter().find(|entry| entry.is_current(&part.object_meta)).map(|entry| entry.file.clone())
        };
        part.extension::<File>().cloned().or_else(known)
    }

    /// The open file of an object. Waits for its store.
    pub(crate) fn open_object(&self, store: &Remote, object: &ObjectMeta) -> Result<File> {
        if let Some(entries) = self.files().get(&object.location) {
            let known = entries.iter().find(|entry| entry.is_of(store) && entry.is_current(object));
            if let Some(entry) = known {
                return Ok(entry.file.clone());
            }
        }
        let file = match store {
            None => File::open_with(location::to_path(&object.location), &self.options),
            Some(store) => File::from_source_with(location::open(store, object, &self.options.io), &self.options),
        };
        let file = file.map_err(from_format)?;
        let modified = object.last_modified.timestamp_micros();
        let tag = object.e_tag.clone();
        let entry = Entry { store: store.clone(), size: object.size, modified, tag, file: file.clone() };
        let mut files = self.files();
        let entries = files.entry(object.location.clone()).or_default();
        entries.retain(|entry| !entry.is_of(store));
        entries.push(entry);
        Ok(file)
    }

    fn files(&self) -> MutexGuard<'_, HashMap<Location, Vec<Entry>>> {
        lock(&self.files)
    }
}
