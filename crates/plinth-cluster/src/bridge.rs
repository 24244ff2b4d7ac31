//! Calls, from the thread of connections to those that work, and queries that are over.
//!
//! The process that asks keeps a call open for each task as long as its query runs. Once one has ended, by whatever cause, the query is over: operators that would
//! not come back to their scheduler for long hear it by a mark.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response};
use hyper::body::{Frame, Incoming, SizeHint};
use plinth_core::sync::lock;
use plinth_sql::Interrupt;
use tokio::runtime::Handle;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service;

use crate::net::Until;

/// The header that says of which query a call is.
pub(crate) const QUERY: &str = "x-plinth-query";

/// How the path of the call ends that stays open as long as its query runs.
const STAYS_OPEN: &str = "/CoordinatorChannel";

/// The queries whose calls are open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queries(Arc<Mutex<HashMap<String, Weak<Interrupt>>>>);

impl Queries {
    /// The mark of the query that a call is of.
    pub(crate) fn of(&self, headers: &HeaderMap) -> Option<Arc<Interrupt>> {
        let name = headers.get(QUERY)?.to_str().ok().filter(|name| name.len() <= 64)?;
        let mut all = lock(&self.0);
        if let Some(known) = all.get(name).and_then(Weak::upgrade) {
            return Some(known);
        }
        all.retain(|_, query| query.strong_count() > 0);
        let new = Arc::new(Interrupt::default());
        all.insert(name.to_owned(), Arc::downgrade(&new));
        Some(new)
    }
}

/// A service whose work is done by other threads than those of its connections.
#[derive(Clone)]
pub(crate) struct Bridge<S> {
    service: S,
    work: Handle,
    queries: Queries,
}

impl<S> Bridge<S> {
    pub(crate) fn new(service: S, work: Handle, queries: Queries) -> Self {
        Self { service, work, queries }
    }
}

impl<S> Service<Request<Incoming>> for Bridge<S>
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let stays = request.uri().path().ends_with(STAYS_OPEN);
        let over = stays.then(|| self.queries.of(request.headers())).flatten().map(Over);
        let mut service = self.service.clone();
        let answer = Until::of(self.work.spawn(async move { service.call(request).await }));
        async move {
            Ok(match answer.await {
                Ok(Ok(response)) => match over {
                    Some(over) => response.map(|body| Body::new(Open { body, _over: over })),
                    None => response,
                },
                Ok(Err(never)) => match never {},
                Err(_) => {
                    Status::unavailable("this worker ends, or a part of the query was given up there").into_http()
                }
            })
        }
        .boxed()
    }
}

/// Marks its query when it is dropped.
struct Over(Arc<Interrupt>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.ask();
    }
}

/// The answer of a call that stays open.
struct Open {
    body: Body,
    _over: Over,
}

impl hyper::body::Body for Open {
    type Data = <Body as hyper::body::Body>::Data;
    type Error = <Body as hyper::body::Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
