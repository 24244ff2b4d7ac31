//! The one way in: each request has a token, before anything of it is read.

use std::sync::Arc;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use tonic::Status;

use crate::connection::Connection;
use crate::door::Door;
use crate::session::Session;
use crate::users::{User, Users};

/// Letters of a header with a token at most.
const LONGEST: usize = 4096;

/// Names and tokens come with padding (browsers) and without (Go's Flight client).
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Who asks.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) user: Arc<User>,
    /// The session that the token names, if it is that of one.
    session: Option<Arc<Session>>,
    connection: Arc<Connection>,
}

impl Caller {
    /// The caller's session: the one that the token names, else the one of the connection.
    pub(crate) async fn session(&self) -> Result<Arc<Session>, Status> {
        let session = match &self.session {
            Some(session) => Arc::clone(session),
            None => self.connection.session(&self.user).await?,
        };
        session.touch();
        Ok(session)
    }

    pub(crate) fn peer(&self) -> std::net::SocketAddr {
        self.connection.peer
    }
}

/// Why a request is not heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It has no token that is one.
    Unknown,
    /// Its address had too many wrong ones.
    TooMany,
}

impl Refused {
    pub(crate) fn sentence(self) -> &'static str {
        match self {
            Self::Unknown => {
                "a token is needed: `authorization: Bearer TOKEN`, or a name and the token as its password"
            }
            Self::TooMany => "too many wrong tokens came from this address: wait a minute",
        }
    }

    pub(crate) fn status(self) -> Status {
        match self {
            Self::Unknown => Status::unauthenticated(self.sentence()),
            Self::TooMany => Status::resource_exhausted(self.sentence()),
        }
    }
}

/// A name and a token, or a token alone.
enum Given {
    Basic(String, String),
    Bearer(String),
}

impl Given {
    /// The user who has the token; with a name, the one of this name.
    fn user(&self, users: &Users) -> Option<Arc<User>> {
        match self {
            Self::Bearer(token) => users.of_token(token),
            Self::Basic(name, token) => users.of_token(token).filter(|user| user.name() == name),
        }
    }
}

fn given(headers: &HeaderMap) -> Option<Given> {
    let text = headers.get(AUTHORIZATION)?.to_str().ok().filter(|text| text.len() <= LONGEST)?;
    let (scheme, rest) = text.split_once(' ')?;
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(Given::Bearer(rest.to_owned()));
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(LENIENT.decode(rest).ok()?).ok()?;
    let (name, token) = decoded.split_once(':')?;
    Some(Given::Basic(name.to_owned(), token.to_owned()))
}

/// The user whose token the headers of a request have, if one has it; and whether they have any.
pub(crate) fn user_of(users: &Users, headers: &HeaderMap) -> (Option<Arc<User>>, bool) {
    let given = given(headers);
    let user = given.as_ref().and_then(|given| given.user(users));
    (user, given.is_some())
}

/// Who asks, by the headers of a request.
///
/// # Errors
/// If they have no token that is one.
pub(crate) fn caller(door: &Door, connection: &Arc<Connection>, headers: &HeaderMap) -> Result<Caller, Refused> {
    let address = connection.peer.ip();
    if !connection.came_in() && door.refusals.count(address) >= door.limits.refusals {
        return Err(Refused::TooMany);
    }
    let given = given(headers);
    let known = match &given {
        Some(Given::Bearer(token)) => match door.of_token(token) {
            Some(session) => Some((Arc::clone(&session.user), Some(session))),
            None => door.users.of_token(token).map(|user| (user, None)),
        },
        Some(basic) => basic.user(&door.users).map(|user| (user, None)),
        None => None,
    };
    match known {
        Some((user, session)) => {
            connection.comes_in();
            Ok(Caller { user, session, connection: Arc::clone(connection) })
        }
        None => {
            // A browser asks without one first.
            if given.is_some() {
                door.refusals.add(address);
                door.log.event(format_args!("from={} state=refused why=token", connection.peer));
            }
            Err(Refused::Unknown)
        }
    }
}
