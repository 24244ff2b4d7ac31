//! Reading: a version of the table that stays as it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::BooleanBuffer;
use arrow_schema::{Schema, SchemaRef};
use plinth_format::{File, Scan};

use crate::batches::column_of;
use crate::engine::Shared;
use crate::error::{Result, TableError, arrow};
use crate::index::Definition;
use crate::key::{Key, Keys, hash};
use crate::segment::{Live, Segment};
use crate::version::{Found, Version, kept};

/// All rows of a table at one moment. Cheap to clone; what it needs stays as long as it does.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub(crate) shared: Arc<Shared>,
    pub(crate) version: Arc<Version>,
}

/// Rows that were looked for by their keys.
#[derive(Clone, Debug)]
pub struct MultiGet {
    /// Those that were found.
    pub rows: RecordBatch,
    /// For each key the row of the batch that has it, if one does.
    pub found: Vec<Option<usize>>,
}

/// A file of a snapshot, and which of its rows are there.
#[derive(Clone, Debug)]
pub struct SegmentRows {
    /// The rows, in the order of their keys.
    pub file: File,
    /// One bit a row, set if it is there; all are if there is none.
    pub kept: Option<BooleanBuffer>,
    pub(crate) indexes: Vec<Arc<Definition>>,
    /// Keeps the file's name.
    pub(crate) segment: Arc<Segment>,
}

impl Shared {
    /// The columns that users see.
    pub(crate) fn visible(&self) -> SchemaRef {
        let schema = self.codec.schema();
        if !self.numbered {
            return Arc::clone(schema);
        }
        let fields = schema.fields().iter().take(schema.fields().len().saturating_sub(1)).cloned();
        Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
    }

    /// A batch without what users do not see.
    pub(crate) fn show(&self, batch: RecordBatch) -> Result<RecordBatch> {
        if !self.numbered {
            return Ok(batch);
        }
        let columns: Vec<usize> = (0..batch.num_columns().saturating_sub(1)).collect();
        batch.project(&columns).map_err(arrow)
    }
}

impl Snapshot {
    /// The table's columns.
    pub fn schema(&self) -> SchemaRef {
        self.shared.visible()
    }

    /// The texts beside the columns.
    pub fn notes(&self) -> Arc<BTreeMap<String, String>> {
        self.shared.notes()
    }

    /// The columns as they are stored: with the hidden number last if the table has no key.
    pub fn stored_schema(&self) -> SchemaRef {
        Arc::clone(self.shared.codec.schema())
    }

    /// The columns that tell rows apart: those of the key, or the hidden number.
    pub fn row_columns(&self) -> Vec<String> {
        let fields = self.shared.codec.schema().fields();
        self.shared.columns.positions().filter_map(|at| fields.get(at)).map(|field| field.name().clone()).collect()
    }

    /// Rows.
    pub fn num_rows(&self) -> u64 {
        self.version.rows()
    }

    /// How many commits, or groups of them, came before.
    pub fn sequence(&self) -> u64 {
        self.version.sequence
    }

    /// The row with a key, as a batch of one row.
    ///
    /// # Errors
    /// If the key is none of the table's, or a file can't be read or is damaged.
    pub fn get(&self, key: impl Into<Key>) -> Result<Option<RecordBatch>> {
        let key = self.shared.columns.encode(&key.into())?;
        let found = self.find_key(&key)?;
        let row = found.map(|found| match found {
            Found::Memory(batch) => batch,
            Found::Block(block, row) => block.batch.slice(row, 1),
        });
        row.map(|row| self.shared.show(row)).transpose()
    }

    fn find_key(&self, key: &[u8]) -> Result<Option<Found>> {
        self.version.get(&self.shared.columns, key, hash(key))
    }

    /// The rows with some keys. Many at once cost less than one after the other.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn multi_get(&self, keys: &[Key]) -> Result<MultiGet> {
        let mut encoded = Keys::default();
        for key in keys {
            encoded.push(&self.shared.columns.encode(key)?);
        }
        self.fetch(&encoded)
    }

    /// The rows with the keys whose parts are the rows of a batch: of the columns of the table's key, in their order.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn get_batch(&self, keys: &RecordBatch) -> Result<MultiGet> {
        let arrays: Vec<_> = keys.columns().iter().collect();
        self.fetch(&self.shared.columns.of_arrays(&arrays)?)
    }

    fn fetch(&self, keys: &Keys) -> Result<MultiGet> {
        let (rows, found) = self.version.multi_get(&self.shared.columns, keys, self.shared.codec.schema())?;
        Ok(MultiGet { rows: self.shared.show(rows)?, found })
    }

    /// The files that have rows, each with those that are there.
    pub fn segments(&self) -> Vec<SegmentRows> {
        let live = |live: &Live| {
            let rows = usize::try_from(live.segment.entry.rows).unwrap_or(usize::MAX);
            let kept = live.deletes.kept(0, rows);
            let indexes = self.shared.indexes.of(&live.segment);
            SegmentRows { file: live.segment.file.clone(), kept, indexes, segment: Arc::clone(&live.segment) }
        };
        self.version.segments.iter().filter(|live| live.rows() > 0).map(live).collect()
    }

    /// The rows in memory that are there, with the hidden number of each last if the table has no key.
    ///
    /// # Errors
    /// If Arrow refuses.
    pub fn memory(&self) -> Result<Vec<RecordBatch>> {
        let deltas = self.version.frozen.iter().chain([&self.version.delta]);
        let batches = deltas.flat_map(|delta| delta.batches().map(move |batch| (delta, batch)));
        let batches = batches.map(|(delta, (first, batch))| kept(batch, first, &delta.deletes));
        batches.filter(|batch| batch.as_ref().map_or(true, |batch| batch.num_rows() > 0)).collect()
    }

    /// All rows: those of files in the order of their keys, file by file, then those in memory.
    ///
    /// # Errors
    /// If a file can't be read.
    pub fn scan(&self) -> Result<Rows> {
        let names = self.schema().fields().iter().map(|field| field.name().clone()).collect();
        self.scan_columns(names)
    }

    /// As [`Snapshot::scan`], with the numbers that rows of a table without a key have, last.
    ///
    /// # Errors
    /// As [`Snapshot::scan`].
    pub fn scan_numbered(&self) -> Result<Rows> {
        let fields = self.shared.codec.schema().fields();
        self.scan_columns(fields.iter().map(|field| field.name().clone()).collect())
    }

    /// All rows, of them some columns.
    ///
    /// # Errors
    /// If there is no such column, or a file can't be read.
    pub fn scan_columns(&self, columns: Vec<String>) -> Result<Rows> {
        let schema = self.shared.codec.schema();
        let indices = columns.iter().map(|name| column_of(schema, name)).collect::<Result<Vec<_>>>()?;
        let memory = self.memory()?.into_iter().map(|batch| batch.project(&indices).map_err(arrow));
        Ok(Rows {
            segments: self.segments().into_iter(),
            columns,
            scan: None,
            memory: memory.collect::<Result<Vec<_>>>()?.into_iter(),
            _of: self.clone(),
        })
    }
}

/// The rows of a snapshot, batch by batch.
#[derive(Debug)]
pub struct Rows {
    segments: std::vec::IntoIter<SegmentRows>,
    columns: Vec<String>,
    scan: Option<Scan>,
    memory: std::vec::IntoIter<RecordBatch>,
    /// Keeps the files.
    _of: Snapshot,
}

impl Iterator for Rows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        loop {
            if let Some(scan) = &mut self.scan {
                match scan.next() {
                    Some(batch) => return Some(batch.map_err(TableError::from)),
                    None => self.scan = None,
                }
            }
            let Some(segment) = self.segments.next() else { return self.memory.next().map(Ok) };
            let mut scan = segment.file.scan().select(self.columns.iter().map(String::as_str));
            if let Some(kept) = segment.kept {
                scan = scan.only_rows(kept);
            }
            match scan.batches() {
                Ok(scan) => self.scan = Some(scan),
                Err(error) => return Some(Err(error.into())),
            }
        }
    }
}
