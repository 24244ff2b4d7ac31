//! The types a file can store, as trees of nodes, and what they are in Arrow.
//!
//! A column is a tree like Arrow's: a leaf, a struct, a list, a fixed-size list or a map. Every node has one *stream*
//! of blocks in the file: a leaf's values, a list's lengths, a struct's presence. Streams are numbered in preorder.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, IntervalUnit, Schema, TimeUnit};
use plinth_encoding::{EncodingError, Physical};

use crate::error::{FormatError, Result};
use crate::wire::{WireReader, WireWriter};

/// How deep types may nest; deeper ones are refused on both sides.
const MAX_DEPTH: usize = 64;

/// What the values of a node mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Logical {
    Null,
    Bool,
    Int {
        width: u8,
        signed: bool,
    },
    Float {
        width: u8,
    },
    /// Unscaled two's complement integers of `width` bytes.
    Decimal {
        width: u8,
        precision: u8,
        scale: i8,
    },
    Date32,
    Date64,
    Time32(TimeUnit),
    Time64(TimeUnit),
    Timestamp(TimeUnit, Option<Arc<str>>),
    Duration(TimeUnit),
    IntervalYearMonth,
    IntervalDayTime,
    IntervalMonthDayNano,
    Utf8,
    Binary,
    FixedBinary(u32),
    List,
    FixedList(u32),
    Map {
        sorted: bool,
    },
    Struct,
}

/// A node of a column's tree.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) nullable: bool,
    pub(crate) logical: Logical,
    pub(crate) metadata: Vec<(String, String)>,
    pub(crate) children: Vec<Node>,
    /// Its stream; the streams of its descendants follow.
    pub(crate) stream: usize,
}

impl Node {
    /// The streams of this node and all below it.
    pub(crate) fn streams(&self) -> Range<usize> {
        self.stream..self.children.last().map_or(self.stream + 1, |last| last.streams().end)
    }

    /// What the blocks of its stream hold: values, lengths, or whether a row is present.
    pub(crate) fn physical(&self) -> Physical {
        match &self.logical {
            Logical::Null | Logical::Bool | Logical::Struct | Logical::FixedList(_) => Physical::Bool,
            Logical::Int { width, signed } => Physical::Int { width: *width, signed: *signed },
            Logical::Float { width } => Physical::Float { width: *width },
            Logical::Decimal { width: width @ (4 | 8), .. } => Physical::Int { width: *width, signed: true },
            Logical::Decimal { width, .. } => Physical::Wide { width: *width },
            Logical::Date32 | Logical::Time32(_) | Logical::IntervalYearMonth => {
                Physical::Int { width: 4, signed: true }
            }
            Logical::Date64 | Logical::Time64(_) | Logical::Timestamp(..) | Logical::Duration(_) => {
                Physical::Int { width: 8, signed: true }
            }
            Logical::IntervalDayTime => Physical::Fixed { width: 8 },
            Logical::IntervalMonthDayNano => Physical::Fixed { width: 16 },
            Logical::Utf8 => Physical::Bytes { utf8: true },
            Logical::Binary => Physical::Bytes { utf8: false },
            Logical::FixedBinary(width) => Physical::Fixed { width: *width },
            Logical::List | Logical::Map { .. } => Physical::Int { width: 4, signed: false },
        }
    }

    /// Whether values of another node's type can be stored here as they are: names and nullability apart.
    pub(crate) fn same_shape(&self, other: &Self) -> bool {
        self.logical == other.logical
            && self.children.len() == other.children.len()
            && self.children.iter().zip(&other.children).all(|(a, b)| a.same_shape(b))
    }

    /// Whether its stream holds the column's values, rather than the shape of what is below.
    pub(crate) fn is_leaf(&self) -> bool {
        self.children.is_empty() && self.logical != Logical::Struct
    }

    /// The node's type in Arrow, as a scan emits it.
    pub(crate) fn arrow_type(&self) -> DataType {
        let child = || {
            self.children.first().map_or_else(|| Arc::new(Field::new("item", DataType::Null, true)), Node::arrow_field)
        };
        match &self.logical {
            Logical::Null => DataType::Null,
            Logical::Bool => DataType::Boolean,
            Logical::Int { width: 1, signed: true } => DataType::Int8,
            Logical::Int { width: 2, signed: true } => DataType::Int16,
            Logical::Int { width: 4, signed: true } => DataType::Int32,
            Logical::Int { signed: true, .. } => DataType::Int64,
            Logical::Int { width: 1, .. } => DataType::UInt8,
            Logical::Int { width: 2, .. } => DataType::UInt16,
            Logical::Int { width: 4, .. } => DataType::UInt32,
            Logical::Int { .. } => DataType::UInt64,
            Logical::Float { width: 2 } => DataType::Float16,
            Logical::Float { width: 4 } => DataType::Float32,
            Logical::Float { .. } => DataType::Float64,
            Logical::Decimal { width: 4, precision, scale } => DataType::Decimal32(*precision, *scale),
            Logical::Decimal { width: 8, precision, scale } => DataType::Decimal64(*precision, *scale),
            Logical::Decimal { width: 16, precision, scale } => DataType::Decimal128(*precision, *scale),
            Logical::Decimal { precision, scale, .. } => DataType::Decimal256(*precision, *scale),
            Logical::Date32 => DataType::Date32,
            Logical::Date64 => DataType::Date64,
            Logical::Time32(unit) => DataType::Time32(*unit),
            Logical::Time64(unit) => DataType::Time64(*unit),
            Logical::Timestamp(unit, zone) => DataType::Timestamp(*unit, zone.clone()),
            Logical::Duration(unit) => DataType::Duration(*unit),
            Logical::IntervalYearMonth => DataType::Interval(IntervalUnit::YearMonth),
            Logical::IntervalDayTime => DataType::Interval(IntervalUnit::DayTime),
            Logical::IntervalMonthDayNano => DataType::Interval(IntervalUnit::MonthDayNano),
            Logical::Utf8 => DataType::Utf8View,
            Logical::Binary => DataType::BinaryView,
            Logical::FixedBinary(width) => DataType::FixedSizeBinary(i32::try_from(*width).unwrap_or(i32::MAX)),
            Logical::List => DataType::List(child()),
            Logical::FixedList(n) => DataType::FixedSizeList(child(), i32::try_from(*n).unwrap_or(i32::MAX)),
            Logical::Map { sorted } => DataType::Map(child(), *sorted),
            Logical::Struct => DataType::Struct(self.children.iter().map(Node::arrow_field).collect()),
        }
    }

    /// The node as an Arrow field.
    pub(crate) fn arrow_field(&self) -> FieldRef {
        let metadata: HashMap<_, _> = self.metadata.iter().cloned().collect();
        Arc::new(Field::new(&self.name, self.arrow_type(), self.nullable).with_metadata(metadata))
    }

    /// How `inspect` and FORMAT.md name the type.
    pub(crate) fn type_name(&self) -> String {
        let unit = |unit: &TimeUnit| match unit {
            TimeUnit::Second => "s",
            TimeUnit::Millisecond => "ms",
            TimeUnit::Microsecond => "us",
            TimeUnit::Nanosecond => "ns",
        };
        match &self.logical {
            Logical::Null => "null".into(),
            Logical::Bool => "bool".into(),
            Logical::Int { width, signed } => format!("{}int{}", if *signed { "" } else { "u" }, width * 8),
            Logical::Float { width } => format!("float{}", width * 8),
            Logical::Decimal { width, precision, scale } => {
                format!("decimal{}({precision},{scale})", u32::from(*width) * 8)
            }
            Logical::Date32 => "date".into(),
            Logical::Date64 => "date_ms".into(),
            Logical::Time32(u) | Logical::Time64(u) => format!("time({})", unit(u)),
            Logical::Timestamp(u, None) => format!("timestamp({})", unit(u)),
            Logical::Timestamp(u, Some(zone)) => format!("timestamp({}, {zone})", unit(u)),
            Logical::Duration(u) => format!("duration({})", unit(u)),
            Logical::IntervalYearMonth => "interval(months)".into(),
            Logical::IntervalDayTime => "interval(days, ms)".into(),
            Logical::IntervalMonthDayNano => "interval(months, days, ns)".into(),
            Logical::Utf8 => "utf8".into(),
            Logical::Binary => "binary".into(),
            Logical::FixedBinary(width) => format!("binary[{width}]"),
            Logical::List => "list".into(),
            Logical::FixedList(n) => format!("list[{n}]"),
            Logical::Map { .. } => "map".into(),
            Logical::Struct => "struct".into(),
        }
    }
}

/// The columns of a file.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) columns: Vec<Node>,
    pub(crate) metadata: Vec<(String, String)>,
}

impl Tree {
    /// What an Arrow schema becomes.
    ///
    /// # Errors
    /// [`FormatError::Unsupported`] names the first column that can't be stored.
    pub(crate) fn from_arrow(schema: &Schema) -> Result<Self> {
        let mut streams = 0;
        let columns = schema
            .fields()
            .iter()
            .map(|field| node(field, field.name(), 0, &mut streams))
            .collect::<Result<Vec<_>>>()?;
        check_names(&columns, "")?;
        Ok(Self { columns, metadata: sorted(schema.metadata()) })
    }

    /// Number of streams.
    pub(crate) fn streams(&self) -> usize {
        self.columns.last().map_or(0, |last| last.streams().end)
    }

    /// The node whose stream this is.
    pub(crate) fn node_of(&self, stream: usize) -> Option<&Node> {
        let within = |nodes: &[Node]| nodes.iter().position(|node| node.streams().contains(&stream));
        let mut node = self.columns.get(within(&self.columns)?)?;
        while node.stream != stream {
            node = node.children.get(within(&node.children)?)?;
        }
        Some(node)
    }

    /// The schema of what a scan emits.
    pub(crate) fn arrow_schema(&self) -> Schema {
        let fields: Fields = self.columns.iter().map(Node::arrow_field).collect();
        Schema::new_with_metadata(fields, self.metadata.iter().cloned().collect())
    }

    pub(crate) fn write(&self, out: &mut WireWriter) {
        write_pairs(&self.metadata, out);
        out.len(self.columns.len());
        self.columns.iter().for_each(|column| write_node(column, out));
    }

    pub(crate) fn read(wire: &mut WireReader<'_>) -> plinth_encoding::Result<Self> {
        let metadata = read_pairs(wire)?;
        let mut streams = 0;
        let columns = (0..wire.count(5)?).map(|_| read_node(wire, 0, &mut streams)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { columns, metadata })
    }
}

/// Two columns of one name could not be told apart by name.
fn check_names(nodes: &[Node], parent: &str) -> Result<()> {
    let mut seen = std::collections::HashSet::new();
    for node in nodes {
        let path = if parent.is_empty() { node.name.clone() } else { format!("{parent}.{}", node.name) };
        if !seen.insert(node.name.as_str()) {
            return Err(FormatError::Unsupported {
                column: path,
                what: "the name occurs twice; rename one of them".into(),
            });
        }
        check_names(&node.children, &path)?;
    }
    Ok(())
}

pub(crate) fn sorted(metadata: &HashMap<String, String>) -> Vec<(String, String)> {
    let mut pairs: Vec<_> = metadata.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    pairs.sort();
    pairs
}

fn node(field: &Field, path: &str, depth: usize, streams: &mut usize) -> Result<Node> {
    let unsupported = |what: String| FormatError::Unsupported { column: path.to_owned(), what };
    if depth >= MAX_DEPTH {
        return Err(unsupported(format!("the type nests deeper than {MAX_DEPTH} levels")));
    }
    let stream = *streams;
    *streams += 1;
    let width = |n: i32, what: &str| {
        u32::try_from(n).map_err(|_| unsupported(format!("a negative {what} ({n}) makes no sense")))
    };
    let mut children: Vec<&Field> = Vec::new();
    let logical = match field.data_type() {
        DataType::Null => Logical::Null,
        DataType::Boolean => Logical::Bool,
        DataType::Int8 => Logical::Int { width: 1, signed: true },
        DataType::Int16 => Logical::Int { width: 2, signed: true },
        DataType::Int32 => Logical::Int { width: 4, signed: true },
        DataType::Int64 => Logical::Int { width: 8, signed: true },
        DataType::UInt8 => Logical::Int { width: 1, signed: false },
        DataType::UInt16 => Logical::Int { width: 2, signed: false },
        DataType::UInt32 => Logical::Int { width: 4, signed: false },
        DataType::UInt64 => Logical::Int { width: 8, signed: false },
        DataType::Float16 => Logical::Float { width: 2 },
        DataType::Float32 => Logical::Float { width: 4 },
        DataType::Float64 => Logical::Float { width: 8 },
        DataType::Decimal32(precision, scale) => Logical::Decimal { width: 4, precision: *precision, scale: *scale },
        DataType::Decimal64(precision, scale) => Logical::Decimal { width: 8, precision: *precision, scale: *scale },
        DataType::Decimal128(precision, scale) => Logical::Decimal { width: 16, precision: *precision, scale: *scale },
        DataType::Decimal256(precision, scale) => Logical::Decimal { width: 32, precision: *precision, scale: *scale },
        DataType::Date32 => Logical::Date32,
        DataType::Date64 => Logical::Date64,
        DataType::Time32(unit) => Logical::Time32(*unit),
        DataType::Time64(unit) => Logical::Time64(*unit),
        DataType::Timestamp(unit, zone) => Logical::Timestamp(*unit, zone.clone()),
        DataType::Duration(unit) => Logical::Duration(*unit),
        DataType::Interval(IntervalUnit::YearMonth) => Logical::IntervalYearMonth,
        DataType::Interval(IntervalUnit::DayTime) => Logical::IntervalDayTime,
        DataType::Interval(IntervalUnit::MonthDayNano) => Logical::IntervalMonthDayNano,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Logical::Utf8,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Logical::Binary,
        DataType::FixedSizeBinary(n) => Logical::FixedBinary(width(*n, "width")?),
        DataType::List(item) | DataType::LargeList(item) | DataType::ListView(item) | DataType::LargeListView(item) => {
            children.push(item);
            Logical::List
        }
        DataType::FixedSizeList(item, n) => {
            children.push(item);
            Logical::FixedList(width(*n, "list size")?)
        }
        DataType::Map(entries, sorted) => {
            children.push(entries);
            Logical::Map { sorted: *sorted }
        }
        DataType::Struct(fields) => {
            children.extend(fields.iter().map(AsRef::as_ref));
            Logical::Struct
        }
        // Both are ways to hold values, not types of values: the file has encodings of its own for them.
        DataType::Dictionary(_, values) => {
            *streams = stream;
            return node(&field.clone().with_data_type(values.as_ref().clone()), path, depth + 1, streams);
        }
        DataType::RunEndEncoded(_, values) => {
            *streams = stream;
            return node(&field.clone().with_data_type(values.data_type().clone()), path, depth + 1, streams);
        }
        other @ DataType::Union(..) => {
            return Err(unsupported(format!("the type {other} can't be stored; cast it or leave the column out")));
        }
    };
    if let Logical::Decimal { precision, scale, .. } = logical
        && (precision == 0 || i16::from(scale) > i16::from(precision))
    {
        return Err(unsupported(format!(
            "a decimal of {precision} digits with {scale} behind the point makes no sense"
        )));
    }
    let is_list = matches!(logical, Logical::List | Logical::FixedList(_) | Logical::Map { .. });
    let children = children
        .into_iter()
        .map(|child| {
            let name = if is_list { format!("{path}[]") } else { format!("{path}.{}", child.name()) };
            node(child, &name, depth + 1, streams)
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Node {
        name: field.name().clone(),
        nullable: field.is_nullable(),
        logical,
        metadata: sorted(field.metadata()),
        children,
        stream,
    })
}

fn write_pairs(pairs: &[(String, String)], out: &mut WireWriter) {
    out.len(pairs.len());
    for (key, value) in pairs {
        out.bytes(key.as_bytes());
        out.bytes(value.as_bytes());
    }
}

fn read_pairs(wire: &mut WireReader<'_>) -> plinth_encoding::Result<Vec<(String, String)>> {
    (0..wire.count(2)?).map(|_| Ok((wire.text()?.to_owned(), wire.text()?.to_owned()))).collect()
}

fn unit_tag(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 1,
        TimeUnit::Microsecond => 2,
        TimeUnit::Nanosecond => 3,
    }
}

fn read_unit(wire: &mut WireReader<'_>) -> plinth_encoding::Result<TimeUnit> {
    match wire.u8()? {
        0 => Ok(TimeUnit::Second),
        1 => Ok(TimeUnit::Millisecond),
        2 => Ok(TimeUnit::Microsecond),
        3 => Ok(TimeUnit::Nanosecond),
        other => Err(EncodingError::corrupt(format!("{other} is no time unit"))),
    }
}

/// Node: name, flags (bit 0 nullable), type tag and its parameters, metadata pairs, child count, children.
fn write_node(node: &Node, out: &mut WireWriter) {
    out.bytes(node.name.as_bytes());
    out.u8(u8::from(node.nullable));
    match &node.logical {
        Logical::Null => out.u8(0),
        Logical::Bool => out.u8(1),
        Logical::Int { width, signed } => {
            out.u8(2);
            out.u8(*width);
            out.u8(u8::from(*signed));
        }
        Logical::Float { width } => {
            out.u8(3);
            out.u8(*width);
        }
        Logical::Decimal { width, precision, scale } => {
            out.u8(4);
            out.u8(*width);
            out.u8(*precision);
            out.u8(scale.cast_unsigned());
        }
        Logical::Date32 => out.u8(5),
        Logical::Date64 => out.u8(6),
        Logical::Time32(unit) => {
            out.u8(7);
            out.u8(unit_tag(*unit));
        }
        Logical::Time64(unit) => {
            out.u8(8);
            out.u8(unit_tag(*unit));
        }
        Logical::Timestamp(unit, zone) => {
            out.u8(9);
            out.u8(unit_tag(*unit));
            out.u8(u8::from(zone.is_some()));
            if let Some(zone) = zone {
                out.bytes(zone.as_bytes());
            }
        }
        Logical::Duration(unit) => {
            out.u8(10);
            out.u8(unit_tag(*unit));
        }
        Logical::IntervalYearMonth => out.u8(11),
        Logical::IntervalDayTime => out.u8(12),
        Logical::IntervalMonthDayNano => out.u8(13),
        Logical::Utf8 => out.u8(14),
        Logical::Binary => out.u8(15),
        Logical::FixedBinary(width) => {
            out.u8(16);
            out.u32(*width);
        }
        Logical::List => out.u8(17),
        Logical::FixedList(n) => {
            out.u8(18);
            out.u32(*n);
        }
        Logical::Map { sorted } => {
            out.u8(19);
            out.u8(u8::from(*sorted));
        }
        Logical::Struct => out.u8(20),
    }
    write_pairs(&node.metadata, out);
    out.len(node.children.len());
    node.children.iter().for_each(|child| write_node(child, out));
}

fn read_node(wire: &mut WireReader<'_>, depth: usize, streams: &mut usize) -> plinth_encoding::Result<Node> {
    let corrupt = |what: &str| Err(EncodingError::corrupt(format!("schema: {what}")));
    if depth >= MAX_DEPTH {
        return corrupt("nested too deep");
    }
    let stream = *streams;
    *streams += 1;
    let name = wire.text()?.to_owned();
    let nullable = wire.u8()? & 1 == 1;
    let positive_i32 = |n: u32| {
        if i32::try_from(n).is_ok() { Ok(n) } else { Err(EncodingError::corrupt("schema: a width exceeds 31 bits")) }
    };
    let logical = match wire.u8()? {
        0 => Logical::Null,
        1 => Logical::Bool,
        2 => match (wire.u8()?, wire.u8()?) {
            (width @ (1 | 2 | 4 | 8), signed @ (0 | 1)) => Logical::Int { width, signed: signed == 1 },
            _ => return corrupt("no such integer"),
        },
        3 => match wire.u8()? {
            width @ (2 | 4 | 8) => Logical::Float { width },
            _ => return corrupt("no such float"),
        },
        4 => {
            let (width, precision, scale) = (wire.u8()?, wire.u8()?, wire.u8()?.cast_signed());
            let most = match width {
                4 => 9,
                8 => 18,
                16 => 38,
                32 => 76,
                _ => return corrupt("no such decimal"),
            };
            if precision == 0 || precision > most || i16::from(scale) > i16::from(precision) {
                return corrupt("no such decimal");
            }
            Logical::Decimal { width, precision, scale }
        }
        5 => Logical::Date32,
        6 => Logical::Date64,
        7 => match read_unit(wire)? {
            unit @ (TimeUnit::Second | TimeUnit::Millisecond) => Logical::Time32(unit),
            _ => return corrupt("a 32-bit time of that unit"),
        },
        8 => match read_unit(wire)? {
            unit @ (TimeUnit::Microsecond | TimeUnit::Nanosecond) => Logical::Time64(unit),
            _ => return corrupt("a 64-bit time of that unit"),
        },
        9 => {
            let unit = read_unit(wire)?;
            let zone = if wire.u8()? == 1 { Some(Arc::from(wire.text()?)) } else { None };
            Logical::Timestamp(unit, zone)
        }
        10 => Logical::Duration(read_unit(wire)?),
        11 => Logical::IntervalYearMonth,
        12 => Logical::IntervalDayTime,
        13 => Logical::IntervalMonthDayNano,
        14 => Logical::Utf8,
        15 => Logical::Binary,
        16 => Logical::FixedBinary(positive_i32(wire.u32()?)?),
        17 => Logical::List,
        18 => Logical::FixedList(positive_i32(wire.u32()?)?),
        19 => Logical::Map { sorted: wire.u8()? == 1 },
        20 => Logical::Struct,
        other => return corrupt(&format!("{other} is no type this version knows")),
    };
    let metadata = read_pairs(wire)?;
    let count = wire.count(5)?;
    let children = (0..count).map(|_| read_node(wire, depth + 1, streams)).collect::<Result<Vec<_>, _>>()?;
    let fits = match logical {
        Logical::Struct => true,
        Logical::List | Logical::FixedList(_) => children.len() == 1,
        Logical::Map { .. } => {
            matches!(children.as_slice(), [entries] if entries.logical == Logical::Struct && entries.children.len() == 2)
        }
        _ => children.is_empty(),
    };
    if !fits {
        return corrupt(&format!("column {name:?} has {} children", children.len()));
    }
    Ok(Node { name, nullable, logical, metadata, children, stream })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
