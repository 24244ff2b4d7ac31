//! A scratch file for what is decided only at the end.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use arrow_buffer::Buffer;
use plinth_profile::{Stage, scope};

use crate::atomic::temporary_name;
use crate::error::{IoError, Result};
use crate::positioned::read_exact_at;

/// An append-only scratch file without a name, gone when it is dropped or the process dies.
#[derive(Debug)]
pub struct Spool {
    folder: PathBuf,
    file: Option<File>,
    len: u64,
}

impl Spool {
    /// A spool in `folder`; the file is created with the first byte.
    pub fn new(folder: impl AsRef<Path>) -> Self {
        Self { folder: folder.as_ref().to_path_buf(), file: None, len: 0 }
    }

    /// Appends bytes and says where they are.
    ///
    /// # Errors
    /// If the folder can't be written to or the device is full.
    pub fn append(&mut self, bytes: &[u8]) -> Result<Range<u64>> {
        let write = scope(Stage::Write.of("scratch"));
        write.bytes(bytes.len() as u64);
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(
                unnamed_file(&self.folder).map_err(|e| IoError::os(&self.folder, "create a scratch file in it", e))?,
            ),
        };
        file.write_all(bytes).map_err(|e| IoError::os(&self.folder, "write to the scratch file in it", e))?;
        let start = self.len;
        self.len += bytes.len() as u64;
        Ok(start..self.len)
    }

    /// Reads back a range that [`Spool::append`] returned.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn read(&self, range: &Range<u64>) -> Result<Buffer> {
        let fail = |e| IoError::os(&self.folder, "read from the scratch file in it", e);
        let len = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        let read = scope(Stage::Read.of("scratch"));
        read.bytes(len as u64);
        let mut bytes = vec![0; len];
        match &self.file {
            Some(file) => read_exact_at(file, &mut bytes, range.start).map_err(fail)?,
            None if len > 0 => return Err(fail(std::io::ErrorKind::UnexpectedEof.into())),
            None => {}
        }
        Ok(Buffer::from_vec(bytes))
    }
}

/// A file whose name is removed at once. If the process dies in between, the next writer to the folder removes what is left of it, as
/// with other unfinished files; that may also happen while both live, so the name may be gone already.
fn unnamed_file(folder: &Path) -> std::io::Result<File> {
    loop {
        let path = folder.join(temporary_name("scratch".as_ref()));
        match File::options().read(true).write(true).create_new(true).open(&path) {
            Ok(file) => match std::fs::remove_file(&path) {
                Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
                _ => return Ok(file),
            },
            // A process of the same number on another machine or in another container.
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_in_comes_out_and_no_file_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(dir.path());
        let a = spool.append(b"hello").unwrap();
        let b = spool.append(&[]).unwrap();
        let c = spool.append(&[7; 100_000]).unwrap();
        assert_eq!(spool.read(&a).unwrap().as_slice(), b"hello");
        assert!(spool.read(&b).unwrap().is_empty());
        assert_eq!(spool.read(&c).unwrap().as_slice(), [7; 100_000]);
        assert!(spool.read(&(c.end..c.end + 1)).is_err());
        #[cfg(unix)]
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(Spool::new(dir.path().join("none")).append(b"x").is_err());
    }
}
