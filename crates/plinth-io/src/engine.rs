//! The engine that reads blocks: which way each read goes, and the threads and memory all share.
//!
//! Data that is in the page cache is copied from it at once, on the thread that asks: nothing is faster. Whether it is there
//! the kernel tells by doing just that, or saying that it would have to wait. What is not there goes to the engine's
//! threads: past the page cache by a ring if the scan is too large to stay in memory, else through it, so that it is there
//! next time.

use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};
use std::thread::JoinHandle;

use plinth_core::sync::lock;
use plinth_profile::{Profiler, Stage, scope};

use crate::arena::{Arena, Held, Priority};
use crate::budget::MemoryBudget;
use crate::cache::BlockCache;
use crate::descriptors::Descriptor;
use crate::error::{IoError, Result};
use crate::machine::machine_memory;
use crate::options::{IoMode, IoOptions};
use crate::positioned::read_aligned;
use crate::reading::{BackingStore, Reading};
use crate::slab::{Extent, PAGE, Slab};
use crate::workers::{Queue, ReadRange, ReadRequest, read_one_by_one};

/// An I/O engine. Cheap to clone; clones are the same engine.
#[derive(Clone)]
pub struct Io(Arc<Inner>);

struct Inner {
    options: IoOptions,
    budget: Arc<MemoryBudget>,
    arena: Arc<Arena>,
    cache: Arc<BlockCache>,
    ring: Arc<Queue>,
    pool: Arc<Queue>,
    /// Whether the ring's thread runs.
    has_ring: OnceLock<bool>,
    has_pool: OnceLock<()>,
    /// Done once it was said that reads can't go past the page cache.
    no_direct: Once,
    threads: Mutex<Vec<JoinHandle<()>>>,
    counters: Counters,
    /// The process that the threads are of: a forked child has none.
    process: u32,
}

#[derive(Debug, Default)]
struct Counters {
    cached_bytes: AtomicU64,
    queued_bytes: AtomicU64,
    direct_bytes: AtomicU64,
}

/// What an engine did so far and holds now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCounters {
    /// Bytes copied from the page cache at once.
    pub cached_bytes: u64,
    /// Bytes read through the page cache by threads that waited for the device.
    pub queued_bytes: u64,
    /// Bytes read past the page cache.
    pub direct_bytes: u64,
    /// Slabs mapped so far.
    pub slabs: u64,
    /// Bytes of the slabs there are.
    pub mapped_bytes: u64,
    /// Pieces of slabs handed out so far.
    pub extents: u64,
    /// Bytes of those that were not given back yet.
    pub extent_bytes: u64,
    /// Bytes of those that scans hold: the others are on loan to holders of Arrow buffers.
    pub held_bytes: u64,
    /// Bytes of blocks that are kept.
    pub kept_bytes: u64,
    /// How often one of those made a read needless.
    pub kept_hits: u64,
}

/// What a scan asks of a file.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The bytes.
    pub ranges: &'a [Range<u64>],
    /// Whether the scan can go on without.
    pub priority: Priority,
    /// Bytes that the whole query will read, as far as is known: whether they fit in memory decides the way.
    pub query_bytes: u64,
}

/// Which way what is not in the page cache goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Ring,
    Direct,
    Cached,
}

impl Io {
    /// An engine whose memory is part of a budget. Threads start with the first read that needs them.
    pub fn new(budget: &Arc<MemoryBudget>, options: IoOptions) -> Self {
        let (ring, pool) = (Arc::<Queue>::default(), Arc::<Queue>::default());
        let releasing = Arc::clone(&ring);
        let cache = BlockCache::new(budget, options.huge_pages);
        let arena = Arena::of_reads(budget, &options, Box::new(move |slab| releasing.release(slab)));
        Self(Arc::new(Inner {
            options,
            budget: Arc::clone(budget),
            arena,
            cache,
            ring,
            pool,
            has_ring: OnceLock::new(),
            has_pool: OnceLock::new(),
            no_direct: Once::new(),
            threads: Mutex::default(),
            counters: Counters::default(),
            process: std::process::id(),
        }))
    }

    /// The default engine, with the process's shared budget.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Io> = OnceLock::new();
        SHARED.get_or_init(|| Self::new(MemoryBudget::shared(), IoOptions::default()))
    }

    /// The budget its memory is part of.
    pub fn budget(&self) -> &Arc<MemoryBudget> {
        &self.0.budget
    }

    /// Blocks that are kept; a forked child of the process that they are in has none.
    pub fn cache(&self) -> Option<&BlockCache> {
        self.is_here().then_some(&*self.0.cache)
    }

    /// How it works.
    pub fn options(&self) -> &IoOptions {
        &self.0.options
    }

    /// What it did and holds.
    pub fn counters(&self) -> IoCounters {
        let (arena, counters) = (self.0.arena.counters(), &self.0.counters);
        let (kept_bytes, kept_hits) = self.0.cache.counters();
        IoCounters {
            cached_bytes: counters.cached_bytes.load(Relaxed),
            queued_bytes: counters.queued_bytes.load(Relaxed),
            direct_bytes: counters.direct_bytes.load(Relaxed),
            slabs: arena.slabs.load(Relaxed),
            mapped_bytes: self.0.arena.mapped(),
            extents: arena.extents.load(Relaxed),
            extent_bytes: self.0.arena.used(),
            held_bytes: arena.held.load(Relaxed),
            kept_bytes,
            kept_hits,
        }
    }

    /// Memory for a read; `None` if it is for reading ahead and there is no more.
    ///
    /// # Errors
    /// If the operating system has no memory.
    pub fn memory(&self, bytes: usize, priority: Priority) -> std::io::Result<Option<Extent>> {
        let inner = &*self.0;
        if inner.options.fresh_buffers {
            return Ok(Slab::new(bytes, inner.options.huge_pages)?.take(bytes));
        }
        inner.arena.take(bytes, priority)
    }

    /// Counts memory of reads as held by a scan, until what this returns is dropped.
    pub fn hold(&self, bytes: u64) -> Held {
        self.0.arena.hold(bytes)
    }

    /// Whether so much memory of reads is on loan that Arrow buffers should be copied before they are handed out.
    pub fn is_lent_out(&self) -> bool {
        self.is_here() && self.0.arena.is_lent_out()
    }

    /// Starts reading ranges that lie within a file. `None` if memory to read ahead has run out.
    pub(crate) fn start(&self, file: &Descriptor, name: &Arc<str>, request: &Request<'_>) -> Result<Option<Reading>> {
        let inner = &*self.0;
        if !self.is_here() {
            return forked(&*file.get()?, name, request.ranges).map(Some);
        }
        let cached = file.get()?;
        let mut pieces = Vec::with_capacity(request.ranges.len());
        for range in request.ranges {
            let lead = usize::try_from(range.start % PAGE as u64).unwrap_or(0);
            let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
            let wanted = ReadRange { name: Arc::clone(name), offset: range.start, len, lead };
            let extent = self.memory(lead.saturating_add(len), request.priority).map_err(|e| wanted.failed(e))?;
            let Some(extent) = extent else { return Ok(None) };
            pieces.push((wanted, extent));
        }

        let way = self.way(request.query_bytes);
        let look = matches!(inner.options.mode, IoMode::Auto | IoMode::Cached);
        let (reading, replies) = Reading::new(pieces.len());
        let mut requests = Vec::new();
        let direct = if way == Way::Cached { None } else { file.direct()? };
        for ((wanted, mut extent), reply) in pieces.into_iter().zip(replies) {
            let (from, end) = (wanted.offset - wanted.lead as u64, wanted.lead + wanted.len);
            if look {
                let resident = scope(Stage::PageCache);
                if read_resident(&cached, &mut extent[..end], from) {
                    resident.bytes(wanted.len as u64);
                    inner.counters.cached_bytes.fetch_add(wanted.len as u64, Relaxed);
                    reply.send(wanted.cut(extent, end));
                    continue;
                }
            }
            let file = Arc::clone(direct.as_ref().unwrap_or(&cached));
            let counter = if direct.is_some() { &inner.counters.direct_bytes } else { &inner.counters.queued_bytes };
            counter.fetch_add(wanted.len as u64, Relaxed);
            let profiler = Profiler::current();
            requests.push(ReadRequest {
                file,
                cached: Arc::clone(&cached),
                offset: from,
                extent,
                wanted,
                reply,
                profiler,
            });
        }
        if !requests.is_empty() {
            let submit = scope(Stage::Submit);
            submit.bytes(requests.iter().map(|request: &ReadRequest| request.wanted.len as u64).sum());
            if way != Way::Cached && direct.is_none() {
                inner.no_direct.call_once(|| {
                    log::warn!("{name}: no direct reads here: reading through the page cache instead");
                });
            }
            let queue = if way == Way::Ring && direct.is_some() { self.ring() } else { None };
            let left = match queue {
                Some(ring) => ring.push(requests).err(),
                None => Some(requests),
            };
            if let Some(requests) = left {
                // No thread to take them: then here.
                if let Err(requests) = self.pool().push(requests) {
                    requests.into_iter().for_each(ReadRequest::run);
                }
            }
        }
        Ok(Some(reading.from(if direct.is_some() { BackingStore::Nothing } else { BackingStore::PageCache })))
    }

    /// Whether this is the process that the engine's threads and memory are of, not a forked child of it. In a child, locks
    /// may be held for ever by threads that it has not.
    fn is_here(&self) -> bool {
        self.0.process == std::process::id()
    }

    /// Which way what is not in the page cache goes.
    fn way(&self, query_bytes: u64) -> Way {
        match self.0.options.mode {
            IoMode::Uring => Way::Ring,
            IoMode::Direct => Way::Direct,
            IoMode::Cached => Way::Cached,
            IoMode::Auto => {
                // Where the system does not tell, there is no way past the page cache either.
                static MEMORY: OnceLock<u64> = OnceLock::new();
                let memory = *MEMORY.get_or_init(|| machine_memory().unwrap_or(u64::MAX));
                if query_bytes > memory / 2 { Way::Ring } else { Way::Cached }
            }
        }
    }

    /// The queue of the ring's thread, which is started with the first call; `None` where there are no rings.
    #[cfg(target_os = "linux")]
    fn ring(&self) -> Option<&Queue> {
        let inner = &self.0;
        let started = inner.has_ring.get_or_init(|| {
            let options = &inner.options;
            let drive = crate::workers::ring::Drive {
                request_bytes: options.request_bytes,
                depth: options.depth.clamp(1, 255),
                register: options.registered && !options.fresh_buffers,
            };
            let (heard, ready) = std::sync::mpsc::sync_channel(1);
            let queue = Arc::clone(&inner.ring);
            let spawned = self.spawn("plinth-ring", move || {
                crate::workers::ring::drive(&queue, drive, |result| drop(heard.send(result)));
            });
            let granted = spawned
                .and_then(|()| ready.recv().unwrap_or_else(|_| Err(std::io::Error::other("its thread has ended"))));
            if let Err(e) = &granted {
                log::warn!("no io_uring here ({e}): reading with threads instead{}", advice(e));
            }
            granted.is_ok()
        });
        started.then_some(&*inner.ring)
    }

    #[cfg(not(target_os = "linux"))]
    fn ring(&self) -> Option<&Queue> {
        let inner = &self.0;
        inner.has_ring.get_or_init(|| false).then_some(&*inner.ring)
    }

    /// The queue of threads that read one thing at a time.
    fn pool(&self) -> &Queue {
        let inner = &self.0;
        inner.has_pool.get_or_init(|| {
            let threads = std::thread::available_parallelism().map_or(4, |n| (2 * n.get()).clamp(4, 16));
            let started = (0..threads)
                .filter(|_| {
                    let queue = Arc::clone(&inner.pool);
                    self.spawn("plinth-read", move || read_one_by_one(&queue)).is_ok()
                })
                .count();
            if started == 0 {
                log::warn!("no threads to read with: reads wait for one another");
                inner.pool.close();
            }
        });
        &inner.pool
    }

    fn spawn(&self, name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work)?;
        lock(&self.0.threads).push(thread);
        Ok(())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            return;
        }
        self.ring.close();
        self.pool.close();
        let (me, threads) = (std::thread::current().id(), self.threads.get_mut());
        // A thread of the engine may be the last user: what it wakes may own this. It ends by itself.
        for thread in threads.unwrap_or_else(PoisonError::into_inner).drain(..).filter(|t| t.thread().id() != me) {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Io").field("options", &self.0.options).finish_non_exhaustive()
    }
}

/// What to do about a refused ring.
#[cfg(target_os = "linux")]
fn advice(error: &std::io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM) => {
            "; allow it with `sysctl kernel.io_uring_disabled=0`, or in the container's seccomp profile"
        }
        Some(libc::ENOSYS) => "; it takes Linux 5.6, and a seccomp profile that allows it",
        Some(libc::ENOMEM) => "; raise the limit of locked memory with `ulimit -l unlimited`",
        _ => "",
    }
}

/// Reads for a forked child: the threads and the memory of reads stayed with its parent.
fn forked(file: &File, name: &Arc<str>, ranges: &[Range<u64>]) -> Result<Reading> {
    let read = |range: &Range<u64>| {
        let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        read_aligned(file, range.start, len)
            .map_err(|e| IoError::os(&**name, format!("read {len} bytes at {}", range.start), e))
    };
    Ok(Reading::ready(ranges.iter().map(read).collect::<Result<_>>()?))
}

/// Fills memory from the page cache, if all of it is there.
#[cfg(target_os = "linux")]
fn read_resident(file: &File, mut memory: &mut [u8], mut offset: u64) -> bool {
    use rustix::io::{ReadWriteFlags, preadv2};
    while !memory.is_empty() {
        match preadv2(file, &mut [std::io::IoSliceMut::new(memory)], offset, ReadWriteFlags::NOWAIT) {
            Ok(n) if n > 0 => {
                memory = &mut memory[n..];
                offset += n as u64;
            }
            Err(rustix::io::Errno::INTR) => {}
            // A file system that can't tell, which is one in memory: there is nothing to wait for.
            Err(rustix::io::Errno::OPNOTSUPP) => {
                return crate::positioned::read_at(file, memory, offset).is_ok_and(|read| read == memory.len());
            }
            // The end of the file, or what is not there; and whatever else is wrong is found out by those who wait.
            Ok(_) | Err(_) => return false,
        }
    }
    true
}

/// Where the kernel does not tell, threads read, so that what is asked for ahead is not waited for.
#[cfg(not(target_os = "linux"))]
fn read_resident(_file: &File, _memory: &mut [u8], _offset: u64) -> bool {
    false
}
