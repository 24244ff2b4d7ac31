//! Files of a simulated disk, as readers and writers see them.

use std::ops::Range;
use std::sync::Arc;

use arrow_buffer::{Buffer, MutableBuffer};

use super::SimDisk;
use super::state::Read;
use crate::engine::{Io, Request};
use crate::error::{IoError, Result};
use crate::reading::Reading;
use crate::slab::PAGE;
use crate::source::{Source, check};
use crate::storage::StorageFile;
use crate::workers::ReadRange;

/// A file of a [`SimDisk`], open for reading.
#[derive(Debug)]
pub struct SimFile {
    pub(super) disk: SimDisk,
    pub(super) file: usize,
    pub(super) name: Arc<str>,
    pub(super) len: u64,
}

/// A file of a [`SimDisk`] that is written at positions.
#[derive(Debug)]
pub(super) struct SimStorageFile {
    pub(super) disk: SimDisk,
    pub(super) file: usize,
    pub(super) name: String,
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
            let wanted = ReadRange { name: Arc::clone(&self.name), offset: range.start, len, lead };
            match shared.io.memory(lead + len, request.priority).map_err(|e| wanted.failed(e))? {
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
            let fails = state.begin_transfer();
            let mut read = Read { file: self.file, wanted, extent, done: 0, fails, reply };
            if state.random.chance(at_once) {
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
