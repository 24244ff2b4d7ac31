//! An object as a file that is read at positions.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use arrow_buffer::{Buffer, MutableBuffer};
use object_store::path::Path as Location;
use plinth_core::sync::lock;
use plinth_io::{BackingStore, Io, IoError, Object, Prefetch, Priority, Reading, Reply, Request, Result, Source};

use crate::ahead::{Ahead, Window};
use crate::connected::Connected;
use crate::drive::ObjectKey;
use crate::ends::END;
use crate::fetch::{self, Part};
use crate::find::entity_tag;
use crate::promised::{self, Given, Promised};
use crate::runtime::runtime;
use crate::target::Target;

/// Buffers keep the file's alignment modulo this.
const ALIGNMENT: u64 = 64;

/// The end of an object, where its metadata is, is read in one request of so many bytes: a part of the object, within limits.
const END_PART: u64 = 64;
const END_BYTES: Range<u64> = 65_536..END;

/// Who has the memory of what stays.
const METADATA: &str = "metadata of objects";

/// An object that is being read.
///
/// Its blocks go into the memory of reads. Its end stays in memory as long as the file is open, where the budget allows it.
pub struct ObjectFile {
    target: Arc<Target>,
    io: Io,
    end: OnceLock<Window>,
    ahead: Mutex<Ahead>,
    promised: Arc<Promised>,
}

impl ObjectFile {
    /// An object of a store, to be read at positions.
    pub fn new(store: Connected, location: Location, object: &Object, io: &Io) -> Self {
        let key = ObjectKey::of(object);
        let target = Target {
            location,
            name: Arc::from(object.url.as_str()),
            tag: object.tag.as_deref().map(|tag| tag_of(&store, tag)),
            modified: object.identity.modified(),
            key,
            len: object.identity.len,
            store,
        };
        Self {
            target: Arc::new(target),
            io: io.clone(),
            end: OnceLock::new(),
            ahead: Mutex::default(),
            promised: Arc::default(),
        }
    }

    /// Its end has come already.
    pub(crate) fn has_end(&self, bytes: &[u8]) {
        let from = self.target.len.saturating_sub(bytes.len() as u64);
        if let Ok(counted) = self.io.budget().reserve(METADATA, bytes.len() as u64) {
            drop(self.end.set(Window::new(from, copied(bytes, from), counted)));
        }
    }

    fn check(&self, ranges: &[Range<u64>]) -> Result<()> {
        let len = self.target.len;
        match ranges.iter().find(|range| range.start > range.end || range.end > len) {
            None => Ok(()),
            Some(range) => Err(IoError::PastEnd {
                path: self.target.name.to_string(),
                offset: range.start,
                wanted: range.end.saturating_sub(range.start),
                len,
            }),
        }
    }

    /// Reads more of the object's end than was asked for, as what comes before it is wanted next.
    fn read_end(&self, wanted: &Range<u64>) -> Result<()> {
        let len = self.target.len;
        let bytes = (len / END_PART).clamp(END_BYTES.start, END_BYTES.end).max(wanted.end - wanted.start).min(len);
        if let Some(window) = self.window(&(len - bytes..len))? {
            drop(self.end.set(window));
        }
        Ok(())
    }

    /// Metadata, with what follows it where it followed other metadata.
    fn read_along(&self, wanted: &Range<u64>) -> Result<Option<Buffer>> {
        let beyond = {
            let mut ahead = lock(&self.ahead);
            if let Some(bytes) = ahead.part(wanted) {
                return Ok(Some(bytes));
            }
            ahead.beyond(wanted, self.target.len)
        };
        if beyond == 0 {
            return Ok(None);
        }
        let Some(window) = self.window(&(wanted.start..wanted.end + beyond))? else { return Ok(None) };
        let bytes = window.part(wanted);
        lock(&self.ahead).keep(wanted, window);
        Ok(bytes)
    }

    /// Reads bytes that are kept. None if there is no memory for them.
    fn window(&self, range: &Range<u64>) -> Result<Option<Window>> {
        let Ok(counted) = self.io.budget().reserve(METADATA, range.end - range.start) else {
            return Ok(None);
        };
        let request = Request { ranges: std::slice::from_ref(range), priority: Priority::Now, query_bytes: 0 };
        let Some(reading) = self.begin(&request)? else { return Ok(None) };
        let read = reading.wait()?.pop().unwrap_or_default();
        Ok(Some(Window::new(range.start, copied(&read, range.start), counted)))
    }

    fn begin(&self, request: &Request<'_>) -> Result<Option<Reading>> {
        let (reading, replies) = Reading::new(request.ranges.len());
        let mut parts = Vec::with_capacity(request.ranges.len());
        for (range, reply) in request.ranges.iter().zip(replies) {
            if range.is_empty() {
                reply.send(Ok(Buffer::default()));
                continue;
            }
            if let Some(bytes) = self.end.get().and_then(|end| end.part(range)) {
                reply.send(Ok(bytes));
                continue;
            }
            if let Some(read) = self.promised.take(range) {
                if read.is_done() {
                    promised::answer(&read, reply);
                } else {
                    runtime()?.spawn(promised::forward(read, reply));
                }
                continue;
            }
            let Some(part) = self.part(range, reply, request.priority)? else { return Ok(None) };
            parts.push(part);
        }
        if !parts.is_empty() {
            runtime()?.spawn(fetch::all(Arc::clone(&self.target), parts));
        }
        Ok(Some(reading.from(BackingStore::Nothing)))
    }

    /// A range with memory for it. None if there is none.
    fn part(&self, range: &Range<u64>, reply: Reply, priority: Priority) -> Result<Option<Part>> {
        let (lead, len) = (lead(range.start), usize::try_from(range.end - range.start).unwrap_or(usize::MAX));
        let memory = self.io.memory(lead.saturating_add(len), priority);
        let memory = memory.map_err(|e| IoError::os(&*self.target.name, format!("read {len} bytes"), e))?;
        Ok(memory.map(|memory| Part::new(range.clone(), lead, memory, reply)))
    }

    /// Whether a range is here, or on its way.
    fn is_known(&self, range: &Range<u64>) -> bool {
        range.is_empty()
            || self.end.get().is_some_and(|end| end.part(range).is_some())
            || self.promised.has(range)
            || lock(&self.ahead).part(range).is_some()
    }

    /// Begins to read ranges before a reader waits for them, as long as there is memory.
    fn promise(&self, ranges: &[Range<u64>]) -> Result<Given> {
        let mut reads = Vec::new();
        for range in ranges.iter().filter(|range| !self.is_known(range)) {
            let (reading, mut replies) = Reading::new(1);
            let Some(reply) = replies.next() else { continue };
            let Some(part) = self.part(range, reply, Priority::Ahead)? else { break };
            reads.push((range.clone(), reading.from(BackingStore::Nothing), part));
        }
        // Two that begin at once may have come to the same ranges.
        let (given, parts) = self.promised.keep(reads);
        if !parts.is_empty() {
            runtime()?.spawn(fetch::all(Arc::clone(&self.target), parts));
        }
        Ok(given)
    }
}

/// The tag of an object as its store wants it in requests: a list of Azure has it without its quotes.
fn tag_of(store: &Connected, tag: &str) -> String {
    if store.client.to_string().starts_with("MicrosoftAzure") { entity_tag(tag) } else { tag.to_owned() }
}

/// Bytes before a read, so that it is aligned in memory as in the file.
fn lead(offset: u64) -> usize {
    usize::try_from(offset % ALIGNMENT).unwrap_or(0)
}

/// Bytes in memory of their own: what is kept for long does not belong into the memory of reads.
fn copied(bytes: &[u8], offset: u64) -> Buffer {
    let lead = lead(offset);
    let mut copy = MutableBuffer::from_len_zeroed(lead);
    copy.extend_from_slice(bytes);
    Buffer::from(copy).slice(lead)
}

impl Source for ObjectFile {
    fn name(&self) -> &str {
        &self.target.name
    }

    fn byte_len(&self) -> u64 {
        self.target.len
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Buffer>> {
        self.check(ranges)?;
        let at_end = ranges.iter().find(|range| range.end == self.target.len && range.start < range.end);
        if let (None, Some(wanted)) = (self.end.get(), at_end) {
            self.read_end(wanted)?;
        }
        if let [wanted] = ranges
            && let Some(read) = self.promised.get(wanted)
        {
            let buffers = read.wait_shared()?;
            return Ok(buffers.iter().map(|buffer| copied(buffer, wanted.start)).collect());
        }
        if let [wanted] = ranges
            && !wanted.is_empty()
            && self.end.get().and_then(|end| end.part(wanted)).is_none()
            && let Some(bytes) = self.read_along(wanted)?
        {
            return Ok(vec![bytes]);
        }
        let request = Request { ranges, priority: Priority::Now, query_bytes: 0 };
        let reading = self.begin(&request)?.ok_or(IoError::Abandoned)?;
        let buffers = reading.wait()?;
        Ok(buffers.iter().zip(ranges).map(|(buffer, range)| copied(buffer, range.start)).collect())
    }

    fn start(&self, request: &Request<'_>) -> Result<Option<Reading>> {
        self.check(request.ranges)?;
        self.begin(request)
    }

    fn io(&self) -> Option<&Io> {
        Some(&self.io)
    }

    fn is_far(&self) -> bool {
        true
    }

    fn bytes_a_wait(&self) -> u64 {
        self.target.store.pace.bytes_a_wait()
    }

    fn prefetch(&self, ranges: &[Range<u64>]) -> Prefetch {
        // The read itself begins anew, and says what is wrong.
        match self.check(ranges).and_then(|()| self.promise(ranges)) {
            Ok(given) => Prefetch::new(given),
            Err(_) => Prefetch::default(),
        }
    }
}

impl fmt::Debug for ObjectFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectFile")
            .field("name", &self.target.name)
            .field("len", &self.target.len)
            .finish_non_exhaustive()
    }
}
