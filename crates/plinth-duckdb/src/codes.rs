//! Text as codes of few values: DuckDB then hashes and compares each value once a chunk, and not each row.

use std::sync::Arc;

use arrow_array::{ArrayRef, DictionaryArray, UInt32Array};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use duckdb_neo::error::DuckDBError;
use plinth_encoding::dictionary::Dictionary;
use plinth_format::CodeValues;

use crate::failure::{Result, error, of_arrow, of_format};

/// Most values of a dictionary that is handed over whole: DuckDB reads it again for every chunk.
const WHOLE: usize = 512;

/// Most values of one of which those are handed over that rows have: its codes have a table.
const LARGEST: usize = 1 << 20;

/// Rows that a value has at least, on average, where only those that rows have are handed over.
const ROWS_A_VALUE: usize = 8;

/// Row sets that are not tried after one that had too many values.
const PAUSE: u32 = 16;

/// How the codes of a column were handed over so far.
#[derive(Debug, Default)]
pub(crate) struct Codes {
    /// The last dictionary that was handed over whole, and its values.
    whole: Option<(Arc<Dictionary>, ArrayRef)>,
    /// For each code of a dictionary the row set in which it was met last, and its place among the values of that.
    met: Vec<(u32, u32)>,
    round: u32,
    /// Row sets to let pass.
    paused: u32,
}

impl Codes {
    /// Rows as codes of values, if these are few; `values` tells what codes stand for.
    ///
    /// # Errors
    /// If the dictionary can't be read or is damaged, or a code has no value in it.
    pub(crate) fn few(
        &mut self,
        ids: &ScalarBuffer<u32>,
        nulls: Option<&NullBuffer>,
        dictionary: &Arc<Dictionary>,
        values: impl Fn() -> Result<CodeValues>,
    ) -> Result<Option<ArrayRef>> {
        if dictionary.len() > WHOLE {
            return self.met_in_rows(ids, nulls, dictionary, values);
        }
        let all = match &self.whole {
            Some((last, all)) if Arc::ptr_eq(last, dictionary) => Arc::clone(all),
            _ => {
                let codes: Vec<u32> = (0..u32::try_from(dictionary.len()).map_err(of_arrow)?).collect();
                let all = values()?.values(&codes, None).map_err(of_format)?;
                self.whole = Some((Arc::clone(dictionary), Arc::clone(&all)));
                all
            }
        };
        coded(ids.clone(), nulls, all).map(Some)
    }

    /// Rows as codes of the values that they have.
    fn met_in_rows(
        &mut self,
        ids: &ScalarBuffer<u32>,
        nulls: Option<&NullBuffer>,
        dictionary: &Arc<Dictionary>,
        values: impl Fn() -> Result<CodeValues>,
    ) -> Result<Option<ArrayRef>> {
        self.paused = self.paused.saturating_sub(1);
        if dictionary.len() > LARGEST || self.paused > 0 {
            return Ok(None);
        }
        let Some(local) = self.renumber(ids, nulls, dictionary.len())? else {
            self.paused = PAUSE;
            return Ok(None);
        };
        let values = values()?.values(&local.codes, None).map_err(of_format)?;
        coded(local.ids.into(), nulls, values).map(Some)
    }

    /// The codes of some rows numbered as they are met; `None` if they are too many.
    fn renumber(&mut self, ids: &[u32], nulls: Option<&NullBuffer>, values: usize) -> Result<Option<Local>> {
        self.round = self.round.wrapping_add(1);
        if self.met.len() < values || self.round == 0 {
            self.met = vec![(0, 0); values];
            self.round = 1;
        }
        let most = ids.len() / ROWS_A_VALUE;
        let mut local = Local { ids: Vec::with_capacity(ids.len()), codes: Vec::new() };
        for (row, &id) in ids.iter().enumerate() {
            if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                local.ids.push(0);
                continue;
            }
            let met = usize::try_from(id).ok().and_then(|id| self.met.get_mut(id));
            let met = met.ok_or_else(|| error(DuckDBError::IoGeneral, format!("the code {id} has no value")))?;
            if met.0 != self.round {
                if local.codes.len() >= most {
                    return Ok(None);
                }
                *met = (self.round, u32::try_from(local.codes.len()).map_err(of_arrow)?);
                local.codes.push(id);
            }
            local.ids.push(met.1);
        }
        Ok(Some(local))
    }
}

/// Rows by the places of their values.
struct Local {
    ids: Vec<u32>,
    codes: Vec<u32>,
}

fn coded(ids: ScalarBuffer<u32>, nulls: Option<&NullBuffer>, values: ArrayRef) -> Result<ArrayRef> {
    let keys = UInt32Array::try_new(ids, nulls.cloned()).map_err(of_arrow)?;
    // What is checked is that codes have values, which only a damaged file's have not.
    let coded = DictionaryArray::try_new(keys, values);
    let coded = coded.map_err(|e| error(DuckDBError::IoGeneral, format!("a code has no value: {e}")))?;
    Ok(Arc::new(coded))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn codes_are_numbered_as_they_are_met() {
        let mut codes = Codes::default();
        let ids: Vec<u32> = (0..64).map(|row| [900, 7, 900, 3][row % 4]).collect();
        for _ in 0..3 {
            let local = codes.renumber(&ids, None, 1000).unwrap().unwrap();
            assert_eq!(local.codes, [900, 7, 3]);
            let back: Vec<u32> = local.ids.iter().map(|&id| local.codes[id as usize]).collect();
            assert_eq!(back, ids);
        }
        let nulls = NullBuffer::from((0..64).map(|row| row % 4 != 1).collect::<Vec<_>>());
        let local = codes.renumber(&ids, Some(&nulls), 1000).unwrap().unwrap();
        assert_eq!(local.codes, [900, 3]);
        let many: Vec<u32> = (0..64).collect();
        assert!(codes.renumber(&many, None, 1000).unwrap().is_none());
        assert!(codes.renumber(&[1000; 64], None, 1000).is_err());
    }
}
