//! One column while it is written: its tree of streams, each direct or through a dictionary.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::DataType;
use plinth_encoding::dictionary::Interner;
use plinth_encoding::{Column, Effort, Physical, Values};
use plinth_io::{AtomicFile, Spool};

use super::chunk::{EncodedBlock, EncodedChunk, encode_blocks, write_blocks};
use super::{WriterOptions, holds};
use crate::error::{FormatError, Result};
use crate::meta::{ChunkMeta, DictionaryMeta, StreamMeta, Zone, widen};
use crate::shred::{VIEW_BYTES, leaf_values, normalise, shred, value_bytes, value_memory};
use crate::types::Node;

/// A column's tree and the writers of its streams.
#[derive(Debug)]
pub(super) struct ColumnWriter {
    node: Node,
    arrow_type: DataType,
    pub(super) streams: Vec<StreamWriter>,
    page: Option<Page>,
}

/// The values of a dictionary array and the provisional codes of those seen: consecutive batches of a Parquet column
/// share a dictionary page, whose values are interned once.
#[derive(Debug)]
struct Page {
    values: ArrayRef,
    codes: Vec<u32>,
    /// Bytes each value takes in memory.
    bytes: Vec<u64>,
}

/// A page value not seen yet.
const UNSEEN: u32 = u32::MAX;

/// Where a stream's values go.
#[derive(Debug)]
enum Mode {
    /// The first row group will tell.
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

/// Provisional codes of a block.
#[derive(Debug)]
pub(super) struct SpooledBlock {
    pub(super) at: Range<u64>,
    pub(super) values: u32,
}

/// One stream while it is written.
#[derive(Debug)]
pub(super) struct StreamWriter {
    pub(super) name: String,
    pub(super) physical: Physical,
    /// Whether it holds values (with zone maps and a dictionary) rather than shape.
    leaf: bool,
    one_value_a_row: bool,
    mode: Mode,
    pub(super) interner: Option<Interner>,
    pub(super) chunks: Vec<StoredChunk>,
    pub(super) dictionary: Option<DictionaryMeta>,
    pub(super) note: String,
    nulls: u64,
    values: u64,
    value_bytes: u64,
    pub(super) zone: Option<Option<Zone>>,
}

impl ColumnWriter {
    pub(super) fn new(node: &Node) -> Self {
        let mut streams = Vec::new();
        add_streams(node, node.name.clone(), true, &mut streams);
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

    /// The rows as one array of the stored type.
    fn gather(&self, pieces: &[ArrayRef]) -> Result<ArrayRef> {
        let pieces = pieces
            .iter()
            .map(|piece| normalise(piece, &self.arrow_type))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|e| self.fail(e))?;
        match pieces.as_slice() {
            [piece] => Ok(Arc::clone(piece)),
            [] => Ok(arrow_array::new_empty_array(&self.arrow_type)),
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
            let (codes, nulls) = intern_dictionaries(stream, &mut self.page, &self.arrow_type, &pieces)
                .map_err(|e| FormatError::InvalidArgument(format!("column {:?}: {e}", self.node.name)))?;
            return Ok(vec![stream.provisional(&codes, nulls.as_ref(), block_rows)?]);
        }
        self.page = None;
        let array = self.gather(&pieces)?;
        drop(pieces);
        let first = self.node.stream;
        let mut blocks: Vec<Vec<Column>> = self.streams.iter().map(|_| Vec::new()).collect();
        for from in (0..array.len()).step_by(block_rows) {
            let slice = array.slice(from, block_rows.min(array.len() - from));
            shred(&self.node, &slice, None, &mut |node, column| {
                if let Some(blocks) = blocks.get_mut(node.stream - first) {
                    blocks.push(column);
                }
            })
            .map_err(|e| self.fail(e))?;
        }
        self.streams.iter_mut().zip(blocks).map(|(stream, blocks)| stream.encode(&blocks, options)).collect()
    }
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
            chunks: Vec::new(),
            dictionary: None,
            note: String::new(),
            nulls: 0,
            values: 0,
            value_bytes: 0,
            zone: None,
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
        match self.mode {
            Mode::Direct => self.direct(blocks, options).map(EncodedChunk::Direct),
            Mode::Dictionary => {
                let mut interner = self.interner.take().ok_or_else(|| self.fail("no interner"))?;
                let coded = self.intern(&mut interner, blocks);
                self.interner = Some(interner);
                self.encode_provisional(&coded?).map(EncodedChunk::Provisional)
            }
            Mode::Undecided if options.effort == Effort::Plain => {
                self.mode = Mode::Direct;
                self.direct(blocks, options).map(EncodedChunk::Direct)
            }
            Mode::Undecided => self.decide(blocks, options),
        }
    }

    fn direct(&self, blocks: &[Column], options: &WriterOptions) -> Result<Vec<EncodedBlock>> {
        let mut encoded = encode_blocks(&self.name, self.physical, blocks, self.leaf, &options.encoding())?;
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

    fn intern(&self, interner: &mut Interner, blocks: &[Column]) -> Result<Vec<Column>> {
        blocks
            .iter()
            .map(|block| {
                let mut codes = Vec::with_capacity(block.len);
                interner.intern(block, &mut codes).map_err(|e| self.fail(e))?;
                Ok(codes_column(codes, block.nulls.clone()))
            })
            .collect()
    }

    fn encode_provisional(&self, blocks: &[Column]) -> Result<Vec<EncodedBlock>> {
        let options = plinth_encoding::EncodeOptions { effort: Effort::Fast };
        encode_blocks(&self.name, Physical::CODES, blocks, false, &options)
    }

    /// A row group's provisional codes as a chunk.
    fn provisional(&mut self, codes: &[u32], nulls: Option<&NullBuffer>, block_rows: usize) -> Result<EncodedChunk> {
        let blocks: Vec<Column> = (0..codes.len())
            .step_by(block_rows)
            .map(|from| {
                let len = block_rows.min(codes.len() - from);
                let nulls = nulls.map(|nulls| nulls.slice(from, len)).filter(|nulls| nulls.null_count() > 0);
                codes_column(codes[from..from + len].to_vec(), nulls)
            })
            .collect();
        self.encode_provisional(&blocks).map(EncodedChunk::Provisional)
    }

    /// Tries the first row group both ways. Text takes a dictionary when values repeat and it costs little, for what it
    /// does for queries; numbers only when it saves a quarter.
    fn decide(&mut self, blocks: &[Column], options: &WriterOptions) -> Result<EncodedChunk> {
        let direct = self.direct(blocks, options)?;
        self.mode = Mode::Direct;
        let valid: usize = blocks.iter().map(|b| b.len - b.nulls.as_ref().map_or(0, NullBuffer::null_count)).sum();
        let size = |blocks: &[EncodedBlock]| blocks.iter().map(|block| block.bytes.len()).sum::<usize>();
        let text = matches!(self.physical, Physical::Bytes { .. });
        // A number's direct form is often so small that codes could not be smaller.
        if valid == 0 || (!text && size(&direct) < valid) {
            return Ok(EncodedChunk::Direct(direct));
        }
        let mut interner = Interner::new(self.physical).map_err(|e| self.fail(e))?;
        let coded = self.intern(&mut interner, blocks)?;
        // As ranks will be encoded; the spool's codes are written with less care.
        let codes = encode_blocks(&self.name, Physical::CODES, &coded, false, &options.encoding())?;
        let adopted = if text {
            interner.len() <= valid / 2 && size(&codes) <= size(&direct) + size(&direct) / 4
        } else {
            interner.len() <= valid / 2 && size(&codes) + interner.key_bytes() <= size(&direct) * 3 / 4
        };
        if !adopted {
            return Ok(EncodedChunk::Direct(direct));
        }
        self.mode = Mode::Dictionary;
        self.interner = Some(interner);
        self.encode_provisional(&coded).map(EncodedChunk::Provisional)
    }

    /// Encodes what follows directly; what is coded so far keeps its dictionary.
    pub(super) fn give_up_dictionary(&mut self, note: String) {
        self.mode = Mode::Direct;
        self.note = note;
    }

    /// Puts an encoded chunk where it belongs.
    pub(super) fn store(&mut self, chunk: EncodedChunk, output: &mut AtomicFile, spool: &mut Spool) -> Result<()> {
        let (EncodedChunk::Direct(blocks) | EncodedChunk::Provisional(blocks)) = &chunk;
        for block in blocks {
            self.nulls += u64::from(block.nulls);
            self.values += u64::from(block.values);
        }
        let stored = match chunk {
            EncodedChunk::Direct(blocks) => {
                if self.leaf {
                    for block in &blocks {
                        widen(&mut self.zone, block.zone.as_ref(), block.values > block.nulls);
                    }
                }
                StoredChunk::Written(ChunkMeta { coded: false, blocks: write_blocks(blocks, output)? })
            }
            EncodedChunk::Provisional(blocks) => StoredChunk::Spooled(
                blocks
                    .into_iter()
                    .map(|block| {
                        let at = spool.append(&block.bytes)?;
                        Ok(SpooledBlock { at, values: block.values })
                    })
                    .collect::<Result<_>>()?,
            ),
        };
        self.chunks.push(stored);
        Ok(())
    }

    /// The stream's metadata section, once all chunks are written, with the row groups in this order.
    pub(super) fn metadata(&mut self, order: &[usize]) -> Result<Vec<u8>> {
        let mut written = std::mem::take(&mut self.chunks)
            .into_iter()
            .map(|chunk| match chunk {
                StoredChunk::Written(chunk) => Ok(Some(chunk)),
                StoredChunk::Spooled(_) => Err(self.fail("a chunk was left in the spool")),
            })
            .collect::<Result<Vec<_>>>()?;
        let chunks = order.iter().filter_map(|&group| written.get_mut(group).and_then(Option::take)).collect();
        let meta = StreamMeta {
            nulls: self.nulls,
            values: self.values,
            value_bytes: self.value_bytes,
            zone: self.zone.take().flatten(),
            dictionary: self.dictionary.take(),
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

/// Interns dictionary arrays by their distinct values: only those that rows refer to, each once a page.
fn intern_dictionaries(
    stream: &mut StreamWriter,
    page: &mut Option<Page>,
    arrow_type: &DataType,
    pieces: &[ArrayRef],
) -> Result<(Vec<u32>, Option<NullBuffer>), arrow_schema::ArrowError> {
    let fail = |e: plinth_encoding::EncodingError| arrow_schema::ArrowError::ComputeError(e.to_string());
    let rows = pieces.iter().map(Array::len).sum();
    let mut codes = Vec::with_capacity(rows);
    let mut valid = arrow_buffer::BooleanBufferBuilder::new(rows);
    for piece in pieces {
        let any = piece.as_any_dictionary();
        let nulls = piece.logical_nulls();
        let same = page.as_ref().is_some_and(|page| page.values.to_data().ptr_eq(&any.values().to_data()));
        if !same {
            let values = Arc::clone(any.values());
            *page = Some(Page { codes: vec![UNSEEN; values.len()], bytes: vec![0; values.len()], values });
        }
        let Some(page) = page.as_mut() else { continue };
        let keys = if any.values().is_empty() { vec![0; piece.len()] } else { any.normalized_keys() };
        let is_valid = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        let mut fresh = Vec::new();
        for (row, &key) in keys.iter().enumerate() {
            if is_valid(row)
                && let Some(code) = page.codes.get_mut(key)
                && *code == UNSEEN
            {
                *code = 0;
                fresh.push(u64::try_from(key).unwrap_or(u64::MAX));
            }
        }
        if !fresh.is_empty() {
            let distinct =
                arrow_select::take::take(any.values(), &arrow_array::UInt64Array::from(fresh.clone()), None)?;
            let distinct = normalise(&distinct, arrow_type)?;
            let values = leaf_values(&distinct, stream.physical);
            let column = Column { len: distinct.len(), values, nulls: None };
            let mut interned = Vec::with_capacity(fresh.len());
            if let Some(interner) = &mut stream.interner {
                interner.intern(&column, &mut interned).map_err(fail)?;
            }
            for (i, (key, code)) in fresh.into_iter().zip(interned).enumerate() {
                let key = usize::try_from(key).unwrap_or(usize::MAX);
                if let (Some(slot), Some(bytes)) = (page.codes.get_mut(key), page.bytes.get_mut(key)) {
                    (*slot, *bytes) = (
                        code,
                        stream.physical.fixed_width().map_or_else(|| value_memory(&column.values, i), |w| w as u64),
                    );
                }
            }
        }
        let null_bytes = stream.physical.fixed_width().unwrap_or(VIEW_BYTES) as u64;
        for (row, key) in keys.into_iter().enumerate() {
            let known = is_valid(row);
            valid.append(known);
            let (code, bytes) = match (known, page.codes.get(key), page.bytes.get(key)) {
                (true, Some(&code), Some(&bytes)) => (code, bytes),
                _ => (0, null_bytes),
            };
            codes.push(code);
            stream.value_bytes += bytes;
        }
    }
    let nulls = Some(NullBuffer::new(valid.finish())).filter(|nulls| nulls.null_count() > 0);
    Ok((codes, nulls))
}
