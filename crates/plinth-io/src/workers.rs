//! The threads that read: one that drives a ring, or several that each wait for one read at a time.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use arrow_buffer::Buffer;
use plinth_core::sync::{lock, wait};
use plinth_profile::{Profiler, Stage};

use crate::error::{IoError, Result};
use crate::positioned::read_at;
use crate::reading::Reply;
use crate::slab::{Extent, Slab};

/// A read to be done by a thread of the engine.
#[derive(Debug)]
pub(crate) struct ReadRequest {
    /// The descriptor to read by.
    pub(crate) file: Arc<File>,
    /// Another that reads through the page cache, for what a direct read is refused.
    pub(crate) cached: Arc<File>,
    pub(crate) offset: u64,
    pub(crate) extent: Extent,
    pub(crate) wanted: ReadRange,
    pub(crate) reply: Reply,
    /// Of the query that asks.
    pub(crate) profiler: Profiler,
}

/// Which of the bytes read were asked for, and what to call them if they can't be read.
#[derive(Clone, Debug)]
pub(crate) struct ReadRange {
    pub(crate) name: Arc<str>,
    pub(crate) offset: u64,
    pub(crate) len: usize,
    /// Bytes read before them, so that the read starts where a page does.
    pub(crate) lead: usize,
}

impl ReadRange {
    /// What was asked for, out of `read` bytes.
    pub(crate) fn cut(&self, extent: Extent, read: usize) -> Result<Buffer> {
        if read < self.lead + self.len {
            let len = self.offset - self.lead as u64 + read as u64;
            return Err(IoError::PastEnd {
                path: self.name.to_string(),
                offset: self.offset,
                wanted: self.len as u64,
                len,
            });
        }
        extent.into_buffer(self.lead, self.len).ok_or(IoError::Abandoned)
    }

    pub(crate) fn failed(&self, error: std::io::Error) -> IoError {
        IoError::os(&*self.name, format!("read {} bytes at {}", self.len, self.offset), error)
    }
}

impl ReadRequest {
    /// Reads on the calling thread.
    pub(crate) fn run(self) {
        let Self { file, cached, offset, mut extent, wanted, reply, profiler } = self;
        let _drive = profiler.scope(Stage::Drive);
        if reply.is_cancelled() {
            return;
        }
        let end = wanted.lead + wanted.len;
        let whole = page_end(end, extent.len());
        let read = match read_at(&file, &mut extent[..whole], offset) {
            // Direct reads want alignments that many kernels and file systems do not tell, and one that is cut short within a page can't go on.
            Err(e) if e.kind() == std::io::ErrorKind::InvalidInput => read_at(&cached, &mut extent[..end], offset),
            Ok(read) if read < end => read_at(&cached, &mut extent[..end], offset),
            read => read,
        };
        reply.send(read.map_err(|e| wanted.failed(e)).and_then(|read| wanted.cut(extent, read)));
    }
}

/// Up to the end of the page that `end` lies in, so that a direct read may end there.
pub(crate) fn page_end(end: usize, most: usize) -> usize {
    end.next_multiple_of(crate::slab::PAGE).min(most)
}

/// What threads of the engine are to do.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    more: Condvar,
    #[cfg(target_os = "linux")]
    alarm: std::sync::OnceLock<std::os::fd::OwnedFd>,
}

#[derive(Debug, Default)]
struct State {
    requests: VecDeque<ReadRequest>,
    /// Slabs whose memory is to be returned.
    released: Vec<Arc<Slab>>,
    /// Threads that sleep until there is more.
    asleep: usize,
    closed: bool,
    /// Set when the ring has failed: its thread ends, others must do the work.
    broken: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Adds requests; gives them back if no thread is there any more to do them.
    pub(crate) fn push(&self, requests: Vec<ReadRequest>) -> std::result::Result<(), Vec<ReadRequest>> {
        let mut state = self.lock();
        if state.closed || state.broken {
            return Err(requests);
        }
        let count = requests.len();
        state.requests.extend(requests);
        self.wake(state, count);
        Ok(())
    }

    /// Returns a slab's memory, by way of the thread that registered it.
    pub(crate) fn release(&self, slab: Arc<Slab>) {
        let mut state = self.lock();
        if !state.closed && !state.broken && slab.slot().is_some() {
            state.released.push(slab);
            self.wake(state, 1);
        }
    }

    /// Tells the threads to end.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        self.wake(state, usize::MAX);
    }

    /// Says that no thread takes requests any more, and returns those left.
    #[cfg(target_os = "linux")]
    fn give_up(&self) -> VecDeque<ReadRequest> {
        let mut state = self.lock();
        state.broken = true;
        state.released.clear();
        std::mem::take(&mut state.requests)
    }

    fn wake(&self, state: MutexGuard<'_, State>, requests: usize) {
        let asleep = state.asleep;
        drop(state);
        if asleep == 0 {
            return;
        }
        #[cfg(target_os = "linux")]
        if let Some(alarm) = self.alarm.get() {
            let _ = rustix::io::write(alarm, &1_u64.to_ne_bytes());
            return;
        }
        if requests == 1 { self.more.notify_one() } else { self.more.notify_all() }
    }
}

/// What threads that read one thing at a time do.
pub(crate) fn read_one_by_one(queue: &Queue) {
    let mut state = queue.lock();
    loop {
        if let Some(request) = state.requests.pop_front() {
            drop(state);
            request.run();
            state = queue.lock();
        } else if state.closed {
            return;
        } else {
            state.asleep += 1;
            state = wait(&queue.more, state);
            state.asleep -= 1;
        }
    }
}

#[cfg(target_os = "linux")]
pub(crate) mod ring {
    use std::sync::Arc;

    use plinth_profile::{Profiler, Stage};

    use super::{Queue, ReadRange, ReadRequest, page_end};
    use crate::positioned::read_aligned;
    use crate::reading::Reply;
    use crate::ring::{Direction, Ring, Transfer};
    use crate::slab::Slab;

    /// What a transfer's end is answered with.
    type Token = (ReadRange, Reply, Arc<std::fs::File>, Profiler);

    /// How a ring is driven.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Drive {
        pub(crate) request_bytes: usize,
        /// Requests that are under way at once.
        pub(crate) depth: usize,
        /// Whether memory is registered.
        pub(crate) register: bool,
    }

    /// The thread of a ring, however it ends: no request waits for it then.
    struct Driver<'a>(&'a Queue);

    impl Drop for Driver<'_> {
        fn drop(&mut self) {
            drop(self.0.give_up());
        }
    }

    /// What the thread of a ring does. `ready` hears whether there is one.
    pub(crate) fn drive(queue: &Queue, drive: Drive, ready: impl FnOnce(std::io::Result<crate::ring::Features>)) {
        let _driver = Driver(queue);
        let mut ring = match start(queue, drive) {
            Ok(ring) => {
                ready(Ok(ring.features()));
                ring
            }
            Err(e) => return ready(Err(e)),
        };
        if let Err(e) = run(queue, drive, &mut ring) {
            log::warn!("io_uring failed ({e}): reading on without it");
            let requests = queue.give_up();
            let given_up = ring.give_up();
            drop(ring);
            // What it did not do is done here, in memory that no ring ever had.
            for (wanted, reply, cached, _) in given_up.into_iter().filter(|(_, reply, ..)| !reply.is_cancelled()) {
                let read = read_aligned(&cached, wanted.offset, wanted.len);
                reply.send(read.map_err(|e| wanted.failed(e)));
            }
            requests.into_iter().for_each(ReadRequest::run);
        }
    }

    fn start(queue: &Queue, drive: Drive) -> std::io::Result<Ring<Token>> {
        use rustix::event::{EventfdFlags, eventfd};
        let mut ring = Ring::new(drive.request_bytes)?;
        let alarm = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        ring.set_alarm(alarm.try_clone()?);
        let _ = queue.alarm.set(alarm);
        Ok(ring)
    }

    fn run(queue: &Queue, drive: Drive, ring: &mut Ring<Token>) -> std::io::Result<()> {
        let mut register = drive.register && ring.features().buffer_table;
        let (mut requests, mut released) = (Vec::new(), Vec::new());
        // Of the query that asked last: what is done for several at once is not taken apart.
        let mut profiler = Profiler::off();
        loop {
            let idle = {
                let mut state = queue.lock();
                while ring.requests() + requests.len() < drive.depth {
                    let Some(request) = state.requests.pop_front() else { break };
                    requests.push(request);
                }
                released.append(&mut state.released);
                if state.closed && ring.requests() == 0 && requests.is_empty() {
                    return Ok(());
                }
                let idle = requests.is_empty() && released.is_empty();
                // Asleep until the next look, as far as others can tell: they ring the alarm. Not if there was no room for
                // more requests; then the next completion brings the next look.
                state.asleep = usize::from(idle && ring.requests() < drive.depth);
                idle
            };
            if let Some(request) = requests.last() {
                profiler = request.profiler.clone();
            } else if idle && ring.requests() == 0 {
                profiler = Profiler::off();
            }
            let _drive = profiler.scope(Stage::Drive);
            for request in requests.drain(..).filter(|request: &ReadRequest| !request.reply.is_cancelled()) {
                if register {
                    register = register_slab(ring, request.extent.slab());
                }
                ring.start(transfer(request));
            }
            for slab in released.drain(..) {
                ring.unregister(&slab)?;
            }
            ring.turn(idle, finish)?;
        }
    }

    fn register_slab(ring: &mut Ring<Token>, slab: &Arc<Slab>) -> bool {
        ring.register(slab).map_or_else(
            |e| {
                log::warn!(
                    "no more memory may be pinned for io_uring ({e}): reads cost more CPU; raise the limit with \
                     `ulimit -l unlimited`"
                );
                false
            },
            |_| true,
        )
    }

    fn transfer(request: ReadRequest) -> Transfer<Token> {
        let ReadRequest { file, cached, offset, extent, wanted, reply, profiler } = request;
        let len = page_end(wanted.lead + wanted.len, extent.len());
        Transfer { file, offset, extent, len, direction: Direction::Read, token: (wanted, reply, cached, profiler) }
    }

    fn finish(transfer: Transfer<Token>, moved: std::io::Result<usize>) {
        let Transfer { offset, extent, token: (wanted, reply, cached, profiler), .. } = transfer;
        match moved {
            Ok(moved) if moved >= wanted.lead + wanted.len => reply.send(wanted.cut(extent, moved)),
            Err(e) if e.raw_os_error() != Some(libc::EINVAL) => {
                drop(extent);
                reply.send(Err(wanted.failed(e)));
            }
            // Cut short, or the device wants other alignments than all known ones.
            _ => ReadRequest { file: Arc::clone(&cached), cached, offset, extent, wanted, reply, profiler }.run(),
        }
    }
}
