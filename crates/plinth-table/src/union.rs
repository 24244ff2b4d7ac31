//! One schema for many files.
//!
//! Columns, and the fields of structs, are united by name in the order of their first appearance; one that a file lacks is
//! null there. Where types differ, the table has the narrowest type that holds every value of each exactly:
//!
//! - integers of either sign: the narrowest integer that holds both (`u32` and `i8` meet in `i64`);
//! - floats: the wider one; integers of at most 32 bits and floats of any width: `f64`;
//! - decimals: as many digits before and after the point as either has;
//! - a column of nothing but nulls without a type: the other type;
//! - lists, maps and structs: part by part.
//!
//! Nothing else meets. Numbers are not text, and a time of one unit or zone is not one of another: reading one as the other
//! can lose digits, overflow or change what it means. What the united type is does not depend on the order of the files.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use plinth_format::{FormatError, Result};

/// The schemas of files, united one after the other.
#[derive(Clone, Debug, Default)]
pub struct SchemaUnion {
    columns: Members,
    metadata: HashMap<String, String>,
    /// The different ones, most of which are most often one.
    seen: Vec<SchemaRef>,
    /// The files that the first of each kind of column came from, by their place here.
    files: Vec<String>,
}

/// A place in [`SchemaUnion::files`].
type Origin = usize;

/// Columns or fields by name.
#[derive(Clone, Debug, Default)]
struct Members {
    list: Vec<Member>,
    places: HashMap<String, usize>,
    /// Schemas or struct types united here.
    united: usize,
}

/// A column, field or item.
#[derive(Clone, Debug)]
struct Member {
    /// As it appeared first.
    field: FieldRef,
    nullable: bool,
    shape: Shape,
    /// How many of those united have it.
    united: usize,
}

/// The types of a column so far.
#[derive(Clone, Debug)]
enum Shape {
    /// Nothing but nulls.
    Null,
    Number(Numbers),
    Decimal {
        before_point: i16,
        scale: i8,
        bits: u16,
        origin: Origin,
    },
    Struct(Members, Origin),
    List(Box<Member>, Origin),
    FixedList(Box<Member>, i32, Origin),
    Map(Box<Member>, Box<Member>, MapShape),
    /// Meets only itself.
    Other(DataType, Origin),
}

/// The widest of each kind of number, in bits, and where it came from.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    signed: Option<(u16, Origin)>,
    unsigned: Option<(u16, Origin)>,
    float: Option<(u16, Origin)>,
}

/// What a map is besides its keys and values.
#[derive(Clone, Debug)]
struct MapShape {
    entries: FieldRef,
    sorted: bool,
    origin: Origin,
}

/// Two types that do not meet.
struct Conflict {
    path: String,
    before: String,
    origin: Origin,
    now: DataType,
}

impl SchemaUnion {
    /// Of no files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file's schema, as [`plinth_format::File::schema`] gives it.
    ///
    /// # Errors
    /// If a column's type does not meet that of the files before; both files and types are named. The union is as it was.
    pub fn add(&mut self, file: &str, schema: &SchemaRef) -> Result<()> {
        if self.seen.iter().any(|seen| Arc::ptr_eq(seen, schema) || seen.fields() == schema.fields()) {
            return Ok(());
        }
        let mut columns = self.columns.clone();
        let origin = self.files.len();
        columns.add(schema.fields(), origin).map_err(|conflict| {
            let before = self.files.get(conflict.origin).map_or("the same file", String::as_str);
            FormatError::InvalidArgument(format!(
                "column {:?} is {} in {before} but {} in {file}: no type holds the values of both; rewrite one of them with \
                 a cast",
                conflict.path, conflict.before, conflict.now,
            ))
        })?;
        if self.seen.is_empty() {
            self.metadata.clone_from(schema.metadata());
        }
        self.columns = columns;
        self.files.push(file.to_owned());
        self.seen.push(Arc::clone(schema));
        Ok(())
    }

    /// The schema of the table.
    pub fn schema(&self) -> SchemaRef {
        match self.seen.as_slice() {
            [only] => Arc::clone(only),
            _ => Arc::new(Schema::new_with_metadata(self.columns.fields(), self.metadata.clone())),
        }
    }
}

/// Whether every value of one type is exactly one of another, so that [`crate::widen`] can make it one.
pub fn can_widen(from: &DataType, to: &DataType) -> bool {
    if from == to {
        return true;
    }
    let named = |data_type: &DataType| Field::new("", data_type.clone(), true);
    let Ok(mut member) = Member::new(&Arc::new(named(to)), 0, "") else { return false };
    // It adds nothing: what they have in common is the wider one, whatever may be null.
    member.add(&Arc::new(named(from)), 1, "").is_ok() && same_but_nulls(&member.shape.data_type(), to)
}

/// Whether two types differ at most in what may be null.
fn same_but_nulls(a: &DataType, b: &DataType) -> bool {
    let fields = |a: &FieldRef, b: &FieldRef| a.name() == b.name() && same_but_nulls(a.data_type(), b.data_type());
    match (a, b) {
        (DataType::Struct(a), DataType::Struct(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| fields(a, b)),
        (DataType::List(a), DataType::List(b)) => fields(a, b),
        (DataType::FixedSizeList(a, n), DataType::FixedSizeList(b, m)) => n == m && fields(a, b),
        (DataType::Map(a, x), DataType::Map(b, y)) => x == y && fields(a, b),
        _ => a == b,
    }
}

impl Members {
    fn add(&mut self, fields: &Fields, origin: Origin) -> Result<(), Conflict> {
        self.add_below(fields, origin, "")
    }

    fn add_below(&mut self, fields: &Fields, origin: Origin, parent: &str) -> Result<(), Conflict> {
        for field in fields {
            let path = if parent.is_empty() { field.name().clone() } else { format!("{parent}.{}", field.name()) };
            match self.places.get(field.name()).and_then(|&at| self.list.get_mut(at)) {
                Some(member) => member.add(field, origin, &path)?,
                None => {
                    self.places.insert(field.name().clone(), self.list.len());
                    self.list.push(Member::new(field, origin, &path)?);
                }
            }
        }
        self.united += 1;
        Ok(())
    }

    fn fields(&self) -> Fields {
        self.list.iter().map(|member| member.field(member.united < self.united)).collect()
    }
}

impl Member {
    fn new(field: &FieldRef, origin: Origin, path: &str) -> Result<Self, Conflict> {
        let mut member = Self { field: Arc::clone(field), nullable: false, shape: Shape::Null, united: 0 };
        member.add(field, origin, path)?;
        Ok(member)
    }

    fn add(&mut self, field: &FieldRef, origin: Origin, path: &str) -> Result<(), Conflict> {
        self.shape.add(field.data_type(), origin, path)?;
        self.nullable |= field.is_nullable() || field.data_type().is_null();
        self.united += 1;
        Ok(())
    }

    fn field(&self, missing: bool) -> FieldRef {
        let data_type = self.shape.data_type();
        let nullable = self.nullable || missing;
        if *self.field.data_type() == data_type && self.field.is_nullable() == nullable {
            return Arc::clone(&self.field);
        }
        Arc::new(self.field.as_ref().clone().with_data_type(data_type).with_nullable(nullable))
    }
}

impl Shape {
    fn new(data_type: &DataType, origin: Origin, path: &str) -> Result<Self, Conflict> {
        let item = |field: &FieldRef, name: &str| Member::new(field, origin, &format!("{path}{name}")).map(Box::new);
        Ok(match data_type {
            DataType::Null => Self::Null,
            DataType::Struct(fields) => {
                let mut members = Members::default();
                members.add_below(fields, origin, path)?;
                Self::Struct(members, origin)
            }
            DataType::List(field) => Self::List(item(field, "[]")?, origin),
            DataType::FixedSizeList(field, n) => Self::FixedList(item(field, "[]")?, *n, origin),
            DataType::Map(entries, sorted) => match entries.data_type() {
                DataType::Struct(fields) if fields.len() == 2 => {
                    let shape = MapShape { entries: Arc::clone(entries), sorted: *sorted, origin };
                    Self::Map(item(&fields[0], "[key]")?, item(&fields[1], "[value]")?, shape)
                }
                _ => Self::Other(data_type.clone(), origin),
            },
            other => match (Numbers::of(other, origin), decimal(other)) {
                (Some(numbers), _) => Self::Number(numbers),
                (_, Some((precision, scale, bits))) => {
                    Self::Decimal { before_point: i16::from(precision) - i16::from(scale), scale, bits, origin }
                }
                _ => Self::Other(other.clone(), origin),
            },
        })
    }

    fn add(&mut self, data_type: &DataType, origin: Origin, path: &str) -> Result<(), Conflict> {
        let conflict = |before: DataType, origin| {
            Err(Conflict { path: path.to_owned(), before: before.to_string(), origin, now: data_type.clone() })
        };
        match (&mut *self, data_type) {
            (_, DataType::Null) => Ok(()),
            (Self::Null, _) => {
                *self = Self::new(data_type, origin, path)?;
                Ok(())
            }
            (Self::Struct(members, _), DataType::Struct(fields)) => members.add_below(fields, origin, path),
            (Self::List(item, _), DataType::List(field)) => item.add(field, origin, &format!("{path}[]")),
            (Self::FixedList(item, n, _), DataType::FixedSizeList(field, m)) if n == m => {
                item.add(field, origin, &format!("{path}[]"))
            }
            (Self::Map(key, value, map), DataType::Map(entries, sorted)) => match entries.data_type() {
                DataType::Struct(fields) if fields.len() == 2 => {
                    key.add(&fields[0], origin, &format!("{path}[key]"))?;
                    value.add(&fields[1], origin, &format!("{path}[value]"))?;
                    map.sorted &= sorted;
                    Ok(())
                }
                _ => {
                    let origin = map.origin;
                    conflict(self.data_type(), origin)
                }
            },
            (Self::Number(numbers), _) => match Numbers::of(data_type, origin) {
                Some(new) => match numbers.meet(new) {
                    Ok(met) => {
                        *numbers = met;
                        Ok(())
                    }
                    Err((before, origin)) => conflict(before, origin),
                },
                None => {
                    let origin = numbers.origin();
                    conflict(self.data_type(), origin)
                }
            },
            (Self::Decimal { before_point, scale, bits, origin: before }, _) => match decimal(data_type) {
                Some((new_precision, new_scale, new_bits)) => {
                    let most = (*before_point).max(i16::from(new_precision) - i16::from(new_scale));
                    let most_scale = (*scale).max(new_scale);
                    if most + i16::from(most_scale) > 76 {
                        let before = *before;
                        return conflict(self.data_type(), before);
                    }
                    (*before_point, *scale, *bits) = (most, most_scale, (*bits).max(new_bits));
                    Ok(())
                }
                None => {
                    let before = *before;
                    conflict(self.data_type(), before)
                }
            },
            (Self::Other(known, _), new) if known == new => Ok(()),
            (
                Self::Other(_, before)
                | Self::Struct(_, before)
                | Self::List(_, before)
                | Self::FixedList(_, _, before),
                _,
            ) => {
                let before = *before;
                conflict(self.data_type(), before)
            }
            (Self::Map(_, _, map), _) => {
                let before = map.origin;
                conflict(self.data_type(), before)
            }
        }
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Null => DataType::Null,
            Self::Number(numbers) => numbers.resolve().unwrap_or(DataType::Null),
            Self::Decimal { before_point, scale, bits, .. } => decimal_type(*before_point, *scale, *bits),
            Self::Struct(members, _) => DataType::Struct(members.fields()),
            Self::List(item, _) => DataType::List(item.field(false)),
            Self::FixedList(item, n, _) => DataType::FixedSizeList(item.field(false), *n),
            Self::Map(key, value, map) => {
                let fields: Fields = [key.field(false), value.field(false)].into_iter().collect();
                let entries = map.entries.as_ref().clone().with_data_type(DataType::Struct(fields));
                DataType::Map(Arc::new(entries), map.sorted)
            }
            Self::Other(data_type, _) => data_type.clone(),
        }
    }
}

impl Numbers {
    fn of(data_type: &DataType, origin: Origin) -> Option<Self> {
        let signed = |bits| Self { signed: Some((bits, origin)), ..Self::default() };
        let unsigned = |bits| Self { unsigned: Some((bits, origin)), ..Self::default() };
        let float = |bits| Self { float: Some((bits, origin)), ..Self::default() };
        Some(match data_type {
            DataType::Int8 => signed(8),
            DataType::Int16 => signed(16),
            DataType::Int32 => signed(32),
            DataType::Int64 => signed(64),
            DataType::UInt8 => unsigned(8),
            DataType::UInt16 => unsigned(16),
            DataType::UInt32 => unsigned(32),
            DataType::UInt64 => unsigned(64),
            DataType::Float16 => float(16),
            DataType::Float32 => float(32),
            DataType::Float64 => float(64),
            _ => return None,
        })
    }

    /// The widest of each kind, or the type before that does not meet the new one.
    fn meet(self, new: Self) -> Result<Self, (DataType, Origin)> {
        let wider = |a: Option<(u16, Origin)>, b: Option<(u16, Origin)>| match (a, b) {
            (Some(a), Some(b)) => Some(if b.0 > a.0 { b } else { a }),
            (a, b) => a.or(b),
        };
        let met = Self {
            signed: wider(self.signed, new.signed),
            unsigned: wider(self.unsigned, new.unsigned),
            float: wider(self.float, new.float),
        };
        if met.resolve().is_some() {
            return Ok(met);
        }
        // One of the kinds before can't meet the new type: it is the one to name.
        let kinds = [
            Self { signed: self.signed, ..Self::default() },
            Self { unsigned: self.unsigned, ..Self::default() },
            Self { float: self.float, ..Self::default() },
        ];
        let culprit = kinds.into_iter().filter(|kind| kind.resolve().is_some()).find(|kind| {
            let both = Self {
                signed: wider(kind.signed, new.signed),
                unsigned: wider(kind.unsigned, new.unsigned),
                float: wider(kind.float, new.float),
            };
            both.resolve().is_none()
        });
        let culprit = culprit.unwrap_or(self);
        Err((culprit.resolve().unwrap_or(DataType::Null), culprit.origin()))
    }

    fn origin(&self) -> Origin {
        [self.signed, self.unsigned, self.float].into_iter().flatten().map(|(_, origin)| origin).min().unwrap_or(0)
    }

    /// The narrowest type that holds all; `None` if there is none.
    fn resolve(&self) -> Option<DataType> {
        let bits = |kind: Option<(u16, Origin)>| kind.map_or(0, |(bits, _)| bits);
        let (signed, unsigned, float) = (bits(self.signed), bits(self.unsigned), bits(self.float));
        Some(match (signed, unsigned, float) {
            (0, 0, 16) => DataType::Float16,
            (0, 0, 32) => DataType::Float32,
            (0, 0, 64) => DataType::Float64,
            (0..=32, 0..=32, 16..) => DataType::Float64,
            (_, _, 16..) => return None,
            (0, 8, _) => DataType::UInt8,
            (0, 16, _) => DataType::UInt16,
            (0, 32, _) => DataType::UInt32,
            (0, 64, _) => DataType::UInt64,
            // A sign takes a bit, so an unsigned integer needs twice its width.
            _ => match signed.max(unsigned * 2) {
                8 => DataType::Int8,
                16 => DataType::Int16,
                32 => DataType::Int32,
                64 => DataType::Int64,
                _ => return None,
            },
        })
    }
}

/// Precision, scale and bits of a decimal type.
fn decimal(data_type: &DataType) -> Option<(u8, i8, u16)> {
    Some(match data_type {
        DataType::Decimal32(precision, scale) => (*precision, *scale, 32),
        DataType::Decimal64(precision, scale) => (*precision, *scale, 64),
        DataType::Decimal128(precision, scale) => (*precision, *scale, 128),
        DataType::Decimal256(precision, scale) => (*precision, *scale, 256),
        _ => return None,
    })
}

/// The decimal of at least `bits` with this many digits before the point and behind it.
fn decimal_type(before_point: i16, scale: i8, bits: u16) -> DataType {
    let precision = u8::try_from(before_point + i16::from(scale)).unwrap_or(u8::MAX).max(1);
    match (precision, bits) {
        (..=9, 32) => DataType::Decimal32(precision, scale),
        (..=18, ..=64) => DataType::Decimal64(precision, scale),
        (..=38, ..=128) => DataType::Decimal128(precision, scale),
        _ => DataType::Decimal256(precision, scale),
    }
}

#[cfg(test)]
#[path = "union_tests.rs"]
mod tests;
