//! Locks on a folder. The operating system drops them with the process that holds them.

use std::fs::{File, TryLockError};
use std::path::Path;

use plinth_format::{FormatError, Result};
use plinth_io::{IoError, regular};

/// Held alone by a process that changes what files the table has, for as long as that takes and no longer; held together by those
/// who list them.
const COMMIT: &str = ".plinth-lock";

/// Held by the one that compacts.
const COMPACTING: &str = ".plinth-compacting";

/// A lock, held until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough: a process that was forked meanwhile holds the same lock until it runs its own program. If
        // this fails, it is the last to close that unlocks.
        let _ = self.file.unlock();
    }
}

/// Keeps everybody else from changing or listing a folder's files.
pub(crate) fn exclusive(folder: &Path) -> Result<Lock> {
    let path = folder.join(COMMIT);
    let file = create(&path)?;
    file.lock().map_err(|e| IoError::os(&path, "lock", e))?;
    Ok(Lock { file })
}

/// Keeps others from changing a folder's files while they are listed.
pub(crate) enum Shared {
    /// Held.
    Held { _lock: Lock },
    /// The folder has never been locked.
    NeverLocked,
    /// The file system or its permissions do not allow it.
    Unlockable,
}

pub(crate) fn shared(folder: &Path) -> Shared {
    match regular::open(folder.join(COMMIT)) {
        Ok(file) => match file.lock_shared() {
            Ok(()) => Shared::Held { _lock: Lock { file } },
            Err(_) => Shared::Unlockable,
        },
        Err(e) if e.is_not_found() => Shared::NeverLocked,
        Err(_) => Shared::Unlockable,
    }
}

/// Keeps other compactions out.
///
/// # Errors
/// If one is running.
pub(crate) fn compacting(folder: &Path) -> Result<Lock> {
    let path = folder.join(COMPACTING);
    let file = create(&path)?;
    match file.try_lock() {
        Ok(()) => Ok(Lock { file }),
        Err(TryLockError::WouldBlock) => {
            let what = format!("{}: is being compacted already; wait until that is done", folder.display());
            Err(FormatError::InvalidArgument(what))
        }
        Err(TryLockError::Error(e)) => Err(IoError::os(&path, "lock", e).into()),
    }
}

fn create(path: &Path) -> Result<File> {
    let mut options = File::options();
    Ok(regular::open_with(path, "create", options.read(true).write(true).create(true).truncate(false))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_ends_when_it_is_dropped_though_a_forked_process_has_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let lock = compacting(dir.path()).unwrap();
        let inherited = lock.file.try_clone().unwrap();
        assert!(compacting(dir.path()).is_err());
        drop(lock);
        compacting(dir.path()).unwrap();
        drop(inherited);
    }
}
