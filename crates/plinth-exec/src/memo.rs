//! The results of a function of one column, once for each code of a dictionary that occurs in a row.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, RwLock};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, UInt32Array, new_null_array};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::DataType;
use arrow_select::{concat::concat, interleave::interleave, take::take};
use plinth_io::{MemoryBudget, OutOfMemory, Reservation};

use crate::error::{ExecError, Result};
use crate::vector::{Coded, Vector};

/// Results that lie in one array.
const TOGETHER: u32 = 4096;

/// Marks the place of a result that is null.
const NULL: u32 = 1 << 31;

/// Who asks for memory.
const CONSUMER: &str = "results of functions";

/// The results of a function for the values of a dictionary, and for null.
///
/// Threads share it: a result is looked up without a lock. Only values that occur are given to the function: it may fail for others.
#[derive(Debug)]
pub struct Memo {
    dictionary: Arc<dyn Coded>,
    result: DataType,
    /// Of each code, and of null at the end: zero while its result is unknown, else its place plus one, marked if it is null.
    places: Vec<AtomicU32>,
    results: RwLock<Results>,
}

#[derive(Debug)]
struct Results {
    /// By place: all but the last of [`TOGETHER`] results.
    arrays: Vec<ArrayRef>,
    len: u32,
    /// Whether one of them is null.
    has_null: bool,
    /// Memory was refused.
    is_full: bool,
    memory: Reservation,
}

impl Memo {
    /// No results yet, of a function whose results are of a type.
    ///
    /// # Errors
    /// If there is no memory for their places.
    pub fn new(
        dictionary: &Arc<dyn Coded>,
        result: &DataType,
        budget: &Arc<MemoryBudget>,
    ) -> Result<Self, OutOfMemory> {
        let memory = budget.reserve(CONSUMER, 4 * (dictionary.len() as u64 + 1))?;
        let results = Results { arrays: Vec::new(), len: 0, has_null: false, is_full: false, memory };
        Ok(Self {
            dictionary: Arc::clone(dictionary),
            result: result.clone(),
            places: (0..=dictionary.len()).map(|_| AtomicU32::new(0)).collect(),
            results: RwLock::new(results),
        })
    }

    /// The function's results for some rows, which hold codes of the dictionary: codes again if they are byte strings. None if there is no
    /// memory to keep results of more values.
    ///
    /// # Errors
    /// If the function fails for a value, or values can't be had.
    pub fn apply(
        self: &Arc<Self>,
        ids: &ScalarBuffer<u32>,
        nulls: Option<&NullBuffer>,
        function: impl FnOnce(ArrayRef) -> Result<ArrayRef>,
    ) -> Result<Option<Vector>> {
        let null =
            u32::try_from(self.dictionary.len()).map_err(|_| ExecError::internal("more values than have codes"))?;
        let is_valid = |row| nulls.is_none_or(|nulls| nulls.is_valid(row));
        if ids.iter().enumerate().any(|(row, &id)| id >= null && is_valid(row)) {
            return Err(ExecError::internal("a code that no value has"));
        }
        let ids = match nulls {
            None => ids.clone(),
            Some(_) => ids.iter().enumerate().map(|(row, &id)| if is_valid(row) { id } else { null }).collect(),
        };
        let mut unknown: Vec<u32> = ids.iter().copied().filter(|&id| self.place(id) == 0).collect();
        if !unknown.is_empty() {
            unknown.sort_unstable();
            unknown.dedup();
            if self.read()?.is_full {
                return Ok(None);
            }
            let nulls: NullBuffer = unknown.iter().map(|&id| id != null).collect();
            let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
            let results = function(self.dictionary.lent(&unknown, nulls.as_ref())?)?;
            if !self.keep(&unknown, &results)? {
                return Ok(None);
            }
        }
        if is_text(&self.result) {
            let nulls = if self.read()?.has_null { Some(self.nulls(&ids)) } else { None };
            return Ok(Some(Vector::Codes { ids, nulls, dictionary: Arc::new(Derived(Arc::clone(self))) }));
        }
        self.gather(&ids, None).map(|array| Some(Vector::Array(array)))
    }

    /// Keeps the results of some codes; false if there is no memory for them.
    fn keep(&self, codes: &[u32], results: &ArrayRef) -> Result<bool> {
        if results.len() != codes.len() || *results.data_type() != self.result {
            return Err(ExecError::internal("a function has results of another type, or not one for each value"));
        }
        let mut kept = self.results.write().map_err(|_| poisoned())?;
        // Others may have had the same codes at the same time.
        let new = |(row, code): (u32, &u32)| Some(row).filter(|_| self.place(*code) == 0);
        let rows: Vec<u32> = (0..).zip(codes).filter_map(new).collect();
        let results = if rows.len() == codes.len() {
            Arc::clone(results)
        } else {
            take(results, &UInt32Array::from(rows.clone()), None)?
        };
        let results = alone(results);
        let bytes = results.get_buffer_memory_size() as u64;
        if u64::from(kept.len) + rows.len() as u64 >= u64::from(NULL) || kept.memory.try_grow(bytes).is_err() {
            kept.is_full = true;
            return Ok(false);
        }
        let nulls = results.logical_nulls();
        kept.has_null |= nulls.as_ref().is_some_and(|nulls| nulls.null_count() > 0);
        let first = kept.len;
        kept.add(&results)?;
        for (at, row) in rows.iter().enumerate() {
            let is_null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(at));
            let place =
                first + u32::try_from(at).map_err(|_| ExecError::internal("more results than have places"))? + 1;
            if let Some(slot) = codes.get(*row as usize).and_then(|&code| self.places.get(code as usize)) {
                slot.store(if is_null { place | NULL } else { place }, Release);
            }
        }
        Ok(true)
    }

    /// The results of some codes; null rows may hold any code.
    fn gather(&self, codes: &[u32], nulls: Option<&NullBuffer>) -> Result<ArrayRef> {
        let results = self.read()?;
        let none = new_null_array(&self.result, 1);
        let mut arrays: Vec<&dyn Array> = results.arrays.iter().map(AsRef::as_ref).collect();
        arrays.push(none.as_ref());
        let place = |(row, &code): (usize, &u32)| {
            if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                return Ok((results.arrays.len(), 0));
            }
            let place = (self.place(code) & !NULL).checked_sub(1);
            let place = place.ok_or_else(|| ExecError::internal("a result that was never computed"))?;
            Ok(((place / TOGETHER) as usize, (place % TOGETHER) as usize))
        };
        let places = codes.iter().enumerate().map(place).collect::<Result<Vec<_>>>()?;
        Ok(interleave(&arrays, &places)?)
    }

    fn nulls(&self, codes: &[u32]) -> NullBuffer {
        codes.iter().map(|&code| self.place(code) & NULL == 0).collect()
    }

    fn place(&self, code: u32) -> u32 {
        self.places.get(code as usize).map_or(0, |place| place.load(Acquire))
    }

    fn read(&self) -> Result<std::sync::RwLockReadGuard<'_, Results>> {
        self.results.read().map_err(|_| poisoned())
    }
}

impl Results {
    fn add(&mut self, results: &ArrayRef) -> Result<()> {
        let count = u32::try_from(results.len()).map_err(|_| ExecError::internal("more results than have places"))?;
        let mut at = 0;
        while at < count {
            let room = TOGETHER - self.len % TOGETHER;
            let more = room.min(count - at);
            let some = results.slice(at as usize, more as usize);
            match self.arrays.last_mut().filter(|_| room < TOGETHER) {
                Some(last) => *last = concat(&[last.as_ref(), some.as_ref()])?,
                None => self.arrays.push(some),
            }
            at += more;
            self.len += more;
        }
        Ok(())
    }
}

/// Results as the values of the codes they belong to.
#[derive(Debug)]
struct Derived(Arc<Memo>);

impl Coded for Derived {
    fn len(&self) -> usize {
        self.0.places.len()
    }

    fn identity(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// In that of what they are results of.
    fn is_ordered(&self) -> bool {
        false
    }

    fn values(&self, codes: &[u32], nulls: Option<&NullBuffer>) -> Result<ArrayRef> {
        self.0.gather(codes, nulls)
    }
}

/// Whether values are worth to stay codes.
fn is_text(data_type: &DataType) -> bool {
    use DataType::{Binary, BinaryView, LargeBinary, LargeUtf8, Utf8, Utf8View};
    matches!(data_type, Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView)
}

/// Text without what its buffers hold beside it: of the values that were given to the function, perhaps.
fn alone(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
        _ => array,
    }
}

fn poisoned() -> ExecError {
    ExecError::internal("a thread ended while it kept results of a function")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
