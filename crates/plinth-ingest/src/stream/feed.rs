//! Chunks of some files, one file after the other.

use std::sync::Arc;

use plinth_profile::{Profiler, Stage};

use super::input::Input;
use crate::error::Result;

/// Records of a file.
pub(crate) trait TextChunk {
    /// Bytes of their text.
    fn bytes(&self) -> u64;
}

/// The chunks of one file.
pub(crate) trait Chunks {
    type Chunk: TextChunk;

    /// The next chunk, or `None` at the end of the file.
    fn next_chunk(&mut self) -> Result<Option<Self::Chunk>>;
}

/// The chunks of some inputs, one after the other. Ends after an error.
pub(crate) struct Feed<C, O> {
    inputs: std::vec::IntoIter<Arc<Input>>,
    open: O,
    current: Option<C>,
    /// The profiler that framing is charged to, whichever thread asks for a chunk.
    profiler: Profiler,
}

impl<C: Chunks, O: FnMut(Arc<Input>) -> Result<C>> Feed<C, O> {
    pub(crate) fn new(inputs: Vec<Arc<Input>>, open: O) -> Self {
        Self { inputs: inputs.into_iter(), open, current: None, profiler: Profiler::current() }
    }

    fn step(&mut self) -> Result<Option<C::Chunk>> {
        loop {
            let framer = match &mut self.current {
                Some(framer) => framer,
                none => match self.inputs.next() {
                    Some(input) => none.insert((self.open)(input)?),
                    None => return Ok(None),
                },
            };
            match framer.next_chunk()? {
                Some(chunk) => return Ok(Some(chunk)),
                None => self.current = None,
            }
        }
    }
}

impl<C: Chunks, O: FnMut(Arc<Input>) -> Result<C>> Iterator for Feed<C, O> {
    type Item = Result<C::Chunk>;

    fn next(&mut self) -> Option<Self::Item> {
        let structure = self.profiler.scope(Stage::Structure);
        let step = self.step();
        structure.bytes(step.as_ref().map_or(0, |chunk| chunk.as_ref().map_or(0, TextChunk::bytes)));
        if step.is_err() {
            self.inputs = Vec::new().into_iter();
            self.current = None;
        }
        step.transpose()
    }
}
