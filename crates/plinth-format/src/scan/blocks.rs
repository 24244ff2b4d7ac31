//! A file's blocks on their way from storage to the decoder.

use std::cell::OnceCell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use arrow_buffer::{BooleanBuffer, Buffer};
use hashbrown::{HashMap, HashSet};
use plinth_encoding::expr::Scalar;
use plinth_encoding::{Block, Bounds, Column, EncodingError, Memory, Physical, ValueSet};
use plinth_io::{Held, Io, Priority, Reading};
use plinth_profile::{Stage, scope};

use super::ScanMetrics;
use super::predicate::rank_bits;
use super::reads::{Brought, Reads};
use super::source::BlockId;
use crate::error::{FormatError, Result};
use crate::file::Inner;
use crate::meta::{BlockMeta, ChunkMeta};
use crate::wire::verify;

/// The blocks of one scan.
#[derive(Debug)]
pub(super) struct Blocks {
    pub(super) file: Arc<Inner>,
    pub(super) metrics: Arc<ScanMetrics>,
    /// Bytes that the whole query reads, as far as is known.
    query_bytes: u64,
    /// Whether values are never left where they were read.
    pub(super) detached: bool,
    /// Whether all is read from storage, also what is kept in memory.
    pub(super) anew: bool,
    /// Streams of wide integers that come as 64-bit ones where they are stored so.
    pub(super) narrow: HashSet<usize>,
    loaded: HashMap<BlockId, Loaded>,
}

/// What is there of some rows, by stream.
#[derive(Debug, Default)]
struct Loaded {
    bytes: HashMap<usize, Fetched>,
    /// What a predicate had to decode.
    decoded: HashMap<usize, Decoded>,
    /// Streams that were decoded, kept or not.
    once: HashSet<usize>,
}

impl Loaded {
    fn holds(&self, stream: usize) -> bool {
        self.bytes.contains_key(&stream) || self.decoded.contains_key(&stream)
    }
}

/// Decoded rows of a stream's block: values, or codes of a coded chunk.
#[derive(Debug)]
pub(super) struct Decoded {
    pub(super) column: Column,
    /// What the values are.
    pub(super) physical: Physical,
    /// Which rows they are, all if there is none.
    pub(super) under: Option<BooleanBuffer>,
}

/// A block as it was read.
#[derive(Debug)]
struct Fetched {
    bytes: Buffer,
    /// Its parts, once they were asked for; slices of the bytes.
    parsed: OnceCell<Block>,
    /// The read that brought it holds memory for as long as one of its blocks is here.
    read: Option<Arc<Held>>,
}

impl Fetched {
    fn new(bytes: Buffer, read: Option<Arc<Held>>) -> Self {
        Self { bytes, parsed: OnceCell::new(), read }
    }
}

/// Reads under way.
#[derive(Debug)]
pub struct Fetch {
    reads: Reads<Part>,
    /// Blocks that are cached of an earlier read.
    cached: Vec<(BlockId, usize, Buffer)>,
}

/// A block that one of the reads brings.
#[derive(Debug)]
struct Part {
    at: BlockId,
    stream: usize,
    checksum: u64,
}

impl Decoded {
    /// Some of these rows.
    fn only(&self, selection: Option<&BooleanBuffer>) -> plinth_encoding::Result<Column> {
        match (&self.under, selection) {
            (None, None) => Ok(self.column.clone()),
            (None, Some(selection)) => self.column.select(selection),
            (Some(under), Some(selection)) if under == selection => Ok(self.column.clone()),
            (Some(under), Some(selection)) if &(under & selection) == selection => {
                self.column.select(&rank_bits(selection, under))
            }
            _ => Err(EncodingError::invalid("rows are asked for that were dropped")),
        }
    }
}

/// What can be dropped of a stream when rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// The values of these rows.
    Rows,
    /// Nothing: they are items of lists, or say how many items the lists of all rows have.
    Whole,
}

impl AsRef<Reading> for Fetch {
    fn as_ref(&self) -> &Reading {
        self.reads.as_ref()
    }
}

/// How messages name a block.
struct Place<'a> {
    file: &'a Inner,
    stream: usize,
    at: BlockId,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BlockId { group, block } = self.at;
        write!(f, "column {:?}, row group {group}, block {block}", self.file.stream(self.stream).name)?;
        match block_meta(self.file, self.stream, self.at) {
            Ok(meta) => write!(f, " (offset {}, {} bytes)", meta.offset, meta.len),
            Err(_) => Ok(()),
        }
    }
}

fn chunk(file: &Inner, stream: usize, group: usize) -> Result<&ChunkMeta> {
    let meta = file.stream_meta(stream)?;
    meta.chunks.get(group).ok_or_else(|| FormatError::InvalidArgument(format!("there is no row group {group}")))
}

fn block_meta(file: &Inner, stream: usize, at: BlockId) -> Result<&BlockMeta> {
    let blocks = &chunk(file, stream, at.group)?.blocks;
    blocks.get(at.block).ok_or_else(|| FormatError::InvalidArgument(format!("there is no block {}", at.block)))
}

impl Blocks {
    pub(super) fn new(file: Arc<Inner>, metrics: Arc<ScanMetrics>, query_bytes: u64) -> Self {
        Self {
            file,
            metrics,
            query_bytes,
            detached: false,
            anew: false,
            narrow: HashSet::new(),
            loaded: HashMap::new(),
        }
    }

    /// Makes a decoder's error say where. Nothing is put into words before there is one.
    pub(super) fn fail(&self, stream: usize, at: BlockId) -> impl Fn(EncodingError) -> FormatError + use<> {
        let file = Arc::clone(&self.file);
        move |error| FormatError::at(file.source.name(), Place { file: &file, stream, at }, error)
    }

    pub(super) fn chunk(&self, stream: usize, group: usize) -> Result<&ChunkMeta> {
        chunk(&self.file, stream, group)
    }

    pub(super) fn meta(&self, stream: usize, at: BlockId) -> Result<&BlockMeta> {
        block_meta(&self.file, stream, at)
    }

    /// Whether a block may have so many different values that a set of few is likely to be of none of its rows.
    pub(super) fn is_rare(&self, stream: usize, at: BlockId, set: &ValueSet) -> Result<bool> {
        let (meta, Some(members)) = (self.meta(stream, at)?, set.listed_integers()) else { return Ok(false) };
        let Some(Bounds { min: Scalar::Int(min), max: Scalar::Int(max) }) = meta.zone.as_ref().map(|zone| &zone.bounds)
        else {
            return Ok(false);
        };
        let needed = i128::from(meta.values) * members as i128;
        Ok(max.checked_sub(*min).is_none_or(|range| range > needed))
    }

    /// Starts to read what is not here yet, in one batch; `None` if it was asked for ahead and there is no memory for it.
    pub(super) fn start(
        &self,
        wanted: impl Iterator<Item = (usize, BlockId)>,
        priority: Priority,
    ) -> Result<Option<Fetch>> {
        let (mut parts, mut cached) = (Vec::new(), Vec::new());
        for (stream, at) in wanted {
            if self.loaded.get(&at).is_some_and(|loaded| loaded.holds(stream)) {
                continue;
            }
            let meta = self.meta(stream, at)?;
            match self.file.cached_block(meta.offset).filter(|_| !self.anew) {
                Some(bytes) => cached.push((at, stream, bytes)),
                None => parts.push((meta.range(), Part { at, stream, checksum: meta.checksum })),
            }
        }
        parts.sort_by_key(|(range, part)| (range.start, part.at.group, part.at.block, part.stream));
        parts.dedup_by_key(|(range, part)| (range.start, part.stream, part.at));
        let reads = Reads::start(&*self.file.source, parts, priority, self.query_bytes, &self.metrics)?;
        Ok(reads.map(|reads| Fetch { reads, cached }))
    }

    /// Waits for what was started, and checks it.
    pub(super) fn finish(&mut self, fetch: Fetch) -> Result<()> {
        let Fetch { reads, cached } = fetch;
        let below = reads.below();
        for (at, stream, bytes) in cached {
            self.loaded.entry(at).or_default().bytes.insert(stream, Fetched::new(bytes, None));
        }
        let blocks = reads.wait()?;
        let check = scope(Stage::Checksum);
        check.bytes(blocks.iter().map(|block| block.bytes.len() as u64).sum());
        for Brought { part: Part { at, stream, checksum }, range, bytes, held } in blocks {
            verify(self.file.source.name(), &Place { file: &self.file, stream, at }, &bytes, checksum)?;
            self.file.cache_block(range.start, &bytes, below);
            self.loaded.entry(at).or_default().bytes.insert(stream, Fetched::new(bytes, held));
        }
        Ok(())
    }

    /// A fetched block, which is parsed once.
    pub(super) fn open(&self, stream: usize, at: BlockId) -> Result<&Block> {
        let fetched = self.fetched(stream, at)?;
        if let Some(block) = fetched.parsed.get() {
            return Ok(block);
        }
        let coded = self.chunk(stream, at.group)?.dictionary.is_some();
        let physical = if coded { Physical::CODES } else { self.file.stream(stream).physical };
        let rows = self.meta(stream, at)?.values as usize;
        let block = Block::open(physical, &fetched.bytes, rows).map_err(self.fail(stream, at))?;
        let block = if self.narrow.contains(&stream) { block.narrowed() } else { block };
        Ok(fetched.parsed.get_or_init(|| block))
    }

    fn fetched(&self, stream: usize, at: BlockId) -> Result<&Fetched> {
        let fetched = self.loaded.get(&at).and_then(|loaded| loaded.bytes.get(&stream));
        let place = Place { file: &self.file, stream, at };
        fetched.ok_or_else(|| FormatError::internal(format!("{place} was not fetched")))
    }

    /// What was decoded of a stream's block, if it was.
    pub(super) fn decoded(&self, stream: usize, at: BlockId) -> Option<&Decoded> {
        self.loaded.get(&at)?.decoded.get(&stream)
    }

    /// Decodes rows of a stream's block and keeps them, unless it was done already, perhaps for more rows.
    pub(super) fn decode_cached(
        &mut self,
        stream: usize,
        at: BlockId,
        scope: Option<&BooleanBuffer>,
    ) -> Result<&Decoded> {
        if self.decoded(stream, at).is_none() {
            let scope = scope.filter(|scope| scope.count_set_bits() < scope.len());
            let physical = self.open(stream, at)?.physical();
            let decoded = Decoded { column: self.decode(stream, at, scope)?, physical, under: scope.cloned() };
            self.loaded.entry(at).or_default().decoded.insert(stream, decoded);
        }
        let decoded = self.decoded(stream, at);
        decoded.ok_or_else(|| FormatError::internal(format!("{} was lost", Place { file: &self.file, stream, at })))
    }

    /// The selected rows of a stream's block, and what their values are: of what a predicate decoded, or from its bytes.
    pub(super) fn column(
        &mut self,
        stream: usize,
        at: BlockId,
        selection: Option<&BooleanBuffer>,
    ) -> Result<(Column, Physical)> {
        match self.decoded(stream, at) {
            Some(decoded) => Ok((decoded.only(selection).map_err(self.fail(stream, at))?, decoded.physical)),
            None => {
                let physical = self.open(stream, at)?.physical();
                Ok((self.decode(stream, at, selection)?, physical))
            }
        }
    }

    /// The most bytes that decoding a stream's block can take.
    pub(super) fn decoded_at_most(&self, stream: usize, at: BlockId) -> Result<u64> {
        Ok(self.open(stream, at)?.decoded_at_most())
    }

    /// Keeps of a block's decoded streams those that are needed, and of them the selected rows; the bytes they were decoded from
    /// are not needed any more. Returns what stays takes, beyond what was read.
    pub(super) fn retain_selected(
        &mut self,
        at: BlockId,
        selection: &BooleanBuffer,
        wait: bool,
        needed: impl Fn(usize) -> Option<Depth>,
    ) -> Result<u64> {
        let Some(mut loaded) = self.loaded.remove(&at) else { return Ok(0) };
        let some = Some(selection).filter(|selection| selection.count_set_bits() < selection.len());
        loaded.decoded.retain(|&stream, _| needed(stream).is_some());
        for (&stream, decoded) in &mut loaded.decoded {
            if needed(stream) == Some(Depth::Rows) {
                let column = decoded.only(some).map_err(self.fail(stream, at))?;
                *decoded = Decoded { column, physical: decoded.physical, under: some.cloned() };
            }
        }
        let mut memory = Memory::default();
        for (&stream, decoded) in &mut loaded.decoded {
            let Some(fetched) = loaded.bytes.get(&stream) else { continue };
            if wait && some.is_some() && decoded.column.borrows(&fetched.bytes) {
                decoded.column = decoded.column.compact().map_err(self.fail(stream, at))?.detached(&fetched.bytes);
            }
            memory.add(&decoded.column, &fetched.bytes);
            if !decoded.column.borrows(&fetched.bytes) {
                loaded.bytes.remove(&stream);
            }
        }
        loaded.bytes.retain(|&stream, _| needed(stream).is_some());
        self.loaded.insert(at, loaded);
        Ok(memory.bytes() + selection.len() as u64 / 8)
    }

    fn decode(&mut self, stream: usize, at: BlockId, selection: Option<&BooleanBuffer>) -> Result<Column> {
        let opened = self.open(stream, at)?;
        let decode = scope(Stage::Decode.of(opened.encoding().name()));
        let column = opened.decode(selection).map_err(self.fail(stream, at))?;
        if decode.is_recording() {
            decode.rows(column.len as u64);
            decode.bytes(column.bytes());
        }
        drop(decode);
        self.metrics.blocks_decoded.fetch_add(1, Relaxed);
        if !self.loaded.entry(at).or_default().once.insert(stream) {
            self.metrics.blocks_decoded_again.fetch_add(1, Relaxed);
        }
        let fetched = self.fetched(stream, at)?;
        // Values that need no decoding stay where they were read, unless too much of that memory is with consumers.
        let lent_out = || fetched.read.is_some() && self.file.source.io().is_some_and(Io::is_lent_out);
        Ok(if column.borrows(&fetched.bytes) && (self.detached || lent_out()) {
            column.detached(&fetched.bytes)
        } else {
            column
        })
    }

    /// Drops what is held of some rows.
    pub(super) fn release(&mut self, at: BlockId) {
        self.loaded.remove(&at);
    }
}
