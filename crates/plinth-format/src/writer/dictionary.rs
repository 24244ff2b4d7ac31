//! What happens to dictionaries while they grow and when all rows are in.

use plinth_encoding::dictionary::{EncodedDictionary, Sorted, encode_like, keys};
use plinth_encoding::expr::Scalar;
use plinth_encoding::summary::{Addends, Order};
use plinth_encoding::{Bounds, Physical, Recipe};
use plinth_io::{Output, Spool};
use plinth_profile::{Profiler, Stage};
use rayon::prelude::*;

use super::chunk::{EncodedBlock, encode_block, write_blocks};
use super::provisional::SpooledBlock;
use super::stream::{ColumnWriter, StoredChunk, StreamWriter, codes_column};
use super::summary::{BlockSummary, order_of};
use super::{WriterOptions, write_section};
use crate::error::{FormatError, Result};
use crate::footer::TOKENS;
use crate::meta::{ChunkMeta, DictionaryMeta, Zone, widen};
use crate::sorted::SortedRun;

/// The streams whose dictionaries outgrew their limits: decided at the end of each row group, in column order, so that neither
/// threads nor batches have a say.
pub(super) fn full<'a>(columns: &'a mut [ColumnWriter], options: &WriterOptions) -> Vec<&'a mut StreamWriter> {
    let mut full = Vec::new();
    let mut growing: Vec<(usize, &mut StreamWriter)> = Vec::new();
    for stream in columns.iter_mut().flat_map(|column| &mut column.streams) {
        let Some(interner) = &stream.interner else { continue };
        if interner.len() > options.dictionary_values || interner.key_bytes() > options.dictionary_bytes {
            full.push(stream);
        } else {
            growing.push((interner.footprint(), stream));
        }
    }
    let mut total: usize = growing.iter().map(|(bytes, _)| bytes).sum();
    while total > options.dictionary_total_bytes {
        // `rev` because of equals `max_by_key` takes the last.
        let largest = growing.iter().enumerate().rev().max_by_key(|(_, (bytes, _))| *bytes).map(|(at, _)| at);
        let Some(largest) = largest else { break };
        let (bytes, stream) = growing.remove(largest);
        full.push(stream);
        total -= bytes;
    }
    full
}

/// The streams whose dictionaries still wait for values.
pub(super) fn waiting(columns: &mut [ColumnWriter]) -> Vec<&mut StreamWriter> {
    columns.iter_mut().flat_map(|column| &mut column.streams).filter(|stream| stream.interner.is_some()).collect()
}

/// A stream's dictionary, sorted and encoded, and where provisional codes go.
struct Ranked {
    sorted: Sorted,
    addends: Option<Addends>,
    encoded: EncodedDictionary,
}

/// Sorts and writes the dictionaries that grow, and the chunks that wait for them.
pub(super) fn write_all(
    streams: &mut [&mut StreamWriter],
    row_groups: usize,
    output: &mut dyn Output,
    spool: &Spool,
    options: &WriterOptions,
) -> Result<()> {
    let profiler = Profiler::current();
    let sort = |stream: &mut &mut StreamWriter| {
        let _sort = profiler.scope(Stage::Sort.of("dictionary"));
        rank(stream, options)
    };
    let ranked = streams.par_iter_mut().map(sort).collect::<Result<Vec<_>>>()?;
    let numbers: Vec<usize> = streams.iter().map(|stream| stream.dictionaries.len()).collect();
    let first = streams.iter().map(|stream| stream.first_growing).min().unwrap_or(row_groups);
    // A row group is written while the next one is encoded.
    let mut encoded: Vec<Option<Vec<EncodedBlock>>> = Vec::new();
    for group in first..=row_groups {
        options.check_cancelled()?;
        let (written, next) = rayon::join(
            || {
                let _write = profiler.scope(Stage::Write);
                let chunks = encoded.into_iter().zip(&numbers);
                chunks.map(|(blocks, &number)| write_coded(blocks, number, output)).collect::<Result<Vec<_>>>()
            },
            || recode_group(streams, &ranked, group, spool, options, &profiler),
        );
        encoded = next?;
        for (stream, blocks) in streams.iter_mut().zip(&encoded) {
            if let Some(blocks) = blocks {
                stream.coded.note(blocks);
                stream.summarise(group, blocks.iter().map(|block| block.summary.clone()));
                stream.features |= blocks.iter().fold(0, |features, block| features | block.features);
            }
        }
        for (stream, chunk) in streams.iter_mut().zip(written?) {
            let slot = group.checked_sub(1).and_then(|group| stream.chunks.get_mut(group));
            if let (Some(slot), Some(chunk)) = (slot, chunk) {
                *slot = StoredChunk::Written(chunk);
            }
        }
    }
    for (stream, ranked) in streams.iter_mut().zip(ranked) {
        let blocks =
            ranked.encoded.blocks.iter().map(|block| write_section(output, block)).collect::<Result<Vec<_>>>()?;
        let index = write_section(output, &ranked.encoded.index)?;
        let values = u32::try_from(ranked.sorted.len()).unwrap_or(u32::MAX);
        if ranked.encoded.has_tokens() {
            stream.features |= TOKENS;
        }
        stream.dictionaries.push(DictionaryMeta { values, index, blocks, postings: None });
        stream.first_growing = row_groups;
    }
    Ok(())
}

fn rank(stream: &mut StreamWriter, options: &WriterOptions) -> Result<Ranked> {
    let fail = |what: &dyn std::fmt::Display| FormatError::InvalidArgument(format!("column {:?}: {what}", stream.name));
    let interner = stream.interner.take().ok_or_else(|| fail(&"no dictionary"))?;
    let sorted = interner.sort();
    let mut learned = std::mem::take(&mut stream.learned);
    let encoded = encode_like(stream.physical, &sorted, options.effort, &mut learned).map_err(|e| fail(&e))?;
    if let Some(last) = sorted.len().checked_sub(1) {
        // Every value of the dictionary occurs, so its ends are exact.
        widen(&mut stream.zone, zone_of(&sorted, 0, last).as_ref(), true);
    }
    stream.learned = learned;
    (0..sorted.len()).for_each(|rank| stream.sketch.add_key(stream.physical, sorted.key(rank)));
    Ok(Ranked { addends: Addends::of(&sorted), sorted, encoded })
}

/// The bounds of the values from a rank to another.
fn zone_of(sorted: &Sorted, first: usize, last: usize) -> Option<Zone> {
    let end = |rank: usize| keys::to_scalar(sorted.physical(), sorted.key(rank));
    Some(Zone::exact(Bounds { min: end(first)?, max: end(last)? }))
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
            let recode = |block: &SpooledBlock, like: Option<&Recipe>| {
                let mut scope = profiler.scope(Stage::Encode);
                let recoded = recode(stream, block, ranked, spool, options, like);
                recoded.inspect(|block| block.note(&mut scope))
            };
            stream.coded.encode(blocks, recode).map(Some)
        }
        _ => Ok(None),
    };
    streams.par_iter().zip(ranked).map(recode_chunk).collect()
}

/// A spooled block with ranks for provisional codes.
fn recode(
    stream: &StreamWriter,
    block: &SpooledBlock,
    ranked: &Ranked,
    spool: &Spool,
    options: &WriterOptions,
    like: Option<&Recipe>,
) -> Result<EncodedBlock> {
    let (mut codes, nulls) = block.read(spool)?;
    let remap = ranked.sorted.remap();
    for code in &mut codes {
        *code = remap.get(*code as usize).copied().unwrap_or(0);
    }
    let sum = ranked.addends.as_ref().map(|addends| addends.sum(&codes, nulls.as_ref()));
    let codes = codes_column(codes, nulls);
    let mut block = encode_block(&stream.name, Physical::CODES, &codes, true, &options.encoding(), like)?;
    let heads = block.heads.take();
    let order = if stream.sorted { order_of(Physical::CODES, &codes, heads.as_ref()) } else { Order::NONE };
    let zone = match block.zone.as_ref().map(|zone| (&zone.bounds.min, &zone.bounds.max)) {
        Some((&Scalar::Int(min), &Scalar::Int(max))) if order.is_sorted() => {
            zone_of(&ranked.sorted, usize::try_from(min).unwrap_or(0), usize::try_from(max).unwrap_or(0))
        }
        _ => None,
    };
    block.summary = BlockSummary { sum, run: SortedRun::of(order, zone.as_ref(), block.values > block.nulls) };
    Ok(block)
}

fn write_coded(
    blocks: Option<Vec<EncodedBlock>>,
    dictionary: usize,
    output: &mut dyn Output,
) -> Result<Option<ChunkMeta>> {
    let blocks = blocks.map(|blocks| write_blocks(blocks, output)).transpose()?;
    Ok(blocks.map(|blocks| ChunkMeta { dictionary: Some(dictionary), blocks }))
}
