//! Where bytes go: through a compressor to a file that appears when it is complete, or to a writer.

use std::io::{BufWriter, Error, Result as IoResult, Write};
use std::path::Path;

use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;
use lz4_flex::frame::{FrameEncoder, FrameInfo};
use plinth_io::AtomicFile;

use crate::error::{IngestError, Result};
use crate::format::Compression;

/// Bytes gathered before they are handed on.
const GATHER: usize = 256 << 10;

/// The end of the way.
pub(super) struct Output {
    target: Target,
    bytes: u64,
}

enum Target {
    File(Box<BufWriter<Atomic>>),
    Writer(BufWriter<Box<dyn Write + Send>>),
}

/// An atomic file as a writer.
struct Atomic(AtomicFile);

impl Write for Atomic {
    fn write(&mut self, bytes: &[u8]) -> IoResult<usize> {
        self.0.write_all(bytes).map_err(Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> IoResult<()> {
        Ok(())
    }
}

impl Output {
    pub(super) fn file(file: AtomicFile) -> Self {
        Self { target: Target::File(Box::new(BufWriter::with_capacity(GATHER, Atomic(file)))), bytes: 0 }
    }

    pub(super) fn writer(writer: Box<dyn Write + Send>) -> Self {
        Self { target: Target::Writer(BufWriter::with_capacity(GATHER, writer)), bytes: 0 }
    }

    /// Brings everything to its place.
    pub(super) fn complete(self) -> Result<u64> {
        match self.target {
            Target::File(file) => {
                let atomic = file.into_inner().map_err(|e| write_error(e.error()))?;
                atomic.0.commit()?;
            }
            Target::Writer(mut writer) => writer.flush().map_err(|e| write_error(&e))?,
        }
        Ok(self.bytes)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> IoResult<usize> {
        let written = match &mut self.target {
            Target::File(file) => file.write(bytes)?,
            Target::Writer(writer) => writer.write(bytes)?,
        };
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> IoResult<()> {
        match &mut self.target {
            Target::File(file) => file.flush(),
            Target::Writer(writer) => writer.flush(),
        }
    }
}

/// What a failed write means. A file's error says the file and what was done already.
pub(super) fn write_error(e: &Error) -> IngestError {
    match e.get_ref().and_then(|inner| inner.downcast_ref::<plinth_io::IoError>()) {
        Some(file) => IngestError::Io(file.clone()),
        None => IngestError::os(Path::new("output"), "write to", Error::new(e.kind(), e.to_string())),
    }
}

/// An output behind a compressor.
pub(super) enum Compressed {
    Plain(Output),
    Gzip(GzEncoder<Output>),
    Zstd(zstd::Encoder<'static, Output>),
    Lz4(Box<FrameEncoder<Output>>),
    Bzip2(BzEncoder<Output>),
}

impl Compressed {
    pub(super) fn new(output: Output, compression: Option<Compression>) -> Result<Self> {
        Ok(match compression {
            None => Self::Plain(output),
            Some(Compression::Gzip) => Self::Gzip(GzEncoder::new(output, flate2::Compression::default())),
            Some(Compression::Zstd) => {
                let encoder = zstd::Encoder::new(output, 3).and_then(|mut encoder| {
                    encoder.include_checksum(true)?;
                    Ok(encoder)
                });
                Self::Zstd(encoder.map_err(|e| write_error(&e))?)
            }
            Some(Compression::Lz4) => {
                let info = FrameInfo::new().content_checksum(true).block_checksums(true);
                Self::Lz4(Box::new(FrameEncoder::with_frame_info(info, output)))
            }
            Some(Compression::Bzip2) => Self::Bzip2(BzEncoder::new(output, bzip2::Compression::default())),
        })
    }

    fn inner(&mut self) -> &mut dyn Write {
        match self {
            Self::Plain(output) => output,
            Self::Gzip(encoder) => encoder,
            Self::Zstd(encoder) => encoder,
            Self::Lz4(encoder) => encoder,
            Self::Bzip2(encoder) => encoder,
        }
    }

    pub(super) fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        self.inner().write_all(bytes).map_err(|e| write_error(&e))
    }

    /// Ends the compressed data and completes the output.
    pub(super) fn complete(self) -> Result<u64> {
        let output = match self {
            Self::Plain(output) => Ok(output),
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
            Self::Lz4(encoder) => encoder.finish().map_err(Error::from),
            Self::Bzip2(encoder) => encoder.finish(),
        };
        output.map_err(|e| write_error(&e))?.complete()
    }
}
