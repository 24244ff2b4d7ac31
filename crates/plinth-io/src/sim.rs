//! A simulated disk, for tests: it does what disks do on a bad day.
//!
//! Reads complete later and in any order, in pieces, or not at all; files are cut short while they are open; the device
//! fails or is gone; power fails and what was not synced is lost, kept or torn. All of it follows from a seed and from the
//! calls made, so what is found once is found again. Nothing moves unless [`SimDisk::step`] is called, be it from a
//! [thread](SimDisk::in_background).

mod files;
mod state;

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use plinth_core::random::Random;
use plinth_core::sync::lock;

pub use files::SimFile;
use files::SimStorageFile;
use state::State;

use crate::engine::{Io, IoCounters};
use crate::error::{IoError, Result};
pub use crate::full::FullFolder;
use crate::source::Source;
use crate::storage::{Storage, StorageFile};

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
    /// Percent of reads and writes that fail.
    pub erratic: u64,
    /// Whether all syncs of files fail.
    pub syncs_fail: bool,
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
    /// Reads given up before they began.
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

/// A thread that makes reads complete, until this is dropped.
#[derive(Debug)]
pub struct Background {
    disk: SimDisk,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Waits until all memory of reads came back, as what was given up may still be under way for a moment.
///
/// # Panics
/// If that takes ten seconds.
pub fn settled(io: &Io) -> IoCounters {
    for _ in 0..10_000 {
        if io.counters().extent_bytes == 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let counters = io.counters();
    assert_eq!((counters.extent_bytes, counters.held_bytes), (0, 0), "{counters:?}");
    counters
}

impl SimDisk {
    /// An empty disk, whose reads take an engine's memory.
    pub fn new(seed: u64, io: &Io) -> Self {
        Self::of(State::new(seed), io)
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
        let i = state.random.index(under_way);
        let mut read = state.under_way.swap_remove(i);
        if read.reply.is_cancelled() {
            state.counters.never_begun += u64::from(read.done == 0);
            return true;
        }
        match state.advance(&mut read) {
            None => state.under_way.push(read),
            Some(moved) => {
                // The task that is woken may come back here.
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

    /// Cuts a file short, as another process might do, or makes it longer with zeros.
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
        state.random = Random(seed);
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
        state.random = Random(seed);
        Some(Self::of(state, &self.0.io))
    }

    /// Power fails and comes back. Of what was not synced anything may be there, each independent of all others: a name is
    /// what it was at any moment since; a file has its old or new length or one between; a sector is as it was, as it was
    /// written, or neither. Reads under way are given up.
    pub fn crash(&self) {
        let mut state = self.lock();
        state.crash();
        let given_up = std::mem::take(&mut state.under_way);
        drop(state);
        drop(given_up);
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
