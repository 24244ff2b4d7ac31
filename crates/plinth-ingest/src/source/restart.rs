//! Imports that begin again when the sample of rows was too small.

use std::collections::BTreeMap;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::open::open;
use crate::batch_source::{BatchSource, Position, Totals};
use crate::error::{BadRecord, IngestError, Result};
use crate::options::{Sample, SourceOptions};

/// Imports, and imports once more with a schema inferred from all rows if a row turns out not to fit the schema that was inferred
/// from a sample ([`IngestError::Surprise`]).
///
/// `attempt` opens the input and takes its batches; it is called a second time after a surprise, so it begins whatever it writes
/// and leaves nothing behind if it fails. `restarting` hears of the row in between. Other failures end the import.
///
/// ```
/// use plinth_ingest::{IngestError, Sample, SourceOptions, import};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("codes.csv");
/// // A hundred rows look like numbers; one after them is text.
/// std::fs::write(&path, format!("code\n{}a7\n", "7\n".repeat(1_000)))?;
/// let options = SourceOptions { sample: Sample::Rows(100), ..SourceOptions::default() };
///
/// let mut notes = Vec::new();
/// let restarting = |record: &_| notes.push(format!("{record}; starting again"));
/// let rows = import(&[&path], &options, restarting, |attempt| {
///     let (source, mut rows) = (attempt.open()?, 0);
///     while let Some(batch) = source.next_batch()? {
///         rows += batch.num_rows();
///     }
///     Ok::<_, IngestError>(rows)
/// })?;
/// assert_eq!((rows, notes.len()), (1_001, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// That of the last attempt.
pub fn import<P: AsRef<Path>, T, E>(
    inputs: &[P],
    options: &SourceOptions,
    restarting: impl FnOnce(&BadRecord),
    mut attempt: impl FnMut(&mut Attempt<'_, P>) -> Result<T, E>,
) -> Result<T, E> {
    let mut first = Attempt { inputs, options: options.clone(), last: false, source: None };
    let result = attempt(&mut first);
    let surprise = first.source.and_then(|source| source.surprise);
    match (result, surprise) {
        (Err(_), Some(record)) => {
            restarting(&record);
            let options = SourceOptions { sample: Sample::Everything, ..options.clone() };
            attempt(&mut Attempt { inputs, options, last: true, source: None })
        }
        (result, _) => result,
    }
}

/// An attempt at an import.
pub struct Attempt<'a, P> {
    inputs: &'a [P],
    options: SourceOptions,
    /// Whether no other follows.
    last: bool,
    source: Option<Watched>,
}

impl<P: AsRef<Path>> Attempt<'_, P> {
    /// Opens the input as [`open`] does, from its beginning.
    ///
    /// # Errors
    /// As [`open`].
    pub fn open(&mut self) -> Result<&mut dyn BatchSource> {
        let inner = open(self.inputs, &self.options)?;
        Ok(self.source.insert(Watched { inner, last: self.last, surprise: None }))
    }
}

/// A source that remembers a surprise.
struct Watched {
    inner: Box<dyn BatchSource>,
    last: bool,
    surprise: Option<Box<BadRecord>>,
}

impl BatchSource for Watched {
    fn schema(&self) -> &SchemaRef {
        self.inner.schema()
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        match self.inner.next_batch() {
            // The schema is that of all rows: to infer it from them is no advice any more.
            Err(IngestError::Surprise(record)) if self.last => Err(IngestError::Record(record)),
            Err(IngestError::Surprise(record)) => {
                self.surprise = Some(record.clone());
                Err(IngestError::Surprise(record))
            }
            other => other,
        }
    }

    fn totals(&self) -> Totals {
        self.inner.totals()
    }

    fn position(&self) -> Position {
        self.inner.position()
    }

    fn path(&self) -> Option<&Path> {
        self.inner.path()
    }

    fn rejects(&self) -> u64 {
        self.inner.rejects()
    }

    fn unknown_keys(&self) -> BTreeMap<String, u64> {
        self.inner.unknown_keys()
    }

    fn is_binary(&self, column: usize) -> bool {
        self.inner.is_binary(column)
    }
}
