//! Requests and answers of HTTP/1.1, as far as the clients of tests go.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use plinth_core::sync::lock;

use super::answer::answer;
use super::{Asked, Fault, State};

/// The most bytes of a request's body.
const BODY: usize = 256 << 20;

/// How long a connection waits for its next request.
const IDLE: Duration = Duration::from_secs(30);

pub(super) struct Request {
    pub(super) method: String,
    /// Without its first `/`, decoded.
    pub(super) path: String,
    pub(super) query: BTreeMap<String, String>,
    raw_query: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
}

pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
}

/// Answers the requests of a connection until it ends.
pub(super) fn serve(stream: TcpStream, state: &Mutex<State>, stopped: &AtomicBool) {
    drop(stream.set_read_timeout(Some(IDLE)));
    drop(stream.set_nodelay(true));
    let Ok(reading) = stream.try_clone() else { return };
    let (mut reader, mut writer) = (BufReader::new(reading), stream);
    while let Some(request) = read(&mut reader) {
        if stopped.load(Relaxed) || !reply(&request, &mut writer, state) {
            return;
        }
    }
}

/// Answers one request; false if the connection is at its end.
fn reply(request: &Request, writer: &mut TcpStream, state: &Mutex<State>) -> bool {
    let (answer, latency, fault) = {
        let mut state = lock(state);
        let at = state.faults.iter().position(|(method, _)| *method == request.method);
        let fault = at.map(|at| state.faults.remove(at).1);
        let answer = match fault {
            Some(Fault::Busy) => {
                Answer { status: 503, headers: Vec::new(), body: b"<Error><Code>SlowDown</Code></Error>".to_vec() }
            }
            Some(Fault::Forbidden) => {
                Answer { status: 403, headers: Vec::new(), body: b"<Error><Code>AccessDenied</Code></Error>".to_vec() }
            }
            _ => answer(request, &mut state),
        };
        let target = match request.raw_query.is_empty() {
            true => request.path.clone(),
            false => format!("{}?{}", request.path, request.raw_query),
        };
        let bytes = if request.method == "HEAD" { 0 } else { answer.body.len() as u64 };
        let range = request.headers.get("range").cloned();
        state.asked.push(Asked { method: request.method.clone(), target, range, bytes, status: answer.status });
        (answer, state.latency, fault)
    };
    let late = if let Some(Fault::Late(late)) = fault { late } else { Duration::ZERO };
    std::thread::sleep(latency + late);
    if fault == Some(Fault::Reset) {
        return false;
    }
    let mut head = format!("HTTP/1.1 {} Answer\r\n", answer.status);
    if !answer.headers.iter().any(|(name, _)| *name == "Content-Length") {
        head.push_str(&format!("Content-Length: {}\r\n", answer.body.len()));
    }
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    if writer.write_all(head.as_bytes()).is_err() {
        return false;
    }
    if request.method == "HEAD" {
        return true;
    }
    match fault {
        Some(Fault::Cut(bytes)) => {
            drop(writer.write_all(answer.body.get(..bytes).unwrap_or(&answer.body)));
            false
        }
        Some(Fault::Stall) => {
            std::thread::sleep(IDLE);
            false
        }
        Some(Fault::Slow(bytes, pause)) => answer.body.chunks(bytes.max(1)).all(|piece| {
            std::thread::sleep(pause);
            writer.write_all(piece).is_ok()
        }),
        _ => writer.write_all(&answer.body).is_ok(),
    }
}

fn read(reader: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':')?;
        headers.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0_usize).min(BODY);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (path, raw_query) = target.split_once('?').unwrap_or((&target, ""));
    let query = raw_query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(name), decoded(value))
    });
    let query = query.collect();
    let (path, raw_query) = (decoded(path.trim_start_matches('/')), raw_query.to_owned());
    Some(Request { method, path, query, raw_query, headers, body })
}

/// Text without `%20`.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let code = (*first == b'%').then(|| behind.get(..2)).flatten().and_then(|hex| std::str::from_utf8(hex).ok());
        match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = behind.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
