//! A tree's file in a table's storage.

use std::sync::Arc;

use plinth_index::{Image, PageFile, PageRead};
use plinth_io::{IoError, Source, Storage, StorageFile};

type Result<T> = std::result::Result<T, IoError>;

/// A file that is being written, or one that never changes again.
#[derive(Clone, Debug)]
pub(crate) struct StoredPages {
    name: Arc<str>,
    file: Arc<Access>,
}

#[derive(Debug)]
enum Access {
    New(Box<dyn StorageFile>),
    Complete(Arc<dyn Source>),
}

impl StoredPages {
    /// A new, empty file.
    pub(crate) fn create(storage: &dyn Storage, name: &str) -> Result<Self> {
        Ok(Self::of(storage, name, Access::New(storage.create(name)?)))
    }

    /// A file that is complete.
    pub(crate) fn complete(storage: &dyn Storage, name: &str, source: &Arc<dyn Source>) -> Self {
        Self::of(storage, name, Access::Complete(Arc::clone(source)))
    }

    fn of(storage: &dyn Storage, name: &str, file: Access) -> Self {
        Self { name: storage.path_of(name).into(), file: Arc::new(file) }
    }

    /// Writes bytes behind all pages, durably.
    pub(crate) fn append(&self, bytes: &[u8]) -> Result<()> {
        match &*self.file {
            Access::New(file) => {
                file.write_at(file.byte_len()?, bytes)?;
                file.sync()
            }
            Access::Complete(_) => Err(self.is_complete()),
        }
    }

    fn is_complete(&self) -> IoError {
        let refused = std::io::Error::new(std::io::ErrorKind::ReadOnlyFilesystem, "the file is complete");
        IoError::os(&*self.name, "write", refused)
    }
}

impl PageFile for StoredPages {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> Result<u64> {
        match &*self.file {
            Access::New(file) => file.byte_len(),
            Access::Complete(source) => Ok(source.byte_len()),
        }
    }

    fn read(&self, offset: u64, image: &mut Image) -> Result<()> {
        let range = offset..offset + image.bytes().len() as u64;
        let bytes = match &*self.file {
            Access::New(file) => file.read_at(range)?,
            Access::Complete(source) => source.read(std::slice::from_ref(&range))?.pop().unwrap_or_default(),
        };
        fill(image, &bytes)
    }

    fn read_many(&self, reads: &mut [PageRead]) -> Result<()> {
        let Access::Complete(source) = &*self.file else {
            return reads.iter_mut().try_for_each(|read| self.read(read.offset, &mut read.image));
        };
        let range = |read: &PageRead| read.offset..read.offset + read.image.bytes().len() as u64;
        let ranges: Vec<_> = reads.iter().map(range).collect();
        let found = source.read(&ranges)?;
        reads.iter_mut().zip(found).try_for_each(|(read, bytes)| fill(&mut read.image, &bytes))
    }

    fn write(&self, offset: u64, image: &Image) -> Result<()> {
        match &*self.file {
            Access::New(file) => file.write_at(offset, image.bytes()),
            Access::Complete(_) => Err(self.is_complete()),
        }
    }

    fn sync(&self) -> Result<()> {
        match &*self.file {
            Access::New(file) => file.sync(),
            Access::Complete(_) => Err(self.is_complete()),
        }
    }
}

/// A source answers with as many bytes as were asked for, or not at all.
fn fill(image: &mut Image, bytes: &[u8]) -> Result<()> {
    let to = image.bytes_mut();
    let len = bytes.len().min(to.len());
    if let (Some(to), Some(from)) = (to.get_mut(..len), bytes.get(..len)) {
        to.copy_from_slice(from);
    }
    Ok(())
}
