//! Where operators put what does not fit in memory.

use std::io::{Error, Write};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use datafusion_common::{DataFusionError, Result};
use datafusion_execution::{SpillFile, SpillWriter, TempFileFactory};
use futures::{Stream, StreamExt, stream};
use plinth_io::{IoError, Spool};

use crate::error::from_join;
use crate::profile::spawn_blocking;

/// Bytes read back at a time.
const PIECE: u64 = 256 << 10;

/// Files without names: however the process ends, nothing of them is left.
#[derive(Clone, Debug)]
pub struct NamelessSpills {
    folder: PathBuf,
}

impl NamelessSpills {
    /// Files on the device of a folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }
}

impl TempFileFactory for NamelessSpills {
    fn create_temp_file(&self, _description: &str) -> Result<Arc<dyn SpillFile>> {
        let spool = RwLock::new(Spool::new(&self.folder));
        Ok(Arc::new(Spill(Arc::new(Shared { spool, len: AtomicU64::new(0) }))))
    }
}

/// One of them, which may be read while it is written.
struct Spill(Arc<Shared>);

struct Shared {
    spool: RwLock<Spool>,
    len: AtomicU64,
}

impl Shared {
    /// The next bytes, if there are more by now.
    fn read(&self, from: u64) -> Result<Option<Bytes>> {
        let end = self.len.load(Ordering::Acquire).min(from + PIECE);
        if from >= end {
            return Ok(None);
        }
        let spool = self.spool.read().unwrap_or_else(PoisonError::into_inner);
        let read = spool.read(&(from..end)).map_err(from_io)?;
        Ok(Some(read.into_vec::<u8>().map_or_else(|shared| Bytes::copy_from_slice(&shared), Bytes::from)))
    }
}

fn from_io(error: IoError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

impl SpillFile for Spill {
    fn size(&self) -> Option<u64> {
        Some(self.0.len.load(Ordering::Acquire))
    }

    fn read_stream(&self) -> Result<Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>> {
        let pieces = stream::try_unfold((Arc::clone(&self.0), 0), |(shared, from)| async move {
            let reading = Arc::clone(&shared);
            let piece = spawn_blocking(move || reading.read(from)).await.map_err(from_join)??;
            Ok(piece.map(|piece| {
                let next = from + piece.len() as u64;
                (piece, (shared, next))
            }))
        });
        Ok(pieces.boxed())
    }

    fn open_writer(&self) -> Result<Box<dyn SpillWriter>> {
        Ok(Box::new(Writer(Arc::clone(&self.0))))
    }
}

struct Writer(Arc<Shared>);

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut spool = self.0.spool.write().unwrap_or_else(PoisonError::into_inner);
        let written = spool.append(bytes).map_err(Error::other)?;
        self.0.len.store(written.end, Ordering::Release);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl SpillWriter for Writer {
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
