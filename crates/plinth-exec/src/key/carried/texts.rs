//! Byte strings that groups carry: each is named by where it lies, for nothing asks whether two are equal.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, UInt32Array, new_null_array};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use arrow_select::interleave::interleave;
use arrow_select::take::take;
use plinth_core::sync::lock;
use plinth_io::{MemoryBudget, Reservation};

use crate::error::{ExecError, Result};
use crate::vector::{Coded, Vector};

/// Who asks for memory.
const CONSUMER: &str = "values of groups";

/// Bits of a number that tell which of the values of a place it is; the others tell the place.
const BITS: u32 = 32;

/// The byte strings of a column that all threads of a query carry.
#[derive(Debug)]
pub(in crate::key) struct Texts {
    data_type: DataType,
    places: Mutex<Places>,
}

#[derive(Debug)]
struct Places {
    all: Vec<Place>,
    /// Of dictionaries, by what they are told apart by.
    dictionaries: HashMap<usize, i64>,
    memory: Reservation,
}

/// Where values lie.
#[derive(Clone, Debug)]
enum Place {
    /// Among those of a dictionary, by their codes.
    Dictionary(Arc<dyn Coded>),
    /// In an array of their own.
    Array(ArrayRef),
}

impl Texts {
    /// Of a type; none if it is not one of byte strings.
    pub(in crate::key) fn of(data_type: &DataType, budget: &Arc<MemoryBudget>) -> Option<Self> {
        let memory = budget.open(CONSUMER);
        let places = Mutex::new(Places { all: Vec::new(), dictionaries: HashMap::new(), memory });
        (data_type.is_string() || data_type.is_binary()).then(|| Self { data_type: data_type.clone(), places })
    }

    /// The numbers of some values, which are kept; of null rows any.
    pub(super) fn numbers(&self, vector: &Vector, into: &mut Vec<i64>) -> Result<()> {
        into.clear();
        if let Vector::Codes { ids, dictionary, .. } = vector {
            let first = lock(&self.places).of_dictionary(dictionary)?;
            into.extend(ids.iter().map(|id| first | i64::from(*id)));
            return Ok(());
        }
        let array = alone(vector.array()?);
        let mut places = lock(&self.places);
        places.memory.try_grow(array.get_array_memory_size() as u64)?;
        let first = places.add(Place::Array(Arc::clone(&array)))?;
        into.extend((first..).take(array.len()));
        Ok(())
    }

    /// The values of some numbers.
    pub(super) fn values(&self, numbers: &[i64], nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let valid = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        // Of each place the values that are wanted, and where each row finds its own among these.
        let mut wanted: BTreeMap<i64, Vec<u32>> = BTreeMap::new();
        let mut found = Vec::with_capacity(numbers.len());
        for (row, number) in numbers.iter().enumerate() {
            let value = u32::try_from(number & ((1 << BITS) - 1)).unwrap_or_default();
            let of_place = if valid(row) { wanted.entry(number >> BITS).or_default() } else { &mut Vec::new() };
            found.push((number >> BITS, of_place.len()));
            of_place.push(value);
        }
        let places: Vec<Option<Place>> = {
            let known = lock(&self.places);
            wanted.keys().map(|place| known.all.get(usize::try_from(*place).ok()?).cloned()).collect()
        };
        let none = || ExecError::internal("a value that lies nowhere");
        let mut arrays = Vec::with_capacity(wanted.len() + 1);
        for (place, values) in places.into_iter().zip(wanted.values()) {
            arrays.push(match place.ok_or_else(none)? {
                Place::Dictionary(dictionary) => dictionary.values(values, None)?,
                Place::Array(array) => take(&array, &UInt32Array::from(values.clone()), None)?,
            });
        }
        if let ([array], None) = (arrays.as_slice(), &nulls) {
            return Ok(Arc::clone(array));
        }
        let null = arrays.len();
        arrays.push(new_null_array(&self.data_type, 1));
        let at: HashMap<i64, usize> = wanted.keys().copied().zip(0..).collect();
        let place = |(row, (place, value)): (usize, &(i64, usize))| match at.get(place) {
            Some(at) if valid(row) => (*at, *value),
            _ => (null, 0),
        };
        let rows: Vec<(usize, usize)> = found.iter().enumerate().map(place).collect();
        let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
        Ok(interleave(&arrays, &rows)?)
    }
}

impl Places {
    /// The number of a dictionary's first value.
    fn of_dictionary(&mut self, dictionary: &Arc<dyn Coded>) -> Result<i64> {
        if let Some(first) = self.dictionaries.get(&dictionary.identity()) {
            return Ok(*first);
        }
        let first = self.add(Place::Dictionary(Arc::clone(dictionary)))?;
        self.dictionaries.insert(dictionary.identity(), first);
        Ok(first)
    }

    fn add(&mut self, place: Place) -> Result<i64> {
        let at = i32::try_from(self.all.len()).map_err(|_| ExecError::internal("too many places of values"))?;
        self.all.push(place);
        Ok(i64::from(at) << BITS)
    }
}

/// An array that keeps no other values than its own.
fn alone(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
        _ => array,
    }
}
