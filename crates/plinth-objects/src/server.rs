//! A small server that speaks as S3 does, for tests: objects in memory, and faults on demand.
//!
//! It knows what Plinth asks for (GET with ranges and conditions, HEAD, lists, PUT with conditions, DELETE, uploads in parts)
//! and counts it. Signatures are not checked, but for one key that may be required.

mod answer;
mod http;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plinth_core::sync::lock;

/// What goes wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The store asks to slow down: 503.
    Busy,
    /// The connection breaks before the answer.
    Reset,
    /// The connection breaks after so many bytes of the body.
    Cut(usize),
    /// No byte of the body comes, and the connection stays.
    Stall,
    /// The answer comes so much later.
    Late(Duration),
    /// The body comes in pieces of so many bytes with a pause between them.
    Slow(usize, Duration),
    /// The key is refused: 403.
    Forbidden,
}

/// An object.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Its bytes; what lies beyond them up to `len` is zeros that are nowhere.
    pub bytes: BTreeMap<u64, Arc<[u8]>>,
    /// Its length.
    pub len: u64,
    /// Its version.
    pub tag: String,
}

/// What was asked of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// GET, HEAD, PUT ...
    pub method: String,
    /// Bucket and key, and what follows the `?`.
    pub target: String,
    /// The range of bytes, as it was asked for.
    pub range: Option<String>,
    /// Bytes of the answer's body.
    pub bytes: u64,
    /// The answer.
    pub status: u16,
}

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<String, Stored>,
    uploads: BTreeMap<String, BTreeMap<u32, Vec<u8>>>,
    asked: Vec<Asked>,
    /// What happens to the next requests of a method.
    faults: Vec<(String, Fault)>,
    latency: Duration,
    /// The key that requests must be signed with.
    key: Option<String>,
    versions: u64,
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    stopped: Arc<AtomicBool>,
}

impl Server {
    /// Starts one on a port of its own.
    ///
    /// # Errors
    /// If the system gives no port or no thread.
    pub fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let (address, state, stopped) = (listener.local_addr()?, Arc::default(), Arc::new(AtomicBool::new(false)));
        let (shared, stop) = (Arc::clone(&state), Arc::clone(&stopped));
        std::thread::Builder::new().name("object-server".to_owned()).spawn(move || {
            for stream in listener.incoming() {
                if stop.load(Relaxed) {
                    break;
                }
                let (state, stop): (Arc<Mutex<State>>, _) = (Arc::clone(&shared), Arc::clone(&stop));
                let Ok(stream) = stream else { continue };
                drop(std::thread::Builder::new().spawn(move || http::serve(stream, &state, &stop)));
            }
        })?;
        Ok(Self { address, state, stopped })
    }

    /// Where it is: `http://127.0.0.1:port`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Puts an object (`bucket/key`).
    pub fn put(&self, name: &str, bytes: &[u8]) {
        let bytes = Arc::<[u8]>::from(bytes);
        let len = bytes.len() as u64;
        self.put_sparse(name, BTreeMap::from([(0, bytes)]), len);
    }

    /// Puts an object of which only some bytes are there.
    pub fn put_sparse(&self, name: &str, bytes: BTreeMap<u64, Arc<[u8]>>, len: u64) {
        let mut state = lock(&self.state);
        state.versions += 1;
        let tag = format!("\"v{}\"", state.versions);
        state.objects.insert(name.to_owned(), Stored { bytes, len, tag });
    }

    /// Takes an object away.
    pub fn remove(&self, name: &str) {
        lock(&self.state).objects.remove(name);
    }

    /// The names of all objects.
    pub fn names(&self) -> Vec<String> {
        lock(&self.state).objects.keys().cloned().collect()
    }

    /// The bytes of an object.
    pub fn get(&self, name: &str) -> Option<Vec<u8>> {
        let state = lock(&self.state);
        let stored = state.objects.get(name)?;
        Some(stored.part(0..stored.len))
    }

    /// Uploads that were begun and neither ended nor given up.
    pub fn uploads(&self) -> usize {
        lock(&self.state).uploads.len()
    }

    /// Has one of the next requests of a method go wrong; faults come in the order in which they were asked for.
    pub fn fail(&self, method: &str, fault: Fault) {
        lock(&self.state).faults.push((method.to_owned(), fault));
    }

    /// Forgets faults that did not happen yet.
    pub fn heal(&self) {
        lock(&self.state).faults.clear();
    }

    /// How late all answers are.
    pub fn latency(&self, latency: Duration) {
        lock(&self.state).latency = latency;
    }

    /// Which key requests must be signed with.
    pub fn require(&self, key: &str) {
        lock(&self.state).key = Some(key.to_owned());
    }

    /// What was asked since the last call.
    pub fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut lock(&self.state).asked)
    }
}

impl Stored {
    /// Some of its bytes.
    fn part(&self, range: std::ops::Range<u64>) -> Vec<u8> {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(0);
        let mut part = vec![0; size(range.end.saturating_sub(range.start))];
        for (at, bytes) in &self.bytes {
            let (from, to) = (range.start.max(*at), range.end.min(at + bytes.len() as u64));
            if from < to
                && let (Some(to), Some(from)) = (
                    part.get_mut(size(from - range.start)..size(to - range.start)),
                    bytes.get(size(from - at)..size(to - at)),
                )
            {
                to.copy_from_slice(from);
            }
        }
        part
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopped.store(true, Relaxed);
        // Wakes the thread that waits for connections.
        drop(TcpStream::connect(self.address));
    }
}
