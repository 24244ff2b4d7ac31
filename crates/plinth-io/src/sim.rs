//! A simulated disk, for tests: it does what disks do on a bad day.
//!
//! Reads complete later and in any order, in pieces, or not at all; files are cut short while they are open; the device
//! fails or is gone; power fails and what was not synced is lost, kept or torn. All of it follows from a seed and from the
//! calls made, so what is found once is found again. Nothing moves unless [`SimDisk::step`] is called, be it from a
//! [thread](SimDisk::in_background).

mod full;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Error, ErrorKind};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

use arrow_buffer::{Buffer, MutableBuffer};
use plinth_core::sync::lock;

use crate::engine::{Io, Request};
use crate::error::{IoError, Result};
use crate::reading::{Reading, Reply};
use crate::slab::{Extent, PAGE};
use crate::source::{Source, check};
use crate::storage::{Storage, StorageFile};
use crate::workers::Wanted;

pub use full::FullFolder;
pub(crate) use full::is_full;

/// What a disk writes whole or not at all.
pub const SECTOR: usize = 512;

/// What goes wrong, and how often.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Percent of reads that are there at once.
    pub at_once: u64,
    /// Percent of the steps of a read that bring only a part of what is missing.
    pub short: u64,
    /// Percent of the steps of a read that bring nothing: the device was busy.
    pub busy: u64,
    /// The operation that fails, counted from the disk's first.
    pub failing: Option<u64>,
    /// The operation from which on the device is gone.
    pub vanishing: Option<u64>,
    /// Bytes that all files may have together, before the device is full.
    pub space: Option<u64>,
    /// The writes that find the device full: from the first on, and before the second; counted are those that make a file longer.
    pub full: Option<(u64, u64)>,
}

/// What a disk did and is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimCounters {
    /// Reads, writes, syncs and renames so far; a read of several ranges is as many.
    pub operations: u64,
    /// Writes that made a file longer, or would have.
    pub longer: u64,
    /// Reads under way.
    pub under_way: usize,
    /// Reads that nobody waited for any more before they began.
    pub never_begun: u64,
}

/// A disk in memory. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct SimDisk(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    more: Condvar,
    /// Counts memory of reads.
    io: Io,
}

#[derive(Debug)]
struct State {
    random: u64,
    faults: Faults,
    gone: bool,
    files: Vec<Contents>,
    names: BTreeMap<String, usize>,
    /// What the names were before each change since they were synced last.
    renamed: Vec<BTreeMap<String, usize>>,
    under_way: Vec<Read>,
    counters: SimCounters,
    /// The disk as it was before each change, if that is watched.
    moments: Option<Vec<State>>,
}

/// Shared between a disk and its copies until one of them writes.
#[derive(Clone, Debug, Default)]
struct Contents {
    bytes: Arc<Vec<u8>>,
    synced: Arc<Vec<u8>>,
    /// Sectors that a failed sync gave up: whoever reads still sees them, but no later sync writes them.
    given_up: BTreeSet<usize>,
}

/// A read under way.
#[derive(Debug)]
struct Read {
    file: usize,
    wanted: Wanted,
    extent: Extent,
    done: usize,
    fails: bool,
    reply: Reply,
}

/// A file of a [`SimDisk`], open for reading.
#[derive(Debug)]
pub struct SimFile {
    disk: SimDisk,
    file: usize,
    name: Arc<str>,
    len: u64,
}

/// A thread that makes reads complete, until this is dropped.
#[derive(Debug)]
pub struct Background {
    disk: SimDisk,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl State {
    fn below(&mut self, n: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % n.max(1)
    }

    /// Below a length.
    fn index(&mut self, n: usize) -> usize {
        usize::try_from(self.below(n as u64)).unwrap_or(0)
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn copy(&self) -> Self {
        Self {
            random: self.random,
            faults: self.faults,
            gone: self.gone,
            files: self.files.clone(),
            names: self.names.clone(),
            renamed: self.renamed.clone(),
            under_way: Vec::new(),
            counters: SimCounters::default(),
            moments: None,
        }
    }

    /// Keeps a copy before a change, if that is watched.
    fn watched(&mut self) {
        if let Some(mut moments) = self.moments.take() {
            moments.push(self.copy());
            self.moments = Some(moments);
        }
    }

    /// Counts an operation; whether it fails.
    fn begin(&mut self) -> bool {
        let operation = self.counters.operations;
        self.counters.operations += 1;
        self.gone |= self.faults.vanishing.is_some_and(|from| operation >= from);
        self.faults.failing == Some(operation)
    }

    /// Counts one that is done at once.
    fn operate(&mut self, name: &str, action: impl Into<String>) -> Result<()> {
        let fails = self.begin();
        self.health(fails).map_err(|e| IoError::os(name, action, e))
    }

    fn health(&self, fails: bool) -> std::io::Result<()> {
        match (self.gone, fails) {
            (true, _) => Err(Error::other("the device is gone")),
            (false, true) => Err(Error::other("input/output error")),
            (false, false) => Ok(()),
        }
    }

    /// Takes a read one step further; the bytes read if it is at its end.
    fn advance(&mut self, read: &mut Read) -> Option<std::io::Result<usize>> {
        if let Err(e) = self.health(read.fails) {
            return Some(Err(e));
        }
        if self.chance(self.faults.busy) {
            return None;
        }
        let end = read.wanted.lead + read.wanted.len;
        let from = usize::try_from(read.wanted.offset).unwrap_or(usize::MAX) - read.wanted.lead + read.done;
        let there = self.files[read.file].bytes.len().saturating_sub(from).min(end - read.done);
        let short = there > 1 && self.chance(self.faults.short);
        let moved = if short { 1 + self.index(there - 1) } else { there };
        if moved > 0 {
            let bytes = &self.files[read.file].bytes[from..from + moved];
            read.extent[read.done..read.done + moved].copy_from_slice(bytes);
        }
        read.done += moved;
        (!short).then_some(Ok(read.done))
    }

    /// Writes part of a file, all if nothing fails. Of a write that fails any first part may have been done.
    fn put(&mut self, name: &str, file: usize, offset: usize, bytes: &[u8]) -> Result<()> {
        self.watched();
        let action = || format!("write {} bytes at {offset}", bytes.len());
        let fails = self.begin();
        let healthy = self.health(fails);
        let longer = (offset + bytes.len()).saturating_sub(self.files[file].bytes.len()) as u64;
        let used = || self.names.values().map(|&file| self.files[file].bytes.len() as u64).sum::<u64>();
        let out_of_space = longer > 0 && self.faults.space.is_some_and(|space| used() + longer > space);
        let told = self.faults.full.is_some_and(|(from, to)| (from..to).contains(&self.counters.longer));
        let full = out_of_space || (longer > 0 && told);
        self.counters.longer += u64::from(longer > 0);
        let done = match (&healthy, full) {
            (Ok(()), false) => bytes.len(),
            _ if self.gone => 0,
            _ => self.index(bytes.len() + 1),
        };
        let bytes = &bytes[..done];
        if !bytes.is_empty() {
            let contents = &mut self.files[file];
            (offset / SECTOR..=(offset + done - 1) / SECTOR).for_each(|sector| {
                contents.given_up.remove(&sector);
            });
            let all = Arc::make_mut(&mut contents.bytes);
            all.resize(all.len().max(offset + done), 0);
            all[offset..offset + done].copy_from_slice(bytes);
        }
        healthy.map_err(|e| IoError::os(name, action(), e))?;
        if full { Err(IoError::os(name, action(), ErrorKind::StorageFull.into())) } else { Ok(()) }
    }

    /// Makes a file's contents durable, but for what was given up before.
    fn sync(&mut self, name: &str, file: usize) -> Result<()> {
        self.watched();
        let fails = self.begin();
        let healthy = self.health(fails);
        let before = self.files[file].clone();
        let mut after = before.clone();
        match &healthy {
            Ok(()) if before.given_up.is_empty() => after.synced = Arc::clone(&after.bytes),
            Err(_) if self.gone => {}
            _ => {
                let synced = Arc::make_mut(&mut after.synced);
                synced.resize(before.bytes.len(), 0);
                for sector in before.changed() {
                    if before.given_up.contains(&sector) || (healthy.is_err() && self.chance(50)) {
                        after.given_up.insert(sector);
                    } else {
                        let range = sector * SECTOR..((sector + 1) * SECTOR).min(before.bytes.len());
                        synced[range.clone()].copy_from_slice(&before.bytes[range]);
                    }
                }
            }
        }
        self.files[file] = after;
        healthy.map_err(|e| IoError::os(name, "sync", e))
    }

    /// A new empty file.
    fn name(&mut self, name: &str) -> usize {
        let before = self.names.clone();
        self.renamed.push(before);
        self.files.push(Contents::default());
        let file = self.files.len() - 1;
        self.names.insert(name.to_owned(), file);
        file
    }

    fn find(&self, name: &str) -> Result<usize> {
        let found = self.names.get(name).copied();
        found.ok_or_else(|| IoError::os(name, "open", ErrorKind::NotFound.into()))
    }
}

impl SimDisk {
    /// An empty disk, whose reads take an engine's memory.
    pub fn new(seed: u64, io: &Io) -> Self {
        let state = State {
            random: seed,
            faults: Faults::default(),
            gone: false,
            files: Vec::new(),
            names: BTreeMap::new(),
            renamed: Vec::new(),
            under_way: Vec::new(),
            counters: SimCounters::default(),
            moments: None,
        };
        Self::of(state, io)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.0.state)
    }

    /// What goes wrong from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.lock().faults = faults;
    }

    /// What it did and is doing.
    pub fn counters(&self) -> SimCounters {
        let state = self.lock();
        SimCounters { under_way: state.under_way.len(), ..state.counters }
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// If there is none.
    pub fn open(&self, name: &str) -> Result<SimFile> {
        let state = self.lock();
        let file = state.find(name)?;
        Ok(SimFile { disk: self.clone(), file, name: name.into(), len: state.files[file].bytes.len() as u64 })
    }

    /// Takes one of the reads under way one step further; false if there is none.
    pub fn step(&self) -> bool {
        let mut state = self.lock();
        if state.under_way.is_empty() {
            return false;
        }
        let under_way = state.under_way.len();
        let i = state.index(under_way);
        let mut read = state.under_way.swap_remove(i);
        if read.reply.is_cancelled() {
            state.counters.never_begun += u64::from(read.done == 0);
            return true;
        }
        match state.advance(&mut read) {
            None => state.under_way.push(read),
            Some(moved) => {
                // Whoever is woken may come back here.
                drop(state);
                read.end(moved);
            }
        }
        true
    }

    /// Makes reads complete from a thread.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn in_background(&self) -> std::io::Result<Background> {
        let ends = Arc::<AtomicBool>::default();
        let (disk, end) = (self.clone(), Arc::clone(&ends));
        let thread = std::thread::Builder::new().name("plinth-sim".into()).spawn(move || {
            while !end.load(Relaxed) {
                if !disk.step() {
                    let state = disk.lock();
                    let idle = |state: &mut State| state.under_way.is_empty() && !end.load(Relaxed);
                    drop(disk.0.more.wait_while(state, idle));
                }
            }
        })?;
        Ok(Background { disk: self.clone(), ends, thread: Some(thread) })
    }

    /// Writes part of a file, which is created if there is none.
    ///
    /// # Errors
    /// If the disk fails: then anything may have become of these bytes.
    pub fn write(&self, name: &str, offset: usize, bytes: &[u8]) -> Result<()> {
        let mut state = self.lock();
        let file = match state.find(name) {
            Ok(file) => file,
            Err(_) => state.name(name),
        };
        state.put(name, file, offset, bytes)
    }

    /// Cuts a file short, as somebody else might do, or makes it longer with zeros.
    ///
    /// # Errors
    /// If there is none.
    pub fn set_len(&self, name: &str, len: usize) -> Result<()> {
        let mut state = self.lock();
        let file = state.find(name)?;
        Arc::make_mut(&mut state.files[file].bytes).resize(len, 0);
        Ok(())
    }

    /// Makes a file's contents survive a power failure.
    ///
    /// # Errors
    /// If there is none or the disk fails.
    pub fn sync(&self, name: &str) -> Result<()> {
        let mut state = self.lock();
        let file = state.find(name)?;
        state.sync(name, file)
    }

    /// Makes the names survive a power failure.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn sync_names(&self) -> Result<()> {
        let mut state = self.lock();
        state.watched();
        state.operate("the folder", "sync")?;
        state.renamed.clear();
        Ok(())
    }

    /// Gives a file another name, in place of whichever had it.
    ///
    /// # Errors
    /// If there is none or the disk fails.
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        let mut state = self.lock();
        state.operate(from, format!("rename it to {to}"))?;
        let file = state.find(from)?;
        let before = state.names.clone();
        state.renamed.push(before);
        state.names.remove(from);
        state.names.insert(to.to_owned(), file);
        Ok(())
    }

    /// A copy of the disk as it is, on which everything goes on apart from here and by another seed. Reads under way are not copied.
    #[must_use]
    pub fn copy(&self, seed: u64) -> Self {
        let mut state = self.lock().copy();
        state.random = seed;
        Self::of(state, &self.0.io)
    }

    fn of(state: State, io: &Io) -> Self {
        Self(Arc::new(Shared { state: Mutex::new(state), more: Condvar::new(), io: io.clone() }))
    }

    /// From now on keeps a copy of the disk as it is before each change.
    pub fn watch(&self) {
        self.lock().moments = Some(Vec::new());
    }

    /// How many copies there are.
    pub fn moments(&self) -> usize {
        self.lock().moments.as_ref().map_or(0, Vec::len)
    }

    /// A copy that was kept, by a seed.
    pub fn moment(&self, at: usize, seed: u64) -> Option<Self> {
        let mut state = self.lock().moments.as_ref()?.get(at)?.copy();
        state.random = seed;
        Some(Self::of(state, &self.0.io))
    }

    /// Power fails and comes back. Of what was not synced anything may be there, each independent of all others: a name is
    /// what it was at any moment since; a file has its old or new length or one between; a sector is as it was, as it was
    /// written, or neither. Reads under way are given up.
    pub fn crash(&self) {
        let mut state = self.lock();
        let mut histories = std::mem::take(&mut state.renamed);
        histories.push(state.names.clone());
        let names: BTreeSet<String> = histories.iter().flat_map(|names| names.keys().cloned()).collect();
        state.names.clear();
        for name in names {
            let then = state.index(histories.len());
            if let Some(&file) = histories[then].get(&name) {
                state.names.insert(name, file);
            }
        }
        for i in 0..state.files.len() {
            let Contents { bytes, synced, .. } = &state.files[i];
            if Arc::ptr_eq(bytes, synced) {
                continue;
            }
            let (bytes, mut after, changed) = (Arc::clone(bytes), synced.to_vec(), state.files[i].changed());
            let (shorter, longer) = (bytes.len().min(after.len()), bytes.len().max(after.len()));
            let len = shorter + state.index(longer - shorter + 1);
            after.resize(len, 0);
            for sector in changed {
                let range = sector * SECTOR..((sector + 1) * SECTOR).min(len).min(bytes.len());
                if range.is_empty() {
                    continue;
                }
                match state.below(8) {
                    0 => after[range].iter_mut().for_each(|byte| *byte = (state.below(256) & 0xff) as u8),
                    1..=4 => after[range.clone()].copy_from_slice(&bytes[range]),
                    _ => {}
                }
            }
            let after = Arc::new(after);
            state.files[i] = Contents { bytes: Arc::clone(&after), synced: after, given_up: BTreeSet::new() };
        }
        (state.gone, state.faults) = (false, Faults { at_once: state.faults.at_once, ..Faults::default() });
        let given_up = std::mem::take(&mut state.under_way);
        drop(state);
        drop(given_up);
    }
}

impl Contents {
    /// The sectors that are not as they were synced.
    fn changed(&self) -> Vec<usize> {
        let of = |bytes: &[u8], sector: usize| -> Vec<u8> {
            bytes.iter().skip(sector * SECTOR).take(SECTOR).copied().collect()
        };
        if Arc::ptr_eq(&self.bytes, &self.synced) {
            return Vec::new();
        }
        let same = self.bytes.chunks(SECTOR).zip(self.synced.chunks(SECTOR));
        let mut changed: Vec<usize> =
            same.enumerate().filter(|(_, (now, then))| now != then).map(|(sector, _)| sector).collect();
        let known = self.bytes.len().min(self.synced.len()).div_ceil(SECTOR);
        // What lies beyond the shorter of the two is told from zeros, which a file that is made longer has.
        let longer = known..self.bytes.len().div_ceil(SECTOR);
        changed.extend(longer.filter(|&sector| of(&self.bytes, sector).iter().any(|&byte| byte != 0)));
        changed
    }
}

/// A file of a [`SimDisk`] that is written at positions.
#[derive(Debug)]
struct SimStorageFile {
    disk: SimDisk,
    file: usize,
    name: String,
}

impl StorageFile for SimStorageFile {
    fn byte_len(&self) -> Result<u64> {
        Ok(self.disk.lock().files[self.file].bytes.len() as u64)
    }

    fn read_at(&self, range: Range<u64>) -> Result<Buffer> {
        let len = self.byte_len()?;
        SimFile { disk: self.disk.clone(), file: self.file, name: self.name.as_str().into(), len }.now(&range)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        self.disk.lock().put(&self.name, self.file, offset, bytes)
    }

    fn sync(&self) -> Result<()> {
        self.disk.lock().sync(&self.name, self.file)
    }
}

impl Storage for SimDisk {
    fn path_of(&self, name: &str) -> String {
        name.to_owned()
    }

    fn list(&self) -> Result<Vec<String>> {
        let mut state = self.lock();
        state.operate("the folder", "list")?;
        Ok(state.names.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> Result<Box<dyn StorageFile>> {
        let mut state = self.lock();
        state.watched();
        state.operate(name, "create")?;
        if state.names.contains_key(name) {
            return Err(IoError::os(name, "create", ErrorKind::AlreadyExists.into()));
        }
        let file = state.name(name);
        Ok(Box::new(SimStorageFile { disk: self.clone(), file, name: name.to_owned() }))
    }

    fn open(&self, name: &str) -> Result<Box<dyn StorageFile>> {
        let mut state = self.lock();
        state.operate(name, "open")?;
        let file = state.find(name)?;
        Ok(Box::new(SimStorageFile { disk: self.clone(), file, name: name.to_owned() }))
    }

    fn source(&self, name: &str) -> Result<Arc<dyn Source>> {
        Ok(Arc::new(SimDisk::open(self, name)?))
    }

    fn remove(&self, name: &str) -> Result<()> {
        let mut state = self.lock();
        state.watched();
        state.operate(name, "remove")?;
        state.find(name)?;
        let before = state.names.clone();
        state.renamed.push(before);
        state.names.remove(name);
        Ok(())
    }

    fn sync_names(&self) -> Result<()> {
        self.sync_names()
    }

    fn scratch(&self) -> PathBuf {
        std::env::temp_dir()
    }
}

impl Read {
    fn end(self, moved: std::io::Result<usize>) {
        let Self { wanted, extent, reply, .. } = self;
        reply.send(moved.map_err(|e| wanted.failed(e)).and_then(|moved| wanted.cut(extent, moved)));
    }
}

impl SimFile {
    fn now(&self, range: &Range<u64>) -> Result<Buffer> {
        let len = check(&self.name, self.len, range)?;
        let mut state = self.disk.lock();
        state.operate(&self.name, format!("read {len} bytes at {}", range.start))?;
        let (bytes, start) = (&state.files[self.file].bytes, usize::try_from(range.start).unwrap_or(usize::MAX));
        let found = bytes.get(start..start + len).ok_or_else(|| IoError::PastEnd {
            path: self.name.to_string(),
            offset: range.start,
            wanted: len as u64,
            len: bytes.len() as u64,
        })?;
        let lead = start % 64;
        let mut buffer = MutableBuffer::from_len_zeroed(lead + len);
        buffer.as_slice_mut()[lead..].copy_from_slice(found);
        Ok(Buffer::from(buffer).slice(lead))
    }
}

impl Source for SimFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn byte_len(&self) -> u64 {
        self.len
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Buffer>> {
        ranges.iter().map(|range| self.now(range)).collect()
    }

    fn start(&self, request: &Request<'_>) -> Result<Option<Reading>> {
        let shared = &self.disk.0;
        let mut memory = Vec::with_capacity(request.ranges.len());
        for range in request.ranges {
            let len = check(&self.name, self.len, range)?;
            let lead = usize::try_from(range.start % PAGE as u64).unwrap_or(0);
            let wanted = Wanted { name: Arc::clone(&self.name), offset: range.start, len, lead };
            match shared.io.memory(lead + len, request.need).map_err(|e| wanted.failed(e))? {
                Some(mut extent) => {
                    // What is not read is not zeros either.
                    extent.fill(0xdb);
                    memory.push((wanted, extent));
                }
                None => return Ok(None),
            }
        }
        let (reading, replies) = Reading::new(memory.len());
        let mut ended = Vec::new();
        let mut state = self.disk.lock();
        let at_once = state.faults.at_once;
        for ((wanted, extent), reply) in memory.into_iter().zip(replies) {
            let fails = state.begin();
            let mut read = Read { file: self.file, wanted, extent, done: 0, fails, reply };
            if state.chance(at_once) {
                let moved = loop {
                    if let Some(moved) = state.advance(&mut read) {
                        break moved;
                    }
                };
                ended.push((read, moved));
            } else {
                state.under_way.push(read);
            }
        }
        drop(state);
        ended.into_iter().for_each(|(read, moved)| read.end(moved));
        shared.more.notify_all();
        Ok(Some(reading))
    }

    fn io(&self) -> Option<&Io> {
        Some(&self.disk.0.io)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // Under the lock, so that the thread does not look before and sleep after.
        let state = self.disk.lock();
        self.ends.store(true, Relaxed);
        drop(state);
        self.disk.0.more.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
