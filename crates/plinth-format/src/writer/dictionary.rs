//! What happens to dictionaries while they grow and when all rows are in.

use plinth_encoding::dictionary::{EncodedDictionary, encode, keys};
use plinth_encoding::{Bounds, Encoding, Physical};
use plinth_io::{Output, Spool};
use plinth_profile::{Profiler, Stage};
use rayon::prelude::*;

use super::chunk::{EncodedBlock, encode_block, write_blocks};
use super::provisional::SpooledBlock;
use super::stream::{ColumnWriter, StoredChunk, StreamWriter, codes_column};
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
    /// How the first block of the row group before was best written.
    like: Option<Encoding>,
}

/// Sorts and writes dictionaries and the chunks that waited for them.
pub(super) fn write_all(
    mut streams: Vec<&mut StreamWriter>,
    row_groups: usize,
    output: &mut dyn Output,
    spool: &Spool,
    options: &WriterOptions,
) -> Result<()> {
    let profiler = Profiler::current();
    let sort = |stream: &mut &mut StreamWriter| {
        let _sort = profiler.scope(Stage::Sort.of("dictionary"));
        rank(stream)
    };
    let mut ranked = streams.par_iter_mut().map(sort).collect::<Result<Vec<_>>>()?;
    // A row group is written while the next one is encoded.
    let mut encoded = Vec::new();
    for group in 0..=row_groups {
        options.check_cancelled()?;
        let (written, next) = rayon::join(
            || {
                let _write = profiler.scope(Stage::Write);
                encoded.into_iter().map(|blocks| write_coded(blocks, output)).collect::<Result<Vec<_>>>()
            },
            || recode_group(&streams, &ranked, group, spool, options, &profiler),
        );
        encoded = next?;
        for (ranked, blocks) in ranked.iter_mut().zip(&encoded) {
            let first = blocks.as_ref().and_then(|blocks: &Vec<EncodedBlock>| blocks.first());
            ranked.like = first.and_then(|block| Encoding::try_from(block.encoding).ok());
        }
        for (stream, chunk) in streams.iter_mut().zip(written?) {
            let slot = group.checked_sub(1).and_then(|group| stream.chunks.get_mut(group));
            if let (Some(slot), Some(chunk)) = (slot, chunk) {
                *slot = StoredChunk::Written(chunk);
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
    Ok(Ranked { remap: sorted.remap().to_vec(), encoded, values, like: None })
}

/// The blocks of ranks of a row group, of those streams that have it in the spool.
fn recode_group(
    streams: &[&mut StreamWriter],
    ranked: &[Ranked],
    group: usize,
    spool: &Spool,
    options: &WriterOptions,
    profiler: &Profiler,
) -> Result<Vec<Option<Vec<EncodedBlock>>>> {
    let recode_chunk = |(stream, ranked): (&&mut StreamWriter, &Ranked)| match stream.chunks.get(group) {
        Some(StoredChunk::Spooled(blocks)) => {
            // The first block of each row group is weighed, the others are written as that of the row group before.
            let recode = |(at, block)| {
                let mut scope = profiler.scope(Stage::Encode);
                let like = if at == 0 { None } else { ranked.like };
                let recoded = recode(stream, block, &ranked.remap, spool, options, like);
                recoded.inspect(|block| block.note(&mut scope))
            };
            blocks.par_iter().enumerate().map(recode).collect::<Result<Vec<_>>>().map(Some)
        }
        _ => Ok(None),
    };
    streams.par_iter().zip(ranked).map(recode_chunk).collect()
}

/// A spooled block with ranks for provisional codes.
fn recode(
    stream: &StreamWriter,
    block: &SpooledBlock,
    remap: &[u32],
    spool: &Spool,
    options: &WriterOptions,
    like: Option<Encoding>,
) -> Result<EncodedBlock> {
    let (mut codes, nulls) = block.read(spool)?;
    for code in &mut codes {
        *code = remap.get(*code as usize).copied().unwrap_or(0);
    }
    encode_block(&stream.name, Physical::CODES, &codes_column(codes, nulls), true, &options.encoding(), like)
}

fn write_coded(blocks: Option<Vec<EncodedBlock>>, output: &mut dyn Output) -> Result<Option<ChunkMeta>> {
    let blocks = blocks.map(|blocks| write_blocks(blocks, output)).transpose()?;
    Ok(blocks.map(|blocks| ChunkMeta { coded: true, blocks }))
}
