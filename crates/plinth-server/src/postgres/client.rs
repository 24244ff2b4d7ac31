//! A connection: how it comes in, and how its statements are cancelled.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use futures::{Sink, SinkExt};
use pgwire::api::auth::{
    DefaultServerParameterProvider, StartupHandler, finish_authentication, protocol_negotiation,
    save_startup_parameters_to_metadata,
};
use pgwire::api::cancel::CancelHandler;
use pgwire::api::{ClientInfo, METADATA_USER, PgWireConnectionState};
use pgwire::error::{PgWireError, PgWireResult};
use pgwire::messages::cancel::CancelRequest;
use pgwire::messages::response::TransactionStatus;
use pgwire::messages::startup::{Authentication, SecretKey};
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};

use super::Keys;
use super::answers::{VERSION, fatal, of_status};
use super::catalog::{self, Numbers};
use crate::door::Door;
use crate::entry::Refused;
use crate::failure::internal;
use crate::random;
use crate::session::Session;
use crate::statement::Why;

/// A connection.
pub(super) struct Client {
    pub(super) door: Arc<Door>,
    keys: Arc<Keys>,
    /// By which its catalog names what there is.
    numbers: Arc<Numbers>,
    pub(super) peer: SocketAddr,
    needs_tls: bool,
    session: OnceLock<Arc<Session>>,
    /// Whether a statement of the transaction has failed: then nothing but its end is heard.
    failed: AtomicBool,
}

impl Client {
    pub(super) fn new(
        door: Arc<Door>,
        keys: Arc<Keys>,
        numbers: Arc<Numbers>,
        peer: SocketAddr,
        needs_tls: bool,
    ) -> Self {
        Self { door, keys, numbers, peer, needs_tls, session: OnceLock::new(), failed: AtomicBool::new(false) }
    }

    pub(super) fn came_in(&self) -> bool {
        self.session.get().is_some()
    }

    /// The session of the connection.
    pub(super) fn session(&self) -> PgWireResult<&Arc<Session>> {
        let session = self.session.get().ok_or_else(|| of_status(&internal("a message before its session")))?;
        if session.has_ended() {
            return Err(fatal("57P01", Why::Ended.status().message()));
        }
        session.touch();
        Ok(session)
    }

    /// Whether a transaction is open, of which a statement has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Says how a statement has ended.
    pub(super) fn ended(&self, failed: bool) {
        let open = self.session.get().is_some_and(|session| session.engine.session.in_transaction());
        self.failed.store(open && (failed || self.has_failed()), Ordering::Relaxed);
    }

    /// Says that the transaction is as it was before a statement failed.
    pub(super) fn recovered(&self) {
        self.failed.store(false, Ordering::Relaxed);
    }

    pub(super) fn status(&self) -> TransactionStatus {
        match self.session.get() {
            Some(session) if session.engine.session.in_transaction() => match self.has_failed() {
                true => TransactionStatus::Error,
                false => TransactionStatus::Transaction,
            },
            _ => TransactionStatus::Idle,
        }
    }

    /// The session of a user with a token.
    async fn comes_in(&self, name: &str, token: &str) -> PgWireResult<&Arc<Session>> {
        let door = &self.door;
        let Some(user) = door.users.of_token(token).filter(|user| user.name() == name) else {
            door.refusals.add(self.peer.ip());
            door.log.event(format_args!("from={} state=refused why=token", self.peer));
            return Err(fatal("28P01", "no user of this name has this token: the password is the token"));
        };
        let session = door.session(&user, true, self.peer).await.map_err(|e| fatal("53300", e.message()))?;
        let installed = catalog::install(&session.engine.session, &user, &self.numbers);
        installed.map_err(|e| fatal("XX000", &e.to_string()))?;
        Ok(self.session.get_or_init(|| session))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(session) = self.session.get() {
            self.keys.remove(session);
            self.door.end(session, Why::Ended);
        }
    }
}

#[async_trait]
impl StartupHandler for Client {
    async fn on_startup<C>(&self, client: &mut C, message: PgWireFrontendMessage) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        match message {
            PgWireFrontendMessage::Startup(startup) => {
                if self.needs_tls && !client.is_secure() {
                    return Err(fatal("28000", "this server speaks TLS alone: connect with sslmode=require"));
                }
                if self.door.refusals.count(self.peer.ip()) >= self.door.limits.refusals {
                    return Err(fatal("28000", Refused::TooMany.sentence()));
                }
                protocol_negotiation(client, &startup).await?;
                save_startup_parameters_to_metadata(client, &startup);
                client.set_state(PgWireConnectionState::AuthenticationInProgress);
                client.send(PgWireBackendMessage::Authentication(Authentication::CleartextPassword)).await?;
            }
            PgWireFrontendMessage::PasswordMessageFamily(password) if !self.came_in() => {
                let password = password.into_password()?;
                let name = client.metadata().get(METADATA_USER).cloned().unwrap_or_default();
                let session = self.comes_in(&name, &password.password).await?;
                let bytes = random::bytes().map_err(|e| fatal("XX000", &e.to_string()))?;
                let secret = bytes.first_chunk().map(|bytes| i32::from_be_bytes(*bytes)).unwrap_or_default();
                client.set_pid_and_secret_key(self.keys.add(session, secret), SecretKey::I32(secret));
                let mut told = DefaultServerParameterProvider::default();
                VERSION.clone_into(&mut told.server_version);
                told.is_superuser = false;
                finish_authentication(client, &told).await?;
            }
            _ => {}
        }
        Ok(())
    }
}

#[async_trait]
impl CancelHandler for Client {
    async fn on_cancel_request(&self, request: CancelRequest) {
        // Before its start nothing says which version of the protocol a client speaks.
        let secret = match request.secret_key {
            SecretKey::I32(secret) => Some(secret),
            SecretKey::Bytes(bytes) => bytes.as_ref().try_into().ok().map(i32::from_be_bytes),
        };
        match secret.and_then(|secret| self.keys.session(request.pid, secret)) {
            Some(session) => session.statements().iter().for_each(|statement| statement.stop(Why::Cancelled)),
            // Keys are not to be guessed.
            None => self.door.refusals.add(self.peer.ip()),
        }
    }
}
