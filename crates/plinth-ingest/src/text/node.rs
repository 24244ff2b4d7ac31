//! JSON values to arrays, nested ones included.
//!
//! A node gets one value at a time and always appends exactly one, a null where it refuses the value: what belongs to one
//! record stays in one row, and the row can be left out later.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, FixedSizeListArray, GenericListArray, MapArray, OffsetSizeTrait, RecordBatch, RecordBatchOptions,
    StructArray,
};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, SchemaRef};

use super::csv::Field as CsvField;
use super::json::{Cursor, Kind};
use super::scalar::{Column, Spelling, Why, column, spelling};

/// Whether values are taken as a schema that was given says, and keys that it lacks passed over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) given: bool,
    pub(crate) ignore_extra: bool,
}

/// Values that the lists and maps of one record may hold at least, counted as [`width`] does. A list of empty objects is
/// short as text, however many fields each of them has as a struct.
pub(crate) const RECORD_VALUES: usize = 64 << 20;

/// Values that one value of a type takes room for: those of structs and of lists of a fixed size are there even where they
/// are null. What is in other lists and in maps is not counted.
pub(crate) fn width(data_type: &DataType) -> usize {
    match data_type {
        DataType::Struct(fields) => fields.iter().map(|f| width(f.data_type())).fold(1, usize::saturating_add),
        DataType::FixedSizeList(item, size) => {
            width(item.data_type()).saturating_mul(usize::try_from(*size).unwrap_or(0)).saturating_add(1)
        }
        // Room for a value is some sixteen bytes.
        DataType::FixedSizeBinary(size) => 1 + usize::try_from(*size).unwrap_or(0) / 16,
        _ => 1,
    }
}

/// What is wrong with a record.
#[derive(Debug)]
pub(crate) struct Fault {
    /// The column, innermost name last.
    pub(crate) column: Vec<String>,
    pub(crate) why: Why,
    /// Whether the record is sound as such but not of the types that are expected.
    pub(crate) misfit: bool,
}

impl Fault {
    fn misfit(why: impl Into<Why>) -> Self {
        Self { column: Vec::new(), why: why.into(), misfit: true }
    }

    fn within(mut self, name: &str) -> Self {
        self.column.insert(0, name.to_owned());
        self
    }
}

type Outcome = Result<(), Fault>;

/// The first fault of several.
fn first(all: &mut Outcome, next: Outcome) {
    if all.is_ok() {
        *all = next;
    }
}

/// Collects the values of one type.
struct Node {
    nullable: bool,
    valid: BooleanBufferBuilder,
    shape: Shape,
}

enum Shape {
    Scalar(Box<dyn Column>, Spelling),
    List { item: Box<Node>, field: FieldRef, width: usize, ends: Vec<usize>, large: bool },
    FixedList { item: Box<Node>, field: FieldRef, size: usize },
    Struct(Box<Members>),
    Map { entries: FieldRef, width: usize, key: Box<Node>, value: Box<Node>, ends: Vec<usize>, sorted: bool },
}

/// The named parts of a struct, or the columns of a record.
struct Members {
    fields: Fields,
    nodes: Vec<Node>,
    by_name: HashMap<String, usize>,
    /// Per member, the last value (counted from one) that had it.
    seen: Vec<u64>,
    values: u64,
}

impl Node {
    /// `None` if values of the type can't be read from text.
    fn new(field: &FieldRef, given: bool) -> Option<Self> {
        let shape = match field.data_type() {
            DataType::List(item) | DataType::LargeList(item) => Shape::List {
                item: Box::new(Self::new(item, given)?),
                field: relaxed(item),
                width: width(item.data_type()),
                ends: Vec::new(),
                large: matches!(field.data_type(), DataType::LargeList(_)),
            },
            DataType::FixedSizeList(item, size) => Shape::FixedList {
                item: Box::new(Self::new(item, given)?),
                field: relaxed(item),
                size: usize::try_from(*size).ok()?,
            },
            DataType::Struct(fields) => Shape::Struct(Box::new(Members::new(fields, given).ok()?)),
            DataType::Map(entries, sorted) => {
                let DataType::Struct(pair) = entries.data_type() else { return None };
                let [key, value] = pair.as_ref() else { return None };
                let DataType::Map(relaxed, _) = relaxed_type(field.data_type()) else { return None };
                Shape::Map {
                    entries: relaxed,
                    width: width(entries.data_type()),
                    key: Box::new(Self::new(key, true).filter(|key| matches!(key.shape, Shape::Scalar(..)))?),
                    value: Box::new(Self::new(value, given)?),
                    ends: Vec::new(),
                    sorted: *sorted,
                }
            }
            scalar => Shape::Scalar(column(scalar, given)?, spelling(scalar)),
        };
        Some(Self { nullable: field.is_nullable(), valid: BooleanBufferBuilder::new(0), shape })
    }

    /// Appends a value; `room` is for what its lists and maps hold.
    fn push(&mut self, value: &mut Cursor<'_>, rules: Rules, room: &mut usize) -> Outcome {
        let kind = value.kind();
        if kind == Kind::Null {
            let _ = value.raw();
            return self.push_null("null");
        }
        let mut outcome = Ok(());
        match &mut self.shape {
            Shape::Scalar(column, spelling) => {
                let taken = match (*spelling, kind) {
                    (Spelling::Text | Spelling::Quoted, Kind::String) => column.push(&value.string()),
                    (Spelling::Number, Kind::Number) | (Spelling::Bool, Kind::Bool) => column.push(value.raw()),
                    (Spelling::Text, _) => column.push(value.raw()),
                    // Doubles have no NaN in JSON and large integers no safe place: both come as strings.
                    (Spelling::Number | Spelling::Bool, Kind::String) if rules.given => column.push(&value.string()),
                    (expected, kind) => {
                        let _ = value.raw();
                        Err(format!("a JSON {} where a {} is expected", kind_name(kind), spelling_name(expected))
                            .into())
                    }
                };
                return taken.map_err(|why| {
                    column.push_null();
                    Fault::misfit(why)
                });
            }
            Shape::List { item, width, ends, .. } if kind == Kind::Array => {
                let mut end = ends.last().copied().unwrap_or(0);
                value.elements(|element| {
                    if let Err(fault) = take(room, *width) {
                        let _ = element.raw();
                        return first(&mut outcome, Err(fault));
                    }
                    end += 1;
                    first(&mut outcome, item.push(element, rules, room));
                });
                ends.push(end);
            }
            Shape::FixedList { item, size, .. } if kind == Kind::Array => {
                let mut count = 0usize;
                value.elements(|element| {
                    count += 1;
                    if count <= *size {
                        first(&mut outcome, item.push(element, rules, room));
                    } else {
                        let _ = element.raw();
                    }
                });
                (count..*size).for_each(|_| item.pad());
                if count != *size {
                    first(&mut outcome, Err(Fault::misfit(format!("{count} elements where {size} are needed"))));
                }
            }
            Shape::Struct(members) if kind == Kind::Object => outcome = members.push(value, rules, room),
            Shape::Map { width, key, value: values, ends, .. } if kind == Kind::Object => {
                let mut end = ends.last().copied().unwrap_or(0);
                value.members(|name, member| {
                    if let Err(fault) = take(room, *width) {
                        let _ = member.raw();
                        return first(&mut outcome, Err(fault));
                    }
                    // Keys are never null: with a key that is refused the whole entry goes.
                    let taken = match &mut key.shape {
                        Shape::Scalar(keys, _) => keys.push(&name),
                        _ => Err("keys are scalars".into()),
                    };
                    if let Err(why) = taken {
                        let _ = member.raw();
                        return first(&mut outcome, Err(Fault::misfit(why)));
                    }
                    end += 1;
                    first(&mut outcome, values.push(member, rules, room));
                });
                ends.push(end);
            }
            shape => {
                let expected =
                    if matches!(shape, Shape::List { .. } | Shape::FixedList { .. }) { "array" } else { "object" };
                let _ = value.raw();
                self.pad();
                return Err(Fault::misfit(format!("a JSON {} where an {expected} is expected", kind_name(kind))));
            }
        }
        self.valid.append(true);
        outcome
    }

    fn push_null(&mut self, what: &'static str) -> Outcome {
        self.pad();
        if self.nullable { Ok(()) } else { Err(Fault::misfit(format!("{what}, where a value is needed"))) }
    }

    /// Appends a null, wanted or not.
    fn pad(&mut self) {
        match &mut self.shape {
            Shape::Scalar(column, _) => return column.push_null(),
            Shape::List { ends, .. } | Shape::Map { ends, .. } => ends.push(ends.last().copied().unwrap_or(0)),
            Shape::FixedList { item, size, .. } => (0..*size).for_each(|_| item.pad()),
            Shape::Struct(members) => members.nodes.iter_mut().for_each(Self::pad),
        }
        self.valid.append(false);
    }

    fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        if let Shape::Scalar(column, _) = &mut self.shape {
            return Ok(column.finish());
        }
        let len = self.valid.len();
        let valid = NullBuffer::new(self.valid.finish());
        let valid = (valid.null_count() > 0).then_some(valid);
        Ok(match &mut self.shape {
            Shape::Scalar(column, _) => column.finish(),
            Shape::List { item, field, ends, large: false, .. } => list::<i32>(field, ends, item.finish()?, valid)?,
            Shape::List { item, field, ends, large: true, .. } => list::<i64>(field, ends, item.finish()?, valid)?,
            Shape::FixedList { item, field, size } => {
                let size = i32::try_from(*size).map_err(|e| ArrowError::ComputeError(e.to_string()))?;
                let items = item.finish()?;
                Arc::new(FixedSizeListArray::try_new_with_length(Arc::clone(field), size, items, valid, len)?)
            }
            Shape::Struct(members) => {
                let columns = members.nodes.iter_mut().map(Self::finish).collect::<Result<Vec<_>, _>>()?;
                let fields = members.fields.iter().map(relaxed).collect();
                Arc::new(StructArray::try_new_with_length(fields, columns, valid, len)?)
            }
            Shape::Map { entries, key, value, ends, sorted, .. } => {
                let DataType::Struct(pair) = entries.data_type() else {
                    return Err(ArrowError::SchemaError("a map without entries".to_owned()));
                };
                let pairs = StructArray::try_new(pair.clone(), vec![key.finish()?, value.finish()?], None)?;
                Arc::new(MapArray::try_new(Arc::clone(entries), offsets(ends)?, pairs, valid, *sorted)?)
            }
        })
    }
}

/// Takes so much of the room.
fn take(room: &mut usize, width: usize) -> Result<(), Fault> {
    let why = "its lists hold too many values; give a schema with fewer fields, or with text in their place";
    *room = room.checked_sub(width).ok_or_else(|| Fault { column: Vec::new(), why: why.into(), misfit: false })?;
    Ok(())
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

impl Members {
    /// Or the name of the field whose type can't be read from text.
    fn new(fields: &Fields, given: bool) -> Result<Self, String> {
        let nodes = fields.iter().map(|f| Node::new(f, given).ok_or_else(|| f.name().clone()));
        let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
        let by_name = fields.iter().enumerate().map(|(at, field)| (field.name().clone(), at)).collect();
        Ok(Self { fields: fields.clone(), seen: vec![0; nodes.len()], nodes, by_name, values: 0 })
    }

    fn push(&mut self, value: &mut Cursor<'_>, rules: Rules, room: &mut usize) -> Outcome {
        self.values += 1;
        let mut outcome = Ok(());
        // Records tend to have their keys in one order.
        let mut expected = 0;
        let Self { fields, nodes, by_name, seen, values } = self;
        value.members(|key, member| {
            let at = match fields.get(expected) {
                Some(field) if *field.name() == key => Some(expected),
                _ => by_name.get(key.as_ref()).copied(),
            };
            let (Some(at), Some(node)) = (at, at.and_then(|at| nodes.get_mut(at))) else {
                let _ = member.raw();
                if !rules.ignore_extra {
                    let why = if rules.given {
                        "not in the schema; add it, or leave such columns out with --ignore-extra"
                    } else {
                        "not seen before"
                    };
                    first(&mut outcome, Err(Fault::misfit(why).within(&key)));
                }
                return;
            };
            expected = at + 1;
            if let Some(last) = seen.get_mut(at) {
                if *last == *values {
                    let _ = member.raw();
                    let fault =
                        Fault { column: vec![key.into_owned()], why: "the key occurs twice".into(), misfit: false };
                    first(&mut outcome, Err(fault));
                    return;
                }
                *last = *values;
            }
            first(&mut outcome, node.push(member, rules, room).map_err(|fault| fault.within(&key)));
        });
        for ((node, seen), field) in self.nodes.iter_mut().zip(&self.seen).zip(&self.fields) {
            if *seen != self.values {
                first(&mut outcome, node.push_null("missing").map_err(|fault| fault.within(field.name())));
            }
        }
        outcome
    }
}

/// Collects records.
pub(crate) struct Rows {
    schema: SchemaRef,
    members: Members,
    rules: Rules,
    rows: usize,
    /// Values in the lists and maps of these rows.
    listed: usize,
}

impl Rows {
    /// Or the name of the column whose type can't be read from text.
    pub(crate) fn new(schema: &SchemaRef, rules: Rules) -> Result<Self, String> {
        // Even nulls of such a type would be too large.
        if let Some(field) = schema.fields().iter().find(|f| width(f.data_type()) > RECORD_VALUES) {
            return Err(field.name().clone());
        }
        let members = Members::new(schema.fields(), rules.given)?;
        Ok(Self { schema: Arc::clone(schema), members, rules, rows: 0, listed: 0 })
    }

    /// Rows since the last batch.
    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// Values in the lists and maps of the rows since the last batch.
    pub(crate) fn listed(&self) -> usize {
        self.listed
    }

    /// Appends a row: an object that passed the check of its JSON, whose lists and maps hold `most` values at most.
    pub(crate) fn push_json(&mut self, record: &str, most: usize) -> Outcome {
        self.rows += 1;
        let mut room = most;
        let outcome = self.members.push(&mut Cursor::new(record), self.rules, &mut room);
        self.listed += most - room;
        outcome
    }

    /// Appends a row of fields; `columns` says where each field goes.
    pub(crate) fn push_fields<'a>(
        &mut self,
        fields: impl Iterator<Item = CsvField<'a>>,
        columns: &[Option<usize>],
        nulls: &[String],
    ) -> Outcome {
        self.rows += 1;
        self.members.values += 1;
        let mut outcome = Ok(());
        for (field, at) in fields.zip(columns) {
            let Some(at) = *at else { continue };
            let (Some(node), Some(seen)) = (self.members.nodes.get_mut(at), self.members.seen.get_mut(at)) else {
                continue;
            };
            *seen = self.members.values;
            let Shape::Scalar(column, _) = &mut node.shape else { continue };
            let null = !field.quoted && nulls.iter().any(|null| null == field.text);
            let pushed = match if null { None } else { Some(column.push(field.text)) } {
                Some(Ok(())) => Ok(()),
                // Where nothing is no spelling of the type, it is no value.
                Some(Err(why)) if !field.text.is_empty() => {
                    column.push_null();
                    Err(Fault::misfit(why))
                }
                _ => node.push_null("no value"),
            };
            let name = self.members.fields.get(at).map_or("", |f| f.name());
            first(&mut outcome, pushed.map_err(|fault| fault.within(name)));
        }
        for ((node, seen), field) in self.members.nodes.iter_mut().zip(&self.members.seen).zip(&self.members.fields) {
            if *seen != self.members.values {
                first(&mut outcome, node.push_null("missing").map_err(|fault| fault.within(field.name())));
            }
        }
        outcome
    }

    /// Per column, whether any record had it.
    pub(crate) fn seen(&self) -> impl Iterator<Item = bool> {
        self.members.seen.iter().map(|seen| *seen > 0)
    }

    /// The rows since the last batch for which `keep` holds.
    pub(crate) fn finish(&mut self, keep: &mut BooleanBufferBuilder) -> Result<RecordBatch, ArrowError> {
        let rows = std::mem::take(&mut self.rows);
        self.listed = 0;
        let keep = keep.finish();
        let columns = self.members.nodes.iter_mut().map(Node::finish).collect::<Result<Vec<_>, _>>()?;
        let all = keep.count_set_bits() == rows;
        let keep = arrow_array::BooleanArray::new(keep, None);
        let finish = |(column, field): (ArrayRef, &FieldRef)| {
            let kept = if all { column } else { arrow_select::filter::filter(&column, &keep)? };
            // With the bad rows gone, parts that must not be null are not.
            if kept.data_type() == field.data_type() { Ok(kept) } else { arrow_cast::cast(&kept, field.data_type()) }
        };
        let columns =
            columns.into_iter().zip(self.schema.fields()).map(finish).collect::<Result<Vec<_>, ArrowError>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(keep.true_count()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use arrow_schema::Schema;

    fn wide() -> DataType {
        DataType::Struct((0..99).map(|at| Field::new(format!("f{at}"), DataType::Int8, true)).collect())
    }

    #[test]
    fn lists_of_wide_values_are_counted_and_bounded() {
        let list = DataType::List(Arc::new(Field::new_list_field(wide(), true)));
        let lists = DataType::List(Arc::new(Field::new_list_field(list, true)));
        let schema = Arc::new(Schema::new(vec![Field::new("a", lists, true)]));
        let mut rows = Rows::new(&schema, Rules { given: true, ignore_extra: false }).unwrap();
        // Two inner lists, three structs of a hundred values each.
        let record = r#"{"a":[[{},{}],[null]]}"#;
        assert!(rows.push_json(record, 302).is_ok());
        assert_eq!(rows.listed(), 302);
        let fault = rows.push_json(record, 301).unwrap_err();
        assert_eq!(fault.column, ["a"]);
        assert!(fault.why.contains("too many values") && !fault.misfit, "{fault:?}");
        assert!(rows.push_json(record, 302).is_ok());
        let mut keep = BooleanBufferBuilder::new(0);
        [true, false, true].into_iter().for_each(|sound| keep.append(sound));
        let batch = rows.finish(&mut keep).unwrap();
        assert_eq!((batch.num_rows(), rows.len(), rows.listed()), (2, 0, 0));
        assert_eq!(batch.column(0).slice(0, 1).as_ref(), batch.column(0).slice(1, 1).as_ref());
    }

    #[test]
    fn widths_are_those_of_nulls() {
        let fixed = |item, size| DataType::FixedSizeList(Arc::new(Field::new_list_field(item, true)), size);
        assert_eq!(width(&wide()), 100);
        assert_eq!(width(&fixed(wide(), 7)), 701);
        assert_eq!(width(&DataType::List(Arc::new(Field::new_list_field(wide(), true)))), 1);
        assert_eq!(width(&DataType::FixedSizeBinary(160)), 11);
        let huge = fixed(fixed(fixed(DataType::Int8, i32::MAX), i32::MAX), i32::MAX);
        assert_eq!(width(&huge), usize::MAX);
        let schema = Arc::new(Schema::new(vec![Field::new("huge", huge, true)]));
        assert_eq!(Rows::new(&schema, Rules { given: true, ignore_extra: false }).err(), Some("huge".to_owned()));
    }
}
