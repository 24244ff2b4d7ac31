//! What went to stores and came from them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use futures::future::BoxFuture;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};

/// Counts of all stores of a session, while it runs.
#[derive(Debug, Default)]
pub struct Counters {
    requests: AtomicU64,
    bytes: AtomicU64,
    hedged: AtomicU64,
    resumed: AtomicU64,
    drive_bytes: AtomicU64,
    drive_hits: AtomicU64,
}

/// What was counted up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Requests that were sent, each try for itself, also those for lists and credentials.
    pub requests: u64,
    /// Bytes of objects that came.
    pub bytes: u64,
    /// Requests that were sent once more because the first was late.
    pub hedged: u64,
    /// Requests that went on where one broke off.
    pub resumed: u64,
    /// Bytes that were read from the local drive instead.
    pub drive_bytes: u64,
    /// Ranges that were.
    pub drive_hits: u64,
}

impl Counters {
    /// What was counted so far.
    pub fn now(&self) -> Traffic {
        let of = |counter: &AtomicU64| counter.load(Relaxed);
        Traffic {
            requests: of(&self.requests),
            bytes: of(&self.bytes),
            hedged: of(&self.hedged),
            resumed: of(&self.resumed),
            drive_bytes: of(&self.drive_bytes),
            drive_hits: of(&self.drive_hits),
        }
    }

    pub(crate) fn came(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn hedged(&self) {
        self.hedged.fetch_add(1, Relaxed);
    }

    pub(crate) fn resumed(&self) {
        self.resumed.fetch_add(1, Relaxed);
    }

    pub(crate) fn spared(&self, bytes: u64) {
        self.drive_hits.fetch_add(1, Relaxed);
        self.drive_bytes.fetch_add(bytes, Relaxed);
    }
}

impl Traffic {
    /// What was counted since an earlier moment.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            requests: self.requests - before.requests,
            bytes: self.bytes - before.bytes,
            hedged: self.hedged - before.hedged,
            resumed: self.resumed - before.resumed,
            drive_bytes: self.drive_bytes - before.drive_bytes,
            drive_hits: self.drive_hits - before.drive_hits,
        }
    }
}

/// Clients whose requests are counted.
#[derive(Debug)]
pub(crate) struct Counting(pub(crate) Arc<Counters>);

#[derive(Debug)]
struct Counted {
    counters: Arc<Counters>,
    inner: HttpClient,
}

impl HttpConnector for Counting {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let inner = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(Counted { counters: Arc::clone(&self.0), inner }))
    }
}

impl HttpService for Counted {
    // `async_trait`'s signature, written out.
    fn call<'a: 'b, 'b>(&'a self, request: HttpRequest) -> BoxFuture<'b, Result<HttpResponse, HttpError>>
    where
        Self: 'b,
    {
        self.counters.requests.fetch_add(1, Relaxed);
        Box::pin(self.inner.execute(request))
    }
}
