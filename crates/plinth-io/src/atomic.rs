//! Files that appear whole or not at all.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{IoError, Result};

/// How the names of unfinished files end, so that what a killed process left can be recognised.
pub const TEMPORARY_SUFFIX: &str = ".plinth-tmp";

/// Distinguishes the temporary files of one process.
static SEQUENCE: AtomicU64 = AtomicU64::new(0);

/// A file written under a temporary name beside its target, synced and renamed by [`AtomicFile::commit`]. Dropped
/// before that, it removes itself.
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    temporary: PathBuf,
    target: PathBuf,
    replace: bool,
    position: u64,
    committed: bool,
}

impl AtomicFile {
    /// Creates the temporary file.
    ///
    /// # Errors
    /// If the target exists and `replace` is false, or the folder can't be written to.
    pub fn create(target: impl AsRef<Path>, replace: bool) -> Result<Self> {
        let target = target.as_ref().to_path_buf();
        let Some(name) = target.file_name() else {
            let e = std::io::Error::new(std::io::ErrorKind::InvalidInput, "the path names no file");
            return Err(IoError::os(&target, "create", e));
        };
        match target.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => {
                let e = std::io::Error::new(std::io::ErrorKind::IsADirectory, "it is a directory");
                return Err(IoError::os(&target, "create", e));
            }
            Ok(_) if !replace => return Err(IoError::Exists { path: target.display().to_string() }),
            _ => {}
        }
        let sequence = SEQUENCE.fetch_add(1, Ordering::Relaxed);
        let mut temporary_name = std::ffi::OsString::from(".");
        temporary_name.push(name);
        temporary_name.push(format!(".{}-{sequence}{TEMPORARY_SUFFIX}", std::process::id()));
        let temporary = target.with_file_name(temporary_name);
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&temporary)
            .map_err(|e| IoError::os(&target, "create", e))?;
        Ok(Self { file, temporary, target, replace, position: 0, committed: false })
    }

    /// Bytes written so far.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Where it will be.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// If the file system refuses, for instance because it is full.
    pub fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|e| {
            let action = format!("write {} bytes at {}", bytes.len(), self.position);
            IoError::os(&self.target, action, e)
        })?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    /// Appends zeros up to `position`, which is not far ahead.
    ///
    /// # Errors
    /// As [`AtomicFile::write_all`].
    pub fn pad_to(&mut self, position: u64) -> Result<()> {
        const ZEROS: [u8; 64] = [0; 64];
        while self.position < position {
            let step = (position - self.position).min(ZEROS.len() as u64);
            self.write_all(&ZEROS[..usize::try_from(step).unwrap_or(0)])?;
        }
        Ok(())
    }

    /// Syncs the file, gives it its name and syncs the folder.
    ///
    /// # Errors
    /// If any of these fails, or the target appeared meanwhile and may not be replaced; the temporary file is removed.
    pub fn commit(mut self) -> Result<u64> {
        self.file.sync_all().map_err(|e| IoError::os(&self.target, "sync", e))?;
        if self.replace {
            std::fs::rename(&self.temporary, &self.target)
                .map_err(|e| IoError::os(&self.target, "rename into place", e))?;
        } else {
            // A hard link fails where a rename would silently replace what another process just finished.
            match std::fs::hard_link(&self.temporary, &self.target) {
                Ok(()) => {
                    std::fs::remove_file(&self.temporary).map_err(|e| IoError::os(&self.temporary, "remove", e))?;
                }
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                    return Err(IoError::Exists { path: self.target.display().to_string() });
                }
                // File systems without hard links.
                Err(_) => std::fs::rename(&self.temporary, &self.target)
                    .map_err(|e| IoError::os(&self.target, "rename into place", e))?,
            }
        }
        self.committed = true;
        sync_parent(&self.target)?;
        Ok(self.position)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.committed {
            // Nothing better can be done with an error here; the suffix lets a later run recognise the file.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

#[cfg(unix)]
fn sync_parent(path: &Path) -> Result<()> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(parent).and_then(|folder| folder.sync_all()).map_err(|e| IoError::os(parent, "sync", e))
}

#[cfg(not(unix))]
fn sync_parent(_path: &Path) -> Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn nothing_is_seen_until_commit_and_nothing_is_left_without_it() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("t.plinth");
        let mut file = AtomicFile::create(&target, false).unwrap();
        file.write_all(b"hello").unwrap();
        assert!(!target.exists());
        drop(file);
        assert!(names(dir.path()).is_empty());

        let mut file = AtomicFile::create(&target, false).unwrap();
        file.write_all(b"hello").unwrap();
        file.pad_to(64).unwrap();
        assert_eq!(file.commit().unwrap(), 64);
        assert_eq!(names(dir.path()), ["t.plinth"]);
        assert_eq!(&std::fs::read(&target).unwrap()[..6], b"hello\0");
    }

    #[test]
    fn an_existing_file_is_kept_unless_it_may_be_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("t");
        std::fs::write(&target, b"old").unwrap();
        assert!(matches!(AtomicFile::create(&target, false), Err(IoError::Exists { .. })));
        let mut file = AtomicFile::create(&target, true).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"old");
        file.commit().unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"new");
    }

    #[test]
    fn of_two_writers_that_may_not_replace_one_wins_and_the_other_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("t");
        let mut one = AtomicFile::create(&target, false).unwrap();
        let mut two = AtomicFile::create(&target, false).unwrap();
        one.write_all(b"one").unwrap();
        two.write_all(b"two").unwrap();
        one.commit().unwrap();
        assert!(matches!(two.commit(), Err(IoError::Exists { .. })));
        assert_eq!(std::fs::read(&target).unwrap(), b"one");
        assert_eq!(names(dir.path()), ["t"]);
    }

    #[test]
    fn bad_targets_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        assert!(AtomicFile::create(dir.path(), true).is_err());
        assert!(AtomicFile::create(dir.path().join("no/such/folder"), false).is_err());
        assert!(AtomicFile::create("/", false).is_err());
    }
}
