//! Batched positioned reads.

use std::fmt::Debug;
use std::fs::File;
use std::ops::Range;
use std::path::Path;

use arrow_buffer::{Buffer, MutableBuffer};

use crate::descriptors::Descriptor;
use crate::error::{IoError, Result};

/// Buffers keep the file's alignment modulo this, so what is aligned in the file is aligned in memory.
const ALIGNMENT: u64 = 64;

/// Something that can be read at positions: a local file, memory, later a ring or an object store.
pub trait Source: Send + Sync + Debug {
    /// How messages name it.
    fn name(&self) -> &str;

    /// Its length in bytes, fixed while it is open.
    fn byte_len(&self) -> u64;

    /// Reads all ranges and returns one buffer each, in the order given. A buffer's address is congruent to its file
    /// offset modulo 64.
    ///
    /// # Errors
    /// If any range lies beyond the end or can't be read; never fewer bytes than asked.
    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Buffer>>;
}

/// Checks a range against a length and gives the range's size as `usize`.
fn check(name: &str, len: u64, range: &Range<u64>) -> Result<usize> {
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

#[cfg(unix)]
pub(crate) fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

#[cfg(windows)]
pub(crate) fn read_exact_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> std::io::Result<()> {
    while !buffer.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, buffer, offset) {
            Ok(0) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                buffer = &mut buffer[n..];
                offset += n as u64;
            }
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// A local file read through the page cache.
///
/// Any number may be open: of those not read from lately the descriptors are closed, and opened again when they are needed
/// (see `descriptors.rs`).
#[derive(Debug)]
pub struct LocalFile {
    descriptor: Descriptor,
    name: String,
    len: u64,
}

impl LocalFile {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// If it is missing, unreadable or not a regular file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let (descriptor, len) = Descriptor::open(path)?;
        Ok(Self { descriptor, name: path.display().to_string(), len })
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
                let lead = usize::try_from(range.start % ALIGNMENT).unwrap_or(0);
                let mut buffer = MutableBuffer::from_len_zeroed(lead + wanted);
                read_exact_at(&file, &mut buffer.as_slice_mut()[lead..], range.start).map_err(|e| {
                    if e.kind() == std::io::ErrorKind::UnexpectedEof {
                        let len = file.metadata().map_or(0, |m| m.len());
                        IoError::PastEnd { path: self.name.clone(), offset: range.start, wanted: wanted as u64, len }
                    } else {
                        IoError::os(self.path(), format!("read {wanted} bytes at {}", range.start), e)
                    }
                })?;
                Ok(Buffer::from(buffer).slice(lead))
            })
            .collect()
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
        let mut aligned = MutableBuffer::new(bytes.len());
        aligned.extend_from_slice(bytes);
        Self { name: name.into(), bytes: aligned.into() }
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
