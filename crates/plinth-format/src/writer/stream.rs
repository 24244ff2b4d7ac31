//! One column while it is written: its tree of streams, each direct or through a dictionary.

mod intern;

use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::DataType;
use plinth_encoding::dictionary::{self, Interner, Learned};
use plinth_encoding::sketch::Sketch;
use plinth_encoding::{Column, Effort, EncodingError, Physical, Values};
use plinth_io::{Output, Spool};
use plinth_profile::{Profiler, Stage, scope};
use rayon::prelude::*;

use intern::{Page, intern_alone, intern_dictionaries, intern_together, pack, provisional};

use super::chunk::{EncodedBlock, EncodedChunk, encode_blocks, write_blocks};
use super::precedent::Precedent;
use super::provisional::SpooledBlock;
use super::summary::{BlockSummary, ChunkSummary, StreamSummary};
use super::{WriterOptions, holds};
use crate::error::{FormatError, Result};
use crate::meta::{ChunkMeta, DictionaryMeta, Extra, Section, StreamMeta, Zone, widen};
use crate::shred::{normalise, shred, value_bytes};
use crate::types::Node;

/// A column's tree and the writers of its streams.
#[derive(Debug)]
pub(super) struct ColumnWriter {
    node: Node,
    arrow_type: DataType,
    pub(super) streams: Vec<StreamWriter>,
    page: Option<Page>,
}

/// Where one row in so many has a new value, no other thread looks for values first.
const FEW_NEW: usize = 3;

/// Of text one block in so many is encoded both ways to decide between them.
const TRIED: usize = 4;

/// Where a stream's values go.
#[derive(Debug)]
enum Mode {
    /// The next row group with values will tell.
    Undecided,
    /// To blocks.
    Direct,
    /// To the dictionary.
    Dictionary,
}

/// A chunk that is in the file or waits in the spool.
#[derive(Debug)]
pub(super) enum StoredChunk {
    Written(ChunkMeta),
    Spooled(Vec<SpooledBlock>),
}

/// What a dictionary that was full has come to.
#[derive(Clone, Copy, Debug)]
struct Closed {
    /// Its values.
    distinct: u64,
    /// What these are in its row groups, nulls left out.
    values: u64,
    /// Bytes of the dictionary and its codes.
    bytes: u64,
}

/// One stream while it is written.
#[derive(Debug)]
pub(super) struct StreamWriter {
    pub(super) name: String,
    pub(super) physical: Physical,
    /// Whether it holds values (with zone maps and a dictionary) rather than shape.
    pub(super) leaf: bool,
    one_value_a_row: bool,
    mode: Mode,
    /// The values of the dictionary that grows.
    pub(super) interner: Option<Interner>,
    /// Whether many values of the last row group were new.
    many_new: bool,
    /// What the dictionaries before it learned of values.
    pub(super) learned: Learned,
    /// The dictionary that was closed last, while it is not decided whether there is to be another.
    closed: Option<Closed>,
    /// How values are stored outside of dictionaries, and codes of them.
    direct: Precedent,
    pub(super) coded: Precedent,
    pub(super) chunks: Vec<StoredChunk>,
    /// The first chunk that may have codes of the dictionary that grows.
    pub(super) first_growing: usize,
    /// Those that are written.
    pub(super) dictionaries: Vec<DictionaryMeta>,
    /// What a reader must know of the format to read what is written.
    pub(super) features: u32,
    /// Whether it is to have postings.
    pub(super) indexed: bool,
    pub(super) note: String,
    pub(super) nulls: u64,
    pub(super) values: u64,
    /// Those that are not null and in no dictionary.
    pub(super) direct_values: u64,
    value_bytes: u64,
    /// Of the distinct values of the chunks that are written.
    pub(super) sketch: Sketch,
    /// Of each chunk.
    pub(super) summaries: Vec<ChunkSummary>,
    /// Whether the rows of each chunk that is written are sorted.
    pub(super) sorted: bool,
    pub(super) zone: Option<Option<Zone>>,
}

impl ColumnWriter {
    /// The writer of a column, which is to have postings if it is `indexed`: one that can have a dictionary.
    pub(super) fn new(node: &Node, indexed: bool) -> Self {
        let mut streams = Vec::new();
        add_streams(node, node.name.clone(), true, &mut streams);
        if let Some(stream) = streams.first_mut() {
            stream.index(indexed);
        }
        Self { arrow_type: node.arrow_type(), node: node.clone(), streams, page: None }
    }

    /// Checks that an array can be stored in this column.
    pub(super) fn check(&self, array: &ArrayRef) -> Result<()> {
        let fits = holds(array.data_type(), &self.arrow_type)
            || crate::types::Tree::from_arrow(&arrow_schema::Schema::new(vec![arrow_schema::Field::new(
                &self.node.name,
                array.data_type().clone(),
                true,
            )]))
            .is_ok_and(|tree| tree.columns.first().is_some_and(|node| node.same_shape(&self.node)));
        if !fits {
            let what =
                format!("column {:?}: a batch has {}, the file {}", self.node.name, array.data_type(), self.arrow_type);
            return Err(FormatError::InvalidArgument(what));
        }
        if !self.node.nullable && array.logical_null_count() > 0 {
            let what = format!("column {:?} is declared without nulls, but a batch holds some", self.node.name);
            return Err(FormatError::InvalidArgument(what));
        }
        Ok(())
    }

    fn fail(&self, error: impl std::fmt::Display) -> FormatError {
        FormatError::InvalidArgument(format!("column {:?}: {error}", self.node.name))
    }

    /// The rows of one block as one array of the stored type.
    fn gather(&self, pieces: &[ArrayRef]) -> Result<ArrayRef> {
        match pieces {
            [piece] => Ok(Arc::clone(piece)),
            many => {
                let many: Vec<&dyn Array> = many.iter().map(AsRef::as_ref).collect();
                arrow_select::concat::concat(&many).map_err(|e| self.fail(e))
            }
        }
    }

    /// Encodes a row group: one chunk a stream.
    pub(super) fn encode(
        &mut self,
        pieces: Vec<ArrayRef>,
        block_rows: usize,
        options: &WriterOptions,
    ) -> Result<Vec<EncodedChunk>> {
        if let [stream] = self.streams.as_mut_slice()
            && matches!(stream.mode, Mode::Dictionary)
            && pieces.iter().all(|piece| matches!(piece.data_type(), DataType::Dictionary(..)))
        {
            let _intern = scope(Stage::Intern);
            let (codes, nulls) = intern_dictionaries(stream, &mut self.page, &self.arrow_type, &pieces)
                .map_err(|e| FormatError::InvalidArgument(format!("column {:?}: {e}", self.node.name)))?;
            return Ok(vec![provisional(&codes, nulls.as_ref(), block_rows)]);
        }
        self.page = None;
        let pieces = pieces
            .iter()
            .map(|piece| normalise(piece, &self.arrow_type))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|e| self.fail(e))?;
        let first = self.node.stream;
        let profiler = Profiler::current();
        let shred_block = |pieces: &Vec<ArrayRef>| {
            let _build = profiler.scope(Stage::Build);
            let mut columns: Vec<(usize, Column)> = Vec::with_capacity(self.streams.len());
            let emit = &mut |node: &Node, column| columns.push((node.stream - first, column));
            shred(&self.node, &self.gather(pieces)?, None, emit).map_err(|e| self.fail(e))?;
            Ok(columns)
        };
        let cut = cut(&pieces, block_rows);
        // A part of an array is there at once; other threads are woken only where parts of several are put together.
        let shredded: Vec<Vec<(usize, Column)>> = if cut.iter().all(|pieces| pieces.len() == 1) {
            cut.iter().map(shred_block).collect::<Result<_>>()?
        } else {
            cut.par_iter().map(shred_block).collect::<Result<_>>()?
        };
        drop(cut);
        drop(pieces);
        let mut blocks: Vec<Vec<Column>> = self.streams.iter().map(|_| Vec::with_capacity(shredded.len())).collect();
        for (stream, column) in shredded.into_iter().flatten() {
            let blocks = blocks.get_mut(stream);
            blocks
                .ok_or_else(|| FormatError::internal(format!("a block of stream {stream}, which is none")))?
                .push(column);
        }
        self.streams.iter_mut().zip(blocks).map(|(stream, blocks)| stream.encode(&blocks, options)).collect()
    }
}

/// Cuts the rows of some arrays into blocks, each of which may have parts of several.
fn cut(pieces: &[ArrayRef], block_rows: usize) -> Vec<Vec<ArrayRef>> {
    let (mut blocks, mut room) = (Vec::<Vec<ArrayRef>>::new(), 0);
    for piece in pieces {
        let mut from = 0;
        while from < piece.len() {
            if room == 0 {
                blocks.push(Vec::new());
                room = block_rows;
            }
            let taken = room.min(piece.len() - from);
            if let Some(block) = blocks.last_mut() {
                block.push(piece.slice(from, taken));
            }
            from += taken;
            room -= taken;
        }
    }
    blocks
}

fn add_streams(node: &Node, name: String, one_value_a_row: bool, streams: &mut Vec<StreamWriter>) {
    use crate::types::Logical;
    let below_list = matches!(node.logical, Logical::List | Logical::Map { .. } | Logical::FixedList(_));
    streams.push(StreamWriter::new(name.clone(), node, one_value_a_row));
    for child in &node.children {
        let name = if below_list { format!("{name}[]") } else { format!("{name}.{}", child.name) };
        add_streams(child, name, one_value_a_row && !below_list, streams);
    }
}

impl StreamWriter {
    fn new(name: String, node: &Node, one_value_a_row: bool) -> Self {
        let physical = node.physical();
        let leaf = node.is_leaf();
        // Narrow numbers gain nothing from a dictionary that frame-of-reference does not give them.
        let candidate = leaf
            && match physical {
                Physical::Bytes { .. } => true,
                Physical::Int { width, .. } | Physical::Float { width } => width >= 4,
                Physical::Fixed { width } => width >= 4,
                Physical::Wide { width } => width == 16,
                Physical::Bool => false,
            };
        Self {
            name,
            physical,
            leaf,
            one_value_a_row,
            mode: if candidate { Mode::Undecided } else { Mode::Direct },
            interner: None,
            many_new: true,
            learned: Learned::default(),
            closed: None,
            direct: Precedent::default(),
            coded: Precedent::default(),
            chunks: Vec::new(),
            first_growing: 0,
            dictionaries: Vec::new(),
            features: 0,
            indexed: false,
            note: String::new(),
            nulls: 0,
            values: 0,
            direct_values: 0,
            value_bytes: 0,
            sketch: Sketch::default(),
            summaries: Vec::new(),
            sorted: true,
            zone: None,
        }
    }

    /// Postings are lists of a dictionary's codes: an indexed stream has one, whether it saves anything or not.
    fn index(&mut self, indexed: bool) {
        self.indexed = indexed;
        if let (true, Ok(interner)) = (indexed, Interner::new(self.physical)) {
            self.mode = Mode::Dictionary;
            self.interner = Some(interner);
        }
    }

    fn fail(&self, error: impl std::fmt::Display) -> FormatError {
        FormatError::InvalidArgument(format!("column {:?}: {error}", self.name))
    }

    /// Encodes the blocks of a row group.
    fn encode(&mut self, blocks: &[Column], options: &WriterOptions) -> Result<EncodedChunk> {
        for block in blocks {
            self.value_bytes += value_bytes(block);
        }
        let mut chunk = match self.mode {
            Mode::Direct => self.direct(blocks, options).map(EncodedChunk::Direct),
            Mode::Dictionary => self.intern(blocks),
            Mode::Undecided if options.effort == Effort::Plain => {
                self.mode = Mode::Direct;
                self.direct(blocks, options).map(EncodedChunk::Direct)
            }
            Mode::Undecided => self.decide(blocks, options),
        }?;
        if let EncodedChunk::Direct(encoded) = &mut chunk {
            self.direct.note(encoded);
            for (block, encoded) in blocks.iter().zip(encoded).filter(|_| self.leaf) {
                self.sketch.add(self.physical, encoded.heads.take().as_ref().unwrap_or(block));
            }
        }
        Ok(chunk)
    }

    /// The values of the dictionary that grows, of none if it begins.
    pub(super) fn take_interner(&mut self) -> Result<Interner, EncodingError> {
        self.interner.take().map_or_else(|| Interner::new(self.physical), Ok)
    }

    fn direct(&self, blocks: &[Column], options: &WriterOptions) -> Result<Vec<EncodedBlock>> {
        let summarise = |column: &Column, block: &EncodedBlock| match self.leaf {
            true => BlockSummary::of(self.physical, column, block, self.sorted),
            false => BlockSummary::default(),
        };
        let mut encoded =
            encode_blocks(&self.name, self.physical, blocks, self.leaf, &options.encoding(), &self.direct, summarise)?;
        if !self.leaf && self.physical == Physical::Bool {
            // Presence: what is absent counts as null.
            for (block, column) in encoded.iter_mut().zip(blocks) {
                if let Values::Bool(present) = &column.values {
                    block.nulls = u32::try_from(column.len - present.count_set_bits()).unwrap_or(u32::MAX);
                }
            }
        }
        Ok(encoded)
    }

    /// The provisional codes of each block, packed. Where threads are to be had and few values are new, all look for those
    /// that are known, and one adds the others; the codes are the same either way.
    fn intern(&mut self, blocks: &[Column]) -> Result<EncodedChunk> {
        let _intern = scope(Stage::Intern);
        let mut interner = self.take_interner().map_err(|e| self.fail(e))?;
        let chunk = self.intern_into(&mut interner, blocks);
        self.interner = Some(interner);
        chunk
    }

    fn intern_into(&mut self, interner: &mut Interner, blocks: &[Column]) -> Result<EncodedChunk> {
        let (known, rows) = (interner.len(), blocks.iter().map(|block| block.len).sum::<usize>());
        let packed = if self.many_new || blocks.len() == 1 || rayon::current_num_threads() == 1 {
            intern_alone(interner, blocks).map(|codes| pack(blocks, &codes))
        } else {
            intern_together(interner, blocks)
        };
        self.many_new = (interner.len() - known) > rows / FEW_NEW;
        packed.map(EncodedChunk::Provisional).map_err(|e| self.fail(e))
    }

    /// Tries blocks of a row group both ways: of text some, for it is dear to encode. Text takes a dictionary when values repeat and it costs little,
    /// for what it does for queries; numbers only when it saves a quarter. Behind a full dictionary, what that took tells what the next will.
    fn decide(&mut self, blocks: &[Column], options: &WriterOptions) -> Result<EncodedChunk> {
        let valid = |block: &Column| block.len - block.nulls.as_ref().map_or(0, NullBuffer::null_count);
        let valid_in = |step: usize| blocks.iter().step_by(step).map(valid).sum::<usize>();
        let text = matches!(self.physical, Physical::Bytes { .. });
        // What is mostly null elsewhere says little of the rest, and a part of a number's blocks too little: it is often close.
        let step = if !text || valid_in(TRIED) * 2 * TRIED < valid_in(1) { 1 } else { TRIED };
        let (tried_valid, valid) = (valid_in(step), valid_in(1));
        let tried: Vec<Column> = blocks.iter().step_by(step).cloned().collect();
        let direct = self.direct(&tried, options)?;
        self.mode = Mode::Direct;
        let size = |blocks: &[EncodedBlock]| blocks.iter().map(|block| block.bytes.len()).sum::<usize>();
        // What all blocks would take.
        let whole = |tried: &[EncodedBlock]| size(tried).saturating_mul(valid) / tried_valid.max(1);
        if valid == 0 {
            self.mode = Mode::Undecided;
            return self.rest_direct(direct, step, blocks, options);
        }
        if let Some(Closed { distinct, values, bytes }) = self.closed.take() {
            let expected = u128::from(bytes) * valid as u128 / u128::from(values.max(1));
            if distinct > values / 2 || expected > u128::from(self.worth(whole(&direct) as u64)) {
                self.note = format!(
                    "no dictionary after row group {}: the last has {distinct} values for {values} rows; of so many as the next row group \
                     has it takes {expected} bytes, and they about {} without it",
                    self.chunks.len(),
                    whole(&direct)
                );
                return self.rest_direct(direct, step, blocks, options);
            }
            self.mode = Mode::Dictionary;
            return self.intern(blocks);
        }
        // A number's direct form is often so small that codes could not be smaller.
        if !text && size(&direct) < tried_valid {
            return self.rest_direct(direct, step, blocks, options);
        }
        let mut interner = Interner::new(self.physical).map_err(|e| self.fail(e))?;
        let interning = scope(Stage::Intern);
        let codes = intern_alone(&mut interner, blocks).map_err(|e| self.fail(e))?;
        drop(interning);
        // As ranks will be encoded.
        let coded = blocks.iter().zip(&codes).step_by(step);
        let coded: Vec<Column> = coded.map(|(block, codes)| codes_column(codes.clone(), block.nulls.clone())).collect();
        let nothing = |_: &Column, _: &EncodedBlock| BlockSummary::default();
        let unlike = Precedent::default();
        let coded = encode_blocks(&self.name, Physical::CODES, &coded, false, &options.encoding(), &unlike, nothing)?;
        let (coded, direct_size) = (whole(&coded), whole(&direct));
        let most = self.worth(direct_size as u64);
        let adopted = if !text {
            interner.len() <= valid / 2 && (coded + interner.key_bytes()) as u64 <= most
        } else if interner.len() <= valid / 2 {
            coded as u64 <= most
        } else if self.will_repeat(&interner, blocks, &codes, options) {
            (coded + self.dictionary_size(blocks, options)?) as u64 <= most
        } else {
            false
        };
        if !adopted {
            return self.rest_direct(direct, step, blocks, options);
        }
        self.mode = Mode::Dictionary;
        self.interner = Some(interner);
        Ok(EncodedChunk::Provisional(pack(blocks, &codes)))
    }

    /// The most bytes that a dictionary and its codes may take instead of so many: of text a quarter more, for what a
    /// dictionary does for queries; of numbers a quarter less.
    fn worth(&self, direct: u64) -> u64 {
        if matches!(self.physical, Physical::Bytes { .. }) { direct + direct / 4 } else { direct / 4 * 3 }
    }

    /// Encodes the blocks that were not tried, which one in so many was.
    fn rest_direct(
        &self,
        tried: Vec<EncodedBlock>,
        step: usize,
        blocks: &[Column],
        options: &WriterOptions,
    ) -> Result<EncodedChunk> {
        let rest = blocks.iter().enumerate().filter(|(at, _)| !at.is_multiple_of(step));
        let rest: Vec<Column> = rest.map(|(_, block)| block.clone()).collect();
        let (mut tried, mut rest) = (tried.into_iter(), self.direct(&rest, options)?.into_iter());
        let next = |at: usize| if at.is_multiple_of(step) { tried.next() } else { rest.next() };
        Ok(EncodedChunk::Direct((0..blocks.len()).filter_map(next).collect()))
    }

    /// Whether values that hardly repeat yet will once there are more rows: whether so few are to be expected that a
    /// dictionary holds them, by how many were seen once and twice (Chao, "Nonparametric estimation of the number of
    /// classes in a population", 1984).
    fn will_repeat(&self, interner: &Interner, blocks: &[Column], codes: &[Vec<u32>], options: &WriterOptions) -> bool {
        let mut counts = vec![0_u32; interner.len()];
        for (block, codes) in blocks.iter().zip(codes) {
            for (row, &code) in codes.iter().enumerate() {
                if let (Some(count), true) =
                    (counts.get_mut(code as usize), block.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)))
                {
                    *count = count.saturating_add(1);
                }
            }
        }
        let seen = |times: u32| counts.iter().filter(|&&count| count == times).count();
        let (once, twice) = (seen(1), seen(2));
        let expected = interner.len().saturating_add(once.saturating_mul(once) / (2 * twice).max(1));
        let bytes = expected.saturating_mul(interner.key_bytes()) / interner.len().max(1);
        expected <= options.dictionary_values && bytes <= options.dictionary_bytes
    }

    /// Bytes of a dictionary of the values of some blocks.
    fn dictionary_size(&self, blocks: &[Column], options: &WriterOptions) -> Result<usize> {
        let size = || {
            let mut interner = Interner::new(self.physical)?;
            blocks.iter().try_for_each(|block| interner.intern(block, &mut Vec::new()))?;
            let encoded = dictionary::encode(self.physical, &interner.sort(), options.effort)?;
            Ok(encoded.blocks.iter().map(Vec::len).sum::<usize>() + encoded.index.len())
        };
        size().map_err(|e: EncodingError| self.fail(e))
    }

    /// Its dictionary was full and is written: the next row group tells whether another is worth it.
    pub(super) fn close_dictionary(&mut self) {
        let (Some(last), false) = (self.dictionaries.last(), self.indexed) else { return };
        let number = self.dictionaries.len() - 1;
        let bytes = last.blocks.iter().chain([&last.index]).map(|section| u64::from(section.len)).sum();
        let mut closed = Closed { distinct: last.values.into(), values: 0, bytes };
        for chunk in &self.chunks {
            if let StoredChunk::Written(chunk) = chunk
                && chunk.dictionary == Some(number)
            {
                closed.bytes += chunk.blocks.iter().map(|block| u64::from(block.len)).sum::<u64>();
                closed.values += chunk.blocks.iter().map(|block| u64::from(block.values - block.nulls)).sum::<u64>();
            }
        }
        self.closed = Some(closed);
        self.mode = Mode::Undecided;
    }

    /// Puts an encoded chunk where it belongs.
    pub(super) fn store(&mut self, chunk: EncodedChunk, output: &mut dyn Output, spool: &mut Spool) -> Result<()> {
        let stored = match chunk {
            EncodedChunk::Direct(blocks) => {
                self.summarise(self.chunks.len(), blocks.iter().map(|block| block.summary.clone()));
                for block in &blocks {
                    self.features |= block.features;
                    self.nulls += u64::from(block.nulls);
                    self.values += u64::from(block.values);
                    self.direct_values += u64::from(block.values - block.nulls);
                    if self.leaf {
                        widen(&mut self.zone, block.zone.as_ref(), block.values > block.nulls);
                    }
                }
                StoredChunk::Written(ChunkMeta { dictionary: None, blocks: write_blocks(blocks, output)? })
            }
            EncodedChunk::Provisional(blocks) => StoredChunk::Spooled(
                blocks
                    .into_iter()
                    .map(|block| {
                        self.nulls += block.nulls() as u64;
                        self.values += block.values() as u64;
                        block.store(spool)
                    })
                    .collect::<Result<_>>()?,
            ),
        };
        self.chunks.push(stored);
        Ok(())
    }

    /// Notes what was counted of the blocks of a chunk.
    pub(super) fn summarise(&mut self, group: usize, blocks: impl Iterator<Item = BlockSummary>) {
        let chunk = ChunkSummary::of(blocks);
        self.sorted &= chunk.is_sorted();
        if self.summaries.len() <= group {
            self.summaries.resize_with(group + 1, ChunkSummary::default);
        }
        if let Some(slot) = self.summaries.get_mut(group) {
            *slot = chunk;
        }
    }

    /// The stream's metadata section, once all chunks are written, with the row groups in this order.
    pub(super) fn metadata(
        &mut self,
        order: &[usize],
        summary: StreamSummary,
        details: Option<Section>,
    ) -> Result<Vec<u8>> {
        let mut written = std::mem::take(&mut self.chunks)
            .into_iter()
            .map(|chunk| match chunk {
                StoredChunk::Written(chunk) => Ok(Some(chunk)),
                StoredChunk::Spooled(_) => Err(FormatError::internal("a chunk was left in the spool")),
            })
            .collect::<Result<Vec<_>>>()?;
        let chunk = |&group: &usize| {
            let chunk = written.get_mut(group).and_then(Option::take);
            chunk.ok_or_else(|| FormatError::internal(format!("no chunk of row group {group} was written")))
        };
        let chunks = order.iter().map(chunk).collect::<Result<_>>()?;
        let meta = StreamMeta {
            nulls: self.nulls,
            values: self.values,
            value_bytes: self.value_bytes,
            zone: self.zone.take().flatten(),
            order: summary.order,
            sum: summary.sum,
            distinct: summary.distinct,
            extras: details.map(|section| (Extra::Details as u64, section)).into_iter().collect(),
            dictionaries: std::mem::take(&mut self.dictionaries),
            note: std::mem::take(&mut self.note),
            chunks,
        };
        Ok(meta.write(self.one_value_a_row))
    }
}

/// Codes as a block's column.
pub(super) fn codes_column(codes: Vec<u32>, nulls: Option<NullBuffer>) -> Column {
    Column { len: codes.len(), values: Values::Fixed(ScalarBuffer::from(codes).into_inner()), nulls }
}
