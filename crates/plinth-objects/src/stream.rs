//! An object read from its beginning, with what follows on its way.

use std::collections::VecDeque;
use std::io::{Error, Read};

use arrow_buffer::Buffer;
use plinth_io::{Priority, Reading, Request, Source};

use crate::file::ObjectFile;

/// Bytes of a request.
const STEP: u64 = 4 << 20;

/// Requests under way ahead of the one that is waited for.
const AHEAD: usize = 3;

/// Where an object was read up to.
#[derive(Debug)]
pub(crate) struct ObjectStream {
    file: ObjectFile,
    /// What was not asked for yet begins here.
    next: u64,
    under_way: VecDeque<Reading>,
    /// What came and was not taken yet.
    came: Buffer,
}

impl ObjectStream {
    pub(crate) fn new(file: ObjectFile) -> Self {
        Self { file, next: 0, under_way: VecDeque::new(), came: Buffer::default() }
    }

    fn ask(&mut self) -> plinth_io::Result<()> {
        while self.under_way.len() <= AHEAD && self.next < self.file.byte_len() {
            let range = self.next..(self.next + STEP).min(self.file.byte_len());
            let priority = if self.under_way.is_empty() { Priority::Now } else { Priority::Ahead };
            let request = Request { ranges: std::slice::from_ref(&range), priority, query_bytes: 0 };
            let Some(reading) = self.file.start(&request)? else { break };
            self.under_way.push_back(reading);
            self.next = range.end;
        }
        Ok(())
    }
}

impl Read for ObjectStream {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        if self.came.is_empty() {
            self.ask().map_err(Error::other)?;
            let Some(reading) = self.under_way.pop_front() else { return Ok(0) };
            let mut came = reading.wait().map_err(Error::other)?;
            self.came = came.pop().unwrap_or_default();
            self.ask().map_err(Error::other)?;
        }
        let count = to.len().min(self.came.len());
        if let Some(to) = to.get_mut(..count) {
            to.copy_from_slice(&self.came[..count]);
        }
        self.came.advance(count);
        Ok(count)
    }
}
