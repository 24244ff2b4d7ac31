//! A port for calls of gRPC that are another crate's, with the same way in: users, tokens, TLS and limits.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use tonic::body::Body;
use tonic::codegen::Service;

use crate::entry::{self, Refused};
use crate::failure::ServerError;
use crate::log::Log;
use crate::options::Limits;
use crate::port::{Answers, Port, is_grpc};
use crate::refusals::Refusals;
use crate::tls::Tls;
use crate::users::Users;

/// Whom a port lets in, and how.
#[derive(Clone, Debug)]
pub struct PortOptions {
    /// Who may come in.
    pub users: Users,
    /// A certificate and its key; without, connections are in plain text.
    pub tls: Option<Tls>,
    /// Whether plain text may be spoken beyond this machine.
    pub plaintext_anywhere: bool,
    /// Connections, the time to come in by one, and how often a token may be wrong.
    pub limits: Limits,
    /// Calls of a connection at once.
    pub streams: u32,
    /// Where events are written to.
    pub log: Log,
}

/// A port that listens for calls.
pub struct GuardedPort {
    port: Port,
    options: PortOptions,
}

impl std::fmt::Debug for GuardedPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GuardedPort").field("address", &self.address()).finish_non_exhaustive()
    }
}

impl GuardedPort {
    /// Listens at an address; port 0 is one that is free.
    ///
    /// # Errors
    /// If the address is none or taken; if it is beyond this machine, and connections would be in plain text.
    pub async fn bind(options: PortOptions, address: &str) -> Result<Self, ServerError> {
        let (limits, log) = (options.limits.clone(), options.log.clone());
        let port = Port::bind(address, options.tls.clone(), options.plaintext_anywhere, limits, log).await?;
        Ok(Self { port, options })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Hands calls with a token to a service until `end` is over. Then no connection comes in any more; those that there are have some time
    /// to end.
    pub async fn run<S>(self, service: S, leaving: Duration, end: impl Future<Output = ()>)
    where
        S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible> + Clone + Send + Sync + 'static,
        S::Future: Send,
    {
        let (address, log) = (self.address(), self.options.log.clone());
        let tls = if self.port.has_tls() { "on" } else { "off" };
        log.event(format_args!("listen={address} tls={tls} state=open"));
        let calls = Calls { options: self.options, refusals: Arc::default(), service };
        let graceful = self.port.run(calls, end).await;
        log.event(format_args!("listen={address} state=closing"));
        let _ = tokio::time::timeout(leaving, graceful.shutdown()).await;
        log.event(format_args!("listen={address} state=closed"));
    }
}

/// A connection, and whether a call by it had a token.
struct Peer {
    address: SocketAddr,
    came_in: AtomicBool,
}

#[derive(Clone)]
struct Calls<S> {
    options: PortOptions,
    refusals: Arc<Refusals>,
    service: S,
}

impl<S> Answers for Calls<S>
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    type Connection = Peer;

    fn connected(&self, address: SocketAddr) -> Peer {
        Peer { address, came_in: AtomicBool::new(false) }
    }

    fn came_in(peer: &Peer) -> bool {
        peer.came_in.load(Ordering::Relaxed)
    }

    fn streams(&self) -> u32 {
        self.options.streams
    }

    async fn answer(&self, peer: Arc<Peer>, mut request: Request<Incoming>) -> Response<Body> {
        let user = match self.user(&peer, &request) {
            Ok(user) => user,
            Err(refused) => return refused.status().into_http(),
        };
        if !is_grpc(request.headers()) {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_FOUND;
            return response;
        }
        request.extensions_mut().insert(user);
        match self.service.clone().call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

impl<S> Calls<S> {
    /// Who calls.
    fn user(&self, peer: &Peer, request: &Request<Incoming>) -> Result<Arc<crate::users::User>, Refused> {
        let address = peer.address.ip();
        if !peer.came_in.load(Ordering::Relaxed) && self.refusals.count(address) >= self.options.limits.refusals {
            return Err(Refused::TooMany);
        }
        match entry::user_of(&self.options.users, request.headers()) {
            (Some(user), _) => {
                peer.came_in.store(true, Ordering::Relaxed);
                Ok(user)
            }
            (None, given) => {
                if given {
                    self.refusals.add(address);
                    self.options.log.event(format_args!("from={} state=refused why=token", peer.address));
                }
                Err(Refused::Unknown)
            }
        }
    }
}
