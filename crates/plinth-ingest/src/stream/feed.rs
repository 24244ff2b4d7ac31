//! Pieces of some files, one file after the other.

use std::sync::Arc;

use plinth_profile::{Profiler, Stage};

use super::input::Input;
use crate::error::Result;

/// Records of a file.
pub(crate) trait Text {
    /// Bytes of their text.
    fn bytes(&self) -> u64;
}

/// Cuts one file.
pub(crate) trait Pieces {
    type Piece: Text;

    /// The next piece, or `None` at the end of the file.
    fn piece(&mut self) -> Result<Option<Self::Piece>>;
}

/// Cuts some inputs, one after the other. Ends after an error.
pub(crate) struct Feed<C, O> {
    inputs: std::vec::IntoIter<Arc<Input>>,
    open: O,
    current: Option<C>,
    /// Who is told what it takes, whichever thread asks for a piece.
    profiler: Profiler,
}

impl<C: Pieces, O: FnMut(Arc<Input>) -> Result<C>> Feed<C, O> {
    pub(crate) fn new(inputs: Vec<Arc<Input>>, open: O) -> Self {
        Self { inputs: inputs.into_iter(), open, current: None, profiler: Profiler::current() }
    }

    fn step(&mut self) -> Result<Option<C::Piece>> {
        loop {
            let cutter = match &mut self.current {
                Some(cutter) => cutter,
                none => match self.inputs.next() {
                    Some(input) => none.insert((self.open)(input)?),
                    None => return Ok(None),
                },
            };
            match cutter.piece()? {
                Some(piece) => return Ok(Some(piece)),
                None => self.current = None,
            }
        }
    }
}

impl<C: Pieces, O: FnMut(Arc<Input>) -> Result<C>> Iterator for Feed<C, O> {
    type Item = Result<C::Piece>;

    fn next(&mut self) -> Option<Self::Item> {
        let structure = self.profiler.scope(Stage::Structure);
        let step = self.step();
        structure.bytes(step.as_ref().map_or(0, |piece| piece.as_ref().map_or(0, Text::bytes)));
        if step.is_err() {
            self.inputs = Vec::new().into_iter();
            self.current = None;
        }
        step.transpose()
    }
}
