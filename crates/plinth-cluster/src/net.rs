//! A thread for connections, which stay alive while all others compute: who is asked whether it is still there answers, and who is gone is seen to be.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use tokio::runtime::{Handle, Runtime};
use tokio::task::JoinHandle;

use crate::error::ClusterError;

/// The thread. It ends with its last owner, and with it the connections.
#[derive(Clone)]
pub(crate) struct Net(Arc<Owned>);

struct Owned(Option<Runtime>, Handle);

impl fmt::Debug for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Net")
    }
}

impl Net {
    pub(crate) fn start() -> Result<Self, ClusterError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("plinth-net")
            .enable_all()
            .build()
            .map_err(|e| ClusterError::new(format!("can't start a thread for connections: {e}")))?;
        let handle = runtime.handle().clone();
        Ok(Self(Arc::new(Owned(Some(runtime), handle))))
    }

    /// Has the thread do something, until what this returns is dropped.
    pub(crate) fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Until<T> {
        Until(self.0.1.spawn(work))
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // It may be a task that drops it, which must not wait.
            runtime.shutdown_background();
        }
    }
}

/// The tasks of connections.
impl hyper::rt::Executor<Pin<Box<dyn Future<Output = ()> + Send>>> for Net {
    fn execute(&self, work: Pin<Box<dyn Future<Output = ()> + Send>>) {
        drop(self.0.1.spawn(work));
    }
}

/// A task that ends when no one waits for it any more.
pub(crate) struct Until<T>(JoinHandle<T>);

impl<T> Until<T> {
    pub(crate) fn of(task: JoinHandle<T>) -> Self {
        Self(task)
    }
}

impl<T> Drop for Until<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<T> Future for Until<T> {
    type Output = Result<T, tokio::task::JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut std::task::Context<'_>) -> std::task::Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}
