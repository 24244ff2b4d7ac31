//! A door for clients that speak PostgreSQL's protocol: psql, and the drivers of most languages.
//!
//! It leads to the same sessions, statements and limits as Flight SQL does. The password is the user's token; where there is TLS nothing is
//! said before it. Messages are read by `pgwire`, and rows written by `arrow-pg`.

mod answers;
mod catalog;
mod client;
mod queries;
mod states;
mod values;
mod wire;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, Weak};

use plinth_core::sync::lock;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::door::Door;
use crate::failure::ServerError;
use crate::options::ServerOptions;
use crate::port;
use crate::session::Session;
use crate::tls::Tls;
use catalog::Numbers;
use client::Client;

/// By which statements are cancelled from another connection.
#[derive(Default)]
pub(crate) struct Keys(Mutex<HashMap<i32, (i32, Weak<Session>)>>);

impl Keys {
    fn add(&self, session: &Arc<Session>, secret: i32) -> i32 {
        let number = i32::try_from(session.number % (1 << 31)).unwrap_or_default();
        lock(&self.0).insert(number, (secret, Arc::downgrade(session)));
        number
    }

    fn remove(&self, session: &Session) {
        lock(&self.0).retain(|_, (_, known)| known.upgrade().is_some_and(|known| known.number != session.number));
    }

    fn session(&self, number: i32, secret: i32) -> Option<Arc<Session>> {
        let known = lock(&self.0).get(&number).cloned()?;
        if known.0 == secret { known.1.upgrade() } else { None }
    }
}

/// Where such clients are listened for.
pub(crate) struct Listener {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Tls>,
}

impl Listener {
    /// Listens at an address; port 0 is one that is free.
    ///
    /// # Errors
    /// As [`port::listen`].
    pub(crate) async fn bind(address: &str, options: &ServerOptions) -> Result<Self, ServerError> {
        let tls = options.tls.clone();
        let listener = port::listen(address, tls.is_some(), options.plaintext_anywhere).await?;
        let address = listener.local_addr().map_err(ServerError::new)?;
        Ok(Self { listener, address, tls })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes connections until that is over. What this gives has those that there are: they end with it.
    pub(crate) async fn run(self, door: Arc<Door>, mut end: watch::Receiver<bool>) -> JoinSet<()> {
        let places = Arc::new(Semaphore::new(door.limits.connections));
        let (keys, numbers) = (Arc::new(Keys::default()), Arc::new(Numbers::default()));
        let mut connections = JoinSet::new();
        loop {
            let (stream, peer, place) = tokio::select! {
                accepted = port::accept(&self.listener, &places, &door.log) => accepted,
                _ = end.wait_for(|end| *end) => return connections,
            };
            while connections.try_join_next().is_some() {}
            let client =
                Client::new(Arc::clone(&door), Arc::clone(&keys), Arc::clone(&numbers), peer, self.tls.is_some());
            let client = Arc::new(client);
            let tls = self.tls.clone();
            connections.spawn(async move {
                let _place = place;
                serve(client, stream, tls).await;
            });
        }
    }
}

/// Serves a connection until it ends, or has not come in in time.
async fn serve(client: Arc<Client>, stream: TcpStream, tls: Option<Tls>) {
    let _ = stream.set_nodelay(true);
    let late = tokio::time::sleep(client.door.limits.handshake);
    let mut served = std::pin::pin!(wire::serve(Arc::clone(&client), stream, tls));
    tokio::select! {
        // How it ended is the client's affair.
        _ = &mut served => return,
        () = late => {}
    }
    if client.came_in() {
        let _ = served.await;
    } else {
        client.door.log.event(format_args!("from={} state=refused why=slow", client.peer));
    }
}
