//! Open descriptors, of which a process may hold only so many.
//!
//! A table may have more files than that. All descriptors of this crate share a limit, half of what the operating system
//! allows the process; beyond it, one that was not used lately is closed, and opened again by its path when it is needed.
//! Then it must still be the same file: what was removed or replaced meanwhile is an error, never other bytes.

use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::SystemTime;

use plinth_core::sync::lock;

use crate::error::{IoError, Result};
use crate::regular;

/// The limit where the operating system does not tell its own.
const DEFAULT_LIMIT: usize = 128;

/// The slots that may hold a descriptor, oldest first.
#[derive(Debug)]
struct OpenFiles {
    slots: VecDeque<Weak<Slot>>,
    limit: usize,
}

/// Where a file's descriptor is while it has one.
#[derive(Debug, Default)]
struct Slot {
    file: Mutex<Option<Arc<File>>>,
    /// The same file, past the page cache.
    direct: Mutex<Option<Arc<File>>>,
    /// Since it was last considered for closing.
    used: AtomicBool,
}

/// A file that is open, or can be opened again.
#[derive(Debug)]
pub(crate) struct Descriptor {
    path: PathBuf,
    identity: Identity,
    slot: Arc<Slot>,
    /// Set once its file system has refused to be read past the page cache.
    no_direct: AtomicBool,
    /// The process that opened it.
    process: u32,
    files: &'static Mutex<OpenFiles>,
}

/// What tells a file from another that took its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Bytes.
    pub len: u64,
    modified: Option<SystemTime>,
    inode: (u64, u64),
}

impl Descriptor {
    /// Opens a regular file: the descriptor and the file's length.
    pub(crate) fn open(path: &Path) -> Result<(Self, u64)> {
        static FILES: OnceLock<Mutex<OpenFiles>> = OnceLock::new();
        Self::open_among(path, FILES.get_or_init(|| OpenFiles::at_most(limit())))
    }

    fn open_among(path: &Path, files: &'static Mutex<OpenFiles>) -> Result<(Self, u64)> {
        let (file, identity) = open(path)?;
        // Its path as it is seen from anywhere: the process may change its folder.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        let descriptor = Self {
            path,
            identity,
            slot: Arc::default(),
            no_direct: AtomicBool::new(false),
            process: std::process::id(),
            files,
        };
        descriptor.keep(file);
        Ok((descriptor, identity.len))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The open file.
    ///
    /// # Errors
    /// If it had to be opened again, and is not there any more or another file is.
    pub(crate) fn get(&self) -> Result<Arc<File>> {
        if self.process != std::process::id() {
            // In a forked child a thread that stayed with the parent may hold any lock for ever.
            let file = self.slot.file.try_lock().ok().and_then(|file| file.clone());
            return file.map_or_else(|| self.open_again().map(Arc::new), Ok);
        }
        self.slot.used.store(true, Ordering::Relaxed);
        if let Some(file) = &*lock(&self.slot.file) {
            return Ok(Arc::clone(file));
        }
        Ok(self.keep(self.open_again()?))
    }

    fn open_again(&self) -> Result<File> {
        let changed = |e| IoError::os(&self.path, "read on, it was removed or replaced meanwhile; ask again", e);
        let (file, identity) = open(&self.path).map_err(|e| match e {
            IoError::Os { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                changed(std::io::ErrorKind::NotFound.into())
            }
            other => other,
        })?;
        if identity != self.identity {
            return Err(changed(std::io::Error::other("another file has its name")));
        }
        Ok(file)
    }

    /// The file opened for reads past the page cache; `None` if its file system has none.
    ///
    /// # Errors
    /// As [`Descriptor::get`].
    pub(crate) fn direct(&self) -> Result<Option<Arc<File>>> {
        if let Some(file) = &*lock(&self.slot.direct) {
            return Ok(Some(Arc::clone(file)));
        }
        let file = self.get()?;
        if self.no_direct.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let Some(direct) = open_direct(&self.path) else {
            self.no_direct.store(true, Ordering::Relaxed);
            return Ok(None);
        };
        let same = |file: &File| file.metadata().map(|metadata| Identity::of(&metadata)).ok();
        if same(&file) != same(&direct) {
            return Ok(None);
        }
        let direct = Arc::new(direct);
        *lock(&self.slot.direct) = Some(Arc::clone(&direct));
        // It counts as one more.
        lock(self.files).add(&self.slot);
        Ok(Some(direct))
    }

    /// Puts a descriptor into its slot, and closes another if there are too many.
    fn keep(&self, file: File) -> Arc<File> {
        let file = Arc::new(file);
        // Another thread may have done the same; both files are the same.
        *lock(&self.slot.file) = Some(Arc::clone(&file));
        lock(self.files).add(&self.slot);
        file
    }
}

impl OpenFiles {
    fn at_most(limit: usize) -> Mutex<Self> {
        Mutex::new(Self { slots: VecDeque::new(), limit })
    }

    fn add(&mut self, slot: &Arc<Slot>) {
        self.slots.push_back(Arc::downgrade(slot));
        if self.slots.len() <= self.limit {
            return;
        }
        self.slots.retain(|slot| slot.strong_count() > 0);
        // Each gets a second chance, so that twice around finds one.
        let mut chances = self.slots.len();
        while self.slots.len() > self.limit {
            let Some(oldest) = self.slots.pop_front() else { return };
            let Some(slot) = oldest.upgrade() else { continue };
            if chances > 0 && slot.used.swap(false, Ordering::Relaxed) {
                chances -= 1;
                self.slots.push_back(oldest);
            } else {
                *lock(&slot.file) = None;
                *lock(&slot.direct) = None;
            }
        }
    }
}

/// Opens a file for reads past the page cache.
#[cfg(target_os = "linux")]
fn open_direct(path: &Path) -> Option<File> {
    let file = regular::without_waiting(File::options().read(true), libc::O_DIRECT).open(path).ok()?;
    regular::wait_from_now_on(&file).ok()?;
    Some(file)
}

#[cfg(not(target_os = "linux"))]
fn open_direct(_path: &Path) -> Option<File> {
    None
}

fn open(path: &Path) -> Result<(File, Identity)> {
    let file = regular::open(path)?;
    let metadata = file.metadata().map_err(|e| IoError::os(path, "read its size", e))?;
    // What is read next is known here and asked for in time. The system's guess would fetch the columns in between, too.
    #[cfg(target_os = "linux")]
    let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random);
    Ok((file, Identity::of(&metadata)))
}

impl Identity {
    /// Of the file that this says something of.
    pub fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let inode = {
            use std::os::unix::fs::MetadataExt;
            (metadata.dev(), metadata.ino())
        };
        #[cfg(not(unix))]
        let inode = (0, 0);
        Self { len: metadata.len(), modified: metadata.modified().ok(), inode }
    }

    /// Of an object: its length, when it was last changed, and its store's own name for its bytes.
    pub fn of_object(len: u64, modified: SystemTime, tag: Option<&str>) -> Self {
        let tag = tag.map_or((0, 0), |tag| (plinth_core::wire::checksum(tag.as_bytes()), tag.len() as u64));
        Self { len, modified: Some(modified), inode: tag }
    }

    /// When it was last changed, where that is known.
    pub fn modified(&self) -> Option<SystemTime> {
        self.modified
    }
}

/// Half of the descriptors that the process may have.
fn limit() -> usize {
    // Linux tells it in a file; to ask elsewhere takes a system call that the standard library does not have.
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    match line.and_then(|line| line.split_whitespace().next()) {
        Some("unlimited") => 1 << 16,
        Some(soft) => soft.parse::<usize>().map_or(DEFAULT_LIMIT, |soft| (soft / 2).clamp(16, 1 << 16)),
        None => DEFAULT_LIMIT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::positioned::read_at;

    fn read(descriptor: &Descriptor) -> Result<u8> {
        let mut byte = [0];
        let file = descriptor.get()?;
        read_at(&file, &mut byte, 0).map_err(|e| IoError::os(descriptor.path(), "read", e))?;
        Ok(byte[0])
    }

    fn is_open(descriptor: &Descriptor) -> bool {
        lock(&descriptor.slot.file).is_some()
    }

    #[test]
    fn more_files_than_descriptors_can_be_read_again_and_again() {
        let dir = tempfile::tempdir().unwrap();
        let (most, files) = (16, Box::leak(Box::new(OpenFiles::at_most(16))));
        let files: Vec<Descriptor> = (0..most + 40)
            .map(|i| {
                let path = dir.path().join(i.to_string());
                std::fs::write(&path, [u8::try_from(i % 256).unwrap()]).unwrap();
                Descriptor::open_among(&path, files).unwrap().0
            })
            .collect();
        for _ in 0..2 {
            for (i, file) in files.iter().enumerate() {
                assert_eq!(usize::from(read(file).unwrap()), i % 256);
            }
            assert!(files.iter().filter(|file| is_open(file)).count() <= most);
        }
        // One that is read all the time stays open.
        for file in &files {
            read(&files[0]).unwrap();
            read(file).unwrap();
            assert!(is_open(&files[0]));
        }
    }

    #[test]
    fn a_forked_child_waits_for_no_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, b"a").unwrap();
        let (mut file, _) = Descriptor::open(&path).unwrap();
        // As if another process had opened it, and a thread of that had the lock when this one was forked.
        file.process = 0;
        let slot = Arc::clone(&file.slot);
        let held = lock(&slot.file);
        assert_eq!(read(&file).unwrap(), b'a');
        drop(held);
        assert_eq!(read(&file).unwrap(), b'a');
    }

    #[test]
    fn a_file_that_was_replaced_or_removed_while_it_was_closed_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, b"a").unwrap();
        let (file, _) = Descriptor::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read(&file).unwrap(), b'a', "open, it is still there");
        *lock(&file.slot.file) = None;
        assert!(read(&file).unwrap_err().to_string().contains("ask again"));
        // Another file of the same length.
        std::fs::write(dir.path().join("y"), b"b").unwrap();
        std::fs::rename(dir.path().join("y"), &path).unwrap();
        assert!(read(&file).unwrap_err().to_string().contains("another file has its name"));
    }
}
