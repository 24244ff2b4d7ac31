//! A connection: who came in by it, and the sessions that last as long as it does.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use plinth_core::sync::lock;
use tonic::Status;

use crate::door::Door;
use crate::session::Session;
use crate::statement::Why;
use crate::users::User;

/// A connection.
pub(crate) struct Connection {
    door: Arc<Door>,
    pub(crate) peer: SocketAddr,
    came_in: AtomicBool,
    sessions: Mutex<Vec<Arc<Session>>>,
    /// One session is opened at a time, so that a user gets one.
    opening: tokio::sync::Mutex<()>,
}

impl Connection {
    pub(crate) fn new(door: Arc<Door>, peer: SocketAddr) -> Self {
        let (came_in, sessions) = (AtomicBool::new(false), Mutex::default());
        Self { door, peer, came_in, sessions, opening: tokio::sync::Mutex::new(()) }
    }

    /// Whether a request by it had a token that is one.
    pub(crate) fn came_in(&self) -> bool {
        self.came_in.load(Ordering::Relaxed)
    }

    pub(crate) fn comes_in(&self) {
        self.came_in.store(true, Ordering::Relaxed);
    }

    /// The session of a user who names none.
    pub(crate) async fn session(&self, user: &Arc<User>) -> Result<Arc<Session>, Status> {
        let known = || {
            let sessions = lock(&self.sessions);
            let of = |session: &&Arc<Session>| session.user.name() == user.name() && !session.has_ended();
            sessions.iter().find(of).map(Arc::clone)
        };
        let _one_at_a_time = self.opening.lock().await;
        if let Some(session) = known() {
            return Ok(session);
        }
        let session = self.door.session(user, true, self.peer).await?;
        let mut sessions = lock(&self.sessions);
        sessions.retain(|session| !session.has_ended());
        sessions.push(Arc::clone(&session));
        Ok(session)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        for session in std::mem::take(&mut *lock(&self.sessions)) {
            self.door.end(&session, Why::Ended);
        }
    }
}
