//! Columns of Parquet files as they are stored, and what their values mean.
//!
//! Timestamps of the physical type INT96 and intervals take twelve bytes. The decoders of the `parquet` crate bend both: the
//! one wraps beyond the year 2262, of the other months or days are left out. So a file's schema is made to say binaries of
//! twelve bytes, which are stored alike, plain and in dictionaries, and their meaning is found here: exactly, or not at all.

use std::sync::Arc;

use arrow_array::builder::{
    FixedSizeBinaryBuilder, IntervalDayTimeBuilder, IntervalMonthDayNanoBuilder, IntervalYearMonthBuilder,
    StringViewBuilder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::IntervalMonthDayNanoType;
use arrow_array::{Array, ArrayRef, Date32Array, Date64Array, FixedSizeBinaryArray, Int64Array, make_array};
use arrow_buffer::{IntervalDayTime, IntervalMonthDayNano};
use arrow_schema::{DataType, Field, FieldRef, IntervalUnit, Schema, SchemaRef, TimeUnit};
use parquet::arrow::{ARROW_SCHEMA_META_KEY, ArrowSchemaConverter};
use parquet::basic::{ColumnOrder, ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, ParquetMetaData, ParquetMetaDataBuilder, RowGroupMetaData,
};
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

/// Bytes of such a value.
const WIDTH: i32 = 12;

/// Bytes of a UUID.
const UUID_WIDTH: i32 = 16;

/// Milliseconds of a day.
const DAY: i64 = 86_400_000;

/// The Julian day of 1970-01-01.
const EPOCH: i64 = 2_440_588;

/// Metadata by which columns are read as they are stored: values of twelve bytes as binaries, and dictionaries only where there
/// may be one (an offset of 0 means none to some writers). [`as_meant`] makes of the binaries what they stand for.
///
/// # Errors
/// If the metadata does not hold together.
pub fn as_stored(metadata: &Arc<ParquetMetaData>) -> Result<Arc<ParquetMetaData>> {
    check_places(metadata)?;
    let file = metadata.file_metadata();
    let schema = file.schema_descr();
    let twelve: Vec<bool> = schema.columns().iter().map(|column| is_twelve(column.self_type())).collect();
    let offsets =
        metadata.row_groups().iter().flat_map(RowGroupMetaData::columns).any(|chunk| !has_sound_offset(chunk));
    if !twelve.contains(&true) && !offsets {
        return Ok(Arc::clone(metadata));
    }
    let mut builder = if twelve.contains(&true) {
        let root = stored_type(&schema.root_schema_ptr())?;
        let orders = file.column_orders().map(|orders| {
            let order = |(order, twelve): (&ColumnOrder, &bool)| if *twelve { ColumnOrder::UNKNOWN } else { *order };
            orders.iter().zip(&twelve).map(order).collect()
        });
        let of = FileMetaData::new(
            file.version(),
            file.num_rows(),
            file.created_by().map(str::to_owned),
            file.key_value_metadata().cloned(),
            Arc::new(SchemaDescriptor::new(root)),
            orders,
        );
        ParquetMetaDataBuilder::new(of)
            .set_column_index(metadata.column_index().cloned())
            .set_offset_index(metadata.offset_index().cloned())
    } else {
        ParquetMetaDataBuilder::new_from_metadata(metadata.as_ref().clone())
    };
    let groups = metadata.row_groups().iter().map(|group| {
        let chunk = |chunk: &ColumnChunkMetaData| match has_sound_offset(chunk) {
            true => Ok(chunk.clone()),
            false => chunk.clone().into_builder().set_dictionary_page_offset(None).build(),
        };
        let chunks = group.columns().iter().map(chunk).collect::<Result<Vec<_>>>()?;
        group.clone().into_builder().set_column_metadata(chunks).build()
    });
    let groups = groups.collect::<Result<Vec<_>>>()?;
    builder = builder.set_row_groups(groups);
    Ok(Arc::new(builder.build()))
}

/// Checks what the `parquet` crate panics at: where chunks begin, and how long they are.
///
/// # Errors
/// If one begins before the file, or has less than no bytes; with its column and row group.
pub fn check_places(metadata: &ParquetMetaData) -> Result<()> {
    for (number, group) in metadata.row_groups().iter().enumerate() {
        for chunk in group.columns() {
            let (offset, bytes) = (chunk.data_page_offset(), chunk.compressed_size());
            if offset < 0 || bytes < 0 {
                let column = chunk.column_path().string();
                return Err(ParquetError::General(format!(
                    "damaged footer: column {column:?} of row group {number} has {bytes} bytes from byte {offset} on"
                )));
            }
        }
    }
    Ok(())
}

/// Whether a chunk begins with its dictionary, or does not say where one is: no page is within the magic bytes of the file, and
/// a dictionary is before what refers to it.
fn has_sound_offset(chunk: &ColumnChunkMetaData) -> bool {
    chunk.dictionary_page_offset().is_none_or(|offset| offset > 0)
}

fn is_twelve(column: &Type) -> bool {
    match column {
        Type::PrimitiveType { physical_type: Physical::INT96, .. } => true,
        Type::PrimitiveType {
            physical_type: Physical::FIXED_LEN_BYTE_ARRAY, type_length: WIDTH, basic_info, ..
        } => basic_info.converted_type() == ConvertedType::INTERVAL,
        _ => false,
    }
}

/// A type with binaries in the place of values of twelve bytes.
fn stored_type(of: &TypePtr) -> Result<TypePtr> {
    let info = of.get_basic_info();
    let id = info.has_id().then(|| info.id());
    if of.is_primitive() {
        return Ok(match is_twelve(of) {
            false => Arc::clone(of),
            true => Arc::new(
                Type::primitive_type_builder(of.name(), Physical::FIXED_LEN_BYTE_ARRAY)
                    .with_length(WIDTH)
                    .with_repetition(info.repetition())
                    .with_id(id)
                    .build()?,
            ),
        });
    }
    let fields = of.get_fields().iter().map(stored_type).collect::<Result<Vec<_>>>()?;
    // The root has no repetition.
    let repetition = if info.has_repetition() { info.repetition() } else { Repetition::REQUIRED };
    let builder = Type::group_type_builder(of.name())
        .with_converted_type(info.converted_type())
        .with_logical_type(info.logical_type_ref().cloned())
        .with_fields(fields)
        .with_id(id);
    let builder = if info.has_repetition() { builder.with_repetition(repetition) } else { builder };
    Ok(Arc::new(builder.build()?))
}

/// Whether the file's writer said which of the three parts its intervals have. Such writers know of negative ones, which the
/// format does not.
pub fn has_arrow_schema(metadata: &ParquetMetaData) -> bool {
    let pairs = metadata.file_metadata().key_value_metadata();
    pairs.is_some_and(|pairs| pairs.iter().any(|pair| pair.key == ARROW_SCHEMA_META_KEY))
}

/// What columns mean, of which the `parquet` crate says what its decoders make of them: intervals keep months, days and
/// milliseconds, unless the file's writer said that there are but some of them; UUIDs are text; days are days, however many
/// milliseconds the writer counted them in.
pub(crate) fn meaning(metadata: &ParquetMetaData, decoded: &Schema) -> Schema {
    let whole_intervals = !has_arrow_schema(metadata);
    let mut stored = metadata.file_metadata().schema_descr().columns().iter();
    with_leaves(decoded, &mut |field, data_type| {
        let stored = stored.next().and_then(|column| column.self_type().get_basic_info().logical_type_ref());
        let is_uuid = || stored == Some(&LogicalType::Uuid) || field.extension_type_name() == Some("arrow.uuid");
        let data_type = match data_type {
            DataType::Dictionary(_, values) => values.as_ref(),
            other => other,
        };
        match data_type {
            DataType::Interval(_) if whole_intervals => DataType::Interval(IntervalUnit::MonthDayNano),
            DataType::FixedSizeBinary(UUID_WIDTH) if is_uuid() => DataType::Utf8View,
            DataType::Date64 => DataType::Date32,
            other => other.clone(),
        }
    })
}

/// A schema with other types in the place of those that have no fields, which come in the order in which Parquet stores them.
fn with_leaves(schema: &Schema, leaf: &mut dyn FnMut(&Field, &DataType) -> DataType) -> Schema {
    let fields = schema.fields().iter().map(|field| field_with_leaves(field, leaf)).collect::<Vec<_>>();
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

fn field_with_leaves(field: &FieldRef, leaf: &mut dyn FnMut(&Field, &DataType) -> DataType) -> FieldRef {
    let mut inner = |field: &FieldRef| field_with_leaves(field, leaf);
    let data_type = match field.data_type() {
        DataType::List(item) => DataType::List(inner(item)),
        DataType::LargeList(item) => DataType::LargeList(inner(item)),
        DataType::ListView(item) => DataType::ListView(inner(item)),
        DataType::LargeListView(item) => DataType::LargeListView(inner(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(inner(item), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
        DataType::Map(entries, sorted) => DataType::Map(inner(entries), *sorted),
        other => leaf(field, other),
    };
    if data_type == *field.data_type() {
        return Arc::clone(field);
    }
    Arc::new(Field::clone(field).with_data_type(data_type))
}

/// How columns are written for which the `parquet` crate has no form, or one that other readers take for numbers.
#[derive(Debug)]
pub(crate) struct Written {
    /// The types of the arrays that the crate is given: intervals are the twelve bytes that are stored.
    pub(crate) arrays: SchemaRef,
    /// What the file says that it holds.
    pub(crate) stored: SchemaDescriptor,
    /// The types that the file's Arrow schema has.
    pub(crate) meant: Schema,
}

/// How the columns of a schema are written. None if the crate writes all of them as it should.
///
/// # Errors
/// If Parquet has no form for a type.
pub(crate) fn written(schema: &Schema) -> Result<Option<Written>> {
    let with = |interval: DataType| {
        with_leaves(schema, &mut |_, data_type| match data_type {
            DataType::Interval(IntervalUnit::MonthDayNano) => interval.clone(),
            DataType::Date64 => DataType::Date32,
            other => other.clone(),
        })
    };
    let arrays = with(DataType::FixedSizeBinary(WIDTH));
    if arrays.fields() == schema.fields() {
        return Ok(None);
    }
    // Of intervals of days and milliseconds the crate makes the type that all of them have in Parquet.
    let stored = ArrowSchemaConverter::new().convert(&with(DataType::Interval(IntervalUnit::DayTime)))?;
    let meant = with(DataType::Interval(IntervalUnit::MonthDayNano));
    Ok(Some(Written { arrays: Arc::new(arrays), stored, meant }))
}

/// An array in the type that [`written`] has for it.
///
/// # Errors
/// If a value can't be stored exactly, in a few words.
pub(crate) fn as_written(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, String> {
    match (array.data_type(), data_type) {
        (DataType::Interval(IntervalUnit::MonthDayNano), DataType::FixedSizeBinary(WIDTH)) => {
            let mut to = FixedSizeBinaryBuilder::with_capacity(array.len(), WIDTH);
            for value in array.as_primitive::<IntervalMonthDayNanoType>() {
                match value {
                    Some(value) => to.append_value(twelve_bytes(value)?).map_err(|e| e.to_string())?,
                    None => to.append_null(),
                }
            }
            Ok(Arc::new(to.finish()))
        }
        (DataType::Date64, DataType::Date32) => {
            days(array.as_primitive(), "export it as CSV or NDJSON, or as a TIMESTAMP")
        }
        (from, to) if from.is_nested() && to.is_nested() => nested(array, data_type, &as_written),
        _ => Ok(Arc::clone(array)),
    }
}

/// An interval as Parquet stores it: months, days and milliseconds, none of which is negative.
fn twelve_bytes(value: IntervalMonthDayNano) -> Result<[u8; 12], String> {
    let advice = "export it as CSV or NDJSON, or as TEXT";
    let millis = value.nanoseconds / 1_000_000;
    if value.nanoseconds % 1_000_000 != 0 {
        return Err(format!("holds an interval with parts of milliseconds, which Parquet would lose; {advice}"));
    }
    let (Ok(months), Ok(days)) = (u32::try_from(value.months), u32::try_from(value.days)) else {
        return Err(format!("holds a negative interval, which Parquet does not know; {advice}"));
    };
    let millis = u32::try_from(millis).map_err(|_| match millis {
        ..0 => format!("holds a negative interval, which Parquet does not know; {advice}"),
        _ => format!("holds an interval of more milliseconds than Parquet has room for; {advice}"),
    })?;
    let mut bytes = [0; 12];
    for (to, part) in bytes.chunks_exact_mut(4).zip([months, days, millis]) {
        to.copy_from_slice(&part.to_le_bytes());
    }
    Ok(bytes)
}

/// An array read by [`as_stored`] as what it means; any other array is what it is. Intervals of two parts or one are `signed` if
/// [`has_arrow_schema`] says so.
///
/// # Errors
/// If a value can't be held exactly by the type, in a few words.
pub fn as_meant(array: &ArrayRef, data_type: &DataType, signed: bool) -> Result<ArrayRef, String> {
    match (array.data_type(), data_type) {
        (DataType::FixedSizeBinary(WIDTH), DataType::Timestamp(unit, _)) => {
            let values = array.as_fixed_size_binary();
            let moments = found(values).map(|value| value.map(|value| moment(value, *unit)).transpose());
            let moments: Int64Array = moments.collect::<Result<_, _>>()?;
            let data = moments.into_data().into_builder().data_type(data_type.clone());
            data.build().map(make_array).map_err(|e| e.to_string())
        }
        (DataType::FixedSizeBinary(WIDTH), DataType::Interval(unit)) => {
            intervals(array.as_fixed_size_binary(), *unit, signed)
        }
        (DataType::FixedSizeBinary(UUID_WIDTH), DataType::Utf8View) => Ok(uuids(array.as_fixed_size_binary())),
        (DataType::Date64, DataType::Date32) => days(array.as_primitive(), "import it with --schema, as TIMESTAMP(3)"),
        (DataType::Dictionary(..), _) => Ok(Arc::clone(array)),
        (stored, meant) if stored.is_nested() && meant.is_nested() => {
            nested(array, data_type, &|child, meant| as_meant(child, meant, signed))
        }
        _ => Ok(Arc::clone(array)),
    }
}

/// An array whose children become other types.
fn nested(
    array: &ArrayRef,
    data_type: &DataType,
    convert: &dyn Fn(&ArrayRef, &DataType) -> Result<ArrayRef, String>,
) -> Result<ArrayRef, String> {
    let inner = |field: &FieldRef| vec![Arc::clone(field)];
    let (stored, meant) = match (array.data_type(), data_type) {
        (DataType::List(a), DataType::List(b))
        | (DataType::LargeList(a), DataType::LargeList(b))
        | (DataType::Map(a, _), DataType::Map(b, _)) => (inner(a), inner(b)),
        (DataType::FixedSizeList(a, _), DataType::FixedSizeList(b, _)) => (inner(a), inner(b)),
        (DataType::Struct(a), DataType::Struct(b)) if a.len() == b.len() => (a.to_vec(), b.to_vec()),
        _ => return Ok(Arc::clone(array)),
    };
    let data = array.to_data();
    let mut changed = false;
    let mut children = Vec::with_capacity(stored.len());
    let mut fields = Vec::with_capacity(stored.len());
    for ((child, stored), meant) in data.child_data().iter().zip(&stored).zip(&meant) {
        let before = make_array(child.clone());
        let after = convert(&before, meant.data_type())?;
        changed |= after.data_type() != before.data_type();
        fields.push(Arc::new(Field::clone(stored).with_data_type(after.data_type().clone())));
        children.push(after.into_data());
    }
    if !changed {
        return Ok(Arc::clone(array));
    }
    let field = || fields.first().cloned().ok_or("a list without a child");
    let data_type = match array.data_type() {
        DataType::List(_) => DataType::List(field()?),
        DataType::LargeList(_) => DataType::LargeList(field()?),
        DataType::Map(_, sorted) => DataType::Map(field()?, *sorted),
        DataType::FixedSizeList(_, size) => DataType::FixedSizeList(field()?, *size),
        _ => DataType::Struct(fields.into()),
    };
    let data = data.into_builder().data_type(data_type).child_data(children);
    data.build().map(make_array).map_err(|e| e.to_string())
}

/// UUIDs in their usual form: 32 digits in five groups.
fn uuids(values: &FixedSizeBinaryArray) -> ArrayRef {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut to = StringViewBuilder::with_capacity(values.len());
    let mut text = String::with_capacity(36);
    for value in values {
        let Some(value) = value else {
            to.append_null();
            continue;
        };
        text.clear();
        for (at, byte) in value.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                text.push('-');
            }
            for digit in [byte >> 4, byte & 15] {
                text.extend(DIGITS.get(usize::from(digit)).copied().map(char::from));
            }
        }
        to.append_value(&text);
    }
    Arc::new(to.finish())
}

/// Days that were counted in milliseconds, or what to do where they are no days.
fn days(values: &Date64Array, advice: &str) -> Result<ArrayRef, String> {
    let day = |millis: i64| match millis % DAY {
        0 => i32::try_from(millis / DAY).map_err(|_| format!("holds a date64 beyond those of DATE; {advice}")),
        _ => Err(format!("holds a date64 with a time of day, which DATE would lose; {advice}")),
    };
    let days = values.iter().map(|value| value.map(day).transpose());
    Ok(Arc::new(days.collect::<Result<Date32Array, String>>()?))
}

fn found(values: &FixedSizeBinaryArray) -> impl Iterator<Item = Option<&[u8; 12]>> {
    values.iter().map(|value| value.and_then(|bytes| bytes.first_chunk::<12>()))
}

/// Nanoseconds of a day and the day, in a unit since 1970.
fn moment(value: &[u8; 12], unit: TimeUnit) -> Result<i64, String> {
    let [a, b, c, d, e, f, g, h, day @ ..] = *value;
    let nanos = i64::from_le_bytes([a, b, c, d, e, f, g, h]);
    let days = i64::from(i32::from_le_bytes(day)) - EPOCH;
    let total = i128::from(days) * 86_400_000_000_000 + i128::from(nanos);
    let (each, plural) = match unit {
        TimeUnit::Second => (1_000_000_000, "seconds"),
        TimeUnit::Millisecond => (1_000_000, "milliseconds"),
        TimeUnit::Microsecond => (1_000, "microseconds"),
        TimeUnit::Nanosecond => (1, "nanoseconds"),
    };
    if total % each != 0 {
        return Err(format!("holds an INT96 timestamp with parts of {plural}, which would be lost"));
    }
    i64::try_from(total / each).map_err(|_| {
        format!(
            "holds an INT96 timestamp {} days from 1970, which {plural} do not reach; import it with --schema, as TIMESTAMP(6)",
            days
        )
    })
}

fn intervals(values: &FixedSizeBinaryArray, unit: IntervalUnit, signed: bool) -> Result<ArrayRef, String> {
    let parts = |value: &[u8; 12]| {
        let [a, b, c, d, e, f, g, h, rest @ ..] = *value;
        [[a, b, c, d], [e, f, g, h], rest].map(u32::from_le_bytes)
    };
    let lost =
        |what: &str| Err(format!("holds an interval of {what}, which its type would lose; import the file instead"));
    let whole = |part: u32| match i32::try_from(part) {
        Err(_) if !signed => Err(format!("holds an interval with a part of {part}, which is more than its type holds")),
        _ => Ok(part.cast_signed()),
    };
    Ok(match unit {
        IntervalUnit::MonthDayNano => {
            let mut to = IntervalMonthDayNanoBuilder::with_capacity(values.len());
            for value in found(values) {
                let Some([months, days, millis]) = value.map(parts) else {
                    to.append_null();
                    continue;
                };
                let (Ok(months), Ok(days)) = (i32::try_from(months), i32::try_from(days)) else {
                    return Err(format!(
                        "holds an interval of {months} months and {days} days, which is more than can be held"
                    ));
                };
                to.append_value(IntervalMonthDayNano::new(months, days, i64::from(millis) * 1_000_000));
            }
            Arc::new(to.finish())
        }
        IntervalUnit::DayTime => {
            let mut to = IntervalDayTimeBuilder::with_capacity(values.len());
            for value in found(values) {
                match value.map(parts) {
                    Some([0, days, millis]) => {
                        to.append_value(IntervalDayTime::new(whole(days)?, whole(millis)?));
                    }
                    Some(_) => return lost("months"),
                    None => to.append_null(),
                }
            }
            Arc::new(to.finish())
        }
        IntervalUnit::YearMonth => {
            let mut to = IntervalYearMonthBuilder::with_capacity(values.len());
            for value in found(values) {
                match value.map(parts) {
                    Some([months, 0, 0]) => to.append_value(whole(months)?),
                    Some(_) => return lost("days or milliseconds"),
                    None => to.append_null(),
                }
            }
            Arc::new(to.finish())
        }
    })
}
