//! Encoded blocks on their way to the file or the spool.

use arrow_buffer::{Buffer, NullBuffer};
use plinth_encoding::{Block, Column, EncodeOptions, Encoding, Physical, Recipe, bounds, encode, encode_like};
use plinth_io::Output;
use plinth_profile::{Profiler, Scope, Stage, scope};

use super::precedent::Precedent;
use super::provisional::ProvisionalBlock;
use super::summary::BlockSummary;
use crate::error::{FormatError, Result};
use crate::meta::{BlockMeta, MOST_BLOCK_BYTES, MOST_BLOCK_VALUES, Zone, block_start};
use crate::wire::checksum;

/// A block's bytes and what its metadata will say.
#[derive(Debug)]
pub(super) struct EncodedBlock {
    pub(super) bytes: Vec<u8>,
    pub(super) values: u32,
    pub(super) nulls: u32,
    pub(super) encoding: u8,
    /// How it is stored, for others of its column.
    pub(super) recipe: Option<Recipe>,
    /// The first value of each run, if these are few.
    pub(super) heads: Option<Column>,
    /// What a reader must know of the format to read it.
    pub(super) features: u32,
    pub(super) zone: Option<Zone>,
    pub(super) summary: BlockSummary,
}

impl EncodedBlock {
    /// Says what a scope has encoded, and how.
    pub(super) fn note(&self, scope: &mut Scope) {
        if let Ok(encoding) = Encoding::try_from(self.encoding) {
            scope.turns_out(Stage::Encode.of(encoding.name()));
        }
        scope.rows(u64::from(self.values));
        scope.bytes(self.bytes.len() as u64);
    }
}

/// A stream's blocks of one row group.
#[derive(Debug)]
pub(super) enum EncodedChunk {
    /// Values, for the file.
    Direct(Vec<EncodedBlock>),
    /// Provisional codes, for the spool.
    Provisional(Vec<ProvisionalBlock>),
}

/// Encodes each column as a block, and counts what is to be known of its values.
pub(super) fn encode_blocks(
    name: &str,
    physical: Physical,
    blocks: &[Column],
    zones: bool,
    options: &EncodeOptions,
    precedent: &Precedent,
    summarise: impl Fn(&Column, &EncodedBlock) -> BlockSummary + Sync,
) -> Result<Vec<EncodedBlock>> {
    let profiler = Profiler::current();
    precedent.encode(blocks, |column, like| {
        let mut scope = profiler.scope(Stage::Encode);
        let mut block = encode_block(name, physical, column, zones, options, like)?;
        block.summary = summarise(column, &block);
        block.note(&mut scope);
        Ok(block)
    })
}

/// Encodes one block, like another one if there is one.
pub(super) fn encode_block(
    name: &str,
    physical: Physical,
    column: &Column,
    zones: bool,
    options: &EncodeOptions,
    like: Option<&Recipe>,
) -> Result<EncodedBlock> {
    let fail = |what: String| FormatError::InvalidArgument(format!("column {name:?}: {what}"));
    if column.len > MOST_BLOCK_VALUES as usize {
        return Err(fail(format!(
            "a block of {} values, more than {MOST_BLOCK_VALUES}; use smaller blocks",
            column.len
        )));
    }
    let width = physical.fixed_width().unwrap_or(0);
    if column.len as u64 * width as u64 > MOST_BLOCK_BYTES {
        let what = format!("a block of {} values of {width} bytes exceeds 2 GiB; use smaller blocks", column.len);
        return Err(fail(what));
    }
    let mut bytes = Vec::new();
    let encoded = match like {
        Some(like) => encode_like(physical, column, options, like, &mut bytes),
        None => encode(physical, column, options, &mut bytes),
    };
    let encoded = encoded.map_err(|e| fail(e.to_string()))?;
    if u32::try_from(bytes.len()).is_err() {
        return Err(fail(format!("a block of {} rows exceeds 4 GiB; use smaller blocks", column.len)));
    }
    let bytes = Buffer::from_vec(bytes);
    let opened = Block::open(physical, &bytes, column.len).map_err(|e| fail(e.to_string()))?;
    let (features, recipe) = (opened.features(), opened.recipe());
    drop(opened);
    let bytes = bytes.into_vec().map_err(|_| FormatError::internal("an encoded block is shared"))?;
    let heads = if zones { column.heads() } else { None };
    let zone = if zones { bounds(physical, heads.as_ref().unwrap_or(column)).map(Zone::exact) } else { None };
    Ok(EncodedBlock {
        values: u32::try_from(column.len).unwrap_or(u32::MAX),
        nulls: u32::try_from(column.nulls.as_ref().map_or(0, NullBuffer::null_count)).unwrap_or(u32::MAX),
        encoding: encoded.encoding as u8,
        recipe,
        heads,
        features,
        bytes,
        zone,
        summary: BlockSummary::default(),
    })
}

/// Writes a chunk's blocks one after the other, each where its length wants it.
pub(super) fn write_blocks(blocks: Vec<EncodedBlock>, output: &mut dyn Output) -> Result<Vec<BlockMeta>> {
    blocks
        .into_iter()
        .map(|block| {
            let len = u32::try_from(block.bytes.len()).unwrap_or(u32::MAX);
            let offset = block_start(output.position(), u64::from(len), block.encoding);
            output.pad_to(offset)?;
            output.write_all(&block.bytes)?;
            let EncodedBlock { values, nulls, encoding, zone, bytes, .. } = block;
            let check = scope(Stage::Checksum);
            check.bytes(bytes.len() as u64);
            Ok(BlockMeta { offset, len, values, nulls, encoding, checksum: checksum(&bytes), zone })
        })
        .collect()
}
