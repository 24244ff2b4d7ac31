//! Batched positioned reads.

use std::any::Any;
use std::fmt::Debug;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_buffer::Buffer;

use crate::descriptors::Descriptor;
use crate::engine::{Io, Request};
use crate::error::{IoError, Result};
use crate::positioned::read_aligned;
use crate::reading::Reading;

/// Something that can be read at positions: a local file, memory, an object store.
pub trait Source: Send + Sync + Debug {
    /// How messages name it.
    fn name(&self) -> &str;

    /// Its length in bytes, fixed while it is open.
    fn byte_len(&self) -> u64;

    /// Reads all ranges and returns one buffer each, in the order given: metadata, and what is kept for long. A buffer's
    /// address is congruent to its file offset modulo 64.
    ///
    /// # Errors
    /// If any range lies beyond the end or can't be read; never fewer bytes than asked.
    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Buffer>>;

    /// Starts to read all ranges, as [`Source::read`] would: blocks, which are let go of soon. `None` if they were asked for
    /// ahead and there is no memory for that.
    ///
    /// # Errors
    /// As [`Source::read`]; what fails later, [`Reading::wait`] tells.
    fn start(&self, request: &Request<'_>) -> Result<Option<Reading>> {
        self.read(request.ranges).map(|buffers| Some(Reading::ready(buffers)))
    }

    /// The engine that reads it, if its blocks lie in an engine's memory.
    fn io(&self) -> Option<&Io> {
        None
    }

    /// Whether a read may wait for a network: a thread that others depend on is not to ask.
    fn is_far(&self) -> bool {
        false
    }

    /// Bytes that come in the time of one wait for the network, about; 0 if the source is near. To read so many that may not be needed
    /// costs less time than to wait for the answer whether they are.
    fn bytes_a_wait(&self) -> u64 {
        0
    }

    /// Begins to bring ranges that will each be read, by [`Source::read`] or [`Source::start`], before what this returns is
    /// dropped: reads that follow each other then wait once. Each range is as it will be asked for. What can't be brought ahead
    /// is left out, and a source that is near does nothing.
    fn prefetch(&self, ranges: &[Range<u64>]) -> Prefetch {
        let _ = ranges;
        Prefetch::default()
    }
}

/// Reads that were begun ahead; what was not read of them is given up when this is dropped.
#[derive(Default)]
pub struct Prefetch(Option<Box<dyn Any + Send + Sync>>);

impl Prefetch {
    /// Gives reads up by dropping `owner`.
    pub fn new(owner: impl Any + Send + Sync) -> Self {
        Self(Some(Box::new(owner)))
    }
}

impl Debug for Prefetch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Prefetch").field(&self.0.is_some()).finish()
    }
}

/// Checks a range against a length and gives the range's size as `usize`.
pub(crate) fn check(name: &str, len: u64, range: &Range<u64>) -> Result<usize> {
    let past_end = || IoError::PastEnd {
        path: name.to_owned(),
        offset: range.start,
        wanted: range.end.saturating_sub(range.start),
        len,
    };
    if range.start > range.end || range.end > len {
        return Err(past_end());
    }
    usize::try_from(range.end - range.start).map_err(|_| past_end())
}

/// A local file: metadata is read through the page cache, blocks by an [engine](Io).
///
/// Any number may be open: of those not read from lately the descriptors are closed, and opened again when they are needed
/// (see `descriptors.rs`).
#[derive(Debug)]
pub struct LocalFile {
    descriptor: Descriptor,
    name: Arc<str>,
    len: u64,
    io: Io,
}

impl LocalFile {
    /// Opens a file for reading by the [shared engine](Io::shared).
    ///
    /// # Errors
    /// If it is missing, unreadable or not a regular file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, Io::shared())
    }

    /// Opens a file for reading by an engine.
    ///
    /// # Errors
    /// As [`LocalFile::open`].
    pub fn open_with(path: impl AsRef<Path>, io: &Io) -> Result<Self> {
        let path = path.as_ref();
        let (descriptor, len) = Descriptor::open(path)?;
        Ok(Self { descriptor, name: Arc::from(path.display().to_string()), len, io: io.clone() })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.descriptor.path()
    }
}

impl Source for LocalFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn byte_len(&self) -> u64 {
        self.len
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Buffer>> {
        let sizes = ranges.iter().map(|range| check(&self.name, self.len, range)).collect::<Result<Vec<_>>>()?;
        let file = self.descriptor.get()?;
        ranges
            .iter()
            .zip(sizes)
            .map(|(range, wanted)| {
                read_aligned(&file, range.start, wanted).map_err(|e| {
                    if e.kind() == std::io::ErrorKind::UnexpectedEof {
                        let len = file.metadata().map_or(0, |m| m.len());
                        IoError::PastEnd {
                            path: self.name.to_string(),
                            offset: range.start,
                            wanted: wanted as u64,
                            len,
                        }
                    } else {
                        IoError::os(self.path(), format!("read {wanted} bytes at {}", range.start), e)
                    }
                })
            })
            .collect()
    }

    fn start(&self, request: &Request<'_>) -> Result<Option<Reading>> {
        for range in request.ranges {
            check(&self.name, self.len, range)?;
        }
        self.io.start(&self.descriptor, &self.name, request)
    }

    fn io(&self) -> Option<&Io> {
        Some(&self.io)
    }
}

/// Bytes in memory, for tests and for files that travelled some other way.
#[derive(Debug)]
pub struct MemorySource {
    name: String,
    bytes: Buffer,
}

impl MemorySource {
    /// Wraps bytes; `name` appears in messages.
    pub fn new(name: impl Into<String>, bytes: &[u8]) -> Self {
        // Arrow allocates aligned to at least 64 bytes; a Vec's buffer would keep whatever alignment it had.
        Self { name: name.into(), bytes: Buffer::from_slice_ref(bytes) }
    }
}

impl Source for MemorySource {
    fn name(&self) -> &str {
        &self.name
    }

    fn byte_len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Buffer>> {
        ranges
            .iter()
            .map(|range| {
                let wanted = check(&self.name, self.byte_len(), range)?;
                let start = usize::try_from(range.start).unwrap_or(usize::MAX);
                Ok(self.bytes.slice_with_length(start, wanted))
            })
            .collect()
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "a read is a list of ranges")]
mod tests {
    use super::*;

    #[test]
    fn reads_what_was_asked_in_order_and_aligned_as_in_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let bytes: Vec<u8> = (0..10_000u32).map(|i| u8::try_from(i % 251).unwrap()).collect();
        std::fs::write(&path, &bytes).unwrap();
        let sources: [Box<dyn Source>; 2] =
            [Box::new(LocalFile::open(&path).unwrap()), Box::new(MemorySource::new("m", &bytes))];
        for source in sources {
            assert_eq!(source.byte_len(), 10_000);
            let ranges = [64..128, 0..10_000, 9_999..10_000, 77..77, 100..5_000];
            let buffers = source.read(&ranges).unwrap();
            for (range, buffer) in ranges.iter().zip(&buffers) {
                let (start, end) = (usize::try_from(range.start).unwrap(), usize::try_from(range.end).unwrap());
                assert_eq!(buffer.as_slice(), &bytes[start..end]);
                if !buffer.is_empty() {
                    assert_eq!(buffer.as_ptr() as usize % 64, start % 64);
                }
            }
        }
    }

    #[test]
    fn a_range_beyond_the_end_is_an_error_that_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, b"abc").unwrap();
        let file = LocalFile::open(&path).unwrap();
        for range in [2..4, 4..5, 0..u64::MAX, u64::MAX - 1..u64::MAX] {
            assert!(matches!(file.read(&[range]), Err(IoError::PastEnd { len: 3, .. })));
        }
        #[allow(clippy::reversed_empty_ranges)]
        let backwards = file.read(&[2..1]);
        assert!(backwards.is_err());
        // The file shrinks while it is open.
        std::fs::write(&path, b"a").unwrap();
        assert!(matches!(file.read(&[0..3]), Err(IoError::PastEnd { len: 1, .. })));
    }

    #[test]
    fn a_directory_or_a_missing_file_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert!(LocalFile::open(dir.path()).is_err());
        assert!(LocalFile::open(dir.path().join("none")).unwrap_err().is_not_found());
    }
}
