//! Keys: columns of values as the numbers of a layout, and back.

mod carried;

use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use plinth_io::{MemoryBudget, OutOfMemory};

use crate::domain::Domain;
use crate::error::{ExecError, Result};
use crate::layout::{Beyond, Layout};
use crate::numbers::Numbers;
use crate::rows::Rows;
use crate::vector::{Coded, Vector};

/// The least and the greatest number that a column is expected to have, if that is known.
pub type Bounds = Option<(i64, i64)>;

/// How the values of a key column become numbers.
#[derive(Clone, Debug)]
pub enum Meaning {
    /// They are numbers.
    Numbers(Numbers, DataType),
    /// They are codes of one dictionary, in all rows there are.
    Codes(Arc<dyn Coded>),
    /// They are numbered as they come.
    Domain(Arc<Domain>),
}

impl Meaning {
    /// How values of a type become numbers; `None` if they can't.
    pub fn of(data_type: &DataType, budget: &Arc<MemoryBudget>) -> Option<Self> {
        match Numbers::of(data_type) {
            Some(numbers) => Some(Self::Numbers(numbers, data_type.clone())),
            None => Domain::new(data_type, budget).map(|domain| Self::Domain(Arc::new(domain))),
        }
    }

    /// Whether [`Meaning::of`] knows how.
    pub fn is_known(data_type: &DataType) -> bool {
        Self::of(data_type, &MemoryBudget::new(0)).is_some()
    }

    /// Numbers of a value.
    pub(crate) fn width(&self) -> usize {
        match self {
            Self::Numbers(numbers, _) => numbers.width(),
            Self::Codes(_) | Self::Domain(_) => 1,
        }
    }

    pub(crate) fn read(&self, vector: &Vector, into: &mut [Vec<i64>]) -> Result<()> {
        match (self, vector, into) {
            (Self::Numbers(numbers, _), vector, into) => numbers.read(vector.array()?.as_ref(), into),
            (Self::Codes(of), Vector::Codes { ids, dictionary, .. }, [into, ..])
                if dictionary.identity() == of.identity() =>
            {
                into.clear();
                into.extend(ids.iter().map(|&id| i64::from(id)));
                Ok(())
            }
            (Self::Domain(domain), vector, [into, ..]) => domain.numbers(vector, into),
            // Nulls have no codes.
            (Self::Codes(_), Vector::Array(array), [into, ..]) if array.logical_null_count() == array.len() => {
                into.clear();
                into.resize(array.len(), 0);
                Ok(())
            }
            // A join that was merged for want of memory has lost them.
            (Self::Codes(of), Vector::Array(array), [into, ..]) => {
                into.clear();
                into.extend(of.codes(array)?.into_iter().map(i64::from));
                Ok(())
            }
            (Self::Codes(_), ..) => Err(ExecError::internal("rows whose values are not of the column's dictionary")),
            (Self::Domain(_), ..) => Err(ExecError::internal("numbers need a place")),
        }
    }

    /// The values of some numbers.
    pub(crate) fn values(&self, numbers: &[Vec<i64>], nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let first = numbers.first().ok_or_else(|| ExecError::internal("there are no numbers"))?;
        match self {
            Self::Numbers(numbers_of, data_type) => numbers_of.write(data_type, numbers, nulls),
            Self::Codes(dictionary) => {
                let code = |&number: &i64| u32::try_from(number);
                let codes = first.iter().map(code).collect::<Result<Vec<u32>, _>>();
                let codes = codes.map_err(|_| ExecError::internal("a code that is no code"))?;
                dictionary.values(&codes, nulls.as_ref())
            }
            Self::Domain(domain) => {
                let valid = |row| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
                let numbers = first.iter().enumerate().map(|(row, &number)| valid(row).then_some(number));
                domain.values(&numbers.collect::<Vec<_>>())
            }
        }
    }
}

/// Where the numbers of a column lie.
#[derive(Clone, Debug)]
enum Place {
    /// In the key, from a field on; behind them is what tells of nulls.
    Key(usize),
    /// Beside it: other columns determine them.
    Carried(carried::Place),
}

/// Key columns, and how their numbers are packed as far as they are known.
#[derive(Clone, Debug)]
pub struct Keys {
    meanings: Vec<Meaning>,
    /// Of each column.
    places: Vec<Place>,
    /// Words beside a group's key.
    carried: usize,
    pub(crate) layout: Layout,
    /// The rows that are being packed: one column a field.
    numbers: Vec<Vec<i64>>,
    /// The same, one column a word.
    packed: Vec<Vec<u64>>,
    /// Of rows that are looked up, which can have no group.
    outside: Vec<bool>,
    /// Different keys that a thread will meet, as far as that is known: zero if not.
    expected: usize,
}

impl Keys {
    /// Keys of some columns.
    pub fn new(meanings: Vec<Meaning>) -> Self {
        let places = meanings.iter().map(|_| None).collect();
        Self::with_places(meanings, places, 0)
    }

    /// Keys of some columns of which others determine some, and these are not looked at to tell groups apart: a group has the values of its first row.
    /// All threads of a query have clones of the same keys.
    pub fn carrying(meanings: Vec<Meaning>, carried: &[bool], budget: &Arc<MemoryBudget>) -> Self {
        let mut beside = carried::Words::default();
        let place = |(meaning, carried): (&Meaning, &bool)| carried.then(|| beside.place(meaning, budget)).flatten();
        let places = meanings.iter().zip(carried).map(place).collect();
        Self::with_places(meanings, places, beside.len())
    }

    /// Keys of some columns, of which some have a place beside the key, which takes so many words.
    fn with_places(meanings: Vec<Meaning>, beside: Vec<Option<carried::Place>>, carried: usize) -> Self {
        let (mut nulls, mut places) = (Vec::new(), Vec::new());
        for (meaning, beside) in meanings.iter().zip(beside) {
            places.push(match beside {
                Some(place) => Place::Carried(place),
                None => Place::Key(nulls.len()),
            });
            if let Some(Place::Key(at)) = places.last() {
                let null = at + meaning.width();
                nulls.extend((0..meaning.width()).map(|_| Some(null)));
                nulls.push(None);
            }
        }
        let layout = Layout::new(&nulls);
        let numbers = vec![Vec::new(); layout.fields()];
        Self { meanings, places, carried, layout, numbers, packed: Vec::new(), outside: Vec::new(), expected: 0 }
    }

    /// Makes room for the numbers that columns are expected to have, one range a column: what comes to be known only by and by makes groups move
    /// again and again.
    #[must_use]
    pub fn expecting(mut self, ranges: &[Bounds]) -> Self {
        for ((meaning, place), range) in self.meanings.iter().zip(&self.places).zip(ranges) {
            if let (Some((least, greatest)), 1, Place::Key(at)) = (range, meaning.width(), place) {
                self.layout = self.layout.widened(*at, *least, *greatest);
            }
        }
        self
    }

    /// Expects about so many different keys: their tables may then have an address for each number, if there are not many more of these.
    #[must_use]
    pub fn expecting_groups(self, groups: usize) -> Self {
        Self { expected: groups, ..self }
    }

    /// The same keys where few of them will come, with other numbers of a column.
    #[must_use]
    pub fn expecting_few(&self, column: usize, least: i64, greatest: i64) -> Self {
        let mut few = Self { expected: 0, ..self.clone() };
        if let (Some(Place::Key(at)), Some(1)) =
            (self.places.get(column), self.meanings.get(column).map(Meaning::width))
        {
            few.layout = few.layout.with_range(*at, least, greatest);
        }
        few
    }

    /// Whether a key takes one word, as far as the numbers of its columns are known.
    pub fn fit_a_word(&self) -> bool {
        self.layout.words() == 1
    }

    /// The meanings of its columns.
    pub fn meanings(&self) -> &[Meaning] {
        &self.meanings
    }

    /// Words of a group's states that come before those of aggregates: the numbers of carried columns.
    pub(crate) fn carried(&self) -> usize {
        self.carried
    }

    /// No groups of such keys, whose states take so many words, those of carried columns among them.
    pub fn rows(&self, states: usize, budget: &Arc<MemoryBudget>) -> Rows {
        Rows::new(&self.layout, states, self.expected, budget)
    }

    /// The group of each row.
    ///
    /// # Errors
    /// If there is no memory for new groups, none of which was made then, or values can't be had.
    pub fn groups(&mut self, columns: &[Vector], count: usize, rows: &mut Rows, into: &mut Vec<u32>) -> Result<()> {
        self.read(columns, count)?;
        self.find(count, rows, into)
    }

    /// Has the numbers of rows ready to be packed.
    fn read(&mut self, columns: &[Vector], count: usize) -> Result<()> {
        for ((meaning, place), column) in self.meanings.iter().zip(&self.places).zip(columns) {
            let &Place::Key(at) = place else { continue };
            let (values, rest) = self.numbers[at..].split_at_mut(meaning.width());
            meaning.read(column, values)?;
            if let Some(is_null) = rest.first_mut() {
                mark_nulls(column.nulls().as_ref(), count, is_null);
            }
        }
        Ok(())
    }

    /// Has the numbers of rows ready. Those that are null hold anything if nulls are no keys.
    pub(crate) fn read_for(&mut self, columns: &[Vector], count: usize, nulls_are_keys: bool) -> Result<()> {
        self.read(columns, count)?;
        self.nulls_to_base();
        if !nulls_are_keys {
            for (meaning, place) in self.meanings.iter().zip(&self.places) {
                let &Place::Key(at) = place else { continue };
                self.numbers[at + meaning.width()].clear();
            }
        }
        Ok(())
    }

    /// Packs the keys of rows; if one lies outside of what there is room for, the range of each number. Those that are null hold anything
    /// if nulls are no keys.
    pub(crate) fn pack(
        &mut self,
        columns: &[Vector],
        count: usize,
        nulls_are_keys: bool,
    ) -> Result<std::result::Result<(), Vec<Bounds>>> {
        self.read_for(columns, count, nulls_are_keys)?;
        if self.layout.pack(&self.numbers, count, &mut self.packed).is_ok() {
            return Ok(Ok(()));
        }
        self.read(columns, count)?;
        let is_null = |field: usize| self.layout.null_of(field).is_none();
        let range = |field: usize| {
            let told = if is_null(field) { nulls_are_keys && !self.numbers[field].is_empty() } else { count > 0 };
            told.then(|| self.range(field))
        };
        Ok(Err((0..self.layout.fields()).map(range).collect()))
    }

    /// The words of keys that were packed, a column each.
    pub(crate) fn packed(&self) -> &[Vec<u64>] {
        &self.packed[..self.layout.words().min(self.packed.len())]
    }

    /// Makes room for numbers within ranges, one a field.
    pub(crate) fn include(&mut self, ranges: &[Bounds]) {
        for (field, range) in ranges.iter().enumerate() {
            if let Some((least, greatest)) = *range
                && !self.layout.holds(field, least, greatest)
            {
                self.layout = self.layout.widened(field, least, greatest);
            }
        }
    }

    /// The numbers that were read, and the least that has room, if they are all there is of the keys.
    pub(crate) fn sole_number(&self) -> Option<(&[i64], i64)> {
        match self.numbers.as_slice() {
            [numbers, nulls] if nulls.is_empty() && self.layout.is_sole(0) => Some((numbers, self.layout.base(0))),
            _ => None,
        }
    }

    /// Packs keys that were read, a column a word, and tells which rows hold a number that lies outside: no key equals theirs.
    pub(crate) fn pack_within(&mut self, count: usize) -> (&[Vec<u64>], &[bool]) {
        self.layout.pack_within(&self.numbers, count, &mut self.packed, &mut self.outside);
        (&self.packed[..self.layout.words()], &self.outside)
    }

    /// The group of each row of numbers that are there.
    pub(crate) fn groups_of(
        &mut self,
        numbers: Vec<Vec<i64>>,
        count: usize,
        rows: &mut Rows,
        into: &mut Vec<u32>,
    ) -> Result<()> {
        self.numbers = numbers;
        self.find(count, rows, into)
    }

    fn find(&mut self, count: usize, rows: &mut Rows, into: &mut Vec<u32>) -> Result<()> {
        rows.reserve(count)?;
        loop {
            self.nulls_to_base();
            match self.layout.pack(&self.numbers, count, &mut self.packed) {
                Ok(()) => break,
                Err(Beyond(field)) => {
                    let (least, greatest) = self.range(field);
                    self.widen(self.layout.widened(field, least, greatest), rows)?;
                    rows.reserve(count)?;
                }
            }
        }
        rows.groups(&self.packed, count, into);
        Ok(())
    }

    /// Takes a layout that has room for all that the own one has, and moves groups to it.
    pub(crate) fn widen(&mut self, layout: Layout, rows: &mut Rows) -> Result<(), OutOfMemory> {
        if layout != self.layout {
            rows.widen(&self.layout, &layout)?;
            self.layout = layout;
        }
        Ok(())
    }

    /// Rows that are null hold anything: the same number in each makes them one group.
    fn nulls_to_base(&mut self) {
        for (meaning, place) in self.meanings.iter().zip(&self.places) {
            let &Place::Key(at) = place else { continue };
            let (values, rest) = self.numbers[at..].split_at_mut(meaning.width());
            let nulls = rest.first().map_or(&[][..], Vec::as_slice);
            if !nulls.is_empty() {
                for (field, values) in values.iter_mut().enumerate() {
                    let base = self.layout.base(at + field);
                    let rows = values.iter_mut().zip(nulls).filter(|(_, null)| **null != 0);
                    rows.for_each(|(value, _)| *value = base);
                }
            }
        }
    }

    /// The least and the greatest number of a field, null rows aside.
    fn range(&self, field: usize) -> (i64, i64) {
        let numbers = self.numbers[field].iter();
        match self.layout.null_of(field).map(|null| &self.numbers[null]) {
            Some(nulls) if !nulls.is_empty() => {
                bounds(numbers.zip(nulls).filter(|(_, null)| **null == 0).map(|(number, _)| number))
            }
            _ => bounds(numbers),
        }
    }

    /// The values of some groups' keys, one array a column.
    ///
    /// # Errors
    /// If values can't be had.
    pub fn values(&self, rows: &Rows, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        let columns = self.meanings.iter().zip(&self.places);
        columns.map(|(meaning, place)| self.column(meaning, place, rows, groups)).collect()
    }

    /// Numbers in the order of a column's values; `None` if there are none.
    pub(crate) fn number_column(&self, column: usize, rows: &Rows, groups: &[u32]) -> Result<Option<ArrayRef>> {
        let numbers = match self.meanings.get(column) {
            Some(numbers @ Meaning::Numbers(..)) => numbers.clone(),
            Some(Meaning::Codes(_)) => Meaning::Numbers(Numbers::Unsigned(4), DataType::UInt32),
            Some(Meaning::Domain(_)) | None => return Ok(None),
        };
        let place = self.places.get(column);
        place.map(|place| self.column(&numbers, place, rows, groups)).transpose()
    }

    /// The numbers of a column, with a meaning.
    fn column(&self, meaning: &Meaning, place: &Place, rows: &Rows, groups: &[u32]) -> Result<ArrayRef> {
        let at = match place {
            Place::Key(at) => *at,
            Place::Carried(place) => return place.values(meaning, &rows.states_from(0), groups),
        };
        let null = at + meaning.width();
        let number = |field: usize| {
            let of_group = |&group: &u32| self.layout.unpack(rows.key(group), field);
            groups.iter().map(of_group).collect::<Vec<i64>>()
        };
        let valid: Vec<bool> = groups.iter().map(|&group| self.layout.unpack(rows.key(group), null) == 0).collect();
        let nulls = valid.contains(&false).then(|| NullBuffer::from(valid));
        meaning.values(&(at..null).map(number).collect::<Vec<_>>(), nulls)
    }

    /// The numbers of some groups' keys in one field.
    pub(crate) fn numbers(&self, rows: &Rows, groups: &[u32], field: usize) -> Vec<i64> {
        groups.iter().map(|&group| self.layout.unpack(rows.key(group), field)).collect()
    }

    /// The numbers of some groups' keys, one column a field, as [`Keys::groups_of`] takes them.
    pub(crate) fn numbers_of(&self, rows: &Rows, groups: &[u32]) -> Vec<Vec<i64>> {
        (0..self.layout.fields()).map(|field| self.numbers(rows, groups, field)).collect()
    }
}

/// One where a row is null; nothing at all if none is.
pub(crate) fn mark_nulls(nulls: Option<&NullBuffer>, rows: usize, into: &mut Vec<i64>) {
    into.clear();
    if let Some(nulls) = nulls {
        into.extend((0..rows).map(|row| i64::from(nulls.is_null(row))));
    }
}

fn bounds<'a>(mut numbers: impl Iterator<Item = &'a i64>) -> (i64, i64) {
    let Some(&first) = numbers.next() else { return (0, 0) };
    numbers.fold((first, first), |(least, greatest), &number| (least.min(number), greatest.max(number)))
}
