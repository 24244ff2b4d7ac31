//! Waiting for the engine: without the interpreter's lock, and with an ear for Ctrl-C.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{Thread, ThreadId};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::error::Failure;

/// How long a signal may go unheard, and a request of another thread to stop.
const TICK: Duration = Duration::from_millis(50);

/// The thread that runs the handlers of signals: the one that imported the package, unless that was done in a thread.
static MAIN: OnceLock<ThreadId> = OnceLock::new();

/// Remembers the thread that hears signals.
pub(crate) fn this_is_main() {
    let _ = MAIN.set(std::thread::current().id());
}

/// A request to stop one statement, from any thread.
#[derive(Debug, Default)]
pub(crate) struct Stop(AtomicBool);

impl Stop {
    pub(crate) fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The result of some work, unless it is asked to stop or a signal comes first. The caller has let go of the interpreter.
pub(crate) fn wait<T>(work: impl Future<Output = T>, stop: &Stop) -> Result<T, Failure> {
    let mut work = pin!(work);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let main = MAIN.get() == Some(&std::thread::current().id());
    let mut listened = Instant::now();
    loop {
        if let Poll::Ready(result) = work.as_mut().poll(&mut context) {
            return Ok(result);
        }
        if stop.is_asked() {
            return Err(Failure::Interrupted);
        }
        if main && listened.elapsed() >= TICK {
            Python::try_attach(|py| py.check_signals()).transpose().map_err(Failure::Python)?;
            listened = Instant::now();
        }
        std::thread::park_timeout(TICK);
    }
}

/// Does work without the interpreter's lock, for a caller of C that may hold it or not.
pub(crate) fn without_lock<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match holds_lock() {
        // A consumer that has let go of it may have a thread that holds it and waits for this one.
        false => work(),
        true => Python::attach(|py| py.detach(work)),
    }
}

/// Has the interpreter handle Ctrl-C once more.
#[allow(unsafe_code)]
pub(crate) fn raise_again() {
    // SAFETY: it only marks the signal as one that came, and may be called by any thread.
    unsafe { pyo3::ffi::PyErr_SetInterrupt() };
}

/// Whether this thread holds the interpreter's lock.
#[cfg(unix)]
#[allow(unsafe_code)]
fn holds_lock() -> bool {
    static CHECK: OnceLock<Option<unsafe extern "C" fn() -> std::ffi::c_int>> = OnceLock::new();
    // Every interpreter exports it, though it is no part of the stable interface.
    let check = CHECK.get_or_init(|| {
        // SAFETY: a name that ends with a zero.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"PyGILState_Check".as_ptr()) };
        // SAFETY: `int PyGILState_Check(void)`, or none.
        unsafe { std::mem::transmute::<*mut libc::c_void, Option<unsafe extern "C" fn() -> std::ffi::c_int>>(found) }
    });
    // SAFETY: it may be called by any thread.
    check.is_none_or(|check| unsafe { check() } == 1)
}

/// Whether this thread may hold the interpreter's lock.
#[cfg(not(unix))]
fn holds_lock() -> bool {
    true
}
