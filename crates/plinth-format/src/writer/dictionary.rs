//! What happens to dictionaries while they grow and when all rows are in.

use arrow_buffer::ScalarBuffer;
use plinth_encoding::dictionary::{EncodedDictionary, encode, keys};
use plinth_encoding::{Block, Bounds, Physical, Values};
use plinth_io::{AtomicFile, Spool};
use rayon::prelude::*;

use super::chunk::{EncodedBlock, encode_block, write_blocks};
use super::stream::{ColumnWriter, SpooledBlock, StoredChunk, StreamWriter, codes_column};
use super::{WriterOptions, write_section};
use crate::error::{FormatError, Result};
use crate::meta::{ChunkMeta, DictionaryMeta, Zone, widen};

/// Gives up the dictionaries that outgrew their limits, and returns their streams: decided at the end of each row group,
/// in column order, so that neither threads nor batches have a say.
pub(super) fn enforce_limits<'a>(
    columns: &'a mut [ColumnWriter],
    row_group: usize,
    options: &WriterOptions,
) -> Vec<&'a mut StreamWriter> {
    let mut given_up = Vec::new();
    let mut growing: Vec<(usize, &mut StreamWriter)> = Vec::new();
    for stream in columns.iter_mut().flat_map(|column| &mut column.streams) {
        let Some(interner) = &stream.interner else { continue };
        let (values, bytes) = (interner.len(), interner.key_bytes());
        let exceeded = if values > options.dictionary_values {
            format!("{values} distinct values exceed the limit of {}", options.dictionary_values)
        } else if bytes > options.dictionary_bytes {
            format!("{bytes} bytes of distinct values exceed the limit of {}", options.dictionary_bytes)
        } else {
            growing.push((interner.footprint(), stream));
            continue;
        };
        stream.give_up_dictionary(format!("dictionary given up after row group {row_group}: {exceeded}"));
        given_up.push(stream);
    }
    let mut total: usize = growing.iter().map(|(bytes, _)| bytes).sum();
    while total > options.dictionary_total_bytes {
        // `rev` because of equals `max_by_key` takes the last.
        let largest = growing.iter().enumerate().rev().max_by_key(|(_, (bytes, _))| *bytes).map(|(at, _)| at);
        let Some(largest) = largest else { break };
        let (bytes, stream) = growing.remove(largest);
        stream.give_up_dictionary(format!(
            "dictionary given up after row group {row_group}: the largest of {total} bytes of dictionaries, which together \
             exceed the limit of {}",
            options.dictionary_total_bytes
        ));
        given_up.push(stream);
        total -= bytes;
    }
    given_up
}

/// The streams whose dictionaries still wait for values.
pub(super) fn waiting(columns: &mut [ColumnWriter]) -> Vec<&mut StreamWriter> {
    columns.iter_mut().flat_map(|column| &mut column.streams).filter(|stream| stream.interner.is_some()).collect()
}

/// A stream's dictionary, sorted and encoded, and where provisional codes go.
struct Ranked {
    remap: Vec<u32>,
    encoded: EncodedDictionary,
    values: usize,
}

/// Sorts and writes dictionaries and the chunks that waited for them.
pub(super) fn write_all(
    mut streams: Vec<&mut StreamWriter>,
    row_groups: usize,
    output: &mut AtomicFile,
    spool: &Spool,
    options: &WriterOptions,
) -> Result<()> {
    let ranked = streams.par_iter_mut().map(|stream| rank(stream)).collect::<Result<Vec<_>>>()?;
    for group in 0..row_groups {
        options.check_cancelled()?;
        let encoded = streams
            .par_iter()
            .zip(&ranked)
            .map(|(stream, ranked)| match stream.chunks.get(group) {
                Some(StoredChunk::Spooled(blocks)) => blocks
                    .par_iter()
                    .map(|block| recode(stream, block, &ranked.remap, spool, options))
                    .collect::<Result<Vec<_>>>()
                    .map(Some),
                _ => Ok(None),
            })
            .collect::<Result<Vec<_>>>()?;
        for (stream, blocks) in streams.iter_mut().zip(encoded) {
            if let (Some(blocks), Some(chunk)) = (blocks, stream.chunks.get_mut(group)) {
                *chunk = StoredChunk::Written(ChunkMeta { coded: true, blocks: write_blocks(blocks, output)? });
            }
        }
    }
    for (stream, ranked) in streams.into_iter().zip(ranked) {
        let blocks =
            ranked.encoded.blocks.iter().map(|block| write_section(output, block)).collect::<Result<Vec<_>>>()?;
        let index = write_section(output, &ranked.encoded.index)?;
        let values = u32::try_from(ranked.values).unwrap_or(u32::MAX);
        stream.dictionary = Some(DictionaryMeta { values, index, blocks });
    }
    Ok(())
}

fn rank(stream: &mut StreamWriter) -> Result<Ranked> {
    let fail = |what: &dyn std::fmt::Display| FormatError::InvalidArgument(format!("column {:?}: {what}", stream.name));
    let interner = stream.interner.take().ok_or_else(|| fail(&"no dictionary"))?;
    let sorted = interner.sort();
    let encoded = encode(stream.physical, &sorted).map_err(|e| fail(&e))?;
    let values = sorted.len();
    let end = |rank: usize| keys::to_scalar(stream.physical, sorted.key(rank));
    if let (Some(last), true) = (values.checked_sub(1), values > 0) {
        // Every value of the dictionary occurs, so its ends are exact.
        let zone = end(0).zip(end(last)).map(|(min, max)| Zone::exact(Bounds { min, max }));
        widen(&mut stream.zone, zone.as_ref(), true);
    }
    Ok(Ranked { remap: sorted.remap().to_vec(), encoded, values })
}

/// A spooled block with ranks for provisional codes.
fn recode(
    stream: &StreamWriter,
    block: &SpooledBlock,
    remap: &[u32],
    spool: &Spool,
    options: &WriterOptions,
) -> Result<EncodedBlock> {
    let fail = |what: String| FormatError::InvalidArgument(format!("column {:?}: the spool: {what}", stream.name));
    let bytes = spool.read(&block.at)?;
    let rows = usize::try_from(block.values).unwrap_or(usize::MAX);
    let column = Block::open(Physical::CODES, &bytes, rows)
        .and_then(|block| block.decode(None))
        .map_err(|e| fail(e.to_string()))?;
    let Values::Fixed(codes) = column.values else { return Err(fail("codes that are no integers".into())) };
    let codes = ScalarBuffer::<u32>::new(codes, 0, rows);
    let ranks = codes.iter().map(|&code| remap.get(code as usize).copied().unwrap_or(0)).collect();
    encode_block(&stream.name, Physical::CODES, &codes_column(ranks, column.nulls), true, &options.encoding())
}
