//! Ctrl-C and SIGTERM: stop soon, leave nothing half-written.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures::task::AtomicWaker;
use plinth_io::TEMPORARY_SUFFIX;

use crate::error::{Failure, Result};

static ASKED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
static WAKER: AtomicWaker = AtomicWaker::new();
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// How long a command may take to stop by itself.
const GRACE: Duration = Duration::from_secs(2);

/// Listens from now on. A command that does not stop within two seconds is ended, and what it was writing removed.
pub(crate) fn listen() -> Result {
    ctrlc::set_handler(|| {
        ASKED.store(true, Ordering::Relaxed);
        WAKER.wake();
        std::thread::sleep(GRACE);
        sweep();
        eprintln!("plinth: interrupted");
        std::process::exit(130);
    })
    .map_err(|e| Failure::new(format!("can't listen for Ctrl-C: {e}")))
}

/// An error if the user asked to stop.
pub(crate) fn check() -> Result {
    if ASKED.load(Ordering::Relaxed) { Err(Failure::Interrupted) } else { Ok(()) }
}

/// What is set when the user asked to stop.
pub(crate) fn flag() -> Arc<AtomicBool> {
    Arc::clone(&ASKED)
}

/// Remembers a folder in which a file is about to be written.
pub(crate) fn writes_into(folder: PathBuf) {
    let mut folders = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
    if !folders.contains(&folder) {
        folders.push(folder);
    }
}

/// Completes when the user asks to stop. One task at a time may wait.
pub(crate) fn asked() -> impl Future<Output = ()> {
    std::future::poll_fn(|context| {
        WAKER.register(context.waker());
        if ASKED.load(Ordering::Relaxed) { Poll::Ready(()) } else { Poll::Pending }
    })
}

/// Removes this process's unfinished files. Threads that still write to them write to files without a name, and can't
/// give them one any more.
pub(crate) fn sweep() {
    let folders = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
    let mine = format!(".{}-", std::process::id());
    for folder in folders.iter() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if name.to_str().is_some_and(|name| name.ends_with(TEMPORARY_SUFFIX) && name.contains(&mine)) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}
