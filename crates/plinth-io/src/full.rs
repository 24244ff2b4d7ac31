//! A folder of the real file system that is full at one write.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use plinth_core::sync::lock;

/// A folder in which one write of an [`AtomicFile`](crate::AtomicFile) finds the device full, until this is dropped.
#[derive(Debug)]
pub struct FullFolder(PathBuf);

/// A folder and the writes that there were in it.
#[derive(Debug)]
struct Watched {
    folder: PathBuf,
    fails: u64,
    writes: u64,
}

static WATCHED: Mutex<Vec<Watched>> = Mutex::new(Vec::new());

fn watched() -> MutexGuard<'static, Vec<Watched>> {
    lock(&WATCHED)
}

impl FullFolder {
    /// The write that fails, counted from now on.
    pub fn at(folder: impl AsRef<Path>, write: u64) -> Self {
        let folder = folder.as_ref().to_path_buf();
        watched().push(Watched { folder: folder.clone(), fails: write, writes: 0 });
        Self(folder)
    }

    /// Whether there was that write.
    pub fn was_full(&self) -> bool {
        watched().iter().any(|watched| watched.folder == self.0 && watched.writes > watched.fails)
    }
}

impl Drop for FullFolder {
    fn drop(&mut self) {
        watched().retain(|watched| watched.folder != self.0);
    }
}

/// Counts a write to a file; whether the device is full for it.
pub(crate) fn is_full(file: &Path) -> bool {
    let mut all = watched();
    let Some(watched) = all.iter_mut().find(|watched| file.parent() == Some(&watched.folder)) else { return false };
    watched.writes += 1;
    watched.writes == watched.fails + 1
}
