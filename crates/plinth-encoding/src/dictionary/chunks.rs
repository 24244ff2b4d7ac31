//! The bytes of long strings. They lie in chunks that are filled and never grow: nothing is copied, and all that is held is
//! what was asked for.

use crate::dictionary::wire::low_half;
use crate::error::{EncodingError, Result};

/// Bytes of a chunk, once there are so many in all.
const CHUNK: usize = 1 << 20;
const LEAST_CHUNK: usize = 4 << 10;

/// Longer strings get chunks of their own, so that less than this is left empty in any.
const SPARE: usize = CHUNK / 8;

/// Byte strings, each at a place that stays.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    chunks: Vec<Vec<u8>>,
    /// Which one is being filled.
    open: usize,
    /// Bytes that all chunks take.
    memory: usize,
}

impl Chunks {
    /// Keeps bytes, and tells where.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<u64> {
        let fits = |chunk: &Vec<u8>| bytes.len() <= chunk.capacity() - chunk.len();
        let at = if self.chunks.get(self.open).is_some_and(fits) {
            self.open
        } else if bytes.len() > SPARE {
            self.add(bytes.len())
        } else {
            self.open = self.add(self.memory.clamp(LEAST_CHUNK, CHUNK).max(bytes.len()));
            self.open
        };
        let full = || EncodingError::invalid("too many distinct values for one dictionary");
        let (Ok(number), Some(chunk)) = (u32::try_from(at), self.chunks.get_mut(at)) else { return Err(full()) };
        let start = u32::try_from(chunk.len()).map_err(|_| full())?;
        chunk.extend_from_slice(bytes);
        Ok(u64::from(number) << 32 | u64::from(start))
    }

    /// A new chunk's number.
    fn add(&mut self, capacity: usize) -> usize {
        let chunk = Vec::with_capacity(capacity);
        self.memory += chunk.capacity();
        self.chunks.push(chunk);
        self.chunks.len() - 1
    }

    /// So many bytes that were kept at a place.
    #[inline]
    pub(super) fn get(&self, place: u64, len: usize) -> &[u8] {
        let (chunk, start) = (low_half(place >> 32) as usize, low_half(place) as usize);
        self.chunks.get(chunk).and_then(|chunk| chunk.get(start..)?.get(..len)).unwrap_or(&[])
    }

    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        self.memory + self.chunks.capacity() * size_of::<Vec<u8>>()
    }
}

#[cfg(test)]
mod tests;
