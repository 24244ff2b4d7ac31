//! Files that appear whole or not at all.
//!
//! A process may be killed while it writes. What it leaves is told from what is still being written by a lock: an
//! [`AtomicFile`] holds an exclusive one on its temporary file for as long as it lives, and the operating system drops it
//! with the process. So the process that gets the lock of a temporary file may remove it.

use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_buffer::Buffer;
use plinth_profile::{Stage, scope};

use crate::error::{IoError, Result};
use crate::positioned::read_exact_at;
use crate::regular;

/// How the names of unfinished files end; they start with a dot.
pub const TEMPORARY_SUFFIX: &str = ".plinth-tmp";

/// Distinguishes the temporary files of one process.
static SEQUENCE: AtomicU64 = AtomicU64::new(0);

/// A name for an unfinished file that this process has not used before.
pub(crate) fn temporary_name(name: &OsStr) -> OsString {
    let sequence = SEQUENCE.fetch_add(1, Ordering::Relaxed);
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}-{sequence}{TEMPORARY_SUFFIX}", std::process::id()));
    temporary
}

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
    /// Creates the temporary file, and removes those that killed processes left in its folder.
    ///
    /// # Errors
    /// If the target exists and `replace` is false, or the folder can't be written to.
    pub fn create(target: impl AsRef<Path>, replace: bool) -> Result<Self> {
        let target = target.as_ref().to_path_buf();
        let Some(name) = target.file_name() else {
            let e = std::io::Error::new(ErrorKind::InvalidInput, "the path names no file");
            return Err(IoError::os(&target, "create", e));
        };
        check_target(&target, replace)?;
        // Best effort: what can't be listed or removed is no reason not to write.
        let _ = remove_leftovers(folder_of(&target));
        let (file, temporary) = loop {
            let temporary = target.with_file_name(temporary_name(name));
            let file = match File::options().read(true).write(true).create_new(true).open(&temporary) {
                Ok(file) => file,
                // A process of the same number on another machine or in another container.
                Err(e) if e.kind() == ErrorKind::AlreadyExists => continue,
                Err(e) => return Err(IoError::os(&target, "create", e)),
            };
            // Where files can't be locked no process gets the lock to remove them, either.
            let locked = file.lock().is_ok();
            // Someone may have taken the file for a leftover before it was locked.
            if !locked || is_still(&temporary, &file) {
                break (file, temporary);
            }
        };
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

    /// Where it is until then.
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// If the file system refuses, for instance because it is full.
    pub fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        let write = scope(Stage::Write);
        write.bytes(bytes.len() as u64);
        self.put(bytes).map_err(|e| {
            let action = format!("write {} bytes at {}", bytes.len(), self.position);
            IoError::os(&self.target, action, e)
        })?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        #[cfg(feature = "sim")]
        if crate::full::is_full(&self.target) {
            self.file.write_all(bytes.get(..bytes.len() / 2).unwrap_or_default())?;
            return Err(ErrorKind::StorageFull.into());
        }
        self.file.write_all(bytes)
    }

    /// Reads back what was written.
    ///
    /// # Errors
    /// If the range lies beyond what was written, or the file system refuses.
    pub fn read(&self, range: &Range<u64>) -> Result<Buffer> {
        let len = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        let fail = |e| IoError::os(&self.target, format!("read back {len} bytes at {}", range.start), e);
        if range.end > self.position {
            return Err(fail(ErrorKind::UnexpectedEof.into()));
        }
        let mut bytes = vec![0; len];
        let read = read_exact_at(&self.file, &mut bytes, range.start);
        // Here reading moves to where writing would go on.
        #[cfg(windows)]
        std::io::Seek::seek(&mut &self.file, std::io::SeekFrom::Start(self.position)).map_err(fail)?;
        read.map_err(fail)?;
        Ok(Buffer::from_vec(bytes))
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

    /// Sees to it that what was written is on the device. [`AtomicFile::commit`] does so itself; this is for those who
    /// want the slow part over before they take a lock.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn sync(&self) -> Result<()> {
        let _sync = scope(Stage::Sync);
        self.file.sync_all().map_err(|e| IoError::os(&self.target, "sync", e))
    }

    /// Syncs the file, gives it its name and syncs the folder.
    ///
    /// # Errors
    /// If any of these fails, or the target appeared meanwhile and may not be replaced; the temporary file is removed. Only
    /// [`IoError::Unsynced`] comes after the file has its name.
    pub fn commit(mut self) -> Result<u64> {
        self.sync()?;
        if self.replace {
            self.rename()?;
        } else {
            // A hard link fails where a rename would silently replace what another process just finished.
            match std::fs::hard_link(&self.temporary, &self.target) {
                // Left behind it is another name of the file, and the next to write here removes it.
                Ok(()) => drop(std::fs::remove_file(&self.temporary)),
                Err(e) if e.kind() == ErrorKind::AlreadyExists => return Err(self.exists()),
                Err(_) => self.rename_without_links()?,
            }
        }
        self.committed = true;
        let _sync = scope(Stage::Sync);
        sync_folder(folder_of(&self.target))
            .map_err(|e| IoError::Unsynced { path: self.target.display().to_string(), reason: Arc::new(e) })?;
        Ok(self.position)
    }

    fn rename(&self) -> Result<()> {
        std::fs::rename(&self.temporary, &self.target).map_err(|e| IoError::os(&self.target, "rename into place", e))
    }

    /// For file systems without hard links: an empty file takes the name first, which only one can create.
    fn rename_without_links(&self) -> Result<()> {
        match File::options().write(true).create_new(true).open(&self.target) {
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::AlreadyExists => return Err(self.exists()),
            Err(e) => return Err(IoError::os(&self.target, "create", e)),
        }
        self.rename().inspect_err(|_| drop(std::fs::remove_file(&self.target)))
    }

    fn exists(&self) -> IoError {
        IoError::Exists { path: self.target.display().to_string() }
    }

    /// As [`AtomicFile::commit`], under another name of the same folder that was not known before.
    ///
    /// # Errors
    /// As [`AtomicFile::commit`], or if the name is one of another folder.
    pub fn commit_as(mut self, target: impl AsRef<Path>, replace: bool) -> Result<u64> {
        let target = target.as_ref();
        if folder_of(target) != folder_of(&self.target) {
            let e = std::io::Error::new(ErrorKind::InvalidInput, "it is in another folder");
            return Err(IoError::os(target, "rename into place", e));
        }
        check_target(target, replace)?;
        (self.target, self.replace) = (target.to_path_buf(), replace);
        self.commit()
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

/// Removes the temporary files of a folder whose writers are gone, and says which those were. A file that is being
/// written, by this process or another, is never touched.
///
/// # Errors
/// If the folder can't be listed. A file that can't be removed stays.
pub fn remove_leftovers(folder: impl AsRef<Path>) -> Result<Vec<PathBuf>> {
    let folder = folder.as_ref();
    let failed = |e| IoError::os(folder, "list", e);
    let mut removed = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let bytes = name.as_encoded_bytes();
        if !(bytes.starts_with(b".") && bytes.ends_with(TEMPORARY_SUFFIX.as_bytes())) {
            continue;
        }
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_file()) && remove_if_left(&path) {
            removed.push(path);
        }
    }
    Ok(removed)
}

/// Removes a temporary file if its lock is free.
fn remove_if_left(path: &Path) -> bool {
    let Ok(file) = regular::open_with(path, "open", File::options().read(true).write(true)) else { return false };
    match file.try_lock() {
        // Its writer can't rename it now: it is gone, or waits for this lock and will see that the name is not its
        // file's any more. But it may have done so before the lock was taken here.
        Ok(()) => is_still(path, &file) && std::fs::remove_file(path).is_ok(),
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
    }
}

/// Whether a path still leads to an open file.
#[cfg(unix)]
fn is_still(path: &Path, file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (path.symlink_metadata(), file.metadata()) {
        (Ok(named), Ok(open)) => (named.dev(), named.ino()) == (open.dev(), open.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_still(path: &Path, _file: &File) -> bool {
    path.symlink_metadata().is_ok()
}

fn check_target(target: &Path, replace: bool) -> Result<()> {
    match target.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => {
            let e = std::io::Error::new(ErrorKind::IsADirectory, "it is a directory");
            Err(IoError::os(target, "create", e))
        }
        // Of a link, too, by which a device may be known.
        Ok(_) if replace => regular::check(target),
        Ok(_) if !replace => Err(IoError::Exists { path: target.display().to_string() }),
        _ => Ok(()),
    }
}

/// The folder a path lies in.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Sees to it that names given and taken away in a folder are on the device.
///
/// # Errors
/// If the file system refuses.
#[cfg(unix)]
pub fn sync_folder(folder: impl AsRef<Path>) -> Result<()> {
    let folder = folder.as_ref();
    File::open(folder).and_then(|open| open.sync_all()).map_err(|e| IoError::os(folder, "sync", e))
}

/// Sees to it that names given and taken away in a folder are on the device, which this system does by itself.
///
/// # Errors
/// Never.
#[cfg(not(unix))]
pub fn sync_folder(_folder: impl AsRef<Path>) -> Result<()> {
    Ok(())
}

/// Exchanges two folders that lie side by side, durably: at once where the system can, else by a third name, under which a crash may
/// leave the first.
///
/// # Errors
/// If the system refuses: then both are as they were.
pub fn swap_folders(one: &Path, other: &Path) -> Result<()> {
    let failed = |e| IoError::os(one, "exchange", e);
    if !exchange(one, other).map_err(failed)? {
        let aside = one.with_file_name(temporary_name(one.file_name().unwrap_or_default()));
        let steps = [(one, aside.as_path()), (other, one), (&aside, other)];
        for (done, (from, to)) in steps.iter().enumerate() {
            if let Err(e) = std::fs::rename(from, to) {
                for (from, to) in steps.iter().take(done).rev() {
                    let _ = std::fs::rename(to, from);
                }
                return Err(failed(e));
            }
        }
    }
    sync_folder(folder_of(one))
}

/// Whether the system could exchange them at once.
#[cfg(any(target_os = "linux", target_vendor = "apple"))]
fn exchange(one: &Path, other: &Path) -> std::io::Result<bool> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        // Network file systems, for one.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
#[allow(clippy::unnecessary_wraps, reason = "elsewhere it fails")]
fn exchange(_: &Path, _: &Path) -> std::io::Result<bool> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_change_places() {
        let dir = tempfile::tempdir().unwrap();
        let [one, other, third] = ["one", "other", "third"].map(|name| dir.path().join(name));
        for folder in [&one, &other] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("name"), folder.file_name().unwrap().as_encoded_bytes()).unwrap();
        }
        swap_folders(&one, &other).unwrap();
        assert_eq!(std::fs::read_to_string(one.join("name")).unwrap(), "other");
        assert_eq!(std::fs::read_to_string(other.join("name")).unwrap(), "one");
        assert!(swap_folders(&one, &third).is_err());
        assert_eq!(std::fs::read_to_string(one.join("name")).unwrap(), "other");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }

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
    fn without_hard_links_one_wins_all_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("t");
        let one = AtomicFile::create(&target, false).unwrap();
        let two = AtomicFile::create(&target, false).unwrap();
        one.rename_without_links().unwrap();
        assert!(matches!(two.rename_without_links(), Err(IoError::Exists { .. })));
        drop(two);
        let three = AtomicFile::create(dir.path().join("u"), false).unwrap();
        std::fs::remove_file(three.temporary()).unwrap();
        assert!(three.rename_without_links().is_err());
        assert_eq!(names(dir.path()), ["t"], "a name that could not be filled is given back");
    }

    #[test]
    fn bad_targets_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        assert!(AtomicFile::create(dir.path(), true).is_err());
        assert!(AtomicFile::create(dir.path().join("no/such/folder"), false).is_err());
        assert!(AtomicFile::create("/", false).is_err());
    }

    #[test]
    fn what_a_dead_writer_left_is_removed_and_what_a_living_one_writes_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let left = dir.path().join(".t.plinth.1-0.plinth-tmp");
        std::fs::write(&left, b"half").unwrap();
        for other in ["t.plinth-tmp", ".t.plinth", ".plinth-tmp.x"] {
            std::fs::write(dir.path().join(other), b"mine").unwrap();
        }
        std::fs::create_dir(dir.path().join(".folder.plinth-tmp")).unwrap();
        let mut living = AtomicFile::create(dir.path().join("a.plinth"), false).unwrap();
        living.write_all(b"a").unwrap();
        assert!(!left.exists(), "create removes leftovers");
        std::fs::write(&left, b"half").unwrap();
        assert_eq!(remove_leftovers(dir.path()).unwrap(), [left]);
        assert!(living.temporary().exists());
        living.commit().unwrap();
        assert!(remove_leftovers(dir.path()).unwrap().is_empty());
        let mut names = names(dir.path());
        names.sort();
        assert_eq!(names, [".folder.plinth-tmp", ".plinth-tmp.x", ".t.plinth", "a.plinth", "t.plinth-tmp"]);
        assert!(remove_leftovers(dir.path().join("none")).is_err());
    }

    #[test]
    fn writers_and_cleaners_at_once_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let cleaner = scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    remove_leftovers(dir.path()).unwrap();
                }
            });
            let writers: Vec<_> = (0..2)
                .map(|writer| {
                    let dir = dir.path();
                    scope.spawn(move || {
                        for i in 0..100 {
                            let target = dir.join(format!("{writer}-{i}"));
                            let mut file = AtomicFile::create(&target, false).unwrap();
                            file.write_all(b"whole").unwrap();
                            file.commit().unwrap();
                        }
                    })
                })
                .collect();
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            done.store(true, Ordering::Relaxed);
            cleaner.join().unwrap();
        });
        let names = names(dir.path());
        assert_eq!(names.len(), 200);
        assert!(names.iter().all(|name| std::fs::read(dir.path().join(name)).unwrap() == b"whole"));
    }

    #[test]
    fn a_file_can_be_given_another_name_of_its_folder() {
        let dir = tempfile::tempdir().unwrap();
        let create = || AtomicFile::create(dir.path().join("x"), false).unwrap();
        assert_eq!(create().commit_as(dir.path().join("y"), false).unwrap(), 0);
        assert!(matches!(create().commit_as(dir.path().join("y"), false), Err(IoError::Exists { .. })));
        assert!(create().commit_as(dir.path().join("no/y"), false).is_err());
        assert_eq!(names(dir.path()), ["y"]);
    }
}
