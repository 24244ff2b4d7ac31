//! A disk in memory that fails when told to, and loses what was not synced when its power is cut.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use plinth_index::{Image, PageFile};
use plinth_io::IoError;

use crate::random::Random;

type Result<T> = std::result::Result<T, IoError>;

const SECTOR: usize = 512;

#[derive(Clone, Debug)]
pub struct Disk(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    bytes: Vec<u8>,
    synced: Vec<u8>,
    /// Sectors written since the last sync: what they may be after a power cut.
    unsynced: BTreeMap<usize, Vec<[u8; SECTOR]>>,
    operations: u64,
    /// Percent of reads and writes that fail.
    faults: u64,
    sync_fails: bool,
    /// The operation at which the power is cut.
    cut: Option<u64>,
    random: u64,
}

impl Disk {
    pub fn new(seed: u64) -> Self {
        Self::with(Vec::new(), seed)
    }

    fn with(bytes: Vec<u8>, seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            synced: bytes.clone(),
            bytes,
            unsynced: BTreeMap::new(),
            operations: 0,
            faults: 0,
            sync_fails: false,
            cut: None,
            random: seed | 1,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub fn set_faults(&self, percent: u64) {
        self.lock().faults = percent;
    }

    pub fn set_sync_fails(&self, fails: bool) {
        self.lock().sync_fails = fails;
    }

    pub fn cut_power_at(&self, operation: u64) {
        self.lock().cut = Some(operation);
    }

    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.lock().bytes.clone()
    }

    pub fn set_bytes(&self, bytes: Vec<u8>) {
        self.lock().bytes = bytes;
    }

    /// What may be there when the power comes back: each sector that was not synced is what it was, or anything that was
    /// written to it, or torn.
    pub fn after_power_cut(&self, seed: u64) -> Self {
        let state = self.lock();
        let mut random = Random::new(seed);
        let mut bytes = state.synced.clone();
        if random.chance(50) {
            bytes.resize(state.bytes.len(), 0);
        }
        for (&sector, states) in &state.unsynced {
            let at = sector * SECTOR;
            let kept = usize::try_from(random.below(states.len() as u64 + 1)).unwrap();
            if let (Some(new), Some(to)) = (states.get(kept), bytes.get_mut(at..at + SECTOR)) {
                to.copy_from_slice(new);
                if random.chance(2) {
                    to[SECTOR / 2..].fill(0xaa);
                }
            }
        }
        Self::with(bytes, seed)
    }
}

impl State {
    fn begin(&mut self, action: &str) -> Result<()> {
        let fail = |what: &str| Err(IoError::os("disk", action, std::io::Error::other(what.to_owned())));
        self.operations += 1;
        if self.cut.is_some_and(|cut| self.operations > cut) {
            return fail("the power is cut");
        }
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if (self.random >> 33) % 100 < self.faults {
            return fail("input/output error");
        }
        Ok(())
    }
}

impl PageFile for Disk {
    fn name(&self) -> &str {
        "disk"
    }

    fn len(&self) -> Result<u64> {
        Ok(self.lock().bytes.len() as u64)
    }

    fn read(&self, offset: u64, image: &mut Image) -> Result<()> {
        let mut state = self.lock();
        state.begin("read")?;
        let (from, to) = (usize::try_from(offset).unwrap(), image.bytes_mut());
        let len = state.bytes.len() as u64;
        let Some(bytes) = state.bytes.get(from..from + to.len()) else {
            return Err(IoError::PastEnd { path: "disk".to_owned(), offset, wanted: to.len() as u64, len });
        };
        to.copy_from_slice(bytes);
        Ok(())
    }

    fn write(&self, offset: u64, image: &Image) -> Result<()> {
        let mut state = self.lock();
        let failed = state.begin("write");
        let (at, from) = (usize::try_from(offset).unwrap(), image.bytes());
        let len = state.bytes.len().max(at + from.len());
        state.bytes.resize(len, 0);
        // A write that fails may have written some of it.
        let written = if failed.is_err() { from.len() / 2 } else { from.len() };
        if state.cut.is_some_and(|cut| state.operations > cut) {
            return failed;
        }
        state.bytes[at..at + written].copy_from_slice(&from[..written]);
        for (i, sector) in from[..written].chunks_exact(SECTOR).enumerate() {
            state.unsynced.entry(at / SECTOR + i).or_default().push(sector.try_into().unwrap());
        }
        failed
    }

    fn sync(&self) -> Result<()> {
        let mut state = self.lock();
        state.operations += 1;
        if state.cut.is_some_and(|cut| state.operations > cut) || state.sync_fails {
            return Err(IoError::os("disk", "sync", std::io::Error::other("input/output error")));
        }
        state.synced = state.bytes.clone();
        state.unsynced.clear();
        Ok(())
    }
}
