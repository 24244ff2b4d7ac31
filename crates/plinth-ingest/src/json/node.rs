//! JSON values to arrays, as a type says.
//!
//! A node takes one value at a time and always appends exactly one, a null where it refuses the value: what belongs to one
//! record stays in one row, and the row can be left out later. Where the JSON is broken half way, [`Node::settle`] fills up
//! what is missing.

use std::sync::Arc;

use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{
    ArrayRef, FixedSizeListArray, GenericListArray, MapArray, OffsetSizeTrait, PrimitiveArray, StructArray,
};
use arrow_buffer::{NullBuffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, FieldRef};

use super::flaw::Flaw;
use super::members::Members;
use super::number::{float, integer};
use super::record::{Path, Record};
use super::tokenizer::{Kind, Tokenizer};
use crate::values::digits::usual_float;
use crate::values::number::{LONG_INTEGER, OUTSIDE, whole_number};
use crate::values::scalar::taken;
use crate::values::scalar::{ColumnBuilder, Spelling, column_builder, spelling};
use crate::values::types::width;

/// Levels of lists, structs and maps that a type may have. What handles types calls itself for each of them.
pub(super) const LEVELS: usize = 64;

/// Collects the values of one type.
pub(super) struct Node {
    nullable: bool,
    valid: NullBufferBuilder,
    shape: Shape,
}

enum Shape {
    Floats(Vec<f64>),
    Integers(Vec<i64>),
    Scalar(Box<dyn ColumnBuilder>, Spelling),
    List { item: Box<Node>, field: FieldRef, width: usize, ends: Vec<usize>, large: bool },
    FixedList { item: Box<Node>, field: FieldRef, size: usize },
    Struct(Box<Members>),
    Map(Box<Entries>),
}

/// A map's keys and values.
struct Entries {
    field: FieldRef,
    width: usize,
    keys: Box<dyn ColumnBuilder>,
    values: Node,
    /// Keys appended.
    count: usize,
    ends: Vec<usize>,
    sorted: bool,
}

impl Node {
    /// `None` if values of the type can't be read from text, or if it has more levels.
    pub(super) fn new(field: &FieldRef, given: bool, levels: usize) -> Option<Self> {
        let levels = levels.checked_sub(1)?;
        let inner = |item: &FieldRef| Some(Box::new(Self::new(item, given, levels)?));
        let shape = match field.data_type() {
            DataType::Float64 => Shape::Floats(Vec::new()),
            DataType::Int64 => Shape::Integers(Vec::new()),
            DataType::List(item) | DataType::LargeList(item) => Shape::List {
                item: inner(item)?,
                field: relaxed(item),
                width: width(item.data_type()),
                ends: Vec::new(),
                large: matches!(field.data_type(), DataType::LargeList(_)),
            },
            DataType::FixedSizeList(item, size) => {
                Shape::FixedList { item: inner(item)?, field: relaxed(item), size: usize::try_from(*size).ok()? }
            }
            DataType::Struct(fields) => Shape::Struct(Box::new(Members::new(fields, given, levels).ok()?)),
            DataType::Map(entries, sorted) => {
                let DataType::Struct(pair) = entries.data_type() else { return None };
                let [key, value] = pair.as_ref() else { return None };
                let DataType::Map(relaxed, _) = relaxed_type(field.data_type()) else { return None };
                Shape::Map(Box::new(Entries {
                    field: relaxed,
                    width: width(entries.data_type()),
                    keys: column_builder(key.data_type(), true)?,
                    values: Self::new(value, given, levels)?,
                    count: 0,
                    ends: Vec::new(),
                    sorted: *sorted,
                }))
            }
            scalar => Shape::Scalar(column_builder(scalar, given)?, spelling(scalar)),
        };
        Some(Self { nullable: field.is_nullable(), valid: NullBufferBuilder::new(0), shape })
    }

    /// Appends the next value, and says whether the record's first misfit is in it.
    #[inline(always)]
    pub(super) fn push(
        &mut self,
        tokens: &mut Tokenizer<'_>,
        record: &mut Record<'_>,
        path: Path<'_>,
    ) -> Result<bool, Flaw> {
        if let Shape::Floats(values) = &mut self.shape
            && let Some((value, end)) = usual_float(tokens.text().as_bytes(), tokens.at())
        {
            tokens.scalar(end)?;
            values.push(value);
            self.valid.append_non_null();
            return Ok(false);
        }
        self.push_other(tokens, record, path)
    }

    /// The values, if they are doubles. After some were appended, [`Self::appended`] is due.
    pub(super) fn doubles(&mut self) -> Option<&mut Vec<f64>> {
        match &mut self.shape {
            Shape::Floats(values) => Some(values),
            _ => None,
        }
    }

    pub(super) fn appended(&mut self, count: usize) {
        self.valid.append_n_non_nulls(count);
    }

    /// As [`Self::push`], where it is not the usual double.
    #[inline(never)]
    fn push_other(
        &mut self,
        tokens: &mut Tokenizer<'_>,
        record: &mut Record<'_>,
        path: Path<'_>,
    ) -> Result<bool, Flaw> {
        match &mut self.shape {
            Shape::Floats(values) if matches!(tokens.peek(), b'-' | b'0'..=b'9') => {
                let number = float(tokens.text(), tokens.at())?;
                tokens.scalar(number.end)?;
                let exact = !number.long_integer || record.rules.given;
                if exact && number.value.is_finite() {
                    values.push(number.value);
                    self.valid.append_non_null();
                    return Ok(false);
                }
                let why = if exact { OUTSIDE } else { LONG_INTEGER };
                Ok(self.refuse(record, why))
            }
            Shape::Integers(values) if matches!(tokens.peek(), b'-' | b'0'..=b'9') => {
                let value = match integer(tokens.text().as_bytes(), tokens.at()) {
                    Some((value, end)) => tokens.scalar(end).map(|()| Ok(value))?,
                    None => whole_number::<Int64Type>(tokens.number()?, record.rules.given),
                };
                match value {
                    Ok(value) => {
                        values.push(value);
                        self.valid.append_non_null();
                        Ok(false)
                    }
                    Err(why) => Ok(self.refuse(record, why)),
                }
            }
            _ => self.push_any(tokens, record, path),
        }
    }

    fn push_any(&mut self, tokens: &mut Tokenizer<'_>, record: &mut Record<'_>, path: Path<'_>) -> Result<bool, Flaw> {
        let kind = tokens.kind()?;
        if kind == Kind::Null {
            tokens.word()?;
            return Ok(self.push_null(record, "null"));
        }
        let mut misfit = false;
        match &mut self.shape {
            Shape::Scalar(column, spelling) => {
                let taken = match (*spelling, kind) {
                    (Spelling::Text | Spelling::Quoted, Kind::String) => column.push(tokens.string()?),
                    (Spelling::Number, Kind::Number) => column.push(tokens.number()?),
                    (Spelling::Bool, Kind::Bool) => column.push(tokens.word()?),
                    (Spelling::Text, _) => column.push(tokens.raw()?),
                    // Doubles have no NaN in JSON and large integers no safe place: both come as strings.
                    (Spelling::Number | Spelling::Bool, Kind::String) if record.rules.given => {
                        column.push(tokens.string()?)
                    }
                    (expected, kind) => {
                        tokens.skip()?;
                        return Ok(self.refuse(record, mismatch(kind, spelling_name(expected))));
                    }
                };
                return Ok(match taken {
                    Ok(()) => {
                        self.valid.append_non_null();
                        false
                    }
                    Err(why) => self.refuse(record, why),
                });
            }
            Shape::Floats(_) | Shape::Integers(_) => {
                if kind != Kind::String || !record.rules.given {
                    tokens.skip()?;
                    return Ok(self.refuse(record, mismatch(kind, "number")));
                }
                let text = tokens.string()?.trim_ascii();
                let taken = match &mut self.shape {
                    Shape::Floats(values) => crate::values::number::float(text, true).map(|value| values.push(value)),
                    Shape::Integers(values) => whole_number::<Int64Type>(text, true).map(|value| values.push(value)),
                    _ => Err("internal error: a column of numbers became another".into()),
                };
                match taken {
                    Ok(()) => self.valid.append_non_null(),
                    Err(why) => return Ok(self.refuse(record, why)),
                }
                return Ok(false);
            }
            Shape::List { item, width, ends, .. } if kind == Kind::Array => {
                let mut end = ends.last().copied().unwrap_or(0);
                let mut more = tokens.open(b']')?;
                while more {
                    if record.take_room(*width) {
                        end += 1;
                        misfit |= item.push(tokens, record, path)?;
                    } else {
                        tokens.skip()?;
                        misfit |= record.no_room();
                    }
                    more = tokens.more(b']')?;
                }
                ends.push(end);
            }
            Shape::FixedList { item, size, .. } if kind == Kind::Array => {
                let mut count = 0_usize;
                let mut more = tokens.open(b']')?;
                while more {
                    count += 1;
                    if count <= *size {
                        misfit |= item.push(tokens, record, path)?;
                    } else {
                        tokens.skip()?;
                    }
                    more = tokens.more(b']')?;
                }
                (count..*size).for_each(|_| item.pad());
                if count != *size {
                    misfit |= record.misfit(format!("{count} elements where {size} are needed"));
                }
            }
            Shape::Struct(members) if kind == Kind::Object => misfit = members.push(tokens, record, path)?,
            Shape::Map(entries) if kind == Kind::Object => misfit = entries.push(tokens, record, path)?,
            shape => {
                let expected =
                    if matches!(shape, Shape::List { .. } | Shape::FixedList { .. }) { "array" } else { "object" };
                tokens.skip()?;
                return Ok(self.refuse(record, mismatch(kind, expected)));
            }
        }
        self.valid.append_non_null();
        Ok(misfit)
    }

    #[cold]
    fn refuse(&mut self, record: &mut Record<'_>, why: impl Into<std::borrow::Cow<'static, str>>) -> bool {
        self.pad();
        record.misfit(why)
    }

    /// Appends a null, and says whether that is the record's first misfit.
    pub(super) fn push_null(&mut self, record: &mut Record<'_>, what: &'static str) -> bool {
        self.pad();
        !self.nullable && record.misfit(format!("{what}, where a value is needed"))
    }

    /// Appends a null, wanted or not.
    pub(super) fn pad(&mut self) {
        match &mut self.shape {
            Shape::Floats(values) => values.push(0.0),
            Shape::Integers(values) => values.push(0),
            Shape::Scalar(column, _) => column.push_null(),
            Shape::List { ends, .. } => ends.push(ends.last().copied().unwrap_or(0)),
            Shape::Map(entries) => entries.ends.push(entries.count),
            Shape::FixedList { item, size, .. } => (0..*size).for_each(|_| item.pad()),
            Shape::Struct(members) => members.pad(),
        }
        self.valid.append_null();
    }

    /// Brings a node that broke off within a value to `len` values; it has them already, or all but one.
    pub(super) fn settle(&mut self, len: usize) {
        match &mut self.shape {
            Shape::Floats(_) | Shape::Integers(_) | Shape::Scalar(..) => {
                (self.valid.len()..len).for_each(|_| self.pad());
                return;
            }
            Shape::Struct(members) => members.settle(len),
            Shape::FixedList { item, size, .. } => item.settle(len * *size),
            Shape::List { item, ends, .. } => {
                // What was begun, or is complete but for its list, belongs to the null that stands for the list.
                let end = item.len();
                item.settle(end);
                if ends.len() < len {
                    ends.push(end);
                }
            }
            Shape::Map(entries) => {
                entries.values.settle(entries.count);
                if entries.ends.len() < len {
                    entries.ends.push(entries.count);
                }
            }
        }
        (self.valid.len()..len).for_each(|_| self.valid.append_null());
    }

    /// Values begun.
    fn len(&self) -> usize {
        match &self.shape {
            Shape::Struct(members) => members.len(),
            Shape::FixedList { item, size, .. } => item.len().div_ceil((*size).max(1)).max(self.valid.len()),
            Shape::List { item, ends, .. } => ends.len() + usize::from(item.len() > ends.last().copied().unwrap_or(0)),
            Shape::Map(entries) => {
                let Entries { count, ends, .. } = entries.as_ref();
                ends.len() + usize::from(*count > ends.last().copied().unwrap_or(0))
            }
            _ => self.valid.len(),
        }
    }

    pub(super) fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let len = self.valid.len();
        let valid = self.valid.finish();
        Ok(match &mut self.shape {
            Shape::Floats(values) => Arc::new(PrimitiveArray::<Float64Type>::new(taken(values), valid)),
            Shape::Integers(values) => Arc::new(PrimitiveArray::<Int64Type>::new(taken(values), valid)),
            Shape::Scalar(column, _) => column.finish(),
            Shape::List { item, field, ends, large: false, .. } => list::<i32>(field, ends, item.finish()?, valid)?,
            Shape::List { item, field, ends, large: true, .. } => list::<i64>(field, ends, item.finish()?, valid)?,
            Shape::FixedList { item, field, size } => {
                let size = i32::try_from(*size).map_err(|e| ArrowError::ComputeError(e.to_string()))?;
                let items = item.finish()?;
                Arc::new(FixedSizeListArray::try_new_with_length(Arc::clone(field), size, items, valid, len)?)
            }
            Shape::Struct(members) => {
                let (fields, columns) = members.finish()?;
                let fields = fields.iter().map(relaxed).collect();
                Arc::new(StructArray::try_new_with_length(fields, columns, valid, len)?)
            }
            Shape::Map(entries) => entries.finish(valid)?,
        })
    }
}

impl Entries {
    fn push(&mut self, tokens: &mut Tokenizer<'_>, record: &mut Record<'_>, path: Path<'_>) -> Result<bool, Flaw> {
        let mut misfit = false;
        let mut more = tokens.open(b'}')?;
        while more {
            let room = record.take_room(self.width);
            let name = tokens.key()?;
            // Keys are never null: with a key that is refused the whole entry goes.
            match if room { self.keys.push(name) } else { Ok(()) } {
                Ok(()) if room => {
                    self.count += 1;
                    misfit |= self.values.push(tokens, record, path)?;
                }
                Ok(()) => {
                    tokens.skip()?;
                    misfit |= record.no_room();
                }
                Err(why) => {
                    tokens.skip()?;
                    misfit |= record.misfit(why);
                }
            }
            more = tokens.more(b'}')?;
        }
        self.ends.push(self.count);
        Ok(misfit)
    }

    fn finish(&mut self, valid: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
        let DataType::Struct(pair) = self.field.data_type() else {
            return Err(ArrowError::SchemaError("a map without entries".to_owned()));
        };
        self.count = 0;
        let pairs = StructArray::try_new(pair.clone(), vec![self.keys.finish(), self.values.finish()?], None)?;
        let offsets = offsets(&mut self.ends)?;
        Ok(Arc::new(MapArray::try_new(Arc::clone(&self.field), offsets, pairs, valid, self.sorted)?))
    }
}

/// A type whose parts may be null, for rows that will be left out.
fn relaxed_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::List(item) => DataType::List(relaxed(item)),
        DataType::LargeList(item) => DataType::LargeList(relaxed(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(relaxed(item), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(relaxed).collect()),
        DataType::Map(entries, sorted) => {
            let pairs = match entries.data_type() {
                DataType::Struct(pair) => {
                    pair.iter().enumerate().map(|(at, f)| if at == 0 { Arc::clone(f) } else { relaxed(f) })
                }
                _ => return data_type.clone(),
            };
            let pairs = DataType::Struct(pairs.collect());
            DataType::Map(Arc::new(entries.as_ref().clone().with_data_type(pairs)), *sorted)
        }
        other => other.clone(),
    }
}

fn relaxed(field: &FieldRef) -> FieldRef {
    Arc::new(Field::new(field.name(), relaxed_type(field.data_type()), true))
}

fn list<O: OffsetSizeTrait>(
    field: &FieldRef,
    ends: &mut Vec<usize>,
    values: ArrayRef,
    valid: Option<NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    Ok(Arc::new(GenericListArray::<O>::try_new(Arc::clone(field), offsets(ends)?, values, valid)?))
}

fn offsets<O: OffsetSizeTrait>(ends: &mut Vec<usize>) -> Result<OffsetBuffer<O>, ArrowError> {
    let too_many = || ArrowError::OffsetOverflowError(ends.last().copied().unwrap_or(0));
    let offsets = std::iter::once(&0).chain(ends.iter()).map(|end| O::from_usize(*end)).collect::<Option<Vec<O>>>();
    let offsets = offsets.ok_or_else(too_many)?;
    ends.clear();
    Ok(OffsetBuffer::new(ScalarBuffer::from(offsets)))
}

fn mismatch(kind: Kind, expected: &str) -> String {
    let article = if matches!(expected, "array" | "object") { "an" } else { "a" };
    format!("a JSON {} where {article} {expected} is expected", kind_name(kind))
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Null => "null",
        Kind::Bool => "true or false",
        Kind::Number => "number",
        Kind::String => "string",
        Kind::Array => "array",
        Kind::Object => "object",
    }
}

fn spelling_name(spelling: Spelling) -> &'static str {
    match spelling {
        Spelling::Text | Spelling::Quoted => "string",
        Spelling::Number => "number",
        Spelling::Bool => "true or false",
    }
}
