//! Provisional codes: the values of a row group interned as they come, by threads where that pays, and those of dictionary
//! arrays once a page.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use plinth_encoding::dictionary::Interner;
use plinth_encoding::{Column, EncodingError};
use plinth_profile::{Profiler, Stage};
use rayon::prelude::*;

use super::StreamWriter;
use crate::shred::{VIEW_BYTES, leaf_values, normalise, value_memory};
use crate::writer::chunk::EncodedChunk;
use crate::writer::provisional::ProvisionalBlock;
/// A page value not seen yet.
const UNSEEN: u32 = u32::MAX;

/// The values of a dictionary array and the provisional codes of those seen: consecutive batches of a Parquet column
/// share a dictionary page, whose values are interned once.
#[derive(Debug)]
pub(super) struct Page {
    values: ArrayRef,
    /// Which of the stream's dictionaries has them.
    dictionary: usize,
    codes: Vec<u32>,
    /// Bytes each value takes in memory.
    bytes: Vec<u64>,
}

/// A row group's provisional codes, cut into blocks.
pub(super) fn provisional(codes: &[u32], nulls: Option<&NullBuffer>, block_rows: usize) -> EncodedChunk {
    let profiler = Profiler::current();
    let block = |(at, codes): (usize, &[u32])| {
        let _intern = profiler.scope(Stage::Intern);
        let nulls = nulls.map(|nulls| nulls.slice(at * block_rows, codes.len()));
        ProvisionalBlock::new(codes, nulls.as_ref())
    };
    EncodedChunk::Provisional(codes.par_chunks(block_rows.max(1)).enumerate().map(block).collect())
}

/// The provisional codes of blocks.
pub(super) fn intern_alone(interner: &mut Interner, blocks: &[Column]) -> Result<Vec<Vec<u32>>, EncodingError> {
    let mut intern = |block: &Column| {
        let mut codes = Vec::new();
        interner.intern(block, &mut codes).map(|()| codes)
    };
    blocks.iter().map(&mut intern).collect()
}

/// The same, packed, with all threads.
pub(super) fn intern_together(
    interner: &mut Interner,
    blocks: &[Column],
) -> Result<Vec<ProvisionalBlock>, EncodingError> {
    enum Found {
        All(ProvisionalBlock),
        Some(Vec<u32>, Vec<u32>),
    }
    let (shared, profiler) = (&*interner, Profiler::current());
    let find = |block: &Column| {
        let _intern = profiler.scope(Stage::Intern);
        let mut codes = Vec::new();
        let missing = shared.find(block, &mut codes)?;
        Ok(if missing.is_empty() {
            Found::All(ProvisionalBlock::new(&codes, block.nulls.as_ref()))
        } else {
            Found::Some(codes, missing)
        })
    };
    let mut found = blocks.par_iter().map(find).collect::<Result<Vec<_>, EncodingError>>()?;
    for (found, block) in found.iter_mut().zip(blocks) {
        if let Found::Some(codes, missing) = found {
            interner.intern_rows(block, missing, codes)?;
        }
    }
    let pack = |(found, block): (Found, &Column)| {
        let _intern = profiler.scope(Stage::Intern);
        match found {
            Found::All(packed) => packed,
            Found::Some(codes, _) => ProvisionalBlock::new(&codes, block.nulls.as_ref()),
        }
    };
    if found.iter().all(|found| matches!(found, Found::All(_))) {
        return Ok(found.into_iter().zip(blocks).map(pack).collect());
    }
    Ok(found.into_par_iter().zip(blocks).map(pack).collect())
}

pub(super) fn pack(blocks: &[Column], codes: &[Vec<u32>]) -> Vec<ProvisionalBlock> {
    let profiler = Profiler::current();
    let pack = |(block, codes): (&Column, &Vec<u32>)| {
        let _intern = profiler.scope(Stage::Intern);
        ProvisionalBlock::new(codes, block.nulls.as_ref())
    };
    blocks.par_iter().zip(codes).map(pack).collect()
}

/// Interns dictionary arrays by their distinct values: only those that rows refer to, each once a page.
pub(super) fn intern_dictionaries(
    stream: &mut StreamWriter,
    page: &mut Option<Page>,
    arrow_type: &DataType,
    pieces: &[ArrayRef],
) -> Result<(Vec<u32>, Option<NullBuffer>), arrow_schema::ArrowError> {
    let fail = |e: EncodingError| arrow_schema::ArrowError::ComputeError(e.to_string());
    let rows = pieces.iter().map(Array::len).sum();
    let mut codes = Vec::with_capacity(rows);
    let mut valid = arrow_buffer::BooleanBufferBuilder::new(rows);
    for piece in pieces {
        let any = piece.as_any_dictionary();
        let nulls = piece.logical_nulls();
        let dictionary = stream.dictionaries.len();
        let same = |page: &Page| page.dictionary == dictionary && page.values.to_data().ptr_eq(&any.values().to_data());
        let same = page.as_ref().is_some_and(same);
        if !same {
            let values = Arc::clone(any.values());
            *page = Some(Page { dictionary, codes: vec![UNSEEN; values.len()], bytes: vec![0; values.len()], values });
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
            let mut interner = stream.take_interner().map_err(fail)?;
            let done = interner.intern(&column, &mut interned);
            stream.interner = Some(interner);
            done.map_err(fail)?;
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
