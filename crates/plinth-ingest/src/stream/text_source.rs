//! Text files as one stream of batches, of whichever format.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::ahead::Ahead;
use super::input::Input;
use super::output::{Decoded, Plan};
use super::rejects::RejectsFile;
use super::unknown::UnknownKeys;
use crate::batch_source::{BatchSource, Position, Totals};
use crate::error::{IngestError, Result};
use crate::options::{Rejects, SourceOptions};

/// What a format's reader gives: the columns, and decoders that are at work.
pub(crate) type Started = (Arc<Plan>, Ahead<Decoded, IngestError>);

/// Text files, read one after the other.
pub(crate) struct TextSource {
    totals: Totals,
    position: Position,
    path: Option<Arc<Path>>,
    plan: Arc<Plan>,
    ahead: Ahead<Decoded, IngestError>,
    rejects: Option<RejectsFile>,
    rejected: u64,
    unknown: UnknownKeys,
}

impl TextSource {
    /// Has a format's reader infer the schema, unless one is given, and start to decode.
    pub(crate) fn open(
        inputs: Vec<Arc<Input>>,
        options: &SourceOptions,
        start: impl FnOnce(&[Arc<Input>], &SourceOptions) -> Result<Started>,
    ) -> Result<Self> {
        let rejects = match &options.rejects {
            Rejects::Error => None,
            Rejects::Collect { to, max } => Some(RejectsFile::create(to, *max)?),
        };
        let (plan, mut ahead) = start(&inputs, options)?;
        if inputs.iter().any(|input| input.is_stream()) {
            ahead.detach();
        }
        let bytes = inputs.iter().map(|input| input.bytes()).sum();
        Ok(Self {
            totals: Totals { rows: None, bytes, files: inputs.len() as u64 },
            position: Position::default(),
            path: None,
            plan,
            ahead,
            rejects,
            rejected: 0,
            unknown: UnknownKeys::default(),
        })
    }
}

impl BatchSource for TextSource {
    fn schema(&self) -> &SchemaRef {
        &self.plan.schema
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        while let Some(decoded) = self.ahead.next()? {
            self.position.bytes += decoded.stored;
            self.unknown.unite(decoded.unknown);
            self.rejected += decoded.bad.len() as u64;
            if let Some(rejects) = &mut self.rejects {
                decoded.bad.into_iter().try_for_each(|bad| rejects.add(bad))?;
            }
            if let Some(batch) = decoded.batch.filter(|batch| batch.num_rows() > 0) {
                self.position.rows += batch.num_rows() as u64;
                self.path = Some(decoded.path);
                return Ok(Some(batch));
            }
        }
        if let Some(rejects) = &mut self.rejects {
            rejects.flush()?;
        }
        self.position.bytes = self.totals.bytes.unwrap_or(self.position.bytes);
        self.plan.check_all_seen()?;
        Ok(None)
    }

    fn totals(&self) -> Totals {
        self.totals
    }

    fn position(&self) -> Position {
        self.position
    }

    fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    fn rejects(&self) -> u64 {
        self.rejected
    }

    fn unknown_keys(&self) -> BTreeMap<String, u64> {
        self.unknown.counts().clone()
    }
}
