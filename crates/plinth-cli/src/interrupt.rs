//! Ctrl-C and SIGTERM: stop soon, leave nothing half-written.
//!
//! A command is over when the user interrupts it. A shell goes on: there Ctrl-C ends the statement that runs, and only
//! SIGTERM, SIGHUP or a user who has lost patience end the program.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use plinth_sql::{Interrupt, Running};

use crate::error::{Failure, Result};

/// The user's request to stop what this program does.
static INTERRUPT: LazyLock<Interrupt> = LazyLock::new(Interrupt::default);
/// How often Ctrl-C was pressed since the statement began.
static PRESSED: AtomicU32 = AtomicU32::new(0);

/// How long a command may take to stop by itself.
const GRACE: Duration = Duration::from_secs(2);
/// So many times Ctrl-C is pressed by someone who wants out.
const ENOUGH: u32 = 3;

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
                    INTERRUPT.ask();
                    std::thread::sleep(GRACE);
                    leave(shell);
                }
            }
        });
    };
    std::thread::Builder::new().name("plinth-signals".to_owned()).spawn(listener).map_err(failed)?;
    Ok(())
}

/// Requests of the user, or of who manages the machine, that this program ends.
#[cfg(unix)]
pub(crate) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    pub(crate) fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for a signal; true is Ctrl-C.
    pub(crate) async fn next(&mut self) -> bool {
        tokio::select! {
            _ = self.interrupt.recv() => true,
            _ = self.terminate.recv() => false,
            _ = self.hang_up.recv() => false,
        }
    }
}

#[cfg(not(unix))]
pub(crate) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    pub(crate) async fn next(&mut self) -> bool {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        true
    }
}

/// Ctrl-C in a shell. Between statements the editor or the pager, which read the keyboard, handle it.
fn press() {
    if !INTERRUPT.is_running() {
        return;
    }
    INTERRUPT.ask();
    if PRESSED.fetch_add(1, Ordering::Relaxed) + 1 >= ENOUGH {
        leave(false);
    }
}

/// Ends the program.
fn leave(from_prompt: bool) -> ! {
    INTERRUPT.sweep_all();
    #[cfg(unix)]
    if from_prompt && std::io::IsTerminal::is_terminal(&std::io::stdin()) {
        // The editor has the terminal in a mode of its own.
        let _ = std::process::Command::new("stty").arg("sane").status();
    }
    let _ = from_prompt;
    crate::screen::say("plinth: interrupted");
    std::process::exit(130);
}

/// The request that sessions listen to.
pub(crate) fn handle() -> Interrupt {
    INTERRUPT.clone()
}

/// Begins a statement of a shell.
pub(crate) fn statement() -> Running {
    PRESSED.store(0, Ordering::Relaxed);
    INTERRUPT.statement()
}

/// An error if the user asked to stop.
pub(crate) fn check() -> Result {
    Ok(INTERRUPT.check()?)
}

/// What is set when the user asks to stop what runs now.
pub(crate) fn flag() -> Arc<AtomicBool> {
    INTERRUPT.flag()
}

/// Remembers a folder in which a file is about to be written.
pub(crate) fn writes_into(path: PathBuf) {
    INTERRUPT.writes_into(path);
}
