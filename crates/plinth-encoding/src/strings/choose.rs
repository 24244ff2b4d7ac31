//! Which encoding strings get.
//!
//! Repeats go to a dictionary of the block. Otherwise the heap is plain, FSST or Zstandard by size and decode cost; a fixed
//! sample (16 runs of 64 values, evenly spread) tells which of them are worth trying in full.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::{MOST_BYTES, fsst};
use crate::encoding::{Effort, Encoding, cost};
use crate::error::{EncodingError, Result};
use crate::frame::Frame;
use crate::ints::{encode_nested, encode_nested_as};
use crate::physical::IntKind;
use crate::recipe::Choice;
use crate::wire::{put_varint, wide};

const SAMPLE_RUNS: usize = 16;
const SAMPLE_RUN: usize = 64;
/// Below this, a symbol table costs more than it saves.
const FSST_LEAST: usize = 512;
/// Below this, a frame's header costs more than it saves.
const ZSTD_LEAST: usize = 64;

/// Writes a node of strings.
pub(crate) fn encode(values: &[&[u8]], depth: u8, effort: Effort, out: &mut Vec<u8>) -> Result<()> {
    fits(values)?;
    let first = values.first().copied().unwrap_or_default();
    if values.iter().all(|&value| value == first) {
        out.push(Encoding::Constant.tag());
        put_varint(out, wide(first.len()));
        out.extend_from_slice(first);
        return Ok(());
    }
    let repeats = if depth == 0 && effort != Effort::Plain { find_repeats(values) } else { None };
    let mut best = None;
    if let Some((distinct, codes)) = &repeats {
        let mut written = vec![Encoding::Dictionary.tag()];
        put_varint(&mut written, wide(distinct.len()));
        // What the distinct values take decodes as slowly as it does outside a dictionary.
        let inner = match distinct.as_slice() {
            [_] | [] => (Encoding::Plain, 0),
            distinct => encode_heap(distinct, effort, &mut written)?,
        };
        encode_nested(codes, IntKind::U32, 1, effort, &mut written);
        let rest = written.len() - inner.1;
        let cost = cost(inner.0, inner.1, effort).saturating_add(cost(Encoding::Dictionary, rest, effort));
        // Where half are repeats nothing else comes near.
        if distinct.len() <= values.len() / 2 {
            out.extend_from_slice(&written);
            return Ok(());
        }
        best = Some((written, cost));
    }
    let mut written = vec![];
    let (encoding, _) = encode_heap(values, effort, &mut written)?;
    match best {
        Some((dictionary, best)) if best < cost(encoding, written.len(), effort) => out.extend_from_slice(&dictionary),
        _ => out.extend_from_slice(&written),
    }
    Ok(())
}

/// Writes strings as others of their column were, if nothing speaks against it; else writes nothing and says so.
///
/// # Errors
/// As [`encode`].
pub(crate) fn encode_as(like: &Choice, values: &[&[u8]], effort: Effort, out: &mut Vec<u8>) -> Result<bool> {
    let first = values.first().copied().unwrap_or_default();
    if effort == Effort::Plain || fits(values).is_err() || values.iter().all(|&value| value == first) {
        return Ok(false);
    }
    match (find_repeats(values), like.encoding) {
        (Some((distinct, codes)), Encoding::Dictionary) if distinct.len() <= values.len() / 2 => {
            let [of_values, of_codes] = [like.inner.first(), like.inner.get(1)];
            let at = out.len();
            out.push(Encoding::Dictionary.tag());
            put_varint(out, wide(distinct.len()));
            let written = match of_values {
                Some(of_values) => encode_heap_as(of_values.encoding, &distinct, effort, out)?,
                None => false,
            };
            if !written {
                out.truncate(at);
                return Ok(false);
            }
            encode_nested_as(of_codes, &codes, IntKind::U32, 1, effort, out);
            Ok(true)
        }
        (None, like) => encode_heap_as(like, values, effort, out),
        _ => Ok(false),
    }
}

/// The distinct values in order of first use and the codes of all, if at least about a third are repeats.
fn find_repeats<'a>(values: &[&'a [u8]]) -> Option<(Vec<&'a [u8]>, Vec<u64>)> {
    let limit = |seen: usize| if seen < values.len().min(1024) { usize::MAX } else { seen * 2 / 3 };
    let mut codes = Vec::with_capacity(values.len());
    let mut distinct: Vec<&[u8]> = vec![];
    let mut map: HashMap<&[u8], u64, FixedState> = HashMap::with_hasher(FixedState::with_seed(0));
    for (i, &value) in values.iter().enumerate() {
        let code = *map.entry(value).or_insert_with(|| {
            distinct.push(value);
            wide(distinct.len() - 1)
        });
        if i % 256 == 0 && distinct.len() > limit(i) {
            return None;
        }
        codes.push(code);
    }
    (distinct.len() > 1 && distinct.len() <= values.len() * 2 / 3).then_some((distinct, codes))
}

fn fits(values: &[&[u8]]) -> Result<()> {
    let total = values.iter().try_fold(0_usize, |sum, value| sum.checked_add(value.len()));
    match total {
        Some(0..=MOST_BYTES) => Ok(()),
        _ => Err(EncodingError::invalid("more than 2 GiB of strings in a block; give it fewer rows")),
    }
}

/// Writes values that do not repeat with one encoding, if there are so many that it is worth it; else writes nothing and says so.
fn encode_heap_as(like: Encoding, values: &[&[u8]], effort: Effort, out: &mut Vec<u8>) -> Result<bool> {
    let heap = values.concat();
    let mut section = vec![];
    match like {
        Encoding::Fsst if heap.len() >= FSST_LEAST => {
            fsst::encode(&fsst::train(values), values, &heap, effort, &mut section);
        }
        Encoding::Zstd if heap.len() >= ZSTD_LEAST => match Frame::compress(&heap, Frame::level(effort))? {
            Some(frame) => Frame::put(heap.len(), &frame, &mut section),
            None => return Ok(false),
        },
        _ => return Ok(false),
    }
    if section.len() >= heap.len() {
        return Ok(false);
    }
    put_heap(like, values, &section, effort, out);
    Ok(true)
}

/// Writes a node of lengths and a section.
fn put_heap(encoding: Encoding, values: &[&[u8]], section: &[u8], effort: Effort, out: &mut Vec<u8>) {
    out.push(encoding.tag());
    let lengths: Vec<u64> = values.iter().map(|value| wide(value.len())).collect();
    encode_nested(&lengths, IntKind::U32, 2, effort, out);
    out.extend_from_slice(section);
}

/// Writes values that do not repeat as plain, FSST or Zstandard; the encoding, and the node's size.
fn encode_heap(values: &[&[u8]], effort: Effort, out: &mut Vec<u8>) -> Result<(Encoding, usize)> {
    let heap = values.concat();
    let mut best = (Encoding::Plain, vec![], cost(Encoding::Plain, heap.len(), effort));
    let tries = effort != Effort::Plain;
    if tries
        && heap.len() >= ZSTD_LEAST
        && let Some(frame) = Frame::compress(&heap, Frame::level(effort))?
    {
        let cost = cost(Encoding::Zstd, frame.len(), effort);
        if cost < best.2 && frame.len() * 10 < heap.len() * 9 {
            let mut section = vec![];
            Frame::put(heap.len(), &frame, &mut section);
            best = (Encoding::Zstd, section, cost);
        }
    }
    // FSST seldom gets beyond a fifth; where Zstandard went well below that, there is no need to try.
    let hopeless = best.0 == Encoding::Zstd && best.1.len() * 7 < heap.len();
    if tries && heap.len() >= FSST_LEAST && !hopeless {
        let compressor = fsst::train(values);
        let sample = sample(values).concat();
        let estimate = if sample.is_empty() {
            0
        } else {
            fsst::compressed_len(&compressor, &sample).saturating_mul(heap.len()) / sample.len()
        };
        // The sample may mislead by a little either way; within that, try in full.
        if cost(Encoding::Fsst, estimate, effort) / 21 * 20 < best.2 {
            let mut section = vec![];
            fsst::encode(&compressor, values, &heap, effort, &mut section);
            let cost = cost(Encoding::Fsst, section.len(), effort);
            if cost < best.2 {
                best = (Encoding::Fsst, section, cost);
            }
        }
    }
    if best.0 == Encoding::Plain {
        put_varint(&mut best.1, wide(heap.len()));
        best.1.extend_from_slice(&heap);
    }
    let at = out.len();
    put_heap(best.0, values, &best.1, effort, out);
    Ok((best.0, out.len() - at))
}

/// Evenly spread runs of values.
fn sample<'a>(values: &[&'a [u8]]) -> Vec<&'a [u8]> {
    if values.len() <= SAMPLE_RUNS * SAMPLE_RUN {
        return values.to_vec();
    }
    let stride = values.len() / SAMPLE_RUNS;
    (0..SAMPLE_RUNS).flat_map(|run| values.iter().skip(run * stride).take(SAMPLE_RUN).copied()).collect()
}
