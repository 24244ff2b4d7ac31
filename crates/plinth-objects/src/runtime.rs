//! The threads that requests run on, which are this crate's own: a caller that waits for one holds up no other.

use std::future::Future;
use std::sync::OnceLock;
use std::sync::mpsc::sync_channel;

use plinth_io::{IoError, Result};
use tokio::runtime::{Builder, Runtime};

/// Threads; what they wait for is the network, and what they do is decryption and copying.
const THREADS: usize = 4;

/// The threads, started with the first request.
///
/// # Errors
/// If the system gives none.
pub(crate) fn runtime() -> Result<&'static Runtime> {
    static RUNTIME: OnceLock<std::io::Result<Runtime>> = OnceLock::new();
    let threads = std::thread::available_parallelism().map_or(2, usize::from).min(THREADS);
    let start =
        || Builder::new_multi_thread().worker_threads(threads).thread_name("plinth-objects").enable_all().build();
    RUNTIME.get_or_init(start).as_ref().map_err(|e| {
        let what = std::io::Error::new(e.kind(), e.to_string());
        IoError::os("object stores", "start threads", what)
    })
}

/// Runs a future to its end on those threads, and waits for it on this one.
///
/// # Errors
/// What the future says; if its thread ended before it.
pub(crate) fn wait<T: Send + 'static>(future: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
    let (send, receive) = sync_channel(1);
    runtime()?.spawn(async move { drop(send.send(future.await)) });
    receive.recv().map_err(|_| IoError::Abandoned)?
}
