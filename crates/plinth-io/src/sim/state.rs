//! What a disk holds and what becomes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Error, ErrorKind};
use std::sync::Arc;

use plinth_core::random::Random;

use super::{Faults, SECTOR, SimCounters};
use crate::error::{IoError, Result};
use crate::reading::Reply;
use crate::slab::Extent;
use crate::workers::ReadRange;

#[derive(Debug)]
pub(super) struct State {
    pub(super) random: Random,
    pub(super) faults: Faults,
    pub(super) gone: bool,
    pub(super) files: Vec<Contents>,
    pub(super) names: BTreeMap<String, usize>,
    /// What the names were before each change since they were synced last.
    pub(super) renamed: Vec<BTreeMap<String, usize>>,
    pub(super) under_way: Vec<Read>,
    pub(super) counters: SimCounters,
    /// The disk as it was before each change, if that is watched.
    pub(super) moments: Option<Vec<State>>,
}

/// Shared between a disk and its copies until one of them writes.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    pub(super) bytes: Arc<Vec<u8>>,
    synced: Arc<Vec<u8>>,
    /// What sectors were before they were written again, since the last sync: any of it may be what a crash leaves.
    earlier: BTreeMap<usize, Vec<Vec<u8>>>,
    /// Sectors that a failed sync gave up: readers still see them, but no later sync writes them.
    given_up: BTreeSet<usize>,
}

/// A read under way.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) file: usize,
    pub(super) wanted: ReadRange,
    pub(super) extent: Extent,
    pub(super) done: usize,
    pub(super) fails: bool,
    pub(super) reply: Reply,
}

impl State {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: Random(seed),
            faults: Faults::default(),
            gone: false,
            files: Vec::new(),
            names: BTreeMap::new(),
            renamed: Vec::new(),
            under_way: Vec::new(),
            counters: SimCounters::default(),
            moments: None,
        }
    }

    pub(super) fn copy(&self) -> Self {
        Self {
            random: self.random.clone(),
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
    pub(super) fn watched(&mut self) {
        if let Some(mut moments) = self.moments.take() {
            moments.push(self.copy());
            self.moments = Some(moments);
        }
    }

    /// Counts a read or a write; whether it fails.
    pub(super) fn begin_transfer(&mut self) -> bool {
        self.begin() || (self.faults.erratic > 0 && self.random.chance(self.faults.erratic))
    }

    /// Counts an operation; whether it fails.
    fn begin(&mut self) -> bool {
        let operation = self.counters.operations;
        self.counters.operations += 1;
        self.gone |= self.faults.vanishing.is_some_and(|from| operation >= from);
        self.faults.failing == Some(operation)
    }

    /// Counts one that is done at once.
    pub(super) fn operate(&mut self, name: &str, action: impl Into<String>) -> Result<()> {
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
    pub(super) fn advance(&mut self, read: &mut Read) -> Option<std::io::Result<usize>> {
        if let Err(e) = self.health(read.fails) {
            return Some(Err(e));
        }
        if self.random.chance(self.faults.busy) {
            return None;
        }
        let end = read.wanted.lead + read.wanted.len;
        let from = usize::try_from(read.wanted.offset).unwrap_or(usize::MAX) - read.wanted.lead + read.done;
        let there = self.files[read.file].bytes.len().saturating_sub(from).min(end - read.done);
        let short = there > 1 && self.random.chance(self.faults.short);
        let moved = if short { 1 + self.random.index(there - 1) } else { there };
        if moved > 0 {
            let bytes = &self.files[read.file].bytes[from..from + moved];
            read.extent[read.done..read.done + moved].copy_from_slice(bytes);
        }
        read.done += moved;
        (!short).then_some(Ok(read.done))
    }

    /// Writes part of a file, all if nothing fails. Of a write that fails any first part may have been done.
    pub(super) fn put(&mut self, name: &str, file: usize, offset: usize, bytes: &[u8]) -> Result<()> {
        self.watched();
        let action = || format!("write {} bytes at {offset}", bytes.len());
        let fails = self.begin_transfer();
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
            _ => self.random.index(bytes.len() + 1),
        };
        let bytes = &bytes[..done];
        if !bytes.is_empty() {
            let contents = &mut self.files[file];
            for sector in offset / SECTOR..=(offset + done - 1) / SECTOR {
                contents.given_up.remove(&sector);
                contents.remember(sector);
            }
            let all = Arc::make_mut(&mut contents.bytes);
            all.resize(all.len().max(offset + done), 0);
            all[offset..offset + done].copy_from_slice(bytes);
        }
        healthy.map_err(|e| IoError::os(name, action(), e))?;
        if full { Err(IoError::os(name, action(), ErrorKind::StorageFull.into())) } else { Ok(()) }
    }

    /// Makes a file's contents durable, but for what was given up before.
    pub(super) fn sync(&mut self, name: &str, file: usize) -> Result<()> {
        self.watched();
        let fails = self.begin() || self.faults.syncs_fail;
        let healthy = self.health(fails);
        let before = self.files[file].clone();
        let mut after = before.clone();
        match &healthy {
            Ok(()) if before.given_up.is_empty() => {
                after.synced = Arc::clone(&after.bytes);
                after.earlier.clear();
            }
            Err(_) if self.gone => {}
            _ => {
                let synced = Arc::make_mut(&mut after.synced);
                synced.resize(before.bytes.len(), 0);
                for sector in before.changed() {
                    if before.given_up.contains(&sector) || (healthy.is_err() && self.random.chance(50)) {
                        after.given_up.insert(sector);
                    } else {
                        let range = sector * SECTOR..((sector + 1) * SECTOR).min(before.bytes.len());
                        synced[range.clone()].copy_from_slice(&before.bytes[range]);
                        after.earlier.remove(&sector);
                    }
                }
            }
        }
        self.files[file] = after;
        healthy.map_err(|e| IoError::os(name, "sync", e))
    }

    /// A new empty file.
    pub(super) fn name(&mut self, name: &str) -> usize {
        let before = self.names.clone();
        self.renamed.push(before);
        self.files.push(Contents::default());
        let file = self.files.len() - 1;
        self.names.insert(name.to_owned(), file);
        file
    }

    pub(super) fn find(&self, name: &str) -> Result<usize> {
        let found = self.names.get(name).copied();
        found.ok_or_else(|| IoError::os(name, "open", ErrorKind::NotFound.into()))
    }

    /// What power that fails leaves, but for reads under way.
    pub(super) fn crash(&mut self) {
        let mut histories = std::mem::take(&mut self.renamed);
        histories.push(self.names.clone());
        let names: BTreeSet<String> = histories.iter().flat_map(|names| names.keys().cloned()).collect();
        self.names.clear();
        for name in names {
            let then = self.random.index(histories.len());
            if let Some(&file) = histories[then].get(&name) {
                self.names.insert(name, file);
            }
        }
        for i in 0..self.files.len() {
            let Contents { bytes, synced, .. } = &self.files[i];
            if Arc::ptr_eq(bytes, synced) {
                continue;
            }
            let (bytes, mut after, changed) = (Arc::clone(bytes), synced.to_vec(), self.files[i].changed());
            let (shorter, longer) = (bytes.len().min(after.len()), bytes.len().max(after.len()));
            let len = shorter + self.random.index(longer - shorter + 1);
            after.resize(len, 0);
            for sector in changed {
                let range = sector * SECTOR..((sector + 1) * SECTOR).min(len).min(bytes.len());
                if range.is_empty() {
                    continue;
                }
                let earlier = self.files[i].earlier.get(&sector);
                match (self.random.below(8), earlier) {
                    (0, _) => after[range].iter_mut().for_each(|byte| *byte = (self.random.below(256) & 0xff) as u8),
                    (1, Some(earlier)) => {
                        let was = &earlier[self.random.index(earlier.len())];
                        after[range].iter_mut().zip(was).for_each(|(byte, was)| *byte = *was);
                    }
                    (1..=4, _) => after[range.clone()].copy_from_slice(&bytes[range]),
                    _ => {}
                }
            }
            let after = Arc::new(after);
            self.files[i] = Contents { bytes: Arc::clone(&after), synced: after, ..Contents::default() };
        }
        (self.gone, self.faults) = (false, Faults { at_once: self.faults.at_once, ..Faults::default() });
    }
}

impl Contents {
    /// Keeps what a sector is, before it is written again, if that is not what was synced.
    fn remember(&mut self, sector: usize) {
        /// Of one sector.
        const MOST: usize = 4;
        let range = |bytes: &[u8]| sector * SECTOR..((sector + 1) * SECTOR).min(bytes.len());
        let now = self.bytes.get(range(&self.bytes)).unwrap_or_default();
        if now.is_empty() || self.synced.get(range(&self.synced)) == Some(now) {
            return;
        }
        let earlier = self.earlier.entry(sector).or_default();
        if earlier.len() == MOST {
            earlier.remove(0);
        }
        earlier.push(now.to_vec());
    }

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

impl Read {
    pub(super) fn end(self, moved: std::io::Result<usize>) {
        let Self { wanted, extent, reply, .. } = self;
        reply.send(moved.map_err(|e| wanted.failed(e)).and_then(|moved| wanted.cut(extent, moved)));
    }
}
