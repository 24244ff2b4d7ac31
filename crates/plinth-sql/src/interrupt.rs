//! Interruption: a statement stops soon and leaves nothing half-written.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;

use futures::future::{Either, select};
use futures::task::AtomicWaker;
use plinth_core::sync::lock;
use plinth_io::TEMPORARY_SUFFIX;

use crate::error::{Result, SqlError};

/// A request to stop, which may come from any thread: one for each session, or one for a whole program. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<State>);

#[derive(Debug, Default)]
struct State {
    /// Set by a request to stop. Each statement has its own, so that what is left of a cancelled one stays cancelled when the
    /// next begins.
    asked: Mutex<Arc<AtomicBool>>,
    waker: AtomicWaker,
    running: AtomicBool,
    folders: Mutex<Vec<Folder>>,
}

/// A folder that is written into.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// Unfinished files of this process that belong to no statement.
    spared: Vec<OsString>,
}

impl Interrupt {
    /// Asks what runs to stop.
    pub fn ask(&self) {
        self.flag().store(true, Ordering::Relaxed);
        self.0.waker.wake();
    }

    /// The mark of what runs now, which is set once it is to stop.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&lock(&self.0.asked))
    }

    /// Fails once what runs is to stop.
    ///
    /// # Errors
    /// [`SqlError::Interrupted`].
    pub fn check(&self) -> Result {
        if self.flag().load(Ordering::Relaxed) { Err(SqlError::Interrupted) } else { Ok(()) }
    }

    /// The result of some work, unless what runs is to stop before it is there. One task at a time may wait.
    ///
    /// # Errors
    /// Those of the work, or [`SqlError::Interrupted`].
    pub async fn unless_asked<T, E: From<SqlError>>(&self, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let asked = std::future::poll_fn(|context| {
            self.0.waker.register(context.waker());
            if self.check().is_err() { Poll::Ready(()) } else { Poll::Pending }
        });
        match select(std::pin::pin!(work), asked).await {
            Either::Left((result, _)) => result,
            Either::Right(_) => Err(SqlError::Interrupted.into()),
        }
    }

    /// Begins a statement, which lasts as long as what this returns: it has not been asked to stop, whatever happened to those
    /// before.
    pub fn statement(&self) -> Running {
        *lock(&self.0.asked) = Arc::default();
        for folder in self.folders().iter_mut() {
            folder.spared = unfinished(&folder.path);
        }
        self.0.running.store(true, Ordering::Relaxed);
        Running(self.clone())
    }

    /// Whether a statement runs.
    pub fn is_running(&self) -> bool {
        self.0.running.load(Ordering::Relaxed)
    }

    /// Remembers a folder in which a file is about to be written.
    pub fn writes_into(&self, path: PathBuf) {
        let mut folders = self.folders();
        if !folders.iter().any(|folder| folder.path == path) {
            // What is there already was begun by others: a result file of the shell, say.
            let spared = if self.is_running() { unfinished(&path) } else { Vec::new() };
            folders.push(Folder { path, spared });
        }
    }

    /// Removes the unfinished files of this process, within a statement only its own. Threads that still write to such files write
    /// to files without a name, and can't give them one any more.
    pub fn sweep(&self) {
        for folder in self.folders().iter() {
            for name in unfinished(&folder.path) {
                if !folder.spared.contains(&name) {
                    let _ = std::fs::remove_file(folder.path.join(name));
                }
            }
        }
    }

    /// As [`Interrupt::sweep`], when the process is about to end: files of no statement, too.
    pub fn sweep_all(&self) {
        for folder in self.folders().iter_mut() {
            folder.spared.clear();
        }
        self.sweep();
    }

    fn folders(&self) -> MutexGuard<'_, Vec<Folder>> {
        lock(&self.0.folders)
    }
}

/// A statement runs while this is kept.
#[derive(Debug)]
pub struct Running(Interrupt);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.0.running.store(false, Ordering::Relaxed);
    }
}

/// This process's unfinished files in a folder.
fn unfinished(folder: &Path) -> Vec<OsString> {
    let mine = format!(".{}-", std::process::id());
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    names
        .filter(|name| name.to_str().is_some_and(|name| name.ends_with(TEMPORARY_SUFFIX) && name.contains(&mine)))
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_swept_and_what_was_there_before_is_spared() {
        let dir = tempfile::tempdir().unwrap();
        let path = |n: u32| dir.path().join(format!(".x.{}-{n}{TEMPORARY_SUFFIX}", std::process::id()));
        let interrupt = Interrupt::default();
        std::fs::write(path(1), "the shell's").unwrap();
        interrupt.writes_into(dir.path().to_path_buf());
        let running = interrupt.statement();
        std::fs::write(path(2), "the statement's").unwrap();
        let flag = interrupt.flag();
        interrupt.ask();
        assert!(interrupt.check().is_err() && flag.load(Ordering::Relaxed));
        interrupt.sweep();
        assert!(path(1).exists() && !path(2).exists());
        drop(running);
        let _next = interrupt.statement();
        // The next one is free, the last one stays cancelled.
        assert!(interrupt.check().is_ok() && flag.load(Ordering::Relaxed));
    }
}
