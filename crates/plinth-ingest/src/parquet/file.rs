//! A Parquet file on disk, or one that came through a pipe.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};
use plinth_profile::{Stage, scope};

use crate::error::{IngestError, Result};
use crate::stream::input::Spooled;

/// Where a file is and what it is called.
#[derive(Clone, Debug)]
pub(crate) struct ParquetFile {
    pub(crate) path: PathBuf,
    spooled: Option<Arc<Spooled>>,
}

impl ParquetFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, spooled: None }
    }

    /// A stream that was copied to a scratch file.
    pub(crate) fn spooled(path: PathBuf, spooled: Arc<Spooled>) -> Self {
        Self { path, spooled: Some(spooled) }
    }

    pub(super) fn open(&self) -> Result<Handle> {
        if let Some(spooled) = &self.spooled {
            return Ok(Handle::Spooled(Arc::clone(spooled)));
        }
        let file = File::open(&self.path).map_err(|e| IngestError::os(&self.path, "open", e))?;
        if file.metadata().is_ok_and(|m| m.is_dir()) {
            return Err(IngestError::damaged(&self.path, "is a directory, not a Parquet file"));
        }
        Ok(Handle::File(file))
    }
}

/// An open file.
#[derive(Debug)]
pub(super) enum Handle {
    File(File),
    Spooled(Arc<Spooled>),
}

impl Handle {
    pub(super) fn try_clone(&self) -> std::io::Result<Self> {
        Ok(match self {
            Self::File(file) => Self::File(file.try_clone()?),
            Self::Spooled(spooled) => Self::Spooled(Arc::clone(spooled)),
        })
    }
}

/// A file whose reads stand in profiles.
struct Charged(File);

impl Read for Charged {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let reading = scope(Stage::Read);
        let read = self.0.read(buffer)?;
        reading.bytes(read as u64);
        Ok(read)
    }
}

impl Length for Handle {
    fn len(&self) -> u64 {
        match self {
            Self::File(file) => Length::len(file),
            Self::Spooled(spooled) => spooled.len,
        }
    }
}

impl ChunkReader for Handle {
    type T = Box<dyn Read>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(match self {
            Self::File(file) => {
                let mut file = file.try_clone()?;
                file.seek(SeekFrom::Start(start))?;
                Box::new(BufReader::new(Charged(file)))
            }
            Self::Spooled(spooled) => {
                let mut reader = spooled.reader();
                reader.position = start;
                Box::new(BufReader::new(reader))
            }
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        match self {
            Self::File(file) => {
                let reading = scope(Stage::Read);
                reading.bytes(length as u64);
                file.get_bytes(start, length)
            }
            Self::Spooled(spooled) => {
                let bytes = spooled.read(start, length)?;
                if bytes.len() != length {
                    return Err(ParquetError::EOF(format!("{length} bytes at {start} lie beyond the end")));
                }
                Ok(Bytes::copy_from_slice(&bytes))
            }
        }
    }
}
