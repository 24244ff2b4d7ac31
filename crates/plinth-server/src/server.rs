//! The server: its tables behind a port, and where each request goes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use futures::future::OptionFuture;
use http::{Request, Response};
use hyper::body::Incoming;
use tokio::sync::watch;
use tonic::body::Body;
use tonic::codegen::Service;

use crate::connection::Connection;
use crate::door::Door;
use crate::entry;
use crate::failure::ServerError;
use crate::flight::{Flight, WholeFlight};
use crate::options::ServerOptions;
use crate::port::{Answers, Port, is_grpc};
use crate::postgres::Listener;
use crate::statement::Why;
use crate::{janitor, pages};

/// How long connections may take to close once nothing runs any more.
const LEAVING: Duration = Duration::from_secs(2);

/// How often it is looked whether something still runs, once the server is to end.
const LOOK: Duration = Duration::from_millis(20);

/// A server that listens.
pub struct Server {
    door: Arc<Door>,
    port: Port,
    flight: FlightServiceServer<WholeFlight>,
    postgres: Option<Listener>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address()).finish_non_exhaustive()
    }
}

impl Server {
    /// Opens the folder and listens at an address, `127.0.0.1:8815` say; port 0 is one that is free.
    ///
    /// # Errors
    /// If the folder can't be read, or the address is none or taken; if it is beyond this machine, and connections would be in plain text.
    pub async fn bind(options: ServerOptions, address: &str) -> Result<Self, ServerError> {
        let (limits, log) = (options.limits.clone(), options.log.clone());
        let postgres = match &options.postgres {
            Some(address) => Some(Listener::bind(address, &options).await?),
            None => None,
        };
        let port = Port::bind(address, options.tls.clone(), options.plaintext_anywhere, limits, log).await?;
        let door = Arc::new(Door::open(options)?);
        door.host.open_tables().await?;
        let flight = FlightServiceServer::new(WholeFlight(Flight::new(Arc::clone(&door))?))
            .max_decoding_message_size(door.limits.message_bytes);
        Ok(Self { door, port, flight, postgres })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Where it listens for clients of PostgreSQL's protocol, if it does.
    pub fn postgres_address(&self) -> Option<SocketAddr> {
        self.postgres.as_ref().map(Listener::address)
    }

    /// Serves until `end` is over. Then no statement comes in any more; those that run may go on for as long as
    /// [`Limits::grace`](crate::Limits::grace) says, and are cancelled after that.
    pub async fn run(self, end: impl Future<Output = ()>) {
        let (door, address) = (Arc::clone(&self.door), self.address());
        let tls = if self.port.has_tls() { "on" } else { "off" };
        door.log.event(format_args!("listen={address} tls={tls} state=open"));
        let janitor = tokio::spawn(janitor::run(Arc::clone(&door)));
        let (stop, stopped) = watch::channel(false);
        let postgres = self.postgres.map(|listener| {
            door.log.event(format_args!("listen={} tls={tls} protocol=postgres state=open", listener.address()));
            tokio::spawn(listener.run(Arc::clone(&door), stopped))
        });
        let graceful = self.port.run(Calls { door: Arc::clone(&door), flight: self.flight }, end).await;
        door.close();
        let _ = stop.send(true);
        door.log.event(format_args!("listen={address} state=closing running={}", door.running()));
        let until = tokio::time::Instant::now() + door.limits.grace;
        while door.running() > 0 && tokio::time::Instant::now() < until {
            tokio::time::sleep(LOOK).await;
        }
        let left = door.sessions();
        // Who has rows to fetch still is told that they end; then the connections close.
        left.iter().for_each(|session| door.end(session, Why::Closing));
        let _ = tokio::time::timeout(LEAVING, graceful.shutdown()).await;
        janitor.abort();
        if let Some(Ok(mut connections)) = OptionFuture::from(postgres).await {
            connections.shutdown().await;
        }
        door.log.event(format_args!("listen={address} state=closed"));
    }
}

/// Answers calls and pages.
#[derive(Clone)]
struct Calls {
    door: Arc<Door>,
    flight: FlightServiceServer<WholeFlight>,
}

impl Answers for Calls {
    type Connection = Connection;

    fn connected(&self, peer: SocketAddr) -> Connection {
        Connection::new(Arc::clone(&self.door), peer)
    }

    fn came_in(connection: &Connection) -> bool {
        connection.came_in()
    }

    async fn answer(&self, connection: Arc<Connection>, mut request: Request<Incoming>) -> Response<Body> {
        let caller = entry::caller(&self.door, &connection, request.headers());
        if !is_grpc(request.headers()) {
            return pages::answer(&self.door, caller, request).await;
        }
        match caller {
            Ok(caller) => {
                request.extensions_mut().insert(caller);
                match self.flight.clone().call(request).await {
                    Ok(response) => response,
                    Err(never) => match never {},
                }
            }
            Err(refused) => refused.status().into_http(),
        }
    }
}
