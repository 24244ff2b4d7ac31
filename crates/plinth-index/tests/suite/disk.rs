//! A file of pages on a simulated disk.

use std::sync::Arc;

use plinth_index::{Image, PageFile};
use plinth_io::sim::{Faults, SimDisk};
use plinth_io::{Io, IoError, Storage, StorageFile};

type Result<T> = std::result::Result<T, IoError>;

const NAME: &str = "disk";

/// Clones are the same file.
#[derive(Clone, Debug)]
pub struct Disk {
    disk: SimDisk,
    file: Arc<dyn StorageFile>,
}

impl Disk {
    pub fn new(seed: u64) -> Self {
        let disk = SimDisk::new(seed, Io::shared());
        let file = Arc::from(disk.create(NAME).unwrap());
        disk.sync_names().unwrap();
        Self { disk, file }
    }

    /// Percent of operations that fail.
    pub fn set_faults(&self, erratic: u64) {
        self.disk.set_faults(Faults { erratic, ..Faults::default() });
    }

    pub fn set_sync_fails(&self, syncs_fail: bool) {
        self.disk.set_faults(Faults { syncs_fail, ..Faults::default() });
    }

    /// The operation at which the power is cut.
    pub fn cut_power_at(&self, operation: u64) {
        self.disk.set_faults(Faults { vanishing: Some(operation), ..Faults::default() });
    }

    pub fn operations(&self) -> u64 {
        self.disk.counters().operations
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.file.read_at(0..self.file.byte_len().unwrap()).unwrap().to_vec()
    }

    pub fn set_bytes(&self, bytes: Vec<u8>) {
        self.disk.set_len(NAME, bytes.len()).unwrap();
        self.file.write_at(0, &bytes).unwrap();
    }

    /// What may be there when the power comes back.
    pub fn after_power_cut(&self, seed: u64) -> Self {
        let disk = self.disk.copy(seed);
        disk.crash();
        let file = Arc::from(Storage::open(&disk, NAME).unwrap());
        Self { disk, file }
    }
}

impl PageFile for Disk {
    fn name(&self) -> &str {
        NAME
    }

    fn len(&self) -> Result<u64> {
        self.file.byte_len()
    }

    fn read(&self, offset: u64, image: &mut Image) -> Result<()> {
        let to = image.bytes_mut();
        to.copy_from_slice(&self.file.read_at(offset..offset + to.len() as u64)?);
        Ok(())
    }

    fn write(&self, offset: u64, image: &Image) -> Result<()> {
        self.file.write_at(offset, image.bytes())
    }

    fn sync(&self) -> Result<()> {
        self.file.sync()
    }
}
