//! The page: who is here, what runs, what holds memory, and the last profiles. Plain HTML, which needs nothing else.

mod parts;

use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY, WWW_AUTHENTICATE};
use http::header::{X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use plinth_core::html::{escape, page};
use subtle::ConstantTimeEq;
use tonic::body::Body;

use crate::door::Door;
use crate::entry::{Caller, Refused};
use crate::statement::Why;

/// What a page may do: show itself, and send its own forms.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Bytes of a form at most.
const FORM: usize = 4096;

fn response(status: StatusCode, content: &'static str, text: String) -> Response<Body> {
    let mut response = Response::new(Body::new(Full::from(text)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    response
}

fn html(status: StatusCode, text: String) -> Response<Body> {
    response(status, "text/html; charset=utf-8", text)
}

/// A page of one sentence.
fn said(status: StatusCode, sentence: &str) -> Response<Body> {
    let title = format!("{} {}", status.as_u16(), status.canonical_reason().unwrap_or_default());
    html(status, format!("{}<p>{}</p>\n</html>\n", page(&title, parts::STYLE), escape(sentence)))
}

/// Answers a request of a browser.
pub(crate) async fn answer(door: &Door, caller: Result<Caller, Refused>, request: Request<Incoming>) -> Response<Body> {
    let caller = match caller {
        Ok(caller) => caller,
        Err(refused @ Refused::TooMany) => return said(StatusCode::TOO_MANY_REQUESTS, refused.sentence()),
        Err(refused @ Refused::Unknown) => {
            let mut response = said(StatusCode::UNAUTHORIZED, refused.sentence());
            let realm = HeaderValue::from_static("Basic realm=\"plinth\", charset=\"UTF-8\"");
            response.headers_mut().insert(WWW_AUTHENTICATE, realm);
            return response;
        }
    };
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/") => html(StatusCode::OK, parts::status(door, &caller)),
        (&Method::GET, path) if path.starts_with("/profile/") => profile(door, &caller, path),
        (&Method::POST, "/cancel") => cancel(door, &caller, request).await,
        (&Method::GET, _) => said(StatusCode::NOT_FOUND, "there is no such page; / shows what runs"),
        _ => said(StatusCode::METHOD_NOT_ALLOWED, "pages are got, and statements are cancelled by the button on /"),
    }
}

fn profile(door: &Door, caller: &Caller, path: &str) -> Response<Body> {
    let number = path.strip_prefix("/profile/").and_then(|number| number.parse::<u64>().ok());
    let profiles = door.profiles(&caller.user);
    match profiles.iter().find(|profiled| Some(profiled.number) == number) {
        Some(profiled) => html(StatusCode::OK, profiled.profile.to_html()),
        None => {
            said(StatusCode::NOT_FOUND, "there is no such profile: it is another user's, or newer ones took its place")
        }
    }
}

/// Whether a request came from a page of this server, as far as the browser says.
fn is_own(request: &Request<Incoming>) -> bool {
    let site = request.headers().get("sec-fetch-site");
    site.is_none_or(|site| ["same-origin", "none"].iter().any(|own| site.as_bytes() == own.as_bytes()))
}

/// Stops a statement, if the form has the key of the user's pages.
async fn cancel(door: &Door, caller: &Caller, request: Request<Incoming>) -> Response<Body> {
    let refused = || said(StatusCode::FORBIDDEN, "the form is none of this server's page: load the page again");
    if !is_own(&request) {
        return refused();
    }
    let Ok(body) = Limited::new(request.into_body(), FORM).collect().await else {
        return said(StatusCode::BAD_REQUEST, "the form is too long");
    };
    let body = body.to_bytes();
    let field = |name: &str| {
        let fields = body.split(|byte| *byte == b'&').filter_map(|field| std::str::from_utf8(field).ok());
        fields.filter_map(|field| field.split_once('=')).find(|(other, _)| *other == name).map(|(_, value)| value)
    };
    let key = door.form_key(&caller.user);
    let same = field("key").is_some_and(|given| given.as_bytes().ct_eq(key.as_bytes()).into());
    if !same {
        return refused();
    }
    let number = field("statement").and_then(|number| number.parse::<u64>().ok());
    let mine = door.sessions().into_iter().filter(|session| caller.user.may_manage(&session.user));
    let mut statements = mine.flat_map(|session| session.statements());
    match statements.find(|statement| Some(statement.number) == number) {
        Some(statement) => {
            statement.stop(Why::Cancelled);
            let mut response = said(StatusCode::SEE_OTHER, "the statement was cancelled");
            response.headers_mut().insert(LOCATION, HeaderValue::from_static("/"));
            response
        }
        None => said(StatusCode::NOT_FOUND, "there is no such statement: it is over, or another user's"),
    }
}
