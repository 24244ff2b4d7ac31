//! The types of text, from what is seen of it.
//!
//! A [`Seen`] says which kinds of values a column had. Two of them are united by taking both together, so a schema does not
//! depend on how the rows were cut, and what it is inferred from fits it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, TimeUnit};

use super::number::{EXACT_IN_DOUBLE, Form, boolean, form};
use super::time;
use crate::error::{IngestError, Result};

/// Columns that a schema may be inferred to have.
pub(crate) const COLUMNS: usize = 10_000;

/// Keys a nested object may have as a struct; one with more is a map.
pub(crate) const STRUCT_FIELDS: usize = 1_000;

/// Objects and keys from which on an object is a map whose keys come twice on average or less: they are data then.
const MAP_OBJECTS: u64 = 10;
const MAP_KEYS: usize = 20;

/// Lists and structs that may be nested in each other; what is deeper stays JSON text. Code that handles such a type calls
/// itself for every level of it, and has a stack that ends.
pub(crate) const NESTED: usize = 32;

/// Bytes of memory that names may take, with what is seen of each and all that is nested in it.
pub(crate) const MEMORY: usize = 64 << 20;

/// The largest integer of 38 digits.
const DECIMAL_MAX: u128 = 10u128.pow(38) - 1;

/// The values of a column, by kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    booleans: bool,
    integers: Option<Integers>,
    floats: bool,
    /// NaN and infinities, in text that is not JSON.
    specials: bool,
    dates: bool,
    moments: Option<Moments>,
    zoned: Option<Moments>,
    /// Text of no other kind.
    texts: bool,
    /// Elements of arrays.
    list: Option<Box<Seen>>,
    object: Option<Objects>,
}

#[derive(Clone, Copy, Debug)]
struct Integers {
    min: i128,
    max: i128,
}

#[derive(Clone, Copy, Debug)]
struct Moments {
    /// Whether any needs nanoseconds.
    fine: bool,
    /// Whether all fit into 64 bits of nanoseconds.
    fit_nanos: bool,
}

/// Columns by name, in the order they were seen first.
#[derive(Clone, Debug)]
pub(crate) struct Objects {
    names: Vec<String>,
    by_name: HashMap<String, usize>,
    seen: Vec<Seen>,
    /// Names that may be kept.
    most: usize,
    /// Bytes of memory its names take, about, with all that is nested.
    memory: usize,
    /// If there were too many names: the values of all. No name is kept then, and none comes back, so that it is the same
    /// whether they came at once or in parts.
    wide: Option<Box<Seen>>,
    /// How many objects there were, and how many members they had.
    objects: u64,
    members: u64,
}

impl Seen {
    /// A field of CSV.
    pub(crate) fn field(&mut self, text: &str) {
        // Quotes around nothing make an empty text among texts, and nothing among numbers.
        if text.is_empty() {
            return;
        }
        match form(text) {
            Some(_) => self.number(text),
            None if boolean(text).is_some() => self.booleans = true,
            None => self.text(text),
        }
    }

    /// A truth value.
    pub(crate) fn boolean(&mut self) {
        self.booleans = true;
    }

    /// A number.
    pub(crate) fn number(&mut self, text: &str) {
        match form(text) {
            Some(Form::Integer) => match text.parse::<i128>() {
                Ok(value) if value.unsigned_abs() <= DECIMAL_MAX => {
                    let range = Integers { min: value, max: value };
                    self.integers = unite(self.integers, Some(range), Integers::unite);
                }
                _ => self.texts = true,
            },
            Some(Form::Float) if text.parse::<f64>().is_ok_and(f64::is_finite) => self.floats = true,
            Some(Form::Special) => self.specials = true,
            _ => self.texts = true,
        }
    }

    /// Text that is neither a number nor a truth value.
    pub(crate) fn text(&mut self, text: &str) {
        // Cheap first: most text is no date.
        let digit = text.as_bytes().first().is_some_and(u8::is_ascii_digit) && text.len() >= 10;
        if digit && time::date(text).is_some() {
            self.dates = true;
        } else if let Some(moment) = digit.then(|| time::moment(text)).flatten() {
            let seen = Moments { fine: moment.nanos % 1_000 != 0, fit_nanos: moment.in_units(1_000_000_000).is_some() };
            let to = if moment.zoned { &mut self.zoned } else { &mut self.moments };
            *to = unite(*to, Some(seen), Moments::unite);
        } else {
            self.texts = true;
        }
    }

    /// For the elements of an array.
    pub(crate) fn list(&mut self) -> &mut Self {
        self.list.get_or_insert_default()
    }

    /// For the members of an object.
    pub(crate) fn object(&mut self) -> &mut Objects {
        self.object.get_or_insert_with(Objects::nested)
    }

    /// An array or an object that is nested too deep to be looked into.
    pub(crate) fn deep(&mut self, array: bool) {
        if array {
            self.list();
        } else {
            self.object();
        }
    }

    /// A column of such values.
    pub(crate) fn fields(self, name: &str) -> Fields {
        [Field::new(name, self.data_type(NESTED), true)].into_iter().collect()
    }

    /// Takes another's values too.
    pub(crate) fn unite(&mut self, other: Self) {
        self.booleans |= other.booleans;
        self.integers = unite(self.integers, other.integers, Integers::unite);
        self.floats |= other.floats;
        self.specials |= other.specials;
        self.dates |= other.dates;
        self.moments = unite(self.moments, other.moments, Moments::unite);
        self.zoned = unite(self.zoned, other.zoned, Moments::unite);
        self.texts |= other.texts;
        if let Some(list) = other.list {
            self.list.get_or_insert_default().unite(*list);
        }
        if let Some(object) = other.object {
            self.object.get_or_insert_with(Objects::nested).unite(object);
        }
    }

    /// Bytes of memory that names nested in it take.
    fn memory(&self) -> usize {
        self.object.as_ref().map_or(0, |object| object.memory) + self.list.as_ref().map_or(0, |items| items.memory())
    }

    /// The type that holds every value as it is; text where there is no other, or none of so many levels.
    fn data_type(self, levels: usize) -> DataType {
        let numbers = self.integers.is_some() || self.floats;
        let kinds = [
            self.booleans,
            numbers,
            // Alone they are words.
            self.specials && !numbers,
            self.dates,
            self.moments.is_some(),
            self.zoned.is_some(),
            self.texts,
            self.list.is_some(),
            self.object.is_some(),
        ];
        if kinds.iter().filter(|kind| **kind).count() != 1 {
            return DataType::Utf8View;
        }
        if self.booleans {
            return DataType::Boolean;
        }
        if numbers {
            return number_type(self.integers, self.floats || self.specials);
        }
        if self.dates {
            return DataType::Date32;
        }
        if let Some(moments) = self.moments.or(self.zoned) {
            let zone = self.zoned.map(|_| Arc::from("UTC"));
            return match (moments.fine, moments.fit_nanos) {
                (false, _) => DataType::Timestamp(TimeUnit::Microsecond, zone),
                (true, true) => DataType::Timestamp(TimeUnit::Nanosecond, zone),
                (true, false) => DataType::Utf8View,
            };
        }
        let Some(levels) = levels.checked_sub(1) else { return DataType::Utf8View };
        if let Some(items) = self.list {
            return DataType::List(Arc::new(Field::new_list_field(items.data_type(levels), true)));
        }
        self.object.map_or(DataType::Utf8View, |object| object.data_type(levels))
    }
}

fn number_type(integers: Option<Integers>, floats: bool) -> DataType {
    match integers {
        Some(range) if floats => {
            let exact = -i128::from(EXACT_IN_DOUBLE)..=i128::from(EXACT_IN_DOUBLE);
            let exact = exact.contains(&range.min) && exact.contains(&range.max);
            if exact { DataType::Float64 } else { DataType::Utf8View }
        }
        Some(Integers { min, max }) => match (i64::try_from(min), i64::try_from(max)) {
            (Ok(_), Ok(_)) => DataType::Int64,
            _ if u64::try_from(min).is_ok() && u64::try_from(max).is_ok() => DataType::UInt64,
            _ => DataType::Decimal128(38, 0),
        },
        None => DataType::Float64,
    }
}

impl Integers {
    fn unite(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

impl Moments {
    fn unite(self, other: Self) -> Self {
        Self { fine: self.fine || other.fine, fit_nanos: self.fit_nanos && other.fit_nanos }
    }
}

fn unite<T>(a: Option<T>, b: Option<T>, both: impl Fn(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(both(a, b)),
        (a, b) => a.or(b),
    }
}

impl Default for Objects {
    /// The columns of a file.
    fn default() -> Self {
        Self::new(COLUMNS)
    }
}

impl Objects {
    /// Objects that may have so many names.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            names: Vec::new(),
            by_name: HashMap::new(),
            seen: Vec::new(),
            most,
            memory: 0,
            wide: None,
            objects: 0,
            members: 0,
        }
    }

    fn nested() -> Self {
        Self::new(STRUCT_FIELDS)
    }

    /// Whether there were too many names to be columns.
    fn is_wide(&self) -> bool {
        self.wide.is_some()
    }

    /// Whether there was no name.
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty() && !self.is_wide()
    }

    /// Whether there was an object, be it one without members.
    pub(crate) fn any(&self) -> bool {
        self.objects > 0
    }

    /// Bytes of memory it takes, about.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// The column of a name, new if need be; `None` where there are too many.
    pub(crate) fn column(&mut self, name: &str) -> Option<&mut Seen> {
        let at = self.place(name)?;
        self.seen.get_mut(at)
    }

    /// The place of a name, which is expected to be that.
    pub(crate) fn find(&mut self, name: &str, expected: usize) -> Option<usize> {
        match self.names.get(expected) {
            Some(known) if known == name => Some(expected),
            _ => self.place(name),
        }
    }

    fn place(&mut self, name: &str) -> Option<usize> {
        if let Some(at) = self.by_name.get(name) {
            return Some(*at);
        }
        // A name is kept twice.
        let memory = self.memory + size_of::<Seen>() + 2 * (size_of::<String>() + name.len());
        if self.is_wide() || self.names.len() == self.most || memory > MEMORY {
            self.widen();
            return None;
        }
        self.memory = memory;
        let at = self.names.len();
        self.by_name.insert(name.to_owned(), at);
        self.names.push(name.to_owned());
        self.seen.push(Seen::default());
        Some(at)
    }

    /// Gives up names; of their values is kept what they are together.
    fn widen(&mut self) {
        let mut values = self.wide.take().unwrap_or_default();
        std::mem::take(&mut self.seen).into_iter().for_each(|seen| values.unite(seen));
        let memory = values.memory();
        if memory > MEMORY {
            *values = Seen { texts: true, ..Seen::default() };
        }
        let memory = if memory > MEMORY { 0 } else { memory };
        let (objects, members) = (self.objects, self.members);
        *self = Self { wide: Some(values), memory, objects, members, ..Self::new(self.most) };
    }

    /// Has a column take values, which may bring names of their own; `None` is that of all names where they are too many.
    pub(crate) fn grow<T>(&mut self, at: Option<usize>, take: impl FnOnce(&mut Seen) -> T) -> T {
        let to = match at {
            Some(at) => self.seen.get_mut(at),
            None => self.wide.as_deref_mut(),
        };
        let mut nowhere = Seen::default();
        let to = to.unwrap_or(&mut nowhere);
        let before = to.memory();
        let taken = take(to);
        let after = to.memory();
        self.memory = (self.memory + after).saturating_sub(before);
        if self.memory > MEMORY {
            self.widen();
        }
        taken
    }

    /// Counts an object of so many members.
    pub(crate) fn count(&mut self, members: u64) {
        self.objects += 1;
        self.members += members;
    }

    /// Takes another's columns too.
    pub(crate) fn unite(&mut self, other: Self) {
        self.objects += other.objects;
        self.members += other.members;
        if let Some(values) = other.wide {
            self.widen();
            self.grow(None, |all| all.unite(*values));
        }
        for (name, theirs) in other.names.iter().zip(other.seen) {
            let at = self.place(name);
            self.grow(at, |ours| ours.unite(theirs));
        }
    }

    /// The type of nested objects: a map where keys are too many, or are data; else a struct.
    fn data_type(self, levels: usize) -> DataType {
        if self.is_empty() {
            return DataType::Utf8View;
        }
        let names = self.names.len();
        let data = self.objects >= MAP_OBJECTS && names >= MAP_KEYS && self.members <= 2 * names as u64;
        if !data && !self.is_wide() {
            return DataType::Struct(self.types(levels));
        }
        let mut all = self;
        all.widen();
        let value = all.wide.map_or(DataType::Utf8View, |values| values.data_type(levels));
        let pair = vec![Field::new("key", DataType::Utf8View, false), Field::new("value", value, true)];
        DataType::Map(Arc::new(Field::new("entries", DataType::Struct(pair.into()), false)), false)
    }

    /// The columns and their types.
    pub(crate) fn fields(self) -> Fields {
        self.types(NESTED)
    }

    fn types(self, levels: usize) -> Fields {
        let fields = self.names.into_iter().zip(self.seen);
        fields.map(|(name, seen)| Field::new(name, seen.data_type(levels), true)).collect()
    }
}

/// Whether there are more columns than there may be.
pub(crate) fn check_width(path: &Path, all: &Objects) -> Result<()> {
    if all.is_wide() {
        let memory = MEMORY >> 20;
        let what = format!("more than {COLUMNS} columns, or more keys than {memory} MiB hold; give a schema");
        return Err(IngestError::damaged(path, what));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
