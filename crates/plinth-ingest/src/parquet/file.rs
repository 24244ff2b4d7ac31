//! A Parquet file on disk, or one that came through a pipe.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};
use plinth_io::Source;
use plinth_profile::{Stage, scope};

use crate::error::{IngestError, Result};
use crate::stream::input::Spooled;

/// Where a file is and what it is called.
#[derive(Clone, Debug)]
pub(crate) struct ParquetFile {
    pub(crate) path: PathBuf,
    held: Option<Held>,
}

/// A file that has no path to open.
#[derive(Clone, Debug)]
enum Held {
    Spooled(Arc<Spooled>),
    Object(Arc<dyn Source>),
}

impl ParquetFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, held: None }
    }

    /// A stream that was copied to a scratch file.
    pub(crate) fn spooled(path: PathBuf, spooled: Arc<Spooled>) -> Self {
        Self { path, held: Some(Held::Spooled(spooled)) }
    }

    /// An object of a store.
    pub(crate) fn object(path: PathBuf, source: Arc<dyn Source>) -> Self {
        Self { path, held: Some(Held::Object(source)) }
    }

    pub(super) fn open(&self) -> Result<Handle> {
        match &self.held {
            Some(Held::Spooled(spooled)) => return Ok(Handle::Spooled(Arc::clone(spooled))),
            Some(Held::Object(source)) => return Ok(Handle::Object(Arc::clone(source))),
            None => {}
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
    Object(Arc<dyn Source>),
}

/// Bytes that are asked for at a time where a page's length is not known.
const STEP: usize = 256 << 10;

/// Reads an object from a position on.
struct Following {
    source: Arc<dyn Source>,
    at: u64,
}

impl Read for Following {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let end = self.source.byte_len().min(self.at.saturating_add(buffer.len() as u64));
        let bytes = range_of(&self.source, self.at.min(end)..end)?;
        let read = bytes.len().min(buffer.len());
        if let Some(to) = buffer.get_mut(..read) {
            to.copy_from_slice(bytes.get(..read).unwrap_or_default());
        }
        self.at += read as u64;
        Ok(read)
    }
}

/// Some bytes of an object.
fn range_of(source: &Arc<dyn Source>, range: Range<u64>) -> std::io::Result<arrow_buffer::Buffer> {
    let reading = scope(Stage::Read);
    reading.bytes(range.end - range.start);
    let mut read = source.read(std::slice::from_ref(&range)).map_err(std::io::Error::other)?;
    Ok(read.pop().unwrap_or_default())
}

impl Handle {
    pub(super) fn try_clone(&self) -> std::io::Result<Self> {
        Ok(match self {
            Self::File(file) => Self::File(file.try_clone()?),
            Self::Spooled(spooled) => Self::Spooled(Arc::clone(spooled)),
            Self::Object(source) => Self::Object(Arc::clone(source)),
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
            Self::Object(source) => source.byte_len(),
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
            Self::Object(source) => {
                let following = Following { source: Arc::clone(source), at: start };
                Box::new(BufReader::with_capacity(STEP, following))
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
            Self::Object(source) => {
                let end = start.saturating_add(length as u64);
                if end > source.byte_len() {
                    return Err(ParquetError::EOF(format!("{length} bytes at {start} lie beyond the end")));
                }
                Ok(Bytes::copy_from_slice(&range_of(source, start..end)?))
            }
        }
    }
}
