//! Files in object stores, read by the engine's own clients for them.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_buffer::Buffer;
use datafusion_common::{DataFusionError, Result};
use object_store::path::Path as Location;
use object_store::{ObjectStore, ObjectStoreExt};
use plinth_io::{BackingStore, Extent, Io, IoError, Reading, Reply, Request, Source};
use tokio::runtime::Runtime;

/// Buffers keep the file's alignment modulo this.
const ALIGNMENT: u64 = 64;

/// Threads that wait for stores; what they wait for is the network.
const THREADS: usize = 2;

/// An object. Its blocks go into the I/O engine's memory, and are kept when they are read again.
///
/// Requests run on threads of this module's own, so that a caller that waits for one holds up no other.
pub(crate) struct StoreFile {
    store: Arc<dyn ObjectStore>,
    location: Location,
    name: Arc<str>,
    len: u64,
    io: Io,
    runtime: &'static Runtime,
}

impl StoreFile {
    /// The object of so many bytes at a location.
    pub(crate) fn new(store: Arc<dyn ObjectStore>, location: Location, len: u64, io: Io) -> Result<Self> {
        static RUNTIME: OnceLock<std::result::Result<Runtime, String>> = OnceLock::new();
        let start = || {
            let mut runtime = tokio::runtime::Builder::new_multi_thread();
            runtime.worker_threads(THREADS).thread_name("plinth-store").enable_all().build().map_err(|e| e.to_string())
        };
        let runtime = RUNTIME.get_or_init(start).as_ref();
        let runtime = runtime.map_err(|e| DataFusionError::External(format!("can't start threads: {e}").into()))?;
        let name = Arc::from(format!("{store}/{location}"));
        Ok(Self { store, location, name, len, io, runtime })
    }

    fn check(&self, ranges: &[Range<u64>]) -> plinth_io::Result<()> {
        let outside = |range: &&Range<u64>| range.start > range.end || range.end > self.len;
        match ranges.iter().find(outside) {
            None => Ok(()),
            Some(range) => Err(IoError::PastEnd {
                path: self.name.to_string(),
                offset: range.start,
                wanted: range.end.saturating_sub(range.start),
                len: self.len,
            }),
        }
    }

    /// Fetches ranges into memory that was got for them.
    fn fetch(&self, pieces: Vec<(Range<u64>, Extent, Reply)>) {
        for (range, mut extent, reply) in pieces {
            let (store, location, name) = (Arc::clone(&self.store), self.location.clone(), Arc::clone(&self.name));
            self.runtime.spawn(async move {
                if reply.is_cancelled() {
                    return;
                }
                let (start, len) = (range.start, range.end - range.start);
                let failed = |e| IoError::os(&*name, format!("read {len} bytes at {start}"), std::io::Error::other(e));
                let answer = match store.get_range(&location, range).await {
                    Err(e) => Err(failed(Box::from(e) as Box<dyn std::error::Error + Send + Sync>)),
                    Ok(bytes) if bytes.len() as u64 == len => {
                        let lead = lead(start);
                        extent[lead..lead + bytes.len()].copy_from_slice(&bytes);
                        extent.into_buffer(lead, bytes.len()).ok_or(IoError::Abandoned)
                    }
                    Ok(bytes) => Err(failed(format!("the store sent {} bytes", bytes.len()).into())),
                };
                reply.send(answer);
            });
        }
    }
}

/// Bytes before a read, so that it is aligned in memory as in the file.
fn lead(offset: u64) -> usize {
    usize::try_from(offset % ALIGNMENT).unwrap_or(0)
}

impl Source for StoreFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn byte_len(&self) -> u64 {
        self.len
    }

    fn read(&self, ranges: &[Range<u64>]) -> plinth_io::Result<Vec<Buffer>> {
        let request = Request { ranges, priority: plinth_io::Priority::Now, query_bytes: 0 };
        let buffers = self.start(&request)?.map_or_else(|| Ok(Vec::new()), Reading::wait)?;
        // What is read like this is kept for long, and the memory of reads is not.
        let copies = buffers.iter().zip(ranges).map(|(buffer, range)| {
            let lead = lead(range.start);
            let mut copy = arrow_buffer::MutableBuffer::from_len_zeroed(lead);
            copy.extend_from_slice(buffer);
            Buffer::from(copy).slice(lead)
        });
        Ok(copies.collect())
    }

    fn start(&self, request: &Request<'_>) -> plinth_io::Result<Option<Reading>> {
        self.check(request.ranges)?;
        let (reading, replies) = Reading::new(request.ranges.len());
        let mut pieces = Vec::with_capacity(request.ranges.len());
        for (range, reply) in request.ranges.iter().zip(replies) {
            let bytes = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
            let memory = self.io.memory(bytes.saturating_add(lead(range.start)), request.priority);
            let memory = memory.map_err(|e| IoError::os(&*self.name, format!("read {bytes} bytes"), e))?;
            let Some(extent) = memory else { return Ok(None) };
            pieces.push((range.clone(), extent, reply));
        }
        self.fetch(pieces);
        Ok(Some(reading.from(BackingStore::Nothing)))
    }

    fn io(&self) -> Option<&Io> {
        Some(&self.io)
    }
}

impl fmt::Debug for StoreFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreFile").field("name", &self.name).field("len", &self.len).finish_non_exhaustive()
    }
}
