//! The columns of text files: from a few rows of each, or from everything.

use std::path::Path;
use std::sync::Arc;

use arrow_schema::{Fields, Schema, SchemaRef};

use super::ahead::{Ahead, Worker};
use super::input::Input;
use crate::error::{IngestError, Result};
use crate::options::{Sample, SourceOptions};

/// Bytes of text in a chunk, about.
const CHUNK_BYTES: usize = 128 << 10;

/// Rows of each file a sample holds at least.
const ROWS: u64 = 64;

/// What a schema is inferred from.
pub(crate) trait Samples: Default + Send + 'static {
    /// Takes another's values too.
    fn unite(&mut self, other: Self);
    /// Whether there are more columns than there may be.
    fn check(&self, path: &Path) -> Result<()>;
    /// The columns.
    fn fields(self) -> Result<Fields>;
}

/// A reader of chunks for a sample of their values.
pub(crate) trait ChunkSampler<P, S>: Worker<P, S, IngestError> {
    /// Takes at most `limit` records of a chunk and says how many it took.
    fn sample(&mut self, chunk: &P, limit: u64, to: &mut S) -> u64;
}

/// The columns of some files: from a few rows of each, or from everything.
pub(crate) fn infer<
    P: Send + 'static,
    S: Samples,
    L: ChunkSampler<P, S>,
    F: Iterator<Item = Result<P>> + Send + 'static,
>(
    inputs: &[Arc<Input>],
    options: &SourceOptions,
    feed: impl Fn(&[Arc<Input>], usize) -> F,
    sampler: impl Fn() -> L,
) -> Result<SchemaRef> {
    let mut all = S::default();
    match options.sample {
        Sample::Rows(rows) => {
            let per_file = (rows / inputs.len().max(1) as u64).max(ROWS);
            for input in inputs {
                let mut left = per_file;
                for chunk in feed(std::slice::from_ref(input), CHUNK_BYTES) {
                    left = left.saturating_sub(sampler().sample(&chunk?, left, &mut all));
                    if left == 0 {
                        break;
                    }
                }
                all.check(&input.path)?;
            }
        }
        Sample::Everything => {
            let workers = (0..options.threads.clamp(1, 64)).map(|_| sampler()).collect();
            let feed = feed(inputs, usize::MAX);
            let mut ahead = Ahead::start(feed, options.ahead_bytes, workers).map_err(IngestError::thread)?;
            while let Some(samples) = ahead.next()? {
                all.unite(samples);
                all.check(inputs.first().map_or(Path::new(""), |input| &input.path))?;
            }
        }
    }
    let fields = all.fields()?;
    match inputs.first() {
        Some(first) if fields.is_empty() => Err(IngestError::damaged(&first.path, "no columns found; give a schema")),
        _ => Ok(Arc::new(Schema::new(fields))),
    }
}
