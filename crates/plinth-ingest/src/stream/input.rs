//! Bytes of inputs: opened, counted, decompressed.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Error, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use plinth_core::sync::lock;
use plinth_io::{Object, Objects, Spool};
use plinth_profile::{Stage, scope};

use crate::error::{IngestError, Result};
use crate::format::{Compression, of_name};

/// Bytes read at a time from a file that is decompressed or spooled.
const READ_BYTES: usize = 256 << 10;

/// One input: a file, or standard input.
pub(crate) struct Input {
    /// How messages name it.
    pub(crate) path: PathBuf,
    compression: Option<Compression>,
    from: From,
}

enum From {
    Path,
    /// In an object store.
    Object(Object, Arc<dyn Objects>),
    Spooled(Arc<Spooled>),
    /// Can be opened once.
    Stream(Mutex<Option<Box<dyn Read + Send>>>),
}

/// An input that is being read.
pub(crate) struct Opened {
    /// Its bytes, decompressed.
    pub(crate) reader: Box<dyn Read + Send>,
    /// Bytes read so far, as they are stored.
    pub(crate) stored: Arc<AtomicU64>,
}

impl Input {
    /// A file.
    pub(crate) fn file(path: PathBuf) -> Self {
        let compression = of_name(&path).1;
        Self { path, compression, from: From::Path }
    }

    /// An object that a store told of.
    pub(crate) fn object(object: Object, stores: Arc<dyn Objects>) -> Self {
        let path = PathBuf::from(&object.url);
        let compression = of_name(&path).1;
        Self { path, compression, from: From::Object(object, stores) }
    }

    /// A stream that is read as it comes; `head` was read from it already.
    pub(crate) fn stream(head: Vec<u8>, rest: Box<dyn Read + Send>) -> Self {
        let compression = Compression::of_magic(&head);
        let whole = Box::new(Cursor::new(head).chain(rest));
        Self { path: PathBuf::from("standard input"), compression, from: From::Stream(Mutex::new(Some(whole))) }
    }

    /// A stream that was copied to a scratch file.
    pub(crate) fn spooled(head: &[u8], spooled: Spooled) -> Self {
        let compression = Compression::of_magic(head);
        Self { path: PathBuf::from("standard input"), compression, from: From::Spooled(Arc::new(spooled)) }
    }

    /// Whether it can be read once only, and may keep a reader waiting for ever.
    pub(crate) fn is_stream(&self) -> bool {
        matches!(self.from, From::Stream(_))
    }

    /// Whether its bytes have to be decompressed.
    pub(crate) fn is_compressed(&self) -> bool {
        self.compression.is_some()
    }

    /// Its length as stored.
    pub(crate) fn bytes(&self) -> Option<u64> {
        match &self.from {
            From::Path => std::fs::metadata(&self.path).ok().map(|m| m.len()),
            From::Object(object, _) => Some(object.identity.len),
            From::Spooled(spooled) => Some(spooled.len),
            From::Stream(_) => None,
        }
    }

    /// Starts to read it.
    pub(crate) fn open(&self) -> Result<Opened> {
        let fail = |e| IngestError::os(&self.path, "open", e);
        let raw: Box<dyn Read + Send> = match &self.from {
            From::Path => {
                let file = File::open(&self.path).map_err(fail)?;
                if file.metadata().is_ok_and(|m| m.is_dir()) {
                    return Err(IngestError::damaged(&self.path, "is a directory"));
                }
                Box::new(file)
            }
            From::Object(object, stores) => stores.stream(object)?,
            From::Spooled(spooled) => Box::new(spooled.reader()),
            From::Stream(stream) => {
                let taken = lock(stream).take();
                taken.ok_or_else(|| fail(Error::other("it can be read only once")))?
            }
        };
        let stored = Arc::new(AtomicU64::new(0));
        let counted = Counted { inner: raw, bytes: Arc::clone(&stored) };
        let Some(compression) = self.compression else {
            return Ok(Opened { reader: Box::new(counted), stored });
        };
        let reader = decompress(compression, counted).map_err(|e| read_error(&self.path, &e))?;
        Ok(Opened { reader, stored })
    }

    /// What a failed read means.
    pub(crate) fn read_error(&self, e: &Error) -> IngestError {
        if self.is_compressed() {
            return read_error(&self.path, e);
        }
        IngestError::os(&self.path, "read", Error::new(e.kind(), e.to_string()))
    }
}

fn read_error(path: &Path, e: &Error) -> IngestError {
    let what = match e.kind() {
        ErrorKind::UnexpectedEof => "the compressed data ends too early: the file was cut short".to_owned(),
        _ => format!("damaged compressed data: {}", e.to_string().split_whitespace().collect::<Vec<_>>().join(" ")),
    };
    IngestError::damaged(path, what)
}

fn decompress(compression: Compression, stored: Counted) -> std::io::Result<Box<dyn Read + Send>> {
    let mut stored = BufReader::with_capacity(READ_BYTES, stored);
    if stored.fill_buf()?.is_empty() {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(match compression {
        Compression::Gzip => Box::new(Members { member: Some(flate2::bufread::GzDecoder::new(stored)) }),
        Compression::Zstd => Box::new(zstd::Decoder::with_buffer(stored)?),
        Compression::Lz4 => Box::new(Lz4Frames::new(stored)),
        Compression::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(stored)),
    })
}

/// Members of gzip one after the other. What comes after one and begins otherwise is an error of its own: the decoder takes it for
/// one that was cut short.
struct Members {
    /// None after the last.
    member: Option<flate2::bufread::GzDecoder<BufReader<Counted>>>,
}

impl Read for Members {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        while let Some(member) = &mut self.member {
            let read = member.read(buffer)?;
            if read > 0 {
                return Ok(read);
            }
            let Some(mut rest) = self.member.take().map(flate2::bufread::GzDecoder::into_inner) else { break };
            match rest.fill_buf()?.first() {
                None => break,
                Some(0x1f) => self.member = Some(flate2::bufread::GzDecoder::new(rest)),
                Some(_) => {
                    return Err(Error::new(ErrorKind::InvalidData, "what comes after its end is not gzip; cut it off"));
                }
            }
        }
        Ok(0)
    }
}

/// LZ4 frames one after the other. The decoder takes the end of its input for the end of a frame and stops after each
/// frame; here a frame that is cut short is an error and the next one is read.
struct Lz4Frames {
    frame: lz4_flex::frame::FrameDecoder<Ending>,
}

/// Remembers that more was wanted than there is.
struct Ending {
    inner: BufReader<Counted>,
    ended: bool,
}

impl Read for Ending {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.ended |= read == 0 && !buffer.is_empty();
        Ok(read)
    }
}

impl Lz4Frames {
    fn new(inner: BufReader<Counted>) -> Self {
        Self { frame: lz4_flex::frame::FrameDecoder::new(Ending { inner, ended: false }) }
    }
}

impl Read for Lz4Frames {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            let read = self.frame.read(buffer)?;
            if self.frame.get_ref().ended {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            if read > 0 || self.frame.get_mut().inner.fill_buf()?.is_empty() {
                return Ok(read);
            }
        }
    }
}

/// Counts what is read.
struct Counted {
    inner: Box<dyn Read + Send>,
    bytes: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let reading = scope(Stage::Read);
        let read = self.inner.read(buffer)?;
        reading.bytes(read as u64);
        self.bytes.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// A stream copied to a scratch file without a name.
#[derive(Debug)]
pub(crate) struct Spooled {
    spool: Spool,
    pub(crate) len: u64,
}

impl Spooled {
    /// Copies a stream to its end.
    pub(crate) fn copy(head: &[u8], mut rest: impl Read, folder: &Path) -> Result<Self> {
        let mut spool = Spool::new(folder);
        let mut len = spool.append(head)?.end;
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match rest.read(&mut buffer) {
                Ok(0) => return Ok(Self { spool, len }),
                Ok(read) => len = spool.append(buffer.get(..read).unwrap_or_default())?.end,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(IngestError::os(Path::new("standard input"), "read", e)),
            }
        }
    }

    /// Some of its bytes.
    pub(crate) fn read(&self, start: u64, len: usize) -> std::io::Result<arrow_buffer::Buffer> {
        let end = start.saturating_add(len as u64).min(self.len);
        self.spool.read(&(start.min(end)..end)).map_err(Error::other)
    }

    /// Reads it from its start.
    pub(crate) fn reader(self: &Arc<Self>) -> SpoolReader {
        SpoolReader { spooled: Arc::clone(self), position: 0 }
    }
}

/// Reads a spooled stream.
pub(crate) struct SpoolReader {
    spooled: Arc<Spooled>,
    pub(crate) position: u64,
}

impl Read for SpoolReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let bytes = self.spooled.read(self.position, buffer.len())?;
        let read = bytes.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..read), bytes.get(..read)) {
            to.copy_from_slice(from);
        }
        self.position += read as u64;
        Ok(read)
    }
}
