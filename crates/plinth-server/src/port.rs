//! A port: connections, TLS, and the time that a connection has to come in. What is done with requests is the affair of others.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::body::Body;

use crate::failure::ServerError;
use crate::log::Log;
use crate::options::Limits;
use crate::tls::Tls;

/// Bytes of the headers of a request.
const HEADERS: u32 = 32 << 10;

/// Requests of a connection at once.
const STREAMS: u32 = 256;

/// How often a silent connection is asked whether it is still there, and how long that may take.
const ALIVE: Duration = Duration::from_secs(30);

/// How long to wait before connections are taken again, once that has failed: for want of descriptors, say.
const PAUSE: Duration = Duration::from_millis(100);

/// What answers requests.
pub(crate) trait Answers: Clone + Send + Sync + 'static {
    /// What is known of a connection.
    type Connection: Send + Sync + 'static;

    /// A connection from an address.
    fn connected(&self, peer: SocketAddr) -> Self::Connection;

    /// Whether a request by it had a token that is one.
    fn came_in(connection: &Self::Connection) -> bool;

    /// The answer to a request, whose token is looked at before anything else.
    fn answer(
        &self,
        connection: Arc<Self::Connection>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<Body>> + Send;

    /// Requests of a connection at once.
    fn streams(&self) -> u32 {
        STREAMS
    }
}

/// A port that listens.
pub(crate) struct Port {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Tls>,
    limits: Limits,
    log: Log,
}

impl Port {
    /// Listens at an address; port 0 is one that is free.
    ///
    /// # Errors
    /// If the address is none or taken; if it is beyond this machine, and connections would be in plain text.
    pub(crate) async fn bind(
        address: &str,
        tls: Option<Tls>,
        plaintext_anywhere: bool,
        limits: Limits,
        log: Log,
    ) -> Result<Self, ServerError> {
        let listener = listen(address, tls.is_some(), plaintext_anywhere).await?;
        let address = listener.local_addr().map_err(ServerError::new)?;
        Ok(Self { listener, address, tls, limits, log })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether connections have TLS.
    pub(crate) fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Takes connections until `end` is over; those that there are go on until what is returned is told to shut them.
    pub(crate) async fn run<A: Answers>(self, answers: A, end: impl Future<Output = ()>) -> GracefulShutdown {
        let (graceful, places) = (GracefulShutdown::new(), Arc::new(Semaphore::new(self.limits.connections)));
        let mut end = std::pin::pin!(end);
        loop {
            let (stream, peer, place) = tokio::select! {
                accepted = accept(&self.listener, &places, &self.log) => accepted,
                () = &mut end => return graceful,
            };
            let connected = Connected {
                answers: answers.clone(),
                handshake: self.limits.handshake,
                log: self.log.clone(),
                peer,
                watcher: graceful.watcher(),
            };
            let tls = self.tls.clone();
            tokio::spawn(async move {
                let _place = place;
                connected.take(tls, stream).await;
            });
        }
    }
}

/// Listens at an address; port 0 is one that is free.
///
/// # Errors
/// If the address is none or taken; if it is beyond this machine, and connections would be in plain text.
pub(crate) async fn listen(address: &str, has_tls: bool, plaintext_anywhere: bool) -> Result<TcpListener, ServerError> {
    let failed = |what: &dyn std::fmt::Display| ServerError::new(format!("{address}: {what}"));
    let all: Vec<SocketAddr> = tokio::net::lookup_host(address)
        .await
        .map_err(|e| failed(&format!("is no address and port to listen at: {e}")))?
        .collect();
    let is_local = all.iter().all(|address| address.ip().is_loopback());
    if !has_tls && !is_local && !plaintext_anywhere {
        return Err(failed(
            &"is reached from other machines, where tokens and rows would travel in plain text: give --tls-cert and --tls-key, or \
              --insecure-plaintext if the network is your own",
        ));
    }
    TcpListener::bind(all.as_slice()).await.map_err(|e| failed(&format!("can't be listened at: {e}")))
}

/// The next connection for which there is a place.
pub(crate) async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
    log: &Log,
) -> (TcpStream, SocketAddr, OwnedSemaphorePermit) {
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        match Arc::clone(places).try_acquire_owned() {
            Ok(place) => return (stream, peer, place),
            Err(_) => log.event(format_args!("from={peer} state=refused why=connections")),
        }
    }
}

/// A connection that was taken.
struct Connected<A> {
    answers: A,
    handshake: Duration,
    log: Log,
    peer: SocketAddr,
    watcher: Watcher,
}

impl<A: Answers> Connected<A> {
    /// Serves it until it ends.
    async fn take(self, tls: Option<Tls>, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let Some(tls) = tls else { return self.serve(stream).await };
        match tokio::time::timeout(self.handshake, tls.acceptor().accept(stream)).await {
            Ok(Ok(stream)) => self.serve(stream).await,
            Ok(Err(_)) => self.log.event(format_args!("from={} state=refused why=tls", self.peer)),
            Err(_) => self.log.event(format_args!("from={} state=refused why=slow", self.peer)),
        }
    }

    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) {
        let connection = Arc::new(self.answers.connected(self.peer));
        let (by, streams, answers) = (Arc::clone(&connection), self.answers.streams(), self.answers);
        let service = service_fn(move |request| {
            let (answers, by) = (answers.clone(), Arc::clone(&by));
            async move { Ok::<_, Infallible>(answers.answer(by, request).await) }
        });
        let mut builder = Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(self.handshake);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(streams)
            .max_header_list_size(HEADERS)
            .keep_alive_interval(ALIVE)
            .keep_alive_timeout(ALIVE);
        let served = builder.serve_connection(TokioIo::new(stream), service).into_owned();
        let mut served = std::pin::pin!(self.watcher.watch(served));
        let late = tokio::time::sleep(self.handshake);
        tokio::select! {
            // How it ended is the client's affair.
            _ = &mut served => return,
            () = late => {}
        }
        if A::came_in(&connection) {
            let _ = served.await;
        } else {
            self.log.event(format_args!("from={} state=refused why=slow", self.peer));
        }
    }
}

/// Whether a request is a call of gRPC.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
}
