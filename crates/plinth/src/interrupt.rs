//! Ctrl-C and SIGTERM: stop soon, leave nothing half-written.
//!
//! A command is over when the user interrupts it. A shell goes on: there Ctrl-C ends the statement that runs, and only
//! SIGTERM, SIGHUP or a user who has lost patience end the program.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures::task::AtomicWaker;
use plinth_io::TEMPORARY_SUFFIX;

use crate::error::{Failure, Result};

/// Set when the user asks to stop. Each statement of a shell has its own, so that what is left of a cancelled one does
/// not take heart when the next begins.
static ASKED: LazyLock<Mutex<Arc<AtomicBool>>> = LazyLock::new(Mutex::default);
static WAKER: AtomicWaker = AtomicWaker::new();
static FOLDERS: Mutex<Vec<Folder>> = Mutex::new(Vec::new());
/// How often Ctrl-C was pressed since the statement began.
static PRESSED: AtomicU32 = AtomicU32::new(0);
static RUNNING: AtomicBool = AtomicBool::new(false);

/// How long a command may take to stop by itself.
const GRACE: Duration = Duration::from_secs(2);
/// So many times Ctrl-C is pressed by someone who wants out.
const ENOUGH: u32 = 3;

/// A folder that is written into.
struct Folder {
    path: PathBuf,
    /// Unfinished files of this process that belong to no statement.
    spared: Vec<OsString>,
}

/// Listens from now on. A command that does not stop within two seconds is ended, and what it was writing removed.
pub(crate) fn listen() -> Result {
    listen_for(false)
}

/// Listens from now on, for a shell: Ctrl-C ends what runs within [`statement`].
pub(crate) fn listen_in_shell() -> Result {
    listen_for(true)
}

fn listen_for(shell: bool) -> Result {
    let failed = |e: std::io::Error| Failure::new(format!("can't listen for Ctrl-C: {e}"));
    // A thread of its own hears whatever the others do.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let mut signals = {
        let _within = runtime.enter();
        Signals::new().map_err(failed)?
    };
    let listener = move || {
        runtime.block_on(async {
            loop {
                let interrupt = signals.next().await;
                if interrupt && shell {
                    press();
                } else {
                    ask();
                    std::thread::sleep(GRACE);
                    leave(shell);
                }
            }
        });
    };
    std::thread::Builder::new().name("plinth-signals".to_owned()).spawn(listener).map_err(failed)?;
    Ok(())
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for a signal; true is Ctrl-C.
    async fn next(&mut self) -> bool {
        tokio::select! {
            _ = self.interrupt.recv() => true,
            _ = self.terminate.recv() => false,
            _ = self.hang_up.recv() => false,
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> bool {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        true
    }
}

fn ask() {
    asked_flag().store(true, Ordering::Relaxed);
    WAKER.wake();
}

/// Ctrl-C in a shell. Between statements it means something to whoever reads the keyboard, the editor or the pager.
fn press() {
    if !RUNNING.load(Ordering::Relaxed) {
        return;
    }
    ask();
    if PRESSED.fetch_add(1, Ordering::Relaxed) + 1 >= ENOUGH {
        leave(false);
    }
}

/// Ends the program.
fn leave(from_prompt: bool) -> ! {
    for folder in folders().iter_mut() {
        folder.spared.clear();
    }
    sweep();
    #[cfg(unix)]
    if from_prompt && std::io::IsTerminal::is_terminal(&std::io::stdin()) {
        // The editor has the terminal in a mode of its own.
        let _ = std::process::Command::new("stty").arg("sane").status();
    }
    let _ = from_prompt;
    crate::screen::say("plinth: interrupted");
    std::process::exit(130);
}

/// A statement of a shell runs while this is kept.
pub(crate) struct Statement(());

/// Begins a statement: it has not been asked to stop, whatever happened to those before.
pub(crate) fn statement() -> Statement {
    *ASKED.lock().unwrap_or_else(PoisonError::into_inner) = Arc::default();
    for folder in folders().iter_mut() {
        folder.spared = unfinished(&folder.path);
    }
    PRESSED.store(0, Ordering::Relaxed);
    RUNNING.store(true, Ordering::Relaxed);
    Statement(())
}

impl Drop for Statement {
    fn drop(&mut self) {
        RUNNING.store(false, Ordering::Relaxed);
    }
}

/// An error if the user asked to stop.
pub(crate) fn check() -> Result {
    if asked_flag().load(Ordering::Relaxed) { Err(Failure::Interrupted) } else { Ok(()) }
}

/// What is set when the user asks to stop what runs now.
pub(crate) fn flag() -> Arc<AtomicBool> {
    asked_flag()
}

fn asked_flag() -> Arc<AtomicBool> {
    Arc::clone(&ASKED.lock().unwrap_or_else(PoisonError::into_inner))
}

fn folders() -> MutexGuard<'static, Vec<Folder>> {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Remembers a folder in which a file is about to be written.
pub(crate) fn writes_into(path: PathBuf) {
    let mut folders = folders();
    if !folders.iter().any(|folder| folder.path == path) {
        // What is there already was begun by others: a result file of the shell, say.
        let spared = if RUNNING.load(Ordering::Relaxed) { unfinished(&path) } else { Vec::new() };
        folders.push(Folder { path, spared });
    }
}

/// Completes when the user asks to stop. One task at a time may wait.
pub(crate) fn asked() -> impl Future<Output = ()> {
    std::future::poll_fn(|context| {
        WAKER.register(context.waker());
        if check().is_err() { Poll::Ready(()) } else { Poll::Pending }
    })
}

/// Removes what this process has not finished, in a shell: what the statement has not. Threads that still write to such
/// files write to files without a name, and can't give them one any more.
pub(crate) fn sweep() {
    for folder in folders().iter() {
        for name in unfinished(&folder.path) {
            if !folder.spared.contains(&name) {
                let _ = std::fs::remove_file(folder.path.join(name));
            }
        }
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
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_swept_and_what_was_there_before_is_spared() {
        let dir = tempfile::tempdir().unwrap();
        let path = |n: u32| dir.path().join(format!(".x.{}-{n}{TEMPORARY_SUFFIX}", std::process::id()));
        std::fs::write(path(1), "the shell's").unwrap();
        writes_into(dir.path().to_path_buf());
        let running = statement();
        std::fs::write(path(2), "the statement's").unwrap();
        let flag = flag();
        ask();
        assert!(check().is_err() && flag.load(Ordering::Relaxed));
        sweep();
        assert!(path(1).exists() && !path(2).exists());
        drop(running);
        let _next = statement();
        // The next one is free, the last one stays cancelled.
        assert!(check().is_ok() && flag.load(Ordering::Relaxed));
    }
}
