//! A segment: rows in a Plinth file, in the order of their keys, and a file that finds keys in it.
//!
//! The file of keys has the number of rows; every 256th row's key and the last one's; a [filter](crate::filter). A key is
//! looked for between the two samples around it, in the blocks that have these rows, which are kept decoded as long as there is
//! room. Once the filters of a table take their share of memory, further segments have a [tree](crate::index) of their keys
//! in the place of a filter, and the key of every 8,192nd row.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrow_schema::{FieldRef, Schema};
use plinth_core::key::head;
use plinth_core::wire::{Reader, checksum, put_bytes, put_varint};
use plinth_encoding::expr::{Path, Scalar};
use plinth_format::{File, OpenOptions, Scan};
use plinth_io::{Append, Output, Reservation, Storage};

use crate::cache::{Blocks, DecodedBlock};
use crate::deletes::Deletes;
use crate::error::{Result, TableError};
use crate::filter::Filter;
use crate::index::{self, Care, Indexes, Span, Tree, Trees};
use crate::key::{KeyColumns, Keys, guess};
use crate::manifest::SegmentEntry;
use crate::numbering::file_number;

/// Rows between two keys that are kept in memory, beside a filter and beside a tree.
const SAMPLE: usize = 256;
const SPARSE: usize = 8192;

/// Bytes of a file's tail, whose checksum stands for all of the file.
const TAIL: u64 = 52;

/// The name of a segment's file of rows.
pub(crate) fn rows_name(number: u64) -> String {
    format!("_segment-{number:06}.plinth")
}

/// The name of a segment's file of keys.
pub(crate) fn keys_name(number: u64) -> String {
    format!("_keys-{number:06}")
}

/// The number of a segment's file.
pub(crate) fn number(name: &str) -> Option<u64> {
    let rows = name.strip_prefix("_segment-").and_then(|name| name.strip_suffix(".plinth"));
    file_number(rows.or_else(|| name.strip_prefix("_keys-"))?)
}

/// Where the last key was found: the next one of sorted keys is not far.
#[derive(Debug, Default)]
pub(crate) struct Near {
    /// The sample before it.
    sample: usize,
    block: Option<Arc<DecodedBlock>>,
}

/// An open segment. Its files go with it once they are not needed any more.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) entry: SegmentEntry,
    pub(crate) file: File,
    /// The commit that it came with; those of a merge have that of the newest that went in.
    pub(crate) since: AtomicU64,
    samples: Keys,
    /// Rows between two of them.
    stride: usize,
    last: Vec<u8>,
    /// None where a tree finds keys.
    filter: Option<Filter>,
    /// Of the table's indexes.
    pub(crate) trees: Trees,
    care: Arc<Care>,
    /// What samples and filter take.
    _memory: Reservation,
    blocks: Arc<Blocks>,
    storage: Arc<dyn Storage>,
    obsolete: AtomicBool,
}

impl Segment {
    /// Opens a segment that a manifest or a commit names, and checks that it is the one.
    pub(crate) fn open(
        storage: &Arc<dyn Storage>,
        entry: SegmentEntry,
        schema: &Schema,
        blocks: &Arc<Blocks>,
        indexes: &Indexes,
        options: &OpenOptions,
    ) -> Result<Self> {
        let (rows, keys) = (rows_name(entry.number), keys_name(entry.number));
        let damaged = |name: &str, what: &str| TableError::corrupt(storage.path_of(name), what);
        let source = storage.source(&rows)?;
        let len = source.byte_len();
        if len != entry.len || len < TAIL {
            return Err(damaged(&rows, "has another length than the table says; restore it"));
        }
        let tail = source.read(std::slice::from_ref(&(len - TAIL..len)))?.pop().unwrap_or_default();
        if checksum(&tail) != entry.seal {
            return Err(damaged(&rows, "is not the file that the table names, or is damaged at its end; restore it"));
        }
        let file = File::from_source_with(source, options)?;
        if file.num_rows() != entry.rows || u32::try_from(entry.rows).is_err() {
            return Err(damaged(&rows, "has another number of rows than the table says; restore it"));
        }
        let same = |(a, b): (&FieldRef, &FieldRef)| {
            (a.name(), a.data_type(), a.is_nullable()) == (b.name(), b.data_type(), b.is_nullable())
        };
        let (there, expected) = (file.schema().fields(), schema.fields());
        if there.len() != expected.len() || !there.iter().zip(expected).all(same) {
            return Err(damaged(&rows, "has other columns than the table; restore it"));
        }
        let source = storage.source(&keys)?;
        let bytes = source.read(std::slice::from_ref(&(0..source.byte_len())))?.pop().unwrap_or_default();
        if bytes.len() as u64 != entry.keys_len || checksum(&bytes) != entry.keys_seal {
            return Err(damaged(&keys, "the checksum does not match: the file is damaged; restore it"));
        }
        let Listed { samples, stride, last, filter } =
            read_keys(&bytes, entry.rows).ok_or_else(|| damaged(&keys, "is no file of keys"))?;
        let mut memory = options.io.budget().open("filters and keys of segments");
        memory.charge(bytes.len() as u64);
        let segment = Self {
            entry,
            file,
            since: AtomicU64::new(0),
            samples,
            stride,
            last,
            filter,
            trees: Trees::default(),
            care: Arc::clone(indexes.care()),
            _memory: memory,
            blocks: Arc::clone(blocks),
            storage: Arc::clone(storage),
            obsolete: AtomicBool::new(false),
        };
        indexes.open_all(&**storage, &segment);
        Ok(segment)
    }

    /// Its files are removed with the last who has it open.
    pub(crate) fn make_obsolete(&self) {
        self.obsolete.store(true, Ordering::Release);
    }

    /// Whether a key may be here; false if it is not, deleted or not.
    pub(crate) fn may_have(&self, key: &[u8], hash: u64) -> bool {
        let within = self.samples.get(0) <= key && key <= self.last.as_slice();
        within && self.filter.as_ref().is_none_or(|filter| filter.may_have(hash))
    }

    /// Whether the file of keys says of a row's key what it should.
    pub(crate) fn promises(&self, row: u32, key: &[u8], hash: u64) -> bool {
        let row = row as usize;
        let sampled = !row.is_multiple_of(self.stride) || self.samples.get(row / self.stride) == key;
        let last = row as u64 + 1 != self.entry.rows || self.last == key;
        sampled && last && self.may_have(key, hash)
    }

    /// The row that has a key, deleted or not.
    pub(crate) fn find(&self, columns: &KeyColumns, key: &[u8], hash: u64) -> Result<Option<u32>> {
        if !self.may_have(key, hash) {
            return Ok(None);
        }
        let found = self.locate(columns, key, &mut Near::default())?;
        Ok(found.and_then(|(block, at)| u32::try_from(block.rows.start + at as u64).ok()))
    }

    /// The block that has a key and the row in it, deleted or not. The key is not less than the one that `near` is of.
    pub(crate) fn locate(
        &self,
        columns: &KeyColumns,
        key: &[u8],
        near: &mut Near,
    ) -> Result<Option<(Arc<DecodedBlock>, usize)>> {
        if let Some(found) = self.ask(index::KEY, |tree| self.locate_by(tree, columns, key, near))? {
            return Ok(found);
        }
        let (wanted, samples, stride) = (head(key, 0), &self.samples, self.stride);
        let likely = guess(head(samples.get(0), 0), head(&self.last, 0), wanted, samples.len());
        let after = samples.seek(near.sample..samples.len(), likely, key);
        let sample = if samples.get(after) == key { after } else { after.max(1) - 1 };
        near.sample = sample;
        let (mut row, end) = ((sample * stride) as u64, (((sample + 1) * stride) as u64).min(self.entry.rows));
        let next = if sample + 1 < samples.len() { samples.get(sample + 1) } else { &self.last };
        let likely = row + guess(head(samples.get(sample), 0), head(next, 0), wanted, stride) as u64;
        while row < end {
            let block = match near.block.take().filter(|block| block.rows.contains(&row)) {
                Some(block) => block,
                None => self.block(columns, row)?,
            };
            let at = |row: u64| usize::try_from(row.saturating_sub(block.rows.start)).unwrap_or(0);
            let within = at(row)..at(end.min(block.rows.end));
            let found = block.keys.seek(within.clone(), at(likely), key);
            near.block = Some(Arc::clone(&block));
            if found < within.end {
                return Ok((block.keys.get(found) == key).then_some((block, found)));
            }
            row = block.rows.end;
        }
        Ok(None)
    }

    /// The same by a tree: no block is looked at in vain.
    fn locate_by(
        &self,
        tree: &Tree,
        columns: &KeyColumns,
        key: &[u8],
        near: &mut Near,
    ) -> Result<Option<(Arc<DecodedBlock>, usize)>> {
        let mut row = None;
        tree.entries(&Span::one(key), |_, found| {
            row = Some(u64::from(found));
            Ok(false)
        })?;
        let Some(row) = row else { return Ok(None) };
        let block = match near.block.take().filter(|block| block.rows.contains(&row)) {
            Some(block) => block,
            None => self.block(columns, row)?,
        };
        let at = usize::try_from(row - block.rows.start).unwrap_or(usize::MAX);
        near.block = Some(Arc::clone(&block));
        // The tree may be of other rows only if a file is damaged in a way that no checksum shows.
        Ok((at < block.keys.len() && block.keys.get(at) == key).then_some((block, at)))
    }

    /// Asks the tree of an index. `None` if there is none, or if it turns out to be damaged: it is not asked again then, and if
    /// this process writes to the table it is built anew. What it had said by then, before it showed, was right.
    pub(crate) fn ask<T>(&self, index: u64, ask: impl FnOnce(&Tree) -> Result<T>) -> Result<Option<T>> {
        let Some(tree) = self.trees.get(index) else { return Ok(None) };
        match ask(&tree) {
            Err(error) if index::is_damage(&error) => {
                if self.trees.lose(&tree) && self.care.lose() {
                    // What can't be removed now, the next build removes.
                    let _ = self.storage.remove(&index::file_name(self.entry.number, index));
                }
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    /// Bytes of its filter.
    pub(crate) fn filter_bytes(&self) -> u64 {
        self.filter.as_ref().map_or(0, Filter::bytes)
    }

    /// Whether it is to have a tree of its keys.
    pub(crate) fn wants_key_tree(&self) -> bool {
        self.filter.is_none()
    }

    /// The block that has a row, decoded.
    pub(crate) fn block(&self, columns: &KeyColumns, row: u64) -> Result<Arc<DecodedBlock>> {
        let first = self.file.block_rows_at(row)?.start;
        let at = (self.entry.number, first);
        if let Some(block) = self.blocks.get(at) {
            return Ok(block);
        }
        let (rows, batch) = self.file.read_block_at(row)?;
        let keys = columns.of(&batch)?;
        let block = Arc::new(DecodedBlock::new(rows, batch, keys));
        self.blocks.keep(at, &block);
        Ok(block)
    }

    /// Columns of all rows, deleted or not, in the order given.
    pub(crate) fn scan(&self, columns: impl Iterator<Item = usize>) -> Result<Scan> {
        let fields = self.file.schema().fields();
        let names: Vec<&str> = columns.filter_map(|at| fields.get(at)).map(|field| field.name().as_str()).collect();
        Ok(self.file.scan().select(names).batches()?)
    }

    /// The largest number of a row, of a table whose last column numbers them.
    pub(crate) fn last_number(&self) -> Result<Option<u64>> {
        let Some(column) = self.file.schema().fields().last() else { return Ok(None) };
        let max = self.file.statistics(&Path::column(column.name()))?.max;
        Ok(max.and_then(|(max, _)| if let Scalar::Int(max) = max { u64::try_from(max).ok() } else { None }))
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        self.blocks.forget(self.entry.number);
        // Of a table that is closed the next to open it removes them: files of these names may be another's by now.
        if *self.obsolete.get_mut() && self.care.is_writing() {
            // What can't be removed now, the next to open the table removes.
            let _ = self.storage.remove(&rows_name(self.entry.number));
            let _ = self.storage.remove(&keys_name(self.entry.number));
            for index in self.trees.numbers() {
                let _ = self.storage.remove(&index::file_name(self.entry.number, index));
            }
        }
    }
}

/// Gathers what the file of keys will say, row by row.
#[derive(Debug)]
pub(crate) struct KeyWriter {
    samples: Keys,
    last: Vec<u8>,
    filter: Option<Filter>,
    rows: u64,
}

impl KeyWriter {
    /// For at most so many rows, with a filter if that takes no more than some bytes.
    pub(crate) fn new(rows: usize, filter_bytes: u64) -> Self {
        let filter = (Filter::bytes_for(rows) <= filter_bytes).then(|| Filter::for_keys(rows));
        Self { samples: Keys::default(), last: Vec::new(), filter, rows: 0 }
    }

    fn stride(&self) -> usize {
        if self.filter.is_some() { SAMPLE } else { SPARSE }
    }

    /// The next row's key, which is greater than the last one's; false if it is not.
    pub(crate) fn push(&mut self, key: &[u8]) -> bool {
        if self.rows > 0 && key <= self.last.as_slice() {
            return false;
        }
        if self.rows.is_multiple_of(self.stride() as u64) {
            self.samples.push(key);
        }
        self.last.clear();
        self.last.extend_from_slice(key);
        if let Some(filter) = &mut self.filter {
            filter.insert(crate::key::hash(key));
        }
        self.rows += 1;
        true
    }

    /// Writes the file, durably: its length and checksum.
    pub(crate) fn finish(self, storage: &dyn Storage, number: u64) -> Result<(u64, u64)> {
        let mut out = Vec::new();
        put_varint(&mut out, self.rows);
        put_varint(&mut out, self.stride() as u64);
        self.samples.iter().for_each(|key| put_bytes(&mut out, key));
        put_bytes(&mut out, &self.last);
        if let Some(filter) = &self.filter {
            filter.write(&mut out);
        }
        let seal = checksum(&out);
        let mut file = Append::new(storage.create(&keys_name(number))?);
        file.write_all(&out)?;
        Ok((file.finish()?, seal))
    }
}

/// What a file of keys says.
struct Listed {
    samples: Keys,
    stride: usize,
    last: Vec<u8>,
    filter: Option<Filter>,
}

fn read_keys(bytes: &[u8], rows: u64) -> Option<Listed> {
    let mut reader = Reader::new(bytes);
    (reader.varint().ok()? == rows && rows > 0).then_some(())?;
    let stride = usize::try_from(reader.varint().ok()?).ok().filter(|&stride| stride > 0)?;
    let mut samples = Keys::default();
    for _ in 0..rows.div_ceil(stride as u64) {
        samples.push(reader.bytes().ok()?);
    }
    let last = reader.bytes().ok()?.to_vec();
    let filter = if reader.left() == 0 { None } else { Some(Filter::read(reader.rest())?) };
    Some(Listed { samples, stride, last, filter })
}

/// The checksum of a complete file's tail.
pub(crate) fn seal_of(storage: &dyn Storage, number: u64) -> Result<(u64, u64)> {
    let source = storage.source(&rows_name(number))?;
    let len = source.byte_len();
    let tail = source.read(std::slice::from_ref(&(len.saturating_sub(TAIL)..len)))?.pop().unwrap_or_default();
    Ok((len, checksum(&tail)))
}

/// A segment as a version of the table sees it.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    pub(crate) segment: Arc<Segment>,
    pub(crate) deletes: Deletes,
}

impl Live {
    /// Rows that are there.
    pub(crate) fn rows(&self) -> u64 {
        self.segment.entry.rows - self.deletes.count().min(self.segment.entry.rows)
    }
}
