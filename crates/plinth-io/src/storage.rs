//! A folder of files as a table's storage needs it: few enough operations that a [simulated disk](crate::sim) can do them all
//! and fail at each.
//!
//! What was written is durable once its file was synced, and its name is once the names were. Nothing is promised of the
//! order in which anything else arrives.

use std::fmt::Debug;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_buffer::Buffer;

use crate::atomic::{AtomicFile, sync_folder};
use crate::engine::Io;
use crate::error::{IoError, Result};
use crate::positioned::{read_exact_at, write_all_at};
use crate::regular;
use crate::source::{LocalFile, Source};

/// A folder of files.
pub trait Storage: Debug + Send + Sync {
    /// How messages name a file of it.
    fn path_of(&self, name: &str) -> String;

    /// The names of all files, in order.
    ///
    /// # Errors
    /// If the folder can't be listed.
    fn list(&self) -> Result<Vec<String>>;

    /// Creates an empty file.
    ///
    /// # Errors
    /// If there is one of this name, or the folder can't be written to.
    fn create(&self, name: &str) -> Result<Box<dyn StorageFile>>;

    /// Opens a file to be changed.
    ///
    /// # Errors
    /// If there is none, or it can't be written to.
    fn open(&self, name: &str) -> Result<Box<dyn StorageFile>>;

    /// Opens a file to be read, of the length that it has now.
    ///
    /// # Errors
    /// If there is none.
    fn source(&self, name: &str) -> Result<Arc<dyn Source>>;

    /// Takes a file's name away. Who has it open reads on.
    ///
    /// # Errors
    /// If there is none, or the folder can't be written to.
    fn remove(&self, name: &str) -> Result<()>;

    /// Makes names given and taken away durable.
    ///
    /// # Errors
    /// If the device refuses.
    fn sync_names(&self) -> Result<()>;

    /// A folder for scratch files.
    fn scratch(&self) -> PathBuf;
}

/// A file that is written at positions.
pub trait StorageFile: Debug + Send + Sync {
    /// Its length.
    ///
    /// # Errors
    /// If the device refuses.
    fn byte_len(&self) -> Result<u64>;

    /// Reads bytes back.
    ///
    /// # Errors
    /// If they lie beyond the end, or can't be read.
    fn read_at(&self, range: Range<u64>) -> Result<Buffer>;

    /// Writes bytes, and makes the file longer where they end beyond it.
    ///
    /// # Errors
    /// If the device refuses or is full; then any part of the bytes may have been written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Makes what was written durable. After an error it is unknown what is, and asking again would not help: the system may
    /// have forgotten what it could not write.
    ///
    /// # Errors
    /// If the device refuses.
    fn sync(&self) -> Result<()>;
}

/// Where a file is written from its start to its end.
pub trait Output: Debug + Send + Sync {
    /// Bytes written so far.
    fn position(&self) -> u64;

    /// Appends bytes.
    ///
    /// # Errors
    /// If the device refuses or is full.
    fn write_all(&mut self, bytes: &[u8]) -> Result<()>;

    /// Reads back what was written.
    ///
    /// # Errors
    /// If the range lies beyond what was written, or can't be read.
    fn read(&self, range: &Range<u64>) -> Result<Buffer>;

    /// Appends zeros up to `position`, which is not far ahead.
    ///
    /// # Errors
    /// As [`Output::write_all`].
    fn pad_to(&mut self, position: u64) -> Result<()> {
        const ZEROS: [u8; 64] = [0; 64];
        while self.position() < position {
            let step = (position - self.position()).min(ZEROS.len() as u64);
            self.write_all(&ZEROS[..usize::try_from(step).unwrap_or(0)])?;
        }
        Ok(())
    }
}

impl Output for AtomicFile {
    fn position(&self) -> u64 {
        self.position()
    }

    fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        self.write_all(bytes)
    }

    fn read(&self, range: &Range<u64>) -> Result<Buffer> {
        self.read(range)
    }
}

/// A new file of a [`Storage`], written in one go.
#[derive(Debug)]
pub struct Append {
    file: Box<dyn StorageFile>,
    position: u64,
    /// What is not worth a write of its own yet.
    waiting: Vec<u8>,
}

/// Bytes gathered before they are written.
const GATHERED: usize = 256 << 10;

impl Append {
    /// Starts at the beginning of an empty file.
    pub fn new(file: Box<dyn StorageFile>) -> Self {
        Self { file, position: 0, waiting: Vec::new() }
    }

    fn written(&self) -> u64 {
        self.position - self.waiting.len() as u64
    }

    fn flush(&mut self) -> Result<()> {
        self.file.write_at(self.written(), &self.waiting)?;
        self.waiting.clear();
        Ok(())
    }

    /// Makes all that was written durable: how many bytes that are.
    ///
    /// # Errors
    /// If the device refuses or is full.
    pub fn finish(mut self) -> Result<u64> {
        self.flush()?;
        self.file.sync()?;
        Ok(self.position)
    }
}

impl Output for Append {
    fn position(&self) -> u64 {
        self.position
    }

    fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        self.waiting.extend_from_slice(bytes);
        self.position += bytes.len() as u64;
        if self.waiting.len() >= GATHERED { self.flush() } else { Ok(()) }
    }

    fn read(&self, range: &Range<u64>) -> Result<Buffer> {
        let written = self.written();
        let mut bytes = Vec::new();
        if range.start < written {
            bytes.extend_from_slice(&self.file.read_at(range.start..range.end.min(written))?);
        }
        let here = |offset: u64| usize::try_from(offset.saturating_sub(written)).unwrap_or(usize::MAX);
        let rest = self.waiting.get(here(range.start)..here(range.end).max(here(range.start)));
        let rest = rest.ok_or_else(|| IoError::PastEnd {
            path: "a file being written".into(),
            offset: range.start,
            wanted: range.end.saturating_sub(range.start),
            len: self.position,
        })?;
        bytes.extend_from_slice(rest);
        Ok(Buffer::from_slice_ref(&bytes))
    }
}

/// A folder of a local file system.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    io: Io,
}

impl Folder {
    /// The files of a folder, of which blocks are read by an engine.
    pub fn new(path: impl Into<PathBuf>, io: &Io) -> Self {
        Self { path: path.into(), io: io.clone() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn file(&self, name: &str, action: &str, options: &mut std::fs::OpenOptions) -> Result<Box<dyn StorageFile>> {
        let path = self.path.join(name);
        let file = regular::open_with(&path, action, options.read(true).write(true))?;
        Ok(Box::new(FolderFile { path, file }))
    }
}

impl Storage for Folder {
    fn path_of(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }

    fn list(&self) -> Result<Vec<String>> {
        let failed = |e| IoError::os(&self.path, "list", e);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path).map_err(failed)? {
            // A name that is no text is none of ours.
            names.extend(entry.map_err(failed)?.file_name().into_string().ok());
        }
        names.sort();
        Ok(names)
    }

    fn create(&self, name: &str) -> Result<Box<dyn StorageFile>> {
        self.file(name, "create", File::options().create_new(true))
    }

    fn open(&self, name: &str) -> Result<Box<dyn StorageFile>> {
        self.file(name, "open", &mut File::options())
    }

    fn source(&self, name: &str) -> Result<Arc<dyn Source>> {
        Ok(Arc::new(LocalFile::open_with(self.path.join(name), &self.io)?))
    }

    fn remove(&self, name: &str) -> Result<()> {
        let path = self.path.join(name);
        std::fs::remove_file(&path).map_err(|e| IoError::os(&path, "remove", e))
    }

    fn sync_names(&self) -> Result<()> {
        sync_folder(&self.path)
    }

    fn scratch(&self) -> PathBuf {
        self.path.clone()
    }
}

#[derive(Debug)]
struct FolderFile {
    path: PathBuf,
    file: File,
}

impl StorageFile for FolderFile {
    fn byte_len(&self) -> Result<u64> {
        let metadata = self.file.metadata().map_err(|e| IoError::os(&self.path, "look at", e))?;
        Ok(metadata.len())
    }

    fn read_at(&self, range: Range<u64>) -> Result<Buffer> {
        let len = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; len];
        read_exact_at(&self.file, &mut bytes, range.start)
            .map_err(|e| IoError::os(&self.path, format!("read {len} bytes at {}", range.start), e))?;
        Ok(Buffer::from_vec(bytes))
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        write_all_at(&self.file, bytes, offset)
            .map_err(|e| IoError::os(&self.path, format!("write {} bytes at {offset}", bytes.len()), e))
    }

    fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|e| IoError::os(&self.path, "sync", e))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::single_range_in_vec_init, reason = "a read is a list of ranges")]

    use super::*;
    use crate::sim::SimDisk;

    fn behaves(storage: &dyn Storage) {
        assert!(storage.open("a").is_err() && storage.source("a").is_err() && storage.remove("a").is_err());
        let file = storage.create("a").unwrap();
        assert!(storage.create("a").is_err(), "a name is given once");
        file.write_at(0, b"hello").unwrap();
        file.write_at(8, b"there").unwrap();
        file.write_at(1, b"u").unwrap();
        file.sync().unwrap();
        assert_eq!(file.byte_len().unwrap(), 13);
        assert_eq!(file.read_at(0..13).unwrap().as_slice(), b"hullo\0\0\0there");
        assert!(file.read_at(10..14).is_err());
        assert_eq!(storage.source("a").unwrap().read(&[8..13, 0..2]).unwrap()[1].as_slice(), b"hu");
        let again = storage.open("a").unwrap();
        again.write_at(0, b"H").unwrap();
        assert_eq!(file.read_at(0..2).unwrap().as_slice(), b"Hu");

        let mut append = Append::new(storage.create("b").unwrap());
        let long = vec![7; GATHERED - 10];
        append.write_all(&long).unwrap();
        append.write_all(b"0123456789").unwrap();
        append.write_all(b"abc").unwrap();
        append.pad_to(GATHERED as u64 + 5).unwrap();
        let end = GATHERED as u64;
        assert_eq!(append.read(&(end - 2..end + 2)).unwrap().as_slice(), b"89ab");
        assert_eq!(append.read(&(end..end)).unwrap().len(), 0);
        assert!(append.read(&(end..end + 6)).is_err());
        assert_eq!(append.finish().unwrap(), end + 5);
        assert_eq!(storage.source("b").unwrap().read(&[end - 1..end + 5]).unwrap()[0].as_slice(), b"9abc\0\0");
        assert_eq!(storage.list().unwrap(), ["a", "b"]);
        storage.remove("a").unwrap();
        storage.sync_names().unwrap();
        assert_eq!(storage.list().unwrap(), ["b"]);
        assert_eq!(file.read_at(0..2).unwrap().as_slice(), b"Hu", "who has it open reads on");
    }

    #[test]
    fn a_folder_and_a_simulated_disk_are_the_same_storage() {
        let dir = tempfile::tempdir().unwrap();
        behaves(&Folder::new(dir.path(), Io::shared()));
        behaves(&SimDisk::new(1, Io::shared()));
    }
}
