//! The port: connections, TLS, and where each request goes.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tonic::body::Body;
use tonic::codegen::Service;

use crate::connection::Connection;
use crate::door::Door;
use crate::entry;
use crate::failure::ServerError;
use crate::flight::Flight;
use crate::options::ServerOptions;
use crate::statement::Why;
use crate::tls::Tls;
use crate::{janitor, pages};

/// Bytes of the headers of a request.
const HEADERS: u32 = 32 << 10;

/// Requests of a connection at once.
const STREAMS: u32 = 256;

/// How often a silent connection is asked whether it is still there, and how long that may take.
const ALIVE: Duration = Duration::from_secs(30);

/// How long connections may take to close once nothing runs any more.
const LEAVING: Duration = Duration::from_secs(2);

/// How long to wait before connections are taken again, once that has failed: for want of descriptors, say.
const PAUSE: Duration = Duration::from_millis(100);

/// How often it is looked whether something still runs, once the server is to end.
const LOOK: Duration = Duration::from_millis(20);

/// A server that listens.
pub struct Server {
    door: Arc<Door>,
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Tls>,
    flight: FlightServiceServer<Flight>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Server {
    /// Opens the folder and listens at an address, `127.0.0.1:8815` say; port 0 is one that is free.
    ///
    /// # Errors
    /// If the folder can't be read, or the address is none or taken; if it is beyond this machine, and connections would be in plain text.
    pub async fn bind(options: ServerOptions, address: &str) -> Result<Self, ServerError> {
        let failed = |what: &dyn std::fmt::Display| ServerError::new(format!("{address}: {what}"));
        let all: Vec<SocketAddr> = tokio::net::lookup_host(address)
            .await
            .map_err(|e| failed(&format!("is no address and port to listen at: {e}")))?
            .collect();
        let is_local = all.iter().all(|address| address.ip().is_loopback());
        if options.tls.is_none() && !is_local && !options.plaintext_anywhere {
            return Err(failed(
                &"is reached from other machines, where tokens and rows would travel in plain text: give --tls-cert and --tls-key, or \
                  --insecure-plaintext if the network is your own",
            ));
        }
        let tls = options.tls.clone();
        let door = Arc::new(Door::open(options)?);
        door.host.open_tables().await?;
        let listener =
            TcpListener::bind(all.as_slice()).await.map_err(|e| failed(&format!("can't be listened at: {e}")))?;
        let address = listener.local_addr().map_err(|e| failed(&e))?;
        let flight = FlightServiceServer::new(Flight::new(Arc::clone(&door))?)
            .max_decoding_message_size(door.limits.message_bytes);
        Ok(Self { door, listener, address, tls, flight })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `end` is over. Then no statement comes in any more; those that run may go on for as long as
    /// [`Limits::grace`](crate::Limits::grace) says, and are cancelled after that.
    pub async fn run(self, end: impl Future<Output = ()>) {
        let door = Arc::clone(&self.door);
        let tls = if self.tls.is_some() { "on" } else { "off" };
        door.log.event(format_args!("listen={} tls={tls} state=open", self.address));
        let janitor = tokio::spawn(janitor::run(Arc::clone(&door)));
        let (graceful, connections) = (GracefulShutdown::new(), Arc::new(Semaphore::new(door.limits.connections)));
        let mut end = std::pin::pin!(end);
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = &mut end => break,
            };
            let Ok((stream, peer)) = accepted else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let Ok(place) = Arc::clone(&connections).try_acquire_owned() else {
                door.log.event(format_args!("from={peer} state=refused why=connections"));
                continue;
            };
            let watcher = graceful.watcher();
            let (door, tls, flight) = (Arc::clone(&door), self.tls.clone(), self.flight.clone());
            tokio::spawn(async move {
                let _place = place;
                connected(door, tls, flight, stream, peer, watcher).await;
            });
        }
        drop(self.listener);
        door.close();
        door.log.event(format_args!("listen={} state=closing running={}", self.address, door.running()));
        let until = tokio::time::Instant::now() + door.limits.grace;
        while door.running() > 0 && tokio::time::Instant::now() < until {
            tokio::time::sleep(LOOK).await;
        }
        let left = door.sessions();
        // Who has rows to fetch still is told that they end; then the connections close.
        left.iter().for_each(|session| door.end(session, Why::Closing));
        let _ = tokio::time::timeout(LEAVING, graceful.shutdown()).await;
        janitor.abort();
        door.log.event(format_args!("listen={} state=closed", self.address));
    }
}

/// Serves one connection until it ends.
async fn connected(
    door: Arc<Door>,
    tls: Option<Tls>,
    flight: FlightServiceServer<Flight>,
    stream: TcpStream,
    peer: SocketAddr,
    watcher: hyper_util::server::graceful::Watcher,
) {
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else { return serve(door, flight, stream, peer, watcher).await };
    match tokio::time::timeout(door.limits.handshake, tls.acceptor().accept(stream)).await {
        Ok(Ok(stream)) => serve(door, flight, stream, peer, watcher).await,
        Ok(Err(_)) => door.log.event(format_args!("from={peer} state=refused why=tls")),
        Err(_) => door.log.event(format_args!("from={peer} state=refused why=slow")),
    }
}

async fn serve(
    door: Arc<Door>,
    flight: FlightServiceServer<Flight>,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    peer: SocketAddr,
    watcher: hyper_util::server::graceful::Watcher,
) {
    let connection = Arc::new(Connection::new(Arc::clone(&door), peer));
    let (by, of) = (Arc::clone(&connection), Arc::clone(&door));
    let service = service_fn(move |request| answer(Arc::clone(&of), flight.clone(), Arc::clone(&by), request));
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(door.limits.handshake);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEADERS)
        .keep_alive_interval(ALIVE)
        .keep_alive_timeout(ALIVE);
    let served = builder.serve_connection(TokioIo::new(stream), service).into_owned();
    let mut served = std::pin::pin!(watcher.watch(served));
    let late = tokio::time::sleep(door.limits.handshake);
    tokio::select! {
        // How it ended is the client's affair.
        _ = &mut served => return,
        () = late => {}
    }
    if connection.came_in() {
        let _ = served.await;
    } else {
        door.log.event(format_args!("from={peer} state=refused why=slow"));
    }
}

fn is_grpc(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
}

/// Answers a request, whose token is looked at before anything else.
async fn answer(
    door: Arc<Door>,
    mut flight: FlightServiceServer<Flight>,
    connection: Arc<Connection>,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let caller = entry::caller(&door, &connection, request.headers());
    if !is_grpc(request.headers()) {
        return Ok(pages::answer(&door, caller, request).await);
    }
    match caller {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            flight.call(request).await
        }
        Err(refused) => Ok(refused.status().into_http()),
    }
}
