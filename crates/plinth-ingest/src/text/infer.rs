//! The types of text, from what is seen of it.
//!
//! A [`Seen`] says which kinds of values a column had. Two of them are united by taking both together, so a schema does not
//! depend on how the rows were cut, and what it is inferred from fits it.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, TimeUnit};

use super::json::{Cursor, Kind};
use super::scalar::{EXACT_IN_DOUBLE, Form, boolean, form};
use super::time;

/// Keys a nested object may have as a struct; one with more is a kind of map and stays JSON text.
const STRUCT_FIELDS: usize = 1_000;

/// Lists and structs that may be nested in each other; what is deeper stays JSON text. Whoever handles such a type calls
/// itself for every level of it, and has a stack that ends.
const NESTED: usize = 32;

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
    /// Whether there were too many names. None is kept then, and none comes back, so that it is the same whether they came
    /// at once or in parts.
    wide: bool,
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

    fn number(&mut self, text: &str) {
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

    fn text(&mut self, text: &str) {
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

    /// A checked JSON value.
    fn json(&mut self, value: &mut Cursor<'_>) {
        match value.kind() {
            Kind::Null => drop(value.raw()),
            Kind::Bool => {
                let _ = value.raw();
                self.booleans = true;
            }
            Kind::Number => self.number(value.raw()),
            Kind::String => self.text(&value.string()),
            Kind::Array => {
                let items = self.list.get_or_insert_default();
                value.elements(|element| items.json(element));
            }
            Kind::Object => self.object.get_or_insert_with(Objects::nested).json(value),
        }
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
        match self.object {
            // One that is too wide has no names left.
            Some(object) if !object.names.is_empty() => DataType::Struct(object.types(levels)),
            _ => DataType::Utf8View,
        }
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

impl Objects {
    /// Objects that may have so many names.
    pub(crate) fn new(most: usize) -> Self {
        Self { names: Vec::new(), by_name: HashMap::new(), seen: Vec::new(), most, memory: 0, wide: false }
    }

    fn nested() -> Self {
        Self::new(STRUCT_FIELDS)
    }

    /// Whether there were too many names to be columns.
    pub(crate) fn is_wide(&self) -> bool {
        self.wide
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

    fn place(&mut self, name: &str) -> Option<usize> {
        if let Some(at) = self.by_name.get(name) {
            return Some(*at);
        }
        // A name is kept twice.
        let memory = self.memory + size_of::<Seen>() + 2 * (size_of::<String>() + name.len());
        if self.wide || self.names.len() == self.most || memory > MEMORY {
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

    fn widen(&mut self) {
        *self = Self { wide: true, ..Self::new(self.most) };
    }

    /// Has a column take values, which may bring names of their own.
    fn grow(&mut self, at: usize, take: impl FnOnce(&mut Seen)) {
        let Some(seen) = self.seen.get_mut(at) else { return };
        let before = seen.memory();
        take(seen);
        self.memory = (self.memory + seen.memory()).saturating_sub(before);
        if self.memory > MEMORY {
            self.widen();
        }
    }

    /// A checked JSON object.
    pub(crate) fn json(&mut self, value: &mut Cursor<'_>) {
        let mut expected = 0;
        value.members(|key, member| {
            let at = match self.names.get(expected) {
                Some(name) if *name == key => Some(expected),
                _ => self.place(&key),
            };
            match at {
                Some(at) => self.grow(at, |seen| seen.json(member)),
                None => drop(member.raw()),
            }
            expected += 1;
        });
    }

    /// Takes another's columns too.
    pub(crate) fn unite(&mut self, other: Self) {
        if other.wide {
            return self.widen();
        }
        for (name, theirs) in other.names.iter().zip(other.seen) {
            match self.place(name) {
                Some(at) => self.grow(at, |ours| ours.unite(theirs)),
                None => return,
            }
        }
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn of(values: &[&str]) -> DataType {
        let mut seen = Seen::default();
        values.iter().for_each(|value| seen.field(value));
        // However the values are cut, the type is the same.
        let mut united = Seen::default();
        for value in values {
            let mut one = Seen::default();
            one.field(value);
            united.unite(one);
        }
        let data_type = seen.data_type(0);
        assert_eq!(data_type, united.data_type(0));
        data_type
    }

    fn json(values: &[&str]) -> DataType {
        let mut seen = Seen::default();
        values.iter().for_each(|value| seen.json(&mut Cursor::new(value)));
        seen.data_type(NESTED)
    }

    #[test]
    fn fields_have_the_narrowest_type_that_keeps_them_as_they_are() {
        use DataType::*;
        let utc = || Some(Arc::from("UTC"));
        assert_eq!(of(&[]), Utf8View);
        assert_eq!(of(&["", "1", "-5"]), Int64);
        assert_eq!(of(&["1", "18446744073709551615"]), UInt64);
        assert_eq!(of(&["-1", "18446744073709551615"]), Decimal128(38, 0));
        assert_eq!(of(&[&"9".repeat(39)]), Utf8View);
        assert_eq!(of(&["1", "1.5", "NaN"]), Float64);
        assert_eq!(of(&["9007199254740992", "0.5"]), Float64);
        assert_eq!(of(&["9007199254740993", "0.5"]), Utf8View);
        assert_eq!(of(&["1", "1e999"]), Utf8View);
        assert_eq!(of(&["NaN"]), Utf8View);
        assert_eq!(of(&["1", "007"]), Utf8View);
        assert_eq!(of(&["true", "FALSE"]), Boolean);
        assert_eq!(of(&["true", "1"]), Utf8View);
        assert_eq!(of(&["2024-01-01", "0001-12-31"]), Date32);
        assert_eq!(of(&["2024-01-01", "2024-01-01 10:00"]), Utf8View);
        assert_eq!(of(&["2024-01-01T10:00:00", "2024-01-01 10:00"]), Timestamp(TimeUnit::Microsecond, None));
        assert_eq!(of(&["2024-01-01T10:00:00Z", "2024-01-01T10:00+02"]), Timestamp(TimeUnit::Microsecond, utc()));
        assert_eq!(of(&["2024-01-01T10:00:00.123456789Z"]), Timestamp(TimeUnit::Nanosecond, utc()));
        assert_eq!(of(&["2024-01-01T10:00:00.123456789", "2900-01-01T10:00"]), Utf8View);
        assert_eq!(of(&["2024-01-01T10:00:00Z", "2024-01-01T10:00:00"]), Utf8View);
    }

    /// Objects of one nested column `m`, whose keys are the numbers.
    fn keyed(keys: impl IntoIterator<Item = usize>) -> Objects {
        let mut objects = Objects::new(10);
        for key in keys {
            objects.json(&mut Cursor::new(&format!(r#"{{"m":{{"k{key}":{{"x":1}}}}}}"#)));
        }
        objects
    }

    fn united(parts: &[Objects]) -> Objects {
        let mut all = Objects::new(10);
        parts.iter().for_each(|part| all.unite(part.clone()));
        all
    }

    #[test]
    fn a_nested_object_with_too_many_names_is_text_and_keeps_none_of_them() {
        let type_of = |objects: &Objects| objects.clone().fields()[0].data_type().clone();
        // Twice each: what counts is how many differ.
        let most = keyed((0..STRUCT_FIELDS).chain(0..STRUCT_FIELDS));
        assert!(most.memory > 2 * STRUCT_FIELDS * size_of::<Seen>());
        let DataType::Struct(fields) = type_of(&most) else { unreachable!("{}", type_of(&most)) };
        assert_eq!(fields.len(), STRUCT_FIELDS);
        let wide = keyed(0..5 * STRUCT_FIELDS);
        let mut one = Objects::new(10);
        assert!(one.column("m").is_some());
        assert_eq!((type_of(&wide), wide.memory, wide.is_wide()), (DataType::Utf8View, one.memory, false));
        // Once wide it stays wide, however few names come later.
        assert_eq!(type_of(&united(&[wide.clone(), keyed(0..1)])), DataType::Utf8View);
        assert_eq!(type_of(&united(&[keyed(0..1), wide])), DataType::Utf8View);
    }

    #[test]
    fn whether_an_object_is_too_wide_does_not_depend_on_the_cuts() {
        for (names, wide) in [(STRUCT_FIELDS, false), (STRUCT_FIELDS + 1, true)] {
            let whole = keyed(0..names);
            for cut in [1, names / 3, names / 2, names - 1] {
                // The parts share names.
                let parts = [keyed(0..cut), keyed(cut / 2..names), keyed([0, names - 1])];
                let [a, b, c] = &parts;
                let orders = [[a, b, c], [a, c, b], [b, a, c], [b, c, a], [c, a, b], [c, b, a]];
                for [a, b, c] in orders.map(|order| order.map(Objects::clone)) {
                    let left = united(&[united(&[a.clone(), b.clone()]), c.clone()]);
                    let right = united(&[a, united(&[b, c])]);
                    assert_eq!(left.clone().fields(), right.clone().fields());
                    assert_eq!((left.memory, right.memory), (whole.memory, whole.memory));
                    assert_eq!(left.fields()[0].data_type() == &DataType::Utf8View, wide);
                }
            }
        }
    }

    #[test]
    fn names_are_bounded_at_the_top_level_and_in_all() {
        let mut top = Objects::new(10);
        (0..10).for_each(|key| top.json(&mut Cursor::new(&format!(r#"{{"k{key}":1}}"#))));
        assert!(!top.is_wide());
        top.json(&mut Cursor::new(r#"{"k3":1,"one too many":2,"another":{"x":3}}"#));
        assert!(top.is_wide() && top.memory == 0 && top.column("k3").is_none());
        // A tree of objects none of which is wide.
        let inner = (0..STRUCT_FIELDS).map(|key| format!("\"{key}\":0")).collect::<Vec<_>>().join(",");
        let outer = (0..STRUCT_FIELDS).map(|key| format!("\"{key}\":{{{inner}}}")).collect::<Vec<_>>().join(",");
        let mut tree = Objects::new(10);
        tree.json(&mut Cursor::new(&format!("{{\"a\":{{{outer}}},\"b\":[[{{{outer}}}]]}}")));
        assert!(tree.memory <= MEMORY, "{}", tree.memory);
        // Few names, but long ones.
        let mut long = Objects::new(100);
        let name = |at: usize| at.to_string().repeat(1 << 20);
        (10..41).for_each(|at| long.json(&mut Cursor::new(&format!("{{\"{}\":1}}", name(at / 2)))));
        assert!(!long.is_wide() && long.memory > MEMORY / 2);
        (10..50).for_each(|at| long.json(&mut Cursor::new(&format!("{{\"{}\":1}}", name(at)))));
        assert!(long.is_wide());
    }

    #[test]
    fn json_has_structs_and_lists() {
        let list = |item| DataType::List(Arc::new(Field::new_list_field(item, true)));
        assert_eq!(json(&["[1,2]", "[]", "[0.5,null]"]), list(DataType::Float64));
        assert_eq!(json(&["[]"]), list(DataType::Utf8View));
        assert_eq!(json(&["\"1\"", "2"]), DataType::Utf8View);
        assert_eq!(json(&["\"1\""]), DataType::Utf8View);
        assert_eq!(json(&["{}"]), DataType::Utf8View);
        let fields = vec![Field::new("b", DataType::Int64, true), Field::new("a", list(DataType::Boolean), true)];
        assert_eq!(json(&["{}", r#"{"b":1}"#, r#"{"a":[true],"b":null}"#]), DataType::Struct(fields.into()));
    }
}
